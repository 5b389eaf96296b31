"""`python -m dev.benchmarks.faults --seeds 30`: whole deployments under faults; writes results/faults.md.

A run waits more than it computes, so two campaigns in parallel, each with half of the seeds and its own
`--out`, take half the time. `python -m dev.benchmarks.faults --of out/a/faults.json --of out/b/faults.json`
writes the page for both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lakeferry.output import Output
from lakeferry.rehearsal import faults, run, subject

RESULT: Final = Path(__file__).parent / "results" / "faults.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.benchmarks.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=30, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument(
        "--of", type=Path, action="append", help="make the page from the faults.json of finished campaigns"
    )
    options = parser.parse_args(arguments)
    if options.of:
        RESULT.write_text(
            page(merged([json.loads(file.read_text(encoding="utf-8")) for file in options.of])),
            encoding="utf-8",
        )
        return 0
    seeds = range(options.first, options.first + options.seeds)
    document = run.run_fault_campaign(Output(), subject.load_example(), seeds, out=options.out)
    RESULT.write_text(page(document), encoding="utf-8")
    return 0


def merged(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Merge campaigns that ran in parallel; together they took as long as the longest."""
    runs = [run for document in documents for run in document["runs"]]
    return faults.summarize(runs, max(document["seconds"] for document in documents))


def page(document: Mapping[str, Any]) -> str:
    """Return the page of a campaign. Raises KeyError for a document that isn't one of a campaign."""
    hits = document["hits"]
    rows = [row for run in document["runs"] for row in _write_rows(run)]
    return "\n".join(
        (
            "# Deployments under faults",
            "",
            f"`python -m dev.benchmarks.faults`, {len(document['runs'])} runs, seeds "
            f"{_write_ranges(document['seeds'])}; {document['seconds'] / 60:.0f} minutes, what ran side by "
            "side counted once.",
            "",
            f"- {sum(hits.values())} calls were hit: "
            + ", ".join(f"{count} at {vendor}" for vendor, count in hits.items())
            + ".",
            f"- {document['failed_first']} of {document['steps']} steps failed under faults; each "
            "succeeded when it was retried.",
            "- 0 orphans: after each deployment and update the inventory had what a run without faults "
            "has, after each destroy nothing but what on_destroy retains.",
            "",
            "| seed | step | faults | calls hit | attempts | seconds | what failed first |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        )
    )


def _write_ranges(seeds: Sequence[int]) -> str:
    """Return the seeds as text, such as 0–13, 15."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in ranges)


def _write_rows(run: Mapping[str, Any]) -> list[str]:
    return [
        f"| {run['seed']} | {step['name']} | {step['faults']} | {sum(step['hits'].values())} | "
        f"{step['attempts']} | {step['seconds']:.0f} | {_escape_cell(step['why'])} |"
        for step in run["steps"]
    ]


def _escape_cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:160]


if __name__ == "__main__":
    raise SystemExit(main())
