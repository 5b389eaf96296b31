"""Iceberg's metadata as tables: "table$snapshots" and its kin, with the columns that Athena gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import PrimitiveType

_MOMENT: Final = pa.timestamp("ms", "UTC")
_BY_COLUMN: Final = pa.map_(pa.int32(), pa.int64())
_BOUNDS: Final = pa.map_(pa.int32(), pa.string())
_SNAPSHOTS: Final = pa.schema(
    [
        ("committed_at", _MOMENT),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
    ]
)
_HISTORY: Final = pa.schema(
    [
        ("made_current_at", _MOMENT),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("is_current_ancestor", pa.bool_()),
    ]
)
_REFS: Final = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("snapshot_id", pa.int64()),
        ("max_reference_age_in_ms", pa.int64()),
        ("min_snapshots_to_keep", pa.int32()),
        ("max_snapshot_age_in_ms", pa.int64()),
    ]
)
_FILES: Final = pa.schema(
    [
        ("content", pa.int32()),
        ("file_path", pa.string()),
        ("file_format", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("column_sizes", _BY_COLUMN),
        ("value_counts", _BY_COLUMN),
        ("null_value_counts", _BY_COLUMN),
        ("nan_value_counts", _BY_COLUMN),
        ("lower_bounds", _BOUNDS),
        ("upper_bounds", _BOUNDS),
        ("key_metadata", pa.binary()),
        ("split_offsets", pa.list_(pa.int64())),
        ("equality_ids", pa.list_(pa.int32())),
    ]
)


def _snapshots(table: StaticTable) -> list[dict[str, Any]]:
    return [
        {
            "committed_at": _moment(each.timestamp_ms),
            "snapshot_id": each.snapshot_id,
            "parent_id": each.parent_snapshot_id,
            "operation": each.summary.operation.value if each.summary else None,
            "manifest_list": each.manifest_list,
            "summary": list(each.summary.additional_properties.items()) if each.summary else [],
        }
        for each in table.metadata.snapshots
    ]


def _history(table: StaticTable) -> list[dict[str, Any]]:
    parents = {each.snapshot_id: each.parent_snapshot_id for each in table.metadata.snapshots}
    ancestors, at = set(), table.metadata.current_snapshot_id
    while at is not None and at not in ancestors:
        ancestors.add(at)
        at = parents.get(at)
    return [
        {
            "made_current_at": _moment(each.timestamp_ms),
            "snapshot_id": each.snapshot_id,
            "parent_id": parents.get(each.snapshot_id),
            "is_current_ancestor": each.snapshot_id in ancestors,
        }
        for each in table.history()
    ]


def _refs(table: StaticTable) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "type": str(each.snapshot_ref_type.value).upper(),
            "snapshot_id": each.snapshot_id,
            "max_reference_age_in_ms": each.max_ref_age_ms,
            "min_snapshots_to_keep": each.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": each.max_snapshot_age_ms,
        }
        for name, each in table.metadata.refs.items()
    ]


def _files(table: StaticTable) -> list[dict[str, Any]]:
    """Of the current snapshot."""
    current = table.current_snapshot()
    manifests = current.manifests(table.io) if current else []
    entries = (entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io))
    return [_file(entry.data_file, table.schema()) for entry in entries]


def _file(file: DataFile, schema: Schema) -> dict[str, Any]:
    same = ("file_path", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets", "equality_ids")
    counts = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
    return {
        "content": int(file.content),
        "file_format": file.file_format.value,
        **{name: getattr(file, name) for name in same},
        **{name: list((getattr(file, name) or {}).items()) for name in counts},
        "lower_bounds": _shown(file.lower_bounds, schema),
        "upper_bounds": _shown(file.upper_bounds, schema),
    }


def _shown(bounds: Mapping[int, bytes] | None, schema: Schema) -> list[tuple[int, str]]:
    """Without columns that the table no longer has."""
    types = {number: schema.find_type(number) for number in bounds or {} if schema.find_column_name(number)}
    known = {number: each for number, each in types.items() if isinstance(each, PrimitiveType)}
    return [(number, _words(each, (bounds or {})[number])) for number, each in known.items()]


def _words(kind: PrimitiveType, bound: bytes) -> str:
    return str(IdentityTransform[Any]().to_human_string(kind, from_bytes(kind, bound)))


_TABLES: Final[Mapping[str, tuple[pa.Schema, Callable[[StaticTable], list[dict[str, Any]]]]]] = {
    "snapshots": (_SNAPSHOTS, _snapshots),
    "history": (_HISTORY, _history),
    "refs": (_REFS, _refs),
    "files": (_FILES, _files),
}


def schema_of(kind: str) -> pa.Schema | None:
    """None where there is no such table, or it is not simulated."""
    return _TABLES[kind][0] if kind in _TABLES else None


def rows_of(kind: str, table: StaticTable) -> pa.Table:
    schema, read = _TABLES[kind]
    return pa.Table.from_pylist(read(table), schema)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
