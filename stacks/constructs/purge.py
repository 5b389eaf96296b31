"""Removes on destroy what CloudFormation doesn't know of: what vendors and jobs left in places of ours."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CustomResource
from constructs import Construct, IDependable

from lambdas import contract
from stacks.base import LakeferryStack
from stacks.constructs.function import OwnFunction
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.statements import ITS_STACK, Statement, allow, glue_tables


class Purge(Construct):
    """Declare what goes first, then make what must be gone by then depend on it: deletion runs backwards."""

    def __init__(self, stack: LakeferryStack, name: str, *statements: Statement) -> None:
        super().__init__(stack, name)
        self._stack = stack
        own = [*statements, _asks_for(stack)]
        functions = [
            OwnFunction(stack, f"{name}{part}", handler=handler, purpose=f"{name}: {purpose}", environment={}, statements=may)
            for part, handler, purpose, may in (
                ("OnEvent", contract.PURGE_ON_EVENT, "notes what is to go", []),
                ("IsComplete", contract.PURGE_IS_COMPLETE, "removes it, part by part", own),
            )
        ]
        self._provider = WaitingProvider(stack, f"{name}Provider", on_event=functions[0], is_complete=functions[1])

    def on_destroy(self, name: str, what: str, value: str, *, after: Sequence[IDependable] = ()) -> CustomResource:
        """`what` is one of contract.PURGES. `after` are those that go later than this."""
        if what not in contract.PURGES:
            raise ValueError(f"{what} is none of {', '.join(contract.PURGES)}")
        resource = CustomResource(
            self._stack,
            name,
            resource_type=contract.PURGE_TYPE,
            service_token=self._provider.service_token,
            properties={what: value},
        )
        resource.node.add_dependency(*after)
        return resource


def _asks_for(stack: LakeferryStack) -> Statement:
    """Whether the whole stack goes: a resource that only leaves a template must purge nothing."""
    return allow(
        "AskForOwnStack",
        ["cloudformation:DescribeStacks"],
        [stack.own_arn("cloudformation", f"stack/{stack.stack_name}/*")],
        why=ITS_STACK,
    )


def may_empty(bucket_arn: str) -> list[Statement]:
    return [
        allow("ListWhatIsLeft", ["s3:ListBucketVersions", "s3:ListBucketMultipartUploads"], [bucket_arn]),
        allow(
            "RemoveObjects",
            ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"],
            [f"{bucket_arn}/*"],
            why="On destroy, all objects and versions of this one bucket go, because the deployment file says so.",
        ),
    ]


def may_drop_tables(stack: LakeferryStack, database: str) -> Statement:
    return allow(
        "DropTables",
        ["glue:GetTables", "glue:DeleteTable", "glue:DeleteDatabase"],
        glue_tables(stack, database),
        why="On destroy, all tables of this one database go, because the deployment file says so.",
    )
