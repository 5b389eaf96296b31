"""Custom resources of one vendor: the functions behind them, their ledger, and a way to declare one that checks its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from aws_cdk import CustomResource, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IDependable

from lambdas import contract
from lambdas.shared.properties import Properties
from stacks.base import LakeferryStack
from stacks.constructs.function import OwnFunction
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.statements import ITS_STACK, Statement, allow

#: CloudFormation waits at least as long as the provider does.
_SERVICE_TIMEOUT: Final = contract.TOTAL_TIMEOUT_SECONDS


class UnknownProperty(Exception):
    """A property or output that a resource type doesn't have, or a property that it requires and isn't given."""


@attrs.frozen
class Made:
    """A custom resource that was declared."""

    schema: type[Properties]
    resource: CustomResource

    def __getitem__(self, output: str) -> str:
        """By value, when CloudFormation has it. Raises UnknownProperty."""
        if output not in self.schema.OUTPUTS:
            raise UnknownProperty(f"{self.schema.TYPE} has no output {output}")
        return self.resource.get_att_string(output)

    def after(self, *others: Made | IDependable) -> Made:
        """Made after them, and removed before them."""
        self.resource.node.add_dependency(*[one.resource if isinstance(one, Made) else one for one in others])
        return self


class VendorResources(Construct):
    """`statements` are what the function that speaks with the vendor may do, beside keeping the ledger."""

    def __init__(
        self, stack: LakeferryStack, name: str, *, environment: Mapping[str, str], statements: Sequence[Statement]
    ) -> None:
        super().__init__(stack, name)
        self._ledger = _ledger(self)
        common = [_keeps(self._ledger), _asks_for(stack)]
        told = {
            contract.PROJECT: stack.deployment.deployment.name,
            contract.STAGE: stack.deployment.deployment.stage,
            contract.LEDGER_TABLE: self._ledger.table_name,
            **environment,
        }
        functions = [
            OwnFunction(stack, f"{name}{part}", handler=handler, purpose=f"{name}: {purpose}", environment=told, statements=may)
            for part, handler, purpose, may in (
                ("OnEvent", contract.ON_EVENT, "names the object that a resource stands for", []),
                ("IsComplete", contract.IS_COMPLETE, "makes, changes and removes objects, step by step", [*statements, *common]),
            )
        ]
        self._provider = WaitingProvider(stack, f"{name}Provider", on_event=functions[0], is_complete=functions[1])
        self._stack = stack

    def make(self, schema: type[Properties], name: str, /, **properties: Any) -> Made:
        """Declare a resource of a type. Raises UnknownProperty."""
        _check(schema, properties)
        resource = CustomResource(
            self._stack,
            name,
            resource_type=contract.resource_type(schema.TYPE),
            service_token=self._provider.service_token,
            service_timeout=Duration.seconds(_SERVICE_TIMEOUT),
            properties={
                "kind": schema.TYPE,
                **{k: v for k, v in properties.items() if v is not None},
                **self._repair(name),
            },
        )
        return Made(schema, resource)

    def _repair(self, name: str) -> dict[str, str]:
        """An update finds out that the object is missing, and creates it."""
        wanted = f"{self._stack.stack_name}/{name}" in self._stack.surroundings.repairs
        return {contract.REPAIR: self._stack.surroundings.repair} if wanted else {}


def _check(schema: type[Properties], properties: Mapping[str, Any]) -> None:
    fields = attrs.fields_dict(schema)
    required = [name for name, field in fields.items() if field.default is attrs.NOTHING]
    if missing := [name for name in required if properties.get(name) is None]:
        raise UnknownProperty(f"{schema.TYPE} needs {', '.join(missing)}")
    if unknown := [name for name in properties if name not in fields]:
        raise UnknownProperty(f"{schema.TYPE} has no {', '.join(unknown)}")


def _ledger(scope: Construct) -> dynamodb.Table:
    """Goes with the stack: without resources there is nothing left to remember."""
    return dynamodb.Table(
        scope,
        "Ledger",
        partition_key=dynamodb.Attribute(name=contract.LEDGER_KEY, type=dynamodb.AttributeType.STRING),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        time_to_live_attribute=contract.LEDGER_EXPIRY,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
        removal_policy=RemovalPolicy.DESTROY,
    )


def _keeps(ledger: dynamodb.Table) -> Statement:
    return allow("KeepLedger", ["dynamodb:GetItem", "dynamodb:PutItem"], [ledger.table_arn])


def _asks_for(stack: LakeferryStack) -> Statement:
    """Whether the stack is going forward or back; a stack's ARN ends in a UUID that isn't known before."""
    return allow(
        "AskForOwnStack",
        ["cloudformation:DescribeStacks", "cloudformation:DescribeStackResource"],
        [stack.own_arn("cloudformation", f"stack/{stack.stack_name}/*")],
        why=ITS_STACK,
    )
