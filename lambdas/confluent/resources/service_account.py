"""A service account.

Names are unique in the organization, so an account with this name was created by an earlier call.
"""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing
from lambdas.confluent.properties import ServiceAccountProps
from lambdas.confluent.rest_client import build_path, get_text, require_text
from lambdas.confluent.sight import Container
from lambdas.shared.errors import Denied
from lambdas.shared.resource import Outputs

PROPERTIES: Final = ServiceAccountProps
#: A create fails while another account has the name, seen or not.
NAMES_ARE_UNIQUE: Final = True
TIMEOUT_SECONDS: Final = 1200.0
_ROUTE: Final = "/iam/v2/service-accounts"


def create(context: Ctx, spec: ServiceAccountProps) -> str:
    """Create it. A login that is no administrator of the organization has to own it to be able to use it."""
    body = {"display_name": context.name, "description": spec.description}
    owner = context.vendor.find_new_owner()
    if owner:
        created = context.vendor.cloud.post(_ROUTE, body, assigned_resource_owner=owner)
    else:
        created = context.vendor.cloud.post(_ROUTE, body)
    return require_text(created, "id")


def is_ready(context: Ctx, spec: ServiceAccountProps, object_id: str) -> Outputs | None:
    actual = require_existing(_read(context, object_id), f"service account {object_id}")
    return {"id": object_id, "name": get_text(actual, "display_name"), "principal": f"User:{object_id}"}


def update(context: Ctx, spec: ServiceAccountProps, object_id: str) -> None:
    actual = require_existing(_read(context, object_id), f"service account {object_id}")
    expected = {"display_name": context.name, "description": spec.description}
    changes = {name: value for name, value in expected.items() if get_text(actual, name) != value}
    if changes:
        context.vendor.cloud.patch(_build_route(object_id), changes)


def delete(context: Ctx, spec: ServiceAccountProps, object_id: str) -> None:
    """Delete it with its role bindings; Confluent deletes its API keys.

    If an answer was lost, CloudFormation may consider a role binding failed. Nothing else deletes such a
    binding, and it can't be found once the account is gone.
    """
    for binding in list(context.vendor.role_bindings(object_id)):
        context.vendor.cloud.delete(build_path("iam", "v2", "role-bindings", get_text(binding, "id")))
    context.vendor.cloud.delete(_build_route(object_id))


def find_existing(context: Ctx, spec: ServiceAccountProps, known_id: str | None) -> list[str]:
    """Return the account, if the login sees it.

    An owner that is no administrator doesn't see the account after its deletion, because the role on it is
    deleted too. So an account that isn't found is not proved to be gone. The caller needs another proof: that
    this login deleted it, which Confluent does at once.
    """
    cloud = context.vendor.cloud

    def read_by_id(object_id: str) -> dict[str, Any] | None:
        try:
            return cloud.read(_build_route(object_id))
        except Denied as denied:
            if denied.kind is confluent_errors.UNSEEN:
                return None
            raise

    accounts = cloud.pages(_ROUTE, display_name=context.name)
    return find_by_id_or_name(known_id, read_by_id, accounts, context.name, "display_name")


def _read(context: Ctx, object_id: str) -> dict[str, Any] | None:
    """Return the account, or None if it is gone.

    Raises InProgress while the role of a new owner, which comes with the account, may not be effective yet.
    """
    return context.vendor.cloud.read(_build_route(object_id), Container(service_account_id=object_id))


def _build_route(object_id: str) -> str:
    return _ROUTE + build_path(object_id)
