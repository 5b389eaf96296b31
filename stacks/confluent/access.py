"""Environment, cluster, service accounts with roles and ACLs, and their keys in Secrets Manager."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, TypeAlias

from constructs import Construct

from config.deployments.confluent_model import Confluent
from config.deployments.model import Deployment, to_pascal_case
from lambdas.confluent.properties import CLUSTER_NAME, AclProps, FlinkComputePoolOutputs
from lambdas.contract import Acl, Role
from stacks.confluent.rights import (
    CONNECTOR,
    CONSUMER,
    FLINK,
    KAFKA,
    MANAGED_TABLES,
    MANAGER,
    OF_SERVICES,
    PRODUCER,
    REGISTRY,
    SCHEMA_REGISTRY,
    TABLE_READER,
    TABLEFLOW,
    WATCHER,
    KeyUse,
)
from stacks.constructs.confluent_provider import KEYS as KEYS_FOLDER
from stacks.constructs.confluent_provider import ConfluentProvider
from stacks.constructs.kafka import Environment, KafkaCluster
from stacks.constructs.service_account import ApiKey, Right, ServiceAccount, TopicAccess
from stacks.constructs.vendor import VendorResource

_DESCRIPTIONS: Final = {
    MANAGER: "Manages cluster, topics and Tableflow",
    PRODUCER: "Writes topics",
    CONSUMER: "Reads topics",
    CONNECTOR: "Runs connectors",
    REGISTRY: "Reads and writes schemas",
    FLINK: "Runs Flink statements",
    WATCHER: "Reads the cluster's metrics and the state of its tables",
    TABLE_READER: "Reads tables in Confluent's storage",
}

Pool: TypeAlias = VendorResource[FlinkComputePoolOutputs]


def provide_kafka_cluster(
    scope: Construct, *, provider: ConfluentProvider, confluent: Confluent
) -> KafkaCluster:
    """Create the environment and the cluster, unless the deployment file names some that exist."""
    if confluent.environment_id and confluent.environment_name:
        environment = Environment.from_id(
            scope,
            "Environment",
            provider=provider,
            environment_id=confluent.environment_id,
            name=confluent.environment_name,
        )
    else:
        environment = Environment.create(
            scope, "Environment", provider=provider, stream_governance=confluent.stream_governance
        )
    if confluent.cluster_id:
        return KafkaCluster.from_id(
            scope, "KafkaCluster", environment=environment, cluster_id=confluent.cluster_id
        )
    return KafkaCluster.create(
        scope,
        "KafkaCluster",
        environment=environment,
        type=confluent.cluster_type,
        availability=confluent.availability,
        max_ecku=confluent.max_ecku,
        deletion_protection=confluent.deletion_protection,
    )


class Accounts(Construct):
    """The service accounts `names`.

    `rights` has the role bindings and ACLs of each account that were added so far, none for an account that
    doesn't exist.
    """

    def __init__(self, scope: Construct, id: str, *, cluster: KafkaCluster, names: Sequence[str]) -> None:
        super().__init__(scope, id)
        self._cluster = cluster
        self._accounts = {
            name: ServiceAccount(
                self,
                f"{to_pascal_case(name)}Account",
                cluster=cluster,
                description=_DESCRIPTIONS[name],
            )
            for name in names
        }
        self.rights: dict[str, list[Right]] = defaultdict(list)
        for name, account in self._accounts.items():
            self.rights[name] = account.rights

    def __contains__(self, name: str) -> bool:
        return name in self._accounts

    def __getitem__(self, name: str) -> ServiceAccount:
        return self._accounts[name]

    def add_role_binding(self, role: Role, name: str = "") -> None:
        """Bind a role. `name` is the name of the object, if `role` doesn't contain it."""
        is_one_of_several = role.scope in ("subject", "topic") and name not in ("", role.name)
        object_name = to_pascal_case(name) if is_one_of_several else ""
        self[role.account].bind(
            f"{to_pascal_case(role.account)}{role.role}{to_pascal_case(role.scope)}{object_name}",
            role=role.role,
            scope=role.scope,
            name=name or role.name,
        )

    def add_acl(self, acl: Acl, *, credentials: str, topics: list[str]) -> None:
        """Add one resource for all topics: a stack has at most 500 resources."""
        resource_name = to_pascal_case(acl.resource_type.lower()) if acl.name else "Topics"
        if acl.name != CLUSTER_NAME:
            resource_name += to_pascal_case(acl.name)
        rights_of_manager = list(self.rights[MANAGER])
        entry = self._cluster.provider.create(
            self,
            f"{to_pascal_case(acl.account)}{to_pascal_case(acl.operation.lower())}{resource_name}",
            AclProps(
                environment_id=self._cluster.environment_id,
                cluster_id=self._cluster.id,
                credentials=credentials,
                service_account_id=self[acl.account].id,
                resource_type=acl.resource_type,
                resource_name=acl.name or CLUSTER_NAME,
                resource_names=topics,
                pattern_type=acl.pattern_type,
                operation=acl.operation,
            ),
        ).after(*rights_of_manager)
        self.rights[acl.account].append(entry)


