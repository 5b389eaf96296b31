"""What of a deployment is in Confluent Cloud: environments and accounts by their names, and what is in them or theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.model import CONFLUENT, Claim, Item, Verdict, kept, left_over, not_asked
from lakeferry.inventory.vendor_names import VendorNames
from lambdas.confluent import crn
from lambdas.confluent.client import Confluent, path, text
from lambdas.shared.errors import Denied, NotFound, Refused, Transient
from lambdas.shared.redaction import ApiKey

#: What follows a resource's name in that of its statements.
_OF_STATEMENT: Final = re.compile(r"-[0-9a-f]{8}(-undo)?$")
_REGISTERED: Final = "Datagen or Flink registers it for a topic of this deployment, in an environment that isn't ours: it stays"
_BY_HAND: Final = "made by hand in something of ours: it goes with that"


@attrs.frozen
class _Environment:
    """`claim` is that of the environment itself; None where the deployment's file names one that somebody else made."""

    id: str
    claim: Claim | None


def take(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """Raises CommandFailed, LakeferryError."""
    return list(_Look(ctx, ctx.confluent(), names).items())


@attrs.frozen
class _Look:
    ctx: DeploymentContext
    vendor: Confluent
    names: VendorNames

    def items(self) -> Iterator[Item]:
        yield from self._environments()
        yield from self._accounts()
        yield kept("made by hand: the deployment makes everything with it").item(
            CONFLUENT, "api_key", "Cloud key", self.vendor.cloud.key.id
        )

    def _environments(self) -> Iterator[Item]:
        given = self.ctx.deployment.confluent.environment_id
        for found in self.vendor.cloud.pages("/org/v2/environments"):
            id, name = text(found, "id"), text(found, "display_name")
            claim = self.names.claim(name)
            if id == given:
                yield kept("the deployment file names it: somebody else made it").item(CONFLUENT, "environment", name, id)
                yield from self._inside(_Environment(id, None))
                yield from self._subjects(id)
            elif claim:
                yield claim.item(CONFLUENT, "environment", name, id)
                if claim.is_ours:
                    yield from self._inside(_Environment(id, claim))

    def _subjects(self, environment: str) -> Iterator[Item]:
        """Of Schema Registry, where it isn't ours: Datagen and Flink register them by the topic's name, and no deletion of a
        connector, a topic or a statement removes them. Somebody else's topic of that name has the same subjects."""
        topics = self.ctx.deployment.topics
        names = [f"{topic.name}-value" for topic in topics if topic.datagen or topic.statement]
        names += [f"{topic.name}-key" for topic in topics if topic.statement]
        if not names or not any(
            stack.name.endswith("-confluent") for stack in (*self.names.stacks.now, *self.names.stacks.former)
        ):
            return
        secret, why = f"{self.ctx.deployment.prefix}/confluent/schema_registry", _REGISTERED
        try:
            listed = self.vendor.registry(environment, self.ctx.secrets.read_key(secret)).get("/subjects")
            there = [name for name in names if isinstance(listed, list) and name in listed]
        except (NotFound, Denied, Transient, Refused):  # the key goes with the deployment, and the subjects don't
            there, why = names, f"{_REGISTERED}. It may be there: the key to look with, in secret {secret}, is gone"
        for name in there:
            yield kept(why).item(CONFLUENT, "subject", name, name, (environment,))

    def _inside(self, environment: _Environment) -> Iterator[Item]:
        cloud, query = self.vendor.cloud, {"environment": environment.id}
        for found in cloud.pages("/cmk/v2/clusters", **query):
            if claim := self._claim(environment, text(found, "spec", "display_name")):
                yield claim.item(CONFLUENT, "kafka_cluster", *_named(found, "spec"), (environment.id,))
                if claim.is_ours:
                    yield from self._in_cluster(environment, text(found, "id"), claim)
        for found in cloud.pages("/pim/v1/integrations", **query):
            if claim := self._claim(environment, text(found, "display_name")):
                yield claim.item(CONFLUENT, "provider_integration", *_named(found), (environment.id,))
        pools: dict[str, Claim] = {}
        for found in cloud.pages("/fcpm/v2/compute-pools", **query):
            if claim := self._claim(environment, text(found, "spec", "display_name")):
                yield claim.item(CONFLUENT, "flink_compute_pool", *_named(found, "spec"), (environment.id,))
                if claim.is_ours:
                    pools[text(found, "id")] = claim
        if pools:
            yield from self._with_key("flink", environment, lambda key: self._statements(key, environment, pools))

    def _in_cluster(self, environment: _Environment, cluster: str, of_cluster: Claim) -> Iterator[Item]:
        """Whatever is in a cluster of ours goes with it, but holds it up where it isn't removed before."""
        where = (environment.id, cluster)
        route = path("connect", "v1", "environments", environment.id, "clusters", cluster, "connectors")
        for name in sorted(_connectors(self.vendor, route)):
            yield self._within(of_cluster, name).item(CONFLUENT, "connector", name, name, where)
        yield from self._with_key("tableflow", environment, lambda key: self._tables(key, where, of_cluster))

    def _tables(self, key: ApiKey, where: tuple[str, str], of_cluster: Claim) -> Iterator[Item]:
        plane, query = self.vendor.tableflow(key), {"environment": where[0], "spec.kafka_cluster": where[1]}
        for found in plane.pages("/tableflow/v1/tableflow-topics", **query):
            topic = text(found, "spec", "display_name")
            yield of_cluster.item(CONFLUENT, "tableflow_topic", topic, topic, where)
        for found in plane.pages("/tableflow/v1/catalog-integrations", **query):
            yield of_cluster.item(CONFLUENT, "catalog_integration", *_named(found, "spec"), where)

    def _statements(self, key: ApiKey, environment: _Environment, pools: dict[str, Claim]) -> Iterator[Item]:
        """Those that run in pools of ours, and all in an environment of ours."""
        place = ("organizations", self.vendor.organization_id, "environments", environment.id)
        for found in self.vendor.flink(self.ctx.region, key).pages(path("sql", "v1", *place, "statements")):
            name, own = text(found, "name"), _OF_STATEMENT.sub("", text(found, "name"))
            pool = pools.get(text(found, "spec", "compute_pool_id")) or environment.claim
            if claim := self._within(pool, own) if pool else self.names.claim(own):
                yield claim.item(CONFLUENT, "flink_statement", name, name, (environment.id,))

    def _with_key(self, what: str, environment: _Environment, look: Callable[[ApiKey], Iterator[Item]]) -> list[Item]:
        """What only a key of the deployment's own can see. In an environment that goes, it goes anyway."""
        kind = {"tableflow": "tableflow_topic", "flink": "flink_statement"}[what]
        secret = f"{self.ctx.deployment.prefix}/confluent/{what}"
        try:
            return list(look(self.ctx.secrets.read_key(secret)))
        except (NotFound, Denied, Transient, Refused) as refused:
            # A secret that is pending deletion is refused like one that may not be read.
            goes = environment.claim is not None and environment.claim.verdict is Verdict.LEFT_OVER
            return [] if goes else [not_asked(CONFLUENT, kind, f"with the key in secret {secret}: {refused.what}")]

    def _accounts(self) -> Iterator[Item]:
        for found in self.vendor.cloud.pages("/iam/v2/service-accounts"):
            id, name = text(found, "id"), text(found, "display_name")
            if claim := self.names.claim(name):
                yield claim.item(CONFLUENT, "service_account", name, id)
                if claim.is_ours:
                    yield from self._of_account(id, claim)

    def _of_account(self, account: str, claim: Claim) -> Iterator[Item]:
        cloud = self.vendor.cloud
        for found in cloud.pages("/iam/v2/api-keys", **{"spec.owner": account}):
            yield claim.item(CONFLUENT, "api_key", *_named(found, "spec"), (account,))
        everywhere = crn.organization(crn.CrnScope(self.vendor.organization_id))
        for found in self.vendor.role_bindings(account):
            scope = text(found, "crn_pattern").removeprefix(everywhere) or "/organization"
            yield claim.item(CONFLUENT, "role_binding", f"{text(found, 'role_name')} on {scope}", text(found, "id"), (account,))

    def _claim(self, environment: _Environment, name: str) -> Claim | None:
        """None for what somebody else has in an environment of his own."""
        return self._within(environment.claim, name) if environment.claim else self.names.claim(name)

    def _within(self, container: Claim, name: str) -> Claim:
        """Of what lies in something of ours."""
        claim = self.names.claim(name)
        if claim and claim.is_ours:
            return claim
        return left_over("no stack has it") if claim else attrs.evolve(container, why=_BY_HAND)


def _connectors(vendor: Confluent, route: str) -> list[str]:
    try:
        found = vendor.cloud.get(route)
    except NotFound:  # a cluster that is not ready yet has none
        return []
    return [str(name) for name in found] if isinstance(found, list) else []


def _named(found: dict[str, Any], *place: str) -> tuple[str, str]:
    return text(found, *place, "display_name"), text(found, "id")
