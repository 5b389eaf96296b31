"""Key pairs of Snowflake users: the user's two slots take turns, and Snowflake itself tells which one is free.

The slot to write is the one whose fingerprint is not the current key's; no counter says so. A key that neither belongs to the
secret nor may go by now is never overwritten. The user logs in with its own key, in a role that may set keys and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from lambdas import contract
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.steps import LiveKey, Replaced
from lambdas.rotation.versions import RotationContext, Version
from lambdas.shared.errors import Denied, Refused
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair, secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake
from lambdas.snowflake.keypair import SET_SLOT, SLOTS, UNSET_SLOT, KeyPair, UnusableKey
from lambdas.snowflake.secret_fields import ACCOUNT, PASSPHRASE, PRIVATE_KEY, USER, Connection

_DESC: Final = "DESC USER {name}"
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
#: A role that every user has, and that may do nothing: it proves the key alone.
_ANYBODY: Final = "PUBLIC"

#: From the text of a private key and its passphrase. Raises UnusableKey.
Load: TypeAlias = Callable[[Secret, Secret | None], KeyPair]


@attrs.frozen
class _User:
    """As Snowflake describes it: of each slot the fingerprint, "" where it is empty, and when it was set."""

    client: Snowflake
    slots: Mapping[str, str]
    since: Mapping[str, str]


@attrs.frozen
class _Keys:
    """The versions' key pairs, each read once in an invocation: reading one checks its numbers, which takes its time."""

    load: Load
    _read: dict[str, KeyPair] = attrs.field(factory=dict, init=False, repr=False)

    def of(self, version: Version) -> KeyPair:
        """Raises Refused where the version has no key that can be used."""
        if version.id not in self._read:
            self._read[version.id] = self._loaded(version)
        return self._read[version.id]

    def readable(self, version: Version | None) -> KeyPair | None:
        try:
            return self.of(version) if version else None
        except Refused:
            return None

    def fingerprint(self, version: Version | None) -> str:
        """Empty where there is no key that can be read."""
        pair = self.readable(version)
        return pair.fingerprint if pair else ""

    def _loaded(self, version: Version) -> KeyPair:
        try:
            return self.load(version.guarded[PRIVATE_KEY], version.guarded.get(PASSPHRASE))
        except (KeyError, UnusableKey) as unusable:
            why = str(unusable) if isinstance(unusable, UnusableKey) else f"there is no {PRIVATE_KEY}"
            raise Refused(rotation_errors.BAD_KEY, f"the private key of version {version.id}: {why}") from None


