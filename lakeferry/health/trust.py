"""The IAM role that a vendor assumes: the principals that it trusts, and its permissions according to IAM's
simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import runner
from lakeferry.health.aws import write_cdk_command
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import read_error_code

ROLE: Final = "IAM role"
POLICY: Final = "role's policy"
_EXTERNAL_ID: Final = "sts:externalid"
_EQUALS: Final = ("StringEquals", "StringLike", "ForAnyValue:StringEquals")
#: Prefixes of the ids that IAM shows in place of the ARN of a deleted principal.
_DELETED: Final = ("AROA", "AIDA")
_MOST: Final = 6
#: An object key that stands for any, for the simulation.
_ANY_KEY: Final = "any/key"


@attrs.frozen
class Principal:
    """A principal that assumes the role.

    `external_id` is "" for an action without one. `check` is the name of the check.
    """

    check: str
    action: str
    arn: str
    external_id: str = ""

    def __str__(self) -> str:
        return f"{self.arn} with external id {self.external_id}" if self.external_id else self.arn


@attrs.frozen
class Role:
    """`trust` has the statements of the trust policy."""

    arn: str
    trust: list[Mapping[str, Any]]


def read(ctx: DeploymentContext, name: str) -> Role | None:
    """Return the role, None if it doesn't exist. Raises ClientError."""
    try:
        answer = ctx.client("iam").get_role(RoleName=name)["Role"]
    except ClientError as error:
        if read_error_code(error) == "NoSuchEntity":
            return None
        raise
    document = answer["AssumeRolePolicyDocument"]
    return Role(answer["Arn"], _as_list(document.get("Statement")))


def check_role(ctx: DeploymentContext, group: Group, name: str, restore: str) -> tuple[Check, Role | None]:
    role = runner.attempt(group, ROLE, lambda: read(ctx, name))
    if isinstance(role, Check):
        return role, None
    return (group.ok(ROLE, role.arn) if role else group.fail(ROLE, f"there is no role {name}", restore)), role


def check_trust(group: Group, role: Role, principal: Principal, restore: str) -> Check:
    """Compare the role's trust policy with the principal and the external id that the vendor uses.

    A Deny statement is recognized if it has no conditions, and names the principal or `*` and the action,
    `sts:*` or `*`.
    """
    action = principal.action.lower()
    on = [
        statement
        for statement in role.trust
        if statement.get("Effect") == "Allow" and action in _list_actions(statement)
    ]
    denials = [statement for statement in role.trust if statement.get("Effect") == "Deny"]
    denying = [statement for statement in denials if {action, "sts:*", "*"} & set(_list_actions(statement))]
    if any(
        {principal.arn, "*"} & set(_list_principals(statement)) and not statement.get("Condition")
        for statement in denying
    ):
        return group.fail(
            principal.check, f"the role denies {principal.action} by {principal.arn}", restore, str(principal)
        )
    trusting = [statement for statement in on if principal.arn in _list_principals(statement)]
    if not trusting:
        trusted: list[str] = []
        for statement in on:
            trusted += [_format_principal(arn) for arn in _list_principals(statement)]
        whom = ", ".join(trusted) or "nobody"
        return group.fail(
            principal.check, f"for {principal.action}, the role trusts {whom}", restore, str(principal)
        )
    if not principal.external_id:
        return group.ok(principal.check, f"{principal.action} by {principal.arn}")
    accepted = [_list_external_ids(statement) for statement in trusting]
    ids = [external_id for external_ids in accepted for external_id in external_ids]
    if principal.external_id in ids and all(accepted):
        return group.ok(principal.check, str(principal))
    wants = f"external id {', '.join(ids)}" if all(accepted) else "no external id, so it takes any"
    needed = f"external id {principal.external_id}, which {principal.arn} uses"
    return group.fail(principal.check, f"the role requires {wants}", restore, needed)


def check_permissions(
    ctx: DeploymentContext, group: Group, role: Role, needs: Mapping[str, Sequence[str]], restore: str
) -> Check:
    """Simulate the role's own policies. `needs` has the actions by the ARN of their resource.

    Resource policies (of the bucket, the Glue catalog and KMS keys) are not simulated. Raises ClientError.
    """
    lacking: list[str] = []
    for resource, actions in needs.items():
        lacking += _list_denied_actions(ctx, role.arn, resource, actions)
    if not lacking:
        return group.ok(POLICY, f"all {sum(map(len, needs.values()))} actions that are needed")
    listed = "; ".join(lacking[:_MOST])
    if lacking[_MOST:]:
        listed += f"; and {len(lacking) - _MOST} more"
    return group.fail(POLICY, f"the role may not {listed}", restore)


def list_needed_actions(
    ctx: DeploymentContext,
    wanted: Mapping[str, tuple[str, ...]],
    bucket: str,
    database: str,
    *,
    folder: str = "",
) -> dict[str, tuple[str, ...]]:
    """Return the needed actions by ARN. `folder` is that of the objects in the bucket, with a slash at the
    end.
    """
    catalog = f"arn:aws:glue:{ctx.region}:{ctx.account}"
    on_bucket = f"arn:aws:s3:::{bucket}"
    in_glue = (f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/any")
    return {
        on_bucket: wanted["bucket"], f"{on_bucket}/{folder}{_ANY_KEY}": wanted["objects"],
        **(dict.fromkeys(in_glue, wanted["tables"]) if wanted["tables"] else {}),
    }  # fmt: skip


def restore_command(ctx: DeploymentContext, part: str) -> str:
    """Return the fix for a role that somebody changed or deleted: a command that deploys it again as its
    stack defines it.
    """
    stack = f"{ctx.deployment.prefix}-{part}"
    return (
        f"Put it back as it was deployed: `{write_cdk_command()} deploy {stack} -c stage={ctx.stage} "
        "--exclusively --revert-drift`"
    )


def _list_denied_actions(
    ctx: DeploymentContext, arn: str, resource: str, actions: Sequence[str]
) -> Iterator[str]:
    answer = ctx.client("iam").simulate_principal_policy(
        PolicySourceArn=arn, ActionNames=list(actions), ResourceArns=[resource]
    )
    for result in answer["EvaluationResults"]:
        if result["EvalDecision"] != "allowed":
            yield f"{result['EvalActionName']} on {resource}{_explain_denial(result)}"


def _explain_denial(result: Mapping[str, Any]) -> str:
    if not (result.get("OrganizationsDecisionDetail") or {}).get("AllowedByOrganizations", True):
        return " (a policy of the organization)"
    if not (result.get("PermissionsBoundaryDecisionDetail") or {}).get("AllowedByPermissionsBoundary", True):
        return " (its permissions boundary)"
    return " (a statement denies it)" if result["EvalDecision"] == "explicitDeny" else ""


def _list_principals(statement: Mapping[str, Any]) -> list[str]:
    principal = statement.get("Principal", {})
    if isinstance(principal, Mapping):
        principal = principal.get("AWS")
    return [str(item) for item in _as_list(principal)]


def _list_actions(statement: Mapping[str, Any]) -> list[str]:
    return [str(item).lower() for item in _as_list(statement.get("Action"))]


def _format_principal(principal: str) -> str:
    return f"{principal} (deleted since)" if principal.startswith(_DELETED) else principal


def _list_external_ids(statement: Mapping[str, Any]) -> list[str]:
    conditions = statement.get("Condition") or {}
    external_ids: list[str] = []
    for name in _EQUALS:
        test = conditions.get(name) or {}
        for key, value in test.items():
            if key.lower() == _EXTERNAL_ID:
                external_ids += [str(item) for item in _as_list(value)]
    return external_ids


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
