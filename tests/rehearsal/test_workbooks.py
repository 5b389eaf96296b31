"""What a rehearsal says of workbooks that LibreOffice opens."""

from __future__ import annotations

import shutil

import pytest
import xlsxwriter

from lakeferry.rehearsal.checks.workbooks import OFFICE, NotOpened, find_difference, read_first_sheet

ROWS = [
    ["id", "price", "at", "paid", "note"],
    ["a", "12.3000", "2026-11-12T19:32:39.107000Z", "true", ""],
    ["b", "-1", "2026-11-12T19:32:39.000000Z", "false", "'=1+1"],
]
SHEET = [
    ["id", "price", "at", "paid", "note"],
    ["a", "12.3", "2026-11-12 19:32:39.107", "TRUE", ""],
    ["b", "-1", "2026-11-12 19:32:39", "FALSE", "'=1+1"],
]


def test_a_sheet_has_the_values_of_the_csv_file_in_its_own_form():
    assert find_difference(SHEET, ROWS, "") == ""


def test_a_missing_value_is_an_empty_cell():
    assert find_difference([[""]], [["NULL"]], "NULL") == ""
    assert find_difference([["NULL"]], [[""]], "NULL") != ""


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [(1, 1, "12.31"), (1, 2, "2026-11-12 19:32:39.108"), (2, 3, "TRUE"), (2, 4, "2"), (0, 0, "ID")],
)
def test_each_changed_cell_is_found(row, column, cell):
    changed = [list(cells) for cells in SHEET]
    changed[row][column] = cell
    expected = f"row {row + 1}, column {column + 1} is {cell!r}"
    assert find_difference(changed, ROWS, "").startswith(expected)


def test_a_missing_row_is_found():
    assert find_difference(SHEET[:-1], ROWS, "").startswith("row 3, column 1 is None")


@pytest.fixture
def office():
    found = shutil.which(OFFICE)
    if found is None:
        pytest.skip("LibreOffice is not installed on this machine")
    return found


@pytest.mark.deep
def test_libreoffice_reads_a_workbook_and_refuses_a_damaged_one(office, tmp_path):
    file = tmp_path / "sales.xlsx"
    with xlsxwriter.Workbook(file) as workbook:
        sheet = workbook.add_worksheet("sales")
        sheet.write_row(0, 0, ["id", "price"])
        sheet.write_row(1, 0, ["ü", 12.5])
    assert read_first_sheet(file, office) == [["id", "price"], ["ü", "12.5"]]
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(NotOpened):
        read_first_sheet(file, office)
