"""`python -m benchmarks.nemesis --seeds 30`: lives of a whole deployment under faults; writes results/nemesis.md.

A life waits more than it computes. Two halves side by side, each with an `--out` of its own, take half the time;
`python -m benchmarks.nemesis --of out/a/nemesis.json --of out/b/nemesis.json` makes the page of both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lakeferry.output import Output
from rehearsal import campaign, run

RESULT: Final = Path(__file__).parent / "results" / "nemesis.md"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nemesis", description=__doc__)
    parser.add_argument("--seeds", type=int, default=30, help="how many lives")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--of", type=Path, action="append", help="make the page of what campaigns left in nemesis.json")
    given = parser.parse_args(arguments)
    if given.of:
        RESULT.write_text(page(merged([json.loads(file.read_text(encoding="utf-8")) for file in given.of])), encoding="utf-8")
        return 0
    seeds = range(given.first, given.first + given.seeds)
    document = run.under_faults(Output(), "dev", seeds, out=given.out)
    RESULT.write_text(page(document), encoding="utf-8")
    return 0


def merged(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of campaigns that ran side by side, as one: it took as long as the longest of them."""
    lives = [life for document in documents for life in document["lives"]]
    return campaign.summary(lives, max(document["seconds"] for document in documents))


def page(document: Mapping[str, Any]) -> str:
    """Raises KeyError for a document that is none of a campaign."""
    hits = document["hits"]
    rows = [row for life in document["lives"] for row in _rows(life)]
    return "\n".join(
        (
            "# A deployment's life under faults",
            "",
            f"`python -m benchmarks.nemesis`, {len(document['lives'])} lives, seeds {_ranges(document['seeds'])}; "
            f"{document['seconds'] / 60:.0f} minutes, what ran side by side counted once.",
            "",
            f"- {sum(hits.values())} calls were hit: "
            + ", ".join(f"{count} at {vendor}" for vendor, count in hits.items())
            + ".",
            f"- {document['failed_first']} of {document['steps']} steps failed under faults; each came through when run again.",
            "- 0 orphans: after each deployment and update the inventory held what a life without faults has, after each destroy "
            "nothing but what is kept by decision.",
            "",
            "| seed | step | faults | calls hit | runs | seconds | what failed first |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        )
    )


def _ranges(seeds: Sequence[int]) -> str:
    """Like 0–13, 15."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in found)


def _rows(life: Mapping[str, Any]) -> list[str]:
    return [
        f"| {life['seed']} | {step['name']} | {step['faults']} | {sum(step['hits'].values())} | {step['runs']} | "
        f"{step['seconds']:.0f} | {_cell(step['why'])} |"
        for step in life["steps"]
    ]


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:160]


if __name__ == "__main__":
    raise SystemExit(main())
