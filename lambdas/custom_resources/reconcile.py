"""Bring one object to its desired state: present as declared, or absent. Each call does what can be done now.

What an answer left open is settled by looking, never by guessing: an object counts as absent when it was looked for twice,
and, where a create was sent whose outcome is not known, when the second look came a good while after the first.
Errors that may pass are waited for, but for nothing longer than CloudFormation would.
"""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

from lambdas.custom_resources.request import DELETE
from lambdas.custom_resources.state import KnownObject, Lease, RequestProgress, ResourceState
from lambdas.shared import errors
from lambdas.shared.errors import (
    Conflict,
    Denied,
    InProgress,
    LakeferryError,
    NeedsReplacement,
    ParentMissing,
    RateLimited,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    ResourceMissing,
    StaleRequest,
    TimedOut,
    Transient,
)
from lambdas.shared.http import NotSent
from lambdas.shared.resource import Context, Outputs, ResourceHandler

#: What hangs on an object may take this long to go, also where the vendor answers 400 instead of 409.
DELETE_PATIENCE: Final = 1200.0
#: A key that removes things is not new, so a 401 or 403 doesn't come of that.
DELETE_DENIED_PATIENCE: Final = 300.0


def check_retry_budget(error: LakeferryError, row: ResourceState, now: float, limit: float) -> None:
    """Returns where it is to be waited on. Raises TimedOut, or the error itself where waiting is no use.

    `limit` is the resource type's TIMEOUT_SECONDS, for a whole request. Notes in the row since when the trouble lasts.
    """
    if isinstance(error, StaleRequest):
        raise error
    if isinstance(error, RateLimited):
        row.progress.not_before = now + error.wait
    if isinstance(error, InProgress) and not isinstance(error, Looking):
        row.progress.refused_since.clear()
    lasting = _lasting(error, row, now)
    patience = _patience(error, row)
    if patience <= 0:
        raise error
    if lasting >= patience or now - row.since >= limit:
        raise TimedOut(error.row, f"{error.what}; waited for {max(lasting, now - row.since) / 60:.0f} minutes")


def check_slow(row: ResourceState, now: float, limit: float) -> None:
    """Raises TimedOut where an object that shows no fault has been coming into being, or going, for too long."""
    row.progress.refused_since.clear()
    if now - row.since >= limit:
        what = "it is still there" if row.verb == DELETE else "it is not ready"
        raise TimedOut(errors.WAITING, f"{what} after {(now - row.since) / 60:.0f} minutes")


def _lasting(error: LakeferryError, row: ResourceState, now: float) -> float:
    """Seconds since this trouble came first. Curing a fault makes other troubles in between, which don't end it."""
    progress = row.progress
    if isinstance(error, ReplacementRequired | Transient):
        return now - row.since
    if isinstance(error, ResourceFailed):
        if progress.faulty_since is None:
            progress.faulty_since = now
        return now - progress.faulty_since
    return now - progress.refused_since.setdefault(error.row.code, now)


def _patience(error: LakeferryError, row: ResourceState) -> float:
    if isinstance(error, ReplacementRequired | Transient):
        return math.inf
    if error.row is errors.STORAGE:
        return error.patience
    if row.verb == DELETE and isinstance(error, Denied):
        return DELETE_DENIED_PATIENCE
    if row.verb == DELETE and isinstance(error, Refused):
        return DELETE_PATIENCE
    return error.patience


#: Seconds after which a create whose answer was lost can't take effect any more, and lists show what it made.
ABSENCE_GAP: Final = 60.0
#: Seconds after which a delete is asked for again, and between two attempts to cure an object by making it anew.
REPEAT_GAP: Final = 120.0
_LOOKS: Final = 4


class Looking(InProgress):
    """Nothing is known yet; looking goes on."""


