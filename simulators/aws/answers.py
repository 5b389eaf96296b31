"""What MiniStack's request handlers return, in the words of S3 and of the JSON services."""

from __future__ import annotations

from typing import Any

from simulators.aws.hooks import Answer, ministack


def s3_error(code: str, message: str, status: int = 400, resource: str = "") -> Answer:
    answer: Answer = ministack("services.s3")._error(code, message, status, resource)
    return answer


def json_error(code: str, message: str) -> Answer:
    answer: Answer = ministack("core.responses").error_response_json(code, message, 400)
    return answer


def json_answer(fields: dict[str, Any]) -> Answer:
    answer: Answer = ministack("core.responses").json_response(fields)
    return answer
