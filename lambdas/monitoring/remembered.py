"""x"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from lambdas.shared.errors import LakeferryError

T = TypeVar("T")
HOUR = 3600.0
DAY = 24 * HOUR


def remembered(ask: Callable[[], T]) -> Callable[[], T]:
    """`ask`, called once, whichever thread needs it first. Where that raises LakeferryError, every call raises it."""
    outcomes: list[T | LakeferryError] = []
    lock = threading.Lock()

    def answer() -> T:
        with lock:
            if not outcomes:
                try:
                    outcomes.append(ask())
                except LakeferryError as error:
                    outcomes.append(error)
        (outcome,) = outcomes
        if isinstance(outcome, LakeferryError):
            raise outcome
        return outcome

    return answer
