"""API keys of Confluent Cloud. Each rotation creates one, whose display name contains the rotation's token.

Confluent shows a key's secret only once, so a key is created and stored in one step. A key that was created
but not stored is found by its name and deleted before another one is created. Old keys are deleted, oldest
first, after their grace period, by the schedule or when a new key needs their slot. During the grace period,
when clients may still use them, only an operator's `revoke` deletes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent import key_services
from lambdas.confluent.client import Confluent
from lambdas.confluent.resources.api_key import ROTATED, is_managed
from lambdas.confluent.rest_client import build_path, get_text, require_text
from lambdas.confluent.secret_fields import DISPLAY_NAME, replace_key
from lambdas.confluent.sight import Container
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.strategy import LiveKey, Replaced
from lambdas.rotation.versions import PENDING, RotationContext, Version
from lambdas.shared.errors import Denied, Refused
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import CURRENT, KEY_ID, KEY_SECRET, PREVIOUS, Fields, hide_fields

_ROUTE: Final = "/iam/v2/api-keys"
_DESCRIPTION: Final = "Made by Lakeferry's rotation"
#: The field of a secret with the account that owns the key.
_ACCOUNT: Final = "serviceAccountId"


@attrs.frozen
class _Key:
    """A key as Confluent lists it. `created` is "" if Confluent doesn't return it."""

    id: str
    name: str
    created: str


@attrs.frozen
class ConfluentApiKey:
    """The strategy for Confluent's API keys.

    `connect` returns a client that may manage the keys of all service accounts of the deployment.
    """

    connect: Callable[[], Confluent]

    def get_id(self, version: Version) -> str:
        return version.get_text(KEY_ID)

    def create_credential(self, context: RotationContext) -> Fields:
        vendor = self.connect()
        fields = context.current.fields
        name = _find_key_prefix(context)
        target = key_services.read_target(context.current.texts)
        owner = target.service_account_id or self._find_owner(context)
        resource = key_services.find_resource(vendor, target)
        self._free_slot(context, self._list_managed_keys(context, owner))
        owner_kind = "User" if owner.startswith("u-") else "ServiceAccount"
        spec: dict[str, Any] = {
            "display_name": f"{name}{ROTATED}{context.token}",
            "description": _DESCRIPTION,
            "owner": {"id": owner, "kind": owner_kind},
        }
        if resource:
            spec["resource"] = resource
        created = self._create(context, owner, {"spec": spec})
        key = ApiKey(require_text(created, "id"), Secret(require_text(created, "spec", "secret")))
        return replace_key({**fields, _ACCOUNT: owner, DISPLAY_NAME: name}, key)

    def discard(self, context: RotationContext, fields: Fields) -> None:
        self._delete(context, str(fields[KEY_ID]))

    def register(self, context: RotationContext, pending: Version) -> None:
        """Check that Confluent still has the key.

        Confluent needs no registration: creating the key is enough.
        """
        if not self.is_there(context, pending):
            raise Refused(rotation_errors.NOT_THERE, f"API key {pending.get_text(KEY_ID)}")

    def authenticates(self, version: Version) -> bool:
        target = key_services.read_target(version.texts)
        return key_services.accepts_key(self.connect(), target, _read_key(version))

    def is_there(self, context: RotationContext, pending: Version) -> bool:
        return self._read(pending, pending.get_text(KEY_ID)) is not None

    def is_unusable(self, pending: Version) -> bool:
        return self._read(pending, pending.get_text(KEY_ID)) is None

    def is_outdated(self, context: RotationContext, pending: Version) -> bool:
        identity = {name: pending.get_text(name) for name in (_ACCOUNT, DISPLAY_NAME)}
        expected_fields = replace_key({**identity, **context.current.fields}, _read_key(pending))
        return hide_fields(expected_fields) != pending.fields

    def list_replaced(self, context: RotationContext, *, include_in_grace: bool) -> Replaced:
        owner = context.current.get_text(_ACCOUNT) or self._find_owner(context)
        managed = self._list_managed_keys(context, owner)
        ids_in_use = _list_ids(context.current, context.pending)
        replaced_ids = []
        for key in managed:
            is_replaced = key.id not in ids_in_use
            if is_replaced and (include_in_grace or _is_revocable(context, key, managed)):
                replaced_ids.append(key.id)
        return Replaced(replaced_ids, [])

    def revoke(self, context: RotationContext, keys: Sequence[str]) -> None:
        for key_id in keys:
            self._delete(context, key_id)

    def list_live_keys(self, context: RotationContext) -> list[LiveKey]:
        stages = {PREVIOUS: context.previous, PENDING: context.pending, CURRENT: context.current}
        stage_of = {version.get_text(KEY_ID): stage for stage, version in stages.items() if version}
        owner = context.current.get_text(_ACCOUNT) or self._find_owner(context)
        managed = self._list_managed_keys(context, owner)
        return [LiveKey(key.id, stage_of.get(key.id, ""), key.created) for key in managed]

    def _list_managed_keys(self, context: RotationContext, owner: str) -> list[_Key]:
        """Return the managed keys, oldest first: those with a managed name, and those in the secret, whoever
        created them.

        Lists leave out what the Cloud key's owner may not see: a list without the secret's own key counts
        only if the owner sees all keys, and the account that has the keys is in its organization. Raises
        Denied otherwise.
        """
        name = _find_key_prefix(context)
        stored = _list_ids(*context.labelled)
        vendor = self.connect()
        keys_of_owner = vendor.cloud.pages(_ROUTE, **{"spec.owner": owner})
        listed_ids = {get_text(key, "id") for key in keys_of_owner}
        if context.current.get_text(KEY_ID) not in listed_ids:
            vendor.require_sight_of_account(owner)
            _require_account(vendor, owner)
        keys = [
            _Key(
                get_text(key, "id"),
                get_text(key, "spec", "display_name"),
                get_text(key, "metadata", "created_at"),
            )
            for key in keys_of_owner
        ]
        managed = [key for key in keys if key.id in stored or is_managed(key.name, name)]
        return sorted(managed, key=lambda key: _parse_time(key.created))

    def _free_slot(self, context: RotationContext, managed: list[_Key]) -> None:
        """Delete keys until there is a slot for a new one. Raises Refused if none may be deleted."""
        live = list(managed)
        lost = [key for key in live if _is_lost(context, key, managed)]
        for key in lost:
            self._delete(context, key.id)
            live.remove(key)
        prefix = _find_key_prefix(context)
        revocable = [key for key in live if _is_revocable(context, key, managed)]
        for key in revocable:
            if len(live) >= context.policy.keep or not is_managed(key.name, prefix):
                self._delete(context, key.id)
                live.remove(key)
        if len(live) > context.policy.keep:
            raise Refused(rotation_errors.LIMIT, f"secret {context.described.name} has {len(live)} live keys")

    def _create(self, context: RotationContext, owner: str, body: dict[str, Any]) -> Any:
        """Create a key.

        If the account's quota is reached, first delete the oldest managed key that nobody can be using.
        """
        try:
            return self.connect().cloud.post(_ROUTE, body)
        except Refused as refused:
            managed = self._list_managed_keys(context, owner)
            deletable = [
                key
                for key in managed
                if _is_revocable(context, key, managed) and key.id not in _list_ids(context.previous)
            ]
            if refused.kind is not confluent_errors.QUOTA or not deletable:
                raise
            self._delete(context, deletable[0].id)
        return self.connect().cloud.post(_ROUTE, body)

    def _find_owner(self, context: RotationContext) -> str:
        key = self._read(context.current, context.current.get_text(KEY_ID))
        if key is None:
            raise Refused(
                rotation_errors.FIELDS,
                f"secret {context.described.name} has no serviceAccountId, and its key is gone",
            )
        return require_text(key, "spec", "owner", "id")

    def _read(self, version: Version, key_id: str) -> dict[str, Any] | None:
        """Return what Confluent says about a key of the account that `version` names, None if it is gone."""
        container = Container(service_account_id=version.get_text(_ACCOUNT))
        return self.connect().cloud.read(_ROUTE + build_path(key_id), container)

    def _delete(self, context: RotationContext, key_id: str) -> None:
        """Delete a key.

        It is no error if the key is gone: Confluent then answers 403, as for a key of another account.
        """
        try:
            self.connect().cloud.delete(_ROUTE + build_path(key_id))
        except Denied:
            if self._read(context.current, key_id) is not None:
                raise


