"""What is compared: the job as Glue starts it, and DuckDB with an SQL that does the same work."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.lake import DATABASE, SECRET, TARGET

CONTRACT = Path(__file__).with_name("bench_sales.toml")


def arguments(table: str, prefix: str) -> list[str]:
    """The job's, for the one closed week that the contract delivers."""
    return [
        *("--export", str(CONTRACT), "--as-of", "2026-01-26T06:00:00Z"),
        *("--database", DATABASE, "--table", table),
        *("--bucket", TARGET, "--prefix", prefix),
        *("--pseudonym-secret", SECRET),
    ]


def cold(table: str, prefix: str) -> list[str]:
    return [sys.executable, "-m", "glue_jobs.export", *arguments(table, prefix)]


def warm(table: str, prefix: str, times: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.warm", table, prefix, str(times)]


def peer(table: str, key: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.duckdb_peer", table, key]
