"""Names, limits and resource types that stacks, CLI and Lambda functions share.

Imports only the standard library.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

#: A property that no resource type reads. A new value makes CloudFormation update a resource whose object is
#: missing.
REPAIR: Final = "repair"
CUSTOM_RESOURCE: Final = "lambdas.handlers.custom_resource.handle"
CLEANUP: Final = "lambdas.handlers.cleanup.handle"
ROTATE: Final = "lambdas.handlers.rotation.rotate"
REVOKE_EXPIRED: Final = "revoke_expired"  # the operation that the schedule sends
NOTIFY: Final = "lambdas.handlers.notifications.on_state_change"
OPEN_LINK: Final = "lambdas.handlers.links.open_link"
WATCH: Final = "lambdas.handlers.monitoring.on_schedule"

#: Seconds before the end of an invocation in which the function starts nothing new.
HANDLER_MARGIN_SECONDS: Final = 30
#: Seconds between two invocations for one resource (`query_interval` of CDK's provider framework).
QUERY_INTERVAL_SECONDS: Final = 5
#: CDK's provider framework waits for at most an hour.
TOTAL_TIMEOUT_SECONDS: Final = 3600

#: Timeout and margin of the rotation function, which waits for a new key within one invocation.
ROTATION_TIMEOUT_SECONDS: Final = 900
ROTATION_MARGIN_SECONDS: Final = 30

#: Environment variables of the functions.
STATE_TABLE: Final = "LAKEFERRY_STATE_TABLE"
#: The same for Snowflake's objects, in the monitoring function, which measures both vendors.
SNOWFLAKE_STATE_TABLE: Final = "LAKEFERRY_SNOWFLAKE_STATE_TABLE"
CLOUD_KEY_SECRET: Final = "LAKEFERRY_CONFLUENT_SECRET"  # noqa: S105  (the name of a variable)
CONFLUENT_URL: Final = "LAKEFERRY_CONFLUENT_URL"
CATALOG_URL: Final = "LAKEFERRY_TABLEFLOW_CATALOG_URL"
#: Of commands only: the simulator's Schema Registry, in place of the one that `[source]` names.
REGISTRY_URL: Final = "LAKEFERRY_SCHEMA_REGISTRY_URL"
PROJECT: Final = "LAKEFERRY_PROJECT"
STAGE: Final = "LAKEFERRY_STAGE"
SNOWFLAKE_ACCOUNT: Final = "LAKEFERRY_SNOWFLAKE_ACCOUNT"
SNOWFLAKE_USER: Final = "LAKEFERRY_SNOWFLAKE_USER"
SNOWFLAKE_ROLE: Final = "LAKEFERRY_SNOWFLAKE_ROLE"
SNOWFLAKE_WAREHOUSE: Final = "LAKEFERRY_SNOWFLAKE_WAREHOUSE"
SNOWFLAKE_SECRET: Final = "LAKEFERRY_SNOWFLAKE_SECRET"  # noqa: S105  (the name of a variable)
SNOWFLAKE_URL: Final = "LAKEFERRY_SNOWFLAKE_URL"
ROTATION_KEEP: Final = "LAKEFERRY_ROTATION_KEEP"
ROTATION_GRACE_DAYS: Final = "LAKEFERRY_ROTATION_GRACE_DAYS"

#: The bucket and the prefix of exports, for the notification and monitoring functions.
LAKE_BUCKET: Final = "LAKEFERRY_BUCKET"
LAKE_PREFIX: Final = "LAKEFERRY_PREFIX"
#: The address of the proxy through which vendors are called.
PROXY: Final = "LAKEFERRY_PROXY"
#: The prefix of the markers that record which mails were sent.
NOTICES_PREFIX: Final = "LAKEFERRY_NOTICES_PREFIX"
#: s3://bucket/key of a JSON object with the tables, exports and secrets. They may exceed the 4 KB that Lambda
#: allows for environment variables.
SETTINGS: Final = "LAKEFERRY_SETTINGS"
#: The common prefix of the ARNs of the exports' SNS topics. An export's name completes it.
TOPIC_ARNS: Final = "LAKEFERRY_TOPIC_ARNS"
#: The id of the Kafka cluster, which is also the name of the tables' Glue database.
CLUSTER: Final = "LAKEFERRY_CLUSTER"
#: The secret with the key that reads tables in Confluent's storage.
TABLE_READER_SECRET: Final = "LAKEFERRY_TABLE_READER_SECRET"  # noqa: S105  (the name of a variable)
#: Tableflow's catalog and the Kafka cluster of these tables, if the secret doesn't have them.
CATALOG_URI: Final = "LAKEFERRY_CATALOG_URI"
CATALOG_CLUSTER: Final = "LAKEFERRY_CATALOG_CLUSTER"
#: The Snowflake schema of the tables, as database.schema.
SNOWFLAKE_SCHEMA: Final = "LAKEFERRY_SNOWFLAKE_SCHEMA"
TABLEFLOW_SECRET: Final = "LAKEFERRY_TABLEFLOW_SECRET"  # noqa: S105  (the name of a variable)
#: The attribute of a mail to one recipient, which the filter policies of subscriptions compare.
RECIPIENT: Final = "recipient"
#: The secret with the keys that sign links, the address at which links open, and the prefix of what became of
#: them.
LINK_SECRET: Final = "LAKEFERRY_LINK_SECRET"  # noqa: S105  (the name of a variable)
LINK_URL: Final = "LAKEFERRY_LINK_URL"
LINKS_PREFIX: Final = "LAKEFERRY_LINKS_PREFIX"
#: Name and stage of the deployment, which each link names as its audience.
DEPLOYMENT: Final = "LAKEFERRY_DEPLOYMENT"
#: The field of that secret with the key that signs, and the one with the keys that it replaced.
LINK_KEY_FIELD: Final = "linkKey"
REPLACED_KEYS_FIELD: Final = "replacedKeys"
#: The first part of the path of a link; the token is the second.
LINK_PATH: Final = "open"
#: LINKS_PREFIX in a bucket of the deployment's own.
LINKS: Final = "links"
#: The days for which the longest link works, for the function that replaces their key.
LINK_DAYS: Final = "LAKEFERRY_LINK_DAYS"
#: The roles of files that mails and links show.
ROLES_WITH_ROWS: Final = ("data", "parquet", "jsonl", "xlsx")
DELIVERED_ROLES: Final = (*ROLES_WITH_ROWS, "report")
#: Number of links that opened nothing.
LINKS_REFUSED: Final = "LinksRefused"
#: The folder of the aggregates in a bucket of the deployment's own.
WAREHOUSE: Final = "warehouse"
#: NOTICES_PREFIX in a bucket of the deployment's own.
NOTICES: Final = "notices"
ALARM_TOPIC: Final = "LAKEFERRY_ALARM_TOPIC"

#: The sender of mails over SES, and the configuration set that they are sent with. "" means SNS.
MAIL_SENDER: Final = "LAKEFERRY_MAIL_SENDER"
MAIL_CONFIGURATION_SET: Final = "LAKEFERRY_MAIL_CONFIGURATION_SET"
#: The tag of a mail over SES that has the export's name.
MAIL_EXPORT_TAG: Final = "export"
#: `source` and `detail-type` of SES's events about mails that did not arrive.
SES_SOURCE: Final = "aws.ses"
UNDELIVERED: Final = ("Email Bounced", "Email Complaint Received", "Email Rejected")

#: `source` and `detail-type` of the event that EventBridge gets about each published window.
EVENT_SOURCE: Final = "lakeferry"
EVENT_TYPE: Final = "Export Window Published"

#: The CloudWatch namespace, and the dimension that each metric has besides the deployment.
METRICS: Final = "Lakeferry"
DEPLOYMENT_DIMENSION: Final = "Deployment"
METRIC_DIMENSIONS: Final = {
    **dict.fromkeys(
        ("TopicAgeHours", "IcebergAgeHours", "GlueAgeHours", "SnowflakeAgeHours", "TableflowStopped"), "Table"
    ),
    # The Kafka cluster whose records Tableflow skipped, or the topic that it writes them to (`on_error =
    # "LOG"`).
    "RowsSkipped": "Source",
    **dict.fromkeys(("ExportLateHours", "RecipientsUnconfirmed"), "Export"),
    **dict.fromkeys(("KeyAgeDays", "RotationOverdueDays", "DeployerKeyAgeDays"), "Secret"),
}
#: Number of failed measurements, by metric.
UNMEASURED: Final = "Unmeasured"
UNMEASURED_DIMENSION: Final = "Metric"
WATCH_MINUTES: Final = 15

#: A resource of this type has one of the properties in CLEANUPS. Its bucket or database is emptied when the
#: whole stack is deleted.
CLEANUP_TYPE: Final = "Custom::LakeferryCleanup"
CLEANUPS: Final = ("bucket", "glue_database")
#: Prefix of its physical id, followed by the property's name and value: cleanup:bucket:NAME.
CLEANUP_ID: Final = "cleanup"

#: A resource of this type has the table of an export's aggregates created in Glue, before the export's first
#: run.
AGGREGATE_TABLE_TYPE: Final = "Custom::LakeferryAggregateTable"
#: Types of custom resources that are no object of a vendor.
OTHER_TYPES: Final = (CLEANUP_TYPE, AGGREGATE_TABLE_TYPE)
#: The end of the name of the Glue job that does so. No export's name has a hyphen.
AGGREGATE_TABLES: Final = "aggregate-tables"
#: The argument of a run of the Glue job that does so, with the id of CloudFormation's request.
REQUEST_ARGUMENT: Final = "--request"

#: Rotation: how many keys of a secret are valid between two rotations, and the grace period of a replaced
#: key, in days.
KEYS_KEPT: Final = 2
GRACE_DAYS: Final = 7.0
#: A tag on the secret of a Snowflake user: the role that may set the user's keys; without it, the user's own
#: role.
ROTATION_ROLE_TAG: Final = "lakeferry:rotation-role"

#: The DynamoDB table of resource states: its partition key, a string, and its time-to-live attribute.
STATE_KEY: Final = "id"
STATE_EXPIRY: Final = "expires"

#: The lowest limit of Confluent's resource types (provider integration). The name of a Flink statement is up
#: to 14 characters longer.
NAME_LENGTH: Final = 60
_HASH_LENGTH: Final = 8


def resource_type(kind: str) -> str:
    """Return the CloudFormation resource type, such as Custom::LakeferryKafkaCluster."""
    return "Custom::Lakeferry" + "".join(word.capitalize() for word in kind.split("_"))


def build_object_name(
    *, project: str, stage: str, region: str, account: str, stack: str, logical_id: str, generation: str
) -> str:
    """Return a resource's name at the vendor: a-z, 0-9 and hyphens, at most NAME_LENGTH characters.

    A readable part is followed by a hash of all arguments, so the name is unique across stages and accounts.
    """
    unique = "/".join((account, region, stack, project, stage, logical_id, generation))
    digest = hashlib.sha256(unique.encode()).hexdigest()[:_HASH_LENGTH]
    readable = name_prefix(project, stage, region) + re.sub(r"[^a-z0-9]+", "-", logical_id.lower())
    return readable[: NAME_LENGTH - _HASH_LENGTH - 1].strip("-") + "-" + digest


def build_recipient_id(deployment: str, export: str, address: str) -> str:
    """Return what stands for an address in filter policies, markers and logs: 16 hexadecimal digits.

    It hides the address from people who read along, not from somebody who guesses it.
    """
    return hashlib.sha256(f"{deployment}/{export}/{address}".encode()).hexdigest()[:16]


def name_recipient_marker(recipient: str) -> str:
    """Return the name of the marker of the mails to one recipient, without its window."""
    return f"recipient-{recipient}"


def name_prefix(project: str, stage: str, region: str) -> str:
    """Return the prefix of the names of a deployment's objects at the vendors."""
    return re.sub(r"[^a-z0-9]+", "-", f"{project}-{stage}-{region}-".lower())