@attrs.frozen
class Reconciler:
    handler: ResourceHandler
    context: Context[Any]
    spec: Any
    lease: Lease

    def ensure_present(self) -> Outputs | None:
        """The outputs once the object is there, as wanted, and works; None while it comes into being."""
        try:
            return self._present()
        except ParentMissing:
            raise
        except ResourceMissing as vanished:
            self._forget()
            raise Looking(vanished.row, vanished.what) from None
        except NeedsReplacement as spoiled:
            self._remove(spoiled)
            raise

    def ensure_absent(self) -> bool:
        """True once the object is gone for sure."""
        for _ in range(_LOOKS):
            object_ids = self.handler.find_existing(self.context, self.spec, self._facts.object_id or self._facts.lost_id)
            if object_ids:
                self._progress.empty_looks, self._facts.absent_since = 0, None
                if not self._may_ask_again():
                    return False
                for object_id in object_ids:
                    self.handler.delete(self.context, self.spec, object_id)
                self._progress.asked_at = self._now
                continue
            self._progress.empty_looks += 1
            self._rule_out_lost_create()
            if self._progress.empty_looks > 1:
                # A later create of the same resource must not take over what somebody else has made since.
                self._facts.object_id = self._facts.lost_id = None
                self._facts.notes.clear()
                return True
        return False

    @property
    def _facts(self) -> KnownObject:
        return self.lease.state.facts

    @property
    def _progress(self) -> RequestProgress:
        return self.lease.state.progress

    @property
    def _now(self) -> float:
        return self.context.clock.time()

    def _present(self) -> Outputs | None:
        object_id = self._facts.object_id or self._find() or self._create()
        if not self._progress.settled:
            self.handler.update(self.context, self.spec, object_id)
            self._progress.settled = True
        outputs = self.handler.is_ready(self.context, self.spec, object_id)
        if outputs is not None and self._facts.creates > 1:
            self._remove_doubles(object_id)
        return outputs

    def _find(self) -> str | None:
        object_ids = self.handler.find_existing(self.context, self.spec, self._facts.lost_id)
        if not object_ids:
            return None
        self._facts.object_id, self._facts.lost_id = object_ids[0], None
        self._facts.attempted, self._facts.absent_since = False, None
        return object_ids[0]

    def _create(self) -> str:
        self._rule_out_lost_create()
        facts = self._facts
        facts.attempted, facts.lost_id, facts.creates = True, None, facts.creates + 1
        self.lease.save()
        try:
            facts.object_id = self.handler.create(self.context, self.spec)
        except LakeferryError as error:
            facts.attempted = _may_have_made(error)
            if not facts.attempted and not isinstance(error, RateLimited):
                facts.creates -= 1
            raise
        facts.attempted = False
        self._progress.settled = True
        self.lease.save()
        return facts.object_id

    def _rule_out_lost_create(self) -> None:
        """Raises Looking until an object that may have been made would be seen by now."""
        facts = self._facts
        if not facts.attempted and not facts.lost_id:
            return
        if facts.absent_since is None:
            facts.absent_since = self._now
        if self._now - facts.absent_since < ABSENCE_GAP:
            raise Looking(errors.VANISHED, "looking once more whether it is there")
        facts.attempted, facts.absent_since = False, None

    def _forget(self) -> None:
        """The object is not where it was. One that we removed ourselves is not looked for."""
        self._facts.lost_id = None if self._progress.removing else self._facts.object_id
        self._facts.object_id = None
        self._progress.settled = self._progress.removing = False

    def _remove(self, spoiled: NeedsReplacement) -> None:
        """Take away what can't be cured, so that the next call makes it anew."""
        object_id = self._facts.object_id
        if object_id is None or not self._may_ask_again():
            return
        before = self.context.previous
        spec = before if isinstance(spoiled, ReplacementRequired) and before is not None else self.spec
        self._progress.removing = True
        self.handler.delete(attrs.evolve(self.context, deleting=True), spec, object_id)
        self._progress.asked_at = self._now

    def _remove_doubles(self, object_id: str) -> None:
        """Of several creates, more than one may have had its effect."""
        everything = attrs.evolve(self.context, deleting=True)
        for double in self.handler.find_existing(everything, self.spec, object_id):
            if double != object_id:
                self.handler.delete(everything, self.spec, double)
        self._facts.creates = 1

    def _may_ask_again(self) -> bool:
        asked_at = self._progress.asked_at
        return asked_at is None or self._now - asked_at >= REPEAT_GAP


def _may_have_made(error: LakeferryError) -> bool:
    """Whether an object may exist after a create that ended so."""
    return isinstance(error, Conflict) or (
        isinstance(error, Transient) and not isinstance(error, InProgress | NotSent | RateLimited)
    )
