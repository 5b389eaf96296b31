"""Dates, times and timestamps of Avro's logical types, from ISO 8601 or from the number that Avro itself holds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"millis": timedelta(milliseconds=1), "micros": timedelta(microseconds=1)}
_DAY: Final = timedelta(days=1)

TIME_KINDS: Final = frozenset(
    ("date", *(f"{what}-{unit}" for what in ("time", "timestamp", "local-timestamp") for unit in _UNITS))
)


def read_time(kind: str, value: Any) -> Any:
    """`kind` is one of TIME_KINDS; an instant comes back in UTC. Raises ValueError, saying what was expected."""
    if kind == "date":
        return _read(value, date.fromisoformat, _date, "expected a date such as 2026-11-02, or days since 1970")
    what, _, unit = kind.rpartition("-")
    step = _UNITS[unit]
    years = "in the years 1 to 9999"
    match what:
        case "time":
            wanted = f"expected a time such as 10:15:00, without an offset, or {unit} since midnight"
            found = _read(value, _clock, lambda number: _time_of_day(number * step), wanted)
        case "timestamp":
            wanted = f"expected a timestamp {years}, with Z or an offset, such as 2026-11-02T10:15:00Z, or {unit} since 1970"
            found = _read(value, _instant, lambda number: _EPOCH + number * step, wanted)
        case _:
            wanted = f"expected a timestamp {years}, without an offset, such as 2026-11-02T10:15:00, or {unit} since 1970"
            found = _read(value, _local, lambda number: (_EPOCH + number * step).replace(tzinfo=None), wanted)
    return found if unit == "micros" else found.replace(microsecond=found.microsecond // 1000 * 1000)


def _read(value: Any, from_text: Callable[[str], Any], from_number: Callable[[int], Any], wanted: str) -> Any:
    try:
        if isinstance(value, str):
            return from_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return from_number(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(wanted)


def _date(days: int) -> date:
    return (_EPOCH + days * _DAY).date()


def _clock(text: str) -> time:
    found = time.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError
    return found


def _time_of_day(since_midnight: timedelta) -> time:
    if not timedelta(0) <= since_midnight < _DAY:
        raise ValueError
    return (_EPOCH + since_midnight).time()


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError
    return found.astimezone(UTC)


def _local(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError
    return found
