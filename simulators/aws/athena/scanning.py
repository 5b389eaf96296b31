"""Rows of an Iceberg table, and how many bytes it takes to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.table import StaticTable

from simulators.aws.athena.catalog import reading
from simulators.aws.athena.outcomes import NOT_SIMULATED, Failed
from simulators.tableflow.iceberg_commit import live_entries
from simulators.tableflow.iceberg_upkeep import live_rows


@attrs.frozen
class Scan:
    """What is to be read: `bytes` of it, by `rows`. Both raise Failed."""

    bytes: int
    rows: Callable[[], pa.Table]


def plan(table: StaticTable, wanted: Sequence[str], snapshot: int | None) -> Scan:
    """`wanted` are columns' names as the table has them; the rows have them in lower case."""
    with reading(table.metadata_location):
        entries = live_entries(table.metadata, table.io)
        if keys := _keys(table, entries):
            if snapshot is not None:
                raise Failed(f"{NOT_SIMULATED}: an earlier snapshot of a table with equality deletes")
            return Scan(sum(each.data_file.file_size_in_bytes for each in entries), lambda: _surviving(table, keys))
        return _plain(table, wanted, snapshot)


def _plain(table: StaticTable, wanted: Sequence[str], snapshot: int | None) -> Scan:
    scan = table.scan(selected_fields=tuple(wanted), snapshot_id=snapshot)
    tasks, fields = list(scan.plan_files()), scan.projection().field_ids

    def rows() -> pa.Table:
        with reading(table.metadata_location):
            return _folded(ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter).to_table(tasks))

    return Scan(sum(_size(each, fields) for task in tasks for each in (task.file, *task.delete_files)), rows)


def _keys(table: StaticTable, entries: Sequence[ManifestEntry]) -> list[str]:
    """The columns by which rows are deleted; none in most tables. PyIceberg's own scan refuses these deletes."""
    deletes = [each.data_file for each in entries if each.data_file.content is DataFileContent.EQUALITY_DELETES]
    found = {tuple(each.equality_ids or ()) for each in deletes}
    if len(found) > 1:
        raise Failed(f"{NOT_SIMULATED}: equality deletes by one key and by another")
    return [str(table.schema().find_column_name(number)) for key in found for number in key]


def _surviving(table: StaticTable, keys: Sequence[str]) -> pa.Table:
    """All columns of them."""
    with reading(table.metadata_location):
        return _folded(live_rows(table, keys).rename_columns([field.name for field in table.schema().fields]))


def _folded(rows: pa.Table) -> pa.Table:
    return rows.rename_columns([name.lower() for name in rows.column_names])


def _size(file: DataFile, fields: set[int]) -> int:
    """Only the columns that are read, where the file's sizes are known."""
    if not file.column_sizes:
        return int(file.file_size_in_bytes)
    return sum(size for number, size in file.column_sizes.items() if number in fields)
