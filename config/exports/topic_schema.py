"""The fields of a topic, from its Avro schema: their paths, their types, and whether they are personal.

It is not for the job or Lambda functions, whose packages don't have fastavro.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs

from config.exports import avro_schema, personal
from config.exports.avro_schema import BadSchema, Type
from config.exports.personal import Finding

#: The key of a schema that says whether somebody decided which fields get the tag PII. In a schema from
#: Schema Registry, which has tags, the key is absent.
TAGS: Final = "lakeferry:tags"
UNKNOWN_TAGS: Final = "unknown"
REVIEWED_TAGS: Final = "reviewed"


@attrs.frozen
class Field:
    """`kind` is the Avro type or logical type. `tagged` says whether the field, or what contains it, has the
    tag PII.

    In `path`, a dot precedes a field of a record or a branch of a union, `[]` means the items of an array,
    `{}` the values of a map, and `{key}` its keys if they aren't text.
    """

    path: str
    kind: str
    tagged: bool
    #: Precision and scale of a decimal.
    size: tuple[int, int] | None = None
    #: The Avro name of a record's type.
    record: str = ""


#: Why a field counts as personal whose tags are not known.
UNTAGGED: Final = Finding("nobody has said whether it is personal")


@attrs.frozen
class TopicSchema:
    """`type` is the type of the topic's values, and `fields` has all fields of that type, by path.

    `copied` are the fields that a Flink statement copies from personal fields, with the reason. If
    `tags_unknown`, nobody said which fields are personal, and each counts as one that may be.
    """

    topic: str
    type: Type
    fields: dict[str, Field]
    copied: dict[str, Finding] = attrs.field(factory=dict)
    tags_unknown: bool = False

    @cached_property
    def personal(self) -> dict[str, Finding]:
        """Return the personal fields by path, and why they are personal."""
        own = personal.personal_fields(self.topic, self.type.record, self.fields.values())
        found = personal.add_findings(own, self.copied.items())
        return dict.fromkeys(self.fields, UNTAGGED) | found if self.tags_unknown else found

    def is_marked(self, path: str) -> bool:
        """Return whether the field has the tag PII, or is computed from personal fields."""
        return self.fields[path].tagged or path in self.copied

    def personal_inside_or_around(self, path: str, *, as_text: bool = True) -> list[str]:
        """Return the personal fields among `path` itself, the fields inside it, and the fields that contain
        it.

        Without `as_text`, fields that are personal only if a column has their text are left out.
        """
        return [
            field
            for field, finding in self.personal.items()
            if (as_text or not finding.only_as_text) and (is_inside(field, path) or is_inside(path, field))
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
    root = avro_schema.read(schema, topic)
    tags = schema.get(TAGS)
    if tags not in (None, UNKNOWN_TAGS, REVIEWED_TAGS):
        raise BadSchema(
            f'the schema of {topic} has "{TAGS}": {json.dumps(tags)}. Write "{REVIEWED_TAGS}" if the '
            f'personal fields have the tag PII, "{UNKNOWN_TAGS}" if nobody has looked'
        )
    return attrs.evolve(from_type(root, topic), tags_unknown=tags == UNKNOWN_TAGS)


def from_type(root: Type, topic: str) -> TopicSchema:
    """Return the schema of a topic whose values have the type, which is a record."""
    return TopicSchema(
        topic, root, {field.path: field for field in _list_fields_below("", root, root.tagged)}
    )


def _list_fields_below(path: str, type_: Type, tagged: bool) -> Iterator[Field]:
    """Yield the fields inside the field at `path`, which has this type.

    `tagged` says whether the field has the tag.
    """
    for field in type_.fields:
        inner = f"{path}.{field.name}" if path else field.name
        yield from _list_field(inner, field.type, tagged or field.tagged)
    if type_.items:
        yield from _list_field(f"{path}[]" if type_.kind == "array" else f"{path}{{}}", type_.items, tagged)
    if type_.key:
        yield from _list_field(f"{path}{{key}}", type_.key, tagged)


def _list_field(path: str, type_: Type, tagged: bool) -> Iterator[Field]:
    is_tagged = tagged or type_.tagged
    yield Field(path, type_.kind, is_tagged, type_.size, type_.record)
    yield from _list_fields_below(path, type_, is_tagged)


def is_inside(path: str, outer: str) -> bool:
    """Return whether the path is that of the field `outer` or of something in it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]", f"{outer}{{"))
