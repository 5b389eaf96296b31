"""Secrets Manager's four steps, once for all credentials: createSecret, setSecret, testSecret, finishSecret.

Every step may come again, also after the end, and each may be the second try of one that died half-way. The move of
AWSCURRENT in the last step is the commit: before it nobody reads the new key, after it nothing is done any more. A replaced key
stays alive for its grace; then a scheduled call revokes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import (
    CURRENT,
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
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"
#: The fields by which a secret is known.
KNOWN_BY: Final[Mapping[str, tuple[str, ...]]] = {
    CONFLUENT: (KEY_ID, KEY_SECRET),
    SNOWFLAKE: ("account", "user", "privateKey"),
}


@attrs.frozen
class LiveKey:
    """A key of ours at the vendor. `place` is where it stands there, `since` as the vendor writes it."""

    id: str
    place: str
    since: str


@attrs.frozen
class Replaced:
    """Ids of keys at the vendor that are neither current nor pending."""

    managed: list[str]
    foreign: list[str]


class Strategy(Protocol):
    """Every verb may be called twice, and each call may be the one whose answer got lost."""

    def id_of(self, version: Version) -> str:
        """The credential as the vendor calls it: what may be shown of it."""

    def create_credential(self, held: RotationContext) -> dict[str, str]:
        """The fields of a new credential. Raises Refused, with nothing changed, where there is no room for one."""

    def discard(self, held: RotationContext, fields: Mapping[str, str]) -> None:
        """Undoes `create_credential`: its fields could not be stored, or will never be current."""

    def register(self, held: RotationContext, pending: Version) -> None:
        """Makes the vendor accept what is pending."""

    def authenticates(self, version: Version) -> bool:
        """Whether the vendor accepts the credential now."""

    def is_there(self, held: RotationContext, pending: Version) -> bool:
        """Whether the vendor has what is pending, accepted or not yet."""

    def is_unusable(self, pending: Version) -> bool:
        """Whether nothing can come of what is pending."""

    def is_outdated(self, held: RotationContext, pending: Version) -> bool:
        """Whether the current version has got other fields since `create_credential` copied them, its key aside."""

    def replaced(self, held: RotationContext, *, in_grace: bool) -> Replaced:
        """The keys that may be revoked: all that were replaced, or only those whose grace is over."""

    def revoke(self, held: RotationContext, keys: Sequence[str]) -> None:
        """Removes these keys. One that is gone already is no error."""

    def live(self, held: RotationContext) -> list[LiveKey]: ...


def credential_type(version: Version) -> str:
    """Raises Refused where the fields are of no credential that rotation knows."""
    for kind, names in KNOWN_BY.items():
        if all(version.text(name) for name in names):
            return kind
    known = " or ".join(", ".join(names) for names in KNOWN_BY.values())
    raise Refused(rotation_errors.FIELDS, f"version {version.id} has neither {known}")


SUCCESSES: Final = 2
#: Seconds between two successes, and the least and the most between two tries.
APART: Final = 1.0
_LEAST: Final = 1.0
_MOST: Final = 20.0
#: Seconds that a try may need.
_ENOUGH: Final = 10.0


def verify(authenticates: Callable[[], bool], is_there: Callable[[], bool], deadline: Deadline, what: str) -> None:
    """Raises Refused where the vendor doesn't have the key, InProgress where the time of this invocation is not enough."""
    successes, wait = 0, _LEAST
    while True:
        accepted, requested = _tried(authenticates, is_there, what)
        successes = successes + 1 if accepted else 0
        if successes == SUCCESSES:
            return
        pause = APART if accepted else max(wait, requested)
        wait = wait if accepted else min(_MOST, wait * 1.5)
        if deadline.left() <= pause + _ENOUGH:
            raise InProgress(rotation_errors.NOT_PROVEN, what)
        deadline.clock.sleep(pause)


