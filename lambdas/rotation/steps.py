"""Secrets Manager's four steps for all types of credentials: createSecret, setSecret, testSecret,
finishSecret.

Every step may be repeated, even after the end of the rotation or after an attempt that stopped half-way. The
last step moves AWSCURRENT. Before that nobody reads the new key, and after that the rotation does nothing
more. A replaced key stays valid for its grace period; then a scheduled call revokes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import (
    DAY,
    PENDING,
    Described,
    Policy,
    RotationContext,
    SecretVersions,
    Version,
    read_context,
)
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import InProgress, LakeferryError, OutOfTime, RateLimited, Refused, Transient
from lambdas.shared.log import Log
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT, KEY_ID, KEY_SECRET

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"
#: The fields that identify the type of a credential.
IDENTIFYING_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONFLUENT: (KEY_ID, KEY_SECRET),
    SNOWFLAKE: ("account", "user", "privateKey"),
}


@attrs.frozen
class LiveKey:
    """A managed key at the vendor.

    `label` is its slot or its version's label; `since` is a time as the vendor writes it.
    """

    id: str
    label: str
    since: str


@attrs.frozen
class Replaced:
    """Ids of keys at the vendor that are neither current nor pending."""

    managed: list[str]
    unmanaged: list[str]


class Strategy(Protocol):
    """The credentials of one vendor.

    Every method may be called twice, and the answer of any call may be lost.
    """

    def id_of(self, version: Version) -> str:
        """Return the id that the credential has at the vendor. It isn't secret."""

    def create_credential(self, context: RotationContext) -> dict[str, str]:
        """Return the fields of a new credential. Raises Refused, and changes nothing, if no slot is free."""

    def discard(self, context: RotationContext, fields: Mapping[str, str]) -> None:
        """Undo `create_credential`, because its fields could not be stored or will never become current."""

    def register(self, context: RotationContext, pending: Version) -> None:
        """Make the vendor accept the pending credential."""

    def authenticates(self, version: Version) -> bool:
        """Return whether the vendor accepts the credential now."""

    def is_there(self, context: RotationContext, pending: Version) -> bool:
        """Return whether the vendor has the pending credential, even if it doesn't accept it yet."""

    def is_unusable(self, pending: Version) -> bool:
        """Return whether the pending credential can never become valid."""

    def is_outdated(self, context: RotationContext, pending: Version) -> bool:
        """Return whether fields of the current version other than its key changed after `create_credential`
        copied them.
        """

    def replaced(self, context: RotationContext, *, in_grace: bool) -> Replaced:
        """Return the keys that may be revoked: all replaced keys if `in_grace`, else only those whose grace
        period is over.
        """

    def revoke(self, context: RotationContext, keys: Sequence[str]) -> None:
        """Remove these keys. It is no error if a key is gone."""

    def live(self, context: RotationContext) -> list[LiveKey]: ...


def credential_type(version: Version) -> str:
    """Return the type of the credential. Raises Refused if the fields don't identify one."""
    for kind, names in IDENTIFYING_FIELDS.items():
        if all(version.text(name) for name in names):
            return kind
    known = " or ".join(", ".join(names) for names in IDENTIFYING_FIELDS.values())
    raise Refused(rotation_errors.FIELDS, f"version {version.id} has neither {known}")


#: Successful tests in a row after which a key counts as working.
SUCCESSES: Final = 2
#: Seconds between two successful tests, and the minimum and maximum seconds between two attempts.
SUCCESS_PAUSE: Final = 1.0
_MIN_PAUSE: Final = 1.0
_MAX_PAUSE: Final = 20.0
#: Seconds that an attempt may take.
_ATTEMPT_SECONDS: Final = 10.0


def verify(
    authenticates: Callable[[], bool], is_there: Callable[[], bool], deadline: Deadline, what: str
) -> None:
    """Test a key until it works.

    Raises Refused if the vendor doesn't have it, InProgress if time runs out.
    """
    successes = 0
    wait = _MIN_PAUSE
    while True:
        accepted, requested = _tried(authenticates, is_there, what)
        successes = successes + 1 if accepted else 0
        if successes == SUCCESSES:
            return
        pause = SUCCESS_PAUSE if accepted else max(wait, requested)
        wait = wait if accepted else min(_MAX_PAUSE, wait * 1.5)
        if deadline.left() <= pause + _ATTEMPT_SECONDS:
            raise InProgress(rotation_errors.NOT_PROVEN, what)
        deadline.clock.sleep(pause)


def _tried(authenticates: Callable[[], bool], is_there: Callable[[], bool], what: str) -> tuple[bool, float]:
    """Return whether the key is accepted, and how many seconds the vendor asks to wait.

    During an outage it isn't accepted.
    """
    try:
        if authenticates():
            return True, 0.0
        if is_there():
            return False, 0.0
    except OutOfTime:
        raise
    except RateLimited as limited:
        return False, limited.wait
    except Transient:
        return False, 0.0
    raise Refused(rotation_errors.NOT_THERE, what)


