"""Printed tables never truncate names or values, and data can't control the terminal."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest
from rich.cells import cell_len
from rich.console import Console

from lakeferry import output
from lakeferry.local import query
from lakeferry.output import Output

COLUMNS = ["export", "rows", "totals"]
ROWS = [
    ["weekly_sales_by_region", "25", "sales 1,040,793.48 · pieces 42,073"],
    ["daily_trades", "336", "value 1.00"],
]


def test_columns_are_aligned_and_numbers_stand_at_the_right():
    assert output.format_table(COLUMNS, ROWS, None) == [
        "export                  rows  totals",
        "weekly_sales_by_region    25  sales 1,040,793.48 · pieces 42,073",
        "daily_trades             336  value 1.00",
    ]


def test_a_narrow_terminal_gets_the_last_column_below():
    lines = output.format_table(COLUMNS, ROWS, 50)
    assert lines == [
        "export                  rows",
        "  totals",
        "weekly_sales_by_region    25",
        "  sales 1,040,793.48 · pieces 42,073",
        "daily_trades             336",
        "  value 1.00",
    ]


def test_a_terminal_of_80_columns_gets_the_last_column_wrapped_between_totals():
    totals = "value 273,215,661.61 · shares 54,072,444 · order line total EUR 1,040,793.48"
    row = ["weekly_sales_by_region", "2026-11-13", "published", "336", totals]
    lines = output.format_table(["export", "window", "state", "rows", "totals"], [row], 80)
    assert lines == [
        "export                  window      state      rows  totals",
        "weekly_sales_by_region  2026-11-13  published   336  value 273,215,661.61 ·",
        "                                                     shares 54,072,444 ·",
        "                                                     order line total EUR",
        "                                                     1,040,793.48",
    ]
    assert max(map(cell_len, lines)) <= 80


def test_a_word_that_cannot_wrap_is_printed_below_its_row():
    lines = output.format_table(["what", "where"], [["bucket", "s3://" + "x" * 40]], 40)
    assert lines == ["what", "  where", "bucket", "  s3://" + "x" * 40]


def test_a_row_without_a_last_value_has_no_line_for_it():
    assert output.format_table(["a", "b"], [["one", ""]], 3) == ["a", "  b", "one"]


@pytest.mark.parametrize("width", [None, 20, 60, 200])
def test_no_text_is_lost_at_any_width(width):
    for text in (
        " ".join(output.format_table(COLUMNS, ROWS, width)),
        " ".join(output.format_answer(COLUMNS, ROWS, width)),
    ):
        assert [
            word for row in ROWS for cell in row for word in cell.split() if word not in text.split()
        ] == []


def test_an_answer_too_wide_has_a_line_for_each_value():
    assert output.format_answer(["id", "long"], [(1, "x" * 30), (2, None)], 20) == [
        "-- row 1",
        "id    1",
        f"long  {'x' * 30}",
        "-- row 2",
        "id    2",
        "long  NULL",
    ]


def test_an_empty_answer_shows_its_columns():
    assert output.format_answer(["id", "name"], [], 80) == ["id  name"]


def test_wide_characters_keep_columns_aligned():
    first, second = output.align(["a", "b"], [["値段", "x"]])
    assert first.index("b") == 6
    assert cell_len(second[: second.index("x")]) == 6


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (Decimal("10.9000"), "10.9000"),
        (b"SO-1", "SO-1"),
        (b"\xff\x00", "0xff00"),
        ({"price": Decimal("1.50"), "names": ["é", None]}, '{"price": "1.50", "names": ["é", null]}'),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
        ("[bold]as it is[/bold]", "[bold]as it is[/bold]"),
    ],
)
def test_values_are_shown_as_they_are(value, shown):
    assert output.to_text(value) == shown


def test_an_answer_in_a_file_is_whole(capsys):
    query.show(Output(), query.Answer(["name", "note"], [("n" * 100, "[red]:smile:" + "v" * 100)]))
    assert capsys.readouterr().out.splitlines()[1] == f"{'n' * 100}  [red]:smile:{'v' * 100}"


@pytest.mark.parametrize(("terminal", "lines"), [(False, 3), (True, 6)])
def test_a_table_keeps_its_width_unless_the_terminal_is_narrower(terminal, lines):
    voice = Output()
    out = io.StringIO()
    voice.out = Console(file=out, force_terminal=terminal, width=50, soft_wrap=True, color_system=None)
    voice.table(COLUMNS, ROWS)
    assert out.getvalue().count("\n") == lines
    assert ROWS[0][0] in out.getvalue()
