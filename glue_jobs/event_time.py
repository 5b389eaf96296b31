"""When an event happened: the bounds of windows and of valid times, as the table stores the event time.

A field with a zone has instants, and a window begins and ends at an instant. A field without a zone has what
clocks showed, so a window begins at midnight of its first day and ends at midnight of the next window's first
day, even where clocks skip that midnight.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import attrs
from pyspark.sql import Column
from pyspark.sql import functions as F

from config.exports.contract import Contract
from config.exports.windows import Window, find_next_window
from glue_jobs.source import LOCAL, TIMESTAMPS, PinnedTable, make_timestamp_literal

#: Producers' clocks may be fast. The time of an event that is further ahead of the table's last commit than
#: this is not valid.
AHEAD = timedelta(days=1)

#: A start (inclusive) and an end (exclusive) as stored. Their tzinfo is UTC, also if the field has no zone.
Bounds = tuple[datetime, datetime]


@attrs.frozen
class EventTime:
    contract: Contract
    table: PinnedTable

    @property
    def field(self) -> str:
        return self.contract.source.event_time

    @property
    def is_timestamp(self) -> bool:
        return self._type in TIMESTAMPS

    def bounds(self, windows: Iterable[Window]) -> Bounds:
        """Return the start of the first of these windows and the end of the last one."""
        first = min(windows)
        last = max(windows)
        if not self._is_local:
            return first.start, last.end
        following = find_next_window(last, self.contract.window)
        while following.start == following.end:  # a zone that moved across the date line skipped a whole day
            following = find_next_window(following, self.contract.window)
        return _compute_midnight(first.first_day), _compute_midnight(following.first_day)

    def valid_bounds(self) -> Bounds:
        """Return the first valid event time and the end of valid ones."""
        latest = self.table.committed_at + AHEAD
        if self._is_local:
            latest = latest.astimezone(ZoneInfo(self.contract.window.zone)).replace(tzinfo=UTC)
        return _compute_midnight(self.contract.min_event_date), latest

    def micros(self, bounds: Bounds) -> tuple[int, int]:
        """Return the bounds in microseconds since 1970, as Iceberg and Parquet store them."""
        start, end = map(to_micros, bounds)
        return start, end

    def is_inside(self, window: Window) -> Column:
        start, end = map(self._render_literal, self.bounds([window]))
        return (F.col(self.field) >= start) & (F.col(self.field) < end)

    def is_invalid(self) -> Column:
        """Return whether the event time is missing, too early or too late; null counts as true."""
        earliest, end = map(self._render_literal, self.valid_bounds())
        moment = F.col(self.field)
        return moment.isNull() | (moment < earliest) | (moment >= end)

    def may_matter(self, expressions: Any, column: str, windows: list[Window]) -> Any:
        """Return an expression of Iceberg for files that may have events of these windows, or events without
        a valid time.
        """
        start, end = map(self._render_text, self.bounds(windows))
        earliest, latest = map(self._render_text, self.valid_bounds())
        inside = getattr(expressions, "and")(
            expressions.greaterThanOrEqual(column, start), expressions.lessThan(column, end)
        )
        too_early = expressions.lessThan(column, earliest)
        too_late = expressions.greaterThanOrEqual(column, latest)
        either = getattr(expressions, "or")
        return either(either(inside, expressions.isNull(column)), either(too_early, too_late))

    @property
    def _type(self) -> str:
        return self.table.fields[self.field].type

    @property
    def _is_local(self) -> bool:
        return self._type == LOCAL

    def _render_literal(self, stored: datetime) -> Column:
        return (
            make_timestamp_literal(stored).cast("timestamp_ntz")
            if self._is_local
            else make_timestamp_literal(stored)
        )

    def _render_text(self, stored: datetime) -> str:
        return (stored.replace(tzinfo=None) if self._is_local else stored).isoformat()


def to_micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def _compute_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
