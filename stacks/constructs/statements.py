"""Roles and policies. Each statement has an id and, for a wildcard, a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from stacks.constructs.synthesis import build_own_arn

#: Reasons that several statements share.
ONE_DATABASE: Final = "All tables of this one database: a topic or export may be added, and with it a table."
ITS_KEYS: Final = "Tableflow chooses the keys, in a bucket that contains only its tables."
ONE_PREFIX: Final = (
    "One prefix of the deployment's own bucket; keys contain names of exports and ids of runs."
)
ITS_TOPICS: Final = "The SNS topics of this deployment's exports: no other deployment has this prefix."
ITS_JOBS: Final = "The Glue jobs of this deployment, to read when they were created."
ONLY_ITS_OWN: Final = (
    "The policy belongs to one role and goes with it; a managed policy could be attached to other roles."
)
_AT_ITS_STATEMENT: Final = "Each wildcard has a reason of its own, under AwsSolutions-IAM5."
ITS_STACK: Final = "The ARN of this one stack ends in an id that CloudFormation generates."


@attrs.frozen
class Statement:
    """`why` is the reason for a wildcard in an action or a resource."""

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    conditions: Mapping[str, Any] | None = None
    why: str = ""

    def policy_statement(self) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid=self.sid,
            actions=list(self.actions),
            resources=list(self.resources),
            conditions=self.conditions,
        )


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Any] | None = None,
    *,
    why: str = "",
) -> Statement:
    return Statement(sid, actions, resources, conditions, why)


#: X-Ray has no resources. A trace contains which function called what and when, never an event.
TRACE: Final = Statement(
    "SendTraces",
    ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
    ["*"],
    why="X-Ray has no resources for traces.",
)


def create_role(
    scope: Construct,
    id: str,
    *,
    trusts: iam.IPrincipal,
    purpose: str,
    statements: Sequence[Statement],
    role_name: str | None = None,
) -> iam.Role:
    """Return a role with these statements as its only policy."""
    role = iam.Role(
        scope,
        id,
        role_name=role_name,
        assumed_by=trusts,
        description=purpose,
        inline_policies={
            "own": iam.PolicyDocument(
                statements=[statement.policy_statement() for statement in statements], minimize=False
            )
        },
    )
    acknowledge_policy(role, statements)
    return role


def attach(scope: Construct, id: str, role: iam.IRole, statements: Sequence[Statement]) -> iam.Policy:
    """Return a further policy of `role`, for what is created after the role."""
    policy = iam.Policy(
        scope, id, roles=[role], statements=[statement.policy_statement() for statement in statements]
    )
    acknowledge_policy(policy, statements)
    return policy


def acknowledge_policy(construct: IConstruct, statements: Sequence[Statement]) -> None:
    """Accept that the policy is inline, and wildcards that have a reason. Others are findings of cdk-nag."""
    stack = Stack.of(construct)
    acknowledge(construct, ONLY_ITS_OWN, "NIST.800.53.R5-IAMNoInlinePolicy")
    explained = [statement for statement in statements if statement.why]
    if explained:
        acknowledge(construct, _AT_ITS_STATEMENT, "Serverless-LambdaStarPermissions")
    for statement in explained:
        wild = [
            f"Resource::{_flatten_token(stack, resource)}"
            for resource in statement.resources
            if "*" in resource
        ]
        wild += [f"Action::{action}" for action in statement.actions if "*" in action]
        acknowledge(construct, statement.why, *[f"AwsSolutions-IAM5[{pattern}]" for pattern in wild])


def acknowledge(construct: IConstruct, reason: str, *rules: str) -> None:
    """Accept findings of cdk-nag, with a reason. `rules` are ids such as AwsSolutions-S1."""
    Validations.of(construct).acknowledge(*[Acknowledgment(id=rule, reason=reason) for rule in rules])


def any_version(scope: Construct, function_arn: str) -> str:
    """Return the id of cdk-nag's finding about the permission to call any version of a function."""
    return f"AwsSolutions-IAM5[Resource::{_flatten_token(Stack.of(scope), function_arn)}:*]"


def list_glue_table_arns(scope: Construct, database: str) -> list[str]:
    """Return the ARNs that Glue checks for tables of `database`: catalog, database and tables."""
    return [
        build_own_arn(scope, "glue", name)
        for name in ("catalog", f"database/{database}", f"table/{database}/*")
    ]


def _flatten_token(stack: Stack, value: Any) -> str:
    """Return a token as cdk-nag writes it."""
    resolved = stack.resolve(value)
    if isinstance(resolved, dict):
        ((function, argument),) = resolved.items()
        if function == "Fn::Join":
            return "".join(_flatten_token(stack, part) for part in argument[1])
        if function == "Fn::GetAtt":
            return f"<{'.'.join(argument)}>"
        if function == "Ref":
            return f"<{argument}>"
        # Such as Fn::Select.
        if isinstance(argument, list):
            return json.dumps(resolved, separators=(",", ":"))
        return _flatten_token(stack, argument)
    return str(resolved)
