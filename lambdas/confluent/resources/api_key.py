"""An API key. Confluent shows its secret once, so the call that creates it also writes it to Secrets Manager.

A key without a stored secret is useless: it is deleted and another one is created. Managed keys are
recognized by their display name: the resource's name or, for keys that rotation created, that name, a slash
and rotation's token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent import key_services
from lambdas.confluent.key_properties import ApiKeyProps
from lambdas.confluent.lookup import Ctx, treat_gone_container_as_empty
from lambdas.confluent.rest_client import build_path, get_text, require_text
from lambdas.confluent.secret_fields import build_fields, replace_key
from lambdas.confluent.services.base import Connection, Target
from lambdas.confluent.sight import Container
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, Refused, ResourceMissing
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.resource import Outputs
from lambdas.shared.secrets import KEY_ID, KEY_SECRET, reveal_fields

PROPERTIES: Final = ApiKeyProps
TIMEOUT_SECONDS: Final = 3000.0
#: Successful tests in a row, each in a separate invocation, before a key counts as known to all of
#: Confluent's servers.
SUCCESSES: Final = 2
#: Separates the resource's name and rotation's token in a display name.
ROTATED: Final = "/"
_ROUTE: Final = "/iam/v2/api-keys"
#: The note with the time at which the secret could not be written.
_UNWRITABLE: Final = "unwritable"
#: A connection that has every field.
_EVERYTHING: Final = Connection(*("any" for _ in attrs.fields(Connection)))


def create(context: Ctx, spec: ApiKeyProps) -> str:
    connection = _find_connection(context, spec)
    stored = context.secrets.read(spec.secret)
    for listed_key in _list_keys(context, spec):
        if get_text(listed_key, "spec", "display_name") == context.name:
            context.vendor.cloud.delete(_ROUTE + build_path(get_text(listed_key, "id")))
    if _UNWRITABLE in context.notes:
        # Don't create a key at every retry only to delete it: first the secret must take a value.
        context.secrets.write(spec.secret, stored, version=f"{context.name}/{context.clock.time()}")
    created = context.vendor.cloud.post(_ROUTE, {"spec": _build_key(context, spec)})
    key = ApiKey(require_text(created, "id"), Secret(require_text(created, "spec", "secret")))
    new_fields = _fill_fields(spec, stored, key, connection)
    try:
        context.secrets.write(spec.secret, new_fields, version=key.id)
    except Refused:
        context.notes[_UNWRITABLE] = str(context.clock.time())
        context.vendor.cloud.delete(_ROUTE + build_path(key.id))
        raise
    return key.id


def is_ready(context: Ctx, spec: ApiKeyProps, object_id: str) -> Outputs | None:
    """Return the outputs once the key works.

    The test doesn't cover the roles of its owner, which may become effective later.
    """
    key = context.secrets.read_key(spec.secret)
    if not key_services.accepts_key(context.vendor, _build_target(spec), key):
        context.notes["successes"] = "0"
        raise InProgress(
            confluent_errors.KEY_NOT_READY, f"key {key.id} for {spec.service} is not accepted yet"
        )
    successes = int(context.notes.get("successes", "0")) + 1
    context.notes["successes"] = str(successes)
    return {"key_id": key.id, "secret": spec.secret} if successes >= SUCCESSES else None


def update(context: Ctx, spec: ApiKeyProps, object_id: str) -> None:
    """Update the description and the other fields of the secret.

    Raises ResourceMissing if the key or its secret is gone.
    """
    live = _find_stored_key(context, spec, _list_keys(context, spec))
    if live is None:
        raise ResourceMissing(errors.VANISHED, f"key {object_id} or its secret is not there")
    if isinstance(context.previous, ApiKeyProps) and context.previous.description != spec.description:
        context.vendor.cloud.patch(_ROUTE + build_path(live.id), {"spec": {"description": spec.description}})
    stored = context.secrets.read(spec.secret)
    new_fields = _fill_fields(spec, stored, live, _find_connection(context, spec))
    if reveal_fields(stored) != reveal_fields(new_fields):
        context.secrets.write(spec.secret, new_fields, version=f"{live.id}/{context.clock.time()}")


def delete(context: Ctx, spec: ApiKeyProps, object_id: str) -> None:
    """Delete the key. The secret stays: it belongs to the stack."""
    context.vendor.cloud.delete(_ROUTE + build_path(object_id))


def find_existing(context: Ctx, spec: ApiKeyProps, known_id: str | None) -> list[str]:
    """Return the key in the secret if it exists; for a delete, all managed keys."""

    def find_keys() -> list[str]:
        keys = _list_keys(context, spec)
        if not context.deleting:
            live = _find_stored_key(context, spec, keys)
            return [live.id] if live else []
        managed_ids = [
            get_text(key, "id")
            for key in keys
            if is_managed(get_text(key, "spec", "display_name"), context.name)
        ]
        if not known_id or known_id in managed_ids:
            return managed_ids
        container = Container(service_account_id=spec.service_account_id)
        exists = context.vendor.cloud.read(_ROUTE + build_path(known_id), container) is not None
        return [*managed_ids, known_id] if exists else managed_ids

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_service_account_gone(spec.service_account_id), find_keys
    )


def is_managed(display_name: str, name: str) -> bool:
    return display_name == name or display_name.startswith(name + ROTATED)


def _find_connection(context: Ctx, spec: ApiKeyProps) -> Connection:
    connection = key_services.find_connection(context.vendor, _build_target(spec))
    return attrs.evolve(connection, display_name=context.name)


def _fill_fields(
    spec: ApiKeyProps, stored: Mapping[str, Secret], key: ApiKey, connection: Connection
) -> dict[str, str | Secret]:
    """Return the secret's fields with this key. Fields that somebody added stay."""
    fields_of_service = build_fields(spec.service, key, _EVERYTHING)
    added = {name: value for name, value in stored.items() if name not in fields_of_service}
    return {**replace_key(added, key), **build_fields(spec.service, key, connection)}


def _find_stored_key(context: Ctx, spec: ApiKeyProps, keys: list[dict[str, Any]]) -> ApiKey | None:
    """Return the key in the secret, if Confluent lists it for the same account and resource."""
    stored = context.secrets.read(spec.secret)
    if KEY_ID not in stored or KEY_SECRET not in stored:
        return None
    stored_key = ApiKey(stored[KEY_ID].reveal(), stored[KEY_SECRET])
    resource = key_services.find_resource(context.vendor, _build_target(spec))
    for key in keys:
        if get_text(key, "id") == stored_key.id and key_services.is_key_for(key, resource):
            return stored_key
    return None


def _list_keys(context: Ctx, spec: ApiKeyProps) -> list[dict[str, Any]]:
    return context.vendor.cloud.pages(_ROUTE, **{"spec.owner": spec.service_account_id})


def _build_key(context: Ctx, spec: ApiKeyProps) -> dict[str, Any]:
    key: dict[str, Any] = {
        "display_name": context.name,
        "description": spec.description,
        "owner": {"id": spec.service_account_id, "kind": "ServiceAccount"},
    }
    resource = key_services.find_resource(context.vendor, _build_target(spec))
    if resource:
        key["resource"] = resource
    return key


def _build_target(spec: ApiKeyProps) -> Target:
    return Target(
        service=spec.service,
        service_account_id=spec.service_account_id,
        environment_id=spec.environment_id,
        cluster_id=spec.cluster_id,
        region=spec.region,
        compute_pool_id=spec.compute_pool_id,
    )
