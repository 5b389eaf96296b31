"""The state of one Schema Registry: schemas by id, subjects with their versions, and compatibility levels."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
import fastavro

from simulators.confluent.avro_compatibility import list_incompatibilities
from simulators.confluent.errors import ApiError

LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_FIRST_ID: Final = 100001


@attrs.frozen
class Schema:
    """`references` are (name, subject, version)."""

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()

    @classmethod
    def from_avro(cls, document: dict[str, Any]) -> Schema:
        return cls("AVRO", json.dumps(document))

    def is_same(self, other: Schema) -> bool:
        return (self.kind, self.references, _normalize_schema(self)) == (
            other.kind,
            other.references,
            _normalize_schema(other),
        )


@attrs.define
class Version:
    number: int
    id: int
    deleted: bool = False


def _normalize_schema(schema: Schema) -> Any:
    return schema.text.strip() if schema.kind == "PROTOBUF" else json.loads(schema.text)


@attrs.define
class Schemas:
    by_id: dict[int, Schema] = attrs.Factory(dict)
    level: str = "BACKWARD"
    levels: dict[str, str] = attrs.Factory(dict)
    _versions: dict[str, list[Version]] = attrs.Factory(dict)

    def subjects(self, *, deleted: bool = False) -> list[str]:
        return sorted(name for name in self._versions if self.versions(name, deleted=deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        return [version for version in self._versions.get(subject, []) if deleted or not version.deleted]

    def find_version(self, subject: str, number: str, *, deleted: bool = False) -> Version:
        """Return a version; `number` may be `latest`. Raises ApiError."""
        versions = self.versions(subject, deleted=deleted)
        if not versions:
            raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
        if number in ("latest", "-1"):
            return versions[-1]
        if not number.isdecimal() or number == "0":
            raise ApiError(422, f"The specified version '{number}' is not a valid version id.", code=42202)
        for version in versions:
            if version.number == int(number):
                return version
        raise ApiError(404, f"Version {number} not found.", code=40402)

    def latest(self, subject: str) -> Schema | None:
        versions = self.versions(subject)
        return self.by_id[versions[-1].id] if versions else None

    def find(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version | None:
        versions = self.versions(subject, deleted=deleted)
        return next((version for version in versions if self.by_id[version.id].is_same(schema)), None)

    def register(self, subject: str, schema: Schema) -> Version:
        """Return the version with this schema, which is a new one if the subject has none.

        Raises ApiError.
        """
        parse(schema)
        if existing := self.find(subject, schema):
            return existing
        if problems := self.list_problems(subject, schema):
            raise ApiError(
                409,
                f"Schema being registered is incompatible with an earlier schema: {'; '.join(problems)}",
                code=409,
            )
        ids = [schema_id for schema_id, known_schema in self.by_id.items() if known_schema.is_same(schema)]
        schema_id = ids[0] if ids else _FIRST_ID + len(self.by_id)
        self.by_id.setdefault(schema_id, schema)
        versions = self._versions.setdefault(subject, [])
        number = versions[-1].number + 1 if versions else 1
        versions.append(Version(number, schema_id))
        return versions[-1]

    def list_problems(self, subject: str, schema: Schema, against: Version | None = None) -> list[str]:
        """Return why the subject's compatibility level forbids the schema. JSON and Protobuf schemas are
        always compatible.

        The schema is compared with `against` or, by default, with the earlier versions of the subject.
        """
        level = self.levels.get(subject, self.level)
        earlier = [against] if against else self.versions(subject)
        if level == "NONE" or schema.kind != "AVRO" or not earlier:
            return []
        compared = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
        problems: list[str] = []
        for earlier_schema in (self.by_id[version.id] for version in compared):
            if earlier_schema.kind != schema.kind:
                return [f"the type {earlier_schema.kind} can't become {schema.kind}"]
            old = json.loads(earlier_schema.text)
            new = json.loads(schema.text)
            problems += list_incompatibilities(new, old) if not level.startswith("FORWARD") else []
            problems += list_incompatibilities(old, new) if not level.startswith("BACKWARD") else []
        return problems

    def delete(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject and return its version numbers.

        Raises ApiError if a permanent deletion doesn't follow a soft one.
        """
        if permanent and self.versions(subject):
            raise ApiError(
                404, f"Subject '{subject}' was not deleted first before being permanently deleted", code=40405
            )
        if not self.versions(subject, deleted=permanent):
            raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
        numbers = [version.number for version in self.versions(subject, deleted=permanent)]
        self.levels.pop(subject, None)
        if permanent:
            del self._versions[subject]
        for version in self._versions.get(subject, []):
            version.deleted = True
        return numbers


def parse(schema: Schema) -> None:
    """Raise ApiError for a text that isn't a valid schema of its type.

    Protobuf schemas are only checked not to be empty.
    """
    try:
        if schema.kind == "AVRO":
            fastavro.parse_schema(json.loads(schema.text))
        elif schema.kind == "JSON":
            json.loads(schema.text)
    except (
        ValueError,
        KeyError,
        TypeError,
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
    ) as error:
        raise ApiError(422, f"Invalid schema: {type(error).__name__} {error}", code=42201) from None
    if not schema.text.strip():
        raise ApiError(422, "Empty schema", code=42201)
