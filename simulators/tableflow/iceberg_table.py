"""Reads, writes and commits files of an Iceberg table: data, equality deletes, manifests and snapshots;
expires snapshots.

Needed because PyIceberg 0.12 can neither write nor read equality deletes, nor commit snapshots of the
operation `replace`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan, ParquetFormatModel, schema_to_pyarrow
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    write_manifest_list,
)
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

_CODEC: Final = "deflate"
_UNPARTITIONED: Final = Record()
_EQUALITY_IDS: Final = NestedField(
    135, "equality_ids", ListType(136, IntegerType(), element_required=True), required=False
)


class _DeleteManifestWriter(ManifestWriterV2):
    """Writes manifests of delete files, with `equality_ids` of type int, as in the Iceberg specification.

    PyIceberg 0.12 declares them as long, and Iceberg's Java reader then fails to cast them.
    """

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def _with_partition(self, format_version: TableVersion) -> Schema:
        file_type = data_file_with_partition(self._spec.partition_type(self._schema), format_version)
        fields = []
        for field in file_type.fields:
            is_equality_ids = field.field_id == _EQUALITY_IDS.field_id
            fields.append(_EQUALITY_IDS if is_equality_ids else field)
        return manifest_entry_schema_with_data_file(format_version, StructType(*fields))


def add_files(table: Table, operation: Operation, files: Sequence[DataFile]) -> Table:
    """Commit data and delete files in addition to the table's files.

    Raises CommitFailedException on a conflict.
    """
    return _Commit(table, operation).publish(added_files=files)


def replace_files(table: Table, files: Sequence[DataFile]) -> Table:
    """Commit `files` in place of all files of the table, in a snapshot of the operation `replace`."""
    return _Commit(table, Operation.REPLACE).publish(
        added_files=files, removed_entries=list_live_entries(table.metadata, table.io)
    )


def list_live_entries(metadata: TableMetadata, io: FileIO) -> list[ManifestEntry]:
    """Return entries of the current snapshot's data and delete files, in the order of their commits."""
    snapshot = metadata.current_snapshot()
    manifests = snapshot.manifests(io) if snapshot else []
    entries: list[ManifestEntry] = []
    for manifest in manifests:
        entries += manifest.fetch_manifest_entry(io)
    return sorted(entries, key=lambda entry: entry.sequence_number or 0)


