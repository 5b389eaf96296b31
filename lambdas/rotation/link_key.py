"""The key that signs links. No vendor has it: a new one is made here, and stored.

A replaced key stays in the secret, with the time until which a link that it signed can work, by the
`link_days` of the present file: a file with fewer days ends earlier links sooner. Links are verified with all
of these keys. Keys whose time is over are removed by the schedule, and all of them by an
operator's `revoke`, which ends every link that they signed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import attrs

from lambdas.rotation.strategy import LiveKey, Replaced
from lambdas.rotation.versions import DAY, PENDING_LIFE, RotationContext, Version
from lambdas.shared.link_tokens import (
    REPLACED_KEYS,
    SIGNING_KEY,
    KeyRing,
    Link,
    ReplacedKey,
    identify_key,
    parse_keys,
    write_replaced,
)
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT, Fields, hide_fields

#: 64 characters of Base64.
_KEY_BYTES = 48
_PROBE = Link("probe", "probe", 1, "probe")


@attrs.frozen
class LinkKey:
    """The strategy for the key of links. The longest link works for `days`."""

    days: int

    def get_id(self, version: Version) -> str:
        return identify_key(version.get_secret(SIGNING_KEY))

    def create_credential(self, context: RotationContext) -> Fields:
        keys = _read_keys(context.current)
        now = context.now()
        # The replaced key signs until the new version is current.
        until = int(now + PENDING_LIFE + self.days * DAY)
        kept = tuple(replaced for replaced in keys.replaced if now < replaced.until)
        replaced = (ReplacedKey(keys.current, until), *kept)
        return _build_fields(Secret(secrets.token_urlsafe(_KEY_BYTES)), replaced)

    def discard(self, context: RotationContext, fields: Fields) -> None:
        """Do nothing: a key that was never current has signed no link."""

    def register(self, context: RotationContext, pending: Version) -> None:
        """Do nothing: the secret is the only place that has the key."""

    def authenticates(self, version: Version) -> bool:
        """Return whether a link that the key signs can be verified with it."""
        keys = _read_keys(version)
        token = keys.sign(_PROBE, now=version.created, days=1)
        return keys.verify(token, now=version.created).link == _PROBE

    def is_there(self, context: RotationContext, pending: Version) -> bool:
        return True

    def is_unusable(self, pending: Version) -> bool:
        return not pending.get_secret(SIGNING_KEY)

    def is_outdated(self, context: RotationContext, pending: Version) -> bool:
        """Return whether the pending version would end links that the current key signed, or verify links
        that an operator ended."""
        current = _read_keys(context.current)
        known = {current.current, *(replaced.key for replaced in current.replaced)}
        kept = {replaced.key for replaced in _read_keys(pending).replaced}
        return current.current not in kept or not kept <= known

    def list_replaced(self, context: RotationContext, *, include_in_grace: bool) -> Replaced:
        now = context.now()
        return Replaced(
            [
                identify_key(replaced.key)
                for replaced in _read_keys(context.current).replaced
                if include_in_grace or now >= replaced.until
            ],
            [],
        )

    def revoke(self, context: RotationContext, keys: Sequence[str]) -> None:
        ring = _read_keys(context.current)
        kept = tuple(replaced for replaced in ring.replaced if identify_key(replaced.key) not in keys)
        context.versions.replace_current(_build_fields(ring.current, kept), context.current.id)

    def list_live_keys(self, context: RotationContext) -> list[LiveKey]:
        keys = _read_keys(context.current)
        replaced = [LiveKey(identify_key(old.key), "", "") for old in keys.replaced]
        return [LiveKey(identify_key(keys.current), CURRENT, ""), *replaced]


def _read_keys(version: Version) -> KeyRing:
    return parse_keys(version.fields, "rotation")


def _build_fields(key: Secret, replaced: tuple[ReplacedKey, ...]) -> Fields:
    return hide_fields({SIGNING_KEY: key, REPLACED_KEYS: write_replaced(replaced)})
