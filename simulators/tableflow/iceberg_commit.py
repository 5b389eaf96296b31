"""One commit to an Iceberg table: manifests, manifest list, snapshot.

Written out because PyIceberg 0.12 has no way to commit delete files or a snapshot of the operation `replace`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
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
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import TableVersion
from pyiceberg.types import IntegerType, ListType, NestedField, StructType

_CODEC: Final = "deflate"
_EQUALITY_IDS: Final = NestedField(135, "equality_ids", ListType(136, IntegerType(), element_required=True), required=False)


class _DeleteManifestWriter(ManifestWriterV2):
    """A manifest of delete files, with equality ids of the type that the spec has: PyIceberg 0.12 declares them long,
    and Iceberg's Java reader then fails on the cast."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def _with_partition(self, format_version: TableVersion) -> Schema:
        of_file = data_file_with_partition(self._spec.partition_type(self._schema), format_version)
        fields = [_EQUALITY_IDS if each.field_id == _EQUALITY_IDS.field_id else each for each in of_file.fields]
        return manifest_entry_schema_with_data_file(format_version, StructType(*fields))


def add_files(table: Table, operation: Operation, files: Sequence[DataFile]) -> Table:
    """Commit `files`, data and deletes, beside those that the table has. Raises CommitFailedException on a conflict."""
    return _Commit(table, operation).publish(added=files)


def replace_files(table: Table, files: Sequence[DataFile]) -> Table:
    """Commit `files` in place of all that the table has: a snapshot of the operation `replace`."""
    return _Commit(table, Operation.REPLACE).publish(added=files, removed=live_entries(table.metadata, table.io))


def live_entries(metadata: TableMetadata, io: FileIO) -> list[ManifestEntry]:
    """Entries of the current snapshot's data and delete files, in the order of their commits."""
    snapshot = metadata.current_snapshot()
    manifests = snapshot.manifests(io) if snapshot else []
    entries = [entry for each in manifests for entry in each.fetch_manifest_entry(io)]
    return sorted(entries, key=lambda entry: entry.sequence_number or 0)


class _Commit:
    def __init__(self, table: Table, operation: Operation) -> None:
        self._table, self._operation = table, operation
        self._snapshot_id = table.metadata.new_snapshot_id()
        self._parent = table.metadata.current_snapshot()
        self._id = uuid.uuid4()

    def publish(self, added: Sequence[DataFile], removed: Sequence[ManifestEntry] = ()) -> Table:
        manifests = list(self._new_manifests(added, removed))
        if not removed and self._parent:
            before = self._parent.manifests(self._table.io)
            manifests += [each for each in before if each.has_added_files() or each.has_existing_files()]
        parent = self._parent.snapshot_id if self._parent else None
        snapshot = {
            "snapshot-id": self._snapshot_id,
            "parent-snapshot-id": parent,
            "manifest-list": self._write_list(manifests, parent),
            "sequence-number": self._table.metadata.next_sequence_number(),
            "summary": self._summary(added, [each.data_file for each in removed]),
            "schema-id": self._table.metadata.current_schema_id,
        }
        main = {"ref-name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH, "snapshot-id": self._snapshot_id}
        updates = (AddSnapshotUpdate(snapshot=Snapshot.model_validate(snapshot)), SetSnapshotRefUpdate.model_validate(main))
        unchanged = {"type": "assert-ref-snapshot-id", "ref": MAIN_BRANCH, "snapshot-id": parent}
        return apply(self._table, updates, (AssertRefSnapshotId.model_validate(unchanged),))

    def _new_manifests(self, added: Sequence[DataFile], removed: Sequence[ManifestEntry]) -> Iterator[ManifestFile]:
        entries = [self._entry(ManifestEntryStatus.ADDED, each) for each in added]
        entries += [self._entry(ManifestEntryStatus.DELETED, each.data_file, each) for each in removed]
        data = [each for each in entries if each.data_file.content is DataFileContent.DATA]
        deletes = [each for each in entries if each.data_file.content is not DataFileContent.DATA]
        for number, (writer, chosen) in enumerate(((ManifestWriterV2, data), (_DeleteManifestWriter, deletes))):
            if chosen:
                yield self._write_manifest(writer, chosen, number)

    def _entry(self, status: ManifestEntryStatus, file: DataFile, was: ManifestEntry | None = None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self._snapshot_id,
            sequence_number=was.sequence_number if was else None,
            file_sequence_number=was.file_sequence_number if was else None,
            data_file=file,
        )

    def _write_manifest(self, writer: type[ManifestWriterV2], entries: list[ManifestEntry], number: int) -> ManifestFile:
        table = self._table
        output = table.io.new_output(table.location_provider().new_metadata_location(f"{self._id}-m{number}.avro"))
        with writer(table.spec(), table.schema(), output, self._snapshot_id, _CODEC) as manifest:
            for each in entries:
                manifest.add_entry(each)
        return manifest.to_manifest_file()

    def _write_list(self, manifests: list[ManifestFile], parent: int | None) -> str:
        name = f"snap-{self._snapshot_id}-1-{self._id}.avro"
        place = self._table.location_provider().new_metadata_location(name)
        sequence_number = self._table.metadata.next_sequence_number()
        output = self._table.io.new_output(place)
        with write_manifest_list(2, output, self._snapshot_id, parent, sequence_number, _CODEC) as writer:
            writer.add_manifests(manifests)
        return place

    def _summary(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> Summary:
        collector = SnapshotSummaryCollector()
        for each in added:
            collector.add_file(each, self._table.schema())
        for each in removed:
            collector.remove_file(each, self._table.schema())
        # PyIceberg totals the operations that it can commit itself, which `replace` is not one of.
        countable = Operation.OVERWRITE if self._operation is Operation.REPLACE else self._operation
        before = self._parent.summary if self._parent else None
        summary = update_snapshot_summaries(Summary(countable, **collector.build()), before)
        return Summary(self._operation, **summary.additional_properties)


def apply(table: Table, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()) -> Table:
    """Commit, drop metadata files that fell out of the metadata's own log, and return the table as it is then."""
    before = {each.metadata_file for each in table.metadata.metadata_log}
    answer = table.catalog.commit_table(table, requirements, updates)
    for outdated in before - {each.metadata_file for each in answer.metadata.metadata_log}:
        table.io.delete(outdated)
    return Table(table.name(), answer.metadata, answer.metadata_location, table.io, table.catalog)
