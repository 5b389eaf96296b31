"""`lakeferry secrets set confluent`: verify the Cloud key with Confluent and store it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from lakeferry.credentials import prompt
from lakeferry.credentials import store as secret_store
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, find_program_name
from lambdas.confluent import crn, secret_fields
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.confluent.crn import CrnScope
from lambdas.confluent.rest_client import build_path, get_text
from lambdas.confluent.services.base import Connection
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, LakeferryError, NotFound
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey
from lambdas.shared.secrets import KEY_ID, KEY_SECRET, Fields

_SECONDS: Final = 60.0
_PAUSE: Final = 10.0
_ADMIN: Final = "OrganizationAdmin"
_ENVIRONMENT_ADMIN: Final = "EnvironmentAdmin"
_KEYS: Final = "/iam/v2/api-keys"


@attrs.frozen
class Owner:
    """The key's owner, with the roles that it has in the organization and in the environment of the file."""

    id: str
    roles: tuple[str, ...]

    @property
    def is_person(self) -> bool:
        return self.id.startswith("u-")


def store(output: Output, ctx: DeploymentContext, key_id: str | None, wait: float) -> dict[str, Any]:
    """Read, verify and store the Cloud key. Raises CommandFailed before it stores anything."""
    name = ctx.cloud_key_secret
    key = prompt.read_api_key(output, key_id)
    _ = ctx.account  # fails before the key is verified if AWS can't be used
    owner = verify(output, ctx, key, wait)
    before = secret_store.read_value(ctx, name)
    stored = secret_store.put_current(ctx, name, _build_fields(key, owner, before.fields if before else {}))
    output.print(f"API key {key.id}: a Cloud key of {owner.id} ({', '.join(owner.roles) or 'no role'})")
    if owner.is_person:
        output.print(
            "The owner is a person: Confluent deletes the key with the person's account. Use a service "
            "account's key."
        )
    output.print(stored.describe())
    following = "secrets set snowflake" if ctx.deployment.uses_snowflake else "doctor"
    output.print(f"Next: {find_program_name()} {following} --stage {ctx.stage}")
    public = {"id": key.id, "scope": "cloud", "owner": owner.id, "roles": list(owner.roles)}
    return {"stage": ctx.stage, "vendor": "confluent", "key": public, **stored.document(), "sql": ""}


def verify(output: Output, ctx: DeploymentContext, key: ApiKey, wait: float) -> Owner:
    """Return the key's owner.

    Waits up to `wait` seconds for a new key to become valid. Raises CommandFailed, LakeferryError.
    """
    vendor = _open_client(ctx, key, wait)
    try:
        owner_id = get_text(_read_key(output, ctx, vendor, key, wait), "spec", "owner", "id")
        owner = Owner(owner_id, _list_roles(ctx, vendor, owner_id))
    except Denied as denied:
        if _lacks_permission(denied):
            raise _explain_insufficient(ctx, "its owner may not read keys and roles", denied) from None
        raise _explain_refusal(ctx, key) from None
    except NotFound as missing:
        raise _explain_insufficient(ctx, "it may not read its own entry", missing) from None
    if not owner.is_person and _find_sufficient_roles(ctx).isdisjoint(owner.roles):
        raise _explain_insufficient(
            ctx, f"its owner {owner.id} has {', '.join(owner.roles) or 'no role'} where it is needed", None
        )
    return owner


def _find_sufficient_roles(ctx: DeploymentContext) -> set[str]:
    """Return the roles one of which the key's owner needs. For an existing cluster, a role on its environment
    is enough.
    """
    return {_ADMIN, _ENVIRONMENT_ADMIN} if ctx.deployment.uses_existing_cluster else {_ADMIN}


def _read_key(output: Output, ctx: DeploymentContext, vendor: Confluent, key: ApiKey, wait: float) -> Any:
    """Return what Confluent's API says about the key. The request is authenticated with the key itself."""
    end = ctx.clock.time() + wait
    with output.step("Verifying the key with Confluent") as report:
        while True:
            try:
                return vendor.cloud.get(_KEYS + build_path(key.id))
            except Denied as denied:
                if _lacks_permission(denied) or ctx.clock.time() + _PAUSE > end:
                    raise
            report("not accepted yet; Confluent takes a while to activate a new key")
            ctx.clock.sleep(_PAUSE)


