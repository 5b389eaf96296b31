"""Finds the owner of each object: by CloudFormation's stacks, or by a name that only this deployment can have
given it.

The name of a vendor's object ends in a hash of account, region, stack, logical id and generation. The names
of the resources that CloudFormation knows are computed first, then the names of all resources whose
properties follow from the deployment file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

import attrs

from config.deployments.confluent_model import Confluent
from config.deployments.model import Deployment, to_pascal_case
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack, StackResource
from lakeferry.inventory.model import AWS, STACK, Item, Ownership, Verdict, orphaned, retained
from lambdas import contract
from lambdas.custom_resources import registry, request

#: Statuses of resources that their stack no longer manages. The object may still exist, and somebody else may
#: have created it.
GIVEN_UP: Final = (stacks.DELETED, "DELETE_SKIPPED", "CREATE_FAILED")
_NO_STACK: Final = "no stack has it"
_FORMER: Final = "its stack no longer manages it"
_HASHED: Final = r"[a-z0-9-]*-[0-9a-f]{8}"
_UNKNOWN: Final = (
    "name matches this deployment but its hash doesn't: perhaps another AWS account's deployment; check it "
    "manually"
)


@attrs.frozen
class StackHistory:
    """A deployment's stacks with their resources: `current` ones, and `deleted` ones that CloudFormation
    still remembers.
    """

    current: tuple[Stack, ...]
    deleted: tuple[Stack, ...] = ()

    def ownership(self, resource_type: str, physical_id: str) -> Ownership | None:
        """Return None if no stack has or had the resource."""
        for stack in self.current:
            if _has(stack, resource_type, physical_id, GIVEN_UP):
                return decide_by_stack(stack)
        if any(_has(stack, resource_type, physical_id) for stack in (*self.current, *self.deleted)):
            return orphaned(_FORMER)
        return None

    def resources(self, beginning: str = "") -> Iterator[tuple[Stack, StackResource]]:
        """Yield the resources whose physical id starts with `beginning`, those of current stacks first."""
        for stack in (*self.current, *self.deleted):
            for resource in stack.resources:
                if resource.physical_id.startswith(beginning):
                    yield stack, resource

    def had(self, name: str) -> bool:
        """Return whether there is or was a stack of this name."""
        return any(stack.name == name for stack in (*self.current, *self.deleted))

    def may_have_left(self, name: str) -> bool:
        """Return whether there is a stack of this name, or a deleted one of which CloudFormation did not
        delete everything.
        """
        if any(stack.name == name for stack in self.current):
            return True
        resources = [resource for stack in self.deleted if stack.name == name for resource in stack.resources]
        return any(resource.status != stacks.DELETED for resource in resources)


def read_history(ctx: DeploymentContext) -> StackHistory:
    """Raises ClientError, BotoCoreError."""
    names = stacks.list_names(ctx)
    current = tuple(stack for name in names if (stack := stacks.describe(ctx, name, with_resources=True)))
    return StackHistory(current, tuple(stacks.describe_deleted(ctx, names)))


def decide_by_stack(stack: Stack) -> Ownership:
    """Return the ownership of a stack's resources. Those of a stack that isn't active are orphans."""
    if stack.is_active:
        return Ownership(stack.name, Verdict.MANAGED, stack.status if stack.is_in_progress else "")
    return orphaned(f"its stack is {stack.status}", stack.name)


def stack_items(ctx: DeploymentContext, history: StackHistory) -> Iterator[Item]:
    """Yield the stacks themselves, and the account's CDK bootstrap stack."""
    for stack in history.current:
        ownership = (
            decide_by_stack(stack) if stack.is_active else orphaned(f"it is {stack.status}", stack.name)
        )
        yield ownership.item(AWS, STACK, stack.name, stack.id)
    if toolkit := stacks.describe(ctx, stacks.TOOLKIT):
        why = "the account's: CDK's bootstrap, with the code of all its apps"
        yield retained(why, toolkit.name).item(AWS, STACK, toolkit.name, toolkit.id)


def _has(stack: Stack, resource_type: str, physical_id: str, excluded: tuple[str, ...] = ()) -> bool:
    return any(
        (resource.type, resource.physical_id) == (resource_type, physical_id)
        and resource.status not in excluded
        for resource in stack.resources
    )


