"""Bring one object to its desired state: present as declared, or absent. Each call does what can be done now.

If an answer was lost, its outcome is determined by listing objects. An object counts as deleted after two
searches without a result. If the outcome of a create is unknown, the object counts as absent only if a search
ABSENCE_GAP seconds later finds nothing either. Temporary errors are retried, for at most as long as
CloudFormation waits.

Vendors hide what a login may not see. So an object that is not found counts as gone only if the login is one
of the object's tenant and proves that it would see the object, or if it is the login that saw the object and
sent a delete that was not refused. Otherwise it is unknown, which is an error. An accepted delete may fail
later, so to another login it proves nothing.
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
from lambdas.shared.tenants import require_tenant

#: Seconds after which a vendor that limits the rate is asked again, even if it named a longer time: limits
#: may end sooner.
LONGEST_WAIT: Final = 300.0
#: Seconds for which dependent objects may block a delete, even if the vendor answers 400 instead of 409.
DELETE_PATIENCE: Final = 1200.0
#: Shorter than the patience of a create may be: a delete uses no new key, so a new key can't be the reason
#: for a 401 or 403.
DELETE_DENIED_PATIENCE: Final = 300.0


def check_retry_budget(error: LakeferryError, row: ResourceState, now: float, limit: float) -> None:
    """Return if waiting may help. Raises TimedOut, or the error itself if waiting can't help.

    `limit` is the resource type's TIMEOUT_SECONDS, for a whole request. The state records when the error
    began.
    """
    if isinstance(error, StaleRequest):
        raise error
    if isinstance(error, RateLimited):
        row.progress.not_before = now + min(error.wait, LONGEST_WAIT)
        if row.progress.not_before - row.since >= limit:
            raise TimedOut(error.kind, f"{error.what}; the vendor asks to wait {error.wait:.0f} s more")
    if isinstance(error, InProgress) and not isinstance(error, StillSearching):
        row.progress.refused_since.clear()
    lasting = _measure_lasting(error, row, now)
    patience = _choose_patience(error, row)
    if patience <= 0:
        raise error
    if lasting >= patience or now - row.since >= limit:
        raise TimedOut(
            error.kind, f"{error.what}; waited for {max(lasting, now - row.since) / 60:.0f} minutes"
        )


def check_slow(row: ResourceState, now: float, limit: float) -> None:
    """Raise TimedOut if creating or deleting an object without errors takes too long."""
    row.progress.refused_since.clear()
    if now - row.since >= limit:
        problem = "it still exists" if row.verb == DELETE else "it is not ready"
        raise TimedOut(errors.WAITING, f"{problem} after {(now - row.since) / 60:.0f} minutes")


def _measure_lasting(error: LakeferryError, row: ResourceState, now: float) -> float:
    """Return the seconds since this error first occurred.

    Other errors, which a repair may cause in between, don't reset it.
    """
    progress = row.progress
    if isinstance(error, ReplacementRequired | Transient):
        return now - row.since
    if isinstance(error, ResourceFailed):
        if progress.failed_since is None:
            progress.failed_since = now
        return now - progress.failed_since
    return now - progress.refused_since.setdefault(error.kind.code, now)


def _choose_patience(error: LakeferryError, row: ResourceState) -> float:
    if isinstance(error, ReplacementRequired | Transient):
        return math.inf
    if error.kind is errors.AWS_REFUSED:
        return error.patience
    if row.verb == DELETE and isinstance(error, Denied):
        return DELETE_DENIED_PATIENCE
    if row.verb == DELETE and isinstance(error, Refused):
        return DELETE_PATIENCE
    return error.patience


#: Seconds after which a create without an answer can no longer take effect, and lists include what it
#: created.
ABSENCE_GAP: Final = 60.0
#: Seconds before a delete is sent again, and between two attempts to repair an object by replacing it.
REPEAT_GAP: Final = 120.0
_ROUNDS: Final = 4


class StillSearching(InProgress):
    """It is not known yet whether the object exists; the search continues."""


@attrs.frozen
class Reconciler:
    handler: ResourceHandler
    context: Context[Any]
    spec: Any
    lease: Lease

    def ensure_present(self) -> Outputs | None:
        """Return the outputs once the object exists, has the wanted properties and works.

        Return None before.
        """
        if self._facts.forgotten:
            self._facts.forget()
        self._require_tenant()
        self._facts.removed_own = False
        try:
            outputs = self._find_or_create()
            self._learn_tenant()
            if outputs is not None:
                self._facts.deleted_by = ""  # an earlier delete was accepted, and had no effect
            return outputs
        except ParentMissing:
            raise
        except ResourceMissing as missing:
            self._mark_lost()
            raise StillSearching(missing.kind, missing.what) from None
        except NeedsReplacement as needed:
            self._remove(needed)
            raise

    def ensure_absent(self) -> bool:
        """Delete the object. Return True once it is proved that it is gone."""
        facts = self._facts
        self._require_tenant()
        for _ in range(_ROUNDS):
            known_id = facts.object_id or facts.lost_id
            object_ids = self.handler.find_existing(self.context, self.spec, known_id)
            if object_ids:
                self._learn_tenant()
                self._progress.empty_searches = 0
                facts.absent_since = None
                if not self._may_send_deletion():
                    return False
                for object_id in object_ids:
                    self._delete(self.context, self.spec, object_id, is_known=known_id in (None, object_id))
                self._progress.deletion_sent_at = self._now
                continue
            self._progress.empty_searches += 1
            self._require_absence()
            self._rule_out_lost_create()
            if self._progress.empty_searches > 1:
                # A later create of the same resource must not take over an object that somebody else has
                # created by then.
                was_owned = facts.owned
                facts.forget()
                facts.removed_own = was_owned
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

    def _require_tenant(self) -> None:
        """Raise OtherTenant if the login is one of another organization or account than the object's."""
        require_tenant(self.context.vendor, [self._facts.tenant])

    def _learn_tenant(self) -> None:
        """Record the tenant of an object that was found. A state of an earlier release doesn't have it."""
        if not self._facts.tenant:
            self._facts.tenant = self.context.vendor.tenant

    def _require_absence(self) -> None:
        """Return if an object that was not found doesn't exist.

        Raises Denied or InProgress if that is not proved.
        """
        facts = self._facts
        vendor = self.context.vendor
        has_deleted = facts.deleted_by == vendor.principal
        if not facts.may_exist or has_deleted or getattr(self.handler, "ABSENCE_IS_SHOWN", False):
            return
        if facts.unrecorded:
            self._require_absence_without_state()
            return
        is_lost_create = facts.object_id is None and facts.lost_id is None
        if is_lost_create and facts.creator and facts.creator == vendor.creator:
            return  # who has created an object sees it
        if not facts.tenant:
            raise vendor.unseen(
                "the state was written by an earlier release, which did not record where the object is"
            )
        vendor.require_sight(self.spec)

    def _require_absence_without_state(self) -> None:
        """Return if an object whose state was lost doesn't exist. Raises Denied, InProgress or LakeferryError
        if it may exist.

        The other states say in which tenant it would be. A rollback also deletes what was never created,
        because the function could not write its state: then the table never had one.
        """
        vendor = self.context.vendor
        if self.lease.state.verb == DELETE and self.context.rolling_back():
            return
        tenants = self.lease.states.tenants()
        if not tenants:
            raise vendor.unseen(
                "the table has no state of it, nor of another object, so it isn't known where it would be"
            )
        require_tenant(vendor, tenants)
        vendor.require_sight(self.spec)

    def _find_or_create(self) -> Outputs | None:
        object_id = self._facts.object_id or self._find() or self._create()
        if not self._progress.applied:
            successor = self.handler.update(self.context, self.spec, object_id)
            if successor is not None:
                self._facts.object_id = successor
                return None
            self._progress.applied = True
        outputs = self.handler.is_ready(self.context, self.spec, object_id)
        if outputs is not None and self._facts.creates > 1:
            self._remove_duplicates(object_id)
        return outputs

    def _find(self) -> str | None:
        object_ids = self.handler.find_existing(self.context, self.spec, self._facts.lost_id)
        if not object_ids:
            return None
        self._facts.object_id = object_ids[0]
        self._facts.lost_id = None
        self._facts.attempted = False
        self._facts.absent_since = None
        self._facts.unrecorded = False
        self._facts.owned = True
        return object_ids[0]

    def _create(self) -> str:
        facts = self._facts
        vendor = self.context.vendor
        names_are_unique = vendor.NAMES_ARE_UNIQUE or getattr(self.handler, "NAMES_ARE_UNIQUE", False)
        if facts.may_exist and not names_are_unique:
            self._require_absence()
        self._rule_out_lost_create()
        facts.tenant = vendor.tenant
        facts.creator = vendor.creator
        facts.deleted_by = ""
        facts.unrecorded = False
        was_owned = facts.owned
        facts.attempted = True
        facts.lost_id = None
        facts.creates = facts.creates + 1
        self.lease.save()
        try:
            facts.object_id = self.handler.create(self.context, self.spec)
        except LakeferryError as error:
            may_have_happened = _may_have_happened(error)
            # An object may exist after a conflict too.
            facts.attempted = may_have_happened or isinstance(error, Conflict)
            if not may_have_happened:
                facts.owned = was_owned
            if not facts.attempted and not isinstance(error, RateLimited):
                facts.creates -= 1
            raise
        facts.attempted = False
        facts.owned = True
        self._progress.applied = True
        self.lease.save()
        return facts.object_id

    def _rule_out_lost_create(self) -> None:
        """Raises StillSearching until so much time has passed that an object from a lost create would be
        listed.
        """
        facts = self._facts
        if not facts.attempted and not facts.lost_id:
            return
        if facts.absent_since is None:
            facts.absent_since = self._now
        if self._now - facts.absent_since < ABSENCE_GAP:
            raise StillSearching(errors.VANISHED, "searching once more for the object")
        facts.attempted = False
        facts.absent_since = None
        facts.owned = False

    def _mark_lost(self) -> None:
        """Forget the id of a missing object.

        Unless Lakeferry itself deleted the object, keep the id for the next search.
        """
        self._facts.lost_id = None if self._progress.removing else self._facts.object_id
        self._facts.object_id = None
        if self._progress.removing:
            self._facts.owned = False
        self._progress.applied = self._progress.removing = False

    def _remove(self, needed: NeedsReplacement) -> None:
        """Delete an object that can't be repaired, so that the next call creates it again."""
        object_id = self._facts.object_id
        if object_id is None or not self._may_send_deletion():
            return
        before = self.context.previous
        spec = before if isinstance(needed, ReplacementRequired) and before is not None else self.spec
        self._progress.removing = True
        self._delete(attrs.evolve(self.context, deleting=True), spec, object_id, is_known=True)
        self._progress.deletion_sent_at = self._now

    def _delete(self, context: Context[Any], spec: Any, object_id: str, *, is_known: bool) -> None:
        """Delete an object that the login sees.

        The state says so first: the function may end before it gets the answer.
        """
        facts = self._facts
        before = self._facts.deleted_by
        if is_known and before != self.context.vendor.principal:
            facts.deleted_by = self.context.vendor.principal
            self.lease.save()
        try:
            self.handler.delete(context, spec, object_id)
        except LakeferryError as error:
            if not _may_have_happened(error):
                facts.deleted_by = before
            raise

    def _remove_duplicates(self, object_id: str) -> None:
        """Delete all objects but one: if several creates were sent, more than one may have taken effect."""
        context = attrs.evolve(self.context, deleting=True)  # so that all managed objects are listed
        for duplicate in self.handler.find_existing(context, self.spec, object_id):
            if duplicate != object_id:
                self.handler.delete(context, self.spec, duplicate)
        self._facts.creates = 1

    def _may_send_deletion(self) -> bool:
        deletion_sent_at = self._progress.deletion_sent_at
        return deletion_sent_at is None or self._now - deletion_sent_at >= REPEAT_GAP


def _may_have_happened(error: LakeferryError) -> bool:
    """Return whether a call that failed with this error may have had an effect."""
    return isinstance(error, Transient) and not isinstance(error, InProgress | NotSent | RateLimited)
