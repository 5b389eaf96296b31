"""`python -m dev.benchmarks.formats [ROWS]`: what it costs the driver to write and read back a file of each
format, without S3.

The default is the largest workbook: 1,048,575 rows of 12 columns. Each format is measured in a process of its
own.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from config.exports.contract import Column, Contract
from config.exports.contracts import parse
from config.exports.file_model import Format
from glue_jobs.delivery.excel_limits import MOST_ROWS
from glue_jobs.delivery.formats import jsonl, parquet, xlsx_reader
from glue_jobs.delivery.formats.tables import BATCH, Fingerprint, build_schema
from glue_jobs.delivery.formats.xlsx import XlsxWriter
from lakeferry.local.bootstrap import ROOT

#: Twelve columns as in the shipped contract of order lines: texts, pseudonyms, numbers, a day and a time.
_TYPES: Final = (
    *("text", "integer", "timestamp", "date", "text", "text"),
    *("integer", "decimal(12,4)", "decimal(18,2)", "text", "text", "boolean"),
)
_HEX: Final = 64
_FORMS: Final[tuple[Format, ...]] = ("parquet", "jsonl", "xlsx")


def _build_contract() -> Contract:
    text = (ROOT / "project" / "exports" / "weekly_sales.toml").read_text(encoding="utf-8")
    shipped = parse(text, name="weekly_sales.toml")
    columns = [
        Column(name=f"column_{number}", type=type_, title="", description="", nullable=True)
        for number, type_ in enumerate(_TYPES)
    ]
    return attrs.evolve(shipped, column=columns)


def _make_value(type_: str, number: int) -> Any:
    if type_ == "timestamp":
        return datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=number % 604_800)
    if type_ == "date":
        return date(2026, 11, 2) + timedelta(days=number % 7)
    if type_.startswith("decimal"):
        return Decimal(number % 100_000) / 100
    if type_ == "boolean":
        return number % 3 == 0
    return number if type_ == "integer" else f"{number * 7919:0{_HEX if number % 2 else 12}x}"


def _make_tables(contract: Contract, rows: int) -> Iterator[pa.Table]:
    schema = build_schema(contract)
    for start in range(0, rows, BATCH):
        numbers = range(start, min(rows, start + BATCH))
        arrays = [
            pa.array([_make_value(field.type, number) for number in numbers], schema.field(field.name).type)
            for field in contract.columns
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)


def _open_writer(form: Format, path: Path, contract: Contract, rows: int) -> Any:
    if form == "xlsx":
        return XlsxWriter(path, contract, rows, frozenset())
    kind = parquet.ParquetWriter if form == "parquet" else jsonl.JsonlWriter
    return kind(path.open("wb", buffering=0), contract)


def _read(form: Format, path: Path, contract: Contract) -> Iterator[pa.Table]:
    if form == "xlsx":
        return xlsx_reader.read(path, contract, frozenset())
    return parquet.read(path, contract) if form == "parquet" else jsonl.read(path.open("rb"), contract)


def measure(form: Format, rows: int) -> str:
    """Return a line of a table: processor seconds to write and to read back, megabytes of the file, of the
    process before, and at most.
    """
    contract = _build_contract()
    written = Fingerprint(contract)
    read = Fingerprint(contract)
    used = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows.{form}"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        writer = _open_writer(form, path, contract, rows)
        for table in _make_tables(contract, rows):
            written.add(table)
            begun = time.process_time()
            writer.add(table)
            used += time.process_time() - begun
        begun = time.process_time()
        writer.close()
        used += time.process_time() - begun
        begun = time.process_time()
        for table in _read(form, path, contract):
            read.add(table)
        seconds = time.process_time() - begun
        size = path.stat().st_size / 1e6
    if written.digest() != read.digest():
        raise SystemExit(f"{form} was not read back as it was written")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"| {form} | {rows:,} | {used:.0f} s | {seconds:.0f} s | {size:.0f} MB | {before} MB | {peak} MB |"


def main() -> None:
    rows = int(sys.argv[1]) if sys.argv[1:] else MOST_ROWS
    print("| format | rows | write | read back | file | memory before | most memory |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for form in _FORMS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(measure, (form, rows)), flush=True)


if __name__ == "__main__":
    main()
