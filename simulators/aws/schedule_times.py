"""When a schedule of EventBridge Scheduler is due: its expression, in its own time zone.

Where clocks go forward, a time that doesn't exist is skipped; where they go back, a time that comes twice counts once, the
first time (EventBridge Scheduler User Guide, schedule types, daylight saving time).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from simulators.aws.hooks import ministack

_AT = re.compile(r"at\((.+)\)")


def next_due(schedule: Mapping[str, Any], after: datetime) -> datetime | None:
    """The first time later than `after`, in UTC; None where there is none any more."""
    start, end = (moment(schedule.get(name)) for name in ("StartDate", "EndDate"))
    if start is not None and after < start:
        after = start - timedelta(seconds=1)
    due = _next(schedule, after)
    return None if due is None or (end is not None and due > end) else due


def moment(value: Any) -> datetime | None:
    """Dates come as seconds, or as text in ISO 8601."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    read = datetime.fromisoformat(str(value))
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def is_once(schedule: Mapping[str, Any]) -> bool:
    return _AT.fullmatch(schedule["ScheduleExpression"].strip()) is not None


def _next(schedule: Mapping[str, Any], after: datetime) -> datetime | None:
    expression = schedule["ScheduleExpression"].strip()
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if once := _AT.fullmatch(expression):
        due = datetime.fromisoformat(once[1]).replace(tzinfo=zone).astimezone(UTC)
        return due if due > after else None
    if seconds := ministack("services.eventbridge")._parse_rate_seconds(expression):
        begins = moment(schedule.get("StartDate")) or moment(schedule["CreationDate"]) or after
        return begins + timedelta(seconds=seconds) * max(1, (after - begins) // timedelta(seconds=seconds) + 1)
    return _next_by_cron(expression, zone, after)


def _next_by_cron(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """MiniStack's cron knows no zones: it counts on the wall clock, which we read as UTC for it."""
    events = ministack("services.eventbridge")
    fields = events._parse_cron_fields(expression)
    wall = after.astimezone(zone).replace(tzinfo=UTC)
    while fields and (wall := events._cron_next_fire(fields, wall)):
        due: datetime = wall.replace(tzinfo=zone).astimezone(UTC)
        exists = due.astimezone(zone).replace(tzinfo=UTC) == wall
        if exists and due > after:
            return due
    return None
