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
from lambdas.confluent.client import path, require_text, text
from lambdas.confluent.key_services import Target
from lambdas.confluent.lookup import Ctx, in_container
from lambdas.confluent.properties import ApiKeyProps
from lambdas.confluent.secret_fields import Connection, fields, with_key
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, Refused, ResourceMissing
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.resource import Outputs
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

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
    connection = _connection(context, spec)
    stored = _revealed(context, spec)
    for lost in _listed(context, spec):
        if text(lost, "spec", "display_name") == context.name:
            context.vendor.cloud.delete(_ROUTE + path(text(lost, "id")))
    if (
        _UNWRITABLE in context.notes
    ):  # don't create a key at every retry only to delete it: first the secret must take a value
        context.secrets.write(spec.secret, stored, version=f"{context.name}/{context.clock.time()}")
    created = context.vendor.cloud.post(_ROUTE, {"spec": _wanted(context, spec)})
    key = ApiKey(require_text(created, "id"), Secret(require_text(created, "spec", "secret")))
    try:
        context.secrets.write(spec.secret, _filled(spec, stored, key, connection), version=key.id)
    except Refused:
        context.notes[_UNWRITABLE] = str(context.clock.time())
        context.vendor.cloud.delete(_ROUTE + path(key.id))
        raise
    return key.id


def is_ready(context: Ctx, spec: ApiKeyProps, object_id: str) -> Outputs | None:
    """Return the outputs once the key works.

    The test doesn't cover the roles of its owner, which may become effective later.
    """
    key = context.secrets.read_key(spec.secret)
    if not key_services.works(context.vendor, _target(spec), key):
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
    live = _stored(context, spec, _listed(context, spec))
    if live is None:
        raise ResourceMissing(errors.VANISHED, f"key {object_id} or its secret is not there")
    if isinstance(context.previous, ApiKeyProps) and context.previous.description != spec.description:
        context.vendor.cloud.patch(_ROUTE + path(live.id), {"spec": {"description": spec.description}})
    stored = _revealed(context, spec)
    wanted = _filled(spec, stored, live, _connection(context, spec))
    if stored != wanted:
        context.secrets.write(spec.secret, wanted, version=f"{live.id}/{context.clock.time()}")


def delete(context: Ctx, spec: ApiKeyProps, object_id: str) -> None:
    """Delete the key. The secret stays: it belongs to the stack."""
    context.vendor.cloud.delete(_ROUTE + path(object_id))


def find_existing(context: Ctx, spec: ApiKeyProps, known: str | None) -> list[str]:
    """Return the key in the secret if it exists; for a delete, all managed keys."""

    def look() -> list[str]:
        listed = _listed(context, spec)
        if not context.deleting:
            live = _stored(context, spec, listed)
            return [live.id] if live else []
        managed = [
            text(key, "id") for key in listed if is_managed(text(key, "spec", "display_name"), context.name)
        ]
        if known and known not in managed and context.vendor.cloud.read(_ROUTE + path(known)) is not None:
            managed.append(known)
        return managed

    return in_container(
        context, lambda: context.vendor.service_account_is_gone(spec.service_account_id), look
    )


def is_managed(display_name: str, name: str) -> bool:
    return display_name == name or display_name.startswith(name + ROTATED)


def _connection(context: Ctx, spec: ApiKeyProps) -> Connection:
    return attrs.evolve(key_services.connection(context.vendor, _target(spec)), display_name=context.name)


def _revealed(context: Ctx, spec: ApiKeyProps) -> dict[str, str]:
    return {name: value.reveal() for name, value in context.secrets.read(spec.secret).items()}


def _filled(
    spec: ApiKeyProps, stored: Mapping[str, str], key: ApiKey, connection: Connection
) -> dict[str, str]:
    """Return the secret's fields with this key. Fields that somebody added stay."""
    own = fields(spec.service, key, _EVERYTHING)
    added = {name: value for name, value in stored.items() if name not in own}
    return {**with_key(added, key), **fields(spec.service, key, connection)}


def _stored(context: Ctx, spec: ApiKeyProps, listed: list[dict[str, Any]]) -> ApiKey | None:
    """Return the key in the secret, if Confluent lists it for the same account and resource."""
    stored = context.secrets.read(spec.secret)
    if KEY_ID not in stored or KEY_SECRET not in stored:
        return None
    key = ApiKey(stored[KEY_ID].reveal(), stored[KEY_SECRET])
    wanted = key_services.resource(context.vendor, _target(spec))
    is_listed = any(text(found, "id") == key.id and key_services.is_for(found, wanted) for found in listed)
    return key if is_listed else None


def _listed(context: Ctx, spec: ApiKeyProps) -> list[dict[str, Any]]:
    return context.vendor.cloud.pages(_ROUTE, **{"spec.owner": spec.service_account_id})


def _wanted(context: Ctx, spec: ApiKeyProps) -> dict[str, Any]:
    resource = key_services.resource(context.vendor, _target(spec))
    return {
        "display_name": context.name,
        "description": spec.description,
        "owner": {"id": spec.service_account_id, "kind": "ServiceAccount"},
        **({"resource": resource} if resource else {}),
    }


def _target(spec: ApiKeyProps) -> Target:
    return Target(
        spec.service,
        spec.service_account_id,
        spec.environment_id,
        spec.cluster_id,
        spec.region,
        spec.compute_pool_id,
    )
