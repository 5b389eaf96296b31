"""Secrets that CloudFormation makes, and their rotation schedules.

- Ref of a secret is its ARN, its id for other resources. Stock MiniStack gives the name, and policies on it then fit nothing.
- A secret for which the template names no value has none, and reading it is refused; stock gives it an empty one.
- Generated values keep to ExcludePunctuation and the other rules of GetRandomPassword.
- AWS::SecretsManager::RotationSchedule, which stock refuses.
- Drift of a secret is looked for by that ARN; stock looks by name, and calls each of them deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, ministack
from simulators.aws.provisioning import Made, ProvisioningFailed, asked, typed

PATCH = Patch("cfn_secrets")
_CLOUDFORMATION: Final = "ministack.services.cloudformation"
_SECRET: Final = "AWS::SecretsManager::Secret"  # noqa: S105  (a type)
_SCHEDULE: Final = "AWS::SecretsManager::RotationSchedule"
_TEMPLATE: Final = ("SecretStringTemplate", "GenerateStringKey")


@PATCH.replaces(f"{_CLOUDFORMATION}.provisioners", "_sm_secret_string", "props")
def secret_string(original: Callable[..., str], props: dict[str, Any]) -> str:
    generate = props.get("GenerateSecretString")
    if props.get("SecretString") or not generate:
        return original(props)
    wanted = {name: typed(value) for name, value in generate.items() if name not in _TEMPLATE}
    value = asked("secretsmanager", "_get_random_password", wanted)["RandomPassword"]
    if "SecretStringTemplate" not in generate:
        return str(value)
    return json.dumps(json.loads(generate["SecretStringTemplate"]) | {generate["GenerateStringKey"]: value})


@PATCH.provisions(_SECRET, "create", original=True)
def create_secret(original: Callable[..., Made], logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    service = ministack("services.secretsmanager")
    if "Name" in props and props["Name"] in service._secrets:
        raise ProvisioningFailed(f"The operation failed because the secret {props['Name']} already exists.")
    name, attributes = original(logical_id, props, stack_name)
    if "SecretString" not in props and "GenerateSecretString" not in props:
        service._secrets[name]["Versions"].clear()
    return str(attributes["Arn"]), attributes


@PATCH.provisions(_SECRET, "update", original=True)
def update_secret(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., Made], physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str, logical_id: str
) -> Made:
    _, attributes = original(_name(physical_id), old, new, stack_name, logical_id)
    return attributes["Arn"], attributes


@PATCH.provisions(_SECRET, "delete", original=True)
def delete_secret(original: Callable[..., None], physical_id: str, props: dict[str, Any]) -> None:
    original(_name(physical_id), props)


@PATCH.provisions(_SCHEDULE, "create")
def create_schedule(logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    rules = {name: typed(value) for name, value in props.get("RotationRules", {}).items()}
    wanted = {"SecretId": props["SecretId"], "RotationLambdaARN": props.get("RotationLambdaARN"), "RotationRules": rules}
    at_once = typed(props.get("RotateImmediatelyOnUpdate", True))
    asked("secretsmanager", "_rotate_secret", wanted | {"RotateImmediately": at_once})
    return str(props["SecretId"]), {}


@PATCH.provisions(_SCHEDULE, "update")
def update_schedule(physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str) -> Made:
    made: Made = create_schedule("", new, stack_name)
    return made


@PATCH.provisions(_SCHEDULE, "delete")
def delete_schedule(physical_id: str, props: dict[str, Any]) -> None:
    """As CancelRotateSecret; a secret that is gone has no schedule."""
    _, secret = ministack("services.secretsmanager")._resolve(physical_id)
    if secret:
        secret["RotationEnabled"] = False


@PATCH.replaces(f"{_CLOUDFORMATION}.drift", "detect_resource_drift", "stack logical_id record timestamp")
def resource_drift(
    original: Callable[..., dict[str, Any]], stack: dict[str, Any], logical_id: str, record: dict[str, Any], timestamp: str
) -> dict[str, Any]:
    if record.get("ResourceType") != _SECRET:
        return original(stack, logical_id, record, timestamp)
    physical_id = record["PhysicalResourceId"]
    found = original(stack, logical_id, {**record, "PhysicalResourceId": _name(physical_id)}, timestamp)
    return {**found, "PhysicalResourceId": physical_id}


def _name(arn: str) -> str:
    name, _ = ministack("services.secretsmanager")._resolve(arn)
    return name or arn
