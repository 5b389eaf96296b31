"""XLSX: a workbook with one sheet for people. No cell is ever a formula.

Excel has numbers of 15 digits, no time zones, times in milliseconds, and days since 1 March 1900 (it takes
1900 for a leap year, and others don't). A column with a value that Excel would change is written as text, all
of it, in the form that the CSV file has (`excel_limits`).
"""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from config.exports.contract import Column, Contract, decimal_type

_DAY_ZERO: Final = date(1899, 12, 30)
_MILLISECONDS: Final = 86_400_000
#: What every workbook says of when it was made, so that the same rows give the same bytes.
_CREATED: Final = datetime(2000, 1, 1)
_SHEET_NAME: Final = 31
#: Excel keeps this name of a sheet for itself.
_RESERVED: Final = "history"
_WIDTHS: Final = {"timestamp": 23, "date": 11, "boolean": 8, "integer": 12, "text": 18}
_WIDEST: Final = 60
#: Zeros in a number format. Excel shows at most 30.
_MOST_PLACES: Final = 30


class _Sheet(Worksheet):  # type: ignore[misc]  # the library has no types
    """A sheet that never takes a text for markup: XlsxWriter does if one begins with <r> and ends with
    </r>.
    """

    def _xml_rich_inline_string(self, string: str, attributes: Any = ()) -> None:
        self._xml_inline_string(string, True, attributes)


class XlsxWriter:
    """Writes rows to the file `path`. `as_text` are the columns that Excel can't hold as they are."""

    def __init__(self, path: Path, contract: Contract, rows: int, as_text: frozenset[str]) -> None:
        self._columns = contract.columns
        self._as_text = as_text
        self._row = 0
        self._book = xlsxwriter.Workbook(
            str(path), {"constant_memory": True, "tmpdir": str(path.parent), "strings_to_numbers": False}
        )
        self._book.set_properties({"title": contract.title, "created": _CREATED})
        name = "rows" if contract.name == _RESERVED else contract.name[:_SHEET_NAME]
        self._sheet: Worksheet = self._book.add_worksheet(name, worksheet_class=_Sheet)
        bold = self._book.add_format({"bold": True})
        self._empty = self._book.add_format({"align": "left"})
        self._formats = [self._choose_format(column) for column in self._columns]
        self._sheet.freeze_panes(1, 0)
        self._sheet.autofilter(0, 0, rows, len(self._columns) - 1)
        for number, column in enumerate(self._columns):
            self._sheet.set_column(number, number, _choose_width(column))
            self._sheet.write_string(0, number, column.name, bold)

    def add(self, table: pa.Table) -> None:
        cells = [_list_cells(table[column.name], column, self._as_text) for column in self._columns]
        writes = [self._choose_write(column) for column in self._columns]
        parts = list(zip(range(len(cells)), writes, self._formats, strict=True))
        for row in zip(*cells, strict=True):
            self._row += 1
            if not any(value is not None for value in row):
                self._sheet.write_blank(self._row, 0, None, self._empty)  # or there would be no row
            for value, (number, write, style) in zip(row, parts, strict=True):
                if value is not None:
                    write(self._row, number, value, style)

    def close(self) -> None:
        self._book.close()

    def discard(self) -> None:
        """Close the file in progress of a workbook that is not needed."""
        self._book.fileclosed = True
        rows: Any = self._sheet.row_data_fh
        rows.close()

    def _choose_write(self, column: Column) -> Any:
        if column.type == "text" or column.name in self._as_text:
            return self._sheet.write_string
        return self._sheet.write_boolean if column.type == "boolean" else self._sheet.write_number

    def _choose_format(self, column: Column) -> Format | None:
        if column.name in self._as_text or column.type in ("text", "boolean"):
            return None
        if size := decimal_type(column.type):
            places = min(size[1], _MOST_PLACES)
            return self._book.add_format({"num_format": f"0.{'0' * places}" if places else "0"})
        forms = {"integer": "0", "date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss.000"}
        return self._book.add_format({"num_format": forms[column.type]})


def _choose_width(column: Column) -> int:
    usual = _WIDTHS.get(column.type, _WIDTHS["integer"])
    if column.is_hashed:
        usual = 24
    return min(_WIDEST, max(usual, len(column.name) + 4))


def _list_cells(values: pa.ChunkedArray, column: Column, as_text: frozenset[str]) -> list[Any]:
    """Return what to write for typed values: numbers, also for days and times, or texts."""
    if column.name in as_text:
        return _write_texts(values)
    if column.type == "date":
        days = values.cast(pa.int32()).to_pylist()
        shift = (date(1970, 1, 1) - _DAY_ZERO).days
        return [None if day is None else day + shift for day in days]
    if column.type == "timestamp":
        shift = (date(1970, 1, 1) - _DAY_ZERO).days
        milliseconds = values.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()
        return [None if value is None else shift + value / _MILLISECONDS for value in milliseconds]
    return list(values.to_pylist())


def _write_texts(values: pa.ChunkedArray) -> list[str | None]:
    """Return typed values as the CSV file has them."""
    return [None if value is None else _write_text(value) for value in values.to_pylist()]


def _write_text(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


#: An escaped character in a text of a workbook.
ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
