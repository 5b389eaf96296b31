"""The state of a resource between invocations: which request is in force, and what is known about the object.

There is one DynamoDB item for each object that a stack may have. An item is written only if it still has the
version that was read, so two invocations never both own it. An invocation that works on an object holds the
item's lease. A lease expires when the invocation that took it can't be running any more.

Events may arrive twice, late and in the wrong order. When the first event of a request arrives, the request
before it can do nothing more. A delete is always accepted. A create or an update that arrives after a delete,
and an update that arrives after a rollback, may be too late: the stack's status in CloudFormation then
decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import attrs
from botocore.exceptions import ClientError
from cattrs import Converter

from lambdas import contract
from lambdas.custom_resources.request import DELETE, UPDATE, Request, Stacks
from lambdas.shared import errors
from lambdas.shared.aws import read_error_code, translate_aws_errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import InProgress, LakeferryError, StaleRequest, Transient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class Versioned(NamedTuple):
    """Version 0 stands for a document that doesn't exist."""

    document: dict[str, Any]
    version: int


class Documents(Protocol):
    def read(self, key: str) -> Versioned: ...

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        """Write the document as version `over` + 1. Return False if another writer was faster.

        The document may be removed after `expires`, in seconds since 1970.
        """

    def read_all(self) -> Iterator[dict[str, Any]]:
        """Yield all documents."""


@attrs.frozen
class DynamoDocuments:
    """The table's partition key is a string called `id`; its time-to-live attribute is `expires`."""

    client: DynamoDBClient
    table: str

    def read(self, key: str) -> Versioned:
        with translate_aws_errors(f"reading table {self.table}"):
            response = self.client.get_item(
                TableName=self.table, Key={contract.STATE_KEY: {"S": key}}, ConsistentRead=True
            )
        item = response.get("Item")
        return (
            Versioned(json.loads(item["document"]["S"]), int(item["version"]["N"]))
            if item
            else Versioned({}, 0)
        )

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        item = {
            contract.STATE_KEY: {"S": key},
            "version": {"N": str(over + 1)},
            "document": {"S": json.dumps(document)},
            **({contract.STATE_EXPIRY: {"N": str(int(expires))}} if expires is not None else {}),
        }
        condition: dict[str, Any] = {"ConditionExpression": f"attribute_not_exists({contract.STATE_KEY})"}
        if over:
            condition = {
                "ConditionExpression": "version = :over",
                "ExpressionAttributeValues": {":over": {"N": str(over)}},
            }
        with translate_aws_errors(f"writing table {self.table}"):
            try:
                self.client.put_item(TableName=self.table, Item=item, **condition)
            except ClientError as error:
                if read_error_code(error) == "ConditionalCheckFailedException":
                    return False
                raise
        return True

    def read_all(self) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            with translate_aws_errors(f"reading table {self.table}"):
                page = self.client.scan(TableName=self.table, ConsistentRead=True, **start)
            for item in page.get("Items", []):
                yield json.loads(item["document"]["S"])
            if not page.get("LastEvaluatedKey"):
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


#: Seconds for which the item of a deleted object is kept, as a tombstone. Lambda may deliver an event up to
#: six hours late.
TOMBSTONE_SECONDS: Final = 7 * 86400.0
_WRITE_ATTEMPTS: Final = 20


@attrs.define
class KnownObject:
    """What is known about the object, over all requests. `attempted`: a create was sent, and its outcome is
    not known.

    `tenant` is the vendor's organization or account in which the object is, `creator` the login that created
    it, as the vendor's client names them; both are empty in a state that an earlier release wrote.
    `deleted_by` is the login that saw the object and sent a delete that was not refused; "" if there was
    none. `unrecorded`: CloudFormation had the object before the table had a state of it, so the state was
    lost, and it is not known what it said. `forgotten`: when and why a person declared that the object is
    gone. `owned`: the object is this resource's if it exists, because a create that may have made it was
    sent. It is never concluded from a search that found nothing: somebody else may create an object of that
    name after it. `removed_own`: the last delete removed an object that was the resource's own.
    """

    object_id: str | None = None
    lost_id: str | None = None
    tenant: str = ""
    creator: str = ""
    attempted: bool = False
    deleted_by: str = ""
    unrecorded: bool = False
    forgotten: str = ""
    owned: bool = False
    removed_own: bool = False
    absent_since: float | None = None
    creates: int = 0
    notes: dict[str, str] = attrs.field(factory=dict)

    @property
    def may_exist(self) -> bool:
        """Return whether a create may have been sent that had an effect.

        The state is written before each create is sent.
        """
        return bool(self.object_id or self.lost_id or self.attempted or self.unrecorded)

    def forget(self) -> None:
        """Forget the object. Its tenant is forgotten too: the next object may be in another one."""
        self.object_id = self.lost_id = self.absent_since = None
        self.attempted = self.unrecorded = self.owned = False
        self.tenant = self.creator = self.deleted_by = self.forgotten = ""
        self.notes.clear()


