"""Secrets Manager: versions of a secret, and rotation.

- secrets_versions: The ClientRequestToken becomes the version ID, also in CreateSecret, where stock MiniStack
  generates another. The same token with the same value changes nothing; with another value it is
  ResourceExistsException; stock overwrites the version. A secret that was created without a value has no
  version, so GetSecretValue is ResourceNotFoundException; stock responds without a value. Source: Secrets
  Manager API reference, CreateSecret, PutSecretValue, GetSecretValue.
- secrets_rotation: RotateSecret creates a version without a value, labels it AWSPENDING and responds; then
  the function is called with createSecret, setSecret, testSecret and finishSecret. Stock copies the current
  value, labels the copy AWSCURRENT and calls no function. With RotateImmediately false only testSecret is
  called, with a version that is removed afterwards. RotateSecret is refused without a function, with a
  function whose policy doesn't allow Secrets Manager, and while another rotation is in progress, which is
  then retried. GetSecretValue doesn't find a version without a value, and PutSecretValue may set its value
  once. PutSecretValue moves a staging label from the version that had it. The calls count in the function's
  metrics. DescribeSecret has LastRotatedDate and NextRotationDate, but no rotation starts by schedule.
  Source: Secrets Manager user guide, "Rotation by Lambda function"; API reference, RotateSecret.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and secretsmanager"`
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from simulators.aws.answers import build_json_answer, build_json_error
from simulators.aws.hooks import Answer, Original, Patch, import_ministack, run_in_background

VERSIONS = Patch("secrets_versions")
_SECRETS = "ministack.services.secretsmanager"


@VERSIONS.replaces(_SECRETS, "_create_secret", "data")
def create_secret(original: Original, data: dict[str, Any]) -> Answer:
    secrets = import_ministack("services.secretsmanager")
    token = data.get("ClientRequestToken")
    existing = secrets._secrets.get(data.get("Name"))
    if existing and token and token in existing["Versions"]:
        return _answer_repeated_request(existing, token, data)
    answer: Answer = original(data)
    if answer[0] != 200:
        return answer
    secret = secrets._secrets[data["Name"]]
    (first_version_id,) = secret["Versions"]
    if "SecretString" not in data and "SecretBinary" not in data:
        secret["Versions"].clear()
        return _build_secret_answer(secret)
    version_id = token or first_version_id
    secret["Versions"][version_id] = secret["Versions"].pop(first_version_id)
    return _build_secret_answer(secret, VersionId=version_id)


@VERSIONS.replaces(_SECRETS, "_put_secret_value", "data")
def put_secret_value_once(original: Original, data: dict[str, Any]) -> Answer:
    _, secret = import_ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    token = data.get("ClientRequestToken")
    if secret and not secret.get("DeletedDate") and token and token in secret["Versions"]:
        return _answer_repeated_request(secret, token, data)
    return original(data)


def _answer_repeated_request(secret: dict[str, Any], token: str, data: dict[str, Any]) -> Answer:
    version = secret["Versions"][token]
    if any(version.get(field) != data.get(field) for field in ("SecretString", "SecretBinary")):
        message = (
            f"ClientRequestToken {token} is already in use for a version of this secret with another value."
        )
        return build_json_error("ResourceExistsException", message)
    return _build_secret_answer(secret, VersionId=token, VersionStages=list(version["Stages"]))


def _build_secret_answer(secret: dict[str, Any], **fields: Any) -> Answer:
    return build_json_answer({"ARN": secret["ARN"], "Name": secret["Name"], **fields})


ROTATION = Patch("secrets_rotation")
_STEPS: Final = ("createSecret", "setSecret", "testSecret", "finishSecret")
_PRINCIPAL: Final = "secretsmanager.amazonaws.com"
_RATE: Final = re.compile(r"rate\((\d+) (hour|day)s?\)")
_SECONDS: Final = {"hour": 3600, "day": 86400}


@ROTATION.replaces(_SECRETS, "_rotate_secret", "data")
def rotate_secret(original: Original, data: dict[str, Any]) -> Answer:
    secret = _find_secret(data)
    if not secret or secret.get("DeletedDate"):
        return original(data)
    function = data.get("RotationLambdaARN") or secret.get("RotationLambdaARN")
    if refusal := _find_refusal(function, data.get("ClientRequestToken")):
        return refusal
    secret["RotationLambdaARN"] = function
    secret["RotationRules"] = data.get("RotationRules") or secret.get("RotationRules")
    secret["RotationEnabled"] = True
    pending = _find_version(secret, "AWSPENDING")
    if pending and pending != _find_version(secret, "AWSCURRENT"):
        run_in_background(_run, secret, pending, _STEPS)
        return build_json_error(
            "InvalidRequestException",
            "A previous rotation isn't complete. That rotation will be reattempted.",
        )
    token = data.get("ClientRequestToken") or str(uuid.uuid4())
    if token not in secret["Versions"]:
        _remove_label(secret, "AWSPENDING")
        empty = {
            "SecretString": None,
            "SecretBinary": None,
            "CreatedDate": int(time.time()),
            "Stages": ["AWSPENDING"],
        }
        secret["Versions"][token] = empty
        steps = _STEPS if data.get("RotateImmediately", True) else ("testSecret",)
        run_in_background(_run, secret, token, steps)
    return build_json_answer({"ARN": secret["ARN"], "Name": secret["Name"], "VersionId": token})


@ROTATION.replaces(_SECRETS, "_get_secret_value", "data")
def get_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    secret = _find_secret(data)
    if secret and not secret.get("DeletedDate"):
        stage = data.get("VersionStage", "AWSCURRENT")
        version = secret["Versions"].get(data.get("VersionId") or _find_version(secret, stage))
        if version and _is_empty(version):
            message = f"Secrets Manager can't find the specified secret value for staging label: {stage}"
            return build_json_error("ResourceNotFoundException", message)
    return original(data)


@ROTATION.replaces(_SECRETS, "_put_secret_value", "data")
def put_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    secret = _find_secret(data)
    token = data.get("ClientRequestToken")
    if not secret or secret.get("DeletedDate"):
        return original(data)
    if token in secret["Versions"] and _is_empty(secret["Versions"][token]):
        del secret["Versions"][token]
    answer = original(data)
    if answer[0] == 200:
        for stage in data.get("VersionStages", []):
            _remove_label(secret, stage, token)
    return answer


@ROTATION.replaces(_SECRETS, "_describe_secret", "data")
def describe_secret(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    secret = _find_secret(data)
    if answer[0] != 200 or not secret or not secret.get("RotationEnabled"):
        return answer
    document = json.loads(answer[2])
    rotated = secret.get("LastRotatedDate")
    if rotated:
        document["LastRotatedDate"] = rotated
    if interval := _compute_interval_seconds(secret.get("RotationRules") or {}):
        document["NextRotationDate"] = (rotated or secret["CreatedDate"]) + interval
    return build_json_answer(document)


def _find_refusal(function: str | None, token: str | None) -> Answer | None:
    if not function:
        return build_json_error(
            "InvalidRequestException", "No Lambda rotation function ARN is associated with this secret."
        )
    if token is not None and not 32 <= len(token) <= 64:
        return build_json_error(
            "InvalidParameterException", "ClientRequestToken must be 32-64 characters long."
        )
    record, _, _ = import_ministack("services.lambda_svc")._get_func_record_for_ref(function)
    statements = (record or {}).get("policy", {}).get("Statement", [])
    principals = (statement["Principal"] for statement in statements)
    services = [principal.get("Service") for principal in principals if isinstance(principal, dict)]
    if _PRINCIPAL in services:
        return None
    message = (
        "Secrets Manager cannot invoke the specified Lambda function. Ensure that the function policy "
        f"grants access to the principal {_PRINCIPAL}."
    )
    return build_json_error("AccessDeniedException", message)


def _run(secret: dict[str, Any], token: str, steps: Sequence[str]) -> None:
    """Call the function for each step.

    This runs in a thread: RotateSecret responds before the function is called.
    """
    has_succeeded = all(_call_step(secret, step, token) for step in steps)
    if len(steps) == 1:
        secret["Versions"].pop(token, None)
    elif has_succeeded and _find_version(secret, "AWSCURRENT") == token:
        _remove_label(secret, "AWSPENDING")
        secret["LastRotatedDate"] = int(time.time())


def _call_step(secret: dict[str, Any], step: str, token: str) -> bool:
    """Return whether the function ended without an error."""
    functions = import_ministack("services.lambda_svc")
    record, config, _ = functions._get_func_record_for_ref(secret["RotationLambdaARN"])
    event = {"Step": step, "SecretId": secret["ARN"], "ClientRequestToken": token}
    if record is None:
        return False
    answer = functions._execute_function_with_config_scope(
        functions._execution_record_for_config(record, config), event
    )
    has_failed = bool(answer.get("error"))
    functions._emit_lambda_metrics(config["FunctionName"], duration_ms=0.0, error=has_failed, throttle=False)
    return not has_failed and not answer.get("throttle")


def _find_secret(data: dict[str, Any]) -> dict[str, Any] | None:
    _, secret = import_ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    return secret  # type: ignore[no-any-return]


def _find_version(secret: dict[str, Any], stage: str) -> str:
    for version, content in secret["Versions"].items():
        if stage in content["Stages"]:
            return str(version)
    return ""


def _remove_label(secret: dict[str, Any], stage: str, kept_version: str | None = None) -> None:
    """Remove the staging label from all versions except `kept_version`."""
    for version, content in secret["Versions"].items():
        if version != kept_version and stage in content["Stages"]:
            content["Stages"] = [label for label in content["Stages"] if label != stage]


def _is_empty(version: dict[str, Any]) -> bool:
    return version.get("SecretString") is None and version.get("SecretBinary") is None


def _compute_interval_seconds(rules: dict[str, Any]) -> int:
    """Return the rotation interval in seconds; 0 for a cron schedule."""
    if days := rules.get("AutomaticallyAfterDays"):
        return int(days) * _SECONDS["day"]
    result = _RATE.fullmatch(str(rules.get("ScheduleExpression", "")))
    return int(result[1]) * _SECONDS[result[2]] if result else 0


PATCHES: Final = (
    VERSIONS,
    ROTATION,
)
