"""Functions write to the log group of their LoggingConfig where their role may, and make one only where it may do that.

Stock MiniStack makes /aws/lambda/<name> for whoever runs, and asks no role: nothing of it is the stack's, and it stays when the
stack goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from simulators.aws import identity, settings
from simulators.aws.hooks import Patch, ministack

PATCH = Patch("lambda_logs")
_WRITES: Final = ("logs:CreateLogStream", "logs:PutLogEvents")


@PATCH.replaces("ministack.services.lambda_svc", "_emit_lambda_logs", "func request_id log_text error duration_ms log_source")
def emit_lambda_logs(original: Callable[..., None], func: dict[str, Any], *rest: Any, **named: Any) -> None:
    if _may_write(func.get("config") or func):
        original(func, *rest, **named)


def _may_write(config: dict[str, Any]) -> bool:
    role = config.get("Role", "")
    group = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    arn = f"arn:aws:logs:{settings.REGION}:{settings.ACCOUNT}:log-group:{group}"
    if group not in ministack("services.cloudwatch_logs")._log_groups and not identity.may(role, "logs:CreateLogGroup", arn):
        return False
    return all(identity.may(role, action, f"{arn}:log-stream:stream") for action in _WRITES)
