"""The objects of a deployment in Confluent Cloud: environments and service accounts by name, and what they
contain or own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.model import CONFLUENT, Item, Ownership, Verdict, orphaned, retained, unknown
from lakeferry.inventory.ownership import VendorNames
from lambdas.confluent import crn
from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import build_path, get_text
from lambdas.shared.errors import Denied, NotFound, Refused, Transient
from lambdas.shared.redaction import ApiKey

#: What follows the name of a resource in the names of its Flink statements.
_OF_STATEMENT: Final = re.compile(r"-[0-9a-f]{8}(-undo)?$")
_REGISTERED: Final = (
    "Datagen or Flink registered it for a topic of this deployment in a shared environment; it is never "
    "deleted"
)
_IN_ENVIRONMENT: Final = (
    "somebody else created it in the deployment's environment, which is not deleted while it is there"
)
_NAMED: Final = "the deployment file names it; somebody else created it"
BY_HAND: Final = "created manually inside a managed resource; deleted together with it"


@attrs.frozen
class _Environment:
    """`ownership` is None if the deployment file names the environment, because somebody else created it."""

    id: str
    ownership: Ownership | None


def list_items(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """Raises CommandFailed, LakeferryError."""
    return list(_Listing(ctx, ctx.confluent(), names).items())


@attrs.frozen
class _Listing:
    ctx: DeploymentContext
    vendor: Confluent
    names: VendorNames

    def items(self) -> Iterator[Item]:
        yield from self._list_hidden()
        yield from self._list_environments()
        yield from self._list_accounts()
        yield retained("created manually: the deployment creates everything with it").item(
            CONFLUENT, "api_key", "Cloud key", self.vendor.cloud.key.id
        )

    def _list_hidden(self) -> Iterator[Item]:
        """Yield one unknown item, without a kind, unless the key's owner is proved to see everything.

        Confluent leaves out of its lists what the owner may not see, and answers as if there were no more. On
        an existing cluster, everything is in its environment, and the key's owner owns the accounts.
        """
        confluent = self.ctx.deployment.created_confluent
        try:
            if confluent.cluster_id:
                self.vendor.require_sight_of_environment(confluent.environment_id or "")
            else:
                self.vendor.require_sight_of_all()
        except (Denied, Transient) as unseen:
            yield unknown(CONFLUENT, "", f"{unseen.kind.code}: {unseen.what}")

    def _list_environments(self) -> Iterator[Item]:
        configured_id = self.ctx.deployment.created_confluent.environment_id
        for document in self.vendor.cloud.pages("/org/v2/environments"):
            id = get_text(document, "id")
            name = get_text(document, "display_name")
            ownership = self.names.ownership(name)
            if id == configured_id:
                yield retained(_NAMED).item(CONFLUENT, "environment", name, id)
                yield from self._list_environment(_Environment(id, None))
                yield from self._list_subjects(id)
            elif ownership:
                yield ownership.item(CONFLUENT, "environment", name, id)
                if ownership.is_ours:
                    yield from self._list_environment(_Environment(id, ownership))

    def _list_subjects(self, environment: str) -> Iterator[Item]:
        """List the subjects in a shared Schema Registry that Datagen or Flink registered for the deployment's
        topics.

        Deleting the connector, the topic or the statement doesn't remove them. Somebody else's topic with the
        same name would have the same subjects.
        """
        topics = self.ctx.deployment.topics
        names = [f"{topic.name}-value" for topic in topics if topic.datagen or topic.statement]
        names += [f"{topic.name}-key" for topic in topics if topic.statement]
        if not names or not self.names.history.had(f"{self.ctx.deployment.prefix}-confluent"):
            return
        secret = self.ctx.confluent_secret("schema_registry")
        why = _REGISTERED
        try:
            listed = self.vendor.registry(environment, self.ctx.secrets.read_key(secret)).get("/subjects")
            subjects = [name for name in names if isinstance(listed, list) and name in listed]
        except (
            NotFound,
            Denied,
            Transient,
            Refused,
        ):  # the key is deleted with the deployment, the subjects aren't
            subjects = names
            why = (
                f"{_REGISTERED}. It may still exist: the key in secret {secret}, which could list it, is gone"
            )
        for name in subjects:
            yield retained(why).item(CONFLUENT, "subject", name, name, (environment,))

    def _list_environment(self, environment: _Environment) -> Iterator[Item]:
        cloud = self.vendor.cloud
        query = {"environment": environment.id}
        for document in cloud.pages("/cmk/v2/clusters", **query):
            if get_text(document, "id") == self.ctx.deployment.created_confluent.cluster_id:
                yield retained(_NAMED).item(
                    CONFLUENT, "kafka_cluster", *_identify(document, "spec"), (environment.id,)
                )
            elif ownership := self._find_owner(environment, get_text(document, "spec", "display_name")):
                yield ownership.item(
                    CONFLUENT, "kafka_cluster", *_identify(document, "spec"), (environment.id,)
                )
                if ownership.is_ours:
                    yield from self._list_cluster(environment, get_text(document, "id"), ownership)
        yield from self._list_integrations(environment)
        pools: dict[str, Ownership] = {}
        for document in cloud.pages("/fcpm/v2/compute-pools", **query):
            if ownership := self._find_owner(environment, get_text(document, "spec", "display_name")):
                yield ownership.item(
                    CONFLUENT, "flink_compute_pool", *_identify(document, "spec"), (environment.id,)
                )
                if ownership.is_ours:
                    pools[get_text(document, "id")] = ownership
        if pools:
            yield from self._with_key(
                "flink", environment, lambda key: self._list_statements(key, environment, pools)
            )

    def _list_integrations(self, environment: _Environment) -> Iterator[Item]:
        own: dict[str, Ownership] = {}
        for document in self.vendor.cloud.pages("/pim/v1/integrations", environment=environment.id):
            if ownership := self._find_owner(environment, get_text(document, "display_name")):
                yield ownership.item(
                    CONFLUENT, "provider_integration", *_identify(document), (environment.id,)
                )
                if ownership.is_ours:
                    own[get_text(document, "id")] = ownership
        if own and self.ctx.deployment.uses_existing_cluster:
            yield from self._with_key(
                "tableflow", environment, lambda key: self._list_own_tables(key, environment, own)
            )

    def _list_cluster(self, environment: _Environment, cluster: str, of_cluster: Ownership) -> Iterator[Item]:
        """List what is in a managed cluster. It has to be deleted before the cluster."""
        parents = (environment.id, cluster)
        route = build_path("connect", "v1", "environments", environment.id, "clusters", cluster, "connectors")
        for name in sorted(_list_connectors(self.vendor, route)):
            yield self._decide_within(of_cluster, name).item(CONFLUENT, "connector", name, name, parents)
        yield from self._with_key(
            "tableflow", environment, lambda key: self._list_tables(key, parents, of_cluster)
        )

    def _list_tables(self, key: ApiKey, parents: tuple[str, str], of_cluster: Ownership) -> Iterator[Item]:
        plane = self.vendor.tableflow(key)
        query = {"environment": parents[0], "spec.kafka_cluster": parents[1]}
        for document in plane.pages("/tableflow/v1/tableflow-topics", **query):
            topic = get_text(document, "spec", "display_name")
            item = of_cluster.item(CONFLUENT, "tableflow_topic", topic, topic, parents)
            is_managed = get_text(document, "spec", "storage", "kind") == "Managed"
            yield attrs.evolve(item, stored_by_vendor=is_managed)
        for document in plane.pages("/tableflow/v1/catalog-integrations", **query):
            yield of_cluster.item(CONFLUENT, "catalog_integration", *_identify(document, "spec"), parents)

    def _list_own_tables(
        self, key: ApiKey, environment: _Environment, integrations: dict[str, Ownership]
    ) -> Iterator[Item]:
        """List the tables and the catalog integration in an existing cluster that use the deployment's
        provider integrations. Nobody else's do.
        """
        cluster_id = self.ctx.deployment.created_confluent.cluster_id or ""
        parents = (environment.id, cluster_id)
        query = {"environment": environment.id, "spec.kafka_cluster": cluster_id}
        plane = self.vendor.tableflow(key)
        for document in plane.pages("/tableflow/v1/tableflow-topics", **query):
            used = get_text(document, "spec", "storage", "provider_integration_id")
            if ownership := integrations.get(used):
                topic = get_text(document, "spec", "display_name")
                yield ownership.item(CONFLUENT, "tableflow_topic", topic, topic, parents)
        if self.ctx.deployment.existing_glue_database:
            return
        for document in plane.pages("/tableflow/v1/catalog-integrations", **query):
            used = get_text(document, "spec", "config", "provider_integration_id")
            if ownership := integrations.get(used):
                yield ownership.item(CONFLUENT, "catalog_integration", *_identify(document, "spec"), parents)

    def _list_statements(
        self, key: ApiKey, environment: _Environment, pools: dict[str, Ownership]
    ) -> Iterator[Item]:
        """List the statements of managed compute pools, and all statements of a managed environment."""
        parents = ("organizations", self.vendor.organization_id, "environments", environment.id)
        for document in self.vendor.flink(self.ctx.region, key).pages(
            build_path("sql", "v1", *parents, "statements")
        ):
            name = get_text(document, "name")
            own = _OF_STATEMENT.sub("", get_text(document, "name"))
            pool = pools.get(get_text(document, "spec", "compute_pool_id")) or environment.ownership
            if ownership := self._decide_within(pool, own) if pool else self.names.ownership(own):
                yield ownership.item(CONFLUENT, "flink_statement", name, name, (environment.id,))

    def _with_key(
        self, what: str, environment: _Environment, look: Callable[[ApiKey], Iterator[Item]]
    ) -> list[Item]:
        """List what only the deployment's own key can read.

        If it can't be read in an orphaned environment, that is no problem: it is deleted with the
        environment.
        """
        kind = {"tableflow": "tableflow_topic", "flink": "flink_statement"}[what]
        secret = self.ctx.confluent_secret(what)
        try:
            return list(look(self.ctx.secrets.read_key(secret)))
        except (NotFound, Denied, Transient, Refused) as refused:
            # Secrets Manager refuses to read a secret that is pending deletion, as if a permission were
            # missing.
            is_orphaned = (
                environment.ownership is not None and environment.ownership.verdict is Verdict.ORPHANED
            )
            return (
                []
                if is_orphaned
                else [unknown(CONFLUENT, kind, f"with the key in secret {secret}: {refused.what}")]
            )

    def _list_accounts(self) -> Iterator[Item]:
        for document in self.vendor.cloud.pages("/iam/v2/service-accounts"):
            id = get_text(document, "id")
            name = get_text(document, "display_name")
            if ownership := self.names.ownership(name):
                yield ownership.item(CONFLUENT, "service_account", name, id)
                if ownership.is_ours:
                    yield from self._list_account(id, ownership)

    def _list_account(self, account: str, ownership: Ownership) -> Iterator[Item]:
        cloud = self.vendor.cloud
        for document in cloud.pages("/iam/v2/api-keys", **{"spec.owner": account}):
            yield ownership.item(CONFLUENT, "api_key", *_identify(document, "spec"), (account,))
        organization = crn.build_organization_crn(crn.CrnScope(self.vendor.organization_id))
        for document in self.vendor.role_bindings(account):
            scope = get_text(document, "crn_pattern").removeprefix(organization) or "/organization"
            yield ownership.item(
                CONFLUENT,
                "role_binding",
                f"{get_text(document, 'role_name')} on {scope}",
                get_text(document, "id"),
                (account,),
            )

    def _find_owner(self, environment: _Environment, name: str) -> Ownership | None:
        """Return None for somebody else's object in an environment that the deployment didn't create."""
        ownership = self.names.ownership(name)
        if ownership is None and environment.ownership is not None:
            return retained(_IN_ENVIRONMENT)
        return self._decide_within(environment.ownership, name) if environment.ownership else ownership

    def _decide_within(self, container: Ownership, name: str) -> Ownership:
        """Return the ownership of the object `name` in a managed container."""
        ownership = self.names.ownership(name)
        if ownership and ownership.is_ours:
            return ownership
        return orphaned("no stack has it") if ownership else attrs.evolve(container, why=BY_HAND)


def _list_connectors(vendor: Confluent, route: str) -> list[str]:
    try:
        document = vendor.cloud.get(route)
    except NotFound:  # a cluster that is not ready yet has none
        return []
    if not isinstance(document, list):
        return []
    return [str(name) for name in document]


def _identify(document: dict[str, Any], *within: str) -> tuple[str, str]:
    return get_text(document, *within, "display_name"), get_text(document, "id")
