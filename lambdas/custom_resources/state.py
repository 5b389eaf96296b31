"""The state of one resource that must outlive an invocation: which request is in force, and what is known of the object.

One DynamoDB item for each object that a stack may have. An item is written only over the version that was read, so two
invocations never both believe that it is theirs. Who works on an object holds the item's lease; a lease ends by itself when the
Lambda that took it can't be alive any more.

Events come twice, late and in the wrong order. The first event of a request takes the object over from the request before it,
which may do nothing more. A delete always may. A create or an update after a delete, and an update after a rollback, may come
too late: then CloudFormation is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import attrs
from botocore.exceptions import ClientError
from cattrs import Converter

from lambdas.custom_resources.request import DELETE, UPDATE, Request, Stacks
from lambdas.shared import errors
from lambdas.shared.aws import aws_call, error_code
from lambdas.shared.clock import Clock
from lambdas.shared.errors import InProgress, StaleRequest, Transient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEY_ATTRIBUTE: Final = "id"
EXPIRY_ATTRIBUTE: Final = "expires"


class Versioned(NamedTuple):
    """Version 0 stands for a document that doesn't exist."""

    document: dict[str, Any]
    version: int


class Documents(Protocol):
    def read(self, key: str) -> Versioned: ...

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        """Write as version `over` + 1; False where somebody else has written since. May be removed after `expires`."""


@attrs.frozen
class DynamoDocuments:
    """The table's partition key is a string called `id`; its time-to-live attribute is `expires`."""

    client: DynamoDBClient
    table: str

    def read(self, key: str) -> Versioned:
        with aws_call(f"reading table {self.table}"):
            response = self.client.get_item(TableName=self.table, Key={KEY_ATTRIBUTE: {"S": key}}, ConsistentRead=True)
        item = response.get("Item")
        return Versioned(json.loads(item["document"]["S"]), int(item["version"]["N"])) if item else Versioned({}, 0)

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        item = {
            KEY_ATTRIBUTE: {"S": key},
            "version": {"N": str(over + 1)},
            "document": {"S": json.dumps(document)},
            **({EXPIRY_ATTRIBUTE: {"N": str(int(expires))}} if expires is not None else {}),
        }
        condition: dict[str, Any] = {"ConditionExpression": f"attribute_not_exists({KEY_ATTRIBUTE})"}
        if over:
            condition = {"ConditionExpression": "version = :over", "ExpressionAttributeValues": {":over": {"N": str(over)}}}
        with aws_call(f"writing table {self.table}"):
            try:
                self.client.put_item(TableName=self.table, Item=item, **condition)
            except ClientError as error:
                if error_code(error) == "ConditionalCheckFailedException":
                    return False
                raise
        return True


#: How long the row of a deleted object stays, as a tombstone. Lambda delivers an event up to six hours late.
TOMBSTONE_SECONDS: Final = 7 * 86400.0
_RACES: Final = 20
_CONVERTER: Final = Converter()


@attrs.define
class KnownObject:
    """What is known of the object, whoever asked for it. `attempted`: a create was sent, and its outcome is not known."""

    object_id: str | None = None
    lost_id: str | None = None
    attempted: bool = False
    absent_since: float | None = None
    creates: int = 0
    notes: dict[str, str] = attrs.field(factory=dict)


@attrs.define
class RequestProgress:
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
class ResourceState:
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
    facts: KnownObject = attrs.field(factory=KnownObject)
    progress: RequestProgress = attrs.field(factory=RequestProgress)


