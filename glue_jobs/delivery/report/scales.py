"""Scales of values: round numbers for ticks, and shares of a length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from glue_jobs.delivery.report import wording
from glue_jobs.delivery.verify import EXACT


def choose_ticks(values: Iterable[Decimal], *, whole: bool) -> list[Decimal]:
    """Return round numbers at equal distances that include 0 and enclose the values."""
    lowest, highest = enclose_zero(list(values))
    step = _round_up_step(EXACT.divide(highest - lowest, Decimal(4)))
    if whole:
        step = max(step, Decimal(1))
    first = (lowest / step).to_integral_value("ROUND_FLOOR")
    last = (highest / step).to_integral_value("ROUND_CEILING")
    return [EXACT.multiply(step, Decimal(number)) for number in range(int(first), int(last) + 1)]


def write_ticks(ticks: Sequence[Decimal]) -> list[str]:
    """Return the texts of ticks. Large numbers are given in millions, billions or trillions."""
    highest = max(ticks[-1], -ticks[0])
    for name, power in (("trillion", 12), ("billion", 9), ("million", 6)):
        if Decimal(10) ** power <= highest < Decimal(10) ** 15:
            scaled = [tick.scaleb(-power).normalize() for tick in ticks]
            return [f"{wording.number(tick)} {name}" if tick else "0" for tick in scaled]
    return [wording.short(tick) for tick in ticks]


def enclose_zero(values: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Return bounds that enclose 0, so that lengths can be compared, and that always differ."""
    lowest = min([Decimal(0), *values])
    highest = max([Decimal(0), *values])
    return (lowest, highest) if lowest < highest else (Decimal(0), Decimal(1))


def _round_up_step(lowest: Decimal) -> Decimal:
    """Return the next greater of 1, 2 and 5 times a power of ten."""
    exponent = lowest.adjusted()
    steps = [Decimal((0, (digit,), exponent)) for digit in (1, 2, 5)]
    return next((step for step in steps if step >= lowest), Decimal((0, (1,), exponent + 1)))


def to_share(value: Decimal, lowest: Decimal, highest: Decimal) -> float:
    return float(value - lowest) / float(highest - lowest)


def to_percent(share: float) -> str:
    return f"{share * 100:.2f}%"
