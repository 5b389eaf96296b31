"""The tables: Glue, Athena and Snowflake show them, and their data is new."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from config.deployments.confluent_model import Topic
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.health.freshness import Readers, read_tables
from lakeferry.verification.claims import Claim, explain_absent
from lakeferry.verification.evidence import Answer, Asked, Finding
from lambdas.shared.aws import read_error_code

GLUE_SHOWS: Final = "Glue shows the table, in the bucket of the file"
ATHENA_SHOWS: Final = "Athena shows the table"
_CATALOG: Final = "AwsDataCatalog"
_ABSENT: Final = ("EntityNotFoundException", "MetadataException", "InvalidRequestException")
#: Who is asked about each hop of a table.
_HOPS: Final = {
    "topic": "Confluent's Metrics API: when records were received",
    "tableflow": "Tableflow's API: the topic's phase",
    "iceberg": "the table's metadata: when the last snapshot was committed",
    "glue": "Glue: GetTable",
    "snowflake": "Snowflake: SYSTEM$AUTO_REFRESH_STATUS, with the login of the deployment's reader",
}


def find_glue_table(ctx: DeploymentContext, database: str, table: str) -> dict[str, Any] | None:
    """Return the table if Glue has it with a snapshot. Raises ClientError, BotoCoreError."""
    glue = ctx.client("glue")
    try:
        entry: dict[str, Any] = glue.get_table(DatabaseName=database, Name=table)["Table"]
    except glue.exceptions.EntityNotFoundException:
        return None
    return entry if entry.get("Parameters", {}).get("metadata_location") else None


def find_table_bucket(ctx: DeploymentContext) -> str:
    """Return the bucket in which Tableflow writes the tables that Glue shows. Raises CommandFailed."""
    source = ctx.deployment.source
    if source and source.glue:
        return source.glue.bucket
    return stacks.require_output(ctx, "data", "TableflowBucketName")


def find_database(ctx: DeploymentContext) -> str:
    """Return the Glue database of the tables. Raises CommandFailed."""
    existing = ctx.deployment.existing_glue_database
    return existing or stacks.require_output(ctx, "confluent", "KafkaClusterId")


def check_tables(ctx: DeploymentContext) -> list[Finding]:
    """Check that the catalogs show the tables of the file."""
    if not ctx.deployment.tables:
        asked = Asked(Claim.EVENTS_FLOW, "tables", "nobody")
        return [asked.not_asked(explain_absent(Claim.STATUS, ctx.deployment))]
    findings = []
    for topic in ctx.deployment.tables_in_glue:
        asked = Asked(GLUE_SHOWS, topic.table, "Glue: GetTable")
        findings.append(asked.look(partial(_look_in_glue, ctx, topic)))
        asked = Asked(ATHENA_SHOWS, topic.table, "Athena: GetTableMetadata")
        findings.append(asked.look(partial(_look_in_athena, ctx, topic)))
    return findings


def _look_in_glue(ctx: DeploymentContext, topic: Topic) -> Answer:
    bucket = find_table_bucket(ctx)
    database = find_database(ctx)
    with translate_aws_errors(f"reading table {database}.{topic.table}"):
        entry = find_glue_table(ctx, database, topic.table)
    if entry is None:
        return Answer(False, f"there is no Iceberg table {database}.{topic.table}")
    location = str(entry["Parameters"]["metadata_location"])
    return Answer(location.startswith(f"s3://{bucket}/"), f"{database}.{topic.table} at {location}")


def _look_in_athena(ctx: DeploymentContext, topic: Topic) -> Answer:
    database = find_database(ctx)
    with translate_aws_errors(f"asking Athena for {database}.{topic.table}"):
        try:
            shown = ctx.client("athena").get_table_metadata(
                CatalogName=_CATALOG, DatabaseName=database, TableName=topic.table
            )["TableMetadata"]
        except ClientError as error:
            if read_error_code(error) not in _ABSENT:
                raise
            return Answer(None, f"Athena doesn't show {database}.{topic.table}, or not to you")
    table_type = str(shown.get("Parameters", {}).get("table_type", ""))
    return Answer(table_type.upper() == "ICEBERG", f"{database}.{topic.table}, {table_type or 'no'} table")


def check_hops(readers: Readers) -> list[Finding]:
    """Check how new each table is at every hop, as `lakeferry status` does."""
    hours = readers.ctx.deployment.alerts.table_stale_hours
    findings = []
    for table in read_tables(readers, hours):
        for hop, observation in table.hops.items():
            asked = Asked(Claim.STATUS, f"{table.table}, {hop}", _HOPS[hop])
            new = "" if observation.value is None else f"{observation.value:.2f} hours old"
            findings.append(asked.observed(observation, new))
    return findings
