"""Read the finished file back once, to describe it from its own bytes and not from what was meant to be
written.

One pass computes checksums, the number of records, totals, values of charts and the first rows. It also has
the file searched for personal data.
"""

from __future__ import annotations

import hashlib
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column, Contract, decimal_type
from config.exports.file_model import Chart
from glue_jobs.delivery.csv import guarded
from glue_jobs.delivery.excel_limits import is_exact
from glue_jobs.delivery.personal_scan import PersonalScan
from glue_jobs.delivery.reading import CheckedBody, Part, Readable, parse_block, read_blocks
from glue_jobs.delivery.unique import KeyCounter
from glue_jobs.errors import DataProblem

#: Wide enough for sums and differences of the longest decimals; Python's own context rounds to 28 digits.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)

_FIRST_ROWS = 20
#: The most labels of a chart's axis.
SERIES_LIMIT = 5_000
#: The most units of a column. Manifest, mail and report have a total for each.
_UNITS_LIMIT = 200
#: Decimals of up to this many digits can be summed over a block in Arrow's decimal128. Sums of others need
#: decimal256.
_NARROW = 30


@attrs.define
class FileStats:
    """`size` and `sha256` are of the object as stored, `content_sha256` of header and records before
    compression.

    `totals` has min and max of each numeric column, and the sum if it adds up. `units` has the sums by unit
    of those whose unit varies. `nulls` counts empty cells, and `disallowed` values that the contract doesn't
    allow, by column. `repeated_rows` counts rows whose unique key another row has too, and `repeated_keys`
    the values of these keys. `inexact` has the columns with a value that Excel can't hold, if there is a
    workbook. `series` has, for each chart, the value of each label of the axis, and `cut_series` tells
    whether the axis has more labels than these.
    """

    key: str = ""
    size: int = 0
    sha256: str = ""
    content_sha256: str = ""
    rows: int = 0
    totals: dict[str, dict[str, Decimal | None]] = attrs.field(factory=dict)
    units: dict[str, dict[str | None, Decimal]] = attrs.field(factory=dict)
    series: list[dict[str | None, Decimal]] = attrs.field(factory=list)
    cut_series: list[bool] = attrs.field(factory=list)
    first_rows: list[list[str | None]] = attrs.field(factory=list)
    personal: dict[str, int] = attrs.field(factory=dict)
    nulls: dict[str, int] = attrs.field(factory=dict)
    disallowed: dict[str, int] = attrs.field(factory=dict)
    repeated_rows: int = 0
    repeated_keys: int = 0
    inexact: set[str] = attrs.field(factory=set)


def verify_file(
    key: str, body: Readable, parts: list[Part], contract: Contract, header: bytes, *, is_sorted: bool = False
) -> FileStats:
    """Read the file back: `body` has its bytes as stored, and `parts` are those in which it was uploaded.
    `is_sorted` says that equal cells of the columns of `order_by` are in rows that follow each other.

    Raises Inconsistent if the object is not what was written, or not the CSV that the contract describes, and
    DataProblem if a column has too many units.
    """
    stats = FileStats(
        key=key,
        totals={column.name: _start_totals(column) for column in contract.columns if column.numeric},
        units={column.name: {} for column in contract.columns if column.per},
        series=[{} for _ in contract.report.chart],
        cut_series=[False for _ in contract.report.chart],
    )
    scan = PersonalScan(contract)
    keys = KeyCounter(contract.unique, contract.delivery.order_by if is_sorted else [])
    stored = CheckedBody(body, parts)
    unpacked = hashlib.sha256(header)
    for block in read_blocks(stored, contract, header):
        if contract.delivery.gzip:
            unpacked.update(block)
        table = parse_block(block, contract)
        scan.add(block, table)
        _take(table, contract, stats)
        if contract.unique:
            keys.add(table)
    keys.finish()
    stats.repeated_rows = keys.rows
    stats.repeated_keys = keys.keys
    stats.personal = scan.found()
    stats.size = stored.size
    stats.sha256 = stored.finish()
    stats.content_sha256 = unpacked.hexdigest() if contract.delivery.gzip else stats.sha256
    return stats


