"""What executors do: lines into bytes, bytes to S3, and back to the driver only counts and small pieces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.delivery.sinks import OwnObject, Part, SharedObject, Sink, Target
from glue_jobs.transforms import fates

#: What comes back: the partition's index, a JSON document of `PartitionReport`, and the bytes for the driver.
RESULT_SCHEMA = "partition int, report string, head binary"


@attrs.frozen
class Form:
    """How the file begins, whether each partition makes a file, and compression. `sums` names columns to add up."""

    header: bytes
    one_file: bool
    gzip: bool
    sums: list[str]

    @property
    def stored_header(self) -> bytes:
        return bytes(self.packed(self.header))

    def packed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Concatenated gzip members are a gzip file (RFC 1952 §2.2), so each piece is compressed by itself."""
        return gzip.compress(data, 6, mtime=0) if self.gzip and len(data) else data


@attrs.define
class PartitionReport:
    """Sums over one partition, or over all. `events` is by fate, `lines` by state, `offsets` by Kafka partition."""

    records: int = 0
    replaced: int = 0
    parts: list[Part] = attrs.field(factory=list)
    key: str | None = None
    events: dict[str, int] = attrs.field(factory=dict)
    offsets: dict[str, list[int]] = attrs.field(factory=dict)
    lines: dict[str, int] = attrs.field(factory=dict)
    sums: dict[str, int] = attrs.field(factory=dict)

    def add(self, other: PartitionReport) -> None:
        self.records += other.records
        self.replaced += other.replaced
        for mine, theirs in ((self.events, other.events), (self.lines, other.lines), (self.sums, other.sums)):
            for name, amount in theirs.items():
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
        sink: Sink = SharedObject(target, index) if form.one_file else OwnObject(target, index, form.stored_header)
        for batch in batches:
            report.add(_counted(batch, form.sums))
            lines, replaced = _lines(batch.column(fates.LINE))
            report.replaced += replaced
            sink.add(form.packed(lines))
        head = sink.close()
        report.parts, report.key = sink.parts, getattr(sink, "key", None)
        yield pa.RecordBatch.from_arrays(
            [pa.array([index], pa.int32()), pa.array([json.dumps(attrs.asdict(report))]), pa.array([head], pa.binary())],
            names=["partition", "report", "head"],
        )

    return encode


def read_report(text: str) -> PartitionReport:
    document = json.loads(text)
    return PartitionReport(**document | {"parts": [Part(**part) for part in document["parts"]]})


def _lines(column: pa.Array) -> tuple[bytes | memoryview, int]:
    """The bytes of all lines one after another, which is how Arrow holds them, and how many had to be replaced."""
    if len(column) == column.null_count:
        return b"", 0
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return _repaired(column)
    offsets = memoryview(column.buffers()[1]).cast("i")
    first, last = offsets[column.offset], offsets[column.offset + len(column)]
    return memoryview(column.buffers()[2])[first:last], 0


def _repaired(column: pa.Array) -> tuple[bytes, int]:
    """Bytes that are no UTF-8 become the replacement character."""
    joined = b"".join(line for line in column.cast(pa.binary()).to_pylist() if line is not None)
    text = joined.decode("utf-8", errors="replace")
    return text.encode(), text.count("\ufffd") - joined.count("\ufffd".encode())


def _counted(batch: pa.RecordBatch, sums: list[str]) -> PartitionReport:
    report = PartitionReport(records=batch.num_rows - batch.column(fates.LINE).null_count)
    table = pa.Table.from_batches([batch])
    events = table.filter(pc.is_valid(table[fates.FATE])).group_by([fates.FATE, fates.PARTITION])
    wanted = [(fates.EVENTS, "sum"), (fates.OFFSET_MIN, "min"), (fates.OFFSET_MAX, "max")]
    for row in events.aggregate(wanted).to_pylist():
        ends = [row[f"{fates.OFFSET_MIN}_min"], row[f"{fates.OFFSET_MAX}_max"]]
        one = PartitionReport(events={str(row[fates.FATE]): row[f"{fates.EVENTS}_sum"]})
        one.offsets = {str(row[fates.PARTITION]): ends}
        report.add(one)
    lines = table.filter(pc.is_valid(table[fates.LINE_STATE])).group_by([fates.LINE_STATE])
    for row in lines.aggregate([(fates.LINES, "sum"), (fates.LINES, "count")]).to_pylist():
        state = str(row[fates.LINE_STATE])
        report.lines[state] = row[f"{fates.LINES}_sum"]
        report.sums[f"rows_{state}"] = row[f"{fates.LINES}_count"]
    report.sums |= {name: pc.sum(table[name]).as_py() or 0 for name in (fates.ITEMS, *sums)}
    return report
