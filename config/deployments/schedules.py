"""How often the schedule of an export starts it between the ends of two windows."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from config.exports import cron, windows
from config.exports.contract import WindowRule

#: Enough windows for a schedule of single weekdays or of the days of a month.
_MOST_WINDOWS: Final = 14
_MOMENT: Final = timedelta(microseconds=1)


def has_only_one_run(schedule: cron.Cron, rule: WindowRule) -> bool:
    """Return whether there is only one run between the ends of two windows, of the first windows that have
    any.
    """
    window = windows.find_window(rule.first, rule)
    for _ in range(_MOST_WINDOWS):
        first = schedule.after(window.end - _MOMENT)
        if first is None:
            return False
        window = windows.window_at(first, rule)
        second = schedule.after(first)
        if second is None or second >= window.end:
            return True
    return False


def runs_more_often(expression: str, rule: WindowRule) -> str:
    """Return a schedule with the same minute and hours that starts an export more often."""
    minute, hour, *_ = expression.split()
    return cron.more_often(minute, cron.parse(f"0 {hour} * * ? *", "UTC").hours, rule.every)
