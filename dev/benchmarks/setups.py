"""Questions about what exports and synthesis run on: machines, versions of Glue, settings, stages."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time

from dev.benchmarks import lake
from dev.benchmarks.bench import (
    COST_HEADERS,
    Bench,
    find_median_cost,
    find_median_pair,
    find_median_ratio,
    format_cost,
)
from dev.benchmarks.measure import Cost
from dev.benchmarks.page import Goal, Measured
from dev.benchmarks.shapes import GOAL, ROWS
from dev.benchmarks.standalone import start_cluster
from glue_jobs.platform import RELEASES
from lakeferry.local.bootstrap import GLUE6_VENV, ROOT


def measure_machines(bench: Bench) -> Measured:
    large = ROWS[-1]
    lake.ensure(bench.aws, large)

    def on(workers: int) -> tuple[Cost, float]:
        with start_cluster(workers) as environment:
            return bench.run_cold_and_read_aws(large, environment, f"on {workers} workers")

    pairs = [(on(1), on(2)) for _ in range(bench.rounds)]
    faster = statistics.median(first.wall / second.wall for (first, _), (second, _) in pairs)
    table = [["", "wall s", "processor s of the driver", "processor s of the embedded AWS"]]
    bars = []
    for name, costs in zip(("one worker", "two workers"), zip(*pairs, strict=True), strict=True):
        cost, aws = find_median_pair(costs)
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


def measure_releases(bench: Bench) -> Measured:
    """Measure each version of Glue's Spark and Iceberg, in turns, on the Python of this machine."""
    if not GLUE6_VENV.exists():
        raise SystemExit(
            "Run `python3.11 -m lakeferry.local.bootstrap glue6` and `.venv-glue6/bin/lakeferry demo` once "
            "first."
        )
    lake.ensure(bench.aws, GOAL)
    old, new = RELEASES.values()
    glue6_python = str(GLUE6_VENV / "bin" / "python")
    program = (
        "import json, os; from lakeferry.local import spark; spark.prepare(); "
        "print(json.dumps(dict(os.environ)))"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    answer = subprocess.run(
        [glue6_python, "-c", program], env=clean, cwd=ROOT, capture_output=True, text=True, check=True
    )
    environment = json.loads(answer.stdout.splitlines()[-1])
    pairs = []
    files = []
    for _ in range(bench.rounds):
        first = bench.run_cold(GOAL, note=f"Glue {old.glue}")
        files.append(lake.read_data_sha256(f"{bench.stamp}/{bench.number}"))
        second = bench.run_cold(GOAL, environment, f"Glue {new.glue}", glue6_python)
        files.append(lake.read_data_sha256(f"{bench.stamp}/{bench.number}"))
        pairs.append((second, first))
    costs = {
        old: find_median_cost([seconds for _, seconds in pairs]),
        new: find_median_cost([seconds for seconds, _ in pairs]),
    }
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
        [["", *COST_HEADERS], *([names[release], *format_cost(cost)] for release, cost in costs.items())],
        [(f"Glue {release.glue}", cost.wall) for release, cost in costs.items()],
        "s",
        remarks=f"{new.glue} / {old.glue}, median of pairs: {find_median_ratio(pairs):.2f} in wall time. "
        f"{same}",
    )


def measure_levers(bench: Bench) -> Measured:
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
        {name: bench.run_cold(GOAL, environments[name], name) for name in changes}
        for _ in range(bench.rounds)
    ]
    costs = {name: find_median_cost([round_[name] for round_ in rounds]) for name in changes}
    return Measured(
        [["setting", *COST_HEADERS], *([name, *format_cost(cost)] for name, cost in costs.items())],
        [(name, cost.cpu) for name, cost in costs.items()],
        "processor s",
    )


def measure_synthesis(bench: Bench) -> Measured:
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
