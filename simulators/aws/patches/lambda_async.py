"""Asynchronous calls of functions: two more tries, all with one request id, then the function's dead-letter queue.

Stock MiniStack gives each try an id of its own, and puts an envelope without attributes into the queue, which is the form of
failure destinations. AWS sends the event itself, with RequestID, ErrorCode and ErrorMessage, under the function's role; and
CreateFunction and UpdateFunctionConfiguration refuse a queue to which that role may not send. The pauses are short. Each try that
fails counts in the metric Errors, which stock leaves at 0 ("Types of metrics for Lambda functions", Lambda Developer Guide).
"""

from __future__ import annotations

import contextvars
import json
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from simulators.aws import identity, settings
from simulators.aws.delivery import bury_in
from simulators.aws.hooks import Answer, Original, Patch, in_background, ministack

PATCH = Patch("lambda_async")
_LAMBDA: Final = "ministack.services.lambda_svc"
_RETRIES: Final = 2
_MESSAGE_BYTES: Final = 1024
_request_id: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("lakeferry_request_id", default="")


@PATCH.replaces(_LAMBDA, "invoke_async_with_retry", "func event")
def invoke_async_with_retry(_: Callable[..., None], func: dict[str, Any], event: Any) -> None:
    in_background(_run, func, event)


@PATCH.replaces(_LAMBDA, "_execute_function_dispatch", "func config event request_id started")
def execute_function_dispatch(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., dict[str, Any]],
    func: dict[str, Any],
    config: dict[str, Any],
    event: Any,
    request_id: str,
    started: float,
) -> dict[str, Any]:
    return original(func, config, event, _request_id.get() or request_id, started)


@PATCH.replaces(_LAMBDA, "_create_function", "data")
def create_function(original: Original, data: dict[str, Any]) -> Answer:
    return _refused(data, data.get("Role", "")) or original(data)


@PATCH.replaces(_LAMBDA, "_update_config", "name data")
def update_config(original: Original, name: str, data: dict[str, Any]) -> Answer:
    current = ministack("services.lambda_svc")._functions.get(name) or {"config": {}}
    return _refused(data, data.get("Role") or current["config"].get("Role", "")) or original(name, data)


def _refused(data: dict[str, Any], role: str) -> Answer | None:
    queue = (data.get("DeadLetterConfig") or {}).get("TargetArn") or ""
    if ":sqs:" not in queue or identity.may(role, "sqs:SendMessage", queue):
        return None
    message = "The provided execution role does not have permissions to call SendMessage on SQS"
    answer: Answer = ministack("core.responses").error_response_json("InvalidParameterValueException", message, 400)
    return answer


def _run(func: dict[str, Any], event: Any) -> None:
    functions = ministack("services.lambda_svc")
    config = func.get("config") or func
    given = func.get("event_invoke_config") or (func.get("event_invoke_configs") or {}).get("$LATEST") or {}
    tries = 1 + int(given.get("MaximumRetryAttempts", _RETRIES))
    _request_id.set(str(uuid.uuid4()))
    for left in reversed(range(tries)):
        result = functions._execute_function(func, event)
        if not result.get("error"):
            return
        functions._emit_lambda_metrics(config["FunctionName"], duration_ms=0.0, error=True, throttle=False)
        if left:
            time.sleep(settings.FUNCTION_RETRY_SECONDS)
    if destination := (given.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination"):
        functions._route_async_failure(destination, config["FunctionName"], event, result)
    if queue := (config.get("DeadLetterConfig") or {}).get("TargetArn"):
        _bury(queue, config, event, result)


def _bury(queue_arn: str, config: dict[str, Any], event: Any, result: dict[str, Any]) -> None:
    body = result.get("body")
    message = str(body.get("errorMessage", "")) if isinstance(body, dict) else str(body)
    attributes = {
        "RequestID": {"DataType": "String", "StringValue": _request_id.get()},
        "ErrorCode": {"DataType": "Number", "StringValue": "200"},
        "ErrorMessage": {"DataType": "String", "StringValue": message[:_MESSAGE_BYTES] or "Unhandled"},
    }
    bury_in(queue_arn, identity.of_function(config), json.dumps(event), attributes)
