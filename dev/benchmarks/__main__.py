"""`make bench`: measures what users wait and pay for, and writes the report to
dev/benchmarks/results/bench.md.

`python -m dev.benchmarks [QUESTION …] [--rounds N]`; without a question all of them. Run it on an idle
machine only. One round of one question takes less than five minutes, the first time somewhat longer, because
the table is written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs
import duckdb
import psutil

from dev.benchmarks import commands, lake, measure, page, sales_table
from dev.benchmarks.measure import Cost
from dev.benchmarks.page import Answer, Goal, Measured
from dev.benchmarks.shapes import FILES, GOAL, NIGHTS, ROWS, SNAPSHOTS, Shape
from dev.benchmarks.standalone import cluster
from glue_jobs.platform import DEFAULT_RELEASE, RELEASES
from lakeferry.local import spark
from lakeferry.local.bootstrap import GLUE6_VENV, ROOT
from simulators.aws.server import EmbeddedAws

_COST: Final = ["wall s", "processor s", "memory MiB"]
_WARM_RUNS: Final = 4
_FIRST_MORNING: Final = date(2026, 1, 27)
_NIGHT_ORDERS: Final = 500


@attrs.define
class Bench:
    """`stamp` keeps this run's files apart from those of earlier runs."""

    aws: EmbeddedAws
    rounds: int
    stamp: str = attrs.field(factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}")
    number: int = 0

    def cold(
        self,
        shape: Shape,
        environment: Mapping[str, str] | None = None,
        note: str = "",
        python: str = sys.executable,
    ) -> Cost:
        """Run the job in a new process, which publishes to a new prefix.

        Deletes what earlier runs published.
        """
        lake.ensure(self.aws, shape)
        lake.empty_target()
        self.number += 1
        command = commands.cold(commands.arguments(shape.name, f"{self.stamp}/{self.number}"), python)
        return _printed(f"job, {shape.label} {note}", measure.run(command, environment))

    def cold_and_aws(
        self, shape: Shape, environment: Mapping[str, str] | None = None, note: str = ""
    ) -> tuple[Cost, float]:
        """Return the cost of `cold`, and the processor seconds of the embedded AWS during it."""
        before = _processor_seconds(self.aws.pid)
        cost = self.cold(shape, environment, note)
        return cost, _processor_seconds(self.aws.pid) - before

    def phases(self) -> Mapping[str, float]:
        """Return the seconds of the last cold job's phases."""
        return lake.phases(f"{self.stamp}/{self.number}")

    def peer(self, shape: Shape) -> Cost:
        lake.ensure(self.aws, shape)
        lake.empty_target()
        return _printed(
            f"DuckDB, {shape.label}", measure.run(commands.peer(shape, f"{self.stamp}/duckdb.csv"))
        )

    def warm(self, shape: Shape) -> float:
        """Return the seconds of the last of several runs in one session."""
        lake.empty_target()
        print(f"  {_WARM_RUNS} runs in one session, {shape.label}", flush=True)
        cost = measure.run(commands.warm(shape.name, f"{self.stamp}/warm", _WARM_RUNS))
        return float(cost.output.splitlines()[-1].split()[0])

    def in_turns(self, shapes: Sequence[Shape]) -> dict[Shape, tuple[Cost, float]]:
        """Return `cold_and_aws` of the job on each table.

        They take turns, so a slow minute of the machine slows all.
        """
        for shape in shapes:  # all of them before the first is measured: writing makes the machine busy
            lake.ensure(self.aws, shape)
        costs = [[self.cold_and_aws(shape) for shape in shapes] for _ in range(self.rounds)]
        return {shape: _medians([cost[number] for cost in costs]) for number, shape in enumerate(shapes)}


def goal(bench: Bench) -> Measured:
    lake.ensure(bench.aws, GOAL)
    pairs = [(bench.cold(GOAL), bench.peer(GOAL)) for _ in range(bench.rounds)]
    warm = bench.warm(GOAL)
    job = _median([ours for ours, _ in pairs])
    peer = _median([theirs for _, theirs in pairs])
    return Measured(
        [
            ["", *_COST],
            ["job, cold process", *_cells(job)],
            ["DuckDB, cold process", *_cells(peer)],
            ["job in a warm session", f"{warm:.1f}", "", ""],
        ],
        [
            ("job, cold process", job.wall),
            ("job in a warm session", warm),
            ("DuckDB, cold process", peer.wall),
        ],
        "s",
        [
            Goal("cold job / DuckDB, wall time", _ratio(pairs), 2.0),
            Goal("warm job / DuckDB, wall time", warm / peer.wall, 0.9),
            Goal("memory of the job / DuckDB", job.memory / peer.memory, 0.85),
        ],
        "One week of a table of 5 M rows in 256 files: 0.95 M rows, 357 MB of sorted CSV. DuckDB hashes "
        "and sorts; it checks, counts and reads back nothing.",
    )


