"""Counts of a run: what executors counted while they wrote, and whether every event and every line is
accounted for.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs import outcomes
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import FileStats
from glue_jobs.errors import Blocked, Inconsistent

_WITHHELD = (
    "The only group of this window is too small to be shown, and counts of events and lines would reveal "
    "its size. The counts agree, but they are withheld."
)


@attrs.define
class PartitionReport:
    """Counts of one partition, or of all.

    `written` is the number of rows in the file. `events` are by outcome, `lines` and `rows` (which differ for
    groups) by state. `flagged` has the number of rows that failed a check, by the check's number. `offsets`
    has [lowest, highest] by Kafka partition. All keys are text, because executors return this as JSON.
    """

    written: int = 0
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
        self.written += other.written
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

    def to_json(self) -> str:
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PartitionReport:
        document = json.loads(text)
        return cls(**document | {"parts": [Part(**part) for part in document["parts"]]})


def count(rows: pa.Table) -> PartitionReport:
    """Count events, lines and failed checks.

    Where rows have no column `$events` or `$lines`, each row counts as one.
    """
    report = PartitionReport()
    _count_events(rows, report)
    has_lines = outcomes.LINES in rows.column_names
    states = rows.select([outcomes.LINE_STATE] + ([outcomes.LINES] if has_lines else []))
    states = states.filter(pc.is_valid(states[outcomes.LINE_STATE])).group_by(outcomes.LINE_STATE)
    aggregations: list[Any] = [([], "count_all")] + ([(outcomes.LINES, "sum")] if has_lines else [])
    for row in states.aggregate(aggregations).to_pylist():
        name = outcomes.LINE_NAMES[row[outcomes.LINE_STATE]]
        report.rows[name] = row["count_all"]
        report.lines[name] = row.get(f"{outcomes.LINES}_sum", row["count_all"])
    for column in rows.column_names:
        if column.startswith(outcomes.FLAGS):
            for flags in pc.value_counts(rows[column]).to_pylist():
                for number in outcomes.read_flags(column, flags["values"] or 0):
                    report.flagged[str(number)] = report.flagged.get(str(number), 0) + flags["counts"]
    return report


def _count_events(rows: pa.Table, report: PartitionReport) -> None:
    of_groups = outcomes.EVENTS in rows.column_names
    events = rows.filter(pc.is_valid(rows[outcomes.OUTCOME])) if rows[outcomes.OUTCOME].null_count else rows
    last = outcomes.OFFSET_MAX if of_groups else outcomes.OFFSET_MIN
    aggregations: list[Any] = [([], "count_all"), (outcomes.OFFSET_MIN, "min"), (last, "max")]
    if of_groups:
        aggregations.append((outcomes.EVENTS, "sum"))
    if has_items := outcomes.ITEMS in rows.column_names:
        aggregations.append((outcomes.ITEMS, "sum"))
    for row in events.group_by([outcomes.OUTCOME, outcomes.PARTITION]).aggregate(aggregations).to_pylist():
        outcome = row[outcomes.OUTCOME]
        amount = row[f"{outcomes.EVENTS}_sum"] if of_groups else row["count_all"]
        offsets = {str(row[outcomes.PARTITION]): [row[f"{outcomes.OFFSET_MIN}_min"], row[f"{last}_max"]]}
        # Without an array to explode, a kept event is a single item.
        items = row[f"{outcomes.ITEMS}_sum"] or 0 if has_items else amount * (outcome == outcomes.KEPT)
        report.add(
            PartitionReport(events={outcomes.EVENT_NAMES[outcome]: amount}, offsets=offsets, items=items)
        )


@attrs.frozen
class ReadCounts:
    """Numbers of events as they are read, before anything is done with them.

    `in_table` is from the snapshot's metadata, or from a query if deletes make it unknown there. `inside`
    counts events with a valid time in the window, or all events with a valid time if the window is applied
    after deduplication (`whole_table`). `null_key` is a part of it. `invalid_time_received` counts the events
    with an invalid time that Kafka received during the window. `in_window` and `null_key_in_window` count
    events of the window if `inside` and `null_key` count those of the whole table, and are None otherwise.
    """

    in_table: int
    inside: int
    invalid_time: int
    invalid_time_received: int
    null_key: int
    whole_table: bool
    in_window: int | None = None
    null_key_in_window: int | None = None


def reconcile(
    read: ReadCounts, report: PartitionReport, file: FileStats, *, aggregated: bool
) -> dict[str, Any]:
    """Return counts by outcome, for manifest, record and report. Raises Inconsistent if two counts of one
    thing differ.

    If the only group is suppressed, counts of events and lines are withheld, because they would reveal its
    size.
    """
    event = {
        name: report.events.get(name, 0) for name in ("duplicates", "outside_window", "filtered", "kept")
    }
    line = {name: report.lines.get(name, 0) for name in ("filtered", "suppressed", "delivered")}
    delivered = report.rows.get("delivered", 0)
    _require_equal("events read and events with an outcome", read.inside - read.null_key, sum(event.values()))
    _require_equal("items of the kept events and lines", report.items, sum(line.values()))
    _require_equal("rows written and rows in the finished file", report.written, file.rows)
    _require_equal(
        f"delivered {'groups' if aggregated else 'lines'} and rows written", delivered, report.written
    )
    if not read.whole_table:
        # Files without an event of the window were not read. The table has their events in addition to those
        # that were read.
        event["outside_window"] += read.in_table - read.inside - read.invalid_time
    if event["outside_window"] < 0:
        raise Inconsistent("EXP-COUNTS", f"the table says it has {read.in_table} events, but more were read")
    event |= {"invalid_event_time": read.invalid_time, "null_key": read.null_key}
    _require_equal("events in the table and events with an outcome", read.in_table, sum(event.values()))
    groups = {"shown": delivered, "suppressed": report.rows.get("suppressed", 0)} if aggregated else None
    alone = groups == {"shown": 0, "suppressed": 1}
    return {
        "events": None if alone else {"in_table": read.in_table, **event},
        "lines": None if alone else {"of_kept_events": report.items, **line},
        "groups": groups,
        "rows": file.rows,
        "withheld": _WITHHELD if alone else None,
    }


def require_valid(read: ReadCounts, limit: int, window: str) -> None:
    """Raises Blocked if too many of the window's events have no valid time or no key.

    The limit is in percent.
    """
    null_key = read.null_key if read.null_key_in_window is None else read.null_key_in_window
    in_window = read.inside if read.in_window is None else read.in_window
    invalid = read.invalid_time_received + null_key
    events = read.invalid_time_received + in_window
    if 100 * invalid > limit * events:
        # No totals: they could reveal the size of a group that is too small to be shown.
        raise Blocked(
            "EXP-INVALID-EVENTS",
            f"window {window}: {read.invalid_time_received:,} events that Kafka received during the window "
            f"have no valid time, and {null_key:,} of its events have no key: more than {limit} % "
            "(source.max_invalid_percent)",
        )


def _require_equal(what: str, one: int, other: int) -> None:
    if one != other:
        raise Inconsistent("EXP-COUNTS", f"{what} differ: {one} and {other}")
