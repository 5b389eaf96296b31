"""Which windows a run works on: those that were missed, oldest first, and those that late events may still change."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime, timedelta

import attrs

from exports.contract import WindowRule
from exports.windows import Window, closed_windows


@attrs.frozen
class Plan:
    """`windows` in order of time; `left` is how many missing ones are more than one run takes on."""

    windows: list[Window]
    left: int


def plan(rule: WindowRule, as_of: datetime, *, published: Container[str], skipped: Container[str]) -> Plan:
    """`published` and `skipped` hold labels of windows that have a manifest, or were found empty and passed over."""
    closed = list(closed_windows(rule, as_of))
    open_to_change = [window for window in closed if as_of < window.end + timedelta(days=rule.restate_for_days)]
    missing = [window for window in closed if window.label not in published and window.label not in skipped]
    taken = missing[: rule.catch_up]
    again = [window for window in open_to_change if window.label in published or window.label in skipped]
    return Plan(sorted([*taken, *again]), len(missing) - len(taken))