def _read_known(document: dict[str, Any], _: type) -> KnownObject:
    """Return the facts.

    A release before `owned` stored an id only of an object that its resource had created.
    """
    was_created = any(document.get(name) for name in ("object_id", "lost_id", "attempted"))
    return _PLAIN.structure({"owned": was_created, **document}, KnownObject)


_PLAIN: Final = Converter()
_CONVERTER: Final = Converter()
_CONVERTER.register_structure_hook(KnownObject, _read_known)


@attrs.define
class RequestProgress:
    """The progress of one request. Times are seconds since 1970, `refused_since` has one for each error."""

    done: bool = False
    applied: bool = False
    removing: bool = False
    deletion_sent_at: float | None = None
    empty_searches: int = 0
    not_before: float = 0.0
    failed_since: float | None = None
    refused_since: dict[str, float] = attrs.field(factory=dict)


@attrs.frozen
class ResourceState:
    """`past` has the ids of the requests that a later one has replaced.

    `given` has the properties of the request in force, with all references resolved: commands find the object
    by them. It is empty in a state that an earlier release wrote, as `fingerprint_before` is, the hash of the
    properties from which the request in force came.
    """

    request_id: str
    verb: str
    fingerprint: str
    since: float
    name: str
    past: list[str] = attrs.field(factory=list)
    given: dict[str, Any] = attrs.field(factory=dict)
    fingerprint_before: str = ""
    backward: bool = False
    lease_owner: str = ""
    lease_until: float = 0.0
    facts: KnownObject = attrs.field(factory=KnownObject)
    progress: RequestProgress = attrs.field(factory=RequestProgress)


@attrs.frozen
class StateStore:
    documents: Documents
    clock: Clock

    def read(self, key: str) -> ResourceState | None:
        stored = self.documents.read(key)
        return _CONVERTER.structure(stored.document, ResourceState) if stored.version else None

    def read_all(self) -> Iterator[ResourceState]:
        """Yield the state of each object, also those of objects that were deleted in the last days."""
        for document in self.documents.read_all():
            yield _CONVERTER.structure(document, ResourceState)

    def tenants(self) -> frozenset[str]:
        """Return the organizations or accounts of the table's objects; none if no state names one."""
        return frozenset(row.facts.tenant for row in self.read_all() if row.facts.tenant)

    def change(self, key: str, change: Callable[[ResourceState | None], ResourceState]) -> ResourceState:
        """Apply `change` to the current row, again if another writer was faster.

        If it returns the same row, write nothing.
        """
        for _ in range(_WRITE_ATTEMPTS):
            stored = self.documents.read(key)
            row = _CONVERTER.structure(stored.document, ResourceState) if stored.version else None
            changed = change(row)
            if changed is row:
                return changed
            is_gone = changed.verb == DELETE and changed.progress.done
            expires = self.clock.time() + TOMBSTONE_SECONDS if is_gone else None
            if self.documents.write(key, _CONVERTER.unstructure(changed), stored.version, expires):
                return changed
        raise Transient(errors.AWS_REFUSED, "too many other invocations write the same item")

    def lease(self, key: str, request_id: str, owner: str, until: float) -> Lease:
        """Take the lease.

        Raises StaleRequest if another request is in force, InProgress if another invocation has the lease.
        """

        def take(row: ResourceState | None) -> ResourceState:
            if row is None or row.request_id != request_id:
                raise StaleRequest(errors.OVERTAKEN, f"request {request_id} is no longer in force")
            if row.lease_owner not in ("", owner) and row.lease_until > self.clock.time():
                raise InProgress(errors.WAITING, "another invocation is working on it")
            return attrs.evolve(row, lease_owner=owner, lease_until=until)

        return Lease(self, key, owner, self.change(key, take))


