"""Whether a table of aggregates has the rows of the window that is visible."""

from __future__ import annotations

import pytest

from glue_jobs.aggregate_table import is_table_current

WINDOW = "2024-W10"


def manifest(run_id: str = "a", rows: int = 3) -> dict:
    return {"window": {"label": WINDOW}, "run_id": run_id, "rows": {"rows": rows}}


@pytest.mark.parametrize(
    ("published", "visible", "is_current"),
    [
        ({WINDOW: "a"}, manifest(), True),
        ({WINDOW: "a"}, manifest(rows=0), True),
        ({WINDOW: "b"}, manifest(), False),
        ({WINDOW: "b"}, manifest(rows=0), False),
        ({"2024-W11": "a"}, manifest(), False),
        ({}, manifest(), False),
        ({}, manifest(rows=1), False),
        ({}, manifest(rows=0), True),
        (None, manifest(), False),
        (None, manifest(rows=0), False),
    ],
)
def test_a_table_is_current_if_the_run_of_the_visible_manifest_wrote_its_rows(published, visible, is_current):
    assert is_table_current(published, visible) is is_current