def _tried(authenticates: Callable[[], bool], is_there: Callable[[], bool], what: str) -> tuple[bool, float]:
    """Whether the key is accepted, and for how many seconds the vendor wants to be left alone. An outage counts as a failure."""
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
    """One invocation's. `connect` gives the strategy of a kind of credential."""

    client: SecretsManagerClient
    connect: Callable[[str], Strategy]
    policy: Policy
    deadline: Deadline
    log: Log

    def run(self, event: Mapping[str, Any]) -> str:
        """What came of the step. Raises LakeferryError; then nothing that anybody uses has changed."""
        step, versions, token = self._asked(event)
        described = versions.describe()
        log = self.log.bind(secret=described.name, step=step, version=token)
        if _is_done(described, token):
            outcome = ALREADY
        else:
            held = read_context(versions, described, token, self.policy, self.deadline.clock.time)
            acting = self.connect(credential_type(held.current))
            outcome = _STEPS[step](self, held, acting, event)
        log.info(outcome)
        return outcome

    def hold(self, secret_id: str) -> tuple[RotationContext, Strategy]:
        """For what an operator asks of a secret, outside of a rotation."""
        versions = SecretVersions(self.client, secret_id)
        held = read_context(versions, versions.describe(), "", self.policy, self.deadline.clock.time)
        return held, self.connect(credential_type(held.current))

    def revoke(self, secret_id: str) -> dict[str, Any]:
        """Every key but the current one (and the one that is being rotated to) is gone at once, in grace or not."""
        held, acting = self.hold(secret_id)
        return self._revoke(held, acting, in_grace=True)

    def revoke_expired(self, secret_ids: Sequence[str]) -> dict[str, Any]:
        """Revokes replaced keys whose grace is over. A secret that is being rotated is left alone until the next call.

        All secrets are looked at, also after one that fails. Raises the first LakeferryError.
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
        held, acting = self.hold(secret_id)
        waits = {"secret": held.described.name, "revoked": [], "rotating": True}
        if held.is_rotating:
            return waits
        try:
            return self._revoke(held, acting, in_grace=False) | {"rotating": False}
        except Refused as refused:
            if refused.row is not rotation_errors.CHANGED:
                raise
            return waits

    def _revoke(self, held: RotationContext, acting: Strategy, *, in_grace: bool) -> dict[str, Any]:
        replaced = acting.replaced(held, in_grace=in_grace)
        if replaced.managed:
            if not acting.authenticates(held.current):
                raise Refused(rotation_errors.NOTHING_LEFT, f"secret {held.described.name}")
            held.require_same_labels()
            acting.revoke(held, replaced.managed)
        result = {
            "secret": held.described.name,
            "revoked": replaced.managed,
            "not_ours": replaced.foreign,
            "kept": acting.id_of(held.current),
        }
        self.log.info("revoked", **result)
        return result

    def create(self, held: RotationContext, acting: Strategy, event: Mapping[str, Any]) -> str:
        if held.pending is not None:
            return self._kept(held, acting, held.pending)
        fields = acting.create_credential(held)
        passed = event.get("RotationToken")
        try:
            held.versions.put_pending(held.token, fields, Secret(str(passed)) if passed else None)
        except Refused:
            acting.discard(held, fields)
            raise
        return "created"

    def set(self, held: RotationContext, acting: Strategy, event: Mapping[str, Any]) -> str:
        acting.register(held, _with_value(held))
        return "set"

    def test(self, held: RotationContext, acting: Strategy, event: Mapping[str, Any]) -> str:
        """A version without a value is Secrets Manager's way of asking whether rotation would work: the current key tells."""
        self._prove(held, acting, held.pending or held.current)
        return "tested" if held.pending else "tested the current key"

    def finish(self, held: RotationContext, acting: Strategy, event: Mapping[str, Any]) -> str:
        """Proves the key once more: nobody promises that the step before was this one's."""
        pending = _with_value(held)
        if acting.is_outdated(held, pending):
            self._give_up(held, acting, pending)
        self._prove(held, acting, pending)
        if held.needs_mark(pending):
            held.versions.mark(held.token, held.now())
        try:
            held.versions.make_current(held.token, held.current.id)
        except Transient:
            if CURRENT not in held.versions.describe().stages.get(held.token, ()):
                raise
        return "current"

    def _kept(self, held: RotationContext, acting: Strategy, pending: Version) -> str:
        """A value is never made twice for a version. Where nothing can come of it, the version is given up."""
        if acting.is_unusable(pending) or acting.is_outdated(held, pending):
            self._give_up(held, acting, pending)
        return "created before"

    def _give_up(self, held: RotationContext, acting: Strategy, pending: Version) -> NoReturn:
        """The current version stays as it is. The next rotation starts from its fields."""
        acting.discard(held, pending.fields)
        held.versions.give_up(held.token)
        raise Refused(rotation_errors.DISCARDED, f"version {held.token} of secret {held.described.name}")

    def _prove(self, held: RotationContext, acting: Strategy, version: Version) -> None:
        verify(
            lambda: acting.authenticates(version),
            lambda: acting.is_there(held, version),
            self.deadline,
            f"the key of version {version.id} of secret {held.described.name}",
        )

    def _asked(self, event: Mapping[str, Any]) -> tuple[str, SecretVersions, str]:
        if missing := [name for name in _NEEDED if not isinstance(event.get(name), str) or not event[name]]:
            raise Refused(rotation_errors.EVENT, f"the event lacks {', '.join(missing)}")
        if event["Step"] not in _STEPS:
            raise Refused(rotation_errors.EVENT, f"there is no step {event['Step']!r}")
        return event["Step"], SecretVersions(self.client, event["SecretId"]), event["ClientRequestToken"]


