"""The lifecycle of every custom resource, behind CDK's provider framework.

`on_event` checks the properties and names the object. It calls neither AWS nor a vendor, so it fails only for a mistake in the
properties: the framework sends no delete after a create that failed in on_event.
`is_complete` does the work, some or all of it in each call, and raises only errors that waiting can't resolve.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.custom_resources import reconcile, registry, state
from lambdas.custom_resources.reconcile import Reconciler
from lambdas.custom_resources.registry import ResourceType
from lambdas.custom_resources.request import (
    DELETE,
    DISCARD,
    STARTED,
    UPDATE,
    Identity,
    Request,
    Stacks,
    generation_of,
    is_replaced,
    parse_physical_id,
    parse_stack_arn,
    read_request,
    resource_uid,
)
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
#: Seconds by which a lease outlasts the work: Lambda has then ended the process, and its last call has arrived.
_LEASE_AFTERLIFE: Final = 60.0
_DOING: Final = {"Create": "creating", "Update": "updating", "Delete": "deleting"}


@attrs.frozen
class Deployment:
    """The parts of names that are the same for all resources."""

    project: str
    stage: str


def on_event(event: Mapping[str, Any], now: float, types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES) -> dict[str, Any]:
    """Name the resource. `now` is in seconds since 1970. Raises BadProperties, and LakeferryError for an invalid event."""
    request = read_request(event)
    with _named(request):
        handler = registry.find(request.kind, types).handler
        if request.verb == DELETE:
            return {"PhysicalResourceId": request.physical_id, STARTED: now}
        spec = parse(handler.PROPERTIES, request.given, strict=True)
        target, discard = _targets(request, handler, _previous(request, handler.PROPERTIES), spec)
        return {"PhysicalResourceId": str(target), STARTED: now, DISCARD: str(discard or "")}


@attrs.frozen
class Lifecycle:
    """`vendors` create a vendor's client when it is first needed. `deadline` is the end of this invocation's work."""

    deployment: Deployment
    states: StateStore
    stacks: Stacks
    secrets: SecretStore
    vendors: Mapping[str, Callable[[], Any]]
    deadline: Deadline
    log: Log
    types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES

    def is_complete(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Work on a request. IsComplete is False for unfinished work and temporary errors; all others are raised."""
        request = read_request(event)
        target = self._to_delete(request) if request.verb == DELETE else request.identity
        if target is None and request.verb == DELETE:
            return _DONE
        if target is None:
            raise LakeferryError(errors.FOREIGN, f"{request.physical_id!r} is not the id that was given to {request.logical_id}")
        try:
            with _named(request):
                return self._under_lease(request, target)
        except Transient as error:
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING
        except Denied as error:
            # From the state table or the stack. What vendors deny is handled in `_advance`, where the resource's state is known.
            if error.row is not errors.STORAGE or self.deadline.clock.time() - request.started >= error.patience:
                raise
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING

    def _under_lease(self, request: Request, target: Identity) -> dict[str, Any]:
        self._accept(request, target)
        if discarded := parse_physical_id(request.discard):
            self._accept(attrs.evolve(request, verb=DELETE), discarded)
        lease = self._lease(request, target)
        try:
            outputs = self._advance(request, lease)
            lease.state.progress.done = outputs is not None
        finally:
            self._release(lease)
        if outputs is None:
            return _WAITING
        return _DONE if request.verb == DELETE else {**_DONE, "Data": dict(outputs)}

    def _advance(self, request: Request, lease: Lease) -> Outputs | None:
        """Return the outputs when all is done, None while work goes on."""
        now = self.deadline.clock.time
        limit = registry.find(request.kind, self.types).handler.TIMEOUT_SECONDS
        if now() < lease.state.progress.not_before:
            return None
        try:
            outputs = self._settle(request, lease)
        except LakeferryError as error:
            reconcile.check_retry_budget(error, lease.state, now(), limit)
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return None
        if outputs is None:
            reconcile.check_slow(lease.state, now(), limit)
        return outputs

    def _settle(self, request: Request, lease: Lease) -> Outputs | None:
        if request.verb == DELETE:
            if lease.state.progress.done:
                return {}
            return {} if self._reconciler(request, lease, deleting=True).ensure_absent() else None
        outputs = self._reconciler(request, lease).ensure_present()
        discarded = parse_physical_id(request.discard)
        if outputs is not None and discarded and not self._is_discarded(request, discarded):
            return None
        return outputs

    def _is_discarded(self, request: Request, target: Identity) -> bool:
        """Delete a replacement that was rolled back before CloudFormation knew its id. Return whether it is gone."""
        undone = attrs.evolve(request, verb=DELETE, given=request.before)
        lease = self._lease(request, target)
        try:
            gone = lease.state.progress.done or self._reconciler(undone, lease, deleting=True).ensure_absent()
            lease.state.progress.done = gone
            return gone
        finally:
            self._release(lease)

    def _reconciler(self, request: Request, lease: Lease, *, deleting: bool = False) -> Reconciler:
        registered = registry.find(request.kind, self.types)
        context = Context(
            vendor=self.vendors[registered.vendor](),
            name=lease.state.name,
            secrets=self.secrets,
            clock=self.deadline.clock,
            notes=lease.state.facts.notes,
            previous=_previous(request, registered.handler.PROPERTIES),
            deleting=deleting,
            resource_uid=resource_uid(request.stack_id, request.logical_id),
            rolling_back=lambda: self.stacks.is_rolling_back(request.stack_id),
        )
        return Reconciler(registered.handler, context, parse(registered.handler.PROPERTIES, request.given, strict=False), lease)

    def _to_delete(self, request: Request) -> Identity | None:
        """Return the object to delete, or None if the id is not ours and the properties could never have created anything."""
        if request.identity:
            return request.identity
        handler = registry.find(request.kind, self.types).handler
        try:
            spec = parse(handler.PROPERTIES, request.given, strict=False)
        except BadProperties:
            return None
        return Identity(request.kind, request.logical_id, generation_of(handler, spec))

    def _accept(self, request: Request, target: Identity) -> None:
        name = self._name(request, target)
        now = self.deadline.clock.time()
        self.states.change(
            _key(request, target),
            lambda row: state.accept_request(row, request, name=name, now=now, stacks=self.stacks),
        )

    def _name(self, request: Request, target: Identity) -> str:
        account, region, stack = parse_stack_arn(request.stack_id)
        return contract.object_name(
            project=self.deployment.project,
            stage=self.deployment.stage,
            region=region,
            account=account,
            stack=stack,
            logical_id=target.logical_id,
            generation=target.generation,
        )

    def _lease(self, request: Request, target: Identity) -> Lease:
        until = self.deadline.at + _LEASE_AFTERLIFE
        return self.states.lease(_key(request, target), request.id, uuid.uuid4().hex, until)

    def _release(self, lease: Lease) -> None:
        """Release the lease. If that fails, it expires; the work is done anyway."""
        try:
            lease.release()
        except Transient as error:
            self.log.error("lease not released", code=error.row.code, reason=error.what)


@contextmanager
def _named(request: Request) -> Iterator[None]:
    """Add operation, resource type and resource to the message of an error."""
    try:
        yield
    except LakeferryError as error:
        error.doing = f"{_DOING[request.verb]} {request.kind} {request.logical_id}: "
        raise


def _targets(
    request: Request, handler: ResourceHandler, before: Properties[Any] | None, spec: Properties[Any]
) -> tuple[Identity, Identity | None]:
    """Return the object that should exist, and one unknown to CloudFormation that should not."""
    wanted = Identity(request.kind, request.logical_id, generation_of(handler, spec))
    current = request.identity
    if request.verb != UPDATE or current is None:
        return wanted, None
    if before is None or not is_replaced(handler, before, spec):
        return current, None
    # A rollback to the object that CloudFormation still has: the update to the other one failed.
    return wanted, attrs.evolve(wanted, generation=generation_of(handler, before)) if wanted == current else None


def _previous(request: Request, spec: type[Properties[Any]]) -> Properties[Any] | None:
    try:
        return parse(spec, request.before, strict=False) if request.verb == UPDATE else None
    except BadProperties:
        return None


def _key(request: Request, target: Identity) -> str:
    return f"{request.stack_id}|{target}"
