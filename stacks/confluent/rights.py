"""Which accounts and keys a deployment has at Confluent, and on which topics and subjects each account has
its roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment, to_pascal_case
from lambdas import contract
from lambdas.contract import Acl, Role

MANAGER: Final = "app_manager"
PRODUCER: Final = "app_producer"
CONSUMER: Final = "app_consumer"
CONNECTOR: Final = "app_connector"
FLINK: Final = "flink_runner"
REGISTRY: Final = "schema_registry"
#: For monitoring: reads the cluster's metrics and its list of tables, and nothing else.
WATCHER: Final = "watcher"
#: For exports and monitoring: reads tables in Confluent's storage.
TABLE_READER: Final = "table_reader"


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
#: The key with which exports read tables in Confluent's storage, and monitoring their age.
MANAGED_TABLES: Final = KeyUse(f"tableflow/{TABLE_READER}", TABLE_READER, "tableflow")
#: Keys that people may bring, by service.
OF_SERVICES: Final = {use.service: use for use in (KAFKA, SCHEMA_REGISTRY, TABLEFLOW, FLINK_KEY)}
#: All keys, each of which exists if its account has work and nobody brings it. The connector needs none.
KEYS: Final = (
    KAFKA,
    KeyUse(f"kafka/{PRODUCER}", PRODUCER, "kafka"),
    KeyUse(f"kafka/{CONSUMER}", CONSUMER, "kafka"),
    SCHEMA_REGISTRY,
    TABLEFLOW,
    FLINK_KEY,
    METRICS,
    TABLES,
    MANAGED_TABLES,
)


def _becomes_table(topic: Topic) -> bool:
    return topic.tableflow is not None


def _is_in_confluents_storage(topic: Topic) -> bool:
    return topic.tableflow is not None and topic.tableflow.is_managed


def _is_managed(topic: Topic) -> bool:
    """Return whether the manager creates the topic or switches on its table."""
    return not topic.existing or _becomes_table(topic)


def _is_produced(topic: Topic) -> bool:
    """Return whether the deployment creates the topic, and no statement writes it."""
    return not topic.existing and not topic.statement


def _is_written_by_flink(topic: Topic) -> bool:
    return topic.statement is not None


def _is_only_read(topic: Topic) -> bool:
    return topic.existing and not _becomes_table(topic)


def _is_read_by_flink(topic: Topic) -> bool:
    return topic.statement is None


#: For which topics an account has a role, on a cluster that somebody else owns, or if the role has no name of
#: its own. Subjects are those of the topics.
_TOPICS_OF_ROLES: Final[Mapping[tuple[str, str, str], Callable[[Topic], bool]]] = {
    (MANAGER, "ResourceOwner", "topic"): _is_managed,
    (MANAGER, "DeveloperRead", "topic"): _is_only_read,
    (MANAGER, "DeveloperRead", "subject"): _becomes_table,
    (PRODUCER, "DeveloperWrite", "topic"): _is_produced,
    (REGISTRY, "DeveloperRead", "subject"): lambda topic: True,
    (REGISTRY, "DeveloperWrite", "subject"): _is_produced,
    (REGISTRY, "DeveloperManage", "subject"): _is_produced,
    (FLINK, "ResourceOwner", "topic"): _is_written_by_flink,
    (FLINK, "ResourceOwner", "subject"): _is_written_by_flink,
    (FLINK, "DeveloperRead", "topic"): _is_read_by_flink,
    (FLINK, "DeveloperRead", "subject"): _is_read_by_flink,
    (TABLE_READER, "DeveloperRead", "topic"): _is_in_confluents_storage,
}


def list_accounts_with_work(deployment: Deployment) -> list[str]:
    """Return the accounts that something of the deployment acts as, or whose keys its clients use.

    On an existing cluster, consumers have accounts already, and monitoring has no rights on the cluster.
    """
    topics = deployment.topics
    confluent = deployment.created_confluent
    brought = confluent.brought_keys
    is_own = confluent.cluster_id is None
    has_work = {
        MANAGER: not {"kafka", "tableflow"} <= brought.keys(),
        PRODUCER: any(_is_produced(topic) for topic in topics),
        CONSUMER: is_own and bool(topics),
        CONNECTOR: any(topic.datagen for topic in topics),
        REGISTRY: bool(topics) and "schema_registry" not in brought,
        FLINK: bool(deployment.statements) and "flink" not in brought,
        WATCHER: is_own,
        TABLE_READER: bool(deployment.managed_tables),
    }
    return [name for name in contract.ACCOUNTS if has_work[name]]


def list_key_uses(deployment: Deployment) -> list[KeyUse]:
    """Return the keys that the deployment creates: those of its accounts, but for those that people bring."""
    accounts = list_accounts_with_work(deployment)
    brought = [OF_SERVICES[service] for service in deployment.created_confluent.brought_keys]
    return [use for use in KEYS if use.account in accounts and use not in brought]


def list_roles(deployment: Deployment) -> tuple[Role, ...]:
    if deployment.created_confluent.cluster_id is None:
        return contract.ROLES
    return contract.ROLES_ON_EXISTING_CLUSTER


def list_names(role: Role, deployment: Deployment) -> list[str]:
    """Return the names of the objects on which a role is bound. Where the scope has no names, such as a
    cluster, that is "".
    """
    if role.scope not in ("topic", "subject"):
        return [role.name]
    if role.name and not deployment.uses_existing_cluster:
        return _list_subjects(role, deployment) if role.scope == "subject" else [role.name]
    is_bound = _TOPICS_OF_ROLES[role.account, role.role, role.scope]
    topics = [topic.name for topic in deployment.topics if is_bound(topic)]
    if role.scope == "topic":
        return topics
    return [f"{topic}-{part}" for topic in topics for part in _list_parts(role)]


def _list_subjects(role: Role, deployment: Deployment) -> list[str]:
    """Return a role's subjects: all in an environment that the deployment creates; in a shared one, those of
    its own topics.
    """
    if not deployment.created_confluent.environment_id:
        return [role.name]
    return [f"{topic.name}-{part}" for topic in deployment.topics for part in _list_parts(role)]


def _list_parts(role: Role) -> tuple[str, ...]:
    """Return of which parts of the records a role has the subjects.

    The deployment registers, and so deletes, only schemas of values.
    """
    return ("value",) if role.role == "DeveloperManage" else ("key", "value")


def list_acls(deployment: Deployment) -> tuple[Acl, ...]:
    """Return the ACLs. On an existing cluster, creating ACLs would need a right on the whole cluster."""
    return contract.ACLS if deployment.created_confluent.cluster_id is None else ()


def list_topics_of_acl(acl: Acl, topics: list[Topic]) -> list[str]:
    """Return the topics of an ACL without a name.

    Connectors write Datagen's topics; only Flink writes its own.
    """
    if acl.account == CONNECTOR:
        return [topic.name for topic in topics if topic.datagen]
    return [topic.name for topic in topics if acl.operation == "READ" or not topic.statement]
