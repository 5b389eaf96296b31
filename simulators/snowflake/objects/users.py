"""Roles, and users with two public keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from simulators.snowflake import keys
from simulators.snowflake.errors import SqlError, denied, invalid_value, missing
from simulators.snowflake.model import Domain, Name, Role, SnowflakeObject, User
from simulators.snowflake.objects.object_type import ObjectType, Properties, Property, build_boolean_property
from simulators.snowflake.parser import Cursor, Options
from simulators.snowflake.results import Result, build_table, format_time
from simulators.snowflake.session import Session, list_inherited_roles

_SLOTS: Final = {"RSA_PUBLIC_KEY": 1, "RSA_PUBLIC_KEY_2": 2}
#: The properties that DESC USER lists between TYPE and DEFAULT_SECONDARY_ROLES.
_DESCRIBED_PROPERTIES: Final = (
    "LOGIN_NAME",
    "DISPLAY_NAME",
    "EMAIL",
    "DEFAULT_ROLE",
    "DEFAULT_WAREHOUSE",
    "DEFAULT_NAMESPACE",
    "COMMENT",
)
#: This privilege on a user only lets a role change the user's public keys.
_CHANGE_KEYS: Final = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"


class Roles(ObjectType[Role]):
    model = Role
    words = "ROLE"
    title = "Role"
    create_privilege = "CREATE ROLE"
    alter_not_simulated = "RENAME"
    columns = (
        "created_on name is_default is_current is_inherited assigned_to_users granted_to_roles "
        "granted_roles owner comment owner_role_type"
    )

    def prepare_drop(self, session: Session, role: Role) -> None:
        """Transfer what the role owns to the session's role.

        Raises SqlError if it is the session's own role.
        """
        if role.label == session.role:
            raise denied(self.words, role.name)
        for object_ in session.account.all(SnowflakeObject):
            if object_.owner == role.label:
                object_.owner = session.role

    def build_row(self, session: Session, role: Role) -> dict[str, Any]:
        memberships = session.account.memberships
        holders = [membership.to.domain for membership in memberships if membership.role == role.label]
        inherited_roles = list_inherited_roles(session.account, [session.role]) - {session.role}
        return {
            "is_default": "Y" if role.label == session.user.default_role else "N",
            "is_current": "Y" if role.label == session.role else "N",
            "is_inherited": "Y" if role.label in inherited_roles else "N",
            "assigned_to_users": holders.count(Domain.USER),
            "granted_to_roles": holders.count(Domain.ROLE),
            "granted_roles": sum(membership.to == role.key for membership in memberships),
        }

    def describe(self, session: Session, cursor: Cursor) -> Result:
        cursor.refuse()


def _read_type(options: Options, name: str) -> str:
    user_type = options.read_choice(name, "PERSON SERVICE LEGACY_SERVICE NULL")
    return "" if user_type == "NULL" else user_type


def _read_secondary_roles(options: Options, name: str) -> bool:
    roles = [role.upper() for role in options.read_strings(name)]
    if roles not in ([], ["ALL"]):
        raise invalid_value(", ".join(roles), name)
    return bool(roles)


class Users(ObjectType[User]):
    model = User
    words = "USER"
    title = "User"
    create_privilege = "CREATE USER"
    properties: ClassVar[Properties] = {
        "LOGIN_NAME": Property("login_name", lambda options, name: options.read_text(name).upper()),
        "DISPLAY_NAME": Property("display_name", Options.read_text),
        "EMAIL": Property("email", Options.read_text),
        "DEFAULT_ROLE": Property("default_role", Options.read_text),
        "DEFAULT_WAREHOUSE": Property("default_warehouse", Options.read_text),
        "DEFAULT_NAMESPACE": Property("default_namespace", Options.read_text),
        "NETWORK_POLICY": Property("network_policy", Options.read_text),
        "COMMENT": Property("comment", Options.read_text),
        "TYPE": Property("type", _read_type),
        "DISABLED": build_boolean_property("disabled"),
        "DEFAULT_SECONDARY_ROLES": Property("secondary_roles", _read_secondary_roles),
        "RSA_PUBLIC_KEY": Property("key_1", Options.read_string),
        "RSA_PUBLIC_KEY_2": Property("key_2", Options.read_string),
    }
    unset = " ".join(properties)
    not_simulated = (
        "PASSWORD MUST_CHANGE_PASSWORD FIRST_NAME MIDDLE_NAME LAST_NAME DAYS_TO_EXPIRY MINS_TO_UNLOCK "
        "MINS_TO_BYPASS_MFA MINS_TO_BYPASS_NETWORK_POLICY DISABLE_MFA RSA_PUBLIC_KEY_FP "
        "RSA_PUBLIC_KEY_2_FP WORKLOAD_IDENTITY ALLOWED_INTERFACES STATEMENT_TIMEOUT_IN_SECONDS QUERY_TAG "
        "TIMEZONE"
    )
    alter_not_simulated = "ADD REMOVE ROTATE MODIFY RESET ABORT DELEGATE ENROLL"
    renamable = True
    columns = (
        "name created_on login_name display_name first_name last_name email mins_to_unlock days_to_expiry "
        "comment disabled must_change_password snowflake_lock default_warehouse default_namespace "
        "default_role default_secondary_roles ext_authn_duo ext_authn_uid mins_to_bypass_mfa owner "
        "last_success_login expires_at_time locked_until_time has_password has_rsa_public_key type has_mfa"
    )

    def read(self, session: Session, options: Options) -> dict[str, Any]:
        fields = super().read(session, options)
        now = session.account.clock.now()
        if policy := fields.get("network_policy"):
            _require_policy(session, policy)
        texts = {slot: fields.pop(f"key_{slot}", None) for slot in _SLOTS.values()}
        return fields | {
            "keys": {slot: keys.read(text, now) for slot, text in texts.items() if text is not None}
        }

    def build(self, session: Session, name: Name, fields: dict[str, Any]) -> User:
        return super().build(session, name, {"login_name": name[-1], "display_name": name[-1]} | fields)

    def require_alter(self, session: Session, user: User, properties: Sequence[str]) -> None:
        if not (set(properties) <= set(_SLOTS) and session.has(_CHANGE_KEYS, user)):
            session.require("OWNERSHIP", user)

    def apply(self, session: Session, user: User, fields: dict[str, Any]) -> None:
        super().apply(session, user, fields | {"keys": user.keys | fields["keys"]})

    def restore(self, user: User, name: str) -> None:
        if name in _SLOTS:
            user.keys.pop(_SLOTS[name], None)
        elif name in ("LOGIN_NAME", "DISPLAY_NAME"):
            setattr(user, self.properties[name].attribute, user.label)
        else:
            super().restore(user, name)

    def prepare_drop(self, session: Session, user: User) -> None:
        if user is session.user:
            raise SqlError("003001", "42501", "SQL access control error:\nA user can't drop itself.")

    def build_row(self, session: Session, user: User) -> dict[str, Any]:
        return {
            "login_name": user.login_name,
            "display_name": user.display_name,
            "email": user.email,
            "disabled": user.disabled,
            "must_change_password": False,
            "snowflake_lock": False,
            "default_warehouse": user.default_warehouse,
            "default_namespace": user.default_namespace,
            "default_role": user.default_role,
            "default_secondary_roles": '["ALL"]' if user.secondary_roles else "[]",
            "last_success_login": None,
            "expires_at_time": None,
            "locked_until_time": None,
            "has_password": False,
            "has_rsa_public_key": bool(user.keys),
            "type": user.type or None,
            "has_mfa": False,
        }

    def build_description(self, session: Session, user: User) -> Result:
        """Return the properties.

        Raises SqlError for another user without MONITOR or OWNERSHIP on it, or MANAGE GRANTS.
        """
        if user is not session.user and not session.manages_grants:
            session.require_any(("MONITOR", "OWNERSHIP"), user)
        rows = ((name, value, "null", "") for name, value in _list_properties(user))
        return build_table("property value default description", rows)


def _require_policy(session: Session, name: str) -> None:
    """Raise SqlError unless the policy exists and one of the session's roles owns it.

    Source: Snowflake's behavior change "CREATE USER command: NETWORK_POLICY parameter must specify a valid
    network policy".
    """
    if session.account.behavior.network_policies.get(name) not in session.roles:
        raise missing("NETWORK POLICY", name)


def _list_properties(user: User) -> Iterator[tuple[str, str]]:
    """Yield (property, value). The value of a property that isn't set is the text `null`, as at Snowflake."""
    yield "NAME", user.label
    yield "TYPE", user.type or "null"
    for name in _DESCRIBED_PROPERTIES:
        yield name, getattr(user, name.lower()) or "null"
    yield "DEFAULT_SECONDARY_ROLES", '["ALL"]' if user.secondary_roles else "[]"
    yield "DISABLED", str(user.disabled).lower()
    yield "PASSWORD", "null"
    for name, number in _SLOTS.items():
        slot = user.keys.get(number)
        yield name, slot.text if slot else "null"
        yield f"{name}_FP", slot.fingerprint if slot else "null"
        yield f"{name}_LAST_SET_TIME", format_time(slot.since) if slot else "null"
