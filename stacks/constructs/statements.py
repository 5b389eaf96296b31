"""Statements of policies: short to write, each with an id to find it by, and a reason where it has a wildcard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from stacks.constructs.acknowledged import acknowledge

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

    def made(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid=self.sid, actions=list(self.actions), resources=list(self.resources), conditions=self.conditions
        )


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Any] | None = None, *, why: str = ""
) -> Statement:
    return Statement(sid, actions, resources, conditions, why)


def role(
    scope: Any, name: str, *, trusts: iam.IPrincipal, purpose: str, statements: Sequence[Statement], role_name: str | None = None
) -> iam.Role:
    """A role that may do this and nothing else. A wildcard without a reason is left for the rule pack to find."""
    made = iam.Role(
        scope,
        name,
        role_name=role_name,
        assumed_by=trusts,
        description=purpose,
        inline_policies={"own": iam.PolicyDocument(statements=[one.made() for one in statements], minimize=False)},
    )
    for statement in (one for one in statements if one.why):
        wild = [f"Resource::{_flat(made.stack, one)}" for one in statement.resources if "*" in one]
        wild += [f"Action::{one}" for one in statement.actions if "*" in one]
        acknowledge(made, statement.why, *[f"AwsSolutions-IAM5[{one}]" for one in wild])
    return made


def of_any_version(stack: Stack, function_arn: str) -> str:
    """How the rule pack tells the right to call any version of a function."""
    return f"AwsSolutions-IAM5[Resource::{_flat(stack, function_arn)}:*]"


def glue_tables(stack: Any, database: str) -> list[str]:
    """What a call about tables of `database` is checked against: catalog, database and tables."""
    return [stack.own_arn("glue", one) for one in ("catalog", f"database/{database}", f"table/{database}/*")]


def _flat(stack: Stack, value: Any) -> str:
    """As the rule pack writes a value that CloudFormation only knows later."""
    found = stack.resolve(value)
    if isinstance(found, dict):
        ((function, given),) = found.items()
        if function == "Fn::Join":
            return "".join(_flat(stack, part) for part in given[1])
        if function == "Fn::GetAtt":
            return f"<{'.'.join(given)}>"
        return f"<{given}>" if function == "Ref" else _flat(stack, given)
    return str(found)
