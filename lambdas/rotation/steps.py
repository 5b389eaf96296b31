"""Secrets Manager's four steps for all types of credentials: createSecret, setSecret, testSecret,
finishSecret.

Every step may be repeated, even after the end of the rotation or after an attempt that stopped half-way. The
last step moves AWSCURRENT. Before that nobody reads the new key, and after that the rotation does nothing
more. A replaced key stays valid for its grace period; then a scheduled call revokes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.strategy import Strategy, detect_credential_type
from lambdas.rotation.verification import verify
from lambdas.rotation.versions import (
    PENDING,
    Described,
    Policy,
    RotationContext,
    SecretVersions,
    Version,
    read_context,
)
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Refused, Transient
from lambdas.shared.log import Log
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

_REQUIRED_NAMES: Final = ("Step", "SecretId", "ClientRequestToken")
ALREADY: Final = "already current"


@attrs.frozen
class Rotation:
    """One invocation of the rotation function. `connect` returns the strategy for a type of credential."""

    client: SecretsManagerClient
    connect: Callable[[str], Strategy]
    policy: Policy
    deadline: Deadline
    log: Log

    def run(self, event: Mapping[str, Any]) -> str:
        """Run a step and return its result.

        If it raises LakeferryError, nothing that is in use has changed.
        """
        step, versions, token = self._parse(event)
        described = versions.describe()
        log = self.log.bind(secret=described.name, step=step, version=token)
        if _is_done(described, token):
            outcome = ALREADY
        else:
            context = read_context(versions, described, token, self.policy, self.deadline.clock.time)
            strategy = self.connect(detect_credential_type(context.current))
            outcome = _STEPS[step](self, context, strategy, event)
        log.info(outcome)
        return outcome

    def open(self, secret_id: str) -> tuple[RotationContext, Strategy]:
        """Read the secret for an operator's command, outside of a rotation."""
        versions = SecretVersions(self.client, secret_id)
        context = read_context(versions, versions.describe(), "", self.policy, self.deadline.clock.time)
        return context, self.connect(detect_credential_type(context.current))

    def revoke(self, secret_id: str) -> dict[str, Any]:
        """Revoke every key except the current and the pending one immediately, even during its grace
        period.
        """
        context, strategy = self.open(secret_id)
        return self._revoke(context, strategy, include_in_grace=True)

    def revoke_expired(self, secret_ids: Sequence[str]) -> dict[str, Any]:
        """Revoke replaced keys whose grace period is over. A secret whose rotation began in the
        last 24 hours is left for the next call.

        An error of one secret doesn't stop the others. At the end, raises the first LakeferryError.
        """
        answers: list[dict[str, Any]] = []
        errors: list[LakeferryError] = []
        for secret_id in secret_ids:
            try:
                answers.append(self._revoke_expired(secret_id))
            except LakeferryError as error:
                self.log.error("not revoked", secret=secret_id, code=error.kind.code, what=error.what)
                errors.append(error)
        if errors:
            raise errors[0]
        return {"secrets": answers}

    def _revoke_expired(self, secret_id: str) -> dict[str, Any]:
        context, strategy = self.open(secret_id)
        left_for_next_call = {"secret": context.described.name, "revoked": [], "rotating": True}
        if context.is_rotating:
            return left_for_next_call
        try:
            return self._revoke(context, strategy, include_in_grace=False) | {"rotating": False}
        except Refused as refused:
            if refused.kind is not rotation_errors.CHANGED:
                raise
            return left_for_next_call  # a rotation has just changed its versions

    def _revoke(
        self, context: RotationContext, strategy: Strategy, *, include_in_grace: bool
    ) -> dict[str, Any]:
        replaced = strategy.list_replaced(context, include_in_grace=include_in_grace)
        if replaced.managed:
            if not strategy.authenticates(context.current):
                raise Refused(rotation_errors.NOTHING_LEFT, f"secret {context.described.name}")
            context.require_same_labels()
            strategy.revoke(context, replaced.managed)
        result = {
            "secret": context.described.name,
            "revoked": replaced.managed,
            "unmanaged": replaced.unmanaged,
            "kept": strategy.get_id(context.current),
        }
        self.log.info("revoked", **result)
        return result

    def create(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        """Create a credential, unless the pending version has a value: a version can't get another one.

        If that value is unusable, abandon it and raise Refused.
        """
        pending = context.pending
        if pending is not None:
            if strategy.is_unusable(pending) or strategy.is_outdated(context, pending):
                self._give_up(context, strategy, pending)
            return "created before"
        fields = strategy.create_credential(context)
        event_token = event.get("RotationToken")
        rotation_token = Secret(str(event_token)) if event_token else None
        try:
            context.versions.put_pending(context.token, fields, rotation_token)
        except Refused:
            strategy.discard(context, fields)
            raise
        return "created"

    def set(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        strategy.register(context, _require_value(context))
        return "set"

    def test(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        """Test the pending version.

        If there is none, Secrets Manager is testing the configuration: test the current key.
        """
        self._verify(context, strategy, context.pending or context.current)
        return "tested" if context.pending else "tested the current key"

    def finish(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        """Verify the key again, because nothing guarantees that testSecret ran for it, and make its version
        current.
        """
        pending = _require_value(context)
        if strategy.is_outdated(context, pending):
            self._give_up(context, strategy, pending)
        self._verify(context, strategy, pending)
        # No key is found through an older version any more: Snowflake's slots now have the pending and the
        # current key, and Confluent's keys are found by name.
        context.versions.remove_old_times(context.described.stages)
        if context.needs_time_label(pending):
            context.versions.label_time(context.token, context.now())
        try:
            context.versions.make_current(context.token, context.current.id)
        except Transient:
            if CURRENT not in context.versions.describe().stages.get(context.token, ()):
                raise
        return "current"

    def _give_up(self, context: RotationContext, strategy: Strategy, pending: Version) -> NoReturn:
        """Abandon the pending version.

        The next rotation starts from the fields of the current one. Raises Refused.
        """
        strategy.discard(context, pending.fields)
        context.versions.give_up(context.token)
        raise Refused(
            rotation_errors.DISCARDED, f"version {context.token} of secret {context.described.name}"
        )

    def _verify(self, context: RotationContext, strategy: Strategy, version: Version) -> None:
        verify(
            lambda: strategy.authenticates(version),
            lambda: strategy.is_there(context, version),
            self.deadline,
            f"the key of version {version.id} of secret {context.described.name}",
        )

    def _parse(self, event: Mapping[str, Any]) -> tuple[str, SecretVersions, str]:
        missing_names = []
        for name in _REQUIRED_NAMES:
            value = event.get(name)
            if not isinstance(value, str) or not value:
                missing_names.append(name)
        if missing_names:
            raise Refused(rotation_errors.EVENT, f"the event lacks {', '.join(missing_names)}")
        if event["Step"] not in _STEPS:
            raise Refused(rotation_errors.EVENT, f"there is no step {event['Step']!r}")
        return event["Step"], SecretVersions(self.client, event["SecretId"]), event["ClientRequestToken"]


def _is_done(described: Described, token: str) -> bool:
    """Return whether the version is current.

    Raises Refused if it can't become current. AWS's templates have the same checks.
    """
    if described.deleted:
        raise Refused(rotation_errors.DELETED, f"secret {described.name}")
    if not described.enabled:
        raise Refused(rotation_errors.NOT_ENABLED, f"secret {described.name}")
    if token not in described.stages:
        raise Refused(rotation_errors.UNKNOWN_TOKEN, f"version {token} of secret {described.name}")
    if CURRENT in described.stages[token]:
        return True
    if PENDING not in described.stages[token]:
        raise Refused(rotation_errors.NOT_PENDING, f"version {token} of secret {described.name}")
    return False


def _require_value(context: RotationContext) -> Version:
    if context.pending is None:
        raise Refused(rotation_errors.EMPTY, f"version {context.token} of secret {context.described.name}")
    return context.pending


_STEPS: Final[Mapping[str, Callable[[Rotation, RotationContext, Strategy, Mapping[str, Any]], str]]] = {
    "createSecret": Rotation.create,
    "setSecret": Rotation.set,
    "testSecret": Rotation.test,
    "finishSecret": Rotation.finish,
}
