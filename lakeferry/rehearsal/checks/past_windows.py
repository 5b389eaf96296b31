"""Check that one command writes the files of past windows, and that the same command again writes nothing."""

from __future__ import annotations

import json

from config.exports.windows import Window, find_next_window, find_window
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require
from lakeferry.rehearsal.subject import Due
from lakeferry.verification.claims import Claim


def backfilled(harness: Harness) -> list[Result]:
    """Backfill all windows of an export whose topic has events of past windows, before its schedule fires.

    The same command again starts nothing.
    """
    due = next((due for due in harness.plan.dues if due.window != _find_first(due)), None)
    if due is None:
        why = "no topic has events of windows before the one that is rehearsed"
        return [NotApplicable(Claim.BACKFILLED, why)]
    name = due.export.contract
    labels = [window.label for window in _list_windows(due)]
    command = f"export backfill {name} --windows {labels[0]}..{labels[-1]}"
    harness.project.run(command)
    generations = _read_generations(harness, due)
    require(generations == dict.fromkeys(labels, 1), f"{command} published {generations}")
    again = harness.project.run(command)
    require(_read_generations(harness, due) == generations, f"{command} published something twice")
    require(again["runs"] == [], f"{command} started a run although nothing was missing")
    result = f"{name} {labels[0]}..{labels[-1]}: {len(labels)} windows by one command, then none"
    return [Check(Claim.BACKFILLED, result, {"windows": len(labels)})]


def _find_first(due: Due) -> Window:
    return find_window(due.export.first_day or due.contract.window.first, due.contract.window)


def _list_windows(due: Due) -> list[Window]:
    """Return the windows from the first one to the one that is rehearsed."""
    windows = [_find_first(due)]
    while windows[-1] != due.window:
        windows.append(find_next_window(windows[-1], due.contract.window))
    return windows


def _read_generations(harness: Harness, due: Due) -> dict[str, int]:
    """Return the generation of each window that is published, by its label."""
    bucket = harness.output("data", "LakeBucketName")
    generations = {}
    for key in harness.objects(bucket, f"exports/{due.export.contract}/manifests/"):
        manifest = json.loads(harness.content(bucket, key))
        generations[manifest["window"]["label"]] = int(manifest["generation"])
    return generations
