"""Bringing one object to where it shall be: there and as wanted, or gone. Each call does what can be done now.

What an answer left open is settled by looking, never by guessing: an object counts as absent when it was looked for twice,
and, where a create was sent whose outcome is not known, when the second look came a good while after the first.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from lambdas.custom_resources.state import Facts, Lease, Progress
from lambdas.shared import errors
from lambdas.shared.errors import (
    Conflict,
    ContainerGone,
    LakeferryError,
    NotYet,
    Outdated,
    RateLimited,
    Spoiled,
    Transient,
    Vanished,
)
from lambdas.shared.http_types import NotSent
from lambdas.shared.resource import Context, Kind, Outputs

#: Seconds after which a create whose answer was lost can't take effect any more, and lists show what it made.
ABSENCE_GAP: Final = 60.0
#: Seconds after which a delete is asked for again, and between two attempts to cure an object by making it anew.
REPEAT_GAP: Final = 120.0
_LOOKS: Final = 4


class Looking(NotYet):
    """Nothing is known yet; looking goes on."""


@attrs.frozen
class Settlement:
    kind: Kind
    context: Context[Any]
    spec: Any
    lease: Lease

    def present(self) -> Outputs | None:
        """The outputs once the object is there, as wanted, and works; None while it comes into being."""
        try:
            return self._present()
        except ContainerGone:
            raise
        except Vanished as vanished:
            self._forget()
            raise Looking(vanished.row, vanished.what) from None
        except Spoiled as spoiled:
            self._remove(spoiled)
            raise

    def absent(self) -> bool:
        """True once the object is gone for sure."""
        for _ in range(_LOOKS):
            found = self.kind.adopt(self.context, self.spec, self._facts.object_id or self._facts.lost_id)
            if found:
                self._progress.empty_looks, self._facts.absent_since = 0, None
                if not self._may_ask_again():
                    return False
                for object_id in found:
                    self.kind.delete(self.context, self.spec, object_id)
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
    def _facts(self) -> Facts:
        return self.lease.row.facts

    @property
    def _progress(self) -> Progress:
        return self.lease.row.progress

    @property
    def _now(self) -> float:
        return self.context.clock.time()

    def _present(self) -> Outputs | None:
        object_id = self._facts.object_id or self._find() or self._create()
        if not self._progress.settled:
            self.kind.update(self.context, self.spec, object_id)
            self._progress.settled = True
        outputs = self.kind.is_ready(self.context, self.spec, object_id)
        if outputs is not None and self._facts.creates > 1:
            self._remove_doubles(object_id)
        return outputs

    def _find(self) -> str | None:
        found = self.kind.adopt(self.context, self.spec, self._facts.lost_id)
        if not found:
            return None
        self._facts.object_id, self._facts.lost_id = found[0], None
        self._facts.attempted, self._facts.absent_since = False, None
        return found[0]

    def _create(self) -> str:
        self._rule_out_lost_create()
        facts = self._facts
        facts.attempted, facts.lost_id, facts.creates = True, None, facts.creates + 1
        self.lease.save()
        try:
            facts.object_id = self.kind.create(self.context, self.spec)
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

    def _remove(self, spoiled: Spoiled) -> None:
        """Take away what can't be cured, so that the next call makes it anew."""
        object_id = self._facts.object_id
        if object_id is None or not self._may_ask_again():
            return
        before = self.context.previous
        spec = before if isinstance(spoiled, Outdated) and before is not None else self.spec
        self._progress.removing = True
        self.kind.delete(attrs.evolve(self.context, deleting=True), spec, object_id)
        self._progress.asked_at = self._now

    def _remove_doubles(self, object_id: str) -> None:
        """Of several creates, more than one may have had its effect."""
        everything = attrs.evolve(self.context, deleting=True)
        for double in self.kind.adopt(everything, self.spec, object_id):
            if double != object_id:
                self.kind.delete(everything, self.spec, double)
        self._facts.creates = 1

    def _may_ask_again(self) -> bool:
        asked_at = self._progress.asked_at
        return asked_at is None or self._now - asked_at >= REPEAT_GAP


def _may_have_made(error: LakeferryError) -> bool:
    """Whether an object may exist after a create that ended so."""
    return isinstance(error, Conflict) or (isinstance(error, Transient) and not isinstance(error, NotYet | NotSent | RateLimited))
