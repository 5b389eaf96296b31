"""What is monitored: the deployment's settings, and the ids that are only known after the deployment."""

from __future__ import annotations

import attrs

from lambdas.shared import deployment
from lambdas.shared.deployment import DeploymentSettings


@attrs.frozen
class MonitoredTable:
    """`name` is the table's name in Glue and in metrics, `database` the Glue database, `snowflake` the
    table's full name in Snowflake; the last two are "" if the table isn't there. `managed` says that
    Confluent stores it.
    """

    topic: str
    name: str
    database: str = ""
    snowflake: str = ""
    managed: bool = False


@attrs.frozen
class MonitoredExport(deployment.Export):
    """`topic` is the ARN of the SNS topic of the recipients; "" if they aren't counted."""

    topic: str = ""


@attrs.frozen
class Monitored:
    """`secrets` rotate; `deployer_secrets` hold keys that people created. `error_logs` are topics for records
    that Tableflow can't write. If `tables_exist`, monitoring has no key of the cluster, and Confluent isn't
    asked about the tables.
    """

    cluster: str = ""
    tables: list[MonitoredTable] = attrs.Factory(list)
    exports: list[MonitoredExport] = attrs.Factory(list)
    secrets: list[str] = attrs.Factory(list)
    deployer_secrets: list[str] = attrs.Factory(list)
    error_logs: list[str] = attrs.Factory(list)
    tables_exist: bool = False


def combine(
    settings: DeploymentSettings, *, cluster: str, snowflake_schema: str, topic_arns: str
) -> Monitored:
    """Combine the published settings with the ids.

    `topic_arns` is the common prefix of the SNS topics' ARNs.
    """
    tables = []
    for table in settings.tables:
        database = cluster if table.in_glue else ""
        is_in_snowflake = table.snowflake and snowflake_schema
        snowflake = f"{snowflake_schema}.{table.snowflake}" if is_in_snowflake else ""
        tables.append(
            MonitoredTable(
                topic=table.topic,
                name=table.name,
                database=database,
                snowflake=snowflake,
                managed=table.managed,
            )
        )
    exports = []
    for export in settings.exports:
        topic_arn = f"{topic_arns}{export.export}" if topic_arns else ""
        exports.append(MonitoredExport(**attrs.asdict(export), topic=topic_arn))
    logs = sorted({table.error_log for table in settings.tables if table.error_log})
    return Monitored(
        cluster=cluster,
        tables=tables,
        exports=exports,
        secrets=list(settings.secrets),
        deployer_secrets=list(settings.deployer_secrets),
        error_logs=logs,
        tables_exist=settings.tables_exist,
    )