class Role(NamedTuple):
    """A role of one of ACCOUNTS.

    `name` is a pattern, or "" if the scope is one object whose id the stack knows.
    """

    account: str
    role: str
    scope: str
    name: str = ""


class Acl(NamedTuple):
    """An ACL of one of ACCOUNTS. `name` is "" for topics of the deployment."""

    account: str
    operation: str
    resource_type: str
    name: str = ""
    pattern_type: str = "LITERAL"


ACCOUNTS: Final = (
    "app_manager", "app_producer", "app_consumer", "app_connector", "schema_registry", "flink_runner",
    "watcher", "table_reader",
)  # fmt: skip
#: Least privilege. The roles are narrower than the Terraform kickstarter's in two ways: FlinkDeveloper is
#: bound to the environment, not to the organization, and ResourceOwner of transactional ids is limited to
#: Flink's prefix. The manager can read subjects because Tableflow requires it.
ROLES: Final = (
    Role("app_manager", "CloudClusterAdmin", "cluster"),
    Role("app_manager", "ResourceOwner", "provider_integration"),
    Role("app_manager", "DeveloperRead", "subject", "*"),
    Role("schema_registry", "DeveloperRead", "subject", "*"),
    Role("schema_registry", "DeveloperWrite", "subject", "*"),
    # Needed on destroy, to delete the schemas that the deployment registered.
    Role("schema_registry", "DeveloperManage", "subject", "*"),
    Role("flink_runner", "FlinkDeveloper", "environment"),
    Role("flink_runner", "Assigner", "service_account"),
    Role("flink_runner", "ResourceOwner", "topic", "*"),
    Role("flink_runner", "ResourceOwner", "subject", "*"),
    Role("flink_runner", "ResourceOwner", "transactional_id", "_confluent-flink_*"),
    Role("watcher", "MetricsViewer", "cluster"),
    # The narrowest role that may list Tableflow's tables (docs.confluent.io, "Grant Role-Based Access for
    # Tableflow").
    Role("watcher", "Operator", "cluster"),
    # Of topics whose tables are in Confluent's storage (the same page, "Data plane read").
    Role("table_reader", "DeveloperRead", "topic"),
)
#: The roles on a cluster that somebody else owns: on single topics and subjects of the deployment file, and
#: nothing on the whole cluster. `stacks.confluent.rights` says on which ones. Tableflow needs ResourceOwner
#: of a topic (docs.confluent.io, "Grant Role-Based Access for Tableflow"); Flink's transactional ids have a
#: prefix of its own.
ROLES_ON_EXISTING_CLUSTER: Final = (
    Role("app_manager", "ResourceOwner", "topic"),
    Role("app_manager", "DeveloperRead", "topic"),
    Role("app_manager", "ResourceOwner", "provider_integration"),
    Role("app_manager", "DeveloperRead", "subject"),
    Role("app_producer", "DeveloperWrite", "topic"),
    Role("schema_registry", "DeveloperRead", "subject"),
    Role("schema_registry", "DeveloperWrite", "subject"),
    Role("schema_registry", "DeveloperManage", "subject"),
    Role("flink_runner", "FlinkDeveloper", "environment"),
    Role("flink_runner", "Assigner", "service_account"),
    Role("flink_runner", "ResourceOwner", "topic"),
    Role("flink_runner", "DeveloperRead", "topic"),
    Role("flink_runner", "ResourceOwner", "subject"),
    Role("flink_runner", "DeveloperRead", "subject"),
    Role("flink_runner", "ResourceOwner", "transactional_id", "_confluent-flink_*"),
    Role("table_reader", "DeveloperRead", "topic"),
)
#: The consumer reads every topic of the deployment, including those that Flink writes to. Datagen writes
#: previews of its data to topics of its own.
ACLS: Final = (
    Acl("app_producer", "WRITE", "TOPIC"),
    Acl("app_consumer", "READ", "TOPIC"),
    Acl("app_consumer", "READ", "GROUP", "lakeferry"),
    Acl("app_connector", "DESCRIBE", "CLUSTER", "kafka-cluster"),
    Acl("app_connector", "WRITE", "TOPIC"),
    Acl("app_connector", "CREATE", "TOPIC", "data-preview", "PREFIXED"),
    Acl("app_connector", "WRITE", "TOPIC", "data-preview", "PREFIXED"),
)
#: IAM actions of the roles that the vendors assume: on Tableflow's bucket, on its objects, and on the Glue
#: database and its tables. Confluent's examples disagree about s3:DeleteObject. Its documentation lists it,
#: for files that compaction and expiration leave behind.
TABLEFLOW_NEEDS: Final = {
    "bucket": ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"),
    "objects": (
        "s3:GetObject", "s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject", "s3:AbortMultipartUpload",
        "s3:ListMultipartUploadParts",
    ),
    "tables": (
        "glue:GetDatabase", "glue:GetDatabases", "glue:CreateDatabase", "glue:UpdateDatabase",
        "glue:GetTable", "glue:GetTables", "glue:GetTableVersion", "glue:GetTableVersions",
        "glue:CreateTable", "glue:UpdateTable", "glue:DeleteTable",
    ),
}  # fmt: skip
SNOWFLAKE_NEEDS: Final = {
    "bucket": ("s3:GetBucketLocation", "s3:ListBucket"),
    "objects": ("s3:GetObject", "s3:GetObjectVersion"),
    "tables": ("glue:GetCatalog", "glue:GetDatabase", "glue:GetDatabases", "glue:GetTable", "glue:GetTables"),
}


