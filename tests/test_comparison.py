"""The comparison page has all rows, and what each points to is there. Each check is seen to catch a defect."""

from __future__ import annotations

import re
from pathlib import Path

import comparison_rows
import pytest

from lakeferry.__main__ import app

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "comparison.md"
ROWS = comparison_rows.rows(PAGE.read_text(encoding="utf-8"))


def test_there_are_thirty_three_rows_in_order():
    assert [row.number for row in ROWS] == list(range(1, 34))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_a_row_answers_and_shows_what_it_says(row):
    assert re.match(r"(Yes|Partly|No)\b", row.here)
    assert row.proofs or row.here.startswith("No")
    assert comparison_rows.wrong(row, PAGE, app, ROOT / "Makefile") == []


@pytest.mark.parametrize(
    "shown",
    [
        "[page](../how-to/tear-up.md)",
        "[page](../how-to/tear-down.md#nowhere)",
        "[`tests/test_docs.py::test_that_nobody_wrote`](../../tests/test_docs.py)",
        "[`tests/test_docs.py`](../../tests/test_locks.py)",
        "`lakeferry cots`",
        "`lakeferry cost --jsno`",
        "`make dmeo`",
        "`tests/test_nothing.py`",
        "seen by a friend",
    ],
)
def test_a_row_that_points_nowhere_is_found(shown):
    (row,) = comparison_rows.rows(f"| 1 | Installed | - | - | ~ | Yes | {shown} |\n")
    assert comparison_rows.wrong(row, PAGE, app, ROOT / "Makefile") != [] or row.proofs == []


def test_a_row_with_a_missing_cell_is_no_row():
    assert comparison_rows.rows("| 1 | Installed | - | - | Yes | `make demo` |\n") == []
