"""`make bench`: measures the export and writes what it found to benchmarks/results/.

`python -m benchmarks [goal|growth|levers …] [--rounds N]`; without a name all of them. On a quiet machine only.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import psutil

from benchmarks import commands, lake, measure
from benchmarks.measure import Cost
from benchmarks.shapes import GOAL, GROWTH, Shape
from lakeferry.local import spark
from simulators.aws.server import EmbeddedAws

RESULTS = Path(__file__).parent / "results"
Table = list[list[str]]
_WARM_RUNS = 5


@attrs.define
class Bench:
    """`stamp` keeps this run's files apart from those of former ones."""

    aws: EmbeddedAws
    rounds: int
    stamp: str = attrs.field(factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}")
    number: int = 0

    def cold(self, shape: Shape, environment: dict[str, str] | None = None) -> Cost:
        """The job in a process of its own, publishing to a prefix of its own."""
        lake.ensure(self.aws, shape)
        self.number += 1
        return _told("job, cold", shape, measure.run(commands.cold(shape.name, f"{self.stamp}/{self.number}"), environment))

    def peer(self, shape: Shape) -> Cost:
        lake.ensure(self.aws, shape)
        return _told("DuckDB", shape, measure.run(commands.peer(shape.name, f"{self.stamp}/duckdb.csv")))

    def warm(self, shape: Shape) -> list[float]:
        """Seconds of each run in one session."""
        lake.ensure(self.aws, shape)
        print(f"  job, warm, {shape.name}", flush=True)
        cost = measure.run(commands.warm(shape.name, f"{self.stamp}/warm", _WARM_RUNS))
        return [float(line.split()[0]) for line in cost.output.splitlines() if " published " in line]


def _told(what: str, shape: Shape, cost: Cost) -> Cost:
    """So that what was measured is not lost where a long run is stopped."""
    print(f"  {what}, {shape.name}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU-s, {cost.memory} MiB", flush=True)
    return cost


def goal(bench: Bench) -> Table:
    """The job and its peer in turns, so that a slow minute of the machine meets both."""
    pairs = [(bench.cold(GOAL), bench.peer(GOAL)) for _ in range(bench.rounds)]
    warm = bench.warm(GOAL)
    job, peer = _median([pair[0] for pair in pairs]), _median([pair[1] for pair in pairs])
    ratio = statistics.median(ours.wall / theirs.wall for ours, theirs in pairs)
    size = lake.size(GOAL)
    return [
        ["what", "wall s", "processor s", "memory MiB (PSS)"],
        ["job, cold process", *_cells(job)],
        ["DuckDB, cold process", *_cells(peer)],
        ["job / DuckDB, median of pairs", f"{ratio:.2f}", "", ""],
        [f"job in a warm session (run {len(warm)} of {_WARM_RUNS})", f"{warm[-1]:.1f}", "", ""],
        [f"source: {GOAL.rows:,} rows, {GOAL.files} files", f"{size / GOAL.rows:.0f} B/row", "", ""],
    ]


def growth(bench: Bench) -> Table:
    rows = [["table", "wall s", "processor s", "memory MiB (PSS)", "wall s a million rows"]]
    for shape in GROWTH:  # all of them before the first is measured: writing makes the machine busy
        lake.ensure(bench.aws, shape)
    for shape in GROWTH:
        cost = _median([bench.cold(shape) for _ in range(max(1, bench.rounds - 1))])
        rows.append([shape.label, *_cells(cost), f"{cost.wall / shape.rows * 1e6:.1f}"])
    return rows


def levers(bench: Bench) -> Table:
    """Each lever taken away by itself."""
    options, java = "PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS"
    without = {
        "as shipped": (java, "", ""),
        "without the archive of classes": (java, r" \S*SharedArchiveFile=\S*", ""),
        "with Java's own inlining": (java, r"-XX:(MaxInlineLevel|FreqInlineSize|InlineSmallCode)=\d+", ""),
        "with adaptive execution": (options, "spark.sql.adaptive.enabled=false", "spark.sql.adaptive.enabled=true"),
        "with compiling to C1 only": (java, "$", " -XX:TieredStopAtLevel=1"),
    }
    rows = [["lever", "wall s", "processor s", "memory MiB (PSS)"]]
    for name, (variable, pattern, instead) in without.items():
        changed = os.environ | {variable: re.sub(pattern, instead, os.environ[variable])}
        cost = _median([bench.cold(GOAL, changed) for _ in range(max(1, bench.rounds - 1))])
        rows.append([name, *_cells(cost)])
    return rows


PARTS: dict[str, Callable[[Bench], Table]] = {"goal": goal, "growth": growth, "levers": levers}


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        int(statistics.median(cost.memory for cost in costs)),
        "",
    )


def _cells(cost: Cost) -> list[str]:
    return [f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.memory:,}"]


def _write(name: str, table: Table, rounds: int) -> Path:
    head, *body = [f"| {' | '.join(row)} |" for row in table]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    machine = f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total >> 30} GiB, Linux {platform.release().split('-')[0]}"
    RESULTS.mkdir(exist_ok=True)
    page = RESULTS / f"{name}.md"
    lines = [
        f"# {name.capitalize()}",
        "",
        f"`python -m benchmarks {name} --rounds {rounds}`, {today}, {machine}, Python {platform.python_version()}.",
        "Memory is that of the process tree; the embedded AWS is a process of its own and not in it.",
        "",
        head,
        "|" + "---|" * len(table[0]),
        *body,
        "",
    ]
    page.write_text("\n".join(lines))
    return page


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    java_home = spark.prepare()
    if not spark.archive_exists(java_home):
        raise SystemExit("Run `make demo` once first: a run makes the archive of classes that later ones start from.")
    with lake.embedded() as aws:
        for name in chosen.parts or PARTS:
            print(f"{name} …", flush=True)
            page = _write(name, PARTS[name](Bench(aws, chosen.rounds)), chosen.rounds)
            print(page.read_text(), flush=True)
    print(f"Kept in {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}/.")


if __name__ == "__main__":
    main()
