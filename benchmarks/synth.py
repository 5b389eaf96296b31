"""`python -m benchmarks.synth`: how long `make synth` takes once everything is there. Writes benchmarks/results/synth.md."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from lakeferry.deployment import node
from lakeferry.local.bootstrap import ROOT

PAGE = ROOT / "benchmarks" / "results" / "synth.md"
GOAL_SECONDS = 10.0
ROUNDS = 5


def once(stage: str) -> float:
    """Wall seconds of one synthesis by the pinned command line, rule pack included."""
    started = time.monotonic()
    command = [sys.executable, "-m", "lakeferry.deployment.cdk", "synth", "--quiet", "--context", f"stage={stage}"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return time.monotonic() - started


def resources(stage: str) -> int:
    templates = (ROOT / "cdk.out").glob(f"*-{stage}-*.template.json")
    return sum(len(json.loads(file.read_text())["Resources"]) for file in templates)


def measured(stage: str) -> tuple[str, ...]:
    once(stage)
    seconds = [once(stage) for _ in range(ROUNDS)]
    median = statistics.median(seconds)
    return stage, str(resources(stage)), f"{median:.1f} s", f"{min(seconds):.1f} to {max(seconds):.1f} s", f"{GOAL_SECONDS:.0f} s"


def main() -> None:
    rows = [measured(stage) for stage in ("dev", "prod")]
    lines = [
        "# Synthesis",
        "",
        f"`python -m benchmarks.synth`, {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, Node "
        f"{node.find().version}, {ROUNDS} rounds after a first one. "
        "By the CDK command line; assets are built, the rule pack is on.",
        "",
        "| deployment | resources | median | range | goal |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    Path(PAGE).write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
