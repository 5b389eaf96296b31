"""Read the data file of an export, and compare its rows with those that it should have."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Sequence

from config.exports.contract import Contract
from config.exports.file_model import Delivery
from lakeferry.verification import oracle


def read_records(content: bytes, delivery: Delivery) -> list[list[str]]:
    """Return the header and the rows of a file. Raises csv.Error, UnicodeDecodeError, gzip.BadGzipFile."""
    data = gzip.decompress(content) if delivery.gzip else content
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    return list(csv.reader(text, strict=True, delimiter=delivery.delimiter))


def find_difference(
    contract: Contract,
    header: list[str],
    delivered: list[list[str]],
    expected: Sequence[list[str | None]],
    *,
    show_rows: bool,
) -> str:
    """Return how a file differs from the columns of its contract and the expected rows in their order, "" if
    it doesn't.

    The file breaks ties of the columns that it is sorted by in its own way. With `show_rows`, the text has a
    row of each side: of real data, nobody may show it.
    """
    names = [column.name for column in contract.columns]
    if header != names:
        return f"the file of {contract.name} has the columns {', '.join(header)}"
    texts = [column.type == "text" for column in contract.columns]
    cells = []
    for row in expected:
        cells.append([_write(cell, contract.delivery.null_text, is_text=is_text)
                      for cell, is_text in zip(row, texts, strict=True)])  # fmt: skip
    extra = Counter(map(tuple, delivered)) - Counter(map(tuple, cells))
    missing = Counter(map(tuple, cells)) - Counter(map(tuple, delivered))
    if extra or missing:
        found = f"{contract.name}: {len(delivered)} rows were delivered, {len(cells)} were expected: "
        if show_rows:
            return f"{found}{next(iter(extra), 'nothing')} instead of {next(iter(missing), 'nothing')}"
        return f"{found}{extra.total()} that were not expected, and {missing.total()} are missing"
    sorted_by = [names.index(name) for name in contract.delivery.order_by]
    order = [[row[index] for index in sorted_by] for row in delivered]
    wanted = [[row[index] for index in sorted_by] for row in cells]
    if order != wanted:
        return f"{contract.name}: the rows are not sorted by {', '.join(contract.delivery.order_by)}"
    return ""


def _write(cell: str | None, null_text: str, *, is_text: bool) -> str:
    if cell is None:
        return null_text
    return oracle.guard(cell) if is_text else cell
