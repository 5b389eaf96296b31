"""Environment, cluster, service accounts with roles and ACLs, and their keys in Secrets Manager."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import attrs
from constructs import Construct

from config.deployments.confluent_model import Confluent
from config.deployments.model import Deployment, to_pascal_case
from lambdas.confluent.existing_properties import ExistingClusterProps
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
from stacks.confluent.rights import (
    CONNECTOR,
    CONSUMER,
    FLINK,
    MANAGED_TABLES,
    MANAGER,
    OF_SERVICES,
    PRODUCER,
    REGISTRY,
    SCHEMA_REGISTRY,
    TABLE_READER,
    WATCHER,
    KeyUse,
    list_key_uses,
)
from stacks.constructs.secrets import Secret, StackSecrets, may_read_secret, name_secret_arn
from stacks.constructs.statements import Statement
from stacks.constructs.vendor import VendorProvider, VendorResource

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
Right: TypeAlias = VendorResource[RoleBindingOutputs] | VendorResource[AclOutputs]


@attrs.frozen
class KafkaCluster:
    """The environment and the Kafka cluster of the deployment, created or looked up."""

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
    region = deployment.aws.region
    props: KafkaClusterProps | ExistingClusterProps
    if confluent.cluster_id:
        props = ExistingClusterProps(
            environment_id=environment_id, cluster_id=confluent.cluster_id, region=region
        )
    else:
        props = KafkaClusterProps(
            environment_id=environment_id,
            region=region,
            type=confluent.cluster_type,
            availability=confluent.availability,
            max_ecku=confluent.max_ecku,
            deletion_protection=confluent.deletion_protection,
        )
    return KafkaCluster(environment_id, name, provider.create(scope, "KafkaCluster", props))


def _create_environment(scope: Construct, provider: VendorProvider, confluent: Confluent) -> tuple[str, str]:
    """Return the id and name of the environment, which is created unless one exists."""
    if confluent.environment_id and confluent.environment_name:
        return confluent.environment_id, confluent.environment_name
    props = EnvironmentProps(stream_governance=confluent.stream_governance)
    created = provider.create(scope, "Environment", props)
    return created.outputs.id, created.outputs.name


class Accounts(Construct):
    """The service accounts `names`.

    `rights` has the role bindings and ACLs of each account that were added so far, none for an account that
    doesn't exist.
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
        self.rights: dict[str, list[Right]] = defaultdict(list)

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
        is_one_of_several = role.scope in ("subject", "topic") and name not in ("", role.name)
        object_name = to_pascal_case(name) if is_one_of_several else ""
        binding = self._provider.create(
            self,
            f"{to_pascal_case(role.account)}{role.role}{to_pascal_case(role.scope)}{object_name}",
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
class Key:
    """An API key and the secret that holds it."""

    use: KeyUse
    secret: Secret
    resource: VendorResource[ApiKeyOutputs]


def may_read_brought_keys(scope: Construct, confluent: Confluent) -> list[Statement]:
    statements: list[Statement] = []
    for service, secret in confluent.brought_keys.items():
        key_name = f"{to_pascal_case(service)}Key"
        statements += may_read_secret(scope, key_name, name_secret_arn(scope, secret))
    return statements


def create_key_secrets(secrets: StackSecrets, deployment: Deployment) -> dict[KeyUse, Secret]:
    """Create the secrets of the keys that the deployment creates."""
    return {
        use: secrets.empty(
            f"{use.id}Secret", build_secret_path(use), f"API key of {use.account} for {use.service}"
        )
        for use in list_key_uses(deployment)
    }


def build_secret_path(use: KeyUse) -> str:
    return f"confluent/{use.path}"


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
    """The API keys of all accounts, and those that people bring."""

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
        confluent: Confluent,
    ) -> None:
        super().__init__(scope, id)
        self._keys: dict[KeyUse, Key] = {}
        self._brought = {OF_SERVICES[service]: secret for service, secret in confluent.brought_keys.items()}
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

    def __contains__(self, use: KeyUse) -> bool:
        """Return whether the deployment creates the key."""
        return use in self._keys

    def credentials(self, use: KeyUse) -> str:
        """Return the secret with a key: its name if somebody brings it, otherwise its ARN as an output of the
        key, so that resources wait until the key works.
        """
        return self._brought[use] if use in self._brought else self._keys[use].resource.outputs.secret

    @property
    def all(self) -> list[Key]:
        return list(self._keys.values())
