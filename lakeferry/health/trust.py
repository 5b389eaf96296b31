"""An IAM role that a vendor comes by: whom it trusts, by value, and what it may do, as IAM itself reckons it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import Ground
from lakeferry.health import runner as asking
from lakeferry.health.aws import cdk
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import error_code

_EXTERNAL_ID: Final = "sts:externalid"
_EQUALS: Final = ("StringEquals", "StringLike", "ForAnyValue:StringEquals")
#: What IAM shows in place of a principal that was deleted.
_GONE: Final = ("AROA", "AIDA")
_MOST: Final = 6
ROLE: Final = "IAM role"
POLICY: Final = "role's policy"


@attrs.frozen
class Comer:
    """Who comes as what: the principal, and the external id that it says; "" where the statement may not ask for one."""

    name: str
    action: str
    principal: str
    external_id: str = ""

    def __str__(self) -> str:
        return f"{self.principal} with external id {self.external_id}" if self.external_id else self.principal


@attrs.frozen
class Role:
    """`trust` are the statements of the trust that allow something."""

    arn: str
    trust: list[Mapping[str, Any]]


def read(here: Ground, name: str) -> Role | None:
    """None where there is no such role. Raises ClientError."""
    try:
        found = here.client("iam").get_role(RoleName=name)["Role"]
    except ClientError as error:
        if error_code(error) == "NoSuchEntity":
            return None
        raise
    document = found["AssumeRolePolicyDocument"]
    if isinstance(document, str):
        document = json.loads(unquote(document))
    return Role(found["Arn"], [one for one in _listed(document.get("Statement")) if one.get("Effect") == "Allow"])


def there(here: Ground, group: Group, name: str, restore: str) -> tuple[Check, Role | None]:
    role = asking.found(group, ROLE, lambda: read(here, name))
    if isinstance(role, Check):
        return role, None
    return (group.ok(ROLE, role.arn) if role else group.fail(ROLE, f"there is no role {name}", restore)), role


def trusts(group: Group, role: Role, comer: Comer, restore: str) -> Check:
    """Principal and external id are compared with what the vendor itself says of them."""
    on = [one for one in role.trust if comer.action.lower() in [each.lower() for each in _listed(one.get("Action"))]]
    known = [one for one in on if comer.principal in _principals(one)]
    if not known:
        whom = ", ".join(_shown(each) for one in on for each in _principals(one)) or "nobody"
        return group.fail(comer.name, f"for {comer.action}, the role trusts {whom}", restore, str(comer))
    if not comer.external_id:
        return group.ok(comer.name, f"{comer.action} by {comer.principal}")
    asked = [_external_ids(one) for one in known]
    if comer.external_id in [each for ids in asked for each in ids] and all(asked):
        return group.ok(comer.name, str(comer))
    wants = (
        "no external id, so it takes any" if not all(asked) else f"external id {', '.join(each for ids in asked for each in ids)}"
    )
    return group.fail(
        comer.name, f"the role wants {wants}", restore, f"external id {comer.external_id}, which {comer.principal} says"
    )


def may(here: Ground, group: Group, role: Role, needs: Mapping[str, Sequence[str]], restore: str) -> Check:
    """`needs` are actions by resource. Policies of bucket, catalog and keys are not reckoned in. Raises ClientError."""
    lacking = [each for resource, actions in needs.items() for each in _denied(here, role.arn, resource, actions)]
    if not lacking:
        return group.ok(POLICY, f"all {sum(map(len, needs.values()))} actions that are needed")
    shown = "; ".join(lacking[:_MOST]) + (f"; and {len(lacking) - _MOST} more" if lacking[_MOST:] else "")
    return group.fail(POLICY, f"the role may not {shown}", restore)


def restored(here: Ground, part: str) -> str:
    """The way to bring a role back to what its stack says, whoever changed or deleted it."""
    stack = f"{here.deployment.prefix}-{part}"
    return f"Put it back as it was deployed: `{cdk()} deploy {stack} -c stage={here.stage} --exclusively --revert-drift`"


def _denied(here: Ground, arn: str, resource: str, actions: Sequence[str]) -> Iterator[str]:
    answer = here.client("iam").simulate_principal_policy(PolicySourceArn=arn, ActionNames=list(actions), ResourceArns=[resource])
    for result in answer["EvaluationResults"]:
        if result["EvalDecision"] != "allowed":
            yield f"{result['EvalActionName']} on {resource}{_why(result)}"


def _why(result: Mapping[str, Any]) -> str:
    if not (result.get("OrganizationsDecisionDetail") or {}).get("AllowedByOrganizations", True):
        return " (a policy of the organization)"
    if not (result.get("PermissionsBoundaryDecisionDetail") or {}).get("AllowedByPermissionsBoundary", True):
        return " (its permissions boundary)"
    return " (a statement denies it)" if result["EvalDecision"] == "explicitDeny" else ""


def _principals(statement: Mapping[str, Any]) -> list[str]:
    found = statement.get("Principal", {})
    return [str(each) for each in _listed(found.get("AWS") if isinstance(found, Mapping) else found)]


def _shown(principal: str) -> str:
    return f"{principal} (deleted since)" if principal.startswith(_GONE) else principal


def _external_ids(statement: Mapping[str, Any]) -> list[str]:
    conditions = statement.get("Condition") or {}
    tests = [test for name in _EQUALS for test in [conditions.get(name) or {}]]
    return [str(each) for test in tests for key, value in test.items() if key.lower() == _EXTERNAL_ID for each in _listed(value)]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
