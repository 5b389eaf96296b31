"""Trades flow from the connector through Flink into Tableflow's tables in the bucket and in Glue."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from rehearsal.check import Proof, require
from rehearsal.harness import Harness, until

#: Seconds of the vendor's clock: after the moment, and until the next look of each is over.
_AFTER: Final = 60.0
_FLINK_LOOKS: Final = 40.0
TABLEFLOW_COMMITS: Final = 310.0


def trades_flow(stage: Harness, moment: datetime) -> list[Proof]:
    """Until a little after `moment`."""
    stage.worlds.advance_confluent(max(0.0, moment.timestamp() - stage.worlds.confluent_now()) + _AFTER)
    stage.worlds.advance_confluent(_FLINK_LOOKS)
    stage.worlds.advance_confluent(TABLEFLOW_COMMITS)
    tables = [topic.name for topic in stage.ctx.deployment.tables_in_glue]
    return [_in_glue(stage, table) for table in tables]


def _in_glue(stage: Harness, table: str) -> Proof:
    produced = stage.records(table)
    require(produced, f"topic {table} holds nothing")
    bad = [record for record in produced if "problem" in record]
    require(not bad, f"topic {table} holds {len(bad)} records that can't be read")
    database = stage.output("confluent", "KafkaClusterId")
    shown = until(lambda: _glue_table(stage, database, table), f"Glue shows no table {database}.{table}")
    location = str(shown["Parameters"]["metadata_location"])
    bucket = stage.output("data", "TableflowBucketName")
    require(location.startswith(f"s3://{bucket}/"), f"{table} lies in {location}, not in {bucket}")
    files = [key for key in stage.objects(bucket, "") if key.endswith(".parquet")]
    require(files, f"bucket {bucket} holds no data file")
    seen = f"{len(produced)} records in the topic, {database}.{table} in Glue, {len(files)} data files in {bucket}"
    return Proof(f"{table} flows into an Iceberg table", seen, {"topic": table, "records": len(produced)})


def _glue_table(stage: Harness, database: str, table: str) -> dict[str, Any] | None:
    """Once it has a snapshot."""
    glue = stage.ctx.client("glue")
    try:
        found: dict[str, Any] = glue.get_table(DatabaseName=database, Name=table)["Table"]
    except glue.exceptions.EntityNotFoundException:
        return None
    return found if found.get("Parameters", {}).get("metadata_location") else None
