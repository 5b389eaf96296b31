"""Parquet files of an Iceberg table: data, and equality deletes, which PyIceberg 0.12 can neither write nor read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.io.pyarrow import ParquetFormatModel
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.typedef import Record

_UNPARTITIONED: Final = Record()


def write_rows(table: Table, rows: pa.Table) -> DataFile:
    """`rows` has the table's columns under their Parquet names, with field ids."""
    return _write(table, table.schema(), rows, DataFileContent.DATA)


def write_equality_deletes(table: Table, keys: pa.Table, columns: Sequence[str]) -> DataFile:
    """Delete from files of earlier commits every row that equals a row of `keys` in `columns` (names of the table)."""
    schema = table.schema().select(*columns)
    return _write(table, schema, keys, DataFileContent.EQUALITY_DELETES)


def _write(table: Table, schema: Schema, rows: pa.Table, content: DataFileContent) -> DataFile:
    # Tableflow's own files are named by a UUID alone.
    path = table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet")
    output = table.io.new_output(path)
    writer = ParquetFormatModel().create_writer(output, sanitize_column_names(schema), table.properties)
    with writer:
        writer.write(rows)
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=_UNPARTITIONED,
        file_size_in_bytes=len(output),
        equality_ids=[each.field_id for each in schema.fields] if content is DataFileContent.EQUALITY_DELETES else None,
        **writer.result().to_serialized_dict(),
    )
    file.spec_id = table.spec().spec_id
    return file
