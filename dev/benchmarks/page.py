"""The report of `make bench`: one page, a chart for each question.

Answers are kept in results/bench.json, so measuring one question again leaves the others as they were.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import attrs
import cattrs

RESULTS: Final = Path(__file__).parent / "results"
_KEPT: Final = RESULTS / "bench.json"
PAGE: Final = RESULTS / "bench.md"
_INTRODUCTION: Final = (
    "Figures are medians of the stated rounds, in which the compared commands took turns. Memory is the "
    "greatest sum of the process tree's proportional set sizes (PSS). The embedded AWS is a process of its "
    "own and not in it, but it shares the processor."
)
_ROW = 26
_LEFT = 290
_WIDE = 420
_RIGHT = 90


@attrs.frozen
class Goal:
    """A goal is met if the measured `value` is at most `limit`."""

    what: str
    value: float
    limit: float

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.value:.2f}; goal at most {self.limit:g}: "
            f"{'met' if self.value <= self.limit else '**missed**'}"
        )


@attrs.frozen
class Measured:
    """The results of a question's rounds: a table with a header row, bars of the chart in `unit`, goals, and
    remarks.
    """

    table: list[list[str]]
    bars: list[tuple[str, float]]
    unit: str
    goals: list[Goal] = attrs.field(factory=list)
    remarks: str = ""


@attrs.frozen
class Answer:
    """`setting` says when, on which machine and with which versions it was measured."""

    question: str
    command: str
    setting: str
    measured: Measured


def keep(name: str, answer: Answer, order: list[str]) -> Path:
    """Add the answer to the others, write the page with questions in `order`, and return it."""
    RESULTS.mkdir(exist_ok=True)
    answers = cattrs.structure(json.loads(_KEPT.read_text()), dict[str, Answer]) if _KEPT.exists() else {}
    answers[name] = answer
    kept_answers = {question: answers[question] for question in order if question in answers}
    _KEPT.write_text(json.dumps(cattrs.unstructure(kept_answers), indent=1) + "\n")
    (RESULTS / f"bench-{name}.svg").write_text(draw_chart(answer.measured))
    PAGE.write_text(page(kept_answers))
    return PAGE


def page(answers: dict[str, Answer]) -> str:
    lines = ["# Benchmarks", "", _INTRODUCTION]
    for name, answer in answers.items():
        measured = answer.measured
        head, *body = [f"| {' | '.join(row)} |" for row in measured.table]
        lines += ["", f"## {answer.question}", "", f"![{answer.question}](bench-{name}.svg)", "", head]
        lines += ["|" + " --- |" + " ---: |" * (len(measured.table[0]) - 1), *body, ""]
        lines += [f"- {goal}" for goal in measured.goals] + [""] * bool(measured.goals)
        lines += [measured.remarks, ""] if measured.remarks else []
        lines += [f"`{answer.command}`, {answer.setting}"]
    return "\n".join([*lines, ""])


def draw_chart(measured: Measured) -> str:
    """Return horizontal bars as SVG. Their scale begins at 0."""
    most = max(value for _, value in measured.bars) or 1
    height = _ROW * len(measured.bars) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDE + _RIGHT} {height}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for number, (label, value) in enumerate(measured.bars):
        top = 4 + number * _ROW
        width = value / most * _WIDE
        lines += [
            f'<text x="{_LEFT - 8}" y="{top + 17}" text-anchor="end" fill="#222">{escape(label)}</text>',
            f'<rect x="{_LEFT}" y="{top + 3}" width="{width:.1f}" height="{_ROW - 6}" fill="#2f6f9f"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{top + 17}" fill="#222">{value:,.1f} '
            f"{escape(measured.unit)}</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])
