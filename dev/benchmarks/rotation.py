"""`python -m dev.benchmarks.rotation`: simulates three years of rotation with readers, and one year with a
planted defect.

Writes dev/benchmarks/results/rotation.md. Takes about two minutes.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "dev" / "benchmarks" / "results" / "rotation.md"
CAMPAIGN = ROOT / "tests" / "vendors" / "rotation_years.py"
WANTED = 1_000_000


def run(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(CAMPAIGN), *options]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def page(years: dict[str, Any], planted: dict[str, Any]) -> str:
    rows = [
        ("simulated time", "3 years, monthly rotation of 7 credentials", "1 year"),
        ("readers", "100, of cache ages from 0 to 7 days (the grace)", "100"),
        ("rotations", f"{years['rotations']:,}", f"{planted['rotations']:,}"),
        ("calls of the rotation function", f"{years['calls']:,}", f"{planted['calls']:,}"),
        ("logins", f"{years['logins']:,}", f"{planted['logins']:,}"),
        ("of them with a signed token (Snowflake)", f"{years['signed']:,}", f"{planted['signed']:,}"),
        ("oldest value used", f"{years['oldest']:.2f} days", f"{planted['oldest']:.2f} days"),
        ("most keys of one credential at once", str(years["most"]), str(planted["most"])),
        ("**refused logins**", f"**{years['failures']:,}**", f"{planted['failures']:,}"),
        ("wall time", f"{years['seconds']:.0f} s", f"{planted['seconds']:.0f} s"),
    ]
    lines = [
        "# Rotation",
        "",
        f"`python -m dev.benchmarks.rotation`, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}.",
        "On a virtual clock, between a strict Secrets Manager in memory and both simulators. Readers of a "
        "credential log in",
        "after every single call of its rotation, and every 2.5 hours. The planted defect revokes a "
        "replaced key at once.",
        "",
        "| | as it is | with the planted defect |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    years = run("--years", "3")
    planted = run("--years", "1", "--revoke-early")
    text = page(years, planted)
    PAGE.write_text(text)
    print(text)
    if years["failures"] or years["logins"] < WANTED or not planted["failures"]:
        raise SystemExit("not what was promised: see the table")


if __name__ == "__main__":
    main()
