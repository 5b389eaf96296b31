"""Runs the benchmark's export several times in one session and prints the seconds of each, without the JVM's
start.
"""

from __future__ import annotations

import sys
import time

from dev.benchmarks.commands import build_arguments
from glue_jobs import arguments as job_arguments
from glue_jobs import export, runs
from glue_jobs.platform import DEFAULT_ARGUMENTS
from glue_jobs.session import start


def main(table: str, prefix: str, times: int) -> None:
    session = start(DEFAULT_ARGUMENTS["warehouse"] or "s3://unused/warehouse")
    for number in range(times):
        words = build_arguments(table, f"{prefix}/{number}")
        began = time.perf_counter()
        record = export.run(job_arguments.parse(words, now=runs.utc_now()), spark=session)
        print(f"{time.perf_counter() - began:.2f}", record.windows[0]["state"], record.phases, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
