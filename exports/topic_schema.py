"""The fields of a topic, from its Avro schema: paths, kinds, and which of them are personal. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

#: Last parts of field names that speak of a person even where nobody tagged them.
_TELLING = frozenset(
    "email e_mail mail phone phone_number telephone mobile first_name last_name surname full_name street address "
    "birth_date birthdate date_of_birth iban ip ip_address ssn passport".split()
)


class BadSchema(Exception):
    """A schema file that can't be used, with the reason in one sentence."""


@attrs.frozen
class Field:
    """`kind` is the Avro type or logical type; `path` goes through records and, for items of an array, through `[]`."""

    path: str
    kind: str
    tagged: bool

    @property
    def personal(self) -> bool:
        return self.tagged or self.path.rsplit(".", 1)[-1] in _TELLING


@attrs.frozen
class TopicSchema:
    topic: str
    fields: dict[str, Field]

    def personal_below(self, path: str) -> list[str]:
        """The personal fields that a value of `path` carries: itself, what is inside it, or what it is inside of."""
        return [
            field.path
            for field in self.fields.values()
            if field.personal and (_inside(field.path, path) or _inside(path, field.path))
        ]


def load(file: Path, topic: str) -> TopicSchema:
    """Raises BadSchema where the file is missing, is not JSON or is not an Avro record."""
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSchema(f"{file}: cannot be read as an Avro schema in JSON ({error})") from None
    return from_avro(schema, topic)


def from_avro(schema: Any, topic: str) -> TopicSchema:
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadSchema(f"the schema of {topic} is not an Avro record, and Tableflow needs one")
    return TopicSchema(topic, {field.path: field for field in _walk(schema, "", False, {})})


def _walk(schema: dict[str, Any], prefix: str, tagged: bool, named: dict[str, Any]) -> Iterator[Field]:
    named[schema["name"]] = schema
    for field in schema["fields"]:
        path = f"{prefix}{field['name']}"
        own = tagged or "PII" in field.get("confluent:tags", [])
        yield from _field(path, _without_null(field["type"], named), own, named)


def _field(path: str, kind: Any, tagged: bool, named: dict[str, Any]) -> Iterator[Field]:
    word = _kind(kind)
    yield Field(path, word, tagged)
    if word == "record":
        yield from _walk(kind, f"{path}.", tagged, named)
    elif word == "array":
        item = _without_null(kind["items"], named)
        yield from _field(f"{path}[]", item, tagged, named)


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return str(schema.get("logicalType") or (schema["type"] if isinstance(schema["type"], str) else _kind(schema["type"])))
    return str(schema)


def _without_null(schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, list) and len(some := [branch for branch in schema if branch != "null"]) == 1:
        schema = some[0]
    return named.get(schema, schema) if isinstance(schema, str) else schema


def _inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]"))
