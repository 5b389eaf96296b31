"""Lambda: the interpreter of functions, asynchronous invocations, and logs.

- lambda_interpreter: Functions run in the project's interpreter, which has the packages that are deployed
  with them; stock MiniStack runs them in its own. This patch is specific to this repository.
- lambda_ahead: Functions whose ARNs are in a function's environment variables are started together with it,
  as AWS initialises execution environments ahead of invocations. Stock starts each function when it is first
  called, so that the functions of a custom resource start one after the other. Source: Lambda developer
  guide, "Lambda execution environment".
- lambda_async: A failed asynchronous invocation is retried twice with the same request ID; then the event
  itself goes to the function's dead-letter queue, with the attributes RequestID, ErrorCode and ErrorMessage,
  under the function's role. CreateFunction and UpdateFunctionConfiguration refuse a queue to which the role
  may not send. Each failed attempt counts in the metric Errors. Stock gives each attempt another request ID,
  sends the envelope of failure destinations without attributes, and leaves Errors at 0. The pauses between
  attempts are short. Source: Lambda developer guide, "Adding a dead-letter queue", "How Lambda handles errors
  and retries with asynchronous invocation", "Types of metrics for Lambda functions".
- lambda_node_sdk: A call with the AWS SDK for JavaScript fails if the connection is closed before the
  response is complete. Stock has its own SDK, whose call then never returns: the function hangs until its
  timeout, 15 minutes in CDK's provider framework. Source: Node.js documentation, http.ClientRequest: a
  response that is cut off emits "error", which the SDK passes on.
- lambda_logs: A function writes to the log group of its LoggingConfig if its role allows it, and creates the
  group only if the role allows that. Stock creates /aws/lambda/<name> regardless of the role, so that the
  group outlives the stack. Source: Lambda developer guide, "Sending Lambda function logs to CloudWatch Logs".
- lambda_metrics: A line of a function's log in CloudWatch's embedded metric format adds to its metrics. Stock
  only keeps the line. Source: CloudWatch user guide, "Specification: Embedded metric format".

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and lambda_functions"`
"""

from __future__ import annotations

import contextvars
import json
import logging
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from simulators.aws import identity, settings
from simulators.aws.delivery import send_to_dead_letter_queue
from simulators.aws.hooks import Answer, Original, Patch, get_region, import_ministack, run_in_background

INTERPRETER = Patch("lambda_interpreter")


@INTERPRETER.replaces("ministack.core.lambda_runtime", "_detect_runtime_binary", "runtime")
def detect_runtime_binary(original: Callable[[str], tuple[str, str]], runtime: str) -> tuple[str, str]:
    binary, script = original(runtime)
    if runtime.startswith("python"):
        return str(settings.LAMBDA_PYTHON), script
    return binary, script


NODE_SDK = Patch("lambda_node_sdk")


@NODE_SDK.replaces("ministack.core.lambda_runtime", "_detect_runtime_binary", "runtime")
def reject_cut_answers(original: Callable[[str], tuple[str, str]], runtime: str) -> tuple[str, str]:
    """Fail the call if the response is cut off.

    Node.js drops the response's "error" if nothing listens for it.
    """
    binary, script = original(runtime)
    return binary, script.replace('res.on("end",', 'res.on("error", reject); res.on("end",')


START_AHEAD = Patch("lambda_ahead")
_log: Final = logging.getLogger("lakeferry.functions")
Leased = tuple[Any, str]


@START_AHEAD.replaces(
    "ministack.services.lambda_svc", "acquire_worker", "func_name config code_zip qualifier max_concurrency"
)
def acquire_worker(
    original: Callable[..., Leased], func_name: str, config: dict[str, Any], *arguments: Any, **options: Any
) -> Leased:
    lease = original(func_name, config, *arguments, **options)
    if lease[1] == "spawn":
        variables = config.get("Environment", {}).get("Variables", {})
        for value in variables.values():
            if ":lambda:" in value and value.startswith("arn:"):
                run_in_background(_start, value)
    return lease


def _start(arn: str) -> None:
    """Start a worker.

    The function's first invocation waits for it, and reports why it couldn't be started.
    """
    record, config, name = import_ministack("services.lambda_svc")._get_func_record_for_ref(arn)
    if not record or not config or not record.get("code_zip"):
        return
    runtime = import_ministack("core.lambda_runtime")
    version = config.get("Version", "$LATEST")
    try:
        worker = runtime.get_or_create_worker(name, config, record["code_zip"], version)
        runtime.ensure_spawned(worker)
    except Exception as error:  # importing a handler can raise any exception
        _log.info("%s was not started ahead: %s", name, error)


ASYNC = Patch("lambda_async")
_LAMBDA: Final = "ministack.services.lambda_svc"
_RETRIES: Final = 2
_MESSAGE_BYTES: Final = 1024
_request_id: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("lakeferry_request_id", default="")


@ASYNC.replaces(_LAMBDA, "invoke_async_with_retry", "func event")
def invoke_async_with_retry(_: Callable[..., None], func: dict[str, Any], event: Any) -> None:
    run_in_background(_run, func, event)


@ASYNC.replaces(_LAMBDA, "_execute_function_dispatch", "func config event request_id started")
def execute_function_dispatch(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., dict[str, Any]],
    func: dict[str, Any],
    config: dict[str, Any],
    event: Any,
    request_id: str,
    started: float,
) -> dict[str, Any]:
    return original(func, config, event, _request_id.get() or request_id, started)