class SnowflakeGrant(NamedTuple):
    """A privilege of one of SNOWFLAKE_ROLES on an object of the deployment, in the terms of snowflake_grant's
    properties.
    """

    role: str
    privilege: str
    on: str


#: Account privileges of the deployer's role, which needs no ACCOUNTADMIN. It owns all other objects, because
#: it creates them.
SNOWFLAKE_ACCOUNT_PRIVILEGES: Final = (
    "CREATE WAREHOUSE",
    "CREATE DATABASE",
    "CREATE ROLE",
    "CREATE USER",
    "CREATE EXTERNAL VOLUME",
    "CREATE INTEGRATION",
)
#: Default name of the deployer's user, role and warehouse.
SNOWFLAKE_DEPLOYER: Final = "LAKEFERRY"
#: `people` can use the views, which leave out personal fields, and `raw` the tables. The deployment grants
#: `raw` to nobody.
SNOWFLAKE_ROLES: Final = ("reader", "rotation", "people", "raw")
#: Those of the reader, the user whose key is in a secret. It measures and checks the tables as `reader`, and
#: `lakeferry query` asks as `people`.
SNOWFLAKE_READER_ROLES: Final = ("reader", "rotation", "people")
#: Nobody can write; the rotation role can only set the user's keys. The schema of `people` is that of the
#: views.
SNOWFLAKE_GRANTS: Final = (
    SnowflakeGrant("reader", "USAGE", "WAREHOUSE"),
    SnowflakeGrant("reader", "USAGE", "DATABASE"),
    SnowflakeGrant("reader", "USAGE", "SCHEMA"),
    SnowflakeGrant("reader", "SELECT", "ICEBERG TABLES IN SCHEMA"),
    SnowflakeGrant("people", "USAGE", "WAREHOUSE"),
    SnowflakeGrant("people", "USAGE", "DATABASE"),
    SnowflakeGrant("people", "USAGE", "SCHEMA"),
    SnowflakeGrant("people", "SELECT", "VIEWS IN SCHEMA"),
    SnowflakeGrant("raw", "USAGE", "WAREHOUSE"),
    SnowflakeGrant("raw", "USAGE", "DATABASE"),
    SnowflakeGrant("raw", "USAGE", "SCHEMA"),
    SnowflakeGrant("raw", "SELECT", "ICEBERG TABLES IN SCHEMA"),
    SnowflakeGrant("rotation", "MODIFY PROGRAMMATIC AUTHENTICATION METHODS", "USER"),
)


def snowflake_refuses(write_mode: str) -> str:
    """Return why Snowflake can't read a Tableflow table in this write mode; "" if it can."""
    if write_mode.upper() in ("", "APPEND"):
        return ""
    return (
        f"write mode {write_mode}: Tableflow may write equality deletes, which Snowflake can't read "
        "(091968): it refuses such a table, or stops refreshing it. In Snowflake, use topics with "
        "cleanup.policy=delete and append-only values only"
    )
