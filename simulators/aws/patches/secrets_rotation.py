"""Rotation of a secret by a Lambda function, in Secrets Manager's four steps.

- RotateSecret labels a new version AWSPENDING that has no value, and has the function called with createSecret, setSecret,
  testSecret and finishSecret, one after the other, after it has answered. Stock MiniStack copies the current value, makes
  the copy current and calls nobody.
- With RotateImmediately false, only testSecret is called, with a version that is made for it and goes away again.
- It is refused without a function, with one whose policy doesn't let Secrets Manager in, and while another rotation is under
  way, which is tried again then.
- A version without a value is not found; PutSecretValue may fill it, once. A label that PutSecretValue gives is taken from the
  version that had it.
- The calls count in the function's metrics, its errors among them.
- DescribeSecret tells when the last rotation ended and when the next one is due. None begins by itself.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from simulators.aws.answers import json_answer, json_error
from simulators.aws.hooks import Answer, Original, Patch, in_background, ministack

PATCH = Patch("secrets_rotation")
_SECRETS: Final = "ministack.services.secretsmanager"
_STEPS: Final = ("createSecret", "setSecret", "testSecret", "finishSecret")
_PRINCIPAL: Final = "secretsmanager.amazonaws.com"
_RATE: Final = re.compile(r"rate\((\d+) (hour|day)s?\)")
_SECONDS: Final = {"hour": 3600, "day": 86400}


@PATCH.replaces(_SECRETS, "_rotate_secret", "data")
def rotate_secret(original: Original, data: dict[str, Any]) -> Answer:
    secret = _found(data)
    if not secret or secret.get("DeletedDate"):
        return original(data)
    function = data.get("RotationLambdaARN") or secret.get("RotationLambdaARN")
    if refusal := _refused(function, data.get("ClientRequestToken")):
        return refusal
    secret["RotationLambdaARN"] = function
    secret["RotationRules"] = data.get("RotationRules") or secret.get("RotationRules")
    secret["RotationEnabled"] = True
    under_way = _labelled(secret, "AWSPENDING")
    if under_way and under_way != _labelled(secret, "AWSCURRENT"):
        _begin(secret, under_way, _STEPS)
        return json_error("InvalidRequestException", "A previous rotation isn't complete. That rotation will be reattempted.")
    token = data.get("ClientRequestToken") or str(uuid.uuid4())
    if token not in secret["Versions"]:
        _relabel(secret, "AWSPENDING")
        empty = {"SecretString": None, "SecretBinary": None, "CreatedDate": int(time.time()), "Stages": ["AWSPENDING"]}
        secret["Versions"][token] = empty
        _begin(secret, token, _STEPS if data.get("RotateImmediately", True) else ("testSecret",))
    return json_answer({"ARN": secret["ARN"], "Name": secret["Name"], "VersionId": token})


@PATCH.replaces(_SECRETS, "_get_secret_value", "data")
def get_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    secret = _found(data)
    if secret and not secret.get("DeletedDate"):
        stage = data.get("VersionStage", "AWSCURRENT")
        version = secret["Versions"].get(data.get("VersionId") or _labelled(secret, stage))
        if version and _is_empty(version):
            message = f"Secrets Manager can't find the specified secret value for staging label: {stage}"
            return json_error("ResourceNotFoundException", message)
    return original(data)


@PATCH.replaces(_SECRETS, "_put_secret_value", "data")
def put_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    secret, token = _found(data), data.get("ClientRequestToken")
    if not secret or secret.get("DeletedDate"):
        return original(data)
    if token in secret["Versions"] and _is_empty(secret["Versions"][token]):
        del secret["Versions"][token]
    answer = original(data)
    if answer[0] == 200:
        for stage in data.get("VersionStages", []):
            _relabel(secret, stage, token)
    return answer


@PATCH.replaces(_SECRETS, "_describe_secret", "data")
def describe_secret(original: Original, data: dict[str, Any]) -> Answer:
    answer, secret = original(data), _found(data)
    if answer[0] != 200 or not secret or not secret.get("RotationEnabled"):
        return answer
    described = json.loads(answer[2])
    rotated = secret.get("LastRotatedDate")
    if rotated:
        described["LastRotatedDate"] = rotated
    if every := _every(secret.get("RotationRules") or {}):
        described["NextRotationDate"] = (rotated or secret["CreatedDate"]) + every
    return json_answer(described)


def _refused(function: str | None, token: str | None) -> Answer | None:
    if not function:
        return json_error("InvalidRequestException", "No Lambda rotation function ARN is associated with this secret.")
    if token is not None and not 32 <= len(token) <= 64:
        return json_error("InvalidParameterException", "ClientRequestToken must be 32-64 characters long.")
    record, _, _ = ministack("services.lambda_svc")._get_func_record_for_ref(function)
    statements = (record or {}).get("policy", {}).get("Statement", [])
    if any(isinstance(each["Principal"], dict) and each["Principal"].get("Service") == _PRINCIPAL for each in statements):
        return None
    message = (
        "Secrets Manager cannot invoke the specified Lambda function. Ensure that the function policy grants access to "
        f"the principal {_PRINCIPAL}."
    )
    return json_error("AccessDeniedException", message)


def _begin(secret: dict[str, Any], token: str, steps: Sequence[str]) -> None:
    """In a thread of its own: RotateSecret answers before the function is called."""
    in_background(_run, secret, token, steps)


def _run(secret: dict[str, Any], token: str, steps: Sequence[str]) -> None:
    done = all(_called(secret, step, token) for step in steps)
    if len(steps) == 1:
        secret["Versions"].pop(token, None)
    elif done and _labelled(secret, "AWSCURRENT") == token:
        _relabel(secret, "AWSPENDING")
        secret["LastRotatedDate"] = int(time.time())


def _called(secret: dict[str, Any], step: str, token: str) -> bool:
    """Whether the function ended without an error."""
    functions = ministack("services.lambda_svc")
    record, config, _ = functions._get_func_record_for_ref(secret["RotationLambdaARN"])
    event = {"Step": step, "SecretId": secret["ARN"], "ClientRequestToken": token}
    if record is None:
        return False
    answer = functions._execute_function_with_config_scope(functions._execution_record_for_config(record, config), event)
    failed = bool(answer.get("error"))
    functions._emit_lambda_metrics(config["FunctionName"], duration_ms=0.0, error=failed, throttle=False)
    return not failed and not answer.get("throttle")


def _found(data: dict[str, Any]) -> dict[str, Any] | None:
    _, secret = ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    return secret  # type: ignore[no-any-return]


def _labelled(secret: dict[str, Any], stage: str) -> str:
    return next((version for version, held in secret["Versions"].items() if stage in held["Stages"]), "")


def _relabel(secret: dict[str, Any], stage: str, kept: str | None = None) -> None:
    """Takes the label from all versions but `kept`."""
    for version, held in secret["Versions"].items():
        if version != kept and stage in held["Stages"]:
            held["Stages"] = [each for each in held["Stages"] if each != stage]


def _is_empty(version: dict[str, Any]) -> bool:
    return version.get("SecretString") is None and version.get("SecretBinary") is None


def _every(rules: dict[str, Any]) -> int:
    """Seconds; 0 for a schedule by cron."""
    if days := rules.get("AutomaticallyAfterDays"):
        return int(days) * _SECONDS["day"]
    found = _RATE.fullmatch(str(rules.get("ScheduleExpression", "")))
    return int(found[1]) * _SECONDS[found[2]] if found else 0
