"""Roles and their policies: short to write, each statement with an id to find it by, and a reason where it has a wildcard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from stacks.base import own_arn

#: Reasons that several statements share.
ONE_DATABASE: Final = "All tables of this one database: a topic or export may be added, and with it a table."
ITS_KEYS: Final = "Tableflow chooses the keys, in a bucket that holds nothing but its tables."
ONE_PREFIX: Final = "Below one prefix of our own bucket; keys hold names of exports and ids of runs."
ITS_TOPICS: Final = "The SNS topics of this deployment's exports: the beginning of the name is no other deployment's."
ITS_JOBS: Final = "The Glue jobs of this deployment, of which it sees when they were created."
ITS_STACK: Final = "The ARN of this one stack ends in an id that CloudFormation makes up when it creates it."


@attrs.frozen
class Statement:
    """`why` is for the reviewer, where an action or a resource ends in a wildcard."""

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Any] | None = None
    why: str = ""

    def policy_statement(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid=self.sid, actions=list(self.actions), resources=list(self.resources), conditions=self.conditions
        )


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Any] | None = None, *, why: str = ""
) -> Statement:
    return Statement(sid, actions, resources, conditions, why)


#: X-Ray knows no resources. What a trace holds: when which function called what, never an event.
TRACE: Final = Statement(
    "SendTraces",
    ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
    ["*"],
    why="X-Ray knows no resource for traces.",
)


def role(
    scope: Construct,
    id: str,
    *,
    trusts: iam.IPrincipal,
    purpose: str,
    statements: Sequence[Statement],
    role_name: str | None = None,
) -> iam.Role:
    """Return a role that may do this and nothing else."""
    role = iam.Role(
        scope,
        id,
        role_name=role_name,
        assumed_by=trusts,
        description=purpose,
        inline_policies={"own": iam.PolicyDocument(statements=[one.policy_statement() for one in statements], minimize=False)},
    )
    _acknowledge_wildcards(role, statements)
    return role


def attach(scope: Construct, id: str, role: iam.IRole, statements: Sequence[Statement]) -> iam.Policy:
    """Return a further policy of `role`, for what is created after the role."""
    policy = iam.Policy(scope, id, roles=[role], statements=[one.policy_statement() for one in statements])
    _acknowledge_wildcards(policy, statements)
    return policy


def _acknowledge_wildcards(construct: IConstruct, statements: Sequence[Statement]) -> None:
    """A wildcard without a reason is left for the rule pack to find."""
    stack = Stack.of(construct)
    for statement in (one for one in statements if one.why):
        wild = [f"Resource::{_flat(stack, one)}" for one in statement.resources if "*" in one]
        wild += [f"Action::{one}" for one in statement.actions if "*" in one]
        acknowledge(construct, statement.why, *[f"AwsSolutions-IAM5[{one}]" for one in wild])


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """Accept findings of the rule pack, with the reason that a reviewer gets. `rules` are ids such as AwsSolutions-S1."""
    Validations.of(construct).acknowledge(*[Acknowledgment(id=rule, reason=reason) for rule in rules])


def any_version(scope: Construct, function_arn: str) -> str:
    """Return the id of the finding about the right to call any version of a function."""
    return f"AwsSolutions-IAM5[Resource::{_flat(Stack.of(scope), function_arn)}:*]"


def glue_tables(scope: Construct, database: str) -> list[str]:
    """Return what a call about tables of `database` is checked against: catalog, database and tables."""
    return [own_arn(scope, "glue", one) for one in ("catalog", f"database/{database}", f"table/{database}/*")]


def _flat(stack: Stack, value: Any) -> str:
    """Return a value that CloudFormation only knows later as the rule pack writes it."""
    resolved = stack.resolve(value)
    if isinstance(resolved, dict):
        ((function, given),) = resolved.items()
        if function == "Fn::Join":
            return "".join(_flat(stack, part) for part in given[1])
        if function == "Fn::GetAtt":
            return f"<{'.'.join(given)}>"
        return f"<{given}>" if function == "Ref" else _flat(stack, given)
    return str(resolved)
