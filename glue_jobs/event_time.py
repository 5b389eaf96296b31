"""When an event happened: the bounds of windows and of valid times, as the table stores the event time.

A field with a zone has instants, and a window begins and ends at an instant. A field without a zone has what
clocks or calendars showed: a local time or a date. For it, a window begins at midnight of its first day and
ends at midnight of the next window's first day, even where clocks skip that midnight. A date counts as the
midnight with which it begins.
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
from glue_jobs.source import DATE, EVENT_TIMES, LOCAL, PinnedTable, make_timestamp_literal

#: Producers' clocks may be fast. The time of an event that is further ahead of the table's last commit than
#: this is not valid.
AHEAD = timedelta(days=1)
_DAY = timedelta(days=1)

#: A start (inclusive) and an end (exclusive) as stored. Their tzinfo is UTC, also if the field has no zone.
#: Those of dates are midnights.
Bounds = tuple[datetime, datetime]


@attrs.frozen
class EventTime:
    contract: Contract
    table: PinnedTable

    @property
    def field(self) -> str:
        return self.contract.source.event_time

    @property
    def has_suitable_type(self) -> bool:
        return self._type in EVENT_TIMES

    @property
    def has_zone(self) -> bool:
        return self._type not in (LOCAL, DATE)

    def bounds(self, windows: Iterable[Window]) -> Bounds:
        """Return the start of the first of these windows and the end of the last one."""
        first = min(windows)
        last = max(windows)
        if self.has_zone:
            return first.start, last.end
        following = find_next_window(last, self.contract.window)
        while following.start == following.end:  # a zone that moved across the date line skipped a whole day
            following = find_next_window(following, self.contract.window)
        return _compute_midnight(first.first_day), _compute_midnight(following.first_day)

    def valid_bounds(self) -> Bounds:
        """Return the first valid event time and the end of valid ones."""
        end = self.table.committed_at + AHEAD
        if not self.has_zone:
            end = end.astimezone(ZoneInfo(self.contract.window.zone)).replace(tzinfo=UTC)
        if self._is_date:
            # The day of this moment has begun, so its date is valid.
            end = _compute_midnight(end.date() + _DAY)
        return _compute_midnight(self.contract.min_event_date), end

    def to_numbers(self, bounds: Bounds) -> tuple[int, int]:
        """Return the bounds as Iceberg and Parquet store them: in days since 1970 if the field is a date, in
        microseconds since 1970 if it is a timestamp.
        """
        start, end = map(to_micros, bounds)
        if self._is_date:
            return start // _MICROS_OF_DAY, end // _MICROS_OF_DAY
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
        earliest, valid_end = map(self._render_text, self.valid_bounds())
        inside = getattr(expressions, "and")(
            expressions.greaterThanOrEqual(column, start), expressions.lessThan(column, end)
        )
        too_early = expressions.lessThan(column, earliest)
        too_late = expressions.greaterThanOrEqual(column, valid_end)
        either = getattr(expressions, "or")
        return either(either(inside, expressions.isNull(column)), either(too_early, too_late))

    @property
    def _type(self) -> str:
        return self.table.fields[self.field].type

    @property
    def _is_date(self) -> bool:
        return self._type == DATE

    def _render_literal(self, stored: datetime) -> Column:
        """Return a Spark literal of the field's type."""
        if self._is_date:
            return F.lit(self._render_text(stored)).cast("date")
        literal = make_timestamp_literal(stored)
        return literal if self.has_zone else literal.cast("timestamp_ntz")

    def _render_text(self, stored: datetime) -> str:
        """Return the text that Iceberg reads as a value of the field's type."""
        if self._is_date:
            return stored.date().isoformat()
        return (stored if self.has_zone else stored.replace(tzinfo=None)).isoformat()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROS_OF_DAY = _DAY // _MICROSECOND


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _compute_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
