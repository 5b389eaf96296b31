"""A subject of Schema Registry: its latest schema and, if wanted, its compatibility level.

A registry may be shared, and a subject doesn't name its owner. So a subject belongs to the resource only if
the resource sent a create that may have made it, or if the template adopts it. For any other subject, the
create fails, and the subject is never changed or deleted.
"""

from __future__ import annotations

import json
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.lookup import Ctx, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import SchemaProps
from lambdas.confluent.rest_client import RestClient, build_path, get_path, get_text
from lambdas.shared.errors import Conflict, LakeferryError, NotFound, Refused
from lambdas.shared.resource import Outputs

PROPERTIES: Final = SchemaProps
TIMEOUT_SECONDS: Final = 1800.0
#: The name of a note: "new", or "restored" if the registry still had versions of a deleted subject when it
#: was created, or the subject was adopted. Such versions may belong to somebody else, or be needed to read a
#: topic, so they are never deleted permanently.
_VERSIONS: Final = "subject"


def create(context: Ctx, spec: SchemaProps) -> str:
    """Register the schema.

    Raises Refused if somebody else registered the subject at the same time: the registry then adds a version
    to theirs, without an error.
    """
    plane = _connect(context, spec)
    context.notes[_VERSIONS] = "restored" if _is_listed(plane, spec, deleted=True) else "new"
    context.claim()
    _register(plane, spec)
    try:
        versions = plane.get(_build_route(spec) + "/versions")
    except LakeferryError:
        # The create has had its effect: an error of this read must not look like a refusal of it.
        return spec.subject
    if isinstance(versions, list) and len(versions) > 1 and not spec.adopt:
        message = (
            f"subject {spec.subject} was created by somebody else at the same time, and has versions "
            f"{versions} now"
        )
        raise Refused(confluent_errors.FOREIGN_SUBJECT, message)
    return spec.subject


def is_ready(context: Ctx, spec: SchemaProps, object_id: str) -> Outputs | None:
    """Return the outputs once it has its compatibility level, which is set after the subject is known to be
    the resource's.
    """
    plane = _connect(context, spec)
    actual = require_existing(_read_latest(plane, spec), f"subject {object_id}")
    _set_compatibility(plane, spec)
    return {"subject": object_id, "schema_id": get_text(actual, "id"), "version": get_text(actual, "version")}


def update(context: Ctx, spec: SchemaProps, object_id: str) -> None:
    """Register the new schema. Earlier versions of the subject stay."""
    plane = _connect(context, spec)
    actual = require_existing(_read_latest(plane, spec), f"subject {object_id}")
    _set_compatibility(plane, spec)
    if not _is_same(actual, spec):
        _register(plane, spec, repeatable=True)


def delete(context: Ctx, spec: SchemaProps, object_id: str) -> None:
    """Delete the subject softly and then, if `delete_permanently` is set and the subject was new,
    permanently.

    Its compatibility level is deleted too; otherwise the next subject of that name would get it.
    """
    plane = _connect(context, spec)
    plane.delete(_build_route(spec))
    if _is_permanent(context, spec):
        plane.delete(_build_route(spec), permanent="true")
    if spec.compatibility:
        plane.delete(build_path("config", spec.subject))


def find_existing(context: Ctx, spec: SchemaProps, known_id: str | None) -> list[str]:
    """Return the subject.

    Raises Refused if it exists, and is neither the resource's own nor to be adopted.
    """

    def find_objects() -> list[str]:
        plane = _connect(context, spec)
        if context.deleting:
            exists = _is_listed(plane, spec, deleted=_is_permanent(context, spec))
            return [spec.subject] if exists else []
        if _read_latest(plane, spec) is None:
            return []
        if not context.owned and not spec.adopt:
            raise Refused(
                confluent_errors.FOREIGN_SUBJECT,
                f"subject {spec.subject} exists, and this deployment did not create it",
            )
        if not context.owned:
            context.notes[_VERSIONS] = "restored"
        return [spec.subject]

    if context.deleting and not context.owned:
        return []
    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_environment_gone(spec.environment_id), find_objects
    )


def _is_permanent(context: Ctx, spec: SchemaProps) -> bool:
    return spec.delete_permanently and context.notes.get(_VERSIONS) == "new"


def _is_listed(plane: RestClient, spec: SchemaProps, *, deleted: bool) -> bool:
    """Return whether the subject has a version; with `deleted`, also a softly deleted one.

    The subject itself is asked for: the list of subjects leaves out those that the key's owner may not see.
    """
    try:
        versions = plane.get(_build_route(spec) + "/versions", deleted=str(deleted).lower())
    except NotFound:
        return False
    return bool(versions)


def _read_latest(plane: RestClient, spec: SchemaProps) -> dict[str, Any] | None:
    return plane.read(_build_route(spec) + "/versions/latest")


def _is_same(actual: dict[str, Any], spec: SchemaProps) -> bool:
    if (get_text(actual, "schemaType") or "AVRO") != spec.schema_type:
        return False
    if spec.schema_type == "PROTOBUF":
        return get_text(actual, "schema").split() == spec.schema.split()
    try:
        return bool(json.loads(get_text(actual, "schema")) == json.loads(spec.schema))
    except ValueError:
        return False


def _register(plane: RestClient, spec: SchemaProps, *, repeatable: bool = False) -> None:
    """Register the schema.

    Raises Refused if it is incompatible, which a retry doesn't help. Confluent's API definition has no other
    409 for this call; the registry is asked, because one that something else answered passes.
    """
    body = {"schema": spec.schema, "schemaType": spec.schema_type}
    try:
        plane.post(_build_route(spec) + "/versions", body, repeatable=repeatable)
    except Conflict as refused:
        route = build_path("compatibility", "subjects", spec.subject, "versions")
        answer = plane.post(route, body, repeatable=True)
        if get_path(answer, "is_compatible") is not False:
            raise
        raise Refused(confluent_errors.SCHEMA_INCOMPATIBLE, refused.what) from None


def _set_compatibility(plane: RestClient, spec: SchemaProps) -> None:
    if not spec.compatibility:
        return
    try:
        level = get_text(plane.get(build_path("config", spec.subject)), "compatibilityLevel")
    except NotFound:
        level = ""
    if level != spec.compatibility:
        plane.put(build_path("config", spec.subject), {"compatibility": spec.compatibility})


def _connect(context: Ctx, spec: SchemaProps) -> RestClient:
    return context.vendor.registry(spec.environment_id, context.secrets.read_key(spec.credentials))


def _build_route(spec: SchemaProps) -> str:
    return build_path("subjects", spec.subject)
