"""Writes Iceberg tables as Confluent's Tableflow does, into any PyIceberg catalog.

Layout, names and settings follow published descriptions of real Tableflow buckets, and Confluent's
documentation: the database has the name of the Kafka cluster, the table that of the topic, each commit adds
one Parquet file for each Kafka partition with new records, and snapshots are kept for a week, at least 10 and
at most 100. In upsert tables the primary key is the record's key together with the partition number.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.utils.concurrent import ExecutorFactory

from simulators.tableflow.arrow import RecordError, to_arrow
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.iceberg_evolution import evolve
from simulators.tableflow.iceberg_table import (
    add_files,
    expire_snapshots,
    read_live_rows,
    replace_files,
    write_equality_deletes,
    write_rows,
)
from simulators.tableflow.kafka import Record
from simulators.tableflow.layout import (
    KEY_COLUMN,
    Naming,
    build_table_schema,
    has_key_column,
    name_metadata_column,
)
from simulators.tableflow.topic import Topic

WriteMode = Literal["append", "upsert"]

_MODE_PROPERTY: Final = "tableflow.write-mode"
_WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
_PROPERTIES: Final = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.previous-versions-max": "100",
    "history.expire.max-snapshot-age-ms": str(_WEEK_MS),
    "history.expire.min-snapshots-to-keep": "10",
}
_MAX_SNAPSHOTS: Final = 100
#: The Schema Registry id of a topic's first schema. Each evolution adds one to the topic's id.
_FIRST_SCHEMA_ID: Final = 100001


@dataclass(frozen=True)
class TableLocation:
    """Where a cluster's tables are stored.

    With the scheme `file`, `bucket` is the absolute path of a folder.
    """

    bucket: str
    cluster_id: str = "lkc-00demo"
    environment_id: str = "env-00demo"
    organization_id: str = "00000000-0000-4000-8000-000000000000"
    naming: Naming = "DEFAULT"
    scheme: Literal["s3", "file"] = "s3"
    #: The database, if somebody chose another one than that of the cluster's id.
    database: str = ""

    @property
    def namespace(self) -> str:
        return self.database or self.cluster_id

    def __post_init__(self) -> None:
        if not re.fullmatch(r"lkc-[a-z0-9]+", self.cluster_id):
            raise ValueError(
                f"cluster id {self.cluster_id!r}: a Kafka cluster's id is lkc- and letters or digits"
            )
        if self.naming not in ("DEFAULT", "PORTABLE"):
            raise ValueError(f"naming {self.naming!r}: metadata columns are named DEFAULT or PORTABLE")

    def build_table_path(self, table: uuid.UUID) -> str:
        # In real buckets, two strings of binary digits precede the ids. How they are made isn't published.
        checksum = zlib.crc32(self.cluster_id.encode())
        entropy = f"{checksum & 0x7F:07b}/{checksum >> 7 & 0xFF:08b}"
        ids = f"{self.organization_id}/{self.environment_id}/{self.cluster_id}"
        return f"{self.scheme}://{self.bucket}/{entropy}/{ids}/v1/{table}"


@dataclass
class _Materialised:
    topic: Topic
    table: Table
    schema_id: int = _FIRST_SCHEMA_ID

    @property
    def upserts(self) -> bool:
        return self.table.properties.get(_MODE_PROPERTY) == "upsert"


class Tableflow:
    def __init__(self, catalog: Catalog, location: TableLocation) -> None:
        self.catalog = catalog
        self.location = location
        self._topics: dict[str, _Materialised] = {}

    def create_table(self, topic: Topic, mode: WriteMode = "append") -> Table:
        """Create the table if it doesn't exist. An existing table is not changed, and keeps its write mode.

        Raises SchemaError if the existing table, or a table in this mode, can't hold the topic.
        """
        if mode == "upsert" and not has_key_column(topic):
            raise SchemaError(
                f"topic {topic.name}: upsert needs the record's key as a column, and the value has "
                f"{KEY_COLUMN!r}"
            )
        self.catalog.create_namespace_if_not_exists(self.location.namespace)
        identifier = (self.location.namespace, topic.name)
        if self.catalog.table_exists(identifier):
            table = self.catalog.load_table(identifier)
            columns = table.schema().column_names
            missing_fields = [field.name for field in topic.root.fields if field.name not in columns]
            if missing_fields:
                raise SchemaError(
                    f"topic {topic.name}: its table lacks the fields {', '.join(missing_fields)}. "
                    "Evolve it, or drop it first"
                )
        else:
            schema = build_table_schema(topic, self.location.naming)
            location = self.location.build_table_path(uuid.uuid4())
            properties = {**_PROPERTIES, _MODE_PROPERTY: mode}
            table = self.catalog.create_table(identifier, schema, location, properties=properties)
        self._topics[topic.name] = _Materialised(topic, table)
        return table

    def append(self, name: str, records: Sequence[Record], files: int | None = None) -> Table:
        """Commit `records`, given in the order of their offsets.

        Writes `files` Parquet files of about equal length, by default one for each Kafka partition. Raises
        RecordError.
        """
        _require_one(name, "files to a commit", files)
        entry = self._find_entry(name)
        rows: Sequence[Record]
        deletes: list[DataFile]
        if entry.upserts:
            rows, deletes = self._apply_upserts(entry, records)
        else:
            rows = _require_values(name, records)
            deletes = []
        added_files = list(self._write(entry, rows, files)) + deletes
        if added_files:
            operation = Operation.APPEND
            if deletes:
                operation = Operation.OVERWRITE if rows else Operation.DELETE
            entry.table = add_files(entry.table, operation, added_files)
        return entry.table

    def compact(self, name: str, files: int = 1) -> Table:
        """Rewrite the table's data and delete files as `files` data files with the same rows."""
        _require_one(name, "files after compaction", files)
        entry = self._find_entry(name)
        rows = read_live_rows(entry.table, self._key_columns)
        entry.table = replace_files(
            entry.table, [write_rows(entry.table, part) for part in _slice_rows(rows, files)]
        )
        return entry.table

    def expire(self, name: str, keep: int = _MAX_SNAPSHOTS) -> Table:
        """Expire all but the newest `keep` snapshots, and delete the files that only expired snapshots refer
        to.
        """
        _require_one(name, "snapshots to keep", keep)
        entry = self._find_entry(name)
        entry.table = expire_snapshots(entry.table, keep)
        return entry.table

    def evolve(self, topic: Topic) -> Table:
        """Change the table to the topic's new schema.

        Raises SchemaError, naming every field, if Tableflow refuses it.
        """
        entry = self._find_entry(topic.name)
        entry.table = evolve(entry.table, entry.topic, topic)
        entry.topic = topic
        entry.schema_id = entry.schema_id + 1
        return entry.table

    def read(self, name: str) -> pa.Table:
        """Return the rows that a reader sees, oldest commit first, with columns under their Parquet names.

        This includes upsert tables, whose equality deletes PyIceberg can't read.
        """
        return read_live_rows(self._find_entry(name).table, self._key_columns)

    def drop(self, name: str) -> None:
        """Remove the table from the catalog. Its files stay, as at the vendor."""
        self._find_entry(name)
        self.catalog.drop_table((self.location.namespace, name))
        del self._topics[name]

    def materialise(
        self,
        topic: Topic,
        records: Sequence[Record],
        *,
        commits: int = 1,
        files: int | None = None,
        compact_every: int | None = None,
        keep: int = _MAX_SNAPSHOTS,
    ) -> Table:
        """Return the topic's table with `records`, in at most `commits` commits that each cover an equal span
        of record time.

        After each `compact_every` commits the table is compacted; at the end the newest `keep` snapshots are
        kept.
        """
        _require_one(topic.name, "commits", commits)
        self.create_table(topic)
        for number, batch in enumerate(_split_into_spans(records, commits), start=1):
            self.append(topic.name, batch, files)
            if compact_every and number % compact_every == 0:
                self.compact(topic.name)
        return self.expire(topic.name, keep)

    def _find_entry(self, name: str) -> _Materialised:
        if name not in self._topics:
            raise LookupError(f"topic {name}: it has no table here. Call create_table first")
        return self._topics[name]

    @property
    def _key_columns(self) -> tuple[str, str]:
        return KEY_COLUMN, name_metadata_column("partition", self.location.naming)

    def _apply_upserts(
        self, entry: _Materialised, records: Sequence[Record]
    ) -> tuple[list[Record], list[DataFile]]:
        """Return the last record of each key, without tombstones, and a file that deletes the keys' rows of
        earlier commits.
        """
        if any(record.key is None for record in records):
            raise RecordError(
                f"topic {entry.topic.name}: a record without a key, which an upsert table needs. Give it one"
            )
        last = {(record.key, record.partition): record for record in records}
        if not last or not entry.table.current_snapshot():
            return [record for record in last.values() if record.value is not None], []
        schema = schema_to_pyarrow(sanitize_column_names(entry.table.schema().select(*self._key_columns)))
        values_by_column = zip(*last, strict=True)
        columns = [
            pa.array(values, field.type) for values, field in zip(values_by_column, schema, strict=True)
        ]
        keys = pa.Table.from_arrays(columns, schema=schema)
        deletes = write_equality_deletes(entry.table, keys, self._key_columns)
        return [record for record in last.values() if record.value is not None], [deletes]

    def _write(
        self, entry: _Materialised, records: Sequence[Record], files: int | None
    ) -> Iterator[DataFile]:
        if not records:
            return
        rows = to_arrow(entry.topic, entry.table.schema(), self.location.naming, records, entry.schema_id)
        parts = _slice_rows(rows, files) if files else _split_by_partition(rows, records)
        yield from ExecutorFactory.get_or_create().map(partial(write_rows, entry.table), parts)


