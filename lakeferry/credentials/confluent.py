"""`lakeferry secrets set confluent`: the Cloud key, proved by what Confluent itself says of it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from lakeferry.credentials import prompt
from lakeferry.credentials import store as secret_store
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, program_name
from lambdas.confluent import crn, secret_fields
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CONTROL_PLANE, Confluent, path, text
from lambdas.confluent.crn import CrnScope
from lambdas.confluent.secret_fields import Connection
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, LakeferryError, NotFound
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

_SECONDS: Final = 60.0
_PAUSE: Final = 10.0
_ADMIN: Final = "OrganizationAdmin"
_KEYS: Final = "/iam/v2/api-keys"


@attrs.frozen
class Owner:
    """Whose key it is. `roles` are those that the whole organization is the scope of."""

    id: str
    roles: tuple[str, ...]

    @property
    def is_person(self) -> bool:
        return self.id.startswith("u-")


def store(output: Output, ctx: DeploymentContext, key_id: str | None, wait: float) -> dict[str, Any]:
    """Raises CommandFailed, and then stores nothing."""
    key, name = prompt.api_key(output, key_id), ctx.deployment.confluent.cloud_key_secret
    _ = ctx.account
    owner = prove(output, ctx, key, wait)
    before = secret_store.read_value(ctx, name)
    kept = secret_store.put_current(ctx, name, _fields(key, owner, secret_store.plain(before.fields) if before else {}))
    output.print(f"API key {key.id}: a Cloud key of {owner.id} ({', '.join(owner.roles) or 'no role is listed'})")
    if owner.is_person:
        output.print("It is a person's key, which dies with the person's account; a service account's doesn't.")
    output.print(kept.describe())
    following = "secrets set snowflake" if ctx.deployment.uses_snowflake else "doctor"
    output.print(f"Next: {program_name()} {following} --stage {ctx.stage}")
    public = {"id": key.id, "scope": "cloud", "owner": owner.id, "roles": list(owner.roles)}
    return {"stage": ctx.stage, "vendor": "confluent", "key": public, **kept.document(), "sql": ""}


def prove(output: Output, ctx: DeploymentContext, key: ApiKey, wait: float) -> Owner:
    """By reading what Confluent knows of the key. A key that was made just now may take up to `wait` seconds to work."""
    vendor = _client(ctx, key, wait)
    try:
        found = _found(output, ctx, vendor, key, wait)
        owner = Owner(text(found, "spec", "owner", "id"), _roles(vendor, text(found, "spec", "owner", "id")))
    except Denied as denied:
        raise _scope("its owner may not read keys and roles", denied) if _may_not(denied) else _refused(ctx, key) from None
    except NotFound as missing:
        raise _scope("it can't see itself", missing) from None
    if not owner.is_person and _ADMIN not in owner.roles:
        raise _scope(f"its owner {owner.id} has {', '.join(owner.roles) or 'no role'} in the organization", None)
    return owner


def _found(output: Output, ctx: DeploymentContext, vendor: Confluent, key: ApiKey, wait: float) -> Any:
    end = ctx.clock.time() + wait
    with output.step("asking Confluent about the key") as report:
        while True:
            try:
                return vendor.cloud.get(_KEYS + path(key.id))
            except Denied as denied:
                if _may_not(denied) or ctx.clock.time() + _PAUSE > end:
                    raise
            report("not accepted yet; new keys take a while")
            ctx.clock.sleep(_PAUSE)


def _roles(vendor: Confluent, owner: str) -> tuple[str, ...]:
    whole = crn.organization(CrnScope(vendor.organization_id))
    found = vendor.role_bindings(owner)
    return tuple(sorted({text(one, "role_name") for one in found if crn.same(text(one, "crn_pattern"), whole)}))


def _refused(ctx: DeploymentContext, key: ApiKey) -> CommandFailed:
    """Confluent says the same of a wrong secret and of another service's key, so what else can tell is asked."""
    if _is_tableflow(ctx, key):
        return _other_scope(f"API key {key.id} is a key for Tableflow, not a Cloud key")
    message = f"Confluent doesn't accept API key {key.id}"
    known = _known_to_the_stored_key(ctx, key)
    if known is None:
        why = "It is a key of a cluster or a region and not a Cloud key, its id or secret is wrong, or it was made moments ago."
        hint = "Make one with `confluent api-key create --resource cloud`, or, if you just did, run this again with --wait 300"
        return CommandFailed("SECRETS-REFUSED", message, hint, why=why)
    if known == "":
        hint = "Look for the id in Confluent's console, under API keys"
        return CommandFailed("SECRETS-REFUSED", f"the organization has no API key {key.id}", hint)
    if known.lower() != "cloud":
        return _other_scope(f"API key {key.id} is for {known}, not a Cloud key")
    hint = "Copy the secret again; if the key was made just now, run this again with --wait 300"
    return CommandFailed("SECRETS-REFUSED", f"{message}: it is a Cloud key, so its secret is wrong or it is too new", hint)


def _is_tableflow(ctx: DeploymentContext, key: ApiKey) -> bool:
    vendor = _client(ctx, key, 0)
    try:
        vendor.tableflow(key).get("/tableflow/v1/regions")
    except LakeferryError:
        return False
    return True


def _known_to_the_stored_key(ctx: DeploymentContext, key: ApiKey) -> str | None:
    """What the key is for, as the secret's present key sees it; "" where there is no such key; None where nobody can tell."""
    value = secret_store.read_value(ctx, ctx.deployment.confluent.cloud_key_secret)
    if value is None or not {KEY_ID, KEY_SECRET} <= value.fields.keys() or value.fields[KEY_ID].reveal() == key.id:
        return None
    stored = ApiKey(value.fields[KEY_ID].reveal(), value.fields[KEY_SECRET])
    vendor = _client(ctx, stored, 0)
    try:
        found = vendor.cloud.read(_KEYS + path(key.id))
    except LakeferryError:
        return None
    return text(found, "spec", "resource", "id") or "cloud" if found else ""


def _client(ctx: DeploymentContext, key: ApiKey, wait: float) -> Confluent:
    deadline = Deadline(ctx.clock, ctx.clock.time() + wait + _SECONDS)
    return Confluent(Session(deadline), ctx.clock, key, ctx.addresses.confluent or CONTROL_PLANE)


def _may_not(denied: Denied) -> bool:
    return denied.row is confluent_errors.AUTH_SCOPE


def _scope(why: str, denied: LakeferryError | None) -> CommandFailed:
    hint = f"Give the key's owner the role {_ADMIN}, wait some minutes, and run this again: docs/how-to/prepare-confluent.md"
    message = f"the key is accepted and may do too little: {why}"
    return CommandFailed("SECRETS-SCOPE", message, hint, details={"confluent": denied.what} if denied else None)


def _other_scope(message: str) -> CommandFailed:
    hint = "Make a Cloud key: `confluent api-key create --resource cloud --service-account sa-…`"
    return CommandFailed("SECRETS-CLUSTER-KEY", message, hint)


def _fields(key: ApiKey, owner: Owner, before: dict[str, str]) -> dict[str, str]:
    """A Cloud key opens no single resource, so what another kind of key would say of one goes."""
    rest = {name: value for name, value in before.items() if name not in ("resourceId", "environmentId")}
    return {**rest, **secret_fields.fields("cloud", key, Connection(owner.id, ""))}
