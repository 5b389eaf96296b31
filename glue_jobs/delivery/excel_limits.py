"""What Excel can hold. Executors import this module, so it doesn't import XlsxWriter."""

from __future__ import annotations

from datetime import date
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from config.exports.contract import Column, Contract, decimal_type
from glue_jobs.errors import Blocked

#: Rows in a sheet without the header.
MOST_ROWS: Final = 1_048_575
#: Significant digits of a number.
MOST_DIGITS: Final = 15
#: From this day on, all programs count days alike. It is day 61.
FIRST_DAY: Final = date(1900, 3, 1)


def require_rows(contract: Contract, rows: int, window: str) -> None:
    """Raises Blocked if the contract wants a workbook and a sheet can't hold the rows."""
    if "xlsx" in contract.delivery.also and rows > MOST_ROWS:
        raise Blocked(
            "EXP-XLSX-ROWS",
            f"window {window} has {rows:,} rows, and a sheet of Excel holds {MOST_ROWS:,} and a header",
        )


def is_exact(values: pa.ChunkedArray, column: Column) -> bool:
    """Return whether Excel can hold all of these values as numbers or dates. Dates and times are texts, as
    `reading.parse_block` returns them.
    """
    if column.type == "date":
        return not pc.any(pc.less(values, FIRST_DAY.isoformat())).as_py()
    if column.type == "timestamp":
        is_late = pc.greater_equal(values, f"{FIRST_DAY.isoformat()}T")
        return pc.all(pc.and_(is_late, pc.ends_with(values, "000Z"))).as_py() is not False
    if not column.numeric:
        return True
    size = decimal_type(column.type)
    if size and size[0] <= MOST_DIGITS:
        return True
    digits = pc.replace_substring_regex(values.cast(pa.string()), "[-.]|[eE].*$", "")
    length = pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py()
    return length is None or length <= MOST_DIGITS
