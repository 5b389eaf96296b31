"""What executors do: lines into bytes, bytes to S3, and back to the driver only counts and small pieces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from exports.contract import Column, Delivery
from glue_jobs import outcomes
from glue_jobs.delivery import csv
from glue_jobs.delivery.multipart import Part, SharedObject, Target
from glue_jobs.transforms.check import raised

#: What comes back: the partition's index, a JSON document of `PartitionReport`, and the bytes for the driver.
RESULT_SCHEMA = "partition int, report string, head binary"


@attrs.frozen
class Form:
    """The form of the file: what csv_line needs of the contract."""

    columns: list[Column]
    delivery: Delivery

    @property
    def header(self) -> bytes:
        return csv.header(self.columns, self.delivery)

    @property
    def stored_header(self) -> bytes:
        return bytes(self.packed(self.header))

    def packed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Concatenated gzip members are a gzip file (RFC 1952 §2.2), so each piece is compressed by itself."""
        return gzip.compress(data, 6, mtime=0) if self.delivery.gzip and len(data) else data


@attrs.define
class PartitionReport:
    """Sums over one partition, or over all.

    `events` is by fate; `lines` and `rows` (which differ for groups) by state; `flagged` counts rows by bit of the flags;
    `offsets` is [least, greatest] by Kafka partition. Keys are numbers as text, because this travels as JSON.
    """

    records: int = 0
    cut: int = 0
    replaced: int = 0
    parts: list[Part] = attrs.field(factory=list)
    events: dict[str, int] = attrs.field(factory=dict)
    offsets: dict[str, list[int]] = attrs.field(factory=dict)
    items: int = 0
    lines: dict[str, int] = attrs.field(factory=dict)
    rows: dict[str, int] = attrs.field(factory=dict)
    flagged: dict[str, int] = attrs.field(factory=dict)

    def add(self, other: PartitionReport) -> None:
        self.records += other.records
        self.cut += other.cut
        self.replaced += other.replaced
        self.items += other.items
        for counts in ("events", "lines", "rows", "flagged"):
            mine = getattr(self, counts)
            for name, amount in getattr(other, counts).items():
                mine[name] = mine.get(name, 0) + amount
        for partition, (least, greatest) in other.offsets.items():
            before = self.offsets.get(partition, [least, greatest])
            self.offsets[partition] = [min(before[0], least), max(before[1], greatest)]


def encoder(target: Target, form: Form) -> Any:
    """The function for mapInArrow."""

    def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - exists only in a task

        context = TaskContext.get()
        index = context.partitionId() if context else 0
        report = PartitionReport()
        sink = SharedObject(target, index)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            report.add(counted(rows))
            _write(_delivered(rows), form, sink, report)
        head = sink.close()
        report.parts = sink.parts
        yield pa.RecordBatch.from_arrays(
            [pa.array([index], pa.int32()), pa.array([json.dumps(attrs.asdict(report))]), pa.array([head], pa.binary())],
            names=["partition", "report", "head"],
        )

    return encode


def read_report(text: str) -> PartitionReport:
    document = json.loads(text)
    return PartitionReport(**document | {"parts": [Part(**part) for part in document["parts"]]})


def _delivered(rows: pa.Table) -> pa.Table:
    states = rows[outcomes.LINE_STATE]
    return rows.filter(pc.equal(states, outcomes.DELIVERED)) if states.null_count or pc.max(states).as_py() else rows


def _write(rows: pa.Table, form: Form, sink: SharedObject, report: PartitionReport) -> None:
    if not rows.num_rows:
        return
    written = csv.lines(rows, form.columns, form.delivery)
    report.records += rows.num_rows
    report.cut += written.cut
    report.replaced += written.replaced
    sink.add(form.packed(written.data))


def counted(rows: pa.Table) -> PartitionReport:
    """What rows with the columns of `fates` stand for. Rows of lines leave out what is one, or the same, on each."""
    report = PartitionReport()
    _count_events(rows, report)
    states = rows.select([outcomes.LINE_STATE] + ([outcomes.LINES] if outcomes.LINES in rows.column_names else []))
    states = states.filter(pc.is_valid(states[outcomes.LINE_STATE])).group_by(outcomes.LINE_STATE)
    wanted: list[Any] = [([], "count_all")] + ([(outcomes.LINES, "sum")] if outcomes.LINES in rows.column_names else [])
    for row in states.aggregate(wanted).to_pylist():
        state = str(row[outcomes.LINE_STATE])
        report.rows[state] = row["count_all"]
        report.lines[state] = row.get(f"{outcomes.LINES}_sum", row["count_all"])
    for name in rows.column_names:
        if name.startswith(outcomes.FLAGS):
            _count_flags(name, rows[name], report.flagged)
    return report


def _count_flags(name: str, values: pa.ChunkedArray, flagged: dict[str, int]) -> None:
    for value in values.filter(pc.greater(values, 0)).to_pylist():
        for number in raised(name, value):
            flagged[str(number)] = flagged.get(str(number), 0) + 1


def _count_events(rows: pa.Table, report: PartitionReport) -> None:
    grouped = outcomes.EVENTS in rows.column_names
    events = rows.filter(pc.is_valid(rows[outcomes.FATE])) if rows[outcomes.FATE].null_count else rows
    wanted: list[Any] = [
        ([], "count_all"),
        (outcomes.OFFSET_MIN, "min"),
        (outcomes.OFFSET_MAX if grouped else outcomes.OFFSET_MIN, "max"),
    ]
    if grouped:
        wanted.append((outcomes.EVENTS, "sum"))
    if has_items := outcomes.ITEMS in rows.column_names:
        wanted.append((outcomes.ITEMS, "sum"))
    for row in events.group_by([outcomes.FATE, outcomes.PARTITION]).aggregate(wanted).to_pylist():
        amount = row[f"{outcomes.EVENTS}_sum"] if grouped else row["count_all"]
        ends = [row[f"{outcomes.OFFSET_MIN}_min"], row[f"{outcomes.OFFSET_MAX if grouped else outcomes.OFFSET_MIN}_max"]]
        one = PartitionReport(events={str(row[outcomes.FATE]): amount}, offsets={str(row[outcomes.PARTITION]): ends})
        # Without an array to unfold, an event that is kept is its own one item.
        one.items = row[f"{outcomes.ITEMS}_sum"] or 0 if has_items else amount * (row[outcomes.FATE] == outcomes.KEPT)
        report.add(one)
