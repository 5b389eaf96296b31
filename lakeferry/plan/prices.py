"""The price table, with the day and the place that each price was read."""

from __future__ import annotations

import functools
import tomllib
from datetime import date
from pathlib import Path
from typing import Final

import attrs

FILE: Final = Path(__file__).with_name("prices.toml")


@attrs.frozen
class Price:
    id: str
    usd: float
    unit: str
    as_of: date
    source: str


@functools.cache
def table() -> dict[str, Price]:
    """By id."""
    read = tomllib.loads(FILE.read_text(encoding="utf-8"))["price"]
    return {each["id"]: Price(**{**each, "usd": float(each["usd"])}) for each in read}


def usd(name: str) -> float:
    return table()[name].usd
