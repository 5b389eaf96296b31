"""The Schema Registry API: subjects, versions, schemas by id, compatibility.

The caller's API key determines the registry.
"""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.authorization import allowed
from simulators.confluent.errors import ApiError
from simulators.confluent.http import REGISTRY, Answer, Call, Route
from simulators.confluent.model import SchemaRegistry
from simulators.confluent.schemas import LEVELS, TYPES, Schema, Version

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"


def _ok(body: Any) -> Answer:
    return Answer(200, body, content_type=_CONTENT_TYPE)


def _registry(call: Call) -> SchemaRegistry:
    registry = call.org.schema_registries.get(call.key.resource)
    if registry is None:
        raise ApiError(401, "Unauthorized", code=40101)
    return registry


def _with(call: Call, action: str) -> tuple[SchemaRegistry, str]:
    registry = _registry(call)
    subject = call.parameters["subject"]
    if not allowed(call.org, call.principal, action, registry.subject(subject)):
        raise ApiError(
            403, f"User is denied operation {action.capitalize()} on Subject: {subject}", code=40301
        )
    return registry, subject


def _flag(call: Call, name: str) -> bool:
    return call.query.get(name, "false").lower() == "true"


def _given(call: Call) -> Schema:
    text = call.body.get("schema")
    kind = call.body.get("schemaType", "AVRO")
    if not isinstance(text, str):
        raise ApiError(422, "Empty schema", code=42201)
    if kind not in TYPES:
        raise ApiError(422, f"Invalid schema type {kind}", code=42201)
    sent = call.body.get("references") or []
    references = tuple((reference["name"], reference["subject"], reference["version"]) for reference in sent)
    return Schema(kind, text, references)


def _fields(schema: Schema) -> dict[str, Any]:
    """Return the fields of the schema. Like the vendor, omit the type if it is AVRO."""
    named = [
        dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in schema.references
    ]
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    return kind | ({"references": named} if named else {}) | {"schema": schema.text}


def _version(registry: SchemaRegistry, subject: str, version: Version) -> dict[str, Any]:
    schema = registry.schemas.by_id[version.id]
    return {"subject": subject, "version": version.number, "id": version.id} | _fields(schema)


def listing(call: Call) -> Answer:
    """List the subjects that the caller may describe."""
    registry = _registry(call)
    names = registry.schemas.subjects(deleted=_flag(call, "deleted"))
    prefix = call.query.get("subjectPrefix", "")
    visible = [
        name for name in names if allowed(call.org, call.principal, "describe", registry.subject(name))
    ]
    return _ok([name for name in visible if name.startswith(prefix)])


def register(call: Call) -> Answer:
    registry, subject = _with(call, "write")
    version = registry.schemas.register(subject, _given(call))
    return _ok({"id": version.id, "version": version.number} | _fields(registry.schemas.by_id[version.id]))


def look_up(call: Call) -> Answer:
    registry, subject = _with(call, "read")
    if subject not in registry.schemas.subjects(deleted=_flag(call, "deleted")):
        raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
    version = registry.schemas.find(subject, _given(call), deleted=_flag(call, "deleted"))
    if version is None:
        raise ApiError(404, "Schema not found", code=40403)
    return _ok(_version(registry, subject, version))


def versions(call: Call) -> Answer:
    registry, subject = _with(call, "read")
    numbers = [
        version.number for version in registry.schemas.versions(subject, deleted=_flag(call, "deleted"))
    ]
    if not numbers:
        raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
    return _ok(numbers)


def version_of(call: Call) -> Answer:
    registry, subject = _with(call, "read")
    version = registry.schemas.version(subject, call.parameters["version"], deleted=_flag(call, "deleted"))
    return _ok(_version(registry, subject, version))


def by_id(call: Call) -> Answer:
    registry = _registry(call)
    schema = (
        registry.schemas.by_id.get(int(call.parameters["id"])) if call.parameters["id"].isdecimal() else None
    )
    if schema is None:
        raise ApiError(404, f"Schema {call.parameters['id']} not found", code=40403)
    return _ok(_fields(schema))


def delete(call: Call) -> Answer:
    registry, subject = _with(call, "delete")
    return _ok(registry.schemas.delete(subject, permanent=_flag(call, "permanent")))


def compatible(call: Call) -> Answer:
    """Compare with one version or, without a version in the path, as `register` does.

    Without any version, a schema is compatible
    (https://docs.confluent.io/platform/current/schema-registry/develop/api.html).
    """
    registry, subject = _with(call, "read")
    number = call.parameters.get("version")
    against = registry.schemas.version(subject, number) if number else None
    problems = registry.schemas.problems(subject, _given(call), against)
    return _ok({"is_compatible": not problems} | ({"messages": problems} if _flag(call, "verbose") else {}))


def level(call: Call) -> Answer:
    return _ok({"compatibilityLevel": _registry(call).schemas.level})


def level_of(call: Call) -> Answer:
    registry, subject = _with(call, "read")
    configured = registry.schemas.levels.get(subject)
    if configured is None and not _flag(call, "defaultToGlobal"):
        raise ApiError(
            404, f"Subject '{subject}' does not have subject-level compatibility configured", code=40408
        )
    return _ok({"compatibilityLevel": configured or registry.schemas.level})


def set_level(call: Call) -> Answer:
    registry, subject = _with(call, "alter")
    wanted = call.body.get("compatibility")
    if wanted not in LEVELS:
        raise ApiError(422, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}", code=42203)
    registry.schemas.levels[subject] = wanted
    return _ok({"compatibility": wanted})


def drop_level(call: Call) -> Answer:
    registry, subject = _with(call, "alter")
    configured = registry.schemas.levels.pop(subject, None)
    if configured is None:
        raise ApiError(
            404, f"Subject '{subject}' does not have subject-level compatibility configured", code=40408
        )
    return _ok(configured)


def mode(call: Call) -> Answer:
    _registry(call)
    return _ok({"mode": "READWRITE"})


ROUTES: Final = (
    Route(REGISTRY, "GET", "/subjects", listing),
    Route(REGISTRY, "POST", "/subjects/{subject}", look_up),
    Route(REGISTRY, "DELETE", "/subjects/{subject}", delete),
    Route(REGISTRY, "GET", "/subjects/{subject}/versions", versions),
    Route(REGISTRY, "POST", "/subjects/{subject}/versions", register),
    Route(REGISTRY, "GET", "/subjects/{subject}/versions/{version}", version_of),
    Route(REGISTRY, "GET", "/schemas/ids/{id}", by_id),
    Route(REGISTRY, "POST", "/compatibility/subjects/{subject}/versions", compatible),
    Route(REGISTRY, "POST", "/compatibility/subjects/{subject}/versions/{version}", compatible),
    Route(REGISTRY, "GET", "/config", level),
    Route(REGISTRY, "GET", "/config/{subject}", level_of),
    Route(REGISTRY, "PUT", "/config/{subject}", set_level),
    Route(REGISTRY, "DELETE", "/config/{subject}", drop_level),
    Route(REGISTRY, "GET", "/mode", mode),
)
