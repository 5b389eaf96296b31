"""The fields of a topic, from its Avro schema: paths, kinds, and which of them are personal. Standard library only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

#: Last parts of field names, in snake case, that speak of a person even where nobody tagged them.
_TELLING = frozenset(
    "email e_mail mail phone phone_number telephone mobile first_name last_name surname full_name street address "
    "birth_date birthdate date_of_birth iban ip ip_address ssn passport".split()
)


class BadSchema(Exception):
    """A schema file that can't be used, with the reason in one sentence."""


@attrs.frozen
class Field:
    """`kind` is the Avro type or logical type. `path` goes through records, and through branches of a union as if they
    were fields, for items of an array through `[]`, for values of a map through `{}`.
    """

    path: str
    kind: str
    tagged: bool

    @property
    def personal(self) -> bool:
        name = self.path.rpartition(".")[2].removesuffix("[]").removesuffix("{}")
        return self.tagged or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() in _TELLING


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
        return TopicSchema(topic, {field.path: field for field in _Walk().below("", schema, "", _is_tagged(schema))})
    except (KeyError, TypeError, AttributeError) as error:
        raise BadSchema(f"the schema of {topic} is not valid Avro ({type(error).__name__}: {error})") from None


class _Walk:
    """Named types are looked up as Avro says: by full name, or by a name in the namespace around."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._open: list[str] = []

    def below(self, path: str, schema: Any, space: str, tagged: bool) -> Iterator[Field]:
        """The fields inside what stands at `path`."""
        kind = _kind(schema)
        if kind == "record":
            yield from self._record(path, schema, space, tagged)
        elif kind == "array":
            yield from self._field(f"{path}[]", schema["items"], space, tagged)
        elif kind == "map":
            yield from self._field(f"{path}{{}}", schema["values"], space, tagged)
        elif kind == "union":
            for branch in (one for one in schema if one != "null"):
                yield from self._field(f"{path}.{_branch(branch)}", branch, space, tagged)

    def _record(self, path: str, schema: dict[str, Any], space: str, tagged: bool) -> Iterator[Field]:
        name, space = self._define(schema, space)
        if name in self._open:
            raise BadSchema(f"field {path}: record {name} contains itself, and a table has no recursive types. Flatten it first")
        self._open.append(name)
        for field in schema["fields"]:
            inner = f"{path}.{field['name']}" if path else field["name"]
            yield from self._field(inner, field["type"], space, tagged or _is_tagged(field))
        self._open.pop()

    def _field(self, path: str, kind: Any, space: str, tagged: bool) -> Iterator[Field]:
        schema, space = self._resolved(kind, space)
        own = tagged or _is_tagged(kind) or _is_tagged(schema)
        yield Field(path, _kind(schema), own)
        yield from self.below(path, schema, space, own)

    def _resolved(self, schema: Any, space: str) -> tuple[Any, str]:
        """Without names, without null beside one type, without types inside types; and the namespace it stands in."""
        if isinstance(schema, list) and len(some := [branch for branch in schema if branch != "null"]) == 1:
            return self._resolved(some[0], space)
        if isinstance(schema, dict):
            inner = schema["type"]
            if isinstance(inner, dict | list) or self._find(inner, space):
                return self._resolved(inner, space)
            if "name" in schema:
                self._define(schema, space)
        return (isinstance(schema, str) and self._find(schema, space)) or (schema, space)

    def _define(self, schema: dict[str, Any], space: str) -> tuple[str, str]:
        """The type's full name, and the namespace of what stands inside it."""
        own, _, short = schema["name"].rpartition(".")
        inside = own or schema.get("namespace", space)
        name = f"{inside}.{short}" if inside else short
        self._named[name] = (schema, inside)
        return name, inside

    def _find(self, name: str, space: str) -> tuple[dict[str, Any], str] | None:
        return self._named.get(name if "." in name or not space else f"{space}.{name}")


def _is_tagged(schema: Any) -> bool:
    return isinstance(schema, dict) and "PII" in schema.get("confluent:tags", [])


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    return str(schema.get("logicalType") or schema["type"]) if isinstance(schema, dict) else str(schema)


def _branch(schema: Any) -> str:
    """How Tableflow calls a branch of a union: by its type, or by the last part of its name."""
    name = schema if isinstance(schema, str) else schema.get("name") or _kind(schema)
    return str(name).rpartition(".")[2]


def _inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]", f"{outer}{{}}"))
