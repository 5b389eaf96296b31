"""The files of the pinned snapshot that determine the rows of a run's windows, from Iceberg's scan planning.

They are listed once for the whole run. The list shows how many events a window may have, which files to
sample, and whether any file that can change a window has changed since a run computed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import attrs
from py4j.java_gateway import java_import
from pyspark.sql import DataFrame

from config.exports.contract import Contract
from config.exports.windows import Window
from glue_jobs.catalogs import find_loaded_table
from glue_jobs.event_time import EventTime, to_micros
from glue_jobs.source import EVENT_TIMES, PinnedTable
from glue_jobs.table_fields import OFFSET, PARTITION, TIMESTAMP, Field

#: The lowest and highest value of a column, or None if the file has no statistics for it.
Bounds = tuple[int | None, int | None]


@attrs.frozen
class DataFile:
    """`size` is in bytes. `times` and `received` are the bounds of the event time and of Kafka's timestamp:
    days for a date, and microseconds. `deletes` are the delete files that apply to this file.
    """

    location: str
    size: int
    rows: float
    times: Bounds
    received: Bounds
    #: Whether an event time is null, or may be.
    has_nulls: bool
    deletes: tuple[str, ...] = ()


@attrs.frozen
class PartitionFile:
    """The bounds of the Kafka partition, of the offset and of Kafka's timestamp, in microseconds, in a data
    file.
    """

    partition: Bounds
    offset: Bounds
    received: Bounds

    @property
    def only_partition(self) -> int | None:
        """Return the Kafka partition of all events of the file, or None if there are several or it is
        unknown.
        """
        least, greatest = self.partition
        return least if least == greatest else None

    def may_have(self, partition: int) -> bool:
        return _does_overlap(self.partition, partition, partition + 1)


@attrs.frozen
class TableFiles:
    """The files that a run's windows may need, in the order of their event times."""

    contract: Contract
    table: PinnedTable
    data: list[DataFile]

    def of_window(self, window: Window) -> list[DataFile]:
        """Return the data files that may have events of the window; their `rows` are estimates of the number
        of these events.

        Return all files, unchanged, if the window is applied after deduplication.
        """
        if self._all_count:
            return self.data
        start, end = self.bounds(window)
        return [
            attrs.evolve(file, rows=file.rows * _estimate_share(file.times, start, end))
            for file in self.data
            if _does_overlap(file.times, start, end)
        ]

    def bounds(self, window: Window) -> tuple[int, int]:
        """Return the window's start and end as the event time is stored: in days or microseconds."""
        return self._event_time.to_numbers(self._event_time.bounds([window]))

    def digest(self, window: Window) -> str:
        """Return a hash of all that determines the window's rows and counts beside the contract's file and
        the code.
        """
        relevant = self.of_window(window)
        if not self._all_count:
            relevant = [*relevant, *self._with_invalid_times(window)]
        locations: set[str] = set()
        for file in relevant:
            locations.update((file.location, *file.deletes))
        parts = [str(self.table.schema_id), self.contract.min_event_date.isoformat(), *sorted(locations)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def _event_time(self) -> EventTime:
        return EventTime(self.contract, self.table)

    @property
    def _all_count(self) -> bool:
        return self.contract.window.filter_stage == "after_deduplication"

    def _with_invalid_times(self, window: Window) -> list[DataFile]:
        """Return files that may have events without a valid time that Kafka received during the window.

        They are counted too.
        """
        earliest, valid_end = self._event_time.to_numbers(self._event_time.valid_bounds())
        start = to_micros(window.start)
        end = to_micros(window.end)
        return [
            file
            for file in self.data
            if (file.has_nulls or not _is_within(file.times, earliest, valid_end))
            and _does_overlap(file.received, start, end)
        ]


def list_files(
    events: DataFrame, table: PinnedTable, contract: Contract, windows: list[Window]
) -> TableFiles:
    """List the files that may have events of these windows, or events without a valid time.

    Iceberg plans the scan without a Spark job. It uses the table object that Spark has loaded for `events`,
    because the cache of manifests belongs to it, so Spark does not read the manifests again.
    """
    jvm, loaded = _load_classes(events)
    when = EventTime(contract, table)
    event_time = table.fields[when.field]
    received = table.fields[TIMESTAMP]
    columns = [
        loaded.schemas().get(table.schema_id).findColumnName(field.id) for field in (event_time, received)
    ]
    scan = loaded.newScan().useSnapshot(table.snapshot_id).includeColumnStats(columns)
    if contract.window.filter_stage == "before_deduplication" and when.has_suitable_type:
        scan = scan.filter(when.may_matter(jvm.Expressions, columns[0], windows))
    data = [_read_data_file(task, event_time, received) for task in _plan_tasks(jvm, scan)]
    return TableFiles(contract, table, sorted(data, key=lambda file: (file.times[0] or 0, file.location)))


def list_partition_files(
    events: DataFrame,
    table: PinnedTable,
    snapshot_id: int,
    partitions: list[int],
    *,
    since: datetime | None = None,
) -> list[PartitionFile]:
    """List the data files of a snapshot that may have events of these Kafka partitions that Kafka received
    since then.
    """
    jvm, loaded = _load_classes(events)
    fields = [table.fields[name] for name in (PARTITION, OFFSET, TIMESTAMP)]
    partition, offset, received = (
        loaded.schemas().get(table.schema_id).findColumnName(field.id) for field in fields
    )
    partition_ids = jvm.java.util.ArrayList()
    for number in partitions:
        partition_ids.add(number)
    condition = getattr(jvm.Expressions, "in")(partition, partition_ids)
    if since is not None:
        later = jvm.Expressions.greaterThanOrEqual(received, since.isoformat())
        condition = getattr(jvm.Expressions, "and")(condition, later)
    scan = (
        loaded.newScan()
        .useSnapshot(snapshot_id)
        .includeColumnStats([partition, offset, received])
        .filter(condition)
    )
    files = []
    for task in _plan_tasks(jvm, scan):
        bounds = [_read_bounds(task["data-file"], field) for field in fields]
        files.append(PartitionFile(*bounds))
    return files


def _load_classes(events: DataFrame) -> tuple[Any, Any]:
    """Return the JVM, with Iceberg's expressions imported, and the table that Spark loaded for `events`."""
    jvm: Any = events.sparkSession._jvm
    java_import(jvm, "org.apache.iceberg.expressions.Expressions")
    return jvm, find_loaded_table(events)


def _plan_tasks(jvm: Any, scan: Any) -> Iterator[dict[str, Any]]:
    """Yield the scan's tasks, one for each data file, in the JSON form of Iceberg's REST catalog."""
    planned = scan.planFiles()
    try:
        to_json = jvm.org.apache.iceberg.ScanTaskParser.toJson
        tasks = planned.iterator()
        while tasks.hasNext():
            yield json.loads(to_json(tasks.next()))
    finally:
        planned.close()


def _read_data_file(task: dict[str, Any], event_time: Field, received: Field) -> DataFile:
    """Return the data file of a scan task."""
    file = task["data-file"]
    return DataFile(
        file["file-path"],
        file["file-size-in-bytes"],
        file["record-count"],
        _read_bounds(file, event_time),
        _read_bounds(file, received),
        has_nulls=_read_statistic(file, "null-value-counts", event_time) != 0,
        deletes=tuple(delete["file-path"] for delete in task.get("delete-files", [])),
    )


def _read_statistic(file: dict[str, Any], name: str, field: Field) -> Any:
    statistic = file.get(name, {"keys": [], "values": []})
    return dict(zip(statistic["keys"], statistic["values"], strict=True)).get(field.id)


def _read_bounds(file: dict[str, Any], field: Field) -> Bounds:
    """Return the bounds of an integer, a timestamp or a date; None for a field of another type."""
    if field.type not in _WHOLE_NUMBERS:
        return None, None
    lower = _read_statistic(file, "lower-bounds", field)
    upper = _read_statistic(file, "upper-bounds", field)
    return _decode_number(lower), _decode_number(upper)


_WHOLE_NUMBERS = ("int", "long", *EVENT_TIMES)


def _decode_number(bound: str | None) -> int | None:
    """Return a bound, which is in hex, little-endian (Iceberg spec, "Binary single-value serialization")."""
    return None if bound is None else int.from_bytes(bytes.fromhex(bound), "little", signed=True)


def _does_overlap(bounds: Bounds, start: int, end: int) -> bool:
    least, greatest = bounds
    return (least is None or least < end) and (greatest is None or greatest >= start)


def _is_within(bounds: Bounds, start: int, end: int) -> bool:
    least, greatest = bounds
    return least is not None and greatest is not None and start <= least and greatest < end


def _estimate_share(bounds: Bounds, start: int, end: int) -> float:
    least, greatest = bounds
    if least is None or greatest is None:
        return 1.0
    return max(0.0, (min(greatest + 1, end) - max(least, start)) / (greatest + 1 - least))
