"""`python -m dev.benchmarks.rehearsal`: one rehearsal, timed; writes results/rehearsal.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from lakeferry.output import Output
from lakeferry.rehearsal import run, subject

RESULT: Final = Path(__file__).parent / "results" / "rehearsal.md"
#: Seconds, on two cores, once everything is set up.
GOALS: Final = {"the whole rehearsal": 180.0, "deploy": 35.0}


def main() -> int:
    RESULT.write_text(
        page(run.run_rehearsal(Output(), subject.load_example(), out=Path("out"), keep=False)),
        encoding="utf-8",
    )
    return 0


def page(document: Mapping[str, Any]) -> str:
    """Raises KeyError for a document that isn't one of a rehearsal."""
    checks = [check for phase in document["phases"] for check in phase["checks"]]
    lines = [
        "# A rehearsal",
        "",
        f"`python -m dev.benchmarks.rehearsal`, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores.",
        "",
        "| phase | seconds | goal |",
        "| --- | ---: | ---: |",
        *(_time_steps(phase["name"], phase["seconds"]) for phase in document["phases"]),
        _time_steps("the whole rehearsal", document["seconds"]),
        "",
        "| check | seen |",
        "| --- | --- |",
        *(f"| {check['claim']} | {_write_cell(check['seen'])} |" for check in checks),
        "",
        "What a rehearsal doesn't cover:",
        "",
        *(f"- {sentence}" for sentence in document["not_covered"]),
        "",
    ]
    return "\n".join(lines)


def _time_steps(name: str, seconds: float) -> str:
    goal = f"{GOALS[name]:.0f}" if name in GOALS else ""
    return f"| {name} | {seconds:.1f} | {goal} |"


def _write_cell(text: str) -> str:
    return text.replace("|", "/")


if __name__ == "__main__":
    raise SystemExit(main())
