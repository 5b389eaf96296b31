"""CloudFormation: resource types that stock MiniStack lacks, and properties that it drops.

- cfn_secrets: Ref of a secret returns its ARN; stock returns the name, which matches no policy. A secret
  without a value in the template has no version; stock gives it an empty value. GenerateSecretString follows
  the rules of GetRandomPassword. AWS::SecretsManager::RotationSchedule is supported; stock refuses it. Drift
  detection finds a secret by its ARN; stock reports every secret as deleted. Source: template reference,
  AWS::SecretsManager::Secret and RotationSchedule.
- cfn_types: AWS::Athena::NamedQuery, AWS::Budgets::Budget and AWS::Glue::SecurityConfiguration are supported;
  a function keeps its DeadLetterConfig. Changing a budget's notifications replaces the budget, and the new
  one can't have the same name. An alarm isn't created if one with its name exists. Stock refuses the first
  three types, drops the property, and overwrites the alarm. Source: template reference of these types; user
  guide, "Name type".
- cfn_properties: AWS::Scheduler::Schedule keeps ScheduleExpressionTimezone, StartDate, EndDate and KmsKeyArn,
  and fails if Scheduler refuses; AWS::Glue::Job keeps ExecutionProperty. Stock drops all of these, so that
  every schedule is in UTC. Source: template reference of these types.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and cloudformation_types"`
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.answers import Provisioned, ProvisioningFailed, call_service, parse_number_or_boolean
from simulators.aws.hooks import Patch, import_ministack

SECRETS = Patch("cfn_secrets")
_CLOUDFORMATION: Final = "ministack.services.cloudformation"
_SECRET: Final = "AWS::SecretsManager::Secret"  # noqa: S105  (a type)
_ROTATION_SCHEDULE: Final = "AWS::SecretsManager::RotationSchedule"
_TEMPLATE: Final = ("SecretStringTemplate", "GenerateStringKey")


@SECRETS.replaces(f"{_CLOUDFORMATION}.provisioners", "_sm_secret_string", "props")
def build_secret_string(original: Callable[..., str], props: dict[str, Any]) -> str:
    generate = props.get("GenerateSecretString")
    if props.get("SecretString") or not generate:
        return original(props)
    request = {
        name: parse_number_or_boolean(value) for name, value in generate.items() if name not in _TEMPLATE
    }
    value = call_service("secretsmanager", "_get_random_password", request)["RandomPassword"]
    if "SecretStringTemplate" not in generate:
        return str(value)
    return json.dumps(json.loads(generate["SecretStringTemplate"]) | {generate["GenerateStringKey"]: value})


@SECRETS.provisions(_SECRET, "create", original=True)
def create_secret(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    service = import_ministack("services.secretsmanager")
    if "Name" in props and props["Name"] in service._secrets:
        raise ProvisioningFailed(f"The operation failed because the secret {props['Name']} already exists.")
    name, attributes = original(logical_id, props, stack_name)
    if "SecretString" not in props and "GenerateSecretString" not in props:
        service._secrets[name]["Versions"].clear()
    return str(attributes["Arn"]), attributes


@SECRETS.provisions(_SECRET, "update", original=True)
def update_secret(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., Provisioned],
    physical_id: str,
    old: dict[str, Any],
    new: dict[str, Any],
    stack_name: str,
    logical_id: str,
) -> Provisioned:
    _, attributes = original(_find_secret_name(physical_id), old, new, stack_name, logical_id)
    return attributes["Arn"], attributes


@SECRETS.provisions(_SECRET, "delete", original=True)
def delete_secret(original: Callable[..., None], physical_id: str, props: dict[str, Any]) -> None:
    original(_find_secret_name(physical_id), props)


@SECRETS.provisions(_ROTATION_SCHEDULE, "create")
def create_rotation(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    rules = {name: parse_number_or_boolean(value) for name, value in props.get("RotationRules", {}).items()}
    request = {
        "SecretId": props["SecretId"],
        "RotationLambdaARN": props.get("RotationLambdaARN"),
        "RotationRules": rules,
    }
    at_once = parse_number_or_boolean(props.get("RotateImmediatelyOnUpdate", True))
    call_service("secretsmanager", "_rotate_secret", request | {"RotateImmediately": at_once})
    return str(props["SecretId"]), {}


@SECRETS.provisions(_ROTATION_SCHEDULE, "update")
def update_rotation(
    physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str
) -> Provisioned:
    resource: Provisioned = create_rotation("", new, stack_name)
    return resource


@SECRETS.provisions(_ROTATION_SCHEDULE, "delete")
def delete_rotation(physical_id: str, props: dict[str, Any]) -> None:
    """Cancel the rotation, as CancelRotateSecret does. The secret may be deleted already."""
    _, secret = import_ministack("services.secretsmanager")._resolve(physical_id)
    if secret:
        secret["RotationEnabled"] = False


@SECRETS.replaces(f"{_CLOUDFORMATION}.drift", "detect_resource_drift", "stack logical_id record timestamp")
def detect_resource_drift(
    original: Callable[..., dict[str, Any]],
    stack: dict[str, Any],
    logical_id: str,
    record: dict[str, Any],
    timestamp: str,
) -> dict[str, Any]:
    if record.get("ResourceType") != _SECRET:
        return original(stack, logical_id, record, timestamp)
    physical_id = record["PhysicalResourceId"]
    record_by_name = {**record, "PhysicalResourceId": _find_secret_name(physical_id)}
    result = original(stack, logical_id, record_by_name, timestamp)
    return {**result, "PhysicalResourceId": physical_id}


def _find_secret_name(arn: str) -> str:
    name, _ = import_ministack("services.secretsmanager")._resolve(arn)
    return name or arn


TYPES = Patch("cfn_types")
_QUERY: Final = "AWS::Athena::NamedQuery"
_BUDGET: Final = "AWS::Budgets::Budget"
_NOTIFICATIONS: Final = "NotificationsWithSubscribers"
_SECURITY: Final = "AWS::Glue::SecurityConfiguration"
_FUNCTION: Final = "AWS::Lambda::Function"


@TYPES.provisions(_QUERY, "create")
def create_query(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    """Create a query. Every property is create-only: a change creates another query and deletes this one."""
    query_id = call_service("athena", "_create_named_query", props)["NamedQueryId"]
    return query_id, {"NamedQueryId": query_id}


@TYPES.provisions(_QUERY, "delete")
def delete_query(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in import_ministack("services.athena")._named_queries:
        call_service("athena", "_delete_named_query", {"NamedQueryId": physical_id})


@TYPES.provisions(_BUDGET, "create")
def create_budget(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    request = _build_budget_request(logical_id, props, stack_name)
    call_service("budgets", "_create_budget", request)
    return request["Budget"]["BudgetName"], {}


@TYPES.provisions(_BUDGET, "update")
def update_budget(physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str) -> Provisioned:
    """Update the budget.

    Its notifications are create-only: a change creates another budget and then deletes this one.
    """
    if new.get(_NOTIFICATIONS) != old.get(_NOTIFICATIONS):
        resource: Provisioned = create_budget(physical_id, new, stack_name)
        return resource
    named_props = {**new, "Budget": {"BudgetName": physical_id} | new["Budget"]}
    request = _build_budget_request("", named_props, stack_name)
    call_service("budgets", "_update_budget", {"NewBudget": request["Budget"]})
    return physical_id, {}


@TYPES.provisions(_BUDGET, "delete")
def delete_budget(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in import_ministack("services.budgets")._budgets:
        call_service("budgets", "_delete_budget", {"BudgetName": physical_id})


@TYPES.provisions("AWS::CloudWatch::Alarm", "create", original=True)
def create_alarm(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    if props.get("AlarmName") in import_ministack("services.cloudwatch")._alarms:
        raise ProvisioningFailed(
            "Resource of type 'AWS::CloudWatch::Alarm' "
            f"with identifier '{props['AlarmName']}' already exists."
        )
    return original(logical_id, props, stack_name)


@TYPES.provisions(_SECURITY, "create")
def create_security(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    """Create a configuration.

    Every property is create-only: a change creates another configuration and deletes this one.
    """
    name = str(props["Name"])
    call_service(
        "glue",
        "_create_security_configuration",
        {"Name": name, "EncryptionConfiguration": _convert_encryption(props)},
    )
    return name, {}


@TYPES.provisions(_SECURITY, "delete")
def delete_security(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in import_ministack("services.glue")._security_configs:
        call_service("glue", "_delete_security_configuration", {"Name": physical_id})


def _convert_encryption(props: dict[str, Any]) -> dict[str, Any]:
    """Return the EncryptionConfiguration for CreateSecurityConfiguration, which has another name for
    S3Encryptions.
    """
    encryption = copy.deepcopy(props["EncryptionConfiguration"])
    encryption["S3Encryption"] = encryption.pop("S3Encryptions", [])
    return dict(encryption)


def _build_budget_request(logical_id: str, props: dict[str, Any], stack_name: str) -> dict[str, Any]:
    """Return the request of CreateBudget. Its amounts are strings, those of templates are numbers."""
    request = copy.deepcopy(props)
    budget = request["Budget"]
    budget.setdefault("BudgetName", f"{stack_name}-{logical_id}")
    if "BudgetLimit" in budget:
        budget["BudgetLimit"]["Amount"] = str(budget["BudgetLimit"]["Amount"])
    for entry in request.get(_NOTIFICATIONS, []):
        entry["Notification"]["Threshold"] = float(entry["Notification"]["Threshold"])
    return request


@TYPES.provisions(_FUNCTION, "create", original=True)
def create_function(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    """Create a function with its dead-letter queue, which stock MiniStack drops."""
    name, attributes = original(logical_id, props, stack_name)
    _keep_dead_letters(name, props)
    return name, attributes


@TYPES.provisions(_FUNCTION, "update", original=True)
def update_function(
    original: Callable[..., Provisioned],
    physical_id: str,
    old: dict[str, Any],
    new: dict[str, Any],
    *arguments: Any,
) -> Provisioned:
    name, attributes = original(physical_id, old, new, *arguments)
    _keep_dead_letters(name, new)
    return name, attributes


def _keep_dead_letters(name: str, props: dict[str, Any]) -> None:
    config = import_ministack("services.lambda_svc")._functions[name]["config"]
    if "DeadLetterConfig" in props:
        config["DeadLetterConfig"] = dict(props["DeadLetterConfig"])
    else:
        config.pop("DeadLetterConfig", None)


PROPERTIES = Patch("cfn_properties")
_SCHEDULE: Final = "AWS::Scheduler::Schedule"


@PROPERTIES.provisions(_SCHEDULE, "create", original=True)
def create_schedule(
    _: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    make_name = import_ministack("services.cloudformation.provisioners")._physical_name
    name = props.get("Name") or make_name(stack_name, logical_id, max_len=64)
    return name, {"Arn": call_service("scheduler", "_create_schedule", name, props)["ScheduleArn"]}


@PROPERTIES.provisions(_SCHEDULE, "update", original=True)
def update_schedule(
    _: Callable[..., Provisioned], physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str
) -> Provisioned:
    """Update the schedule.

    A new name or group creates another schedule; the old one is deleted after the update.
    """
    if new.get("Name", physical_id) != physical_id or new.get("GroupName") != old.get("GroupName"):
        resource: Provisioned = create_schedule(physical_id, new, stack_name)
        return resource
    arn = call_service("scheduler", "_update_schedule", physical_id, new)["ScheduleArn"]
    return physical_id, {"Arn": arn}


@PROPERTIES.replaces("ministack.services.cloudformation.provisioners", "_glue_job_fields", "props")
def convert_job_fields(original: Callable[..., dict[str, Any]], props: dict[str, Any]) -> dict[str, Any]:
    fields = original(props)
    if "ExecutionProperty" in props:
        fields["ExecutionProperty"] = {
            name: parse_number_or_boolean(value) for name, value in props["ExecutionProperty"].items()
        }
    return fields


PATCHES: Final = (
    SECRETS,
    TYPES,
    PROPERTIES,
)