class _Commit:
    def __init__(self, table: Table, operation: Operation) -> None:
        self._table = table
        self._operation = operation
        self._snapshot_id = table.metadata.new_snapshot_id()
        self._parent = table.metadata.current_snapshot()
        self._id = uuid.uuid4()

    def publish(
        self, added_files: Sequence[DataFile], removed_entries: Sequence[ManifestEntry] = ()
    ) -> Table:
        manifests = list(self._write_manifests(added_files, removed_entries))
        if not removed_entries and self._parent:
            earlier_manifests = self._parent.manifests(self._table.io)
            manifests += [
                manifest
                for manifest in earlier_manifests
                if manifest.has_added_files() or manifest.has_existing_files()
            ]
        parent = self._parent.snapshot_id if self._parent else None
        snapshot = {
            "snapshot-id": self._snapshot_id,
            "parent-snapshot-id": parent,
            "manifest-list": self._write_list(manifests, parent),
            "sequence-number": self._table.metadata.next_sequence_number(),
            "summary": self._build_summary(added_files, [entry.data_file for entry in removed_entries]),
            "schema-id": self._table.metadata.current_schema_id,
        }
        main = {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": self._snapshot_id}
        updates = (
            AddSnapshotUpdate(snapshot=Snapshot.model_validate(snapshot)),
            SetSnapshotRefUpdate.model_validate(main),
        )
        requirement = {"type": "assert-ref-snapshot-id", "ref": MAIN_BRANCH, "snapshot-id": parent}
        return apply(self._table, updates, (AssertRefSnapshotId.model_validate(requirement),))

    def _write_manifests(
        self, added_files: Sequence[DataFile], removed_entries: Sequence[ManifestEntry]
    ) -> Iterator[ManifestFile]:
        entries = [self._build_entry(ManifestEntryStatus.ADDED, file) for file in added_files]
        entries += [
            self._build_entry(ManifestEntryStatus.DELETED, entry.data_file, entry)
            for entry in removed_entries
        ]
        data = [entry for entry in entries if entry.data_file.content is DataFileContent.DATA]
        deletes = [entry for entry in entries if entry.data_file.content is not DataFileContent.DATA]
        if data:
            yield self._write_manifest(ManifestWriterV2, data, 0)
        if deletes:
            yield self._write_manifest(_DeleteManifestWriter, deletes, 1)

    def _build_entry(
        self, status: ManifestEntryStatus, file: DataFile, replaced_entry: ManifestEntry | None = None
    ) -> ManifestEntry:
        sequence_number = replaced_entry.sequence_number if replaced_entry else None
        file_sequence_number = replaced_entry.file_sequence_number if replaced_entry else None
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self._snapshot_id,
            sequence_number=sequence_number,
            file_sequence_number=file_sequence_number,
            data_file=file,
        )

    def _write_manifest(
        self, writer: type[ManifestWriterV2], entries: list[ManifestEntry], number: int
    ) -> ManifestFile:
        table = self._table
        output = table.io.new_output(
            table.location_provider().new_metadata_location(f"{self._id}-m{number}.avro")
        )
        with writer(table.spec(), table.schema(), output, self._snapshot_id, _CODEC) as manifest:
            for entry in entries:
                manifest.add_entry(entry)
        return manifest.to_manifest_file()

    def _write_list(self, manifests: list[ManifestFile], parent: int | None) -> str:
        name = f"snap-{self._snapshot_id}-1-{self._id}.avro"
        location = self._table.location_provider().new_metadata_location(name)
        sequence_number = self._table.metadata.next_sequence_number()
        output = self._table.io.new_output(location)
        with write_manifest_list(2, output, self._snapshot_id, parent, sequence_number, _CODEC) as writer:
            writer.add_manifests(manifests)
        return location

    def _build_summary(self, added_files: Sequence[DataFile], removed_files: Sequence[DataFile]) -> Summary:
        collector = SnapshotSummaryCollector()
        for file in added_files:
            collector.add_file(file, self._table.schema())
        for file in removed_files:
            collector.remove_file(file, self._table.schema())
        # PyIceberg calculates totals only for operations that it can commit itself, and `replace` is not one
        # of them.
        countable = Operation.OVERWRITE if self._operation is Operation.REPLACE else self._operation
        earlier_summary = self._parent.summary if self._parent else None
        summary = update_snapshot_summaries(Summary(countable, **collector.build()), earlier_summary)
        return Summary(self._operation, **summary.additional_properties)


def apply(
    table: Table, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()
) -> Table:
    """Commit, delete the metadata files that the commit removed from the metadata log, and return the updated
    table.
    """
    metadata_files_before = {entry.metadata_file for entry in table.metadata.metadata_log}
    answer = table.catalog.commit_table(table, requirements, updates)
    for outdated_file in metadata_files_before - {
        entry.metadata_file for entry in answer.metadata.metadata_log
    }:
        table.io.delete(outdated_file)
    return Table(table.name(), answer.metadata, answer.metadata_location, table.io, table.catalog)


def write_rows(table: Table, rows: pa.Table) -> DataFile:
    """Write a data file. `rows` must have the table's columns under their Parquet names, with field ids."""
    return _write(table, table.schema(), rows, DataFileContent.DATA)


def write_equality_deletes(table: Table, keys: pa.Table, columns: Sequence[str]) -> DataFile:
    """Write a delete file.

    It deletes rows of earlier commits that equal a row of `keys` in `columns` (the table's names).
    """
    schema = table.schema().select(*columns)
    return _write(table, schema, keys, DataFileContent.EQUALITY_DELETES)


