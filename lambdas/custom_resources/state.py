"""What must outlive an invocation: whose turn it is, and what is known of the object.

One row for each object that a stack may have. A row is written only over the version that was read, so two invocations
never both believe that it is theirs. Who works on an object holds the row's lease; a lease ends by itself when the Lambda
that took it can't be alive any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
from cattrs import Converter

from lambdas.custom_resources.documents import Documents
from lambdas.custom_resources.request import DELETE
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import NotYet, Overtaken, Transient

#: How long the row of a deleted object stays, as a tombstone. Lambda delivers an event up to six hours late.
TOMBSTONE_SECONDS: Final = 7 * 86400.0
_RACES: Final = 20
_CONVERTER: Final = Converter()


@attrs.define
class Facts:
    """What is known of the object, whoever asked for it. `attempted`: a create was sent, and its outcome is not known."""

    object_id: str | None = None
    lost_id: str | None = None
    attempted: bool = False
    absent_since: float | None = None
    creates: int = 0
    notes: dict[str, str] = attrs.field(factory=dict)


@attrs.define
class Progress:
    """How far one request has come. Times are seconds since 1970; `refused_since` is by the error's code."""

    done: bool = False
    settled: bool = False
    removing: bool = False
    asked_at: float | None = None
    empty_looks: int = 0
    not_before: float = 0.0
    faulty_since: float | None = None
    refused_since: dict[str, float] = attrs.field(factory=dict)


@attrs.frozen
class Row:
    """`past` are requests whose turn is over."""

    request_id: str
    verb: str
    mark: str
    since: float
    name: str
    past: list[str] = attrs.field(factory=list)
    backward: bool = False
    lease_owner: str = ""
    lease_until: float = 0.0
    facts: Facts = attrs.field(factory=Facts)
    progress: Progress = attrs.field(factory=Progress)


@attrs.frozen
class Ledger:
    documents: Documents
    clock: Clock

    def read(self, key: str) -> Row | None:
        found = self.documents.read(key)
        return _CONVERTER.structure(found.document, Row) if found.version else None

    def change(self, key: str, change: Callable[[Row | None], Row]) -> Row:
        """Apply `change` to the row as it is now; it may be called several times. Nothing is written where it changes nothing."""
        for _ in range(_RACES):
            found = self.documents.read(key)
            row = _CONVERTER.structure(found.document, Row) if found.version else None
            changed = change(row)
            if changed is row:
                return changed
            gone = changed.verb == DELETE and changed.progress.done
            expires = self.clock.time() + TOMBSTONE_SECONDS if gone else None
            if self.documents.write(key, _CONVERTER.unstructure(changed), found.version, expires):
                return changed
        raise Transient(errors.STORAGE, "too many others write the same row")

    def lease(self, key: str, request_id: str, owner: str, until: float) -> Lease:
        """Raises Overtaken where another request has its turn, NotYet where another invocation is at work."""

        def take(row: Row | None) -> Row:
            if row is None or row.request_id != request_id:
                raise Overtaken(errors.OVERTAKEN, f"request {request_id} is no longer in force")
            if row.lease_owner not in ("", owner) and row.lease_until > self.clock.time():
                raise NotYet(errors.WAITING, "another invocation works on it")
            return attrs.evolve(row, lease_owner=owner, lease_until=until)

        return Lease(self, key, owner, self.change(key, take))


@attrs.define
class Lease:
    """The right to work on an object. Facts and progress are changed in place, and kept by `save` or `release`."""

    ledger: Ledger
    key: str
    owner: str
    row: Row

    def save(self) -> None:
        """Raises Overtaken where a later request has come; what is known of the object is kept nevertheless."""
        self._keep(self.owner)

    def release(self) -> None:
        self._keep("")

    def _keep(self, owner: str) -> None:
        mine = self.row

        def merge(stored: Row | None) -> Row:
            if stored is None or stored.lease_owner != self.owner:
                raise Overtaken(errors.OVERTAKEN, "the lease has passed to another invocation")
            progress = mine.progress if stored.request_id == mine.request_id else stored.progress
            return attrs.evolve(stored, facts=mine.facts, progress=progress, lease_owner=owner)

        kept = self.ledger.change(self.key, merge)
        if kept.request_id != mine.request_id:
            raise Overtaken(errors.OVERTAKEN, f"request {kept.request_id} has taken the place of {mine.request_id}")
        self.row = kept
