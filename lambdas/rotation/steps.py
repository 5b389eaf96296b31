"""Secrets Manager's four steps, once for all credentials: createSecret, setSecret, testSecret, finishSecret.

Every step may come again, also after the end, and each may be the second try of one that died half-way. The move of
AWSCURRENT in the last step is the commit: before it nobody reads the new key, after it nothing is done any more. A replaced key
stays alive for its grace; then a call by the clock revokes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation import holdings, proof, strategy
from lambdas.rotation.holdings import Holdings, Policy
from lambdas.rotation.strategy import Strategy
from lambdas.rotation.versions import CURRENT, PENDING, Described, RotatedSecrets, SecretVersions, Version
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Refused, Transient
from lambdas.shared.log import Log
from lambdas.shared.redaction import Secret

_NEEDED: Final = ("Step", "SecretId", "ClientRequestToken")
ALREADY: Final = "already current"


@attrs.frozen
class Engine:
    """One invocation's. `connect` gives the strategy of a kind of credential."""

    client: RotatedSecrets
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
            held = holdings.read(versions, described, token, self.policy, self.deadline.clock.time)
            acting = self.connect(strategy.kind_of(held.current))
            outcome = _STEPS[step](self, held, acting, event)
        log.info(outcome)
        return outcome

    def hold(self, secret_id: str) -> tuple[Holdings, Strategy]:
        """For what an operator asks of a secret, outside of a rotation."""
        versions = SecretVersions(self.client, secret_id)
        held = holdings.read(versions, versions.describe(), "", self.policy, self.deadline.clock.time)
        return held, self.connect(strategy.kind_of(held.current))

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

    def _revoke(self, held: Holdings, acting: Strategy, *, in_grace: bool) -> dict[str, Any]:
        replaced = acting.replaced(held, in_grace=in_grace)
        if replaced.ours:
            if not acting.works(held.current):
                raise Refused(rotation_errors.NOTHING_LEFT, f"secret {held.described.name}")
            held.require_same_labels()
            acting.revoke(held, replaced.ours)
        told = {
            "secret": held.described.name,
            "revoked": replaced.ours,
            "not_ours": replaced.foreign,
            "kept": acting.id_of(held.current),
        }
        self.log.info("revoked", **told)
        return told

    def create(self, held: Holdings, acting: Strategy, event: Mapping[str, Any]) -> str:
        if held.pending is not None:
            return self._kept(held, acting, held.pending)
        fields = acting.fresh(held)
        passed = event.get("RotationToken")
        try:
            held.versions.put_pending(held.token, fields, Secret(str(passed)) if passed else None)
        except Refused:
            acting.abandon(held, fields)
            raise
        return "created"

    def set(self, held: Holdings, acting: Strategy, event: Mapping[str, Any]) -> str:
        acting.install(held, _with_value(held))
        return "set"

    def test(self, held: Holdings, acting: Strategy, event: Mapping[str, Any]) -> str:
        """A version without a value is Secrets Manager's way of asking whether rotation would work: the current key tells."""
        self._prove(held, acting, held.pending or held.current)
        return "tested" if held.pending else "tested the current key"

    def finish(self, held: Holdings, acting: Strategy, event: Mapping[str, Any]) -> str:
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

    def _kept(self, held: Holdings, acting: Strategy, pending: Version) -> str:
        """A value is never made twice for a version. Where nothing can come of it, the version is given up."""
        if acting.is_spoiled(pending) or acting.is_outdated(held, pending):
            self._give_up(held, acting, pending)
        return "created before"

    def _give_up(self, held: Holdings, acting: Strategy, pending: Version) -> NoReturn:
        """The current version stays as it is. The next rotation starts from its fields."""
        acting.abandon(held, pending.fields)
        held.versions.give_up(held.token)
        raise Refused(rotation_errors.DISCARDED, f"version {held.token} of secret {held.described.name}")

    def _prove(self, held: Holdings, acting: Strategy, version: Version) -> None:
        proof.prove(
            lambda: acting.works(version),
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


def _with_value(held: Holdings) -> Version:
    if held.pending is None:
        raise Refused(rotation_errors.EMPTY, f"version {held.token} of secret {held.described.name}")
    return held.pending


_STEPS: Final[Mapping[str, Callable[[Engine, Holdings, Strategy, Mapping[str, Any]], str]]] = {
    "createSecret": Engine.create,
    "setSecret": Engine.set,
    "testSecret": Engine.test,
    "finishSecret": Engine.finish,
}
