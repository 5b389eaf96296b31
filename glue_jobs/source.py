"""The source table: its current snapshot, changes of its schema, and the events of a window.

The job reads the table's metadata file without Spark, so that it can plan, or refuse, before it needs a JVM. All later steps use
the snapshot in this file. Spark reads that version and prunes files by time. Kafka's metadata has the same column names under
both of Tableflow's naming schemes.
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from exports.contract import Contract
from exports.expressions import WINDOW_FIELDS
from exports.windows import Window
from glue_jobs.contract import CATALOG
from glue_jobs.errors import SourceProblem
from glue_jobs.store import Services, aws_errors, read_location

#: Tableflow's metadata columns under both naming schemes, and their names in expressions.
_METADATA = ("topic", "partition", "headers", "leader-epoch", "offset", "timestamp", "timestamp-type", "raw-key", "raw-value")
NORMALISED = {f"$${name}": f"kafka_{name.replace('-', '_')}" for name in _METADATA} | {
    f"cflt_metadata_{name.replace('-', '_')}": f"kafka_{name.replace('-', '_')}" for name in _METADATA
}

#: The metadata columns that the job reads with any contract.
_REQUIRED = ("kafka_offset", "kafka_partition", "kafka_timestamp")

#: Snapshot operations of Iceberg's spec that add no events: compaction replaces files, and retention deletes rows.
_BRING_NO_EVENTS = ("replace", "delete")
NEVER = datetime.fromtimestamp(0, UTC)


@attrs.frozen
class Field:
    id: int
    path: str
    type: str


@attrs.frozen
class Snapshot:
    """A snapshot of the table that is known and can be read. `has_deletes` says whether rows of its data files are deleted."""

    id: int
    committed_at: datetime
    has_deletes: bool


@attrs.frozen
class PinnedTable:
    """One snapshot of one table. Times are in UTC.

    `current_since` is when the snapshot became current; after a rollback, that is later than its commit. `appended_at` is when
    events were last added, which a compaction doesn't do. It is the epoch if all snapshots that added events have expired (see
    `with_appended_at`). `records` is None if deletes make the number of rows unknown from metadata alone. `upserts` says whether
    rows are replaced and deleted by key. `former` has the field ids that each path ever had. `history` has the pinned snapshot
    and those that it was made from, newest first, as far as they have not expired.
    """

    database: str
    name: str
    uuid: str
    snapshot_id: int
    schema_id: int
    committed_at: datetime
    current_since: datetime
    appended_at: datetime
    records: int | None
    upserts: bool
    fields: dict[str, Field]
    former: dict[str, frozenset[int]]
    history: tuple[Snapshot, ...] = ()

    @property
    def has_deletes(self) -> bool:
        """Return whether deletes make the statistics of data files unreliable."""
        return self.records is None

    @property
    def columns(self) -> list[str]:
        """Return names of the top-level columns, with Kafka's metadata as kafka_…."""
        return [path for path in self.fields if "." not in path and "[]" not in path]

    def renamed_to(self, path: str) -> str | None:
        """Return the current path of a field that was once called `path`, or None."""
        ids = self.former.get(path, frozenset())
        return next((field.path for field in self.fields.values() if field.id in ids), None)


def pin(services: Services, database: str, name: str) -> PinnedTable:
    """Return the table's current snapshot. Raises SourceProblem if there is no such Iceberg table, or no snapshot yet."""
    location = _metadata_location(services, database, name)
    raw = read_location(services, location)
    metadata = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    snapshot_id = metadata.get("current-snapshot-id")
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", [])}
    if snapshot_id not in snapshots:
        raise SourceProblem(
            "EXP-TABLE-NOT-READY",
            f"table {database}.{name} exists but has no snapshot: Tableflow has not materialised the topic yet",
            "Wait until the topic's first commit (about ten minutes), then run again",
        )
    snapshot = snapshots[snapshot_id]
    return PinnedTable(
        database=database,
        name=name,
        uuid=metadata["table-uuid"],
        snapshot_id=snapshot_id,
        schema_id=_schema(metadata, snapshot)["schema-id"],
        committed_at=_instant(snapshot["timestamp-ms"]),
        current_since=_instant(_current_since(metadata, snapshot)),
        appended_at=_last_append(snapshots, snapshot),
        records=_live_records(snapshot.get("summary", {})),
        upserts=any(int(each.get("summary", {}).get("total-equality-deletes", 0)) for each in snapshots.values()),
        fields={field.path: field for field in _fields(_schema(metadata, snapshot))},
        former=_former_ids(metadata),
        history=tuple(_history(snapshots, snapshot)),
    )


def _metadata_location(services: Services, database: str, name: str) -> str:
    with aws_errors(f"asking Glue for the table {database}.{name}"):
        try:
            table = services.glue.get_table(DatabaseName=database, Name=name)["Table"]
        except services.glue.exceptions.EntityNotFoundException:
            raise SourceProblem(
                "EXP-TABLE-MISSING",
                f"the Glue catalog has no table {database}.{name}",
                "Check the database (the Kafka cluster's id) and that Tableflow and its Glue integration are on for the topic",
            ) from None
    location = table.get("Parameters", {}).get("metadata_location")
    if not location:
        raise SourceProblem(
            "EXP-NOT-ICEBERG", f"table {database}.{name} is not an Iceberg table", "Name a table that Tableflow writes"
        )
    return str(location)


