"""`make bench`: measures what users wait and pay for, and writes the report to
dev/benchmarks/results/bench.md.

`python -m dev.benchmarks [QUESTION …] [--rounds N]`; without a question all of them. Run it on an idle
machine only. One round of one question takes less than five minutes, the first time somewhat longer, because
the table is written.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
import psutil

from dev.benchmarks import exports, lake, page, setups
from dev.benchmarks.bench import Bench
from dev.benchmarks.page import Answer, Measured
from glue_jobs.platform import DEFAULT_RELEASE
from lakeferry.local import spark
from lakeferry.local.bootstrap import ROOT

QUESTIONS: Final[Mapping[str, tuple[str, Callable[[Bench], Measured]]]] = {
    "goal": ("What does one export cost, beside DuckDB on the same table and S3?", exports.measure_goal),
    "night": ("What does a night of a daily export cost?", exports.measure_night),
    "rows": ("How does the cost grow with rows?", exports.measure_rows),
    "files": ("How does the cost grow with files?", exports.measure_files),
    "snapshots": ("How does the cost grow with snapshots?", exports.measure_snapshots),
    "machines": ("What does a second machine bring?", setups.measure_machines),
    "releases": ("Which version of Glue is faster?", setups.measure_releases),
    "levers": ("What does each setting bring?", setups.measure_levers),
    "synthesis": ("How long does `make synth` take?", setups.measure_synthesis),
}


def _describe_machine(rounds: int) -> str:
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, n = {rounds}, {psutil.cpu_count()} cores of {processor}, "
        f"{psutil.virtual_memory().total >> 30} GiB, Linux {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, Spark {DEFAULT_RELEASE.spark}, "
        f"Iceberg {DEFAULT_RELEASE.jars[0].version}, DuckDB {duckdb.__version__}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m dev.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if unknown := [name for name in options.questions if name not in QUESTIONS]:
        parser.error(f"unknown question {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as `make` does
    java_home = spark.prepare()
    if spark.can_write_archive(java_home):
        raise SystemExit(
            "Run `make demo` once first: a run makes the archive of classes that later ones start from."
        )
    with lake.start_embedded() as aws:
        for name in options.questions or QUESTIONS:
            question, answer = QUESTIONS[name]
            print(f"{name}: {question}", flush=True)
            measured = answer(Bench(aws, options.rounds))
            command = f"python -m dev.benchmarks {name} --rounds {options.rounds}"
            written = page.keep(
                name, Answer(question, command, _describe_machine(options.rounds), measured), list(QUESTIONS)
            )
            print("\n".join(f"  {limit}" for limit in measured.goals), flush=True)
    print(f"See {written.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
