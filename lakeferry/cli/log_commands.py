"""`lakeferry logs`."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from lakeferry.cli.output import Voice, command
from lakeferry.deployment import context as ground
from lakeferry.deployment import logs
from lakeferry.deployment.logs import Run

_RUNS: Final = 1
_LINES: Final = 100
_FIRST: Final = ("level", "message")


def told(voice: Voice, stage: str, name: str | None, last: int | None) -> dict[str, Any]:
    """Raises CommandFailed for a name of nothing."""
    with ground.of(stage) as here:
        if name is None:
            return _named(voice, stage, logs.sources(here))
        with voice.step(f"Reading the log of {name}"):
            most = last or (_LINES if name in logs.FUNCTIONS else _RUNS)
            found = logs.of(here, name, most, everything=voice.verbose)
        for run in found:
            _show(voice, name, run)
        if not found:
            voice.result(f"{name} has not run yet")
        return {"stage": stage, "name": name, "names": [], "runs": [attrs.asdict(run) for run in found]}


def _named(voice: Voice, stage: str, names: list[str]) -> dict[str, Any]:
    voice.result("What writes a log: exports by their names, and functions by what they do")
    for name in names:
        voice.result(f"  {command()} logs {name} --stage {stage}")
    return {"stage": stage, "name": "", "names": names, "runs": []}


def _show(voice: Voice, name: str, run: Run) -> None:
    voice.result(f"{name}: run {run.id} of {run.began}, {run.state}" if run.id else f"{name}: {run.place}")
    for line in run.lines:
        voice.result(f"  {line.moment}  {_text(line.text)}")
    if not run.lines:
        voice.result("  nothing was written")


def _text(text: str) -> str:
    """Lines of ours are JSON; people read the message first."""
    try:
        fields = json.loads(text)
    except ValueError:
        return text
    if not isinstance(fields, dict) or "message" not in fields:
        return text
    rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in _FIRST and value not in (None, ""))
    return f"{fields.get('level', ''):<5} {fields['message']}  {rest}".rstrip()