_NEEDED: Final = ("Step", "SecretId", "ClientRequestToken")
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
            strategy = self.connect(credential_type(context.current))
            outcome = _STEPS[step](self, context, strategy, event)
        log.info(outcome)
        return outcome

    def open(self, secret_id: str) -> tuple[RotationContext, Strategy]:
        """Read the secret for an operator's command, outside of a rotation."""
        versions = SecretVersions(self.client, secret_id)
        context = read_context(versions, versions.describe(), "", self.policy, self.deadline.clock.time)
        return context, self.connect(credential_type(context.current))

    def revoke(self, secret_id: str) -> dict[str, Any]:
        """Revoke every key except the current and the pending one immediately, even during its grace
        period.
        """
        context, strategy = self.open(secret_id)
        return self._revoke(context, strategy, in_grace=True)

    def revoke_expired(self, secret_ids: Sequence[str]) -> dict[str, Any]:
        """Revoke replaced keys whose grace period is over. A secret whose rotation began today is left for
        the next call.

        An error of one secret doesn't stop the others. At the end, raises the first LakeferryError.
        """
        answers: list[dict[str, Any]] = []
        failed: list[LakeferryError] = []
        for secret_id in secret_ids:
            try:
                answers.append(self._revoke_expired(secret_id))
            except LakeferryError as error:
                self.log.error("not revoked", secret=secret_id, code=error.row.code, what=error.what)
                failed.append(error)
        if failed:
            raise failed[0]
        return {"secrets": answers}

    def _revoke_expired(self, secret_id: str) -> dict[str, Any]:
        context, strategy = self.open(secret_id)
        skipped = {"secret": context.described.name, "revoked": [], "rotating": True}
        if context.is_rotating:
            return skipped
        try:
            return self._revoke(context, strategy, in_grace=False) | {"rotating": False}
        except Refused as refused:
            if refused.row is not rotation_errors.CHANGED:
                raise
            return skipped

    def _revoke(self, context: RotationContext, strategy: Strategy, *, in_grace: bool) -> dict[str, Any]:
        replaced = strategy.replaced(context, in_grace=in_grace)
        if replaced.managed:
            if not strategy.authenticates(context.current):
                raise Refused(rotation_errors.NOTHING_LEFT, f"secret {context.described.name}")
            context.require_same_labels()
            strategy.revoke(context, replaced.managed)
        result = {
            "secret": context.described.name,
            "revoked": replaced.managed,
            "unmanaged": replaced.unmanaged,
            "kept": strategy.id_of(context.current),
        }
        self.log.info("revoked", **result)
        return result

    def create(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        if context.pending is not None:
            return self._keep(context, strategy, context.pending)
        fields = strategy.create_credential(context)
        passed = event.get("RotationToken")
        try:
            context.versions.put_pending(context.token, fields, Secret(str(passed)) if passed else None)
        except Refused:
            strategy.discard(context, fields)
            raise
        return "created"

    def set(self, context: RotationContext, strategy: Strategy, event: Mapping[str, Any]) -> str:
        strategy.register(context, _with_value(context))
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
        pending = _with_value(context)
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

    def _keep(self, context: RotationContext, strategy: Strategy, pending: Version) -> str:
        """Keep the pending value, because a version can't get another one.

        If it is unusable, abandon it and raise Refused.
        """
        if strategy.is_unusable(pending) or strategy.is_outdated(context, pending):
            self._give_up(context, strategy, pending)
        return "created before"

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
        if missing := [name for name in _NEEDED if not isinstance(event.get(name), str) or not event[name]]:
            raise Refused(rotation_errors.EVENT, f"the event lacks {', '.join(missing)}")
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


def _with_value(context: RotationContext) -> Version:
    if context.pending is None:
        raise Refused(rotation_errors.EMPTY, f"version {context.token} of secret {context.described.name}")
    return context.pending


_STEPS: Final[Mapping[str, Callable[[Rotation, RotationContext, Strategy, Mapping[str, Any]], str]]] = {
    "createSecret": Rotation.create,
    "setSecret": Rotation.set,
    "testSecret": Rotation.test,
    "finishSecret": Rotation.finish,
}


@attrs.frozen
class Age:
    """`current_label` is the current key's slot or its version's staging label; "" if the vendor doesn't have
    the key.
    """

    secret: str
    enabled: bool
    age_days: float
    #: Seconds since 1970.
    next_rotation: float | None
    overdue_days: float
    pending_days: float
    current_label: str
    keys: tuple[LiveKey, ...]


def age_of(context: RotationContext, strategy: Strategy) -> Age:
    """Return the ages. Raises LakeferryError if the vendor can't be called."""
    now = context.now()
    described = context.described
    keys = tuple(strategy.live(context))
    current = strategy.id_of(context.current)
    return Age(
        secret=described.name,
        enabled=described.enabled,
        age_days=_days(now - context.current.created),
        next_rotation=described.next_rotation,
        overdue_days=_days(now - _due(context)) if described.enabled else 0.0,
        pending_days=_days(now - context.pending.created) if context.pending else 0.0,
        current_label=next((key.label for key in keys if key.id == current), ""),
        keys=keys,
    )


def _due(context: RotationContext) -> float:
    """Return the time when the next rotation is due.

    While rotation fails, Secrets Manager's date remains in the past.
    """
    if context.described.next_rotation is not None:
        return context.described.next_rotation
    return context.current.created + context.described.every if context.described.every else context.now()


def _days(seconds: float) -> float:
    return round(max(0.0, seconds) / DAY, 3)
