"""Read a workbook back: the sheet's XML, cell by cell, as any other program would."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import pyarrow as pa

from config.exports.contract import Column, Contract, decimal_type
from glue_jobs.delivery.formats.tables import BATCH, build_schema
from glue_jobs.delivery.formats.xlsx import ESCAPED
from glue_jobs.delivery.verify import EXACT, zero
from glue_jobs.errors import Inconsistent

_SHEET: Final = "xl/worksheets/sheet1.xml"
_CHUNK: Final = 1 << 20
_DAY_ZERO: Final = date(1899, 12, 30)
_EPOCH: Final = datetime(1899, 12, 30, tzinfo=UTC)
_MILLISECONDS: Final = 86_400_000
#: Text cells are inline, numbers have no type, and booleans are b. A formula has an element of its own.
_TEXT: Final = "inlineStr"
_NUMBER: Final = "n"
_BOOLEAN: Final = "b"
_FORMULA: Final = "f"


def read(path: Path, contract: Contract, as_text: frozenset[str]) -> Iterator[pa.Table]:
    """Yield the rows of a workbook. Raises Inconsistent if it is not what the job writes."""
    columns = contract.columns
    parser = _SheetParser(len(columns))
    header: list[Any] | None = None
    held: list[list[Any]] = []
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_SHEET) as sheet:
            while True:
                block = sheet.read(_CHUNK)
                parser.feed(block)
                rows = parser.take_rows()
                if header is None and rows:
                    header = rows.pop(0)
                held += rows
                if len(held) >= BATCH or not block:
                    yield _build_table(held, contract, as_text)
                    held = []
                if not block:
                    break
    except (zipfile.BadZipFile, KeyError, EOFError, expat.ExpatError):
        raise Inconsistent("EXP-FORMAT-DIFFERS", "the workbook can't be read") from None
    if header != [(_TEXT, column.name) for column in columns]:
        raise Inconsistent("EXP-FORMAT-DIFFERS", "the workbook does not begin with the names of the columns")


class _SheetParser:
    """Collects the cells of a sheet, as (type, content), row by row; None for a cell without content."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[Any]] = []
        self._row: list[Any] = []
        self._kind = ""
        self._column = 0
        self._content: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text

    def feed(self, block: bytes) -> None:
        """Parse the next bytes; none at the end."""
        self._parser.Parse(block, not block)

    def take_rows(self) -> list[list[Any]]:
        """Return the rows that have ended since the last call."""
        rows = self._rows
        self._rows = []
        return rows

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            self._row = [None] * self._width
        elif name == "c":
            self._kind = attributes.get("t", _NUMBER)
            self._column = _read_column(attributes["r"])
            if self._column >= self._width:
                raise Inconsistent("EXP-FORMAT-DIFFERS", "the workbook has more columns than the file")
        elif name == _FORMULA:
            raise Inconsistent("EXP-FORMAT-DIFFERS", "the workbook has a formula")
        self._content = []

    def _end(self, name: str) -> None:
        if name in ("v", "t"):
            self._row[self._column] = (self._kind, "".join(self._content))
        elif name == "row":
            self._rows.append(self._row)

    def _add_text(self, text: str) -> None:
        self._content.append(text)


def _read_column(reference: str) -> int:
    """Return the index of the column of a cell such as B12."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _build_table(rows: list[list[Any]], contract: Contract, as_text: frozenset[str]) -> pa.Table:
    arrays = []
    for number, column in enumerate(contract.columns):
        is_text = column.type == "text" or column.name in as_text
        try:
            values = [
                None if row[number] is None else _read_cell(row[number], column, is_text) for row in rows
            ]
            arrays.append(pa.array(values, build_schema(contract).field(column.name).type))
        except (ValueError, ArithmeticError, pa.ArrowInvalid):
            what = f"the workbook has a cell in column {column.name} that is not {column.type}"
            raise Inconsistent("EXP-FORMAT-DIFFERS", what) from None
    return pa.Table.from_arrays(arrays, schema=build_schema(contract))


def _read_cell(cell: tuple[str, str], column: Column, is_text: bool) -> Any:
    kind, content = cell
    expected = _BOOLEAN if column.type == "boolean" else _NUMBER
    if kind != (_TEXT if is_text else expected):
        raise ValueError("another type of cell")
    if is_text:
        text = ESCAPED.sub(lambda match: chr(int(match[1], 16)), content)
        return text if column.type == "text" else _parse_text(text, column)
    if column.type == "boolean":
        return content == "1"
    if column.type == "date":
        return _DAY_ZERO + timedelta(days=int(content))
    if column.type == "timestamp":
        return _EPOCH + timedelta(milliseconds=round(float(content) * _MILLISECONDS))
    return _round(Decimal(content), column)


def _parse_text(text: str, column: Column) -> Any:
    if column.type == "date":
        return date.fromisoformat(text)
    return datetime.fromisoformat(text) if column.type == "timestamp" else _round(Decimal(text), column)


def _round(number: Decimal, column: Column) -> Any:
    """Return the column's number that is the same for Excel. Raises ValueError if there is none."""
    size = decimal_type(column.type)
    rounded = EXACT.quantize(number, zero(size[1] if size else 0))
    if float(rounded) != float(number):
        raise ValueError("not a number of the column")
    return rounded if size else int(rounded)