@ASYNC.replaces(_LAMBDA, "_create_function", "data")
def create_function(original: Original, data: dict[str, Any]) -> Answer:
    return _find_refusal(data, data.get("Role", "")) or original(data)


@ASYNC.replaces(_LAMBDA, "_update_config", "name data")
def update_config(original: Original, name: str, data: dict[str, Any]) -> Answer:
    current = import_ministack("services.lambda_svc")._functions.get(name) or {"config": {}}
    return _find_refusal(data, data.get("Role") or current["config"].get("Role", "")) or original(name, data)


def _find_refusal(data: dict[str, Any], role: str) -> Answer | None:
    queue = (data.get("DeadLetterConfig") or {}).get("TargetArn") or ""
    if ":sqs:" not in queue or identity.may(role, "sqs:SendMessage", queue):
        return None
    message = "The provided execution role does not have permissions to call SendMessage on SQS"
    answer: Answer = import_ministack("core.responses").error_response_json(
        "InvalidParameterValueException", message, 400
    )
    return answer


def _run(func: dict[str, Any], event: Any) -> None:
    functions = import_ministack("services.lambda_svc")
    config = func.get("config") or func
    invoke_config = (
        func.get("event_invoke_config") or (func.get("event_invoke_configs") or {}).get("$LATEST") or {}
    )
    tries = 1 + int(invoke_config.get("MaximumRetryAttempts", _RETRIES))
    _request_id.set(str(uuid.uuid4()))
    for tries_left in reversed(range(tries)):
        result = functions._execute_function(func, event)
        if not result.get("error"):
            return
        functions._emit_lambda_metrics(config["FunctionName"], duration_ms=0.0, error=True, throttle=False)
        if tries_left:
            time.sleep(settings.FUNCTION_RETRY_SECONDS)
    if destination := (invoke_config.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination"):
        functions._route_async_failure(destination, config["FunctionName"], event, result)
    if queue := (config.get("DeadLetterConfig") or {}).get("TargetArn"):
        _send_dead_letter(queue, config, event, result)


def _send_dead_letter(queue_arn: str, config: dict[str, Any], event: Any, result: dict[str, Any]) -> None:
    body = result.get("body")
    message = str(body.get("errorMessage", "")) if isinstance(body, dict) else str(body)
    attributes = {
        "RequestID": {"DataType": "String", "StringValue": _request_id.get()},
        "ErrorCode": {"DataType": "Number", "StringValue": "200"},
        "ErrorMessage": {"DataType": "String", "StringValue": message[:_MESSAGE_BYTES] or "Unhandled"},
    }
    send_to_dead_letter_queue(
        queue_arn, identity.get_function_credentials(config), json.dumps(event), attributes
    )


LOGS = Patch("lambda_logs")
_WRITES: Final = ("logs:CreateLogStream", "logs:PutLogEvents")


@LOGS.replaces(
    "ministack.services.lambda_svc",
    "_emit_lambda_logs",
    "func request_id log_text error duration_ms log_source",
)
def emit_lambda_logs(
    original: Callable[..., None], func: dict[str, Any], *arguments: Any, **options: Any
) -> None:
    if _may_write(func.get("config") or func):
        original(func, *arguments, **options)


METRICS = Patch("lambda_metrics")


@METRICS.replaces(
    "ministack.services.lambda_svc",
    "_emit_lambda_logs",
    "func request_id log_text error duration_ms log_source",
)
def emit_metrics(
    original: Callable[..., None],
    func: dict[str, Any],
    request_id: str,
    log_text: str,
    *others: Any,
    **options: Any,
) -> None:
    original(func, request_id, log_text, *others, **options)
    if not _may_write(func.get("config") or func):
        return
    for line in (log_text or "").splitlines():
        if '"_aws"' in line:
            _record_metrics(line)


def _record_metrics(line: str) -> None:
    """Record the metrics that a line contains. CloudWatch ignores a line that isn't in its format."""
    try:
        entry = json.loads(line[line.index("{") :])
        directives = entry["_aws"]["CloudWatchMetrics"]
        metrics = [(directive, metric) for directive in directives for metric in directive["Metrics"]]
        for directive, metric in metrics:
            for names in directive["Dimensions"]:
                dimensions = {name: str(entry[name]) for name in names}
                import_ministack("services.cloudwatch").record_metric(
                    directive["Namespace"],
                    metric["Name"],
                    entry[metric["Name"]],
                    metric.get("Unit", "None"),
                    dimensions,
                )
    except (ValueError, KeyError, TypeError) as error:
        _log.info("a line with _aws has no metrics: %s", type(error).__name__)


def _may_write(config: dict[str, Any]) -> bool:
    role = config.get("Role", "")
    group = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    arn = f"arn:aws:logs:{get_region()}:{settings.ACCOUNT}:log-group:{group}"
    exists = group in import_ministack("services.cloudwatch_logs")._log_groups
    if not exists and not identity.may(role, "logs:CreateLogGroup", arn):
        return False
    return all(identity.may(role, action, f"{arn}:log-stream:stream") for action in _WRITES)


PATCHES: Final = (
    INTERPRETER,
    NODE_SDK,
    START_AHEAD,
    ASYNC,
    LOGS,
    METRICS,
)
