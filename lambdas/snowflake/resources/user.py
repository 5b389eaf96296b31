"""A service user without a password. Its key pair is generated and written to Secrets Manager.

The secret is written before the user is created, so a repeated call uses the same pair. Rotation uses the
user's two slots for keys in turn; the secret's key may be in either slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import Denied, InProgress, NotFound, Refused, ResourceMissing
from lambdas.shared.resource import Outputs
from lambdas.shared.secrets import PREVIOUS
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import keypair, lookup, secret_fields, sql
from lambdas.snowflake.keypair import KeyPair
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import UserProps
from lambdas.snowflake.secret_fields import Connection
from lambdas.snowflake.sql import Sql

PROPERTIES: Final = UserProps
TIMEOUT_SECONDS: Final = 1800.0
_CREATE: Final = "CREATE USER {name} {settings} RSA_PUBLIC_KEY={key} COMMENT={comment}"
_ALTER: Final = "ALTER USER {name} SET {settings}"
_UNSET_POLICY: Final = "ALTER USER {name} UNSET NETWORK_POLICY"
_SHOW: Final = "SHOW USERS LIKE {pattern}"
_DESC: Final = "DESC USER {name}"
_DROP: Final = "DROP USER IF EXISTS {name}"
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
#: A role that every user has and that has no privileges.
_PUBLIC: Final = "PUBLIC"
#: What DESC USER shows for every managed user. Without secondary roles, a session has only the privileges of
#: its one role.
_ALWAYS: Final = {"TYPE": "SERVICE", "DEFAULT_SECONDARY_ROLES": "[]"}
#: Fields of the secret that are optional.
_OPTIONAL: Final = ("role", "warehouse", "namespace")


def create(context: Ctx, spec: UserProps) -> str:
    name = lookup.choose_object_name(context, spec.name)
    own = _read_own_pair(context, spec, name)
    pair = own or keypair.make()
    _store(context, spec, name, pair, is_new=own is None)
    statement = sql.statement(
        _CREATE,
        name=sql.identifier(name),
        settings=sql.listed(_render_settings(spec).values(), " "),
        key=sql.literal(pair.public),
        comment=lookup.write_ownership_comment(context),
    )
    context.vendor.run(statement)
    return name


def is_ready(context: Ctx, spec: UserProps, object_id: str) -> Outputs | None:
    """Return the outputs once the user has logged in with the key in the secret."""
    pair = secret_fields.read_pair(context.secrets, spec.secret)
    try:
        user = context.vendor.logged_in(object_id, pair, _PUBLIC).value(sql.statement(_WHO))
    except Denied as denied:
        lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
        raise InProgress(snowflake_errors.KEY_NOT_READY, denied.what) from None
    if user != object_id:
        raise InProgress(
            snowflake_errors.KEY_NOT_READY,
            f"the key in secret {spec.secret} logs in as {user!r}, not as {object_id}",
        )
    return {"name": object_id, "secret": spec.secret}


def update(context: Ctx, spec: UserProps, object_id: str) -> None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    name = sql.identifier(object_id)
    rows = context.vendor.run(sql.statement(_DESC, name=name))
    described = {row.get("property", "").upper(): row.get("value", "") for row in rows}
    if not described:
        raise ResourceMissing(errors.VANISHED, f"user {object_id} is not described")
    expected = _render_settings(spec)
    changes = [
        part for setting, part in expected.items() if not _has_expected_value(setting, described, spec)
    ]
    if changes:
        context.vendor.run(sql.statement(_ALTER, name=name, settings=sql.listed(changes, " ")))
    if (
        not spec.network_policy
        and isinstance(context.previous, UserProps)
        and context.previous.network_policy
    ):
        context.vendor.run(sql.statement(_UNSET_POLICY, name=name))
    slots = keypair.read_slot_fingerprints(described)
    own = _read_own_pair(context, spec, object_id)
    pair = _choose_pair(context, spec, object_id, own, slots)
    _store(context, spec, object_id, pair, is_new=pair is not own)
    if pair.fingerprint not in slots.values() and (slot := keypair.find_empty_slot(slots)):
        context.vendor.run(sql.statement(keypair.SET_SLOT[slot], name=name, key=sql.literal(pair.public)))


def delete(context: Ctx, spec: UserProps, object_id: str) -> None:
    """Drop it. The secret stays: it belongs to the stack."""
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: UserProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context, spec.name)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)


def _read_own_pair(context: Ctx, spec: UserProps, name: str) -> KeyPair | None:
    """Return the secret's key pair; None if it has none or that of another user."""
    stored = context.secrets.read(spec.secret)
    if secret_fields.USER not in stored or stored[secret_fields.USER].reveal() != name:
        return None
    return secret_fields.read_held_pair(context.secrets, spec.secret)


