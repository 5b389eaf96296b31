"""A CSV file as four readers see it: rows of texts, without the header; None is what a reader takes for missing.

Python's csv and pandas don't look at quotation marks, so they can't tell a missing value from a text that looks like it.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import duckdb
import pandas
import pyarrow as pa
from pyarrow import csv as arrow_csv


def by_python(data: bytes, names: list[str], null_text: str) -> list[list[str]]:
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
    assert header == names
    return rows


def by_pandas(data: bytes, names: list[str], null_text: str) -> list[list[str]]:
    # Its other engine ends a text at NUL.
    frame = pandas.read_csv(io.BytesIO(data), dtype=str, na_filter=False, engine="python", encoding="utf-8-sig")
    assert list(frame.columns) == names
    return frame.to_numpy().tolist()


def by_arrow(data: bytes, names: list[str], null_text: str) -> list[list[str | None]]:
    kept = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[null_text],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parsed = arrow_csv.ParseOptions(newlines_in_values=True)
    table = arrow_csv.read_csv(io.BytesIO(data), convert_options=kept, parse_options=parsed)
    assert table.column_names == names
    return [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def by_duckdb(folder: Path, types: dict[str, str] | None = None):
    """A reader that takes the file from `folder`; it reads text, or the types that are given by column."""

    def read(data: bytes, names: list[str], null_text: str) -> list[list]:
        file = folder / "read.csv"
        file.write_bytes(data)
        with duckdb.connect() as connection:
            found = connection.read_csv(
                str(file),
                header=True,
                sep=",",
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
