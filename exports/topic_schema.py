"""The fields of a topic, from its Avro schema: their paths, their types, and whether they are personal.

It is not for the job or Lambda functions, whose packages don't have fastavro.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
from fastavro.schema import SchemaParseException, parse_schema

from exports import personal
from exports.personal import Finding

_TYPES = frozenset("null boolean int long float double bytes string record enum array map fixed error".split())


class BadSchema(Exception):
    """A schema file that can't be used, with the reason in one sentence."""


@attrs.frozen
class Field:
    """`kind` is the Avro type or logical type. `tagged` says whether the field, or what contains it, has the tag PII.

    In `path`, a dot precedes a field of a record or a branch of a union, `[]` means the items of an array, and `{}` the values
    of a map.
    """

    path: str
    kind: str
    tagged: bool
    #: Precision and scale of a decimal.
    size: tuple[int, int] | None = None
    #: The Avro name of a record's type.
    record: str = ""


@attrs.frozen
class TopicSchema:
    """`record` is the Avro name of the topic's own record.

    `copied` are the fields that a Flink statement copies from personal fields, with the reason.
    """

    topic: str
    fields: dict[str, Field]
    record: str = ""
    copied: dict[str, Finding] = attrs.field(factory=dict)

    @cached_property
    def personal(self) -> dict[str, Finding]:
        """Return the personal fields by path, and why they are personal."""
        return personal.personal_fields(self.topic, self.record, self.fields.values()) | self.copied

    def personal_below(self, path: str, *, as_text: bool = True) -> list[str]:
        """Return the personal fields among `path` itself, the fields inside it, and the fields that contain it.

        Without `as_text`, fields that are personal only if a column has their text are left out.
        """
        return [
            found
            for found, finding in self.personal.items()
            if (as_text or not finding.only_as_text) and (is_inside(found, path) or is_inside(path, found))
        ]


def load(file: Path, topic: str) -> TopicSchema:
    """Read a schema file. Raises BadSchema if it is missing, is not JSON or is not an Avro record."""
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSchema(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadSchema(f"{file}: cannot be read as an Avro schema in JSON ({error})") from None
    return from_avro(schema, topic)


def from_avro(schema: Any, topic: str) -> TopicSchema:
    """Raises BadSchema."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadSchema(f"the schema of {topic} is not an Avro record, and Tableflow needs one")
    try:
        parsed = parse_schema(_unwrapped(schema), expand=True)
        fields = {field.path: field for field in _below("", parsed, _is_tagged(schema))}
        return TopicSchema(topic, fields, str(schema.get("name", "")))
    except (SchemaParseException, KeyError, TypeError, AttributeError) as error:
        raise BadSchema(f"the schema of {topic} is not valid Avro ({type(error).__name__}: {error})") from None


def _unwrapped(schema: Any) -> Any:
    """Return the schema in a form that fastavro accepts: Java also accepts types and names inside `{"type": …}`."""
    if isinstance(schema, list):
        return [_unwrapped(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    inner = schema["type"]
    if isinstance(inner, dict | list) or inner not in _TYPES:
        inner = _unwrapped(inner)
        return inner | {"confluent:tags": schema["confluent:tags"]} if _is_tagged(schema) and isinstance(inner, dict) else inner
    whole = schema | {key: _unwrapped(schema[key]) for key in ("items", "values") if key in schema}
    if inner == "record":
        whole["fields"] = [field | {"type": _unwrapped(field["type"])} for field in schema["fields"]]
    return whole


def _below(path: str, schema: Any, tagged: bool) -> Iterator[Field]:
    """Yield the fields inside the field at `path`."""
    kind = _kind(schema)
    if kind == "record":
        for field in schema["fields"]:
            inner = f"{path}.{field['name']}" if path else field["name"]
            yield from _field(inner, field["type"], tagged or _is_tagged(field))
    elif kind == "array":
        yield from _field(f"{path}[]", schema["items"], tagged)
    elif kind == "map":
        yield from _field(f"{path}{{}}", schema["values"], tagged)
    elif kind == "union":
        for branch in (one for one in schema if one != "null"):
            yield from _field(f"{path}.{_branch(branch)}", branch, tagged)


def _field(path: str, schema: Any, tagged: bool) -> Iterator[Field]:
    if isinstance(schema, list) and len(some := [branch for branch in schema if branch != "null"]) == 1:
        schema = some[0]
    if isinstance(schema, str) and schema not in _TYPES:  # parse_schema expands all other names
        raise BadSchema(f"field {path}: record {schema} contains itself, and a table has no recursive types. Flatten it first")
    own = tagged or _is_tagged(schema)
    record = str(schema["name"]) if _kind(schema) == "record" else ""
    yield Field(path, _kind(schema), own, _size(schema), record)
    yield from _below(path, schema, own)


def _is_tagged(schema: Any) -> bool:
    return isinstance(schema, dict) and "PII" in schema.get("confluent:tags", [])


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return str(schema["type"] if _is_invalid_decimal(schema) else schema.get("logicalType") or schema["type"])
    return str(schema)


def _size(schema: Any) -> tuple[int, int] | None:
    return (schema["precision"], schema.get("scale") or 0) if _kind(schema) == "decimal" else None


def _is_invalid_decimal(schema: Mapping[str, Any]) -> bool:
    """Return whether Avro ignores the logical type, so that the values are plain bytes or strings."""
    return schema.get("logicalType") == "decimal" and (
        schema["type"] not in ("bytes", "fixed") or not isinstance(schema.get("precision"), int) or schema["precision"] < 1
    )


def _branch(schema: Any) -> str:
    """Return Tableflow's name for a branch of a union: its type, or the last part of its name."""
    name = schema if isinstance(schema, str) else schema.get("name") or _kind(schema)
    return str(name).rpartition(".")[2]


def is_inside(path: str, outer: str) -> bool:
    """Return whether the path is that of the field `outer` or of something in it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]", f"{outer}{{}}"))
