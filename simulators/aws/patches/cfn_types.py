"""Types of CloudFormation's that MiniStack has the services for: named queries, budgets, Glue's security configurations.
Functions keep their queue."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, ministack
from simulators.aws.provisioning import Made, asked

PATCH = Patch("cfn_types")
_QUERY: Final = "AWS::Athena::NamedQuery"
_BUDGET: Final = "AWS::Budgets::Budget"
_SECURITY: Final = "AWS::Glue::SecurityConfiguration"
_FUNCTION: Final = "AWS::Lambda::Function"


@PATCH.provisions(_QUERY, "create")
def create_query(logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    """Every property is create-only: a change makes another one, and the old one goes."""
    made = asked("athena", "_create_named_query", props)["NamedQueryId"]
    return made, {"NamedQueryId": made}


@PATCH.provisions(_QUERY, "delete")
def delete_query(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in ministack("services.athena")._named_queries:
        asked("athena", "_delete_named_query", {"NamedQueryId": physical_id})


@PATCH.provisions(_BUDGET, "create")
def create_budget(logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    wanted = _wanted(logical_id, props, stack_name)
    asked("budgets", "_create_budget", wanted)
    return wanted["Budget"]["BudgetName"], {}


@PATCH.provisions(_BUDGET, "update")
def update_budget(physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str) -> Made:
    """Notifications are create-only, and the budget of the same name is made anew."""
    delete_budget(physical_id, old)
    new = {**new, "Budget": {**new["Budget"], "BudgetName": physical_id}}
    asked("budgets", "_create_budget", _wanted("", new, stack_name))
    return physical_id, {}


@PATCH.provisions(_BUDGET, "delete")
def delete_budget(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in ministack("services.budgets")._budgets:
        asked("budgets", "_delete_budget", {"BudgetName": physical_id})


@PATCH.provisions(_SECURITY, "create")
def create_security(logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    """Every property is create-only: a change makes another one, and the old one goes."""
    name = str(props["Name"])
    asked("glue", "_create_security_configuration", {"Name": name, "EncryptionConfiguration": _encryption(props)})
    return name, {}


@PATCH.provisions(_SECURITY, "delete")
def delete_security(physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in ministack("services.glue")._security_configs:
        asked("glue", "_delete_security_configuration", {"Name": physical_id})


def _encryption(props: dict[str, Any]) -> dict[str, Any]:
    """As CreateSecurityConfiguration takes it: templates have the list under another name."""
    encryption = copy.deepcopy(props["EncryptionConfiguration"])
    encryption["S3Encryption"] = encryption.pop("S3Encryptions", [])
    return dict(encryption)


def _wanted(logical_id: str, props: dict[str, Any], stack_name: str) -> dict[str, Any]:
    """As CreateBudget takes it: amounts are strings there, and numbers in templates."""
    wanted = copy.deepcopy(props)
    budget = wanted["Budget"]
    budget.setdefault("BudgetName", f"{stack_name}-{logical_id}")
    if "BudgetLimit" in budget:
        budget["BudgetLimit"]["Amount"] = str(budget["BudgetLimit"]["Amount"])
    for entry in wanted.get("NotificationsWithSubscribers", []):
        entry["Notification"]["Threshold"] = float(entry["Notification"]["Threshold"])
    return wanted


@PATCH.provisions(_FUNCTION, "create", original=True)
def create_function(original: Callable[..., Made], logical_id: str, props: dict[str, Any], stack_name: str) -> Made:
    """With its dead-letter queue, which stock MiniStack drops."""
    name, attributes = original(logical_id, props, stack_name)
    _keep_dead_letters(name, props)
    return name, attributes


@PATCH.provisions(_FUNCTION, "update", original=True)
def update_function(
    original: Callable[..., Made], physical_id: str, old: dict[str, Any], new: dict[str, Any], *rest: Any
) -> Made:
    name, attributes = original(physical_id, old, new, *rest)
    _keep_dead_letters(name, new)
    return name, attributes


def _keep_dead_letters(name: str, props: dict[str, Any]) -> None:
    config = ministack("services.lambda_svc")._functions[name]["config"]
    if "DeadLetterConfig" in props:
        config["DeadLetterConfig"] = dict(props["DeadLetterConfig"])
    else:
        config.pop("DeadLetterConfig", None)