def rows(bench: Bench) -> Measured:
    for shape in ROWS:
        lake.ensure(bench.aws, shape)
    rounds = {
        shape: [(bench.cold(shape), bench.phases(), bench.peer(shape)) for _ in range(bench.rounds)]
        for shape in ROWS
    }
    pairs = {shape: [(ours, theirs) for ours, _, theirs in costs_of] for shape, costs_of in rounds.items()}
    phases = {
        shape: [
            statistics.median(of_run[name] for _, of_run, _ in costs_of) for name in ("compute", "verify")
        ]
        for shape, costs_of in rounds.items()
    }
    job = {shape: _median([ours for ours, _ in pairs_of]) for shape, pairs_of in pairs.items()}
    peer = {shape: _median([theirs for _, theirs in pairs_of]) for shape, pairs_of in pairs.items()}
    ratio = {shape: _ratio(pairs_of) for shape, pairs_of in pairs.items()}
    small, _, large = ROWS
    million = (job[large].wall - job[small].wall) / (large.rows - small.rows) * 1e6
    return Measured(
        [
            [
                "table",
                "job, wall s",
                "compute, s",
                "verify, s",
                "DuckDB, wall s",
                "ratio",
                "job, MiB",
                "DuckDB, MiB",
            ],
            *(
                [
                    *(
                        shape.label,
                        f"{job[shape].wall:.1f}",
                        *(f"{seconds:.1f}" for seconds in phases[shape]),
                    ),
                    *(f"{peer[shape].wall:.1f}", f"{ratio[shape]:.2f}"),
                    *(f"{job[shape].memory:,}", f"{peer[shape].memory:,}"),
                ]
                for shape in ROWS
            ),
        ],
        [
            bar
            for shape in ROWS
            for bar in ((f"job, {shape.rows / 1e6:g} M rows", job[shape].wall), ("DuckDB", peer[shape].wall))
        ],
        "s",
        [
            Goal("20 M rows, job / DuckDB", ratio[large], 1.8),
            Goal("seconds for a further million rows", million, 2.0),
        ],
        "19 % of the rows are exported. Compute and verify are phases of the job, from the records of its "
        f"runs. DuckDB's memory limit is {ROWS[0].peer_memory}; for 20 M rows {large.peer_memory}.",
    )


def files(bench: Bench) -> Measured:
    few, many = FILES
    costs = bench.in_turns(FILES)
    limit = Goal("2,048 files / 64 files, wall time", costs[many][0].wall / costs[few][0].wall, 1.1)
    return _by_shape(costs, limit)


def snapshots(bench: Bench) -> Measured:
    costs = bench.in_turns(SNAPSHOTS)
    limit = Goal(
        "100 snapshots / one, wall time", costs[SNAPSHOTS[-1]][0].wall / costs[SNAPSHOTS[0]][0].wall, 1.05
    )
    return _by_shape(costs, limit)


def night(bench: Bench) -> Measured:
    table = lake.ensure(bench.aws, NIGHTS)
    contract = commands.daily_contract(lake.FOLDER)

    def run(morning: date, prefix: str, *more: str) -> Cost:
        words = commands.arguments(NIGHTS.name, f"{bench.stamp}/{prefix}", contract, f"{morning}T06:00:00Z")
        return _printed(
            f"as of {morning}, {prefix} {' '.join(more)}", measure.run(commands.cold([*words, *more]))
        )

    first = run(_FIRST_MORNING, "nights")
    pairs = []
    for number in range(1, bench.rounds + 1):
        morning = _FIRST_MORNING + timedelta(days=number)
        day = morning - timedelta(days=1)
        sales_table.correct(table, NIGHTS, day, _NIGHT_ORDERS)
        pairs.append((run(morning, "nights"), run(morning, f"alone-{number}", "--first-day", str(day))))
    usual = _median([seconds for seconds, _ in pairs])
    alone = _median([seconds for _, seconds in pairs])
    return Measured(
        [
            ["", *_COST],
            ["first night, 15 windows", *_cells(first)],
            ["a night: 15 windows to restate, one new, after a commit", *_cells(usual)],
            ["one window alone", *_cells(alone)],
        ],
        [
            ("first night, 15 windows", first.wall),
            ("a night, one new window", usual.wall),
            ("one window alone", alone.wall),
        ],
        "s",
        [Goal("a night / one window alone, wall time", _ratio(pairs), 1.3)],
        "A daily export of a table of 1 M rows in 64 files. Before each night one commit adds events of "
        "the new day.",
    )


