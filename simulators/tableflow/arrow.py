"""Converts Kafka records to Arrow columns, a whole batch at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import fastavro
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, sanitize_column_names

from simulators.tableflow.avro import Array, Map, Node, Struct, Union, parse
from simulators.tableflow.kafka import Record
from simulators.tableflow.layout import KEY_COLUMN, METADATA, Naming, has_key_column, name_metadata_column
from simulators.tableflow.topic import Topic

Convert = Callable[[Any], Any]

#: Confluent's wire format: a zero byte and the id of the schema in the registry, then the Avro bytes.
_MAGIC: Final = b"\x00"


class RecordError(Exception):
    """A record that does not fit its topic's schema."""


def to_arrow(
    topic: Topic, schema: Schema, naming: Naming, records: Sequence[Record], schema_id: int
) -> pa.Table:
    """Return one row for each record, in the given order, with the columns, Parquet names and field ids of
    `schema`.

    Raises RecordError if a value doesn't fit.
    """
    arrow = schema_to_pyarrow(sanitize_column_names(schema))
    fields = dict(zip((field.name for field in schema.fields), arrow, strict=True))
    columns = _build_value_columns(topic, fields, [record.value for record in records])
    if has_key_column(topic):
        columns[KEY_COLUMN] = pa.array([record.key for record in records], fields[KEY_COLUMN].type)
    for name in METADATA:
        column = name_metadata_column(name, naming)
        columns[column] = _build_metadata_array(name, records, fields[column].type, topic, schema_id)
    return pa.Table.from_arrays([columns[name] for name in fields], schema=arrow)


def _build_value_columns(
    topic: Topic, fields: Mapping[str, pa.Field], values: Sequence[Any]
) -> dict[str, pa.Array]:
    names_and_types = [(field.name, fields[field.name]) for field in topic.root.fields]
    struct = pa.struct([pa.field(name, field.type) for name, field in names_and_types])
    if convert := _build_converter(topic.root):
        values = [convert(value) for value in values]
    try:
        arrays = pa.array(values, struct).flatten()
    except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError, ValueError) as error:
        raise RecordError(f"topic {topic.name}: a value does not fit the schema: {error}") from error
    for (name, field), array in zip(names_and_types, arrays, strict=True):
        if array.null_count and not field.nullable:
            raise RecordError(
                f"topic {topic.name}: field {name} is null in {array.null_count} records, and required"
            )
    return dict(zip((name for name, _ in names_and_types), arrays, strict=True))


def _build_metadata_array(
    name: str, records: Sequence[Record], kind: pa.DataType, topic: Topic, schema_id: int
) -> pa.Array:
    match name:
        case "headers":
            return pa.array([list(dict(record.headers).items()) for record in records], kind)
        case "timestamp":
            return pa.array([record.timestamp for record in records], pa.timestamp("ms", "UTC")).cast(kind)
        case "raw-key":
            return pa.array([record.key for record in records], kind)
        case "raw-value":
            return pa.array(_encode_records(topic, records, schema_id), kind)
    values = map(attrgetter(name.replace("-", "_")), records)
    return pa.array(list(values), kind)


def _encode_records(topic: Topic, records: Sequence[Record], schema_id: int) -> list[bytes | None]:
    schema = parse(topic.schema)
    prefix = _MAGIC + schema_id.to_bytes(4, "big")
    return [None if record.value is None else _encode(schema, record.value, prefix) for record in records]


def _encode(schema: Any, value: dict[str, Any], prefix: bytes) -> bytes:
    buffer = io.BytesIO()
    buffer.write(prefix)
    try:
        fastavro.schemaless_writer(buffer, schema, value)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise RecordError(f"a value does not fit the schema {schema['name']}: {error}") from error
    return buffer.getvalue()


def _build_converter(node: Node) -> Convert | None:
    """Return a function that converts values to what Arrow accepts; None if no conversion is needed."""
    match node:
        case Array(items):
            return _build_array_converter(items)
        case Map():
            return _build_map_converter(node)
        case Struct():
            return _build_struct_converter(node)
        case Union():
            return _build_union_converter(node)
    return None


def _build_array_converter(items: Node) -> Convert | None:
    inner = _build_converter(items)
    if inner is None:
        return None
    return _skip_nulls(lambda values: [inner(value) for value in values])


def _build_map_converter(node: Map) -> Convert:
    convert = _build_converter(node.values) or _return_unchanged
    if node.entry is None:
        return _skip_nulls(lambda pairs: [(key, convert(value)) for key, value in pairs.items()])
    convert_key = _build_converter(node.entry["key"]) or _return_unchanged
    return _skip_nulls(
        lambda entries: [(convert_key(entry["key"]), convert(entry["value"])) for entry in entries]
    )


def _build_struct_converter(struct: Struct) -> Convert | None:
    converters = {}
    for field in struct.fields:
        if convert := _build_converter(field.node):
            converters[field.name] = convert
    if not converters:
        return None
    return _skip_nulls(
        lambda value: (
            value | {name: convert_field(value.get(name)) for name, convert_field in converters.items()}
        )
    )


def _build_union_converter(union: Union) -> Convert:
    branches = {
        branch.avro_name: (branch.column, _build_converter(branch.node) or _return_unchanged)
        for branch in union.branches
    }

    def convert(value: tuple[str, Any]) -> dict[str, Any]:
        column, inner = branches[value[0]]
        return {column: inner(value[1])}

    return _skip_nulls(convert)


def _skip_nulls(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _return_unchanged(value: Any) -> Any:
    return value
