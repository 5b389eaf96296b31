"""What every kind of resource goes through, behind CDK's provider framework.

`on_event` checks the properties and names the object. It asks neither AWS nor a vendor, so it fails only for a mistake in the
properties: the framework drops the delete that follows a create that failed here.
`is_complete` does the work, some or all of it each time it is called, and raises only what no waiting can cure.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.custom_resources import reconcile, registry, request, state
from lambdas.custom_resources.reconcile import Reconciler
from lambdas.custom_resources.registry import ResourceType
from lambdas.custom_resources.request import DELETE, UPDATE, Identity, Request, Stacks
from lambdas.custom_resources.state import Lease, StateStore
from lambdas.shared import errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import BadProperties, Denied, LakeferryError, Transient
from lambdas.shared.log import Log
from lambdas.shared.properties import Properties, parse
from lambdas.shared.resource import Context, Outputs, ResourceHandler
from lambdas.shared.secrets import SecretStore

_WAITING: Final[dict[str, Any]] = {"IsComplete": False}
_DONE: Final[dict[str, Any]] = {"IsComplete": True}
#: Seconds that a lease outlives the work: until Lambda ends the process, and until what it sent last has arrived.
_LEASE_AFTERLIFE: Final = 60.0
_DOING: Final = {"Create": "creating", "Update": "updating", "Delete": "deleting"}


@attrs.frozen
class Deployment:
    """What names are made of."""

    project: str
    stage: str


def on_event(event: Mapping[str, Any], now: float, types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES) -> dict[str, Any]:
    """`now` is in seconds since 1970. Raises BadProperties, and LakeferryError for an event that isn't ours."""
    asked = request.read_request(event)
    with _named(asked):
        handler = registry.find(asked.kind, types).handler
        if asked.verb == DELETE:
            return {"PhysicalResourceId": asked.physical_id, request.STARTED: now}
        spec = parse(handler.PROPERTIES, asked.given, strict=True)
        target, discard = _targets(asked, handler, _previous(asked, handler.PROPERTIES), spec)
        return {"PhysicalResourceId": str(target), request.STARTED: now, request.DISCARD: str(discard or "")}