def machines(bench: Bench) -> Measured:
    large = ROWS[-1]
    lake.ensure(bench.aws, large)

    def on(workers: int) -> tuple[Cost, float]:
        with cluster(workers) as environment:
            return bench.cold_and_aws(large, environment, f"on {workers} workers")

    pairs = [(on(1), on(2)) for _ in range(bench.rounds)]
    faster = statistics.median(first.wall / second.wall for (first, _), (second, _) in pairs)
    table = [["", "wall s", "processor s of the driver", "processor s of the embedded AWS"]]
    bars = []
    for name, costs in zip(("one worker", "two workers"), zip(*pairs, strict=True), strict=True):
        cost, aws = _medians(costs)
        table.append([name, f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{aws:.1f}"])
        bars.append((name, cost.wall))
    return Measured(
        table,
        bars,
        "s",
        [Goal("two workers / one, wall time (1.7 times as fast is 0.59)", 1 / faster, 1 / 1.7)],
        f"{large.label}. A standalone cluster of Spark, each worker and its executor on a core of its own. "
        "The driver and the embedded AWS run on the same two cores, so the second worker does not get a "
        "whole core.",
    )


def releases(bench: Bench) -> Measured:
    """Measure each version of Glue's Spark and Iceberg, in turns, on the Python of this machine."""
    if not GLUE6_VENV.exists():
        raise SystemExit(
            "Run `python3.11 -m lakeferry.local.bootstrap glue6` and `.venv-glue6/bin/lakeferry demo` once "
            "first."
        )
    lake.ensure(bench.aws, GOAL)
    old, new = RELEASES.values()
    other = str(GLUE6_VENV / "bin" / "python")
    program = (
        "import json, os; from lakeferry.local import spark; spark.prepare(); "
        "print(json.dumps(dict(os.environ)))"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    answer = subprocess.run(
        [other, "-c", program], env=clean, cwd=ROOT, capture_output=True, text=True, check=True
    )
    environment = json.loads(answer.stdout.splitlines()[-1])
    pairs = []
    files = []
    for _ in range(bench.rounds):
        first = bench.cold(GOAL, note=f"Glue {old.glue}")
        files.append(lake.data_sha256(f"{bench.stamp}/{bench.number}"))
        second = bench.cold(GOAL, environment, f"Glue {new.glue}", other)
        files.append(lake.data_sha256(f"{bench.stamp}/{bench.number}"))
        pairs.append((second, first))
    costs = {old: _median([seconds for _, seconds in pairs]), new: _median([seconds for seconds, _ in pairs])}
    names = {
        release: f"Glue {release.glue}: Spark {release.spark}, Iceberg {release.jars[0].version}"
        for release in costs
    }
    same = (
        "The files are the same to the byte."
        if len(set(files)) == 1
        else f"The files differ: {sorted(set(files))}."
    )
    return Measured(
        [["", *_COST], *([names[release], *_cells(cost)] for release, cost in costs.items())],
        [(f"Glue {release.glue}", cost.wall) for release, cost in costs.items()],
        "s",
        remarks=f"{new.glue} / {old.glue}, median of pairs: {_ratio(pairs):.2f} in wall time. {same}",
    )


def levers(bench: Bench) -> Measured:
    """Measure each setting changed by itself, in turns with the shipped ones."""
    options = "PYSPARK_SUBMIT_ARGS"
    java = "SPARK_SUBMIT_OPTS"
    changes = {
        "as shipped": (java, "", ""),
        "without the archive of classes": (java, r" \S*SharedArchiveFile=\S*", ""),
        "with Java's own inlining": (java, r"-XX:(MaxInlineLevel|FreqInlineSize|InlineSmallCode)=\d+", ""),
        "with ParallelGC": (java, "UseSerialGC", "UseParallelGC"),
        "with Java's own thresholds": (java, r"( -XX:Tier4\w+=\d+)+", ""),
        "with compiling to C1 only": (java, "$", " -XX:TieredStopAtLevel=1"),
        "with a heap of 1 GiB": (options, "--driver-memory 640m", "--driver-memory 1g"),
        "with a heap of 512 MiB": (options, "--driver-memory 640m", "--driver-memory 512m"),
        "without whole-stage code generation": (
            options,
            "pyspark-shell",
            "--conf spark.sql.codegen.wholeStage=false pyspark-shell",
        ),
        "with one malloc arena": ("MALLOC_ARENA_MAX", "^$", "1"),
        "with Arrow's system allocator": ("ARROW_DEFAULT_MEMORY_POOL", "^$", "system"),
    }
    environments = {}
    for name, (variable, pattern, instead) in changes.items():
        before = os.environ.get(variable, "")
        after = re.sub(pattern, instead, before, count=1)
        if after == before and pattern:
            raise ValueError(f"{variable} has nothing like {pattern}")
        environments[name] = os.environ | {variable: after}
    rounds = [
        {name: bench.cold(GOAL, environments[name], name) for name in changes} for _ in range(bench.rounds)
    ]
    costs = {name: _median([round_[name] for round_ in rounds]) for name in changes}
    return Measured(
        [["setting", *_COST], *([name, *_cells(cost)] for name, cost in costs.items())],
        [(name, cost.cpu) for name, cost in costs.items()],
        "processor s",
    )


def synthesis(bench: Bench) -> Measured:
    def once(stage: str) -> float:
        """Return the wall seconds of one synthesis as `make synth` does it, including cdk-nag's rules."""
        started = time.monotonic()
        command = [sys.executable, "-m", "lakeferry.deployment.app", stage]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        return time.monotonic() - started

    def resources(stage: str) -> int:
        templates = (ROOT / "cdk.out").glob(f"*-{stage}-*.template.json")
        return sum(len(json.loads(file.read_text())["Resources"]) for file in templates)

    table = [["deployment", "resources", "median s", "range s"]]
    medians = {}
    for stage in ("dev", "prod"):
        once(stage)  # builds assets
        seconds = [once(stage) for _ in range(bench.rounds)]
        medians[stage] = statistics.median(seconds)
        table.append(
            [
                stage,
                str(resources(stage)),
                f"{medians[stage]:.1f}",
                f"{min(seconds):.1f} to {max(seconds):.1f}",
            ]
        )
    return Measured(
        table,
        list(medians.items()),
        "s",
        [Goal(f"seconds for {stage}", median, 8.0) for stage, median in medians.items()],
    )


QUESTIONS: Final[Mapping[str, tuple[str, Callable[[Bench], Measured]]]] = {
    "goal": ("What does one export cost, beside DuckDB on the same table and S3?", goal),
    "night": ("What does a night of a daily export cost?", night),
    "rows": ("How does the cost grow with rows?", rows),
    "files": ("How does the cost grow with files?", files),
    "snapshots": ("How does the cost grow with snapshots?", snapshots),
    "machines": ("What does a second machine bring?", machines),
    "releases": ("Which version of Glue is faster?", releases),
    "levers": ("What does each setting bring?", levers),
    "synthesis": ("How long does `make synth` take?", synthesis),
}


def _printed(what: str, cost: Cost) -> Cost:
    """Print the cost, so that it is not lost if a long run is stopped."""
    print(f"  {what}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU-s, {cost.memory} MiB", flush=True)
    return cost


def _processor_seconds(pid: int) -> float:
    """Return the user and system time of a process and its children, including those that have ended."""
    process = psutil.Process(pid)
    return float(
        sum(sum(running.cpu_times()[:4]) for running in [process, *process.children(recursive=True)])
    )


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        int(statistics.median(cost.memory for cost in costs)),
        "",
    )


def _medians(costs: Sequence[tuple[Cost, float]]) -> tuple[Cost, float]:
    return _median([cost for cost, _ in costs]), statistics.median(aws for _, aws in costs)


def _ratio(pairs: list[tuple[Cost, Cost]]) -> float:
    """Return the median of the pairs' ratios of wall time."""
    return statistics.median(first.wall / second.wall for first, second in pairs)


def _cells(cost: Cost) -> list[str]:
    return [f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.memory:,}"]


def _by_shape(costs: Mapping[Shape, tuple[Cost, float]], limit: Goal) -> Measured:
    table = [["table", *_COST, "processor s of the embedded AWS"]]
    table += [[shape.label, *_cells(cost), f"{aws:.1f}"] for shape, (cost, aws) in costs.items()]
    return Measured(table, [(shape.label, cost.wall) for shape, (cost, _) in costs.items()], "s", [limit])


def _setting(rounds: int) -> str:
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
    given = parser.parse_args()
    if unknown := [name for name in given.questions if name not in QUESTIONS]:
        parser.error(f"unknown question {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as `make` does
    java_home = spark.prepare()
    if spark.can_write_archive(java_home):
        raise SystemExit(
            "Run `make demo` once first: a run makes the archive of classes that later ones start from."
        )
    with lake.embedded() as aws:
        for name in given.questions or QUESTIONS:
            question, answer = QUESTIONS[name]
            print(f"{name}: {question}", flush=True)
            measured = answer(Bench(aws, given.rounds))
            command = f"python -m dev.benchmarks {name} --rounds {given.rounds}"
            written = page.keep(
                name, Answer(question, command, _setting(given.rounds), measured), list(QUESTIONS)
            )
            print("\n".join(f"  {limit}" for limit in measured.goals), flush=True)
    print(f"See {written.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
