"""The source table: its current snapshot, changes of its schema, and the events of a window.

All steps after `pin_metadata` use the snapshot that it returns. Spark reads that version and prunes files by
time. Kafka's metadata has the same column names under both of Tableflow's naming schemes.
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from config.exports.allowed_functions import ICEBERG_FIELDS, KAFKA_FIELDS, WINDOW_FIELDS
from config.exports.contract import Contract
from glue_jobs.errors import SourceProblem
from glue_jobs.platform import CATALOG
from glue_jobs.store import Services, read_location, translate_aws_errors
from glue_jobs.table_fields import (
    REQUIRED,
    TIMESTAMP,
    Field,
    is_inside,
    is_top_level,
    metadata_columns,
    nameable,
    named_in_expressions,
    read_fields,
)

#: Snapshot operations of Iceberg's spec that add no events: compaction replaces files, and retention deletes
#: rows.
_BRING_NO_EVENTS = ("replace", "delete")
NEVER = datetime.fromtimestamp(0, UTC)


@attrs.frozen
class Snapshot:
    """A snapshot of the table that is known and can be read.

    `has_deletes` says whether rows of its data files are deleted.
    """

    id: int
    committed_at: datetime
    has_deletes: bool


@attrs.frozen
class PinnedTable:
    """One snapshot of one table. Times are in UTC.

    `current_since` is when the snapshot became current; after a rollback, that is later than its commit.
    `appended_at` is when events were last added, which a compaction doesn't do. It is the epoch if all
    snapshots that added events have expired (see `with_appended_at`). `events` is the number of events; None
    if deletes make it unknown from metadata alone. `upserts` says whether rows are replaced and deleted by
    key. `former` has the field ids that each path ever had. Kafka's metadata are in `fields` as `$kafka_…`
    and, if the topic has no such field, as `kafka_…`. `history` has the pinned snapshot and those that it was
    made from, newest first, as far as they have not expired.
    """

    database: str
    name: str
    uuid: str
    snapshot_id: int
    schema_id: int
    committed_at: datetime
    current_since: datetime
    appended_at: datetime
    events: int | None
    upserts: bool
    fields: dict[str, Field]
    former: dict[str, frozenset[int]]
    history: tuple[Snapshot, ...] = ()

    @property
    def has_deletes(self) -> bool:
        """Return whether deletes make the statistics of data files unreliable."""
        return self.events is None

    @property
    def columns(self) -> list[str]:
        """Return names of the top-level columns, with Kafka's metadata as kafka_…."""
        return [path for path in self.fields if is_top_level(path) and not path.startswith("$")]

    @property
    def ambiguous(self) -> list[str]:
        """Return the names of metadata of Kafka and Iceberg that are also names of fields of the topic."""
        names = [name for name in (*KAFKA_FIELDS, *ICEBERG_FIELDS) if name in self.fields]
        return [name for name in names if self.fields[name] != self.fields.get(f"${name}")]

    def renamed_to(self, path: str) -> str | None:
        """Return the current path of a field that was once called `path`, or None."""
        ids = self.former.get(path, frozenset())
        return next((field.path for field in self.fields.values() if field.id in ids), None)


def pin(services: Services, database: str, name: str) -> PinnedTable:
    """Return the current snapshot of a table in Glue, from its metadata file, without Spark.

    Raises SourceProblem if there is no such Iceberg table, or no snapshot yet.
    """
    location = _find_metadata_location(services, database, name)
    raw = read_location(services, location)
    return pin_metadata(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, database, name)


def pin_metadata(document: str | bytes, database: str, name: str) -> PinnedTable:
    """Return the current snapshot in a table's metadata, which is JSON. Raises SourceProblem if there is
    none.
    """
    metadata = json.loads(document)
    snapshot_id = metadata.get("current-snapshot-id")
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", [])}
    if snapshot_id not in snapshots:
        raise SourceProblem(
            "EXP-TABLE-NOT-READY",
            f"table {database}.{name} exists but has no snapshot: Tableflow has not materialised the topic "
            "yet",
        )
    snapshot = snapshots[snapshot_id]
    return PinnedTable(
        database=database,
        name=name,
        uuid=metadata["table-uuid"],
        snapshot_id=snapshot_id,
        schema_id=_find_schema(metadata, snapshot)["schema-id"],
        committed_at=_from_millis(snapshot["timestamp-ms"]),
        current_since=_from_millis(_find_current_since(metadata, snapshot)),
        appended_at=_find_last_append(snapshots, snapshot),
        events=_count_live_events(snapshot.get("summary", {})),
        upserts=any(
            int(snapshot.get("summary", {}).get("total-equality-deletes", 0))
            for snapshot in snapshots.values()
        ),
        fields=named_in_expressions(read_fields(_find_schema(metadata, snapshot))),
        former=_collect_former_ids(metadata),
        history=tuple(_follow_history(snapshots, snapshot)),
    )