@attrs.frozen
class VendorNames:
    deployment: Deployment
    account: str
    history: StackHistory

    def find(self, text: str) -> str | None:
        """Return the name of this deployment that `text` contains, None if it contains none."""
        deployment = self.deployment.identity
        beginning = contract.name_prefix(deployment.name, deployment.stage, self.deployment.aws.region)
        match = re.search(rf"(?<![a-z0-9-]){re.escape(beginning)}{_HASHED}(?![a-z0-9])", text)
        return match[0] if match else None

    def ownership(self, text: str) -> Ownership | None:
        """Return None if `text` contains no name of this deployment."""
        name = self.find(text)
        if name is None:
            return None
        return self._in_stacks.get(name) or (
            orphaned(_NO_STACK) if name in self._expected else retained(_UNKNOWN)
        )

    @cached_property
    def _in_stacks(self) -> dict[str, Ownership]:
        ownerships: dict[str, Ownership] = {}
        for stack, resource in self.history.resources("lf1:"):
            if identity := request.parse_physical_id(resource.physical_id):
                name = self.object_name(stack.name, identity.logical_id, identity.generation)
                exists = stack in self.history.current and resource.status != stacks.DELETED
                ownerships.setdefault(name, decide_by_stack(stack) if exists else orphaned(_FORMER))
        return ownerships

    @cached_property
    def _expected(self) -> frozenset[str]:
        """Return the names that follow from the deployment file, without those that depend on ids that
        vendors assign.
        """
        return frozenset(
            self.object_name(
                f"{self.deployment.prefix}-{part}", logical_id, _compute_generation(kind, values)
            )
            for part, kind, logical_id, values in list_expected(self.deployment, self.account)
        )

    def object_name(self, stack: str, logical_id: str, generation: str) -> str:
        deployment = self.deployment.identity
        return contract.build_object_name(
            project=deployment.name, stage=deployment.stage, region=self.deployment.aws.region,
            account=self.account, stack=stack, logical_id=logical_id, generation=generation,
        )  # fmt: skip


def list_expected(deployment: Deployment, account: str) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (part, resource type, logical id, properties whose change replaces it) of resources not inside
    another one.
    """
    yield "confluent", "environment", "Environment", {}
    for name in contract.ACCOUNTS:
        yield "confluent", "service_account", f"{to_pascal_case(name)}Account", {}
    if deployment.confluent and deployment.confluent.environment_id:
        yield from _list_in_environment(deployment, account, deployment.confluent)
    chosen = deployment.snowflake
    objects = [
        ("snowflake_warehouse", "Warehouse", chosen.warehouse if chosen else None),
        ("snowflake_database", "Database", chosen.database if chosen else None),
        ("snowflake_user", "Reader", chosen.user_name if chosen else None),
        ("snowflake_role", "PeopleRole", chosen.people_role if chosen else None),
        ("snowflake_role", "RawRole", chosen.raw_role if chosen else None),
        ("snowflake_linked_database", "LinkedDatabase", None),
    ]
    for kind, logical_id, chosen_name in objects:
        for name in {chosen_name or "", ""}:
            yield "snowflake", kind, logical_id, {"name": name}
    for name in ("reader", "rotation"):
        yield "snowflake", "snowflake_role", f"{to_pascal_case(name)}Role", {"name": ""}


def _list_in_environment(
    deployment: Deployment, account: str, confluent: Confluent
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the resources in an environment that the deployment didn't create."""
    region = deployment.aws.region
    values = {"environment_id": confluent.environment_id, "region": region}
    role_arn = f"arn:aws:iam::{account}:{deployment.role_resource('tableflow')}"
    if not confluent.cluster_id:
        yield (
            "confluent",
            "kafka_cluster",
            "KafkaCluster",
            {**values, "availability": confluent.availability},
        )
    if deployment.statements:
        yield "confluent", "flink_compute_pool", "FlinkPool", values
    yield "confluent", "provider_integration", "ProviderIntegration", {**values, "role_arn": role_arn}
    for statement in deployment.statements:
        yield "confluent", "flink_statement", f"{to_pascal_case(statement.name)}Statement", values


def _compute_generation(kind: str, values: Mapping[str, Any]) -> str:
    handler = registry.RESOURCE_TYPES[kind].handler
    return request.compute_generation(handler, SimpleNamespace(**values))  # type: ignore[arg-type]