def _choose_pair(
    context: Ctx, spec: UserProps, name: str, own: KeyPair | None, slots: Mapping[str, str]
) -> KeyPair:
    """Return the secret's own pair, or its previous pair if that is in a slot, or a new pair. Raises Refused
    if no slot is free.

    The previous pair is the user's if a deployment that renamed the user is rolled back.
    """
    is_free = keypair.find_empty_slot(slots) is not None
    if own and (is_free or own.fingerprint in slots.values()):
        return own
    before = _read_previous_pair(context, spec)
    if before and before.fingerprint in slots.values():
        return before
    if not is_free:
        raise Refused(snowflake_errors.SLOTS_TAKEN, f"user {name} has {' and '.join(slots.values())}")
    return keypair.make()


def _read_previous_pair(context: Ctx, spec: UserProps) -> KeyPair | None:
    """Return the key pair of the secret's previous version; None if there is no usable one."""
    try:
        return secret_fields.read_held_pair(context.secrets, spec.secret, PREVIOUS)
    except NotFound:
        return None


def _store(context: Ctx, spec: UserProps, name: str, pair: KeyPair, *, is_new: bool) -> None:
    """Write the secret if the pair is new or the connection changed. Fields that somebody added are kept."""
    stored = {field: value.reveal() for field, value in context.secrets.read(spec.secret).items()}
    vendor = context.vendor
    to = Connection(vendor.login.account, name, vendor.host, spec.role, spec.warehouse, spec.namespace)
    if is_new or not secret_fields.is_about(stored, to):
        kept_fields = secret_fields.remove_key(stored)
        for field in _OPTIONAL:
            kept_fields.pop(field, None)
        fields = {**kept_fields, **secret_fields.build_fields(pair, to)}
        context.secrets.write(spec.secret, fields, version=f"{pair.fingerprint}/{context.clock.time()}")


def _render_settings(spec: UserProps) -> dict[str, Sql]:
    """Return each setting with its clause in CREATE and ALTER."""
    settings = {
        "TYPE": sql.statement("TYPE=SERVICE"),
        "DEFAULT_SECONDARY_ROLES": sql.statement("DEFAULT_SECONDARY_ROLES=()"),
    }
    optional = (
        ("DEFAULT_ROLE", "DEFAULT_ROLE={name}", spec.role),
        ("DEFAULT_WAREHOUSE", "DEFAULT_WAREHOUSE={name}", spec.warehouse),
        ("DEFAULT_NAMESPACE", "DEFAULT_NAMESPACE={name}", spec.namespace),
        ("NETWORK_POLICY", "NETWORK_POLICY={name}", spec.network_policy),
    )
    for setting, template, path in optional:
        if path:
            settings[setting] = sql.statement(template, name=sql.path(sql.split(path)))
    return settings


def _has_expected_value(setting: str, described: dict[str, str], spec: UserProps) -> bool:
    expected = {
        "DEFAULT_ROLE": spec.role,
        "DEFAULT_WAREHOUSE": spec.warehouse,
        "DEFAULT_NAMESPACE": spec.namespace,
    }
    if setting == "NETWORK_POLICY":
        return False  # DESC USER doesn't show it, and setting it again changes nothing
    now = described.get(setting, "")
    if setting in _ALWAYS:
        return now.replace(" ", "") == _ALWAYS[setting]
    return sql.split(now) == sql.split(expected[setting])