def _write(table: Table, schema: Schema, rows: pa.Table, content: DataFileContent) -> DataFile:
    # Tableflow's own files are named by a UUID alone.
    path = table.location_provider().new_data_location(f"{uuid.uuid4()}.parquet")
    output = table.io.new_output(path)
    writer = ParquetFormatModel().create_writer(output, sanitize_column_names(schema), table.properties)
    with writer:
        writer.write(rows)
    equality_ids = None
    if content is DataFileContent.EQUALITY_DELETES:
        equality_ids = [field.field_id for field in schema.fields]
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=_UNPARTITIONED,
        file_size_in_bytes=len(output),
        equality_ids=equality_ids,
        **writer.result().to_serialized_dict(),
    )
    file.spec_id = table.spec().spec_id
    return file


def read_live_rows(table: Table, key_columns: Sequence[str]) -> pa.Table:
    """Return the rows of the current snapshot, oldest commit first, with equality deletes on `key_columns`
    applied.

    Columns have their Parquet names and field ids, ready to be written again.
    """
    entries = list_live_entries(table.metadata, table.io)
    data = [entry for entry in entries if entry.data_file.content is DataFileContent.DATA]
    deleted = _find_newest_deletes(table, [entry for entry in entries if entry not in data])
    if deleted:
        parts = [_select_surviving_rows(table, entry, deleted, key_columns) for entry in data]
    else:
        parts = [_read_rows(table, data)]
    schema = schema_to_pyarrow(sanitize_column_names(table.schema()))
    cast_parts = [part.rename_columns(schema.names).cast(schema) for part in parts]
    return pa.concat_tables([schema.empty_table(), *cast_parts])


def expire_snapshots(table: Table, keep: int) -> Table:
    """Expire all but the newest `keep` snapshots, and delete the files that only expired snapshots refer
    to.
    """
    newest_first = sorted(
        table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0, reverse=True
    )
    outdated_ids = [snapshot.snapshot_id for snapshot in newest_first[keep:]]
    if not outdated_ids:
        return table
    files_before = _list_files(table)
    table = apply(
        table,
        (RemoveSnapshotsUpdate.model_validate({"action": "remove-snapshots", "snapshot-ids": outdated_ids}),),
    )
    for path in sorted(files_before - _list_files(table)):
        table.io.delete(path)
    return table


def _list_files(table: Table) -> set[str]:
    """Return the paths of all files that the table's snapshots refer to."""
    files = set()
    manifests = {}
    for snapshot in table.metadata.snapshots:
        files.add(snapshot.manifest_list)
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        files |= {path, *(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))}
    return files


def _read_rows(table: Table, entries: Sequence[ManifestEntry]) -> pa.Table:
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    return scan.to_table([FileScanTask(entry.data_file) for entry in entries])


def _find_newest_deletes(table: Table, entries: Sequence[ManifestEntry]) -> dict[tuple[object, ...], int]:
    """Return the sequence number of the newest delete of each key."""
    newest_deletes: dict[tuple[object, ...], int] = {}
    for entry in entries:
        with table.io.new_input(entry.data_file.file_path).open() as stream:
            keys = pq.read_table(stream)
        for key in zip(*keys.to_pydict().values(), strict=True):
            newest_deletes[key] = entry.sequence_number or 0
    return newest_deletes


def _select_surviving_rows(
    table: Table, entry: ManifestEntry, deleted: dict[tuple[object, ...], int], key_columns: Sequence[str]
) -> pa.Table:
    rows = _read_rows(table, [entry])
    sequence_number = entry.sequence_number or 0
    keys = zip(*rows.select(list(key_columns)).to_pydict().values(), strict=True)
    return rows.filter(pa.array([deleted.get(key, 0) <= sequence_number for key in keys], pa.bool_()))
