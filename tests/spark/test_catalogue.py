"""Every row of the fault catalogue is claimed by a test: `@pytest.mark.fault("D7")` says which rows a test stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

CATALOGUE = {
    "D1": "no new snapshot since the last run",
    "D2": "empty window",
    "D3": "table missing, not materialised, without a snapshot",
    "D4": "snapshot expires between plan and read",
    "D5": "compaction commits while it is read",
    "D6": "appends while it is read",
    "D7": "position deletes, equality deletes, tombstones",
    "D8": "the same event in two files or snapshots",
    "D9": "duplicate across the window's boundary",
    "D10": "late event for a closed window",
    "D11": "event time far off or null",
    "D12": "events out of order",
    "D13": "null or empty keys",
    "D14": "column added or reordered",
    "D15": "column renamed",
    "D16": "column dropped, or dropped and added again",
    "D17": "type widened",
    "D18": "type changed, nested type appears",
    "D19": "partition spec and format version evolve",
    "D20": "huge texts, many keys, skewed key",
    "D21": "characters that CSV falls over",
    "D22": "text that is not valid, or has several spellings",
    "D23": "formulas",
    "D24": "null, empty and the literal text NULL",
    "D25": "decimals: scale, sign of zero, NaN, overflow",
    "D26": "sums of floats depend on their order",
    "D27": "ISO weeks and their year",
    "D28": "daylight saving",
    "D29": "time zone and locale of the cluster",
    "D30": "driver killed at any point",
    "D31": "executor lost, task tried again",
    "D32": "rerun after success",
    "D33": "two runs at once",
    "D34": "stale run resumes after a newer restatement",
    "D35": "S3 throttles, fails and resets",
    "D36": "output exists with other content",
    "D37": "manifest without data, data without manifest",
    "D38": "key missing, unreadable, rotated in mid-run",
    "D39": "personal data in an unexpected column",
    "D40": "group smaller than k",
    "D41": "counts or checksums off by one",
}


def claims(text: str) -> Iterator[str]:
    """Rows that the marks of a test module name, on a test or on one of its parameters."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fault":
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def claimed() -> set[str]:
    files = (path for folder in ("spark", "faults") for path in sorted((TESTS / folder).glob("test_*.py")))
    return {row for path in files for row in claims(path.read_text(encoding="utf-8"))}


def test_every_row_has_a_test():
    assert {row: what for row, what in CATALOGUE.items() if row not in claimed()} == {}


def test_marks_name_rows_that_exist():
    assert claimed() - CATALOGUE.keys() == set()


def test_a_missing_mark_is_missed():
    assert set(claims('@pytest.mark.fault("D1", "D2")\ndef test_x(): pass\n# fault("D3")\n"fault(D4)"\n')) == {"D1", "D2"}