def _read_key(version: Version) -> ApiKey:
    return ApiKey(version.get_text(KEY_ID), version.get_secret(KEY_SECRET))


def _require_account(vendor: Confluent, owner: str) -> None:
    """Raise Denied if the organization doesn't have the account: the Cloud key may be one of another
    organization.
    """
    accounts = "/iam/v2/users" if owner.startswith("u-") else "/iam/v2/service-accounts"
    container = Container(service_account_id=owner)
    if vendor.cloud.read(accounts + build_path(owner), container) is None:
        raise vendor.unseen(
            f"organization {vendor.organization_id} of Cloud key {vendor.cloud.key.id} has no account {owner}"
        )


def _find_key_prefix(context: RotationContext) -> str:
    """Return the prefix of new keys' names: the secret's display name, or else one derived from its ARN."""
    fingerprint = hashlib.sha256(context.described.arn.encode()).hexdigest()[:16]
    return context.current.get_text(DISPLAY_NAME) or f"lakeferry-rotation-{fingerprint}"


def _list_ids(*versions: Version | None) -> set[str]:
    return {version.get_text(KEY_ID) for version in versions if version}


def _is_lost(context: RotationContext, key: _Key, managed: list[_Key]) -> bool:
    """Return whether nobody can have read the key, because its version has no value or another key.

    A version that has this key may be about to become current. If a key is older than the current one, its
    version may once have had a value, because Secrets Manager deletes versions without labels.
    """
    _, _, token = key.name.rpartition(ROTATED)
    if key.id in _list_ids(*context.labelled) or not token:
        return False
    stored = context.versions.read(token)
    if stored is not None:
        return stored.get_text(KEY_ID) != key.id
    return token == context.token or _is_newer(context, key, managed) is True


def _is_revocable(context: RotationContext, key: _Key, managed: list[_Key]) -> bool:
    if key.id in _list_ids(context.current, context.pending):
        return False
    if key.id in _list_ids(context.previous):
        return context.previous_is_revocable
    return _is_newer(context, key, managed) is False and context.older_are_revocable


def _is_newer(context: RotationContext, key: _Key, managed: list[_Key]) -> bool | None:
    """Return whether the key was created after the current one; None if Confluent doesn't return the
    times.
    """
    current_id = context.current.get_text(KEY_ID)
    created = {managed_key.id: managed_key.created for managed_key in managed}
    time_of_current = _parse_time(created.get(current_id, ""))
    time_of_key = _parse_time(key.created)
    if not time_of_current or not time_of_key:
        return None
    return time_of_key > time_of_current


def _parse_time(timestamp: str) -> float:
    """Return a time in seconds since 1970; 0 for any other text."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0