@attrs.frozen
class Lifecycle:
    """`vendors` make a vendor's client when it is needed. `deadline` is the end of this invocation's work."""

    deployment: Deployment
    ledger: StateStore
    stacks: Stacks
    secrets: SecretStore
    vendors: Mapping[str, Callable[[], Any]]
    deadline: Deadline
    log: Log
    types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES

    def is_complete(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Raises what the user must know of. Transient troubles and work that goes on are `IsComplete: False`."""
        asked = request.read_request(event)
        target = self._to_delete(asked) if asked.verb == DELETE else asked.identity
        if target is None and asked.verb == DELETE:
            return _DONE
        if target is None:
            raise LakeferryError(errors.FOREIGN, f"{asked.physical_id!r} is not the id that was given to {asked.logical_id}")
        try:
            with _named(asked):
                return self._under_lease(asked, target)
        except Transient as error:
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING
        except Denied as error:
            # The state table or the stack: what vendors refuse is weighed where the resource's state is known.
            if error.row is not errors.STORAGE or self.deadline.clock.time() - asked.started >= error.patience:
                raise
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING

    def _under_lease(self, asked: Request, target: Identity) -> dict[str, Any]:
        self._admit(asked, target)
        if discarded := request.parse_physical_id(asked.discard):
            self._admit(attrs.evolve(asked, verb=DELETE), discarded)
        lease = self._lease(asked, target)
        try:
            outputs = self._advance(asked, lease)
            lease.state.progress.done = outputs is not None
        finally:
            self._release(lease)
        if outputs is None:
            return _WAITING
        return _DONE if asked.verb == DELETE else {**_DONE, "Data": dict(outputs)}

    def _advance(self, asked: Request, lease: Lease) -> Outputs | None:
        """The outputs when all is done, None while it goes on."""
        now = self.deadline.clock.time
        limit = registry.find(asked.kind, self.types).handler.TIMEOUT_SECONDS
        if now() < lease.state.progress.not_before:
            return None
        try:
            outputs = self._settle(asked, lease)
        except LakeferryError as error:
            reconcile.check_retry_budget(error, lease.state, now(), limit)
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return None
        if outputs is None:
            reconcile.check_slow(lease.state, now(), limit)
        return outputs

    def _settle(self, asked: Request, lease: Lease) -> Outputs | None:
        if asked.verb == DELETE:
            if lease.state.progress.done:
                return {}
            return {} if self._reconciler(asked, lease, deleting=True).ensure_absent() else None
        outputs = self._reconciler(asked, lease).ensure_present()
        if outputs is not None and asked.discard and not self._is_discarded(asked, asked.discard):
            return None
        return outputs

    def _is_discarded(self, asked: Request, physical_id: str) -> bool:
        """Whether a replacement that was rolled back before CloudFormation knew of it is gone."""
        target = request.parse_physical_id(physical_id)
        if target is None:
            return True
        undone = attrs.evolve(asked, verb=DELETE, given=asked.before)
        lease = self._lease(asked, target)
        try:
            gone = lease.state.progress.done or self._reconciler(undone, lease, deleting=True).ensure_absent()
            lease.state.progress.done = gone
            return gone
        finally:
            self._release(lease)

    def _reconciler(self, asked: Request, lease: Lease, *, deleting: bool = False) -> Reconciler:
        registered = registry.find(asked.kind, self.types)
        context = Context(
            vendor=self.vendors[registered.vendor](),
            name=lease.state.name,
            secrets=self.secrets,
            clock=self.deadline.clock,
            notes=lease.state.facts.notes,
            previous=_previous(asked, registered.handler.PROPERTIES),
            deleting=deleting,
            origin=request.resource_uid(asked.stack_id, asked.logical_id),
            rolling_back=lambda: self.stacks.is_rolling_back(asked.stack_id),
        )
        return Reconciler(registered.handler, context, parse(registered.handler.PROPERTIES, asked.given, strict=False), lease)

    def _to_delete(self, asked: Request) -> Identity | None:
        """None where the id is not ours and the properties could never have made anything."""
        if asked.identity:
            return asked.identity
        handler = registry.find(asked.kind, self.types).handler
        try:
            spec = parse(handler.PROPERTIES, asked.given, strict=False)
        except BadProperties:
            return None
        return Identity(asked.kind, asked.logical_id, request.generation_of(handler, spec))

    def _admit(self, asked: Request, target: Identity) -> None:
        name = self._name(asked, target)
        now = self.deadline.clock.time()
        self.ledger.change(
            _key(asked, target),
            lambda row: state.accept_request(row, asked, name=name, now=now, stacks=self.stacks),
        )

    def _name(self, asked: Request, target: Identity) -> str:
        account, region, stack = request.parse_stack_arn(asked.stack_id)
        return contract.object_name(
            project=self.deployment.project,
            stage=self.deployment.stage,
            region=region,
            account=account,
            stack=stack,
            logical_id=target.logical_id,
            generation=target.generation,
        )

    def _lease(self, asked: Request, target: Identity) -> Lease:
        until = self.deadline.at + _LEASE_AFTERLIFE
        return self.ledger.lease(_key(asked, target), asked.id, uuid.uuid4().hex, until)

    def _release(self, lease: Lease) -> None:
        """A lease that can't be given back ends by itself; what was done is done."""
        try:
            lease.release()
        except Transient as error:
            self.log.error("lease not released", code=error.row.code, reason=error.what)


@contextmanager
def _named(asked: Request) -> Iterator[None]:
    """Errors that come out of here say which operation they ended, on what kind, and which resource."""
    try:
        yield
    except LakeferryError as error:
        error.doing = f"{_DOING[asked.verb]} {asked.kind} {asked.logical_id}: "
        raise


def _targets(
    asked: Request, handler: ResourceHandler, before: Properties | None, spec: Properties
) -> tuple[Identity, Identity | None]:
    """The object that shall be there, and one that CloudFormation doesn't know of and that shall go."""
    wanted = Identity(asked.kind, asked.logical_id, request.generation_of(handler, spec))
    current = asked.identity
    if asked.verb != UPDATE or current is None:
        return wanted, None
    if before is None or not request.is_replaced(handler, before, spec):
        return current, None
    # Back to the object that CloudFormation still has: the update to the other one never ended well.
    return wanted, attrs.evolve(wanted, generation=request.generation_of(handler, before)) if wanted == current else None


def _previous(asked: Request, spec: type[Properties]) -> Properties | None:
    try:
        return parse(spec, asked.before, strict=False) if asked.verb == UPDATE else None
    except BadProperties:
        return None


def _key(asked: Request, target: Identity) -> str:
    return f"{asked.stack_id}|{target}"