def _is_done(described: Described, token: str) -> bool:
    """Raises Refused where there is nothing to rotate, in the order in which AWS's own templates look."""
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


def _with_value(held: RotationContext) -> Version:
    if held.pending is None:
        raise Refused(rotation_errors.EMPTY, f"version {held.token} of secret {held.described.name}")
    return held.pending


_STEPS: Final[Mapping[str, Callable[[Rotation, RotationContext, Strategy, Mapping[str, Any]], str]]] = {
    "createSecret": Rotation.create,
    "setSecret": Rotation.set,
    "testSecret": Rotation.test,
    "finishSecret": Rotation.finish,
}


@attrs.frozen
class Age:
    """`live_place` is where the current key stands: a slot, or its version's label; "" where the vendor doesn't have it."""

    secret: str
    enabled: bool
    age_days: float
    #: Seconds since 1970.
    next_rotation: float | None
    overdue_days: float
    pending_days: float
    live_place: str
    keys: tuple[LiveKey, ...]


def age_of(held: RotationContext, acting: Strategy) -> Age:
    """Raises LakeferryError where the vendor can't be asked."""
    now, described = held.now(), held.described
    keys, current = tuple(acting.live(held)), acting.id_of(held.current)
    return Age(
        secret=described.name,
        enabled=described.enabled,
        age_days=_days(now - held.current.created),
        next_rotation=described.next_rotation,
        overdue_days=_days(now - _due(held)) if described.enabled else 0.0,
        pending_days=_days(now - held.pending.created) if held.pending else 0.0,
        live_place=next((key.place for key in keys if key.id == current), ""),
        keys=keys,
    )


def as_document(age: Age) -> dict[str, Any]:
    """As plain data, without a secret."""
    return attrs.asdict(age)


def _due(held: RotationContext) -> float:
    """Secrets Manager leaves the date in the past where rotation keeps failing."""
    if held.described.next_rotation is not None:
        return held.described.next_rotation
    return held.current.created + held.described.every if held.described.every else held.now()


def _days(seconds: float) -> float:
    return round(max(0.0, seconds) / DAY, 3)
