"""A table's schema taken on to the topic's new one, within what Tableflow allows.

The rules are those of Confluent's public CompatibilityChecker for Iceberg tables (repository confluentinc/
schema-registry): fields may be added where they are nullable, or are an array or map with an empty default (the column
is nullable then); types may widen as Iceberg allows; a field may become nullable. Nothing may be removed, renamed,
reordered, narrowed or made required.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, SetCurrentSchemaUpdate
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from simulators.tableflow.avro import Array, Field, Map, Node, SchemaError, Struct, Union
from simulators.tableflow.iceberg_commit import apply
from simulators.tableflow.layout import iceberg_type
from simulators.tableflow.topic import Topic


def evolve(table: Table, before: Topic, after: Topic) -> Table:
    """Raises SchemaError, naming every field, for a change that Tableflow refuses."""
    columns = table.schema().fields
    owned = {each.name for each in before.root.fields}
    merge = _Merge(count(table.metadata.last_column_id + 1))
    merged = merge.fields([each for each in columns if each.name in owned], after.root, "")
    others = {each.name for each in columns} - owned
    merge.refused += [f"{each.name}: Tableflow has a column of this name" for each in merged if each.name in others]
    if merge.refused:
        raise SchemaError(f"topic {after.name}: the table can't take the new schema. {'; '.join(merge.refused)}")
    first = next(position for position, each in enumerate(columns) if each.name in owned)
    schema_id = 1 + max(each.schema_id for each in table.metadata.schemas)
    schema = Schema(*columns[:first], *merged, *columns[first + len(owned) :], schema_id=schema_id)
    unchanged = {"type": "assert-current-schema-id", "current-schema-id": table.metadata.current_schema_id}
    updates = (AddSchemaUpdate(schema=schema), SetCurrentSchemaUpdate.model_validate({"schema-id": -1}))
    return apply(table, updates, (AssertCurrentSchemaId.model_validate(unchanged),))


class _Merge:
    """Old ids and names with new types; what can't be is collected in `refused`."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        self.refused: list[str] = []

    def fields(self, old: Sequence[NestedField], new: Struct | Union, path: str) -> list[NestedField]:
        known = {each.name: each for each in old}
        wanted = {each.name: each for each in _fields(new)}
        for name in known.keys() - wanted.keys():
            self._refuse(f"{path}{name}", "removed or renamed")
        kept = [name for name in wanted if name in known]
        if kept != [name for name in known if name in wanted]:
            self._refuse(path.rstrip(".") or "(top)", f"reordered to {', '.join(kept)}")
        return [self._field(known.get(each.name), each, path + each.name) for each in wanted.values()]

    def _field(self, old: NestedField | None, new: Field, path: str) -> NestedField:
        required = not new.node.nullable
        if required and (old is None or old.optional):
            if not (isinstance(new.node, Array | Map) and new.default in ([], {})):
                self._refuse(path, "added, and not nullable" if old is None else "nullable until now, and no longer")
            required = False
        if old is None:
            return NestedField(next(self._ids), new.name, iceberg_type(new.node, self._ids), required)
        return NestedField(old.field_id, old.name, self._type(old.field_type, new.node, path), required)

    def _type(self, old: IcebergType, new: Node, path: str) -> IcebergType:
        match old, new:
            case ListType(), Array(items):
                element = self._type(old.element_type, items, f"{path}[]")
                return ListType(old.element_id, element, self._still(old.element_required, items, f"{path}[]"))
            case MapType(), Map(values):
                value = self._type(old.value_type, values, f"{path}{{}}")
                required = self._still(old.value_required, values, f"{path}{{}}")
                return MapType(old.key_id, old.key_type, old.value_id, value, required)
            case StructType(), Struct() | Union():
                return StructType(*self.fields(old.fields, new, f"{path}."))
        return self._plain(old, iceberg_type(new, count()), path)

    def _still(self, required: bool, new: Node, path: str) -> bool:
        if not required and not new.nullable:
            self._refuse(path, "nullable until now, and no longer")
        return required and not new.nullable

    def _plain(self, old: IcebergType, new: IcebergType, path: str) -> IcebergType:
        if old != new and not _widens(old, new):
            self._refuse(path, f"{old} can't become {new}")
        return new

    def _refuse(self, path: str, problem: str) -> None:
        self.refused.append(f"{path}: {problem}")


def _fields(node: Struct | Union) -> Sequence[Field]:
    if isinstance(node, Struct):
        return node.fields
    return [Field(each.column, replace(each.node, nullable=True)) for each in node.branches]


def _widens(old: IcebergType, new: IcebergType) -> bool:
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
    return False
