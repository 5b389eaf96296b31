"""Reads a CSV file with four readers. Rows are lists of texts without the header; None is a missing value.

Python's csv and pandas ignore quotation marks, so they can't distinguish a missing value from a text that
looks like it.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
from pyarrow import csv as arrow_csv


def by_python(data: bytes, names: list[str], null_text: str, delimiter: str = ",") -> list[list[str]]:
    header, *rows = csv.reader(
        io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True, delimiter=delimiter
    )
    assert header == names
    return rows


def by_pandas(data: bytes, names: list[str], null_text: str, delimiter: str = ",") -> list[list[str]]:
    # pandas' other engine ends a text at NUL.
    form = {"engine": "python", "encoding": "utf-8-sig", "sep": delimiter}
    frame = pandas.read_csv(io.BytesIO(data), dtype=str, na_filter=False, **form)
    assert list(frame.columns) == names
    return frame.to_numpy().tolist()


def by_arrow(data: bytes, names: list[str], null_text: str, delimiter: str = ",") -> list[list[str | None]]:
    kept = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[null_text],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parsed = arrow_csv.ParseOptions(newlines_in_values=True, delimiter=delimiter)
    table = arrow_csv.read_csv(io.BytesIO(data), convert_options=kept, parse_options=parsed)
    assert table.column_names == names
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def by_duckdb(folder: Path, types: dict[str, str] | None = None):
    """Return a reader of files in `folder`. It reads text, or the given types by column."""

    def read(data: bytes, names: list[str], null_text: str, delimiter: str = ",") -> list[list]:
        file = folder / "read.csv"
        file.write_bytes(data)
        with duckdb.connect() as connection:
            found = connection.read_csv(
                str(file),
                header=True,
                sep=delimiter,
                quotechar='"',
                escapechar='"',
                na_values=null_text,
                columns={name: (types or {}).get(name, "VARCHAR") for name in names},
                auto_detect=False,
                allow_quoted_nulls=False,
            )
            assert found.columns == names
            return [list(row) for row in found.fetchall()]

    return read


def by_spreadsheet(data: bytes, delimiter: str) -> list[list[str]]:
    """Return the cells of a spreadsheet that splits lines at `delimiter`, whatever the file's delimiter is.

    A quotation mark counts only at the beginning of a cell, and a line ends at CR or LF outside of quotation
    marks.
    """
    return list(
        csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=False, delimiter=delimiter)
    )
