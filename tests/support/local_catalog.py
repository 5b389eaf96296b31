"""An Iceberg catalog in memory with files on the local disk, for tests that need no AWS."""

from __future__ import annotations

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER


class LocalCatalog(NoopCatalog, MetastoreCatalog):
    """The methods of a catalog that the writer calls; all others raise NotImplementedError."""

    def __init__(self):
        super().__init__("local")
        self._pointers = {}
        self.namespaces = set()

    def create_namespace_if_not_exists(self, namespace, properties=None):
        self.namespaces.add(namespace)

    def table_exists(self, identifier):
        return tuple(identifier) in self._pointers

    def create_table(
        self,
        identifier,
        schema,
        location=None,
        partition_spec=UNPARTITIONED_PARTITION_SPEC,
        sort_order=UNSORTED_SORT_ORDER,
        properties=None,
    ):
        staged = self._create_staged_table(
            identifier, schema, location, partition_spec, sort_order, properties or {}
        )
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self._pointers[tuple(identifier)] = staged.metadata_location
        return self.load_table(identifier)

    def load_table(self, identifier):
        if not self.table_exists(identifier):
            raise NoSuchTableError(f"no table {identifier}")
        pointer = self._pointers[tuple(identifier)]
        io = load_file_io({}, pointer)
        return Table(
            tuple(identifier), FromInputFile.table_metadata(io.new_input(pointer)), pointer, io, self
        )

    def commit_table(self, table, requirements, updates):
        current = self.load_table(table.name())
        staged = self._update_and_stage_table(current, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self._pointers[table.name()] = staged.metadata_location
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def drop_table(self, identifier):
        del self._pointers[tuple(identifier)]
