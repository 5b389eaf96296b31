"""The finished file, read back once: what is in it is told from its own bytes, not from what was meant to be written.

One pass gives checksums, the count of records, totals, what charts show, the first rows, and finds what looks like
personal data where the contract promised that none is left.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from exports.contract import Column, Contract, decimal_type
from glue_jobs.delivery.csv_line import RECORD_END
from glue_jobs.delivery.sinks import Part
from glue_jobs.errors import Inconsistent

_CHUNK = 8 << 20
_END = RECORD_END.encode()
_FIRST_ROWS = 20
#: What e-mail addresses and international telephone numbers look like (RE2), with the byte without which there is none.
_DETECTORS = {
    "an e-mail address": (b"@", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
    "a telephone number": (b"+", r"\+[0-9][0-9 ()./-]{6,}[0-9]"),
}
_SERIES_LIMIT = 5_000


class Readable(Protocol):
    def read(self, amt: int) -> bytes: ...


@attrs.frozen
class FileFound:
    """`size` and `sha256` are of the object as stored."""

    key: str
    size: int
    sha256: str
    rows: int


@attrs.define
class Inspection:
    """`content_sha256` is of header and records, whatever their compression and in however many files.

    `totals` has sum, min and max of each numeric column; `nulls` counts empty cells and `disallowed` values that the
    contract doesn't list, by column; `series` the value of each chart by the text of its axis.
    """

    files: list[FileFound] = attrs.field(factory=list)
    content_sha256: str = ""
    rows: int = 0
    totals: dict[str, dict[str, Decimal | None]] = attrs.field(factory=dict)
    series: list[dict[str | None, Decimal]] = attrs.field(factory=list)
    first_rows: list[list[str | None]] = attrs.field(factory=list)
    personal: dict[str, int] = attrs.field(factory=dict)
    nulls: dict[str, int] = attrs.field(factory=dict)
    disallowed: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Object:
    """One file to read back: its bytes as stored, and the parts it was written in."""

    key: str
    body: Readable
    parts: list[Part]


def inspect(objects: Iterable[Object], contract: Contract, header: bytes) -> Inspection:
    """The objects together are the file. Raises Inconsistent where they are not what was written, or not CSV."""
    content = hashlib.sha256(header)
    found = Inspection(series=[{} for _ in contract.report.chart])
    for one in objects:
        stored = _Checked(one.body, one.parts)
        text: Any = gzip.GzipFile(fileobj=io.BufferedReader(stored)) if contract.delivery.gzip else stored
        before = found.rows
        for block in _records(text, header):
            content.update(block)
            _take(block, contract, found)
        found.files.append(FileFound(one.key, stored.size, stored.finish(), found.rows - before))
    found.content_sha256 = content.hexdigest()
    for column in contract.columns:
        if column.numeric:
            found.totals.setdefault(column.name, {"sum": Decimal(0), "min": None, "max": None})
    return found


class _Checked(io.RawIOBase):
    """A stream that hashes what passes, as a whole and part by part."""

    def __init__(self, body: Readable, parts: list[Part]) -> None:
        self._body = body
        self._parts = iter(parts)
        self._part: Part | None = None
        self._left = 0
        self._of_part = hashlib.sha256()
        self._whole = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, amount: int = -1) -> bytes:
        data = self._body.read(amount if amount > 0 else _CHUNK)
        self._whole.update(data)
        self.size += len(data)
        view = memoryview(data)
        while view:
            if not self._left:
                self._next_part()
            taken, view = view[: self._left], view[self._left :]
            self._of_part.update(taken)
            self._left -= len(taken)
        return data

    def finish(self) -> str:
        self._verify()
        if self._left or next(self._parts, None) is not None:
            raise Inconsistent("EXP-CHECKSUM", "the file is shorter than what was written", _AGAIN)
        return self._whole.hexdigest()

    def _next_part(self) -> None:
        self._verify()
        self._part = next(self._parts, None)
        if self._part is None:
            raise Inconsistent("EXP-CHECKSUM", "the file is longer than what was written", _AGAIN)
        self._left, self._of_part = self._part.size, hashlib.sha256()

    def _verify(self) -> None:
        if self._part is not None and self._of_part.hexdigest() != self._part.sha256:
            raise Inconsistent("EXP-CHECKSUM", f"part {self._part.number} of the file was changed on the way", _AGAIN)


_AGAIN = "Nothing was published; run again, and report it if it stays so"


def _records(stream: Readable, header: bytes) -> Iterator[bytes]:
    """Blocks of whole records, without the header."""
    rest = stream.read(_CHUNK)
    if not rest.startswith(header):
        raise Inconsistent("EXP-HEADER", "the file does not begin with its header", _AGAIN)
    rest = rest[len(header) :]
    while True:
        cut = _last_end(rest)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        more = stream.read(_CHUNK)
        if not more:
            break
        rest += more
    if rest:
        raise Inconsistent("EXP-RECORDS", "the file ends in the middle of a record", _AGAIN)


def _last_end(data: bytes) -> int:
    """The end of the last whole record: a line end outside quotation marks."""
    at = data.rfind(_END)
    while at >= 0 and data.count(b'"', 0, at) % 2:
        at = data.rfind(_END, 0, at)
    return at + len(_END) if at >= 0 else 0


def _take(block: bytes, contract: Contract, found: Inspection) -> None:
    table = _table(block, contract)
    found.rows += table.num_rows
    for column in contract.columns:
        values = table[column.name]
        found.nulls[column.name] = found.nulls.get(column.name, 0) + values.null_count
        if column.numeric:
            _add_total(found.totals, column.name, values)
        elif column.type == "text":
            _search(block, column, values, found.personal)
        if column.allowed:
            others = pc.sum(pc.invert(pc.is_in(pc.drop_null(values).cast(pa.string()), pa.array(column.allowed)))).as_py() or 0
            found.disallowed[column.name] = found.disallowed.get(column.name, 0) + others
    for chart, series in zip(contract.report.chart, found.series, strict=True):
        _add_series(series, table, chart.x, chart.y)
    for row in table.slice(0, max(0, _FIRST_ROWS - len(found.first_rows))).to_pylist():
        found.first_rows.append([None if value is None else str(value) for value in row.values()])


def _table(block: bytes, contract: Contract) -> pa.Table:
    null_text = contract.delivery.null_text
    options = csv.ConvertOptions(
        column_types={column.name: _arrow_type(column) for column in contract.columns},
        null_values=[null_text],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    names = [column.name for column in contract.columns]
    read = csv.ReadOptions(column_names=names, block_size=len(block) + 1)
    try:
        parse = csv.ParseOptions(newlines_in_values=b'"' in block)
        return csv.read_csv(pa.BufferReader(block), read_options=read, parse_options=parse, convert_options=options)
    except pa.ArrowInvalid as error:
        raise Inconsistent("EXP-RECORDS", f"the file is not what the contract says: {_short(error)}", _AGAIN) from None


def _short(error: Exception) -> str:
    # What Arrow says ends with the offending row, which may hold what nobody should read in a log.
    return str(error).split(":")[0][:120]


def _arrow_type(column: Column) -> pa.DataType:
    if size := decimal_type(column.type):
        return pa.decimal128(*size)
    return pa.int64() if column.type == "integer" else pa.string()


def _add_total(totals: dict[str, dict[str, Decimal | None]], name: str, values: pa.ChunkedArray) -> None:
    total = totals.setdefault(name, {"sum": Decimal(0), "min": None, "max": None})
    if len(values) == values.null_count:
        return
    wide = values.cast(pa.decimal128(38, values.type.scale if pa.types.is_decimal(values.type) else 0))
    extremes = pc.min_max(values).as_py()
    total["sum"] = (total["sum"] or Decimal(0)) + pc.sum(wide).as_py()
    total["min"] = min(Decimal(extremes["min"]), extremes["min"] if total["min"] is None else total["min"])
    total["max"] = max(Decimal(extremes["max"]), extremes["max"] if total["max"] is None else total["max"])


def _search(block: bytes, column: Column, values: pa.ChunkedArray, personal: dict[str, int]) -> None:
    if column.personal and column.personal.treatment in ("hash", "keep"):
        return
    for what, (telling, pattern) in _DETECTORS.items():
        if telling in block and (hits := pc.sum(pc.match_substring_regex(values, pattern)).as_py()):
            place = f"{column.name}: {what}"
            personal[place] = personal.get(place, 0) + hits


def _add_series(series: dict[str | None, Decimal], table: pa.Table, x: str, y: str) -> None:
    if y == "rows":
        counted = table.select([x]).group_by(x).aggregate([([], "count_all")])
        values = counted["count_all"]
    else:
        counted = table.select([x, y]).group_by(x).aggregate([(y, "sum")])
        values = counted[f"{y}_sum"]
    for label, value in zip(counted[x].to_pylist(), values.to_pylist(), strict=True):
        text = None if label is None else str(label)
        if text in series or len(series) < _SERIES_LIMIT:
            series[text] = series.get(text, Decimal(0)) + Decimal(value or 0)
