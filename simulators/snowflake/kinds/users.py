"""Users, with two slots for public keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simulators.snowflake import keys
from simulators.snowflake.errors import SqlError, invalid_property, invalid_value, not_simulated
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.kinds.common import (
    Kind,
    Making,
    altering,
    created,
    dropped,
    dropping,
    free,
    freely,
    listing,
    renamed,
    set_options,
    unset_names,
)
from simulators.snowflake.model import Domain, User
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, clock_time, records, status, table
from simulators.snowflake.session import Session

_LABEL: Final = "USER"
_SLOTS: Final = {"RSA_PUBLIC_KEY": 1, "RSA_PUBLIC_KEY_2": 2}
#: Properties that are text, by the field that holds them.
_TEXTS: Final = {
    "LOGIN_NAME": "login_name",
    "DISPLAY_NAME": "display_name",
    "EMAIL": "email",
    "DEFAULT_ROLE": "default_role",
    "DEFAULT_WAREHOUSE": "default_warehouse",
    "DEFAULT_NAMESPACE": "default_namespace",
    "COMMENT": "comment",
}
_KNOWN: Final = " ".join([*_SLOTS, *_TEXTS, "TYPE", "DISABLED", "DEFAULT_SECONDARY_ROLES"])
_OTHERS: Final = (
    "PASSWORD MUST_CHANGE_PASSWORD FIRST_NAME MIDDLE_NAME LAST_NAME DAYS_TO_EXPIRY MINS_TO_UNLOCK MINS_TO_BYPASS_MFA "
    "MINS_TO_BYPASS_NETWORK_POLICY DISABLE_MFA RSA_PUBLIC_KEY_FP RSA_PUBLIC_KEY_2_FP WORKLOAD_IDENTITY NETWORK_POLICY "
    "ALLOWED_INTERFACES STATEMENT_TIMEOUT_IN_SECONDS QUERY_TAG TIMEZONE"
)
_SHOWN: Final = (
    "name created_on login_name display_name first_name last_name email mins_to_unlock days_to_expiry comment disabled "
    "must_change_password snowflake_lock default_warehouse default_namespace default_role default_secondary_roles ext_authn_duo "
    "ext_authn_uid mins_to_bypass_mfa owner last_success_login expires_at_time locked_until_time has_password "
    "has_rsa_public_key type has_mfa"
)
PROGRAMMATIC: Final = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    options = Options(_LABEL, cursor.options(), _KNOWN, _OTHERS)
    cursor.end()
    if there := free(session, Domain.USER, name, "CREATE USER", making, freely):
        return there
    user = User(name=name, owner=session.role, created=session.account.clock.now())
    user.login_name = user.display_name = user.label
    _apply(session, user, options)
    return created(session, user, "User")


def _apply(session: Session, user: User, options: Options) -> None:
    """All, or nothing where one is wrong."""
    changes: dict[str, Any] = {_TEXTS[name]: options.text(name) for name in _TEXTS if name in options}
    if "login_name" in changes:
        changes["login_name"] = changes["login_name"].upper()
    if "TYPE" in options:
        chosen = options.choice("TYPE", "PERSON SERVICE LEGACY_SERVICE NULL")
        changes["type"] = "" if chosen == "NULL" else chosen
    if "DEFAULT_SECONDARY_ROLES" in options:
        wanted = [each.upper() for each in options.strings("DEFAULT_SECONDARY_ROLES")]
        if wanted not in ([], ["ALL"]):
            raise invalid_value(", ".join(wanted), "DEFAULT_SECONDARY_ROLES")
        changes["secondary_roles"] = bool(wanted)
    changes["disabled"] = options.boolean("DISABLED", default=user.disabled)
    now = session.account.clock.now()
    slots = {slot: keys.read(options.string(name), now) for name, slot in _SLOTS.items() if name in options}
    for field, value in changes.items():
        setattr(user, field, value)
    user.keys |= slots


def alter(session: Session, cursor: Cursor) -> Result:
    user: Any = altering(session, cursor, Domain.USER)
    if user is None:
        return status()
    if cursor.take("RENAME", "TO"):
        return renamed(session, cursor, user)
    if cursor.take("UNSET"):
        names = unset_names(cursor)
        _require(session, user, names)
        for name in names:
            _unset(user, name)
        return status()
    for word in ("ADD", "REMOVE", "ROTATE", "MODIFY", "RESET", "ABORT", "DELEGATE", "ENROLL"):
        if cursor.at(word):
            raise not_simulated(f"ALTER USER … {word}")
    cursor.expect("SET")
    options = set_options(cursor, _LABEL, _KNOWN, _OTHERS)
    _require(session, user, list(options))
    _apply(session, user, options)
    return status()


def _require(session: Session, user: User, names: list[str]) -> None:
    """Keys may be changed with a privilege of their own, everything else by the owner."""
    if set(names) <= set(_SLOTS) and session.has(PROGRAMMATIC, user):
        return
    session.require("OWNERSHIP", user)


def _unset(user: User, name: str) -> None:
    if name in _SLOTS:
        user.keys.pop(_SLOTS[name], None)
    elif name in _TEXTS:
        setattr(user, _TEXTS[name], user.label if name in ("LOGIN_NAME", "DISPLAY_NAME") else "")
    elif name == "TYPE":
        user.type = ""
    elif name == "DEFAULT_SECONDARY_ROLES":
        user.secondary_roles = True
    elif name == "DISABLED":
        user.disabled = False
    else:
        raise not_simulated(f"{name} of USER") if name in _OTHERS.split() else invalid_property(name, _LABEL)


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.USER)
    if found.thing is session.user:
        raise SqlError("003001", "42501", "SQL access control error:\nA user can't drop itself.")
    return dropped(session, found.thing) if found.thing else found.absent


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.USER)
    return records(_SHOWN, (_row(each) for each in wanted.of(session, User)))


def _row(user: User) -> dict[str, Any]:
    return {
        "name": user.label,
        "created_on": user.created,
        "login_name": user.login_name,
        "display_name": user.display_name,
        "email": user.email,
        "comment": user.comment,
        "disabled": user.disabled,
        "must_change_password": False,
        "snowflake_lock": False,
        "default_warehouse": user.default_warehouse,
        "default_namespace": user.default_namespace,
        "default_role": user.default_role,
        "default_secondary_roles": '["ALL"]' if user.secondary_roles else "[]",
        "owner": user.owner,
        "has_password": False,
        "has_rsa_public_key": bool(user.keys),
        "type": user.type or None,
        "has_mfa": False,
    } | dict.fromkeys(("last_success_login", "expires_at_time", "locked_until_time"))


def describe(session: Session, cursor: Cursor) -> Result:
    user: Any = session.resolve(Domain.USER, cursor.name())
    cursor.end()
    if user is not session.user and not session.manages_grants:
        session.require_any(("MONITOR", "OWNERSHIP"), user)
    return table("property value default description", ((name, value, "null", "") for name, value in _properties(user)))


def _properties(user: User) -> Iterator[tuple[str, str]]:
    """What isn't set is the word null."""
    yield "NAME", user.label
    yield "TYPE", user.type or "null"
    for name, field in _TEXTS.items():
        yield name, getattr(user, field) or "null"
    yield "DEFAULT_SECONDARY_ROLES", '["ALL"]' if user.secondary_roles else "[]"
    yield "DISABLED", str(user.disabled).lower()
    yield "PASSWORD", "null"
    for name, number in _SLOTS.items():
        slot = user.keys.get(number)
        yield name, slot.text if slot else "null"
        yield f"{name}_FP", slot.fingerprint if slot else "null"
        yield f"{name}_LAST_SET_TIME", clock_time(slot.since) if slot else "null"


KIND: Final = Kind(_LABEL, "USERS", create, alter, drop, show, describe)
