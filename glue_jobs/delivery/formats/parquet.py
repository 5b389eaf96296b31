"""Parquet: typed columns (decimal, date, timestamp in UTC), compressed with Zstandard."""

from __future__ import annotations

from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from config.exports.contract import Contract
from glue_jobs.delivery.formats.tables import BATCH, build_schema
from glue_jobs.errors import Inconsistent


class ParquetWriter:
    """Writes rows to `target`, a row group for each table, and doesn't close it."""

    def __init__(self, target: RawIOBase, contract: Contract) -> None:
        self._schema = build_schema(contract)
        self._writer = parquet.ParquetWriter(
            target, self._schema, version="2.6", compression="zstd", store_schema=False
        )

    def add(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=BATCH)

    def close(self) -> None:
        self._writer.close()

    def discard(self) -> None:
        self._writer.close()


def read(path: Path, contract: Contract) -> Iterator[pa.Table]:
    """Yield the rows of a file. Raises Inconsistent if it has other columns or types than the contract."""
    try:
        with parquet.ParquetFile(path) as file:
            if not file.schema_arrow.equals(build_schema(contract)):
                raise Inconsistent("EXP-FORMAT-DIFFERS", "the Parquet file has other columns or types")
            for batch in file.iter_batches(BATCH):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Inconsistent("EXP-FORMAT-DIFFERS", "the Parquet file can't be read") from None
