"""What stacks, the operator's commands and the Lambdas agree on: kinds, names, variables, limits. Standard library only."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

#: The layout of properties. Older ones stay readable for ever: stacks send back what they were deployed with.
FORMAT: Final = "1"

ON_EVENT: Final = "lambdas.handlers.custom_resource.on_event"
IS_COMPLETE: Final = "lambdas.handlers.custom_resource.is_complete"

#: Seconds of one invocation, of it those in which nothing is begun any more, and between two invocations for one resource.
HANDLER_TIMEOUT_SECONDS: Final = 120
HANDLER_MARGIN_SECONDS: Final = 30
QUERY_INTERVAL_SECONDS: Final = 5
#: CDK's provider framework waits for an hour at most.
TOTAL_TIMEOUT_SECONDS: Final = 3600

#: Variables of the functions' environment.
LEDGER_TABLE: Final = "LAKEFERRY_LEDGER_TABLE"
CLOUD_KEY_SECRET: Final = "LAKEFERRY_CONFLUENT_SECRET"  # noqa: S105  (the name of a variable)
CONFLUENT_URL: Final = "LAKEFERRY_CONFLUENT_URL"
CATALOG_URL: Final = "LAKEFERRY_TABLEFLOW_CATALOG_URL"
PROJECT: Final = "LAKEFERRY_PROJECT"
STAGE: Final = "LAKEFERRY_STAGE"

#: The ledger's table: a string as partition key, and the attribute by which DynamoDB removes old rows.
LEDGER_KEY: Final = "id"
LEDGER_EXPIRY: Final = "expires"

#: The strictest limit among Confluent's kinds (provider integration). A statement's name adds up to 14 characters to it.
NAME_LENGTH: Final = 60
_MARK_LENGTH: Final = 8


class KindContract(NamedTuple):
    """Properties without which a kind can't be made, those that it takes besides, and what `Fn::GetAtt` gives."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    outputs: tuple[str, ...]


def resource_type(kind: str) -> str:
    """CloudFormation's type of a kind: Custom::LakeferryKafkaCluster."""
    return "Custom::Lakeferry" + "".join(word.capitalize() for word in kind.split("_"))


def object_name(*, project: str, stage: str, region: str, account: str, stack: str, logical_id: str, generation: str) -> str:
    """The vendor's name of a resource: a-z, 0-9 and hyphens, at most NAME_LENGTH characters.

    Readable first; then a mark of everything that tells one resource from all others, so that neither two stacks of a
    stage nor two accounts of an organization ever share a name.
    """
    whole = "/".join((account, region, stack, project, stage, logical_id, generation))
    mark = hashlib.sha256(whole.encode()).hexdigest()[:_MARK_LENGTH]
    readable = name_prefix(project, stage, region) + re.sub(r"[^a-z0-9]+", "-", logical_id.lower())
    return readable[: NAME_LENGTH - _MARK_LENGTH - 1].strip("-") + "-" + mark


def name_prefix(project: str, stage: str, region: str) -> str:
    """How the names of all objects of a deployment begin."""
    return re.sub(r"[^a-z0-9]+", "-", f"{project}-{stage}-{region}-".lower())


def _kind(required: str, optional: str, outputs: str) -> KindContract:
    return KindContract(tuple(required.split()), tuple(optional.split()), tuple(outputs.split()))


#: What each property is: docs/reference/resources.md. A test holds this table against the kinds.
KINDS: Final = {
    "environment": _kind("", "stream_governance", "id name resource_name organization_id stream_governance"),
    "kafka_cluster": _kind(
        "environment_id region",
        "type availability max_ecku deletion_protection",
        "id name bootstrap_servers rest_endpoint resource_name rbac_resource_name "
        "schema_registry_id schema_registry_endpoint schema_registry_resource_name",
    ),
    "service_account": _kind("", "description", "id name principal"),
    "role_binding": _kind(
        "service_account_id role scope", "environment_id cluster_id schema_registry_id region name", "id crn_pattern"
    ),
    "acl": _kind(
        "environment_id cluster_id credentials service_account_id resource_type operation",
        "resource_name pattern_type permission host",
        "id",
    ),
    "api_key": _kind(
        "service_account_id service secret",
        "environment_id cluster_id region compute_pool_id description",
        "key_id secret",
    ),
    "topic": _kind("environment_id cluster_id credentials topic", "partitions config", "name partitions"),
    "schema": _kind("environment_id credentials subject schema", "schema_type compatibility", "subject schema_id version"),
    "connector": _kind(
        "environment_id cluster_id service_account_id",
        "connector_class topic quickstart schema schema_key_field max_interval_ms tasks config secret_config",
        "name id",
    ),
    "flink_compute_pool": _kind("environment_id region", "max_cfu", "id name resource_name rest_endpoint"),
    "flink_statement": _kind(
        "environment_id region credentials compute_pool_id service_account_id catalog database sql",
        "undo_sql properties",
        "name phase",
    ),
    "provider_integration": _kind("environment_id role_arn", "", "id name confluent_role_arn external_id"),
    "tableflow_topic": _kind(
        "environment_id cluster_id credentials topic",
        "storage bucket provider_integration_id table_formats retention_ms data_retention_ms error_handling "
        "error_log_topic metadata_columns await_catalog",
        "topic table_path table_base write_mode",
    ),
    "catalog_integration": _kind("environment_id cluster_id credentials provider_integration_id", "database", "id name database"),
}


class Role(NamedTuple):
    """A role of one of ACCOUNTS. `name` is a pattern, or "" where the scope is one object that the stack knows."""

    account: str
    role: str
    scope: str
    name: str = ""


class Acl(NamedTuple):
    """An entry of one of ACCOUNTS. `name` is "" where it is a topic of the deployment."""

    account: str
    operation: str
    resource_type: str
    name: str = ""
    pattern_type: str = "LITERAL"


ACCOUNTS: Final = ("app_manager", "app_producer", "app_consumer", "app_connector", "schema_registry", "flink_runner")
#: Least privilege, narrower than the Terraform kickstarter's in two places: Flink's developer is one of the environment, not
#: of the organization, and its transactions are Flink's own. The manager reads subjects, which Tableflow asks for.
ROLES: Final = (
    Role("app_manager", "CloudClusterAdmin", "cluster"),
    Role("app_manager", "ResourceOwner", "provider_integration"),
    Role("app_manager", "DeveloperRead", "subject", "*"),
    Role("schema_registry", "DeveloperRead", "subject", "*"),
    Role("schema_registry", "DeveloperWrite", "subject", "*"),
    Role("flink_runner", "FlinkDeveloper", "environment"),
    Role("flink_runner", "Assigner", "service_account"),
    Role("flink_runner", "ResourceOwner", "topic", "*"),
    Role("flink_runner", "ResourceOwner", "subject", "*"),
    Role("flink_runner", "ResourceOwner", "transactional_id", "_confluent-flink_*"),
)
#: The consumer reads every topic of the deployment, those that Flink writes too. Datagen previews its data in a topic of its own.
ACLS: Final = (
    Acl("app_producer", "WRITE", "TOPIC"),
    Acl("app_consumer", "READ", "TOPIC"),
    Acl("app_consumer", "READ", "GROUP", "lakeferry"),
    Acl("app_connector", "DESCRIBE", "CLUSTER", "kafka-cluster"),
    Acl("app_connector", "WRITE", "TOPIC"),
    Acl("app_connector", "CREATE", "TOPIC", "data-preview", "PREFIXED"),
    Acl("app_connector", "WRITE", "TOPIC", "data-preview", "PREFIXED"),
)
