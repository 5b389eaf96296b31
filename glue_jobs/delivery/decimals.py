"""Decimals of a file: sums without rounding, and text without exponents."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

#: Wide enough for sums and differences of the longest decimals; Python's own context rounds to 28 digits.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


def zero(scale: int) -> Decimal:
    """0 with as many decimal places as the numbers beside it."""
    return Decimal((0, (0,), -scale))


def plain(value: Any) -> str:
    """The value as the file shows it: str() of a small decimal would be 1E-8."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
