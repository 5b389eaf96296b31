"""API keys of Confluent Cloud: a new one for each rotation, known by its display name, which holds rotation's token.

Confluent shows a key's secret once, so a key is made and stored in one step. One that was made and not stored is found by its
name and deleted before another is made. Old keys go when their grace is over or room is needed, oldest first, and never while a
reader that kept a value for as long as it may could still use them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_rows
from lambdas.confluent import key_services
from lambdas.confluent.client import Confluent, path, require_text, text
from lambdas.confluent.resources.api_key import ROTATED, is_managed
from lambdas.confluent.secret_fields import DISPLAY_NAME, with_key
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.steps import LiveKey, Replaced
from lambdas.rotation.versions import CURRENT, PENDING, PREVIOUS, RotationContext, Version
from lambdas.shared.errors import Denied, Refused
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

_ROUTE: Final = "/iam/v2/api-keys"
_DESCRIPTION: Final = "Made by Lakeferry's rotation"


@attrs.frozen
class _Key:
    """`created` is "" where Confluent doesn't say."""

    id: str
    name: str
    created: str


@attrs.frozen
class ConfluentApiKey:
    """`connect` gives a client that may manage the keys of all accounts of the deployment."""

    connect: Callable[[], Confluent]

    def id_of(self, version: Version) -> str:
        return version.text(KEY_ID)

    def create_credential(self, held: RotationContext) -> dict[str, str]:
        vendor, fields, name = self.connect(), held.current.fields, _name(held)
        target = key_services.target_of(fields)
        owner = target.service_account_id or self._owner(held)
        resource = key_services.resource(vendor, target)
        self._make_room(held, self._ring(held, owner))
        wanted = {
            "display_name": f"{name}{ROTATED}{held.token}",
            "description": _DESCRIPTION,
            "owner": {"id": owner, "kind": "User" if owner.startswith("u-") else "ServiceAccount"},
            **({"resource": resource} if resource else {}),
        }
        created = self._made(held, owner, {"spec": wanted})
        key = ApiKey(require_text(created, "id"), Secret(require_text(created, "spec", "secret")))
        return with_key({**fields, "serviceAccountId": owner, DISPLAY_NAME: name}, key)

    def discard(self, held: RotationContext, fields: Mapping[str, str]) -> None:
        self._delete(fields[KEY_ID])

    def register(self, held: RotationContext, pending: Version) -> None:
        """Confluent has accepted it since it was made; here it shows whether it still has it."""
        if not self.is_there(held, pending):
            raise Refused(rotation_errors.NOT_THERE, f"API key {pending.text(KEY_ID)}")

    def authenticates(self, version: Version) -> bool:
        key = ApiKey(version.text(KEY_ID), version.guarded[KEY_SECRET])
        return key_services.works(self.connect(), key_services.target_of(version.fields), key)

    def is_there(self, held: RotationContext, pending: Version) -> bool:
        return self.connect().cloud.read(_ROUTE + path(pending.text(KEY_ID))) is not None

    def is_unusable(self, pending: Version) -> bool:
        return self.connect().cloud.read(_ROUTE + path(pending.text(KEY_ID))) is None

    def is_outdated(self, held: RotationContext, pending: Version) -> bool:
        own = {name: pending.text(name) for name in ("serviceAccountId", DISPLAY_NAME)}
        key = ApiKey(pending.text(KEY_ID), pending.guarded[KEY_SECRET])
        return with_key({**own, **held.current.fields}, key) != pending.fields

    def replaced(self, held: RotationContext, *, in_grace: bool) -> Replaced:
        ring = self._ring(held, held.current.text("serviceAccountId") or self._owner(held))
        others = [key for key in ring if key.id not in _ids(held.current, held.pending)]
        return Replaced([key.id for key in others if in_grace or _may_go(held, key, ring)], [])

    def revoke(self, held: RotationContext, keys: Sequence[str]) -> None:
        for key_id in keys:
            self._delete(key_id)

    def live(self, held: RotationContext) -> list[LiveKey]:
        stages = {PREVIOUS: held.previous, PENDING: held.pending, CURRENT: held.current}
        stage_of = {version.text(KEY_ID): stage for stage, version in stages.items() if version}
        ring = self._ring(held, held.current.text("serviceAccountId") or self._owner(held))
        return [LiveKey(key.id, stage_of.get(key.id, ""), key.created) for key in ring]

    def _ring(self, held: RotationContext, owner: str) -> list[_Key]:
        """Our live keys, oldest first: by name, and those that the secret holds, whoever made them."""
        name, stored = _name(held), _ids(*held.labelled)
        listed = self.connect().cloud.pages(_ROUTE, **{"spec.owner": owner})
        keys = [_Key(text(key, "id"), text(key, "spec", "display_name"), text(key, "metadata", "created_at")) for key in listed]
        return sorted(
            (key for key in keys if key.id in stored or is_managed(key.name, name)), key=lambda key: _instant(key.created)
        )

    def _make_room(self, held: RotationContext, ring: list[_Key]) -> None:
        """Raises Refused where a new key would be one too many and none may go."""
        live = list(ring)
        for key in [key for key in live if _is_lost(held, key, ring)]:
            self._delete(key.id)
            live.remove(key)
        foreign = [key for key in live if not is_managed(key.name, _name(held))]
        for key in [key for key in live if _may_go(held, key, ring)]:
            if len(live) >= held.policy.keep or key in foreign:
                self._delete(key.id)
                live.remove(key)
        if len(live) > held.policy.keep:
            raise Refused(rotation_errors.LIMIT, f"secret {held.described.name} has {len(live)} live keys")

    def _made(self, held: RotationContext, owner: str, body: dict[str, Any]) -> Any:
        """At the account's quota, the oldest of ours that nobody can be using makes room, and no other."""
        try:
            return self.connect().cloud.post(_ROUTE, body)
        except Refused as refused:
            ring = self._ring(held, owner)
            spare = [key for key in ring if _may_go(held, key, ring) and key.id not in _ids(held.previous)]
            if refused.row is not confluent_rows.QUOTA or not spare:
                raise
            self._delete(spare[0].id)
        return self.connect().cloud.post(_ROUTE, body)

    def _owner(self, held: RotationContext) -> str:
        key = self.connect().cloud.read(_ROUTE + path(held.current.text(KEY_ID)))
        if key is None:
            raise Refused(rotation_errors.FIELDS, f"secret {held.described.name} has no serviceAccountId, and its key is gone")
        return require_text(key, "spec", "owner", "id")

    def _delete(self, key_id: str) -> None:
        """Quiet about a key that is gone, which Confluent refuses to delete like one that isn't ours to delete."""
        cloud, route = self.connect().cloud, _ROUTE + path(key_id)
        try:
            cloud.delete(route)
        except Denied:
            if cloud.read(route) is not None:
                raise