def list_brought_keys(confluent: Confluent) -> list[tuple[str, str]]:
    """Return what the keys that people bring are for, as IAM's statements name it, and their secrets."""
    return [(f"{to_pascal_case(service)}Key", secret) for service, secret in confluent.brought_keys.items()]


def build_secret_path(use: KeyUse) -> str:
    return f"{KEYS_FOLDER}/{use.path}"


def name_table_reader_secret(deployment: Deployment) -> str:
    """Return the name of the secret with the key for tables in Confluent's storage, "" if there are none.
    Somebody else's tables are read with a key that is brought.

    Other stacks need the name: the secret goes with the last such table, and CloudFormation refuses to remove
    what another stack imports.
    """
    if not deployment.managed_tables:
        return ""
    if deployment.source and deployment.source.catalog:
        return deployment.source.catalog.key_secret
    return f"{deployment.prefix}/{build_secret_path(MANAGED_TABLES)}"


class Keys(Construct):
    """The API keys of all accounts, and those that people bring. `all` has those that the deployment
    creates.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        uses: Sequence[KeyUse],
        accounts: Accounts,
        pool: Pool | None,
        confluent: Confluent,
    ) -> None:
        super().__init__(scope, id)
        self._rights = accounts.rights
        self._brought = {OF_SERVICES[service]: secret for service, secret in confluent.brought_keys.items()}
        self.all = {
            use: ApiKey(
                self,
                use.id,
                account=accounts[use.account],
                service=use.service,
                compute_pool_id=pool.outputs.id if pool else "",
                description=f"{use.account} for {use.service}",
                secret_id=f"{use.id}Secret",
                secret_path=build_secret_path(use),
            )
            for use in uses
        }

    def __getitem__(self, use: KeyUse) -> ApiKey:
        return self.all[use]

    def __contains__(self, use: KeyUse) -> bool:
        """Return whether the deployment creates the key."""
        return use in self.all

    def credentials(self, use: KeyUse) -> str:
        """Return the secret with a key: its name if somebody brings it, otherwise its ARN."""
        return self._brought[use] if use in self._brought else self.all[use].credentials

    def get_access(self, topic: str, *, becomes_table: bool) -> TopicAccess:
        """Return the keys for a topic. The manager's role bindings and those of the registry's account are
        bound for all topics at once.
        """
        return TopicAccess(
            kafka=self.credentials(KAFKA),
            registry=self.credentials(SCHEMA_REGISTRY) if becomes_table else "",
            tableflow=self.credentials(TABLEFLOW) if becomes_table else "",
            after=(*self._rights[MANAGER], *self._rights[REGISTRY]),
        )