def _list_roles(ctx: DeploymentContext, vendor: Confluent, owner: str) -> tuple[str, ...]:
    """Return the owner's roles in the organization, and in the environment that the file names."""
    environment_id = ctx.deployment.created_confluent.environment_id
    scopes = [crn.build_organization_crn(CrnScope(vendor.organization_id))]
    if environment_id:
        scopes.append(crn.build_environment_crn(CrnScope(vendor.organization_id, environment_id)))
    roles = set()
    for binding in vendor.role_bindings(owner):
        pattern = get_text(binding, "crn_pattern")
        if any(crn.is_same(pattern, scope) for scope in scopes):
            roles.add(get_text(binding, "role_name"))
    return tuple(sorted(roles))


def _explain_refusal(ctx: DeploymentContext, key: ApiKey) -> CommandFailed:
    """Return why Confluent rejects the key: its response is the same for a wrong secret and for a key of
    another service.
    """
    if _is_tableflow(ctx, key):
        return _explain_wrong_scope(f"API key {key.id} is a key for Tableflow, not a Cloud key")
    message = f"Confluent doesn't accept API key {key.id}"
    scope = _look_up_scope(ctx, key)
    if scope is None:
        why = (
            "It is a key for a cluster or region, not a Cloud key; or its id or secret is wrong; or it was "
            "created moments ago."
        )
        hint = (
            "Create one with `confluent api-key create --resource cloud`. If you just did, run this again "
            "with --wait 300"
        )
        return CommandFailed("SECRETS-REFUSED", message, hint, why=why)
    if scope == "":
        hint = "Look up the id in Confluent's console, under API keys"
        return CommandFailed("SECRETS-REFUSED", f"the organization has no API key {key.id}", hint)
    if scope.lower() != "cloud":
        return _explain_wrong_scope(f"API key {key.id} is for {scope}, not a Cloud key")
    hint = "Copy the secret again. If the key was created just now, run this again with --wait 300"
    return CommandFailed(
        "SECRETS-REFUSED",
        f"{message}: it is a Cloud key, so its secret is wrong, or the key is not active yet",
        hint,
    )


def _is_tableflow(ctx: DeploymentContext, key: ApiKey) -> bool:
    vendor = _open_client(ctx, key, 0)
    try:
        vendor.tableflow(key).get("/tableflow/v1/regions")
    except LakeferryError:
        return False
    return True


def _look_up_scope(ctx: DeploymentContext, key: ApiKey) -> str | None:
    """Return the key's scope, looked up with the stored key: "" if there is no such key, None if the stored
    key can't be used.
    """
    value = secret_store.read_value(ctx, ctx.cloud_key_secret)
    if (
        value is None
        or not {KEY_ID, KEY_SECRET} <= value.fields.keys()
        or value.fields[KEY_ID].reveal() == key.id
    ):
        return None
    stored = ApiKey(value.fields[KEY_ID].reveal(), value.fields[KEY_SECRET])
    vendor = _open_client(ctx, stored, 0)
    try:
        entry = vendor.cloud.read(_KEYS + build_path(key.id))
    except LakeferryError:
        return None
    return get_text(entry, "spec", "resource", "id") or "cloud" if entry else ""


def _open_client(ctx: DeploymentContext, key: ApiKey, wait: float) -> Confluent:
    deadline = Deadline(ctx.clock, ctx.clock.time() + wait + _SECONDS)
    return Confluent(
        Session(deadline, trust_environment=True), ctx.clock, key, ctx.addresses.confluent or CONTROL_PLANE
    )


def _lacks_permission(denied: Denied) -> bool:
    return denied.kind is confluent_errors.AUTH_SCOPE


def _explain_insufficient(ctx: DeploymentContext, why: str, denied: LakeferryError | None) -> CommandFailed:
    roles = " or ".join(sorted(_find_sufficient_roles(ctx)))
    hint = (
        f"Give the key's owner the role {roles}, wait some minutes and run this again: "
        "docs/how-to/prepare-confluent.md"
    )
    message = f"the key is valid but lacks permissions: {why}"
    return CommandFailed(
        "SECRETS-SCOPE", message, hint, details={"confluent": denied.what} if denied else None
    )


def _explain_wrong_scope(message: str) -> CommandFailed:
    hint = "Create a Cloud key: `confluent api-key create --resource cloud --service-account sa-…`"
    return CommandFailed("SECRETS-CLUSTER-KEY", message, hint)


def _build_fields(key: ApiKey, owner: Owner, before: Fields) -> Fields:
    """Return the secret's new fields.

    Other fields are kept, except the fields that only a key for a single resource has.
    """
    others = {name: value for name, value in before.items() if name not in ("resourceId", "environmentId")}
    return {**others, **secret_fields.build_fields("cloud", key, Connection(owner.id, ""))}
