"""Environment, cluster, service accounts, their keys in Secrets Manager, and what each may do."""

from __future__ import annotations

from typing import Final

import attrs

from deployments.model import Confluent, Deployment, Topic
from lambdas import contract
from lambdas.confluent.properties import (
    AclProps,
    ApiKeyProps,
    EnvironmentProps,
    KafkaClusterProps,
    RoleBindingProps,
    ServiceAccountProps,
)
from lambdas.contract import Acl, Role
from stacks.base import words
from stacks.constructs.secrets import SecretsOfStack
from stacks.constructs.vendor_resources import Made, VendorResources

MANAGER: Final = "app_manager"
FLINK: Final = "flink_runner"
#: Sees numbers of the cluster and its list of tables, and nothing else.
WATCHER: Final = "watcher"
#: Whose key for which service, by the path that clients look for. The connector works without a key.
_KEYS: Final = {
    **{f"kafka/{account}": (account, "kafka") for account in (MANAGER, "app_producer", "app_consumer")},
    "schema_registry": ("schema_registry", "schema_registry"),
    "tableflow": (MANAGER, "tableflow"),
    "flink": (FLINK, "flink"),
    "cloud/watcher": (WATCHER, "cloud"),
    "tableflow/watcher": (WATCHER, "tableflow"),
}


@attrs.frozen
class Place:
    """The environment and cluster that everything lies in."""

    environment_id: str
    environment_name: str
    cluster: Made

    @property
    def ids(self) -> dict[str, str]:
        return {"environment_id": self.environment_id, "cluster_id": self.cluster["id"]}


def place(resources: VendorResources, deployment: Deployment) -> Place:
    confluent, region = deployment.confluent, deployment.aws.region
    environment_id, name = _environment(resources, confluent)
    cluster = resources.make(
        KafkaClusterProps,
        "KafkaCluster",
        environment_id=environment_id,
        region=region,
        type=confluent.cluster_type,
        availability=confluent.availability,
        max_ecku=confluent.max_ecku,
        deletion_protection=confluent.deletion_protection,
    )
    return Place(environment_id, name, cluster)


def _environment(resources: VendorResources, confluent: Confluent) -> tuple[str, str]:
    """Id and name."""
    if confluent.environment_id and confluent.environment_name:
        return confluent.environment_id, confluent.environment_name
    made = resources.make(EnvironmentProps, "Environment", stream_governance=confluent.stream_governance)
    return made["id"], made["name"]


@attrs.frozen
class Accounts:
    """`made` are the service accounts, `bound` what each account's roles and entries are, by account."""

    made: dict[str, Made]
    bound: dict[str, list[Made]]

    @classmethod
    def make(cls, resources: VendorResources) -> Accounts:
        made = {
            name: resources.make(ServiceAccountProps, f"{words(name)}Account", description=_WHAT_FOR[name])
            for name in contract.ACCOUNTS
        }
        return cls(made, {name: [] for name in contract.ACCOUNTS})

    def id(self, name: str) -> str:
        return self.made[name]["id"]

    def bind(self, resources: VendorResources, role: Role, where: Place, name: str = "") -> None:
        """`name` is the object's, for roles on one that only the stack knows."""
        cluster = where.cluster
        given = {
            "environment_id": where.environment_id if role.scope != "service_account" else None,
            "cluster_id": cluster["id"] if role.scope in ("cluster", "topic", "transactional_id") else None,
            "schema_registry_id": cluster["schema_registry_id"] if role.scope == "subject" else None,
            "name": name or role.name or None,
        }
        subject = words(name) if role.scope == "subject" and name != role.name else ""
        made = resources.make(
            RoleBindingProps,
            f"{words(role.account)}{role.role}{words(role.scope)}{subject}",
            service_account_id=self.id(role.account),
            role=role.role,
            scope=role.scope,
            **given,
        )
        self.bound[role.account].append(made)

    def enter(self, resources: VendorResources, acl: Acl, where: Place, credentials: str, topics: list[str]) -> Made:
        """One resource for all topics: CloudFormation takes 500 in a stack."""
        shown = "Topics" if not acl.name else words(acl.resource_type.lower())
        shown += words("" if acl.name in ("", "kafka-cluster") else acl.name)
        made = resources.make(
            AclProps,
            f"{words(acl.account)}{words(acl.operation.lower())}{shown}",
            **where.ids,
            credentials=credentials,
            service_account_id=self.id(acl.account),
            resource_type=acl.resource_type,
            resource_name=acl.name or None,
            resource_names=topics or None,
            pattern_type=acl.pattern_type,
            operation=acl.operation,
        )
        self.bound[acl.account].append(made)
        return made


_WHAT_FOR: Final = {
    MANAGER: "Manages cluster, topics and Tableflow",
    "app_producer": "Writes topics",
    "app_consumer": "Reads topics",
    "app_connector": "Runs connectors",
    "schema_registry": "Reads and writes schemas",
    FLINK: "Runs Flink statements",
    WATCHER: "Reads the cluster's metrics and the state of its tables",
}


def empty_secrets(secrets: SecretsOfStack) -> None:
    """Before all resources: the policy of the function that fills them names each."""
    for path, (account, service) in _KEYS.items():
        secrets.empty(f"{_key_name(path)}Secret", f"confluent/{path}", f"API key of {account} for {service}")


def _key_name(path: str) -> str:
    return f"{words(path.replace('/', '_'))}Key"


@attrs.frozen
class Keys:
    """The keys that resources work with; each gives its secret's ARN, and that only once the key works."""

    kafka: Made
    schema_registry: Made
    tableflow: Made
    flink: Made
    all: list[Made]

    @classmethod
    def make(
        cls, resources: VendorResources, secrets: SecretsOfStack, *, accounts: Accounts, where: Place, pool: Made, region: str
    ) -> Keys:
        cluster = {"cluster_id": where.cluster["id"]}
        more = {
            "kafka": cluster,
            "tableflow": {**cluster, "region": region},
            "flink": {"region": region, "compute_pool_id": pool["id"]},
        }
        made = {
            path: resources.make(
                ApiKeyProps,
                _key_name(path),
                service_account_id=accounts.id(account),
                service=service,
                secret=secrets.by_path[f"confluent/{path}"],
                environment_id=where.environment_id,
                description=f"{account} for {service}",
                **more.get(service, {}),
            )
            for path, (account, service) in _KEYS.items()
        }
        registry = made["schema_registry"].after(where.cluster.resource)
        return cls(made[f"kafka/{MANAGER}"], registry, made["tableflow"], made["flink"], list(made.values()))


def subjects_of(role: Role, deployment: Deployment) -> list[str]:
    """The subjects of a role: all in an environment that the deployment creates, its own topics' in one that it shares."""
    if not deployment.confluent.environment_id:
        return [role.name]
    # Only schemas of values are registered, and so deleted, by the deployment.
    parts = ("value",) if role.role == "DeveloperManage" else ("key", "value")
    return [f"{topic.name}-{part}" for topic in deployment.topics for part in parts]


def topics_of(acl: Acl, topics: list[Topic]) -> list[str]:
    """The topics that an entry without a name is for: connectors write what Datagen makes, nobody else writes Flink's."""
    if acl.account == "app_connector":
        return [topic.name for topic in topics if topic.datagen]
    return [topic.name for topic in topics if acl.operation == "READ" or not topic.statement]
