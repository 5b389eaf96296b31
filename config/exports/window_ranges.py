"""Windows that a user names: a range like 2026-W40..2026-W44 or 2026-W40..W44, a list, or both."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from config.exports.contract import WindowRule
from config.exports.windows import Window, find_window, list_closed_windows, parse_label

_DOTS = ".."
#: How much of a wrong label a message shows.
_SHOWN = 40


class BadWindows(ValueError):
    """The text names a window that the export doesn't have, or that isn't over. The message has all
    mistakes.
    """


def select_windows(text: str, rule: WindowRule, as_of: datetime) -> list[Window]:
    """Return the windows that the text names, oldest first, all closed by `as_of`. Raises BadWindows."""
    closed = {window.label: window for window in list_closed_windows(rule, as_of)}
    labels: set[str] = set()
    mistakes: list[str] = []
    for part in text.split(","):
        first, dots, end = (word.strip() for word in part.partition(_DOTS))
        last = _complete_label(first, end) if dots else first
        wrong = [_explain_label(label, rule, as_of) for label in (first, last) if label not in closed]
        if not wrong and last < first:
            wrong = [f"{first}{_DOTS}{last} ends before it begins"]
        mistakes += wrong
        labels.update(label for label in closed if first <= label <= last)
    if mistakes:
        raise BadWindows("; ".join(dict.fromkeys(mistakes)))
    return [closed[label] for label in sorted(labels)]


def write_ranges(labels: Collection[str], all_labels: Iterable[str]) -> str:
    """Return the labels as a text that `select_windows` reads. `all_labels` are those of the export's
    windows, oldest first: labels without another one in between are one range.
    """
    return ",".join(
        group[0] if len(group) == 1 else f"{group[0]}{_DOTS}{group[-1]}"
        for group in _group_neighbours(labels, all_labels)
    )


def _group_neighbours(labels: Collection[str], all_labels: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for label in all_labels:
        if label in labels:
            group.append(label)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _complete_label(first: str, end: str) -> str:
    """Return the last label of a range, whose beginning may be left out: W44 after 2026-W40."""
    return first[: max(len(first) - len(end), 0)] + end


def _explain_label(label: str, rule: WindowRule, as_of: datetime) -> str:
    """Return why a label is not that of a closed window of the export."""
    first = find_window(rule.first, rule)
    form = re.sub(r"\d", r"\\d", re.escape(first.label))
    if not re.fullmatch(form, label, re.ASCII):
        return f"{label[:_SHOWN]!r} is not a window of this export (write it like {first.label})"
    try:
        window = parse_label(label, rule)
    except (ValueError, OverflowError):
        window = None
    if window is None or window.label != label:
        return f"{label} is not in the calendar"
    if window.first_day < first.first_day:
        return (
            f"{label} is before {first.label}, the first window of this export. To begin earlier, set "
            f"first_day of the export in the deployment file (without one, window.from of the contract) to "
            f"{window.first_day}, and deploy"
        )
    if window.end > as_of:
        return f"{label} is not over: it ends at {window.end:%Y-%m-%d %H:%M} UTC"
    return f"{label} has no time: the zone {rule.zone} skipped it"
