"""What other teams have in the same organization: one object of each kind in each environment and cluster,
with names and properties as close to ours as they may be.

The simulator's state is changed directly, so no code under test makes them.
"""

from __future__ import annotations

import attrs

from simulators.confluent import model
from simulators.confluent.iam import issue_key
from simulators.confluent.kafka_log import KafkaTopic
from simulators.confluent.schemas import Schema

#: Topics whose names contain those of the tests, or differ in capitals.
TOPICS = ("orders-eu", "Orders", "order", "totals-eu", "stock_trades_eu")
#: Names as ours, but for the hash.
_NAME = "lakeferry-test-eu-west-1-it-"
#: That of their provider integration: a UUID, as Confluent makes them.
_EXTERNAL_ID = "7a1c1d8e-52d5-4b0e-9b6a-0c4f4f3f2e11"
#: By kind: what changes without anybody's call to it. A catalog integration shows all tables of a cluster,
#: and usages end some time after an object.
_VOLATILE = {
    "clusters": ("topics", "acls"),
    "schema_registries": ("schemas",),
    "provider_integrations": ("ended_usages",),
    "tableflow_topics": ("synced",),
    "catalog_integrations": ("phase", "message", "last_sync"),
    "statements": ("run",),
}
KINDS = (
    "environments", "clusters", "schema_registries", "service_accounts", "role_bindings", "api_keys",
    "compute_pools", "provider_integrations", "connectors", "statements", "tableflow_topics",
    "catalog_integrations", "networks",
)  # fmt: skip


class Neighbours:
    """The objects of other teams in a simulated organization. `schema` is the Avro schema of their topics."""

    def __init__(self, organization, schema):
        self._org = organization
        self._schema = Schema("AVRO", schema, ())
        self._now = organization.clock.now()

    def create_all(self, *, with_catalog):
        """Add the objects. A cluster can have only one catalog integration, so that is a choice."""
        account = self._add_account()
        for environment in list(self._org.environments.values()):
            self._fill_environment(environment, account)
            for cluster in self._org.list_clusters(environment.id):
                self._fill_cluster(cluster, account, with_catalog=with_catalog)

    def _add(self, record_type, prefix, crn, *values, **fields):
        new = self._org.create_id(prefix)
        return record_type(new, f"{crn}={new}", self._now, self._now, *values, **fields)

    def _add_account(self):
        org = self._org
        account = self._add(
            model.ServiceAccount, "sa", f"{org.crn}/service-account", f"{_NAME}other", "Another team's"
        )
        org.service_accounts[account.id] = account
        issue_key(org, account.id, model.KeyKind.TABLEFLOW, "tableflow", org.crn, delay=0)
        return account

    def _bind(self, account, role, pattern):
        binding = self._add(
            model.RoleBinding,
            "rb",
            f"{self._org.crn}/role-binding",
            f"User:{account.id}",
            role,
            pattern,
            self._now,
        )
        self._org.role_bindings[binding.id] = binding

    def _fill_environment(self, environment, account):
        org = self._org
        self._bind(account, "EnvironmentAdmin", environment.crn)
        pool = self._add(
            model.ComputePool,
            "lfcp",
            f"{environment.crn}/flink-region=aws.{org.region}/compute-pool",
            *(environment.id, org.region, f"{_NAME}00000000", 5, False),
            phase="PROVISIONED",
        )
        org.compute_pools[pool.id] = pool
        network = self._add(model.Content, "n", f"{environment.crn}/network", environment.id, f"{_NAME}net")
        org.networks[network.id] = network
        statement = self._add(
            model.Statement,
            "st",
            f"{environment.crn}/statement",
            *(environment.id, f"{_NAME}00000000-00000000", "SELECT 1", {}, pool.id, account.id),
            phase="COMPLETED",
        )
        org.statements[environment.id, statement.name] = statement
        provider = self._add(
            model.ProviderIntegration,
            "cspi",
            f"{environment.crn}/provider-integration",
            *(
                environment.id,
                f"{_NAME}11111111",
                "arn:aws:iam::210987654321:role/theirs",
                "arn:aws:iam::123456789012:role/tableflow-of-others",
                _EXTERNAL_ID,
            ),
        )
        org.provider_integrations[provider.id] = provider
        if registry := org.find_registry(environment.id):
            for topic in TOPICS:
                registry.schemas.register(f"{topic}-value", self._schema)
            registry.schemas.levels[f"{TOPICS[0]}-value"] = "FULL"

    def _fill_cluster(self, cluster, account, *, with_catalog):
        org = self._org
        (provider, *_) = [
            integration
            for integration in org.provider_integrations.values()
            if integration.environment == cluster.environment and integration.external_id == _EXTERNAL_ID
        ]
        for topic in TOPICS:
            cluster.topics[topic] = KafkaTopic(topic, 3, {"retention.ms": "1000"}, self._now, self._now)
            self._bind(account, "ResourceOwner", cluster.build_crn("topic", topic))
            for name in (topic, "orders"):
                cluster.acls.append(_build_acl(account.id, name))
        issue_key(org, account.id, model.KeyKind.KAFKA, cluster.id, cluster.scope, delay=0)
        table = model.TableflowTopic(
            TOPICS[0], f"{cluster.build_crn('topic', TOPICS[0])}/tableflow=iceberg", self._now, self._now,
            cluster.environment, cluster.id, "their-lake", provider.id, {}, "APPEND", phase="RUNNING",
            table_path="s3://their-lake//10/11/org/env/lkc/v1/table",
        )  # fmt: skip
        org.tableflow_topics[table.key] = table
        connector = self._add(
            model.Connector,
            "lcc",
            f"{cluster.scope}/connector",
            cluster.id,
            f"{_NAME}22222222",
            {"connector.class": "DatagenSource", "kafka.topic": "orders", "name": f"{_NAME}22222222"},
            state="RUNNING",
        )
        org.connectors[connector.id] = connector
        if with_catalog:
            catalog = self._add(
                model.CatalogIntegration,
                "tci",
                f"{cluster.scope}/catalog-integration",
                *(cluster.environment, cluster.id, "theirs", provider.id, ""),
                phase="CONNECTED",
            )
            org.catalog_integrations[catalog.id] = catalog


def _build_acl(account, topic):
    return {
        "resource_type": "TOPIC",
        "resource_name": topic,
        "pattern_type": "LITERAL",
        "principal": f"User:{account}",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }


def describe(organization):
    """Return everything that an organization has, by kind and key, without what changes by itself."""
    found = {}
    for kind in KINDS:
        for key, record in getattr(organization, kind).items():
            fields = attrs.asdict(record, recurse=False)
            for name in _VOLATILE.get(kind, ()):
                fields.pop(name)
            found[kind, key] = repr(sorted(fields.items()))
    for cluster in organization.clusters.values():
        for name, topic in cluster.topics.items():
            found["topics", (cluster.id, name)] = repr((topic.partitions, topic.settings, topic.deleting))
        for number, acl in enumerate(sorted(map(repr, cluster.acls))):
            found["acls", (cluster.id, acl)] = str(number >= 0)
    for registry in organization.schema_registries.values():
        for name in registry.schemas.subjects(deleted=True):
            versions = registry.schemas.versions(name, deleted=True)
            found["subjects", (registry.id, name)] = repr((versions, registry.schemas.levels.get(name)))
    return found


def find_changed(before, after):
    """Return what was changed or is gone of `before`."""
    return sorted(str(key) for key, text in before.items() if after.get(key) != text)
