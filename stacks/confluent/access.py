"""Environment, cluster, service accounts with roles and ACLs, and their keys in Secrets Manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import attrs
from constructs import Construct

from config.deployments.confluent_model import Confluent, Topic
from config.deployments.model import Deployment, to_pascal_case
from lambdas import contract
from lambdas.confluent.key_properties import KEY_SERVICES, ApiKeyOutputs, ApiKeyProps
from lambdas.confluent.properties import (
    CLUSTER_NAME,
    AclOutputs,
    AclProps,
    EnvironmentProps,
    FlinkComputePoolOutputs,
    KafkaClusterOutputs,
    KafkaClusterProps,
    RoleBindingOutputs,
    RoleBindingProps,
    ServiceAccountProps,
)
from lambdas.contract import Acl, Role
from stacks.constructs.secrets import Secret, StackSecrets
from stacks.constructs.vendor import VendorProvider, VendorResource

MANAGER: Final = "app_manager"
PRODUCER: Final = "app_producer"
CONSUMER: Final = "app_consumer"
CONNECTOR: Final = "app_connector"
FLINK: Final = "flink_runner"
REGISTRY: Final = "schema_registry"
#: For monitoring: reads the cluster's metrics and its list of tables, and nothing else.
WATCHER: Final = "watcher"
_DESCRIPTIONS: Final = {
    MANAGER: "Manages cluster, topics and Tableflow",
    PRODUCER: "Writes topics",
    CONSUMER: "Reads topics",
    CONNECTOR: "Runs connectors",
    REGISTRY: "Reads and writes schemas",
    FLINK: "Runs Flink statements",
    WATCHER: "Reads the cluster's metrics and the state of its tables",
}

Pool: TypeAlias = VendorResource[FlinkComputePoolOutputs]
Right: TypeAlias = VendorResource[RoleBindingOutputs] | VendorResource[AclOutputs]


@attrs.frozen
class KafkaCluster:
    """The environment and the Kafka cluster of the deployment."""

    environment_id: str
    environment_name: str
    resource: VendorResource[KafkaClusterOutputs]

    @property
    def id(self) -> str:
        return self.resource.outputs.id


def create_kafka_cluster(
    scope: Construct, *, provider: VendorProvider, deployment: Deployment
) -> KafkaCluster:
    confluent = deployment.created_confluent
    environment_id, name = _create_environment(scope, provider, confluent)
    resource = provider.create(
        scope,
        "KafkaCluster",
        KafkaClusterProps(
            environment_id=environment_id,
            region=deployment.aws.region,
            type=confluent.cluster_type,
            availability=confluent.availability,
            max_ecku=confluent.max_ecku,
            deletion_protection=confluent.deletion_protection,
        ),
    )
    return KafkaCluster(environment_id, name, resource)


def _create_environment(scope: Construct, provider: VendorProvider, confluent: Confluent) -> tuple[str, str]:
    """Return the id and name of the environment, which is created unless one exists."""
    if confluent.environment_id and confluent.environment_name:
        return confluent.environment_id, confluent.environment_name
    props = EnvironmentProps(stream_governance=confluent.stream_governance)
    created = provider.create(scope, "Environment", props)
    return created.outputs.id, created.outputs.name


def list_accounts_with_work(deployment: Deployment) -> list[str]:
    """Return the accounts that something of the deployment acts as, or whose keys its clients use."""
    topics = deployment.topics
    has_work = {
        PRODUCER: any(not topic.statement for topic in topics),
        CONSUMER: bool(topics),
        CONNECTOR: any(topic.datagen for topic in topics),
        REGISTRY: bool(topics),
        FLINK: bool(deployment.statements),
    }
    return [name for name in contract.ACCOUNTS if has_work.get(name, True)]


class Accounts(Construct):
    """The service accounts `names`.

    `rights` has the role bindings and ACLs of each account that were added so far.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: VendorProvider,
        cluster: KafkaCluster,
        names: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        self._provider = provider
        self._cluster = cluster
        self._ids = {
            name: provider.create(
                self,
                f"{to_pascal_case(name)}Account",
                ServiceAccountProps(description=_DESCRIPTIONS[name]),
            ).outputs.id
            for name in names
        }
        self.rights: dict[str, list[Right]] = {name: [] for name in names}

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def id(self, name: str) -> str:
        return self._ids[name]

    def add_role_binding(self, role: Role, name: str = "") -> None:
        """Bind a role. `name` is the name of the object, if `role` doesn't contain it."""
        cluster = self._cluster
        scope_ids: dict[str, str] = {}
        if role.scope != "service_account":
            scope_ids["environment_id"] = cluster.environment_id
        if role.scope in ("cluster", "topic", "transactional_id"):
            scope_ids["cluster_id"] = cluster.id
        if role.scope == "subject":
            scope_ids["schema_registry_id"] = cluster.resource.outputs.schema_registry_id
        is_named_subject = role.scope == "subject" and name != role.name
        subject = to_pascal_case(name) if is_named_subject else ""
        binding = self._provider.create(
            self,
            f"{to_pascal_case(role.account)}{role.role}{to_pascal_case(role.scope)}{subject}",
            RoleBindingProps(
                service_account_id=self.id(role.account),
                role=role.role,
                scope=role.scope,
                name=name or role.name,
                **scope_ids,
            ),
        )
        self.rights[role.account].append(binding)

    def add_acl(self, acl: Acl, *, credentials: str, topics: list[str]) -> None:
        """Add one resource for all topics: a stack has at most 500 resources."""
        resource_name = to_pascal_case(acl.resource_type.lower()) if acl.name else "Topics"
        if acl.name != CLUSTER_NAME:
            resource_name += to_pascal_case(acl.name)
        rights_of_manager = list(self.rights[MANAGER])
        entry = self._provider.create(
            self,
            f"{to_pascal_case(acl.account)}{to_pascal_case(acl.operation.lower())}{resource_name}",
            AclProps(
                environment_id=self._cluster.environment_id,
                cluster_id=self._cluster.id,
                credentials=credentials,
                service_account_id=self.id(acl.account),
                resource_type=acl.resource_type,
                resource_name=acl.name or CLUSTER_NAME,
                resource_names=topics,
                pattern_type=acl.pattern_type,
                operation=acl.operation,
            ),
        ).after(*rights_of_manager)
        self.rights[acl.account].append(entry)


