"""Tableflow's own Iceberg catalog, which has the location of each table's current metadata file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties


class VendorCatalog(NoopCatalog, MetastoreCatalog):
    """The part of a catalog that the Tableflow writer uses.

    Files are read and written with the FileIO properties of `act_as`. `metadata` has what is in each current
    metadata file, for those who may not read it.
    """

    def __init__(self) -> None:
        super().__init__("tableflow")
        self.pointers: dict[Identifier, str] = {}
        self.metadata: dict[Identifier, TableMetadata] = {}

    def act_as(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)

    def create_namespace_if_not_exists(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """Do nothing: each Kafka cluster already is a namespace."""

    def table_exists(self, identifier: str | Identifier) -> bool:
        return tuple(identifier) in self.pointers

    def create_table(  # type: ignore[override]  # noqa: PLR0917  (the signature of the base class)
        self,
        identifier: Identifier,
        schema: Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        staged = self._create_staged_table(
            identifier, schema, location, partition_spec, sort_order, properties
        )
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.pointers[tuple(identifier)] = staged.metadata_location
        self.metadata[tuple(identifier)] = staged.metadata
        return self.load_table(identifier)

    def load_table(self, identifier: str | Identifier) -> Table:
        pointer = self.pointers.get(tuple(identifier))
        if pointer is None:
            raise NoSuchTableError(f"no table {identifier}")
        io = load_file_io(self.properties, pointer)
        return Table(
            tuple(identifier), FromInputFile.table_metadata(io.new_input(pointer)), pointer, io, self
        )

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        current = self.load_table(table.name())
        staged = self._update_and_stage_table(current, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.pointers[table.name()] = staged.metadata_location
        self.metadata[table.name()] = staged.metadata
        committed = {"metadata": staged.metadata, "metadata-location": staged.metadata_location}
        return CommitTableResponse.model_validate(committed)

    def drop_table(self, identifier: str | Identifier) -> None:
        self.pointers.pop(tuple(identifier), None)
        self.metadata.pop(tuple(identifier), None)

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> Any:
        return load_file_io({**self.properties, **properties}, location)