def _find_metadata_location(services: Services, database: str, name: str) -> str:
    with translate_aws_errors(f"asking Glue for the table {database}.{name}"):
        try:
            table = services.glue.get_table(DatabaseName=database, Name=name)["Table"]
        except services.glue.exceptions.EntityNotFoundException:
            raise SourceProblem(
                "EXP-TABLE-MISSING", f"the Glue catalog has no table {database}.{name}"
            ) from None
    location = table.get("Parameters", {}).get("metadata_location")
    if not location:
        raise SourceProblem("EXP-NOT-ICEBERG", f"table {database}.{name} is not an Iceberg table")
    return str(location)


def _find_schema(metadata: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with which VERSION AS OF reads the snapshot."""
    schema_id = snapshot.get("schema-id", metadata.get("current-schema-id"))
    return next(schema for schema in metadata["schemas"] if schema["schema-id"] == schema_id)


def _find_current_since(metadata: dict[str, Any], snapshot: dict[str, Any]) -> int:
    entries = [
        entry for entry in metadata.get("snapshot-log", []) if entry["snapshot-id"] == snapshot["snapshot-id"]
    ]
    return int(entries[-1]["timestamp-ms"] if entries else snapshot["timestamp-ms"])


def _find_last_append(snapshots: dict[int, dict[str, Any]], snapshot: dict[str, Any] | None) -> datetime:
    """Return the time of the newest snapshot, from this one back, that added events, or the epoch if all of
    those expired.
    """
    while snapshot and snapshot.get("summary", {}).get("operation") in _BRING_NO_EVENTS:
        snapshot = snapshots.get(snapshot.get("parent-snapshot-id", -1))
    return _from_millis(snapshot["timestamp-ms"]) if snapshot else NEVER


def _follow_history(
    snapshots: dict[int, dict[str, Any]], snapshot: dict[str, Any] | None
) -> Iterator[Snapshot]:
    while snapshot:
        has_deletes = _count_live_events(snapshot.get("summary", {})) is None
        yield Snapshot(snapshot["snapshot-id"], _from_millis(snapshot["timestamp-ms"]), has_deletes)
        snapshot = snapshots.get(snapshot.get("parent-snapshot-id", -1))


def _count_live_events(summary: dict[str, str]) -> int | None:
    deletes = int(summary.get("total-position-deletes", 0)) + int(summary.get("total-equality-deletes", 0))
    return int(summary["total-records"]) if "total-records" in summary and not deletes else None


def _collect_former_ids(metadata: dict[str, Any]) -> dict[str, frozenset[int]]:
    """Return every path in any schema of the table, with all field ids that it ever had."""
    ids: dict[str, set[int]] = {}
    for schema in metadata["schemas"]:
        for field in read_fields(schema):
            ids.setdefault(field.path, set()).add(field.id)
    return {path: frozenset(field_ids) for path, field_ids in ids.items()}


def _from_millis(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


#: Iceberg's name of the type without a time zone, which is Avro's local-timestamp-millis and -micros.
LOCAL = "timestamp"
#: Iceberg's name of the type that has neither a time of day nor a zone.
DATE = "date"
#: The types that an event time may have.
EVENT_TIMES = (LOCAL, "timestamptz", DATE)


def read_events(spark: SparkSession, table: PinnedTable, catalog: str = CATALOG) -> DataFrame:
    """Return all events of the pinned snapshot from one of Spark's catalogs, in the snapshot's own schema,
    with Kafka's metadata as `PinnedTable.fields` names them.

    Other columns that begin with `$` are left out, because the job's own columns do.
    """
    name = quote_table(catalog, table.database, table.name)
    # Not .option("snapshot-id"), which reads old data with the table's newest schema.
    frame = spark.sql(f"SELECT * FROM {name} VERSION AS OF {table.snapshot_id}")  # noqa: S608 - quoted, and a number
    metadata = metadata_columns(frame.columns)
    fields = [name for name in frame.columns if name not in metadata and not name.startswith("$")]
    renamed = [(name, f"${metadata[name]}") for name in metadata]
    renamed += [(name, metadata[name]) for name in metadata if metadata[name] not in fields]
    return frame.select(*map(quoted, fields), *[F.col(quoted(name)).alias(alias) for name, alias in renamed])


def with_appended_at(table: PinnedTable, read: Callable[[], DataFrame]) -> PinnedTable:
    """Return the table with the newest of Kafka's timestamps as `appended_at` if no known snapshot added
    events. `read` returns its events.

    Events were added at that time or later.
    """
    if table.appended_at > NEVER:
        return table
    # Spark compares the times, because Python has none before year 1 or after year 9999.
    newest = F.coalesce(F.max(TIMESTAMP), make_timestamp_literal(NEVER))  # greatest() and least() skip null
    newest = F.greatest(
        make_timestamp_literal(NEVER), F.least(newest, make_timestamp_literal(table.committed_at))
    )
    (micros,) = read().agg(F.unix_micros(newest)).collect()[0]
    return attrs.evolve(table, appended_at=NEVER + timedelta(microseconds=micros))


def require_fields(contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem if a field of the contract is gone, was renamed, was replaced, or has an
    unsuitable type or name.
    """
    if lacking := [name.removeprefix("$") for name in REQUIRED if name not in table.fields]:
        raise SourceProblem(
            "EXP-NOT-TABLEFLOW", f"table {table.database}.{table.name} has no columns {', '.join(lacking)}"
        )
    _require_unambiguous([path for _, path in contract.fields()], table)
    problems = [
        problem for path in _list_named_fields(contract) if (problem := _find_problem(path, contract, table))
    ]
    event_time = contract.source.event_time
    if event_time in table.fields and (type_ := table.fields[event_time].type) not in EVENT_TIMES:
        problems.append(f"{event_time}, the event time, is {type_}, not a timestamp or a date")
    problems += [
        f"{name} is the name of the export's own column" for name in WINDOW_FIELDS if name in table.fields
    ]
    if contract.explode and contract.explode.alias in (*table.columns, *WINDOW_FIELDS):
        problems.append(f"a field {contract.explode.alias} has the name that explode.as gives to an item")
    _require_none(problems, table)


def require_same_fields(paths: list[str], contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem if a field was replaced by another one of the same name.

    `paths` are as in expressions.
    """
    _require_unambiguous(paths, table)
    read = [table_path(path, contract) for path in paths]
    inside = [field for field in table.fields if any(is_inside(field, path) for path in read)]
    problems = [_find_replaced(path, contract, table) for path in dict.fromkeys([*read, *inside])]
    _require_none([problem for problem in problems if problem], table)


def _require_unambiguous(paths: list[str], table: PinnedTable) -> None:
    """Raises SourceProblem if a path may mean a field of the topic or metadata."""
    names = [name for name in table.ambiguous if any(is_inside(path, name) for path in paths)]
    if names:
        raise SourceProblem(
            "EXP-AMBIGUOUS-FIELD",
            f"the topic of table {table.database}.{table.name} has fields of its own with the names of "
            f"Kafka's or Iceberg's metadata ({', '.join(names)}), and the contract names them",
        )


def _require_none(problems: list[str], table: PinnedTable) -> None:
    if problems:
        raise SourceProblem(
            "EXP-SCHEMA-CHANGED",
            f"table {table.database}.{table.name} no longer has what the contract reads: "
            + "; ".join(dict.fromkeys(problems)),
        )


def _list_named_fields(contract: Contract) -> Iterator[str]:
    """Yield the fields that the contract names outside of expressions, as paths of the table.

    Spark's parser finds the others.
    """
    for key, path in contract.fields():
        yield table_path(path, contract) if key.startswith(("aggregate", "column")) else path


def table_path(path: str, contract: Contract) -> str:
    """Return the path in the table: a path through the alias of the exploded array becomes one through the
    array.
    """
    head, _, rest = path.partition(".")
    if contract.explode and head == contract.explode.alias:
        return f"{contract.explode.array}[].{rest}" if rest else f"{contract.explode.array}[]"
    return path


def _find_problem(path: str, contract: Contract, table: PinnedTable) -> str | None:
    field = table.fields.get(path)
    if field is None:
        if renamed := table.renamed_to(path):
            return f"{path} was renamed to {renamed}"
        if path in table.former:
            return f"{path} is gone"
        known = [name for name in table.fields if not name.startswith("$")]
        close = difflib.get_close_matches(path, known, n=1)
        suggestion = f" ({close[0]}?)" if close else ""
        return f"{path} does not exist{suggestion}"
    return _find_replaced(path, contract, table)


def _find_replaced(path: str, contract: Contract, table: PinnedTable) -> str | None:
    """Return a problem if `path`, or a record, array or map that it is in, was dropped and added again."""
    again = [
        field for field in table.fields if is_inside(path, field) and len(table.former.get(field, ())) > 1
    ]
    if not again or any(is_inside(path, meant) for meant in contract.source.replaced_fields):
        return None
    return (
        f"{again[0]} was dropped and added again, so older events would read as null "
        f"(list {nameable(again[0])} in source.replaced_fields if that is intended)"
    )


def make_timestamp_literal(moment: datetime) -> Column:
    """Return a Spark literal of type timestamp."""
    return F.lit(moment.astimezone(UTC).isoformat(" ")).cast("timestamp")


def quote_table(*parts: str) -> str:
    """Return the name of a table, or of something else with several parts, in Spark SQL."""
    return ".".join(quoted(part) for part in parts)


def quoted(name: str) -> str:
    """Return the name as a quoted identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
