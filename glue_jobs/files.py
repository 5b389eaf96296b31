"""The data and delete files of the pinned snapshot, and which of them decide a window's rows.

One query of Iceberg's metadata for a whole run. It tells how many events a window may have, which files to sample, and whether
anything that can change the window has changed since a run computed it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from datetime import datetime
from typing import Final

import attrs
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from exports.contract import Contract
from exports.windows import Window
from glue_jobs import source
from glue_jobs.source import PinnedTable

#: Iceberg's values of `content`.
_DATA, _EQUALITY_DELETES = 0, 2
#: Iceberg's id of the column of a position delete file that names data files ("Reserved Field IDs" of the spec).
_FILE_PATH: Final = 2147483546
#: `status` of an entry whose file the snapshot no longer has.
_DELETED: Final = 2

#: Least and greatest value of a column, None where the file doesn't say.
Bounds = tuple[int | None, int | None]


@attrs.frozen
class DataFile:
    """`times` and `received` are bounds of event time and Kafka's timestamp in microseconds, as stored. `sequence` is the commit
    in which the file was added: deletes of later commits apply to it."""

    location: str
    size: int
    rows: float
    sequence: int
    times: Bounds
    received: Bounds
    #: Whether an event time is null, or may be.
    has_nulls: bool


@attrs.frozen
class DeleteFile:
    """`paths` are bounds of the names of data files from which a position delete file deletes rows; None for all."""

    location: str
    sequence: int
    is_equality: bool
    paths: tuple[str | None, str | None]

    def applies_to(self, paths: list[str], oldest: int) -> bool:
        """Return whether it may delete rows of data files with these names, in order, of which `oldest` is the least sequence
        number (Iceberg's spec, "Scan Planning").
        """
        if self.is_equality:
            return oldest < self.sequence
        least, greatest = self.paths
        first = 0 if least is None else bisect_left(paths, least)
        return first < len(paths) and (greatest is None or paths[first] <= greatest)


@attrs.frozen
class TableFiles:
    """All files of the snapshot, data files in the order of their event times."""

    contract: Contract
    table: PinnedTable
    data: list[DataFile]
    deletes: list[DeleteFile]

    def of_window(self, window: Window) -> list[DataFile]:
        """Return the data files that may hold events of the window, each with about as many `rows` as it may have of them; all
        files where the window is applied after deduplication.
        """
        if self._all_count:
            return self.data
        start, end = (_micros(source.as_stored(one, self.contract, self.table)) for one in (window.start, window.end))
        return [
            attrs.evolve(file, rows=file.rows * _share(file.times, start, end))
            for file in self.data
            if _overlap(file.times, start, end)
        ]

    def digest(self, window: Window) -> str:
        """Return a hash of all files that decide what the window's file and counts are: while it stays the same, so do they."""
        relevant = self.of_window(window) if self._all_count else [*self.of_window(window), *self._with_invalid_times(window)]
        paths = sorted({file.location for file in relevant})
        oldest = min((file.sequence for file in relevant), default=0)
        deletes = [file.location for file in self.deletes if relevant and file.applies_to(paths, oldest)]
        return hashlib.sha256("\n".join([str(self.table.schema_id), *paths, *sorted(deletes)]).encode()).hexdigest()

    @property
    def _all_count(self) -> bool:
        return self.contract.window.filter_stage == "after_deduplication"

    def _with_invalid_times(self, window: Window) -> list[DataFile]:
        """Return files that may hold events without a valid time that Kafka received during the window: they are counted too."""
        earliest, latest = map(_micros, source.valid_times(self.contract, self.table))
        start, end = _micros(window.start), _micros(window.end)
        return [
            file
            for file in self.data
            if (file.has_nulls or not _within(file.times, earliest, latest)) and _overlap(file.received, start, end)
        ]


def list_files(spark: SparkSession, table: PinnedTable, contract: Contract) -> TableFiles:
    """List the files of the pinned snapshot from its manifests."""
    event_time, received = table.fields[contract.source.event_time], table.fields.get("kafka_timestamp")
    has_times = event_time.type in source.TIMESTAMPS
    file = F.col("data_file")
    read = source.snapshot(spark, table, "entries").filter(F.col("status") != _DELETED)
    entries = read.select(
        file["content"].alias("content"),
        file["file_path"].alias("location"),
        file["file_size_in_bytes"].alias("size"),
        file["record_count"].alias("rows"),
        "sequence_number",
        file["null_value_counts"][event_time.id].alias("nulls"),
        *_bounds("time", event_time.id),
        *_bounds("received", received.id if received else 0),
        *_bounds("path", _FILE_PATH),
        file["referenced_data_file"].alias("referenced"),
    ).collect()
    data = [
        DataFile(
            one.location,
            one.size,
            one.rows,
            one.sequence_number,
            (_time(one.time_least), _time(one.time_greatest)) if has_times else (None, None),
            (_time(one.received_least), _time(one.received_greatest)),
            has_nulls=one.nulls != 0,
        )
        for one in entries
        if one.content == _DATA
    ]
    deletes = [
        DeleteFile(
            one.location,
            one.sequence_number,
            is_equality=one.content == _EQUALITY_DELETES,
            paths=(one.referenced,) * 2 if one.referenced else (_text(one.path_least), _text(one.path_greatest)),
        )
        for one in entries
        if one.content != _DATA
    ]
    data.sort(key=lambda one: (one.times[0] or 0, one.location))
    return TableFiles(contract, table, data, deletes)


def _bounds(name: str, field_id: int) -> list[Column]:
    file = F.col("data_file")
    both = (("least", "lower_bounds"), ("greatest", "upper_bounds"))
    return [file[bounds][field_id].alias(f"{name}_{end}") for end, bounds in both]


def _time(bound: bytearray | None) -> int | None:
    """Return microseconds, as Iceberg's spec serialises a timestamp ("Binary single-value serialization")."""
    return None if bound is None else int.from_bytes(bound, "little", signed=True)


def _text(bound: bytearray | None) -> str | None:
    return None if bound is None else bound.decode(errors="replace")


def _overlap(bounds: Bounds, start: int, end: int) -> bool:
    least, greatest = bounds
    return (least is None or least < end) and (greatest is None or greatest >= start)


def _within(bounds: Bounds, start: int, end: int) -> bool:
    least, greatest = bounds
    return least is not None and greatest is not None and start <= least and greatest < end


def _share(bounds: Bounds, start: int, end: int) -> float:
    least, greatest = bounds
    if least is None or greatest is None:
        return 1.0
    return max(0.0, (min(greatest + 1, end) - max(least, start)) / (greatest + 1 - least))


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
