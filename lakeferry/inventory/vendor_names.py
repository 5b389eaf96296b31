"""How a deployment's objects at the vendors are told from all others: by names that nobody else could have given them.

A name ends in a mark of account, region, stack, logical id and generation. Whose it is stands in CloudFormation; where that
has forgotten it, the mark is made anew for every resource whose values are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

import attrs

from deployments.model import Deployment
from lakeferry.inventory.model import Claim, kept, left_over
from lakeferry.inventory.stacks import Stacks
from lambdas import contract
from lambdas.custom_resources import registry, request

_MARKED: Final = r"[a-z0-9-]*-[0-9a-f]{8}"
_UNKNOWN: Final = "named like ours, but its mark is another: of another AWS account's deployment, perhaps. Look at it yourself"
#: Parts of a deployment that make objects at vendors.
_PARTS: Final = ("confluent", "snowflake")


@attrs.frozen
class VendorNames:
    deployment: Deployment
    account: str
    stacks: Stacks

    @property
    def beginning(self) -> str:
        told = self.deployment.deployment
        return contract.name_prefix(told.name, told.stage, self.deployment.aws.region)

    def named(self, text: str) -> str | None:
        """The name of ours that stands in `text`, whatever else does; None where none does."""
        found = re.search(rf"(?<![a-z0-9-]){re.escape(self.beginning)}{_MARKED}(?![a-z0-9])", text)
        return found[0] if found else None

    def claim(self, text: str) -> Claim | None:
        """None for what isn't named like anything of ours."""
        name = self.named(text)
        if name is None:
            return None
        return self._of_stacks.get(name) or (left_over("no stack has it") if name in self._expected else kept(_UNKNOWN))

    @cached_property
    def _of_stacks(self) -> dict[str, Claim]:
        found: dict[str, Claim] = {}
        for stack, resource in self.stacks.physical_ids("lf1:"):
            if known := request.parse_physical_id(resource.physical_id):
                name = self._name(stack.name, known.logical_id, known.generation)
                is_there = stack in self.stacks.now and resource.status != "DELETE_COMPLETE"
                found.setdefault(name, stack.claim() if is_there else left_over("its stack has given it up"))
        return found

    @cached_property
    def _expected(self) -> frozenset[str]:
        """Names that the deployment's file leads to, as far as they don't depend on ids that vendors make up."""
        return frozenset(
            self._name(f"{self.deployment.prefix}-{part}", logical_id, _generation(kind, values))
            for part, kind, logical_id, values in expected(self.deployment, self.account)
        )

    def _name(self, stack: str, logical_id: str, generation: str) -> str:
        told = self.deployment.deployment
        return contract.object_name(
            project=told.name,
            stage=told.stage,
            region=self.deployment.aws.region,
            account=self.account,
            stack=stack,
            logical_id=logical_id,
            generation=generation,
        )


def expected(deployment: Deployment, account: str) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """(part, kind, logical id, the values that another one would replace) of what isn't within another of these."""
    yield "confluent", "environment", "Environment", {}
    for name in contract.ACCOUNTS:
        yield "confluent", "service_account", f"{_words(name)}Account", {}
    if given := deployment.confluent.environment_id:
        yield from _in_environment(deployment, account, given)
    wanted = deployment.snowflake
    chosen = {
        "snowflake_warehouse": ("Warehouse", wanted.warehouse if wanted else None),
        "snowflake_database": ("Database", wanted.database if wanted else None),
        "snowflake_user": ("Reader", wanted.user_name if wanted else None),
        "snowflake_linked_database": ("LinkedDatabase", None),
    }
    for kind, (logical_id, own) in chosen.items():
        for given in {own or "", ""}:
            yield "snowflake", kind, logical_id, {"name": given}
    for name in contract.SNOWFLAKE_ROLES:
        yield "snowflake", "snowflake_role", f"{_words(name)}Role", {"name": ""}


def _in_environment(
    deployment: Deployment, account: str, environment_id: str
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """What lies in an environment that isn't ours has to be known one by one."""
    region = deployment.aws.region
    ctx = {"environment_id": environment_id, "region": region}
    role_arn = f"arn:aws:iam::{account}:role/{deployment.regional_prefix}-tableflow"
    yield "confluent", "kafka_cluster", "KafkaCluster", {**ctx, "availability": deployment.confluent.availability}
    yield "confluent", "flink_compute_pool", "FlinkPool", ctx
    yield "confluent", "provider_integration", "ProviderIntegration", {**ctx, "role_arn": role_arn}
    for statement in deployment.statements:
        yield "confluent", "flink_statement", f"{_words(statement.name)}Statement", ctx


def _generation(kind: str, values: Mapping[str, Any]) -> str:
    return request.generation_of(registry.RESOURCE_TYPES[kind].handler, SimpleNamespace(**values))  # type: ignore[arg-type]


def _words(name: str) -> str:
    """As the stacks make ids of names: app_manager is AppManager."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[-._]", name))