def _require_one(name: str, setting: str, count: int | None) -> None:
    if count is not None and count < 1:
        raise ValueError(f"topic {name}: {count} {setting}, but there must be at least 1")


def _require_values(name: str, records: Sequence[Record]) -> Sequence[Record]:
    for record in records:
        if record.value is None:
            position = f"partition {record.partition}, offset {record.offset}"
            raise RecordError(
                f"topic {name}, {position}: an append table can't hold a tombstone. Use an upsert table"
            )
    return records


def _slice_rows(rows: pa.Table, files: int) -> Iterator[pa.Table]:
    length = max(1, -(-len(rows) // files))
    yield from (rows.slice(start, length) for start in range(0, len(rows), length))


def _split_by_partition(rows: pa.Table, records: Sequence[Record]) -> Iterator[pa.Table]:
    partitions = pa.array([record.partition for record in records], pa.int32())
    for partition in sorted(set(partitions.to_pylist())):
        yield rows.filter(pc.equal(partitions, partition))


def _split_into_spans(records: Sequence[Record], count: int) -> Iterator[list[Record]]:
    """Split `records` into spans by arrival time. A late record arrives with the records before it."""
    if not records:
        return
    arrivals = list(accumulate((record.timestamp for record in records), max))
    first = arrivals[0]
    length = arrivals[-1] - arrivals[0] + 1
    numbers = [(arrival - first) * count // length for arrival in arrivals]
    for _, numbered_records in groupby(zip(numbers, records, strict=True), key=lambda pair: pair[0]):
        yield [record for _, record in numbered_records]
