"""Changes a table's schema to the topic's new one, within what Tableflow allows.

The rules are those of Confluent's public CompatibilityChecker for Iceberg tables (repository confluentinc/
schema-registry): fields may be added if they are nullable, or are an array or map with an empty default (then
the column is nullable); types may widen as Iceberg allows; a field may become nullable. Nothing may be
removed, renamed, reordered, narrowed or made required.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, SetCurrentSchemaUpdate

from simulators.tableflow.avro import Array, Field, Map, Node, SchemaError, Struct, Union
from simulators.tableflow.iceberg_table import apply
from simulators.tableflow.layout import to_iceberg_type
from simulators.tableflow.topic import Topic


def evolve(table: Table, old_topic: Topic, new_topic: Topic) -> Table:
    """Change the schema. Raises SchemaError, which names every field, if Tableflow refuses the change."""
    columns = table.schema().fields
    topic_columns = {field.name for field in old_topic.root.fields}
    merge = _Merge(count(table.metadata.last_column_id + 1))
    merged_fields = merge.merge_fields(
        [column for column in columns if column.name in topic_columns], new_topic.root, ""
    )
    other_columns = {column.name for column in columns} - topic_columns
    merge.refused += [
        f"{field.name}: Tableflow has a column of this name"
        for field in merged_fields
        if field.name in other_columns
    ]
    if merge.refused:
        raise SchemaError(
            f"topic {new_topic.name}: the table can't take the new schema. {'; '.join(merge.refused)}"
        )
    first = next(position for position, column in enumerate(columns) if column.name in topic_columns)
    schema_id = 1 + max(schema.schema_id for schema in table.metadata.schemas)
    schema = Schema(
        *columns[:first], *merged_fields, *columns[first + len(topic_columns) :], schema_id=schema_id
    )
    requirement = {"type": "assert-current-schema-id", "current-schema-id": table.metadata.current_schema_id}
    updates = (AddSchemaUpdate(schema=schema), SetCurrentSchemaUpdate.model_validate({"schema-id": -1}))
    return apply(table, updates, (AssertCurrentSchemaId.model_validate(requirement),))


class _Merge:
    """Makes columns with the old ids and names and the new types.

    Changes that aren't allowed are collected in `refused`.
    """

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        self.refused: list[str] = []

    def merge_fields(
        self, old: Sequence[types.NestedField], new: Struct | Union, path: str
    ) -> list[types.NestedField]:
        old_fields = {field.name: field for field in old}
        new_fields = {field.name: field for field in _list_fields(new)}
        for name in old_fields.keys() - new_fields.keys():
            self._refuse(f"{path}{name}", "removed or renamed")
        kept_fields = [name for name in new_fields if name in old_fields]
        if kept_fields != [name for name in old_fields if name in new_fields]:
            self._refuse(path.rstrip(".") or "(top)", f"reordered to {', '.join(kept_fields)}")
        return [
            self._merge_field(old_fields.get(field.name), field, path + field.name)
            for field in new_fields.values()
        ]

    def _merge_field(self, old: types.NestedField | None, new: Field, path: str) -> types.NestedField:
        required = not new.node.nullable
        if required and (old is None or old.optional):
            if not (isinstance(new.node, Array | Map) and new.default in ([], {})):
                change = "added, and not nullable" if old is None else "nullable until now, and no longer"
                self._refuse(path, change)
            required = False
        if old is None:
            return types.NestedField(
                next(self._ids), new.name, to_iceberg_type(new.node, self._ids), required
            )
        return types.NestedField(
            old.field_id, old.name, self._merge_type(old.field_type, new.node, path), required
        )

    def _merge_type(self, old: types.IcebergType, new: Node, path: str) -> types.IcebergType:
        match old, new:
            case types.ListType(), Array(items):
                element = self._merge_type(old.element_type, items, f"{path}[]")
                return types.ListType(
                    old.element_id, element, self._keep_required(old.element_required, items, f"{path}[]")
                )
            case types.MapType(), Map(values):
                value = self._merge_type(old.value_type, values, f"{path}{{}}")
                required = self._keep_required(old.value_required, values, f"{path}{{}}")
                return types.MapType(old.key_id, old.key_type, old.value_id, value, required)
            case types.StructType(), Struct() | Union():
                return types.StructType(*self.merge_fields(old.fields, new, f"{path}."))
        plain = to_iceberg_type(new, count())
        if old != plain and not _is_widening(old, plain):
            self._refuse(path, f"{old} can't become {plain}")
        return plain

    def _keep_required(self, required: bool, new: Node, path: str) -> bool:
        if not required and not new.nullable:
            self._refuse(path, "nullable until now, and no longer")
        return required and not new.nullable

    def _refuse(self, path: str, problem: str) -> None:
        self.refused.append(f"{path}: {problem}")


def _list_fields(node: Struct | Union) -> Sequence[Field]:
    if isinstance(node, Struct):
        return node.fields
    return [Field(branch.column, replace(branch.node, nullable=True)) for branch in node.branches]


def _is_widening(old: types.IcebergType, new: types.IcebergType) -> bool:
    match old, new:
        case (types.IntegerType(), types.LongType()) | (types.FloatType(), types.DoubleType()):
            return True
        case types.DecimalType(), types.DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
    return False
