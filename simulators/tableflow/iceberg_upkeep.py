"""Upkeep of an Iceberg table, as its owner does it: read what is alive, expire snapshots, delete what nobody needs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFileContent, ManifestEntry
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.update import RemoveSnapshotsUpdate

from simulators.tableflow.iceberg_commit import apply, live_entries


def live_rows(table: Table, key_columns: Sequence[str]) -> pa.Table:
    """The rows of the current snapshot, oldest commit first, equality deletes on `key_columns` applied.

    Columns have their Parquet names and field ids, ready to be written again.
    """
    entries = live_entries(table.metadata, table.io)
    data = [each for each in entries if each.data_file.content is DataFileContent.DATA]
    deleted = _deleted_since(table, [each for each in entries if each not in data])
    files = [_rows(table, data)] if not deleted else [_surviving(table, each, deleted, key_columns) for each in data]
    arrow = schema_to_pyarrow(sanitize_column_names(table.schema()))
    return pa.concat_tables([arrow.empty_table(), *(each.rename_columns(arrow.names).cast(arrow) for each in files)])


def expire(table: Table, keep: int) -> Table:
    """Forget all but the newest `keep` snapshots, and delete the files that only the forgotten ones need."""
    newest_first = sorted(table.metadata.snapshots, key=lambda each: each.sequence_number or 0, reverse=True)
    outdated = [each.snapshot_id for each in newest_first[keep:]]
    if not outdated:
        return table
    before = _files(table)
    table = apply(table, (RemoveSnapshotsUpdate.model_validate({"action": "remove-snapshots", "snapshot-ids": outdated}),))
    for path in sorted(before - _files(table)):
        table.io.delete(path)
    return table


def _files(table: Table) -> set[str]:
    """Every file that some snapshot of the table needs."""
    found, manifests = set(), {}
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests.update({each.manifest_path: each for each in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        found |= {path, *(each.data_file.file_path for each in manifest.fetch_manifest_entry(table.io))}
    return found


def _rows(table: Table, entries: Sequence[ManifestEntry]) -> pa.Table:
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    return scan.to_table([FileScanTask(each.data_file) for each in entries])


def _deleted_since(table: Table, entries: Sequence[ManifestEntry]) -> dict[tuple[object, ...], int]:
    """The sequence number of the newest delete of each key."""
    newest: dict[tuple[object, ...], int] = {}
    for entry in entries:
        with table.io.new_input(entry.data_file.file_path).open() as stream:
            keys = pq.read_table(stream)
        for key in zip(*keys.to_pydict().values(), strict=True):
            newest[key] = entry.sequence_number or 0
    return newest


def _surviving(
    table: Table, entry: ManifestEntry, deleted: dict[tuple[object, ...], int], key_columns: Sequence[str]
) -> pa.Table:
    rows = _rows(table, [entry])
    written = entry.sequence_number or 0
    keys = zip(*rows.select(list(key_columns)).to_pydict().values(), strict=True)
    return rows.filter(pa.array([deleted.get(key, 0) <= written for key in keys], pa.bool_()))
