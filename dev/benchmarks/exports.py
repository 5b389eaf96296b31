"""Questions about the cost of exports: beside DuckDB, by night, and by the size and history of the table."""

from __future__ import annotations

import statistics
from datetime import date, timedelta
from typing import Final

from dev.benchmarks import commands, lake, measure, sales_table
from dev.benchmarks.bench import (
    COST_HEADERS,
    Bench,
    find_median_cost,
    find_median_ratio,
    format_cost,
    measure_shapes,
    print_cost,
)
from dev.benchmarks.measure import Cost
from dev.benchmarks.page import Goal, Measured
from dev.benchmarks.shapes import FILES, GOAL, NIGHTS, ROWS, SNAPSHOTS, Shape

_FIRST_MORNING: Final = date(2026, 1, 27)
_NIGHT_ORDERS: Final = 500


def measure_goal(bench: Bench) -> Measured:
    lake.ensure(bench.aws, GOAL)
    pairs = [(bench.run_cold(GOAL), bench.run_peer(GOAL)) for _ in range(bench.rounds)]
    warm = bench.run_warm(GOAL)
    job = find_median_cost([ours for ours, _ in pairs])
    peer = find_median_cost([theirs for _, theirs in pairs])
    return Measured(
        [
            ["", *COST_HEADERS],
            ["job, cold process", *format_cost(job)],
            ["DuckDB, cold process", *format_cost(peer)],
            ["job in a warm session", f"{warm:.1f}", "", ""],
        ],
        [
            ("job, cold process", job.wall),
            ("job in a warm session", warm),
            ("DuckDB, cold process", peer.wall),
        ],
        "s",
        [
            Goal("cold job / DuckDB, wall time", find_median_ratio(pairs), 2.0),
            Goal("warm job / DuckDB, wall time", warm / peer.wall, 0.9),
            Goal("memory of the job / DuckDB", job.memory / peer.memory, 0.85),
        ],
        "One week of a table of 5 M rows in 256 files: 0.95 M rows, 357 MB of sorted CSV. DuckDB hashes "
        "and sorts; it checks, counts and reads back nothing.",
    )


def measure_rows(bench: Bench) -> Measured:
    for shape in ROWS:
        lake.ensure(bench.aws, shape)
    rounds = {
        shape: [
            (bench.run_cold(shape), bench.read_phases(), bench.run_peer(shape)) for _ in range(bench.rounds)
        ]
        for shape in ROWS
    }
    pairs = {shape: [(ours, theirs) for ours, _, theirs in costs_of] for shape, costs_of in rounds.items()}
    phases: dict[Shape, list[float]] = {}
    for shape, costs_of in rounds.items():
        compute = statistics.median(seconds["compute"] for _, seconds, _ in costs_of)
        verify = statistics.median(seconds["verify"] for _, seconds, _ in costs_of)
        phases[shape] = [compute, verify]
    job = {shape: find_median_cost([ours for ours, _ in pairs_of]) for shape, pairs_of in pairs.items()}
    peer = {shape: find_median_cost([theirs for _, theirs in pairs_of]) for shape, pairs_of in pairs.items()}
    ratio = {shape: find_median_ratio(pairs_of) for shape, pairs_of in pairs.items()}
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


def measure_files(bench: Bench) -> Measured:
    few_files, many_files = FILES
    costs = bench.run_in_turns(FILES)
    limit = Goal(
        "2,048 files / 64 files, wall time", costs[many_files][0].wall / costs[few_files][0].wall, 1.1
    )
    return measure_shapes(costs, limit)


def measure_snapshots(bench: Bench) -> Measured:
    costs = bench.run_in_turns(SNAPSHOTS)
    limit = Goal(
        "100 snapshots / one, wall time", costs[SNAPSHOTS[-1]][0].wall / costs[SNAPSHOTS[0]][0].wall, 1.05
    )
    return measure_shapes(costs, limit)


def measure_night(bench: Bench) -> Measured:
    table = lake.ensure(bench.aws, NIGHTS)
    contract = commands.write_daily_contract(lake.FOLDER)

    def run(morning: date, prefix: str, *options: str) -> Cost:
        words = commands.build_arguments(
            NIGHTS.name, f"{bench.stamp}/{prefix}", contract, f"{morning}T06:00:00Z"
        )
        return print_cost(
            f"as of {morning}, {prefix} {' '.join(options)}",
            measure.run(commands.build_cold([*words, *options])),
        )

    first = run(_FIRST_MORNING, "nights")
    pairs = []
    for number in range(1, bench.rounds + 1):
        morning = _FIRST_MORNING + timedelta(days=number)
        day = morning - timedelta(days=1)
        sales_table.correct(table, NIGHTS, day, _NIGHT_ORDERS)
        pairs.append((run(morning, "nights"), run(morning, f"alone-{number}", "--first-day", str(day))))
    usual = find_median_cost([seconds for seconds, _ in pairs])
    alone = find_median_cost([seconds for _, seconds in pairs])
    return Measured(
        [
            ["", *COST_HEADERS],
            ["first night, 15 windows", *format_cost(first)],
            ["a night: 15 windows to restate, one new, after a commit", *format_cost(usual)],
            ["one window alone", *format_cost(alone)],
        ],
        [
            ("first night, 15 windows", first.wall),
            ("a night, one new window", usual.wall),
            ("one window alone", alone.wall),
        ],
        "s",
        [Goal("a night / one window alone, wall time", find_median_ratio(pairs), 1.3)],
        "A daily export of a table of 1 M rows in 64 files. Before each night one commit adds events of "
        "the new day.",
    )
