"""Looks up known weaknesses of all locked packages: `make audit`. It needs the network, and ends with 1 where it finds one.

pip-audit itself ends with 0 for a package that it could not look up; here that is a failure too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOCKS: Final = (
    "requirements.txt",
    "lambdas/requirements.txt",
    "glue_jobs/requirements.txt",
    "simulators/aws/requirements.txt",
    "simulators/confluent_cloud/flink_worker/requirements.txt",
)
_LIMIT_SECONDS: Final = 900


def command(lock: str) -> list[str]:
    return [sys.executable, "-m", "pip_audit", "--format", "json", "--disable-pip", "--require-hashes", "--requirement", lock]


def findings(report: str) -> Iterator[str]:
    """What is wrong, one line each: of pip-audit's JSON. Raises ValueError where it is none."""
    dependencies: list[dict[str, Any]] = json.loads(report)["dependencies"]
    if not dependencies:
        yield "no package was looked up"
    for one in dependencies:
        if "skip_reason" in one:
            yield f"{one['name']}: not looked up: {one['skip_reason']}"
        for weakness in one.get("vulns", []):
            fixed = ", ".join(weakness.get("fix_versions", [])) or "none"
            yield f"{one['name']} {one['version']}: {weakness['id']} (fixed in {fixed})"


def main(locks: Sequence[str] = LOCKS) -> int:
    wrong = 0
    for lock in locks:
        done = subprocess.run(command(lock), cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_SECONDS)
        try:
            found = list(findings(done.stdout))
        except (ValueError, KeyError):
            found = [f"pip-audit failed: {(done.stderr.strip().splitlines() or ['it gave no reason'])[-1]}"]
        sys.stdout.write("".join(f"{lock}: {line}\n" for line in found) or f"{lock}: nothing known\n")
        wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