def _take(table: pa.Table, contract: Contract, stats: FileStats) -> None:
    stats.rows += table.num_rows
    for column in contract.columns:
        values = table[column.name]
        stats.nulls[column.name] = stats.nulls.get(column.name, 0) + values.null_count
        if column.numeric:
            _add_total(stats.totals[column.name], values)
            if column.per and "sum" in column.totals:
                _add_units(stats.units[column.name], table, column.per, column.name)
        if "xlsx" in contract.delivery.also and not is_exact(values, column):
            stats.inexact.add(column.name)
        if column.allowed:
            others = _count_other_values(values, column)
            stats.disallowed[column.name] = stats.disallowed.get(column.name, 0) + others
    for index, chart in enumerate(contract.report.chart):
        rows = _filter_unit(table, chart, contract)
        stats.cut_series[index] |= _add_series(stats.series[index], rows, chart.x, chart.y)
    for row in table.slice(0, _FIRST_ROWS - len(stats.first_rows)).to_pylist():
        stats.first_rows.append([None if value is None else plain(value) for value in row.values()])


def _count_other_values(values: pa.ChunkedArray, column: Column) -> int:
    """Return how many values the contract doesn't allow, compared in the form that they have in the file."""
    allowed = pa.array([_as_read(value, column) for value in column.allowed], values.type)
    return pc.sum(pc.invert(pc.is_in(pc.drop_null(values), allowed))).as_py() or 0


def _as_read(value: str, column: Column) -> Any:
    if column.type == "integer":
        return int(value)
    return Decimal(value) if column.numeric else guarded(value)


def _widen_decimals(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals that are wide enough for the sum of a block: Arrow's sums of integers and decimals
    overflow silently.
    """
    if not pa.types.is_decimal(values.type):
        return values.cast(pa.decimal128(38, 0))
    if values.type.precision <= _NARROW:
        return values.cast(pa.decimal128(38, values.type.scale))
    return values.cast(pa.decimal256(76, values.type.scale))


def _start_totals(column: Column) -> dict[str, Decimal | None]:
    totals: dict[str, Decimal | None] = dict.fromkeys(column.totals)
    if "sum" in totals:
        size = decimal_type(column.type)
        totals["sum"] = zero(size[1] if size else 0)
    return totals


def _add_total(total: dict[str, Decimal | None], values: pa.ChunkedArray) -> None:
    if len(values) == values.null_count:
        return
    extremes = pc.min_max(values).as_py()
    least = Decimal(extremes["min"])
    greatest = Decimal(extremes["max"])
    if "sum" in total:
        total["sum"] = EXACT.add(total["sum"] or Decimal(0), pc.sum(_widen_decimals(values)).as_py())
    total["min"] = least if total["min"] is None else min(least, total["min"])
    total["max"] = greatest if total["max"] is None else max(greatest, total["max"])


def _filter_unit(table: pa.Table, chart: Chart, contract: Contract) -> pa.Table:
    """Return the rows of a chart. If the unit of y varies, these are the rows of one unit."""
    if chart.only is None:
        return table
    units = next(column.per for column in contract.columns if column.name == chart.y)
    return table.filter(pc.equal(table[units], guarded(chart.only)))


def _add_units(sums: dict[str | None, Decimal], table: pa.Table, per: str, name: str) -> None:
    """Add a block to the sums by unit. Raises DataProblem if there are too many units."""
    _add_series(sums, table, per, name)
    if len(sums) > _UNITS_LIMIT:
        raise DataProblem(
            "EXP-TOO-MANY-UNITS",
            f"column {name} has a total for each unit, and {per} has more than {_UNITS_LIMIT} different "
            "values",
            f"If {per} is not a unit such as a currency, remove `per` from {name} or name another column. "
            "If the numbers have no totals, write adds_up = false",
        )


def _add_series(series: dict[str | None, Decimal], table: pa.Table, x: str, y: str) -> bool:
    """Add a block to a series, and return whether it has labels beyond the series' limit.

    Labels are added in the order of the rows, so that a long series always keeps the same ones.
    """
    labels = table[x]
    summed = pa.table({"x": labels, "y": labels if y == "rows" else _widen_decimals(table[y])})
    aggregation: Any = ([], "count_all") if y == "rows" else ("y", "sum")
    grouped = summed.group_by("x", use_threads=False).aggregate([aggregation])
    amounts = grouped["count_all" if y == "rows" else "y_sum"]
    values = dict(zip(grouped["x"].to_pylist(), amounts.to_pylist(), strict=True))
    nothing = zero(getattr(amounts.type, "scale", 0))
    is_cut = False
    for label in pc.unique(labels).to_pylist():
        text = None if label is None else plain(label)
        value = values[label]
        if text in series or len(series) < SERIES_LIMIT:
            series[text] = EXACT.add(series.get(text, nothing), Decimal(value or 0))
        else:
            is_cut = True
    return is_cut


def zero(scale: int) -> Decimal:
    """Return 0 with as many decimal places as the numbers beside it."""
    return Decimal((0, (0,), -scale))


def plain(value: Any) -> str:
    """Return the value as the file shows it: str() of a small decimal would be 1E-8."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
