"""The commands that are compared: the job as Glue starts it, and DuckDB with an SQL statement that does the
same work.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dev.benchmarks.lake import DATABASE, SECRET, TARGET
from dev.benchmarks.shapes import Shape

CONTRACT = Path(__file__).with_name("bench_sales.toml")
#: The lines of the contract that differ in a daily contract with 15 restatable windows.
_DAILY = {
    'every = "iso_week"': 'every = "day"',
    "from = 2026-01-19": "from = 2026-01-12",
    "restate_for_days = 0": "restate_for_days = 15",
}


def write_daily_contract(folder: Path) -> Path:
    """Write a daily variant of the benchmark's contract into the folder."""
    text = CONTRACT.read_text(encoding="utf-8")
    for weekly, daily in _DAILY.items():
        if weekly not in text:
            raise ValueError(f"{CONTRACT.name} has no line {weekly}")
        text = text.replace(weekly, daily)
    file = folder / "bench_sales_daily.toml"
    file.write_text(text, encoding="utf-8")
    return file


def build_arguments(
    table: str, prefix: str, contract: Path = CONTRACT, as_of: str = "2026-01-26T06:00:00Z"
) -> list[str]:
    """Return the job's arguments. With the default of `as_of`, the contract delivers one week."""
    return [
        *("--export", str(contract), "--as-of", as_of, "--complete-until", as_of),
        *("--database", DATABASE, "--table", table),
        *("--bucket", TARGET, "--prefix", prefix),
        *("--pseudonym-secret", SECRET),
    ]


def build_cold(arguments: list[str], python: str = sys.executable) -> list[str]:
    return [python, "-m", "glue_jobs.export", *arguments]


def build_warm(table: str, prefix: str, times: int) -> list[str]:
    return [sys.executable, "-m", "dev.benchmarks.warm", table, prefix, str(times)]


def build_peer(shape: Shape, key: str) -> list[str]:
    return [sys.executable, "-m", "dev.benchmarks.duckdb_peer", shape.name, key, shape.peer_memory]