@attrs.define
class Lease:
    """The right to work on an object.

    The caller changes facts and progress in place; `save` and `release` write them.
    """

    states: StateStore
    key: str
    owner: str
    state: ResourceState

    def save(self) -> None:
        """Save the state.

        Raises StaleRequest if a later request is in force; the object's facts are saved even then.
        """
        self._write(self.owner)

    def claim(self) -> None:
        """Save that a create is being sent. Raises what `save` raises; the create must not be sent then."""
        was_owned = self.state.facts.owned
        self.state.facts.owned = True
        try:
            self.save()
        except LakeferryError:
            self.state.facts.owned = was_owned
            raise

    def release(self) -> None:
        self._write("")

    def _write(self, owner: str) -> None:
        state = self.state

        def merge(stored: ResourceState | None) -> ResourceState:
            if stored is not None:
                progress = state.progress if stored.request_id == state.request_id else stored.progress
                merged = attrs.evolve(stored, facts=state.facts, progress=progress, lease_owner=owner)
                if stored.lease_owner == self.owner:
                    return merged
                if merged == stored:  # the release was written before, and its answer was lost
                    return stored
            raise StaleRequest(errors.OVERTAKEN, "the lease has passed to another invocation")

        latest = self.states.change(self.key, merge)
        if latest.request_id != state.request_id:
            raise StaleRequest(errors.OVERTAKEN, f"request {latest.request_id} replaced {state.request_id}")
        self.state = latest


#: Number of earlier requests whose ids are kept.
_REMEMBERED = 50


def accept_request(
    row: ResourceState | None,
    request: Request,
    *,
    name: str,
    now: float,
    stacks: Stacks,
    is_known: bool = False,
) -> ResourceState:
    """Return the row with `request` in force. Raises StaleRequest if a later request was accepted before.

    `is_known`: CloudFormation has an object with this id, so there should be a row.
    If a deployment is retried, a failed request comes again with the same id. Its timeout then starts again.
    """
    started = request.started or now
    if row is not None and row.request_id == request.id:
        is_same_try = started <= row.since or not request.started
        return row if is_same_try else attrs.evolve(row, since=started, progress=RequestProgress())
    if row is not None and request.id in row.past:
        raise StaleRequest(errors.OVERTAKEN, f"request {request.id} was answered before")
    backward = request.verb == UPDATE and not stacks.is_forward(request.stack_id)
    if row is None:
        return ResourceState(
            request.id,
            request.verb,
            request.fingerprint,
            started,
            name,
            given=dict(request.given),
            fingerprint_before=request.fingerprint_before,
            backward=backward,
            facts=KnownObject(unrecorded=is_known),
        )
    if request.verb != DELETE:
        _require_timely(row, request, backward, stacks)
    return attrs.evolve(
        row,
        request_id=request.id,
        verb=request.verb,
        fingerprint=request.fingerprint,
        since=started,
        past=[*row.past, row.request_id][-_REMEMBERED:],
        given=dict(request.given),
        fingerprint_before=request.fingerprint_before,
        backward=backward,
        progress=RequestProgress(),
    )


def remember_refused(row: ResourceState | None, request: Request) -> ResourceState:
    """Return the row with a request that came too late among those that are refused from now on."""
    if row is None:
        raise StaleRequest(
            errors.OVERTAKEN, f"the state that request {request.id} came too late for has expired"
        )
    if request.id in (row.request_id, *row.past):
        return row
    return attrs.evolve(row, past=[*row.past, request.id][-_REMEMBERED:])


def _require_timely(row: ResourceState, request: Request, backward: bool, stacks: Stacks) -> None:
    if row.verb == DELETE and not stacks.is_creating(request.stack_id, request.logical_id):
        raise StaleRequest(
            errors.OVERTAKEN,
            f"{request.verb} came after the delete, and CloudFormation no longer waits for it",
        )
    # A repeated rollback has the same properties as the one before; a late forward update has different ones.
    if row.backward and backward and row.fingerprint != request.fingerprint:
        raise StaleRequest(errors.OVERTAKEN, "an update came after its own rollback")
    if backward and not row.backward and _is_late_update(row, request):
        raise StaleRequest(errors.OVERTAKEN, "an update came after its stack had begun to roll back")


def _is_late_update(row: ResourceState, request: Request) -> bool:
    """Return whether an update that arrives during a rollback is the one that failed, not its rollback.

    The framework can report a failure while its call of this function is still on its way. If that call were
    taken for the rollback, the rollback itself would be refused. The failed update begins with the properties
    in force. The rollback of an accepted update begins there too, but restores the properties before it.
    """
    begins_here = request.fingerprint_before == row.fingerprint
    changes_nothing = request.fingerprint == row.fingerprint
    is_rollback = row.fingerprint_before in ("", request.fingerprint)
    return begins_here and not changes_nothing and not is_rollback
