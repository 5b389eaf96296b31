"""The axis of a chart: what its labels mean, their order, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import attrs

from exports.contract import Column
from glue_jobs.delivery.report import wording

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class Axis:
    """`position` tells where a label lies on a scale; it is None for words, which have no scale. `even` is a scale on which
    one may expect labels at even steps, so that a missing one means something."""

    position: Callable[[str], float] | None
    shown: Callable[[str], str]
    even: bool = False

    def in_order(self, labels: Iterable[str]) -> list[str]:
        return sorted(labels) if self.position is None else sorted(labels, key=self.position)


def axis_of(column: Column, labels: Iterable[str]) -> Axis:
    """Labels that are not all what the column's type says (a date after 9999) are taken for words."""
    axis = _of_type(column)
    try:
        for label in labels:
            axis.shown(label)
            if axis.position:
                axis.position(label)
    except (ValueError, ArithmeticError):
        return _WORDS
    return axis


def _of_type(column: Column) -> Axis:
    if column.type == "date":
        return _DATES
    if column.type == "timestamp":
        return _TIMES
    if column.type == "integer":
        return _INTEGERS
    return _NUMBERS if column.numeric else _WORDS


def _shown_time(label: str) -> str:
    moment = datetime.fromisoformat(label)
    exact = moment.second or moment.microsecond
    return f"{wording.short_day(moment)}, {moment:%H:%M:%S}" if exact else f"{wording.short_day(moment)}, {moment:%H:%M}"


def _shown_day(label: str) -> str:
    return wording.short_day(date.fromisoformat(label))


def _seconds(label: str) -> float:
    return (datetime.fromisoformat(label) - EPOCH).total_seconds()


_DATES = Axis(lambda label: float(date.fromisoformat(label).toordinal()), _shown_day, even=True)
_TIMES = Axis(_seconds, _shown_time, even=True)
_NUMBERS = Axis(float, lambda label: wording.short(Decimal(label)))
# Years have no thousands separators.
_INTEGERS = Axis(float, lambda label: label.replace("-", wording.MINUS), even=True)
_WORDS = Axis(None, lambda label: label or "“”")