@attrs.frozen
class SnowflakeKeyPair:
    """`connect` gives a client of the account for whoever logs in. Making a key and reading one take the most time of all."""

    connect: Callable[[Login, KeyPair], Snowflake]
    make: Callable[[], KeyPair] = keypair.make
    load: Load = keypair.load
    _keys: _Keys = attrs.field(default=attrs.Factory(lambda self: _Keys(self.load), takes_self=True), init=False)

    def id_of(self, version: Version) -> str:
        return self._keys.of(version).fingerprint

    def create_credential(self, held: RotationContext) -> dict[str, str]:
        """Made in memory; that there will be a slot for it is seen first."""
        self._keys.of(held.current)
        self._slot_for_new(held, self._user(held).slots)
        try:
            pair = keypair.verify_key_pair(self.make())
        except UnusableKey as unusable:
            raise Refused(rotation_errors.BAD_KEY, f"a new key pair: {unusable}") from None
        return {**secret_fields.without_key(_kept(held.current)), **secret_fields.fields(pair, _connection(held.current))}

    def discard(self, held: RotationContext, fields: Mapping[str, str]) -> None:
        """Nobody but this process ever saw it."""

    def register(self, held: RotationContext, pending: Version) -> None:
        user, pair = self._user(held), self._keys.of(pending)
        if pair.fingerprint not in user.slots.values():
            slot = self._slot_for_new(held, user.slots)
            user.client.run(sql.statement(SET_SLOT[slot], name=_name(held), key=sql.literal(pair.public)))

    def authenticates(self, version: Version) -> bool:
        client = self.connect(_login(version, _ANYBODY), self._keys.of(version))
        try:
            return client.value(sql.statement(_WHO)).upper() == version.text(USER).upper()
        except Denied:
            return False

    def is_there(self, held: RotationContext, pending: Version) -> bool:
        return self._keys.of(pending).fingerprint in self._user(held).slots.values()

    def is_unusable(self, pending: Version) -> bool:
        """A key that was taken out of its slot can be set again; one that can't be read, never."""
        return self._keys.readable(pending) is None

    def is_outdated(self, held: RotationContext, pending: Version) -> bool:
        return secret_fields.without_key(_kept(held.current)) != secret_fields.without_key(pending.fields)

    def replaced(self, held: RotationContext, *, in_grace: bool) -> Replaced:
        kept = {self._keys.fingerprint(version) for version in (held.current, held.pending)}
        others = sorted(set(self._user(held).slots.values()) - kept - {""})
        over = {each: self._grace_is_over(held, each) for each in others}
        foreign = [each for each in others if over[each] is None]
        return Replaced([each for each in others if over[each] or (in_grace and each not in foreign)], foreign)

    def revoke(self, held: RotationContext, keys: Sequence[str]) -> None:
        """The slots are looked at again: since the last look, a rotation may have set its new key in one of them."""
        user = self._user(held)
        for slot in [slot for slot, fingerprint in user.slots.items() if fingerprint in keys]:
            user.client.run(sql.statement(UNSET_SLOT[slot], name=_name(held)))

    def live(self, held: RotationContext) -> list[LiveKey]:
        user = self._user(held)
        return [LiveKey(fingerprint, slot, user.since[slot]) for slot, fingerprint in user.slots.items() if fingerprint]

    def _user(self, held: RotationContext) -> _User:
        """Described by itself, with whichever of the secret's keys logs in, the current one first."""
        denied = ""
        for version in held.labelled:
            if (pair := self._keys.readable(version)) is None:
                continue
            client = self.connect(_login(version, _rotation_role(held)), pair)
            try:
                rows = client.run(sql.statement(_DESC, name=_name(held)))
            except Denied as error:
                denied = denied or error.what
                continue
            properties = {row.get("property", "").upper(): row.get("value", "") for row in rows}
            since = {slot: properties.get(f"{slot}_LAST_SET_TIME", "") for slot in SLOTS}
            return _User(client, keypair.slot_fingerprints(properties), since)
        raise Refused(rotation_errors.LOCKED_OUT, f"user {held.current.text(USER)}: {denied}")

    def _slot_for_new(self, held: RotationContext, slots: Mapping[str, str]) -> str:
        """An empty one, otherwise the one that the current key is not in, if what it holds may go. Raises Refused."""
        if slot := keypair.empty_slot(slots):
            return slot
        current, user = self._keys.fingerprint(held.current), f"user {held.current.text(USER)}"
        if current not in slots.values():
            raise Refused(rotation_errors.FOREIGN_KEY, f"neither slot of {user} holds the current key")
        others = [(slot, other) for slot, other in slots.items() if other != current]
        if not others:
            return SLOTS[1]
        slot, other = others[0]
        may_go = self._grace_is_over(held, other)
        if may_go is None:
            raise Refused(rotation_errors.FOREIGN_KEY, f"{slot} of {user} holds {other}")
        if not may_go:
            raise Refused(rotation_errors.IN_GRACE, f"{slot} of {user}")
        return slot

    def _grace_is_over(self, held: RotationContext, fingerprint: str) -> bool | None:
        """Of a key that is not current. None where the secret never had it."""
        if fingerprint == self._keys.fingerprint(held.previous):
            return held.previous_may_go
        # A version without a label: of a rotation that was given up, or of one long ago.
        was_ours = any(self._keys.fingerprint(version) == fingerprint for version in held.versions.unlabelled())
        return held.older_may_go if was_ours else None


def _login(version: Version, role: str) -> Login:
    return Login(version.text(ACCOUNT), version.text(USER), role)


def _rotation_role(held: RotationContext) -> str:
    return sql.named(held.described.tags.get(contract.ROTATION_ROLE_TAG, "") or held.current.text("role") or _ANYBODY)


def _connection(version: Version) -> Connection:
    names = ("account", "user", "host", "role", "warehouse", "namespace")
    return Connection(**{name: version.text(name) for name in names})


def _kept(version: Version) -> dict[str, str]:
    """The fields that a new version takes over, among them those by which drivers connect."""
    return {**version.fields, **secret_fields.about(_connection(version))}


def _name(held: RotationContext) -> sql.Sql:
    return sql.identifier(held.current.text(USER))
