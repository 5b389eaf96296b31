"""`lakeferry logs`."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from lakeferry.deployment import logs
from lakeferry.deployment.context import open_context
from lakeferry.deployment.logs import Run
from lakeferry.output import Output, command

_RUNS: Final = 1
_LINES: Final = 100
_FIRST: Final = ("level", "message")


def told(output: Output, stage: str, name: str | None, last: int | None) -> dict[str, Any]:
    """Raises CommandFailed for a name of nothing."""
    with open_context(stage) as ctx:
        if name is None:
            return _named(output, stage, logs.sources(ctx))
        with output.step(f"Reading the log of {name}"):
            most = last or (_LINES if name in logs.FUNCTIONS else _RUNS)
            found = logs.of(ctx, name, most, everything=output.verbose)
        for run in found:
            _show(output, name, run)
        if not found:
            output.print(f"{name} has not run yet")
        return {"stage": stage, "name": name, "names": [], "runs": [attrs.asdict(run) for run in found]}


def _named(output: Output, stage: str, names: list[str]) -> dict[str, Any]:
    output.print("What writes a log: exports by their names, and functions by what they do")
    for name in names:
        output.print(f"  {command()} logs {name} --stage {stage}")
    return {"stage": stage, "name": "", "names": names, "runs": []}


def _show(output: Output, name: str, run: Run) -> None:
    output.print(f"{name}: run {run.id} of {run.began}, {run.state}" if run.id else f"{name}: {run.place}")
    for line in run.lines:
        output.print(f"  {line.moment}  {_text(line.text)}")
    if not run.lines:
        output.print("  nothing was written")


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
