"""The Schema Registry API: subjects, versions, schemas by id, compatibility.

The caller's API key determines the registry.
"""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent.authorization import is_allowed
from simulators.confluent.errors import ApiError
from simulators.confluent.http import REGISTRY, Answer, Call, Route
from simulators.confluent.model import SchemaRegistry
from simulators.confluent.schemas import LEVELS, TYPES, Schema, Version

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"


def _build_answer(body: Any) -> Answer:
    return Answer(200, body, content_type=_CONTENT_TYPE)


def _find_registry(call: Call) -> SchemaRegistry:
    registry = call.org.schema_registries.get(call.key.resource)
    if registry is None:
        raise ApiError(401, "Unauthorized", code=40101)
    return registry


def _find_subject(call: Call, action: str) -> tuple[SchemaRegistry, str]:
    registry = _find_registry(call)
    subject = call.parameters["subject"]
    if not is_allowed(call.org, call.principal, action, registry.build_subject_crn(subject)):
        raise ApiError(
            403, f"User is denied operation {action.capitalize()} on Subject: {subject}", code=40301
        )
    return registry, subject


def _read_flag(call: Call, name: str) -> bool:
    return call.query.get(name, "false").lower() == "true"


def _read_schema(call: Call) -> Schema:
    text = call.body.get("schema")
    kind = call.body.get("schemaType", "AVRO")
    if not isinstance(text, str):
        raise ApiError(422, "Empty schema", code=42201)
    if kind not in TYPES:
        raise ApiError(422, f"Invalid schema type {kind}", code=42201)
    documents = call.body.get("references") or []
    references = tuple(
        (reference["name"], reference["subject"], reference["version"]) for reference in documents
    )
    return Schema(kind, text, references)


def _describe_schema(schema: Schema) -> dict[str, Any]:
    """Return the fields of the schema. Like the vendor, omit the type if it is AVRO."""
    references = [
        dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in schema.references
    ]
    fields: dict[str, Any] = {}
    if schema.kind != "AVRO":
        fields["schemaType"] = schema.kind
    if references:
        fields["references"] = references
    return {**fields, "schema": schema.text}


def _describe_version(registry: SchemaRegistry, subject: str, version: Version) -> dict[str, Any]:
    schema = registry.schemas.by_id[version.id]
    return {"subject": subject, "version": version.number, "id": version.id} | _describe_schema(schema)


def list_subjects(call: Call) -> Answer:
    """List the subjects that the caller may describe."""
    registry = _find_registry(call)
    names = registry.schemas.subjects(deleted=_read_flag(call, "deleted"))
    prefix = call.query.get("subjectPrefix", "")
    visible_subjects = [
        name
        for name in names
        if is_allowed(call.org, call.principal, "describe", registry.build_subject_crn(name))
    ]
    return _build_answer([name for name in visible_subjects if name.startswith(prefix)])


def register(call: Call) -> Answer:
    registry, subject = _find_subject(call, "write")
    version = registry.schemas.register(subject, _read_schema(call))
    return _build_answer(
        {"id": version.id, "version": version.number} | _describe_schema(registry.schemas.by_id[version.id])
    )


def look_up(call: Call) -> Answer:
    registry, subject = _find_subject(call, "read")
    if subject not in registry.schemas.subjects(deleted=_read_flag(call, "deleted")):
        raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
    version = registry.schemas.find(subject, _read_schema(call), deleted=_read_flag(call, "deleted"))
    if version is None:
        raise ApiError(404, "Schema not found", code=40403)
    return _build_answer(_describe_version(registry, subject, version))


def list_versions(call: Call) -> Answer:
    registry, subject = _find_subject(call, "read")
    numbers = [
        version.number for version in registry.schemas.versions(subject, deleted=_read_flag(call, "deleted"))
    ]
    if not numbers:
        raise ApiError(404, f"Subject '{subject}' not found.", code=40401)
    return _build_answer(numbers)