@attrs.frozen
class KeyUse:
    """An account's key for a service. `path` is the secret's name after the deployment's prefix."""

    path: str
    account: str
    service: str

    @property
    def id(self) -> str:
        return f"{to_pascal_case(self.path.replace('/', '_'))}Key"


#: Keys that resources use.
KAFKA: Final = KeyUse(f"kafka/{MANAGER}", MANAGER, "kafka")
SCHEMA_REGISTRY: Final = KeyUse("schema_registry", REGISTRY, "schema_registry")
TABLEFLOW: Final = KeyUse("tableflow", MANAGER, "tableflow")
FLINK_KEY: Final = KeyUse("flink", FLINK, "flink")
#: Keys for monitoring.
METRICS: Final = KeyUse("cloud/watcher", WATCHER, "cloud")
TABLES: Final = KeyUse("tableflow/watcher", WATCHER, "tableflow")
#: All keys, each of which exists if its account has work. The connector needs none.
KEYS: Final = (
    KAFKA,
    KeyUse(f"kafka/{PRODUCER}", PRODUCER, "kafka"),
    KeyUse(f"kafka/{CONSUMER}", CONSUMER, "kafka"),
    SCHEMA_REGISTRY,
    TABLEFLOW,
    FLINK_KEY,
    METRICS,
    TABLES,
)


@attrs.frozen
class Key:
    """An API key and the secret that holds it."""

    use: KeyUse
    secret: Secret
    resource: VendorResource[ApiKeyOutputs]

    @property
    def credentials(self) -> str:
        """Return the secret's ARN as an output of the key, so that resources wait until the key works."""
        return self.resource.outputs.secret


def create_key_secrets(secrets: StackSecrets, accounts: Sequence[str]) -> dict[KeyUse, Secret]:
    """Create the secrets of the keys of `accounts`."""
    return {
        use: secrets.empty(
            f"{use.id}Secret", build_secret_path(use), f"API key of {use.account} for {use.service}"
        )
        for use in KEYS
        if use.account in accounts
    }


def build_secret_path(use: KeyUse) -> str:
    return f"confluent/{use.path}"


class Keys(Construct):
    """The API keys of all accounts."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        provider: VendorProvider,
        secrets: Mapping[KeyUse, Secret],
        accounts: Accounts,
        cluster: KafkaCluster,
        region: str,
        pool: Pool | None,
    ) -> None:
        super().__init__(scope, id)
        self._keys: dict[KeyUse, Key] = {}
        for use, secret in secrets.items():
            service = KEY_SERVICES[use.service]
            cluster_id = cluster.id if "cluster_id" in service.needs else ""
            region_of_key = region if "region" in service.needs else ""
            has_pool = "compute_pool_id" in service.optional
            compute_pool_id = pool.outputs.id if pool and has_pool else ""
            props = ApiKeyProps(
                service_account_id=accounts.id(use.account),
                service=use.service,
                secret=secret.arn,
                environment_id=cluster.environment_id,
                cluster_id=cluster_id,
                region=region_of_key,
                compute_pool_id=compute_pool_id,
                description=f"{use.account} for {use.service}",
            )
            self._keys[use] = Key(use, secret, provider.create(self, use.id, props))
        if SCHEMA_REGISTRY in secrets:
            self[SCHEMA_REGISTRY].resource.after(cluster.resource)

    def __getitem__(self, use: KeyUse) -> Key:
        return self._keys[use]

    @property
    def all(self) -> list[Key]:
        return list(self._keys.values())


def list_subjects(role: Role, deployment: Deployment) -> list[str]:
    """Return a role's subjects: all in an environment that the deployment creates; in a shared one, those of
    its own topics.
    """
    if not deployment.created_confluent.environment_id:
        return [role.name]
    # The deployment registers, and so deletes, only schemas of values.
    parts = ("value",) if role.role == "DeveloperManage" else ("key", "value")
    return [f"{topic.name}-{part}" for topic in deployment.topics for part in parts]


def list_topics(acl: Acl, topics: list[Topic]) -> list[str]:
    """Return the topics of an ACL without a name.

    Connectors write Datagen's topics; only Flink writes its own.
    """
    if acl.account == CONNECTOR:
        return [topic.name for topic in topics if topic.datagen]
    return [topic.name for topic in topics if acl.operation == "READ" or not topic.statement]
