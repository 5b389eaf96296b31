"""Custom resources of one vendor: their function, the table of their states, and one construct per
resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Self, TypeVar

from aws_cdk import CfnResource, CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IDependable

from lambdas import contract
from lambdas.shared.properties import Properties, declared
from lambdas.shared.settings import FunctionSettings, ResourceSettings
from stacks.constructs.cleanup import may_read_own_stack
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.statements import Statement, acknowledge, allow
from stacks.constructs.synthesis import SynthOptions

#: CloudFormation waits at least as long as the provider does.
_SERVICE_TIMEOUT: Final = contract.TOTAL_TIMEOUT_SECONDS

#: The id of a construct's only child, as in CDK's own constructs. It is no part of the logical id.
_ONLY_CHILD: Final = "Resource"

O = TypeVar("O", bound=tuple[str, ...])  # noqa: E741  (outputs)


def may_read_states(*table_arns: str) -> Statement:
    return allow("ReadStates", ["dynamodb:Scan"], list(table_arns))


class VendorProvider(Construct):
    """The provider of a vendor's resources.

    `settings` says how its function reaches the vendor; `statements` are what it may do besides writing
    states. With `fixed_ids`, the construct id of a resource is its logical id at any depth of the tree, so a
    template can be rearranged without replacing what it has. Otherwise the logical id comes from the path.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        settings: FunctionSettings,
        statements: Sequence[Statement],
        fixed_ids: bool = False,
    ) -> None:
        super().__init__(scope, id)
        self.runtime = runtime
        self._fixed_ids = fixed_ids
        self.states = dynamodb.Table(
            self,
            "States",
            partition_key=dynamodb.Attribute(name=contract.STATE_KEY, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=contract.STATE_EXPIRY,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # It is deleted after the resources, and then no state is needed.
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.states,
            "The table has point-in-time recovery. What it says was true at one time: an older copy from a "
            "backup vault would describe objects that have changed at the vendor.",
            "NIST.800.53.R5-DynamoDBInBackupPlan",
        )
        resources = ResourceSettings(
            project=runtime.project,
            stage=runtime.stage,
            state_table=self.states.table_name,
        )
        provider = WaitingProvider(
            self,
            "Provider",
            runtime=runtime,
            handler=contract.CUSTOM_RESOURCE,
            purpose=f"{id}: creates, updates and deletes objects",
            environment=resources.to_environment() | settings.to_environment(),
            statements=[
                *statements,
                allow("WriteStates", ["dynamodb:GetItem", "dynamodb:PutItem"], [self.states.table_arn]),
                # If the state of an object is lost, the other states say in which organization or account it
                # is.
                may_read_states(self.states.table_arn),
                # To know whether the stack is being updated or rolled back.
                may_read_own_stack(self, "DescribeStacks", "DescribeStackResource"),
            ],
        )
        self.service_token = provider.service_token
        self.role = provider.function.role

    def create(self, scope: Construct, id: str, props: Properties[O]) -> VendorResource[O]:
        """Create an object at the vendor. `id` is "Resource" in a construct that is this one object.

        Raises BadProps in another stack: the function may read its own stack only, and CloudFormation would
        have to create each of two stacks after the other.
        """
        stack = Stack.of(self)
        if Stack.of(scope) is not stack:
            raise BadProps(
                f"{scope.node.path} is not in the stack of its provider, {self.node.path}. Create it in "
                f"stack {stack.node.path}, or create a provider in its own stack"
            )
        logical_id = scope.node.id if id == _ONLY_CHILD else id
        return VendorResource(
            scope,
            id,
            service_token=self.service_token,
            props=props,
            logical_id=logical_id if self._fixed_ids else None,
        )


class VendorResource(CustomResource, Generic[O]):
    """An object at a vendor. Its logical id is part of the object's name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        service_token: str,
        props: Properties[O],
        logical_id: str | None = None,
    ) -> None:
        super().__init__(
            scope,
            id,
            resource_type=contract.resource_type(props.TYPE),
            service_token=service_token,
            service_timeout=Duration.seconds(_SERVICE_TIMEOUT),
            properties={
                "kind": props.TYPE,
                **declared(props),
            },
        )
        bare = self.node.default_child
        assert isinstance(bare, CfnResource)
        if logical_id:
            bare.override_logical_id(logical_id)
        self._repair(bare)
        #: Tokens of the outputs.
        self.outputs: O = props.OUTPUTS(*[self.get_att_string(name) for name in props.OUTPUTS._fields])

    def _repair(self, bare: CfnResource) -> None:
        """Change a property of a resource whose object is missing, if it is to be created again: then
        CloudFormation sends an update.
        """
        options = SynthOptions.of(self)
        stack = Stack.of(self)
        if options.repairs and f"{stack.stack_name}/{stack.resolve(bare.logical_id)}" in options.repairs:
            bare.add_property_override(contract.REPAIR, options.repair)

    def keep(self) -> Self:
        """Keep the object when its resource is removed or replaced, unless the deployment that created it is
        rolled back.
        """
        self.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return self

    def after(self, *others: IDependable) -> Self:
        """Create it after `others`, and delete it before them."""
        self.node.add_dependency(*others)
        return self