def _schema(metadata: dict[str, Any], snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with which VERSION AS OF reads the snapshot."""
    wanted = snapshot.get("schema-id", metadata.get("current-schema-id"))
    return next(schema for schema in metadata["schemas"] if schema["schema-id"] == wanted)


def _current_since(metadata: dict[str, Any], snapshot: dict[str, Any]) -> int:
    entries = [entry for entry in metadata.get("snapshot-log", []) if entry["snapshot-id"] == snapshot["snapshot-id"]]
    return int(entries[-1]["timestamp-ms"] if entries else snapshot["timestamp-ms"])


def _last_append(snapshots: dict[int, dict[str, Any]], snapshot: dict[str, Any] | None) -> datetime:
    """Return the time of the newest snapshot, from this one back, that added events, or the epoch if all of those expired."""
    while snapshot and snapshot.get("summary", {}).get("operation") in _BRING_NO_EVENTS:
        snapshot = snapshots.get(snapshot.get("parent-snapshot-id", -1))
    return _instant(snapshot["timestamp-ms"]) if snapshot else NEVER


def _history(snapshots: dict[int, dict[str, Any]], snapshot: dict[str, Any] | None) -> Iterator[Snapshot]:
    while snapshot:
        has_deletes = _live_records(snapshot.get("summary", {})) is None
        yield Snapshot(snapshot["snapshot-id"], _instant(snapshot["timestamp-ms"]), has_deletes)
        snapshot = snapshots.get(snapshot.get("parent-snapshot-id", -1))


def _live_records(summary: dict[str, str]) -> int | None:
    deletes = int(summary.get("total-position-deletes", 0)) + int(summary.get("total-equality-deletes", 0))
    return int(summary["total-records"]) if "total-records" in summary and not deletes else None


def _former_ids(metadata: dict[str, Any]) -> dict[str, frozenset[int]]:
    """Return every path in any schema of the table, with all field ids that it ever had."""
    ids: dict[str, set[int]] = {}
    for schema in metadata["schemas"]:
        for field in _fields(schema):
            ids.setdefault(field.path, set()).add(field.id)
    return {path: frozenset(field_ids) for path, field_ids in ids.items()}


def _fields(struct: dict[str, Any], prefix: str = "") -> Iterator[Field]:
    for field in struct["fields"]:
        name = NORMALISED.get(field["name"], field["name"]) if not prefix else field["name"]
        yield from _field(field["id"], f"{prefix}{name}", field["type"])


def _field(id_: int, path: str, type_: Any) -> Iterator[Field]:
    kind = type_ if isinstance(type_, str) else type_["type"]
    yield Field(id_, path, kind)
    if kind == "struct":
        yield from _fields(type_, f"{path}.")
    elif kind == "list":
        yield from _field(type_["element-id"], f"{path}[]", type_["element"])


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


#: Iceberg's name of the type without a time zone, which is Avro's local-timestamp-millis and -micros.
LOCAL = "timestamp"
TIMESTAMPS = (LOCAL, "timestamptz")
#: Producers' clocks may be fast. The time of an event that is further ahead of the table's last commit than this is not valid.
_AHEAD = timedelta(days=1)


def events(spark: SparkSession, table: PinnedTable) -> DataFrame:
    """Return all events of the pinned snapshot, in its own schema, with Kafka's metadata as kafka_…."""
    name = ".".join(quoted(part) for part in (CATALOG, table.database, table.name))
    # Not .option("snapshot-id"), which reads old data with the table's newest schema.
    frame = spark.sql(f"SELECT * FROM {name} VERSION AS OF {table.snapshot_id}")  # noqa: S608 - quoted, and a number
    return frame.select([F.col(quoted(name)).alias(NORMALISED.get(name, name)) for name in frame.columns])


def with_appended_at(spark: SparkSession, table: PinnedTable) -> PinnedTable:
    """Return the table with the newest of Kafka's timestamps as `appended_at` if no known snapshot added events.

    Events were added at that time or later.
    """
    if table.appended_at > NEVER:
        return table
    newest = events(spark, table).agg(F.unix_micros(F.max(F.col("kafka_timestamp").cast("timestamp")))).collect()[0][0]
    return attrs.evolve(table, appended_at=min(NEVER + timedelta(microseconds=newest or 0), table.committed_at))


def in_window(contract: Contract, table: PinnedTable, window: Window) -> Column:
    moment = F.col(contract.source.event_time)
    start, end = (as_stored(bound, contract, table) for bound in (window.start, window.end))
    return (moment >= _literal(start, contract, table)) & (moment < _literal(end, contract, table))


def has_invalid_time(contract: Contract, table: PinnedTable) -> Column:
    """Return whether the event time is missing, before `source.min_event_date` or too far in the future; null counts as true."""
    moment = F.col(contract.source.event_time)
    earliest, latest = valid_times(contract, table)
    is_early, is_late = moment < _literal(earliest, contract, table), moment >= _literal(latest, contract, table)
    return moment.isNull() | is_early | is_late


def valid_times(contract: Contract, table: PinnedTable) -> tuple[datetime, datetime]:
    """Return the first valid event time and the (exclusive) end of valid ones, as the event time is stored."""
    earliest = datetime.combine(contract.source.min_event_date, time(), UTC)
    return as_stored(earliest, contract, table), as_stored(table.committed_at + _AHEAD, contract, table)


def as_stored(moment: datetime, contract: Contract, table: PinnedTable) -> datetime:
    """Return the moment as the event time is stored: in UTC or, in a field without a zone, as local time in the window's zone.

    The result's tzinfo is always UTC.
    """
    if table.fields[contract.source.event_time].type != LOCAL:
        return moment
    zone = ZoneInfo(contract.window.zone)
    first = datetime.min.replace(tzinfo=UTC)  # west of Greenwich, local time may be before Python's first year
    return first if moment - first < timedelta(days=1) else moment.astimezone(zone).replace(tzinfo=UTC)


def _literal(stored: datetime, contract: Contract, table: PinnedTable) -> Column:
    literal = instant(stored)
    return literal.cast("timestamp_ntz") if table.fields[contract.source.event_time].type == LOCAL else literal


def require_fields(contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem if a field of the contract is gone, was renamed, was replaced, or has an unsuitable type or name."""
    if lacking := [name for name in _REQUIRED if name not in table.fields]:
        raise SourceProblem(
            "EXP-NOT-TABLEFLOW",
            f"table {table.database}.{table.name} has no columns {', '.join(lacking)}",
            "Name a table that Tableflow writes: it calls them $$offset or cflt_metadata_offset, and so on",
        )
    problems = [problem for path in _named_fields(contract) if (problem := _problem(path, contract, table))]
    event_time = contract.source.event_time
    if event_time in table.fields and (type_ := table.fields[event_time].type) not in TIMESTAMPS:
        problems.append(f"{event_time}, the event time, is {type_}, not a timestamp")
    problems += [f"{name} is the name of the export's own column" for name in WINDOW_FIELDS if name in table.fields]
    if contract.explode and contract.explode.alias in table.columns:
        problems.append(f"a field {contract.explode.alias} has the name that explode.as gives to an item")
    _require_none(problems, table)


def require_same_fields(paths: list[str], contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem if a field was replaced by another one of the same name. `paths` are as in expressions."""
    read = [table_path(path, contract) for path in paths]
    inside = [field for field in table.fields for path in read if _is_inside(field, path)]
    _require_none([problem for path in dict.fromkeys([*read, *inside]) if (problem := _replaced(path, contract, table))], table)


def _require_none(problems: list[str], table: PinnedTable) -> None:
    if problems:
        raise SourceProblem(
            "EXP-SCHEMA-CHANGED",
            f"table {table.database}.{table.name} no longer has what the contract reads: " + "; ".join(dict.fromkeys(problems)),
            "Change the contract (and its version), or put the field back",
        )


def _named_fields(contract: Contract) -> Iterator[str]:
    """Yield the fields that the contract names outside of expressions, as paths of the table. Spark's parser finds the others."""
    for key, path in contract.fields():
        yield table_path(path, contract) if key.startswith(("aggregate", "column")) else path


def table_path(path: str, contract: Contract) -> str:
    """Return the path in the table: a path through the alias of the exploded array becomes one through the array."""
    head, _, rest = path.partition(".")
    if contract.explode and head == contract.explode.alias:
        return f"{contract.explode.array}[].{rest}" if rest else f"{contract.explode.array}[]"
    return path


def _problem(path: str, contract: Contract, table: PinnedTable) -> str | None:
    field = table.fields.get(path)
    if field is None:
        if renamed := table.renamed_to(path):
            return f"{path} was renamed to {renamed}"
        close = difflib.get_close_matches(path, table.fields, n=1)
        return f"{path} is gone" if path in table.former else f"{path} does not exist" + (f" ({close[0]}?)" if close else "")
    return _replaced(path, contract, table)


def _replaced(path: str, contract: Contract, table: PinnedTable) -> str | None:
    """Return a problem if `path`, or a record or array that it is in, was dropped and added again."""
    again = [field for field in table.fields if _is_inside(path, field) and len(table.former[field]) > 1]
    if not again or any(_is_inside(path, meant) for meant in contract.source.replaced_fields):
        return None
    return (
        f"{again[0]} was dropped and added again, so older events would read as null "
        "(list it in source.replaced_fields if that is intended)"
    )


def _is_inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]"))


def instant(moment: datetime) -> Column:
    """Return a Spark literal of type timestamp."""
    return F.lit(moment.astimezone(UTC).isoformat(" ")).cast("timestamp")


def quoted(name: str) -> str:
    """Return the name as a quoted identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