def _name(held: RotationContext) -> str:
    """What the names of this secret's keys begin with. A key that somebody else made keeps its own name until it is replaced."""
    mark = hashlib.sha256(held.described.arn.encode()).hexdigest()[:16]
    return held.current.text(DISPLAY_NAME) or f"lakeferry-rotation-{mark}"


def _ids(*versions: Version | None) -> set[str]:
    return {version.text(KEY_ID) for version in versions if version}


def _is_lost(held: RotationContext, key: _Key, ring: list[_Key]) -> bool:
    """Nobody can ever have read it, and nobody will: its version has no value, or another key.

    What has a value may be on its way to being current, whatever we read a moment ago. What is older than the current key and
    has none may have lost it, because Secrets Manager drops versions without labels.
    """
    _, _, token = key.name.rpartition(ROTATED)
    if key.id in _ids(*held.labelled) or not token:
        return False
    stored = held.versions.read(token)
    if stored is not None:
        return stored.text(KEY_ID) != key.id
    return token == held.token or _is_newer(held, key, ring) is True


def _may_go(held: RotationContext, key: _Key, ring: list[_Key]) -> bool:
    if key.id in _ids(held.current, held.pending):
        return False
    if key.id in _ids(held.previous):
        return held.previous_may_go
    return _is_newer(held, key, ring) is False and held.older_may_go


def _is_newer(held: RotationContext, key: _Key, ring: list[_Key]) -> bool | None:
    """Whether it was made after the current key; None where Confluent doesn't tell."""
    current = next((_instant(one.created) for one in ring if one.id == held.current.text(KEY_ID)), 0.0)
    return _instant(key.created) > current if current and _instant(key.created) else None


def _instant(text_: str) -> float:
    """0 for what is no time."""
    try:
        return datetime.fromisoformat(text_).timestamp()
    except ValueError:
        return 0.0
