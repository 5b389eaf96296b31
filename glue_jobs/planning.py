"""Which windows a run works on, and in which order."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime, timedelta

import attrs

from exports.contract import WindowRule
from exports.windows import Window, closed_windows


@attrs.frozen
class Plan:
    """`windows` in the order in which to work on them; `left` is how many missing ones this run does not try."""

    windows: list[Window]
    left: int


def plan(
    rule: WindowRule, as_of: datetime, *, published: Container[str], skipped: Container[str], tried: Mapping[str, str]
) -> Plan:
    """The window that closed last comes first, so that nothing older can delay it. Then come missing windows, oldest first;
    published ones that late events may still change; and missing ones that an earlier run tried in vain.

    `published` and `skipped` hold labels of windows that have a manifest, or were empty and need none. `tried` holds the
    id of the last run that tried a window. `catch_up` limits missing windows that are new, and separately those that were
    tried before, least recently tried first: a window that fails in each run takes no other window's turn.
    """
    closed = list(closed_windows(rule, as_of))
    last, earlier = closed[-1:], closed[:-1]
    missing = [window for window in earlier if window.label not in published and window.label not in skipped]
    new = [window for window in missing if window.label not in tried][: rule.catch_up]
    retried = sorted((window for window in missing if window.label in tried), key=lambda window: tried[window.label])
    retried = retried[: rule.catch_up]
    done = [window for window in (*last, *earlier) if window.label in published or window.label in skipped]
    again = [window for window in done if as_of < window.end + timedelta(days=rule.restate_for_days)]
    first = [window for window in last if window not in done or window in again]
    again = [window for window in again if window not in first]
    return Plan([*first, *new, *again, *retried], len(missing) - len(new) - len(retried))
