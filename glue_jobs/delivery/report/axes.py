"""The axes of charts: where a label is, and how it is shown, for each type of column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

import attrs

from config.exports.contract import Column
from glue_jobs.delivery.report import wording

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class Axis:
    """Where labels are and how they are shown.

    `position` is None for words, which have no scale. If the scale is `even`, labels are expected at equal
    distances, and the line is broken where one is missing.
    """

    position: Callable[[str], float] | None
    show: Callable[[str], str]
    even: bool = False

    def sort(self, labels: Iterable[str]) -> list[str]:
        return sorted(labels) if self.position is None else sorted(labels, key=self.position)


def _show_time(label: str) -> str:
    moment = datetime.fromisoformat(label)
    exact = moment.second or moment.microsecond
    return (
        f"{wording.short_day(moment)}, {moment:%H:%M:%S}"
        if exact
        else f"{wording.short_day(moment)}, {moment:%H:%M}"
    )


def _count_seconds(label: str) -> float:
    return (datetime.fromisoformat(label) - _EPOCH).total_seconds()


_NUMBERS = Axis(float, lambda label: wording.short(Decimal(label)))


_WORDS = Axis(None, lambda label: label or "“”")


_AXES: Final = {
    "date": Axis(
        lambda label: float(date.fromisoformat(label).toordinal()),
        lambda label: wording.short_day(date.fromisoformat(label)),
        even=True,
    ),
    "timestamp": Axis(_count_seconds, _show_time, even=True),
    # Years have no thousands separators.
    "integer": Axis(float, lambda label: label.replace("-", wording.MINUS), even=True),
}


def choose_axis(column: Column, labels: Iterable[str]) -> Axis:
    """Return the axis for a column.

    If a label can't be read as its type (a date after 9999), all are treated as words.
    """
    axis = _AXES.get(column.type) or (_NUMBERS if column.numeric else _WORDS)
    try:
        for label in labels:
            axis.show(label)
            if axis.position:
                axis.position(label)
    except (ValueError, ArithmeticError):
        return _WORDS
    return axis
