"""Responses of MiniStack's request handlers, and calls to them by provisioners of CloudFormation resource
types.
"""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.hooks import Answer, import_ministack


def build_s3_error(code: str, message: str, resource: str = "") -> Answer:
    answer: Answer = import_ministack("services.s3")._error(code, message, 400, resource)
    return answer


def build_json_error(code: str, message: str) -> Answer:
    answer: Answer = import_ministack("core.responses").error_response_json(code, message, 400)
    return answer


def build_json_answer(fields: dict[str, Any]) -> Answer:
    answer: Answer = import_ministack("core.responses").json_response(fields)
    return answer


#: A resource's physical id, and its attributes for Fn::GetAtt.
Provisioned = tuple[str, dict[str, Any]]


class ProvisioningFailed(Exception):
    """The service refused the call. The message becomes the ResourceStatusReason of the failed resource."""


def call_service(service: str, operation: str, *arguments: Any) -> dict[str, Any]:
    """Call a handler of MiniStack's service and return its response.

    Raises ProvisioningFailed if the service refuses.
    """
    status, _, body = getattr(import_ministack(f"services.{service}"), operation)(*arguments)
    answer: dict[str, Any] = json.loads(body or b"{}")
    if status >= 400:
        raise ProvisioningFailed(
            f"{answer.get('__type', 'error')}: {answer.get('message') or answer.get('Message')}"
        )
    return answer


def parse_number_or_boolean(value: Any) -> Any:
    """Convert a string with an integer or boolean, as templates may have, and return all other values
    unchanged.
    """
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and value.isdigit() else value
