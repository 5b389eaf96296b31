"""report.html: what a person reads beside the file. One page without scripts, images or requests, of 300 kB at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from glue_jobs.delivery.manifest import WindowResult
from glue_jobs.delivery.report import contents, origin, summary
from glue_jobs.delivery.report.markup import Html
from glue_jobs.delivery.report.page import Limits, Section, document

#: From everything down to a taste: each section takes the first that fits its share of the page.
_LADDER = (
    Limits(items=250, text=500, rows=20, columns=250, cell=80),
    Limits(items=250, text=160, rows=20, columns=250, cell=32),
    Limits(items=120, text=120, rows=10, columns=120, cell=24),
    Limits(items=60, text=60, rows=5, columns=60, cell=16),
    Limits(items=20, text=24, rows=3, columns=20, cell=12),
)
_Part = TypeVar("_Part", Html, Section | None)

#: Each section with its share of the page in bytes, in the order of reading.
_SECTIONS: Final[tuple[tuple[Callable[[WindowResult, Limits], Section | None], int], ...]] = (
    (summary.numbers, 8_000),
    (summary.notes, 12_000),
    (contents.drawn, 60_000),
    (contents.checks, 35_000),
    (contents.first_rows, 65_000),
    (contents.dictionary, 65_000),
    (origin.left_out, 18_000),
    (origin.opening, 5_000),
    (origin.making, 12_000),
    (origin.asking, 3_000),
)


def html(result: WindowResult) -> str:
    """The same for the same input."""
    header = _fitting(summary.header, result, 6_000)
    sections = [_fitting(section, result, share) for section, share in _SECTIONS]
    return document(summary.title(result), header, [section for section in sections if section])


def _fitting(part: Callable[[WindowResult, Limits], _Part], result: WindowResult, share: int) -> _Part:
    for limits in _LADDER:
        drawn = part(result, limits)
        if _size(drawn) <= share:
            break
    return drawn


def _size(part: Html | Section | None) -> int:
    pieces = part.body if isinstance(part, Section) else [part or ""]
    return sum(len(piece.encode()) for piece in pieces)
