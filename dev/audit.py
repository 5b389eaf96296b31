"""Look up known vulnerabilities of all locked packages: `make audit`. It needs the network, and exits with 1
if it finds one.

pip-audit exits with 0 for a package that it could not look up; this script reports that as a failure.
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
    "glue_jobs/requirements-glue6.txt",
    "requirements-java.txt",
    "dev/requirements-checkov.txt",
    "lambdas/requirements.txt",
    "glue_jobs/requirements.txt",
    "simulators/aws/requirements.txt",
    "simulators/confluent/flink/worker/requirements.txt",
)
_LIMIT_SECONDS: Final = 900


def build_command(lock: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pip_audit",
        "--format",
        "json",
        "--disable-pip",
        "--require-hashes",
        "--requirement",
        lock,
    ]


def findings(report: str) -> Iterator[str]:
    """Yield one line for each problem in pip-audit's JSON. Raises ValueError for other text."""
    dependencies: list[dict[str, Any]] = json.loads(report)["dependencies"]
    if not dependencies:
        yield "no package was looked up"
    for dependency in dependencies:
        if "skip_reason" in dependency:
            yield f"{dependency['name']}: not looked up: {dependency['skip_reason']}"
        for vulnerability in dependency.get("vulns", []):
            fixed = ", ".join(vulnerability.get("fix_versions", [])) or "none"
            yield f"{dependency['name']} {dependency['version']}: {vulnerability['id']} (fixed in {fixed})"


def main(locks: Sequence[str] = LOCKS) -> int:
    count = 0
    for lock in locks:
        done = subprocess.run(
            build_command(lock), cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_SECONDS
        )
        try:
            lines = list(findings(done.stdout))
        except (ValueError, KeyError):
            lines = [f"pip-audit failed: {(done.stderr.strip().splitlines() or ['it gave no reason'])[-1]}"]
        sys.stdout.write(
            "".join(f"{lock}: {line}\n" for line in lines) or f"{lock}: no known vulnerability\n"
        )
        count += len(lines)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