def read_version(call: Call) -> Answer:
    registry, subject = _find_subject(call, "read")
    version = registry.schemas.find_version(
        subject, call.parameters["version"], deleted=_read_flag(call, "deleted")
    )
    return _build_answer(_describe_version(registry, subject, version))


def read_schema_by_id(call: Call) -> Answer:
    registry = _find_registry(call)
    text = call.parameters["id"]
    schema = registry.schemas.by_id.get(int(text)) if text.isdecimal() else None
    if schema is None:
        raise ApiError(404, f"Schema {text} not found", code=40403)
    return _build_answer(_describe_schema(schema))


def delete(call: Call) -> Answer:
    registry, subject = _find_subject(call, "delete")
    return _build_answer(registry.schemas.delete(subject, permanent=_read_flag(call, "permanent")))


def check_compatibility(call: Call) -> Answer:
    """Compare with one version or, without a version in the path, as `register` does.

    Without any version, a schema is compatible
    (https://docs.confluent.io/platform/current/schema-registry/develop/api.html).
    """
    registry, subject = _find_subject(call, "read")
    number = call.parameters.get("version")
    against = registry.schemas.find_version(subject, number) if number else None
    problems = registry.schemas.list_problems(subject, _read_schema(call), against)
    body: dict[str, Any] = {"is_compatible": not problems}
    if _read_flag(call, "verbose"):
        body["messages"] = problems
    return _build_answer(body)


def read_level(call: Call) -> Answer:
    return _build_answer({"compatibilityLevel": _find_registry(call).schemas.level})


def read_subject_level(call: Call) -> Answer:
    registry, subject = _find_subject(call, "read")
    configured = registry.schemas.levels.get(subject)
    if configured is None and not _read_flag(call, "defaultToGlobal"):
        raise ApiError(
            404, f"Subject '{subject}' does not have subject-level compatibility configured", code=40408
        )
    return _build_answer({"compatibilityLevel": configured or registry.schemas.level})


def set_level(call: Call) -> Answer:
    registry, subject = _find_subject(call, "alter")
    level = call.body.get("compatibility")
    if level not in LEVELS:
        raise ApiError(422, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}", code=42203)
    registry.schemas.levels[subject] = level
    return _build_answer({"compatibility": level})


def drop_level(call: Call) -> Answer:
    registry, subject = _find_subject(call, "alter")
    configured = registry.schemas.levels.pop(subject, None)
    if configured is None:
        raise ApiError(
            404, f"Subject '{subject}' does not have subject-level compatibility configured", code=40408
        )
    return _build_answer(configured)


def read_mode(call: Call) -> Answer:
    _find_registry(call)
    return _build_answer({"mode": "READWRITE"})


ROUTES: Final = (
    Route(REGISTRY, "GET", "/subjects", list_subjects),
    Route(REGISTRY, "POST", "/subjects/{subject}", look_up),
    Route(REGISTRY, "DELETE", "/subjects/{subject}", delete),
    Route(REGISTRY, "GET", "/subjects/{subject}/versions", list_versions),
    Route(REGISTRY, "POST", "/subjects/{subject}/versions", register),
    Route(REGISTRY, "GET", "/subjects/{subject}/versions/{version}", read_version),
    Route(REGISTRY, "GET", "/schemas/ids/{id}", read_schema_by_id),
    Route(REGISTRY, "POST", "/compatibility/subjects/{subject}/versions", check_compatibility),
    Route(REGISTRY, "POST", "/compatibility/subjects/{subject}/versions/{version}", check_compatibility),
    Route(REGISTRY, "GET", "/config", read_level),
    Route(REGISTRY, "GET", "/config/{subject}", read_subject_level),
    Route(REGISTRY, "PUT", "/config/{subject}", set_level),
    Route(REGISTRY, "DELETE", "/config/{subject}", drop_level),
    Route(REGISTRY, "GET", "/mode", read_mode),
)
