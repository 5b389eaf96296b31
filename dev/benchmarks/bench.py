"""What the questions of the benchmarks share: running the commands, and summing up their costs."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs
import psutil

from dev.benchmarks import commands, lake, measure
from dev.benchmarks.measure import Cost
from dev.benchmarks.page import Goal, Measured
from dev.benchmarks.shapes import Shape
from simulators.aws.server import EmbeddedAws

COST_HEADERS: Final = ["wall s", "processor s", "memory MiB"]
_WARM_RUNS: Final = 4


@attrs.define
class Bench:
    """`stamp` keeps this run's files apart from those of earlier runs."""

    aws: EmbeddedAws
    rounds: int
    stamp: str = attrs.field(factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}")
    number: int = 0

    def run_cold(
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
        command = commands.build_cold(
            commands.build_arguments(shape.name, f"{self.stamp}/{self.number}"), python
        )
        return print_cost(f"job, {shape.label} {note}", measure.run(command, environment))

    def run_cold_and_read_aws(
        self, shape: Shape, environment: Mapping[str, str] | None = None, note: str = ""
    ) -> tuple[Cost, float]:
        """Return the cost of `cold`, and the processor seconds of the embedded AWS during it."""
        before = _read_processor_seconds(self.aws.pid)
        cost = self.run_cold(shape, environment, note)
        return cost, _read_processor_seconds(self.aws.pid) - before

    def read_phases(self) -> Mapping[str, float]:
        """Return the seconds of the last cold job's phases."""
        return lake.read_phases(f"{self.stamp}/{self.number}")

    def run_peer(self, shape: Shape) -> Cost:
        lake.ensure(self.aws, shape)
        lake.empty_target()
        return print_cost(
            f"DuckDB, {shape.label}", measure.run(commands.build_peer(shape, f"{self.stamp}/duckdb.csv"))
        )

    def run_warm(self, shape: Shape) -> float:
        """Return the seconds of the last of several runs in one session."""
        lake.empty_target()
        print(f"  {_WARM_RUNS} runs in one session, {shape.label}", flush=True)
        cost = measure.run(commands.build_warm(shape.name, f"{self.stamp}/warm", _WARM_RUNS))
        return float(cost.output.splitlines()[-1].split()[0])

    def run_in_turns(self, shapes: Sequence[Shape]) -> dict[Shape, tuple[Cost, float]]:
        """Return `run_cold_and_read_aws` of the job on each table.

        They take turns, so a slow minute of the machine slows all.
        """
        for shape in shapes:  # all of them before the first is measured: writing makes the machine busy
            lake.ensure(self.aws, shape)
        costs = [[self.run_cold_and_read_aws(shape) for shape in shapes] for _ in range(self.rounds)]
        return {
            shape: find_median_pair([cost[number] for cost in costs]) for number, shape in enumerate(shapes)
        }


def print_cost(label: str, cost: Cost) -> Cost:
    """Print the cost, so that it is not lost if a long run is stopped."""
    print(f"  {label}: {cost.wall:.1f} s, {cost.cpu:.1f} CPU-s, {cost.memory} MiB", flush=True)
    return cost


def _read_processor_seconds(pid: int) -> float:
    """Return the user and system time of a process and its children, including those that have ended."""
    process = psutil.Process(pid)
    return float(
        sum(sum(running.cpu_times()[:4]) for running in [process, *process.children(recursive=True)])
    )


def find_median_cost(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        int(statistics.median(cost.memory for cost in costs)),
        "",
    )


def find_median_pair(costs: Sequence[tuple[Cost, float]]) -> tuple[Cost, float]:
    return find_median_cost([cost for cost, _ in costs]), statistics.median(aws for _, aws in costs)


def find_median_ratio(pairs: list[tuple[Cost, Cost]]) -> float:
    """Return the median of the pairs' ratios of wall time."""
    return statistics.median(first.wall / second.wall for first, second in pairs)


def format_cost(cost: Cost) -> list[str]:
    return [f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.memory:,}"]


def measure_shapes(costs: Mapping[Shape, tuple[Cost, float]], limit: Goal) -> Measured:
    table = [["table", *COST_HEADERS, "processor s of the embedded AWS"]]
    table += [[shape.label, *format_cost(cost), f"{aws:.1f}"] for shape, (cost, aws) in costs.items()]
    return Measured(table, [(shape.label, cost.wall) for shape, (cost, _) in costs.items()], "s", [limit])
