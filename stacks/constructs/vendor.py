"""Custom resources of one vendor: their function, the table of their states, and one construct per
resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Self, TypeVar

from aws_cdk import CfnResource, CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IDependable

from config.deployments.model import Deployment
from lambdas import contract
from lambdas.shared.properties import Properties, declared
from lambdas.shared.settings import FunctionSettings, ResourceSettings
from stacks.base import SynthOptions
from stacks.constructs.cleanup import may_read_own_stack
from stacks.constructs.provider import WaitingProvider
from stacks.constructs.statements import Statement, acknowledge, allow

#: CloudFormation waits at least as long as the provider does.
_SERVICE_TIMEOUT: Final = contract.TOTAL_TIMEOUT_SECONDS

O = TypeVar("O", bound=tuple[str, ...])  # noqa: E741  (outputs)


def may_read_states(*table_arns: str) -> Statement:
    return allow("ReadStates", ["dynamodb:Scan"], list(table_arns))


class VendorProvider(Construct):
    """The provider of a vendor's resources.

    `settings` says how its function reaches the vendor; `statements` are what it may do besides writing
    states.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        settings: FunctionSettings,
        statements: Sequence[Statement],
    ) -> None:
        super().__init__(scope, id)
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
            project=deployment.identity.name,
            stage=deployment.identity.stage,
            state_table=self.states.table_name,
        )
        provider = WaitingProvider(
            self,
            "Provider",
            deployment=deployment,
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
        """Create an object at the vendor."""
        return VendorResource(scope, id, service_token=self.service_token, props=props)


class VendorResource(CustomResource, Generic[O]):
    """An object at a vendor.

    Its construct id is its logical id at any depth of the tree: it is part of the object's name.
    """

    def __init__(self, scope: Construct, id: str, *, service_token: str, props: Properties[O]) -> None:
        options = SynthOptions.of(scope)
        # The changed property makes CloudFormation send an update, which creates the missing object.
        repaired = f"{Stack.of(scope).stack_name}/{id}" in options.repairs
        super().__init__(
            scope,
            id,
            resource_type=contract.resource_type(props.TYPE),
            service_token=service_token,
            service_timeout=Duration.seconds(_SERVICE_TIMEOUT),
            properties={
                "kind": props.TYPE,
                **declared(props),
                **({contract.REPAIR: options.repair} if repaired else {}),
            },
        )
        bare = self.node.default_child
        assert isinstance(bare, CfnResource)
        bare.override_logical_id(id)
        #: Tokens of the outputs.
        self.outputs: O = props.OUTPUTS(*[self.get_att_string(name) for name in props.OUTPUTS._fields])

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
