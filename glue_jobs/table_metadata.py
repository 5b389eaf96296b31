"""The source table as its newest metadata file tells it, read without Spark: what to pin, and what changed in its schema.

Reading it ourselves lets the run plan, and refuse, before a JVM is needed, and pins one snapshot for everything after.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs

from glue_jobs.errors import SourceProblem
from glue_jobs.store import Services, read_location, told

#: Tableflow's metadata columns under both naming schemes, and what expressions call them.
_METADATA = ("topic", "partition", "headers", "leader-epoch", "offset", "timestamp", "timestamp-type", "raw-key", "raw-value")
NORMALISED = {f"$${name}": f"kafka_{name.replace('-', '_')}" for name in _METADATA} | {
    f"cflt_metadata_{name.replace('-', '_')}": f"kafka_{name.replace('-', '_')}" for name in _METADATA
}

#: Operations of Iceberg's spec: compaction rewrites what is there, and retention deletes it.
_WITHOUT_EVENTS = ("replace", "delete")


@attrs.frozen
class Field:
    id: int
    path: str
    type: str


@attrs.frozen
class PinnedTable:
    """One snapshot of one table. `current_since` is when it became the table's state: later than its commit after a
    rollback. `appended_at` is when events last came in: a compaction commits too, but brings none. `records` is None where
    deletes make the count of rows unknown from metadata alone. `upserts`: rows are replaced and deleted by key."""

    database: str
    name: str
    uuid: str
    snapshot_id: int
    committed_at: datetime
    current_since: datetime
    appended_at: datetime
    records: int | None
    upserts: bool
    fields: dict[str, Field]
    former: dict[str, frozenset[int]]

    @property
    def columns(self) -> list[str]:
        """Names of the top-level columns, as the table has them."""
        return [path for path in self.fields if "." not in path and "[]" not in path]

    def renamed_to(self, path: str) -> str | None:
        """The present name of a field that was once called `path`."""
        ids = self.former.get(path, frozenset())
        return next((field.path for field in self.fields.values() if field.id in ids), None)


def pin(services: Services, database: str, name: str) -> PinnedTable:
    """The table's current snapshot. Raises SourceProblem where there is no table, or nothing in it yet."""
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
        committed_at=_instant(snapshot["timestamp-ms"]),
        current_since=_instant(_made_current(metadata, snapshot)),
        appended_at=_instant(_last_append(snapshots, snapshot)["timestamp-ms"]),
        records=_live_records(snapshot.get("summary", {})),
        upserts=any(int(each.get("summary", {}).get("total-equality-deletes", 0)) for each in snapshots.values()),
        fields={field.path: field for field in _fields(_schema(metadata, snapshot))},
        former=_former_ids(metadata),
    )


def _metadata_location(services: Services, database: str, name: str) -> str:
    with told(f"asking Glue for the table {database}.{name}"):
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
    """The schema that VERSION AS OF will read the snapshot with."""
    wanted = snapshot.get("schema-id", metadata.get("current-schema-id"))
    return next(schema for schema in metadata["schemas"] if schema["schema-id"] == wanted)


def _made_current(metadata: dict[str, Any], snapshot: dict[str, Any]) -> int:
    entries = [entry for entry in metadata.get("snapshot-log", []) if entry["snapshot-id"] == snapshot["snapshot-id"]]
    return int(entries[-1]["timestamp-ms"] if entries else snapshot["timestamp-ms"])


def _last_append(snapshots: dict[int, dict[str, Any]], snapshot: dict[str, Any]) -> dict[str, Any]:
    """The newest snapshot, from this one back, that brought events; the oldest one known where all of those expired."""
    while snapshot.get("summary", {}).get("operation") in _WITHOUT_EVENTS:
        parent = snapshots.get(snapshot.get("parent-snapshot-id", -1))
        if parent is None:
            break
        snapshot = parent
    return snapshot


def _live_records(summary: dict[str, str]) -> int | None:
    deletes = int(summary.get("total-position-deletes", 0)) + int(summary.get("total-equality-deletes", 0))
    return int(summary["total-records"]) if "total-records" in summary and not deletes else None


def _former_ids(metadata: dict[str, Any]) -> dict[str, frozenset[int]]:
    """Every name that any schema of the table ever had, with all field ids it stood for."""
    ids: dict[str, set[int]] = {}
    for schema in metadata["schemas"]:
        for field in _fields(schema):
            ids.setdefault(field.path, set()).add(field.id)
    return {path: frozenset(found) for path, found in ids.items()}


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