@attrs.frozen
class StateStore:
    documents: Documents
    clock: Clock

    def read(self, key: str) -> ResourceState | None:
        stored = self.documents.read(key)
        return _CONVERTER.structure(stored.document, ResourceState) if stored.version else None

    def change(self, key: str, change: Callable[[ResourceState | None], ResourceState]) -> ResourceState:
        """Apply `change` to the row as it is now; it may be called several times. Nothing is written where it changes nothing."""
        for _ in range(_RACES):
            stored = self.documents.read(key)
            row = _CONVERTER.structure(stored.document, ResourceState) if stored.version else None
            changed = change(row)
            if changed is row:
                return changed
            gone = changed.verb == DELETE and changed.progress.done
            expires = self.clock.time() + TOMBSTONE_SECONDS if gone else None
            if self.documents.write(key, _CONVERTER.unstructure(changed), stored.version, expires):
                return changed
        raise Transient(errors.STORAGE, "too many others write the same row")

    def lease(self, key: str, request_id: str, owner: str, until: float) -> Lease:
        """Raises StaleRequest where another request has its turn, InProgress where another invocation is at work."""

        def take(row: ResourceState | None) -> ResourceState:
            if row is None or row.request_id != request_id:
                raise StaleRequest(errors.OVERTAKEN, f"request {request_id} is no longer in force")
            if row.lease_owner not in ("", owner) and row.lease_until > self.clock.time():
                raise InProgress(errors.WAITING, "another invocation works on it")
            return attrs.evolve(row, lease_owner=owner, lease_until=until)

        return Lease(self, key, owner, self.change(key, take))


@attrs.define
class Lease:
    """The right to work on an object. Facts and progress are changed in place, and kept by `save` or `release`."""

    ledger: StateStore
    key: str
    owner: str
    state: ResourceState

    def save(self) -> None:
        """Raises StaleRequest where a later request has come; what is known of the object is kept nevertheless."""
        self._keep(self.owner)

    def release(self) -> None:
        self._keep("")

    def _keep(self, owner: str) -> None:
        mine = self.state

        def merge(stored: ResourceState | None) -> ResourceState:
            if stored is None or stored.lease_owner != self.owner:
                raise StaleRequest(errors.OVERTAKEN, "the lease has passed to another invocation")
            progress = mine.progress if stored.request_id == mine.request_id else stored.progress
            return attrs.evolve(stored, facts=mine.facts, progress=progress, lease_owner=owner)

        kept = self.ledger.change(self.key, merge)
        if kept.request_id != mine.request_id:
            raise StaleRequest(errors.OVERTAKEN, f"request {kept.request_id} has taken the place of {mine.request_id}")
        self.state = kept


#: How many requests before the current one are known by their ids.
_REMEMBERED = 50


def accept_request(row: ResourceState | None, request: Request, *, name: str, now: float, stacks: Stacks) -> ResourceState:
    """The row with `request` in force. Raises StaleRequest where its turn is over, or never came.

    CloudFormation sends a request that failed again with the same id when the deployment is retried: its waiting starts afresh.
    """
    started = request.started or now
    if row is not None and row.request_id == request.id:
        is_same_try = started <= row.since or not request.started
        return row if is_same_try else attrs.evolve(row, since=started, progress=RequestProgress())
    if row is not None and request.id in row.past:
        raise StaleRequest(errors.OVERTAKEN, f"request {request.id} was answered before")
    backward = request.verb == UPDATE and not stacks.is_forward(request.stack_id)
    if row is None:
        return ResourceState(request.id, request.verb, request.mark, started, name, backward=backward)
    if request.verb != DELETE:
        _require_timely(row, request, backward, stacks)
    return attrs.evolve(
        row,
        request_id=request.id,
        verb=request.verb,
        mark=request.mark,
        since=started,
        past=[*row.past, row.request_id][-_REMEMBERED:],
        backward=backward,
        progress=RequestProgress(),
    )


def _require_timely(row: ResourceState, request: Request, backward: bool, stacks: Stacks) -> None:
    if row.verb == DELETE and not stacks.is_creating(request.stack_id, request.logical_id):
        raise StaleRequest(errors.OVERTAKEN, f"{request.verb} came after the delete, and CloudFormation no longer waits for it")
    # A rollback that is tried again wants the same as the one before; a forward update that comes late wants something else.
    if row.backward and backward and row.mark != request.mark:
        raise StaleRequest(errors.OVERTAKEN, "an update came after its own rollback")
