"""Describe the record of a run for a command: what became of each window, and the error that it ends with."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from glue_jobs.runs import RunRecord
from lakeferry.errors import CommandFailed

#: Labels of the states of a window.
STATES: Final = {
    "published": "published",
    "unchanged": "unchanged",
    "superseded": "superseded by a newer run",
    "skipped": "empty, skipped",
    "incomplete": "waiting for data",
    "dry_run": "dry run",
    "blocked": "blocked",
    "failed": "failed",
}


def summarize(record: RunRecord) -> list[list[str]]:
    """Return export, window, state, rows and totals of each window."""
    lines = []
    for window in sorted(record.windows, key=lambda window: str(window["window"])):
        rows = f"{window['rows']['rows']:,}" if "rows" in window else ""
        label = str(window["window"])
        lines.append([record.export, label, STATES[window["state"]], rows, describe_totals(window)])
    return lines


def describe_totals(window: dict[str, Any]) -> str:
    """Return a window's headline numbers or, without a file, the reason."""
    return _format_headline(window) or str(window.get("reason") or "")


def describe_left_out(record: RunRecord) -> list[str]:
    """Describe for each window how many events or lines did not become rows, and why."""
    windows = sorted(record.windows, key=lambda window: str(window["window"]))
    counted = [
        (window["window"], _describe_left_out(window["rows"])) for window in windows if "rows" in window
    ]
    return [f"{record.export} {label} left out: {' · '.join(counts)}" for label, counts in counted if counts]


def _describe_left_out(rows: dict[str, Any]) -> list[str]:
    if rows["withheld"]:
        return ["the only group, which is too small to be shown"]
    events = rows["events"]
    lines = rows["lines"]
    counts = [
        (events["duplicates"], "duplicates"),
        (events["filtered"], "filtered events"),
        (events["invalid_event_time"], "events without a valid time"),
        (events["null_key"], "events without a key"),
        (lines["filtered"], "filtered lines"),
        (lines["suppressed"], "lines of groups too small to be shown"),
        # Events of other windows are no loss, but they explain an empty file.
        (0 if rows["rows"] else events["outside_window"], "events of other windows"),
    ]
    return [f"{kind} {count:,}" for count, kind in counts if count]


def list_notes(record: RunRecord) -> list[str]:
    """Return the notes of the manifests: texts that were cut, bytes that were replaced."""
    lines: list[str] = []
    for window in record.windows:
        lines += [f"{record.export} {window['window']}: {note}" for note in window.get("notes", [])]
    return lines


def find_failure(record: RunRecord) -> CommandFailed | None:
    """Return the error of a run whose windows failed, were blocked or are all waiting."""
    bad = [window for window in record.windows if window.get("exit_code")]
    if bad:
        worst = max(bad, key=lambda window: int(window["exit_code"]))
        return CommandFailed(worst["code"], worst["reason"], worst["remedy"], details=record.windows)
    if record.windows and all(window["state"] == "incomplete" for window in record.windows):
        return CommandFailed("EXPORT-LATER", str(record.windows[0]["reason"]))
    return None


def _format_headline(window: dict[str, Any]) -> str:
    figures = []
    for total in window.get("headline", []):
        title = total["title"].lower()
        unit = total["unit"]
        figure = f"{title} {Decimal(total['total']):,}"
        if unit and unit.lower() not in title:
            figure += f" {unit}"
        figures.append(figure)
    return " · ".join(figures)
