"""An API key. Confluent shows its secret once, so it goes to Secrets Manager inside the call that made it.

A key whose secret is not stored is worth nothing: it is deleted and another one is made. Keys are ours by their display
name: the resource's own, or, for those that rotation made, that name, a slash, and rotation's token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent import key_services
from lambdas.confluent.client import path, require_text, text
from lambdas.confluent.key_services import Target
from lambdas.confluent.lookup import Ctx, in_container
from lambdas.confluent.secret_fields import SERVICES, Connection, fields
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, Refused, ResourceMissing
from lambdas.shared.properties import Properties, prop
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.resource import Outputs
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

OUTPUTS: Final = ("key_id", "secret")
PATIENCE: Final = 3000.0
#: Successes in a row, each in a call of its own, before a key counts as known to all of Confluent's servers.
SUCCESSES: Final = 2
#: Between the resource's name and rotation's token in a display name.
ROTATED: Final = "/"
_ROUTE: Final = "/iam/v2/api-keys"


@attrs.frozen
class Spec(Properties):
    service_account_id: str = prop("The account whose key it is, sa-….")
    service: str = prop("What the key is for.", one_of=SERVICES)
    secret: str = prop("Name or ARN of the secret that gets the key. It must exist; its value is replaced.")
    environment_id: str = prop("The environment, for all but cloud.", default="")
    cluster_id: str = prop("The Kafka cluster, for kafka and tableflow.", default="")
    region: str = prop("The AWS region, for flink and tableflow.", default="")
    compute_pool_id: str = prop("The compute pool that the secret names, for flink.", default="")
    description: str = prop("What the key is for, in words.", default="Made by Lakeferry")

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in key_services.NEEDS[self.service]:
            if not getattr(self, name):
                yield name, f"is missing: a key for {self.service} needs it"

    @property
    def target(self) -> Target:
        return Target(
            self.service, self.service_account_id, self.environment_id, self.cluster_id, self.region, self.compute_pool_id
        )


def create(context: Ctx, spec: Spec) -> str:
    connection = _connection(context, spec)
    for lost in _listed(context, spec):
        if text(lost, "spec", "display_name") == context.name:
            context.vendor.cloud.delete(_ROUTE + path(text(lost, "id")))
    made = context.vendor.cloud.post(_ROUTE, {"spec": _wanted(context, spec)})
    key = ApiKey(require_text(made, "id"), Secret(require_text(made, "spec", "secret")))
    try:
        context.secrets.write(spec.secret, fields(spec.service, key, connection), version=key.id)
    except Refused:
        context.vendor.cloud.delete(_ROUTE + path(key.id))
        raise
    return key.id


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    """The probe proves the key, not its owner's roles: those may still be on their way."""
    key = context.secrets.read_key(spec.secret)
    if not key_services.works(context.vendor, spec.target, key):
        context.notes["successes"] = "0"
        raise InProgress(confluent_errors.KEY_NOT_READY, f"key {key.id} for {spec.service} is not accepted yet")
    successes = int(context.notes.get("successes", "0")) + 1
    context.notes["successes"] = str(successes)
    return {"key_id": key.id, "secret": spec.secret} if successes >= SUCCESSES else None


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    """A key that is gone is made anew; what else stands in its secret is brought up to date."""
    live = _stored(context, spec, _listed(context, spec))
    if live is None:
        raise ResourceMissing(errors.VANISHED, f"key {object_id} or its secret is not there")
    if isinstance(context.previous, Spec) and context.previous.description != spec.description:
        context.vendor.cloud.patch(_ROUTE + path(live.id), {"spec": {"description": spec.description}})
    wanted = fields(spec.service, live, _connection(context, spec))
    if {name: value.reveal() for name, value in context.secrets.read(spec.secret).items()} != wanted:
        context.secrets.write(spec.secret, wanted, version=f"{live.id}/{context.clock.time()}")


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    """The secret is left as it is; it belongs to the stack."""
    context.vendor.cloud.delete(_ROUTE + path(object_id))


REPLACE_ON: Final = ("service_account_id", "service", "secret", "environment_id", "cluster_id", "region")


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    """To keep: the key that the secret holds, if it lives. To delete: all that bear our name."""

    def look() -> list[str]:
        listed = _listed(context, spec)
        if not context.deleting:
            live = _stored(context, spec, listed)
            return [live.id] if live else []
        ours = [text(key, "id") for key in listed if is_ours(text(key, "spec", "display_name"), context.name)]
        if known and known not in ours and context.vendor.cloud.read(_ROUTE + path(known)) is not None:
            ours.append(known)
        return ours

    return in_container(context, lambda: context.vendor.service_account_is_gone(spec.service_account_id), look)


def is_ours(display_name: str, name: str) -> bool:
    return display_name == name or display_name.startswith(name + ROTATED)


def _connection(context: Ctx, spec: Spec) -> Connection:
    return attrs.evolve(key_services.connection(context.vendor, spec.target), display_name=context.name)


def _stored(context: Ctx, spec: Spec, listed: list[dict[str, Any]]) -> ApiKey | None:
    """The key in the secret, if Confluent lists it for the same account and resource."""
    held = context.secrets.read(spec.secret)
    if KEY_ID not in held or KEY_SECRET not in held:
        return None
    key = ApiKey(held[KEY_ID].reveal(), held[KEY_SECRET])
    wanted = key_services.resource(context.vendor, spec.target)
    return key if any(text(one, "id") == key.id and key_services.is_for(one, wanted) for one in listed) else None


def _listed(context: Ctx, spec: Spec) -> list[dict[str, Any]]:
    return context.vendor.cloud.pages(_ROUTE, **{"spec.owner": spec.service_account_id})


def _wanted(context: Ctx, spec: Spec) -> dict[str, Any]:
    resource = key_services.resource(context.vendor, spec.target)
    return {
        "display_name": context.name,
        "description": spec.description,
        "owner": {"id": spec.service_account_id, "kind": "ServiceAccount"},
        **({"resource": resource} if resource else {}),
    }
