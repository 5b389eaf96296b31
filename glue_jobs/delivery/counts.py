"""The books of a run. Every event that the table holds is accounted for, every line too, or nothing is published."""

from __future__ import annotations

from typing import Any

import attrs

from glue_jobs import outcomes
from glue_jobs.delivery.encode import PartitionReport
from glue_jobs.delivery.verify import Inspection
from glue_jobs.errors import Blocked, Inconsistent


@attrs.frozen
class Read:
    """Events as they were counted where they were read, before anything was done with them.

    `in_table` comes from the snapshot's own metadata (or a count where deletes make that unknown). `inside` counts what
    was not set aside as undated and, where the window is applied early, lies in the window; `unkeyed` is part of it.
    `undated_received` are those of the undated that Kafka received during the window.
    """

    in_table: int
    inside: int
    undated: int
    undated_received: int
    unkeyed: int
    whole_table: bool


def books(read: Read, report: PartitionReport, inspected: Inspection, *, aggregated: bool) -> dict[str, Any]:
    """Rows by fate, for manifest, record and report. Raises Inconsistent where two counts of one thing differ.

    One small group alone has no second one to hide behind: what counts its events or lines is then withheld.
    """
    event = {name: report.events.get(str(fate), 0) for name, fate in _EVENT_FATES.items()}
    line = {name: report.lines.get(str(state), 0) for name, state in _LINE_STATES.items()}
    items = report.items
    _require("events read and events that met a fate", read.inside - read.unkeyed, sum(event.values()))
    _require("items of the kept events and lines", items, sum(line.values()))
    _require("rows written and rows in the finished file", report.records, inspected.rows)
    shown = report.rows.get(str(outcomes.DELIVERED), 0)
    _require("delivered groups and rows written" if aggregated else "delivered lines and rows written", shown, report.records)
    if not read.whole_table:
        # Files without an event of the window were never opened; what they hold is what the table has beyond what was read.
        event["outside_window"] += read.in_table - read.inside - read.undated
    if event["outside_window"] < 0:
        raise Inconsistent("EXP-BOOKS", f"the table says it has {read.in_table} events, but more were read", _AGAIN)
    event |= {"undated": read.undated, "unkeyed": read.unkeyed}
    _require("events in the table and events that met a fate", read.in_table, sum(event.values()))
    groups = {"shown": shown, "suppressed": report.rows.get(str(outcomes.SUPPRESSED), 0)} if aggregated else None
    alone = groups == {"shown": 0, "suppressed": 1}
    return {
        "events": None if alone else {"in_table": read.in_table, **event},
        "lines": None if alone else {"of_kept_events": items, **line},
        "groups": groups,
        "rows": inspected.rows,
        "withheld": _WITHHELD if alone else None,
    }


def require_valid(read: Read, limit: int, window: str) -> None:
    """Raises Blocked where more than `limit` percent of the window's events, or of the table's, can't be used."""
    of_table = (read.undated, read.in_table)
    of_window = (read.undated_received + read.unkeyed, read.inside + read.undated_received)
    if any(100 * invalid > limit * events for invalid, events in (of_table, of_window)):
        # No totals: they could tell the size of a group that is too small to be shown.
        raise Blocked(
            "EXP-INVALID-EVENTS",
            f"window {window}: {read.undated:,} events of the table have no valid time ({read.undated_received:,} of them were "
            f"received during the window), and {read.unkeyed:,} have no key: more than {limit} % (source.max_invalid_percent)",
            "Correct the source, or source.event_time, source.earliest or deduplicate.key of the contract; if such events are "
            "to be expected, raise source.max_invalid_percent",
        )


_EVENT_FATES = {
    "duplicates": outcomes.DUPLICATE,
    "outside_window": outcomes.OUTSIDE,
    "filtered": outcomes.FILTERED,
    "kept": outcomes.KEPT,
}
_LINE_STATES = {"filtered": outcomes.LEFT_OUT, "suppressed": outcomes.SUPPRESSED, "delivered": outcomes.DELIVERED}
_WITHHELD = (
    "The only group of this window is too small to be shown, and counts of events and lines would tell its size: "
    "they were made and they agree, but they are withheld."
)
_AGAIN = "Nothing was published; run again, and report it if it stays so"


def _require(what: str, one: int, other: int) -> None:
    if one != other:
        raise Inconsistent("EXP-BOOKS", f"{what} differ: {one} and {other}", _AGAIN)
