"""Key pairs of Snowflake users. Rotation uses a user's two slots in turn; DESC USER shows which one is free.

The new key goes into the slot that doesn't have the current key's fingerprint. A key is overwritten only if
the secret had it and its grace period is over. The user logs in with its own key, in a role that can set keys
and do nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from lambdas import contract
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.strategy import LiveKey, Replaced
from lambdas.rotation.versions import RotationContext, Version
from lambdas.shared.errors import Denied, Refused
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import Fields
from lambdas.shared.tenants import require_tenant
from lambdas.snowflake import keypair, secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake
from lambdas.snowflake.keypair import SET_SLOT, SLOTS, UNSET_SLOT, KeyPair, UnusableKey
from lambdas.snowflake.secret_fields import ACCOUNT, PASSPHRASE, PRIVATE_KEY, USER, Connection

_DESC: Final = "DESC USER {name}"
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
#: A role that every user has and that has no privileges, so logging in with it tests only the key.
_PUBLIC: Final = "PUBLIC"

#: Loads a key pair from the text of a private key and its passphrase. Raises UnusableKey.
Load: TypeAlias = Callable[[Secret, Secret | None], KeyPair]


@attrs.frozen
class _User:
    """A user as DESC USER shows it.

    `slots` has the fingerprint in each slot, or ""; `since` says when each slot was set.
    """

    client: Snowflake
    slots: Mapping[str, str]
    since: Mapping[str, str]


@attrs.frozen
class _Keys:
    """The versions' key pairs. Each is loaded once in an invocation, because checking a key takes time."""

    load: Load
    _read: dict[str, KeyPair] = attrs.field(factory=dict, init=False, repr=False)

    def load_pair(self, version: Version) -> KeyPair:
        """Return the version's key pair. Raises Refused if it has no usable one."""
        if version.id in self._read:
            return self._read[version.id]
        try:
            if PRIVATE_KEY not in version.fields:
                raise UnusableKey(f"there is no {PRIVATE_KEY}")
            pair = self.load(version.get_secret(PRIVATE_KEY), version.get_secret(PASSPHRASE))
        except UnusableKey as unusable:
            raise Refused(
                rotation_errors.BAD_KEY, f"the private key of version {version.id}: {unusable}"
            ) from None
        self._read[version.id] = pair
        return pair

    def find_pair(self, version: Version | None) -> KeyPair | None:
        try:
            return self.load_pair(version) if version else None
        except Refused:
            return None

    def read_fingerprint(self, version: Version | None) -> str:
        """Return the fingerprint of the version's key; "" if it has no usable key."""
        pair = self.find_pair(version)
        return pair.fingerprint if pair else ""


@attrs.frozen
class SnowflakeKeyPair:
    """The strategy for key pairs of Snowflake users.

    `connect` returns a client for a login, and `tenants` the accounts that have the deployment's objects.
    `make` and `load` are parameters because they take the most time.
    """

    connect: Callable[[Login, KeyPair], Snowflake]
    tenants: Callable[[], Iterable[str]]
    make: Callable[[], KeyPair] = keypair.make
    load: Load = keypair.load
    _keys: _Keys = attrs.field(
        default=attrs.Factory(lambda self: _Keys(self.load), takes_self=True), init=False
    )

    def get_id(self, version: Version) -> str:
        return self._keys.load_pair(version).fingerprint

    def create_credential(self, context: RotationContext) -> Fields:
        """Create a key pair in memory, after checking that a slot is free for it."""
        self._keys.load_pair(context.current)
        self._choose_slot(context, self._describe_user(context).slots)
        try:
            pair = keypair.verify_key_pair(self.make())
        except UnusableKey as unusable:
            raise Refused(rotation_errors.BAD_KEY, f"a new key pair: {unusable}") from None
        return {
            **secret_fields.remove_key(_list_kept_fields(context.current)),
            **secret_fields.build_fields(pair, _read_connection(context.current)),
        }

    def discard(self, context: RotationContext, fields: Fields) -> None:
        """Do nothing.

        A pair that wasn't stored exists only in this process; an abandoned version's key may stay in its
        slot.
        """

    def register(self, context: RotationContext, pending: Version) -> None:
        user = self._describe_user(context)
        pair = self._keys.load_pair(pending)
        if pair.fingerprint not in user.slots.values():
            slot = self._choose_slot(context, user.slots)
            user.client.run(
                sql.statement(SET_SLOT[slot], name=_quote_user(context), key=sql.literal(pair.public))
            )

    def authenticates(self, version: Version) -> bool:
        client = self.connect(_build_login(version, _PUBLIC), self._keys.load_pair(version))
        try:
            session_user = client.value(sql.statement(_WHO))
        except Denied:
            return False
        require_tenant(client, self.tenants())
        return session_user.upper() == version.get_text(USER).upper()

    def is_there(self, context: RotationContext, pending: Version) -> bool:
        return self._keys.load_pair(pending).fingerprint in self._describe_user(context).slots.values()

    def is_unusable(self, pending: Version) -> bool:
        """Return whether the key can't be read.

        A key that was removed from its slot is usable: it can be set again.
        """
        return self._keys.find_pair(pending) is None

    def is_outdated(self, context: RotationContext, pending: Version) -> bool:
        expected_fields = secret_fields.remove_key(_list_kept_fields(context.current))
        return expected_fields != secret_fields.remove_key(pending.fields)

    def list_replaced(self, context: RotationContext, *, include_in_grace: bool) -> Replaced:
        kept_fingerprints = {
            self._keys.read_fingerprint(version) for version in (context.current, context.pending)
        }
        fingerprints = set(self._describe_user(context).slots.values())
        managed = []
        unmanaged = []
        for fingerprint in sorted(fingerprints - kept_fingerprints - {""}):
            is_grace_over = self._is_grace_over(context, fingerprint)
            if is_grace_over is None:
                unmanaged.append(fingerprint)
            elif is_grace_over or include_in_grace:
                managed.append(fingerprint)
        return Replaced(managed, unmanaged)

    def revoke(self, context: RotationContext, keys: Sequence[str]) -> None:
        """Unset the slots of these keys.

        The slots are read again, because a rotation may have changed one.
        """
        user = self._describe_user(context)
        for slot, fingerprint in user.slots.items():
            if fingerprint in keys:
                user.client.run(sql.statement(UNSET_SLOT[slot], name=_quote_user(context)))

    def list_live_keys(self, context: RotationContext) -> list[LiveKey]:
        user = self._describe_user(context)
        return [
            LiveKey(fingerprint, slot, user.since[slot])
            for slot, fingerprint in user.slots.items()
            if fingerprint
        ]

    def _describe_user(self, context: RotationContext) -> _User:
        """Describe the user.

        Log in with the first of the secret's keys that works, beginning with the current one.
        """
        denied = ""
        for version in context.labelled:
            pair = self._keys.find_pair(version)
            if pair is None:
                continue
            client = self.connect(_build_login(version, _find_rotation_role(context)), pair)
            try:
                rows = client.run(sql.statement(_DESC, name=_quote_user(context)))
            except Denied as error:
                denied = denied or error.what
                continue
            require_tenant(client, self.tenants())
            properties = {row.get("property", "").upper(): row.get("value", "") for row in rows}
            since = {slot: properties.get(f"{slot}_LAST_SET_TIME", "") for slot in SLOTS}
            return _User(client, keypair.read_slot_fingerprints(properties), since)
        raise Refused(rotation_errors.LOCKED_OUT, f"user {context.current.get_text(USER)}: {denied}")

    def _choose_slot(self, context: RotationContext, slots: Mapping[str, str]) -> str:
        """Return an empty slot, or else the slot without the current key, if the grace period of the key in
        it is over.

        Raises Refused.
        """
        empty_slot = keypair.find_empty_slot(slots)
        if empty_slot:
            return empty_slot
        current = self._keys.read_fingerprint(context.current)
        user = f"user {context.current.get_text(USER)}"
        if current not in slots.values():
            raise Refused(rotation_errors.FOREIGN_KEY, f"neither slot of {user} holds the current key")
        other_slots = [slot for slot, fingerprint in slots.items() if fingerprint != current]
        if not other_slots:
            return SLOTS[1]
        slot = other_slots[0]
        replaced_key = slots[slot]
        is_over = self._is_grace_over(context, replaced_key)
        if is_over is None:
            raise Refused(rotation_errors.FOREIGN_KEY, f"{slot} of {user} holds {replaced_key}")
        if not is_over:
            raise Refused(rotation_errors.IN_GRACE, f"{slot} of {user}")
        return slot

    def _is_grace_over(self, context: RotationContext, fingerprint: str) -> bool | None:
        """Return whether the grace period of a replaced key is over; None if the secret never had the key."""
        if fingerprint == self._keys.read_fingerprint(context.previous):
            return context.previous_is_revocable
        # The key may be in another version, from an abandoned or an old rotation.
        for version in context.versions.list_other_versions():
            if self._keys.read_fingerprint(version) == fingerprint:
                return context.older_are_revocable
        return None


def _build_login(version: Version, role: str) -> Login:
    return Login(version.get_text(ACCOUNT), version.get_text(USER), role)


def _find_rotation_role(context: RotationContext) -> str:
    return sql.to_exact_name(
        context.described.tags.get(contract.ROTATION_ROLE_TAG, "")
        or context.current.get_text("role")
        or _PUBLIC
    )


def _read_connection(version: Version) -> Connection:
    names = ("account", "user", "host", "role", "warehouse", "namespace")
    return Connection(**{name: version.get_text(name) for name in names})


def _list_kept_fields(version: Version) -> Fields:
    """Return the fields that a new version keeps, including those that drivers use to connect."""
    return {**version.fields, **secret_fields.build_connection_fields(_read_connection(version))}


def _quote_user(context: RotationContext) -> sql.Sql:
    return sql.identifier(context.current.get_text(USER))
