"""The lifecycle of all custom resources, called by CDK's provider framework.

`on_event` checks the properties and names the object. It calls neither AWS nor a vendor, so it fails only if
the properties are wrong. That matters because the framework sends no delete after a create that failed in
on_event. `is_complete` does all or part of the work in each call, and raises only errors that waiting can't
resolve.
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
    CREATE,
    DELETE,
    DISCARD,
    STARTED,
    UPDATE,
    Identity,
    Request,
    Stacks,
    build_state_key,
    compute_generation,
    compute_resource_uid,
    is_replaced,
    parse_physical_id,
    parse_stack_arn,
    read_request,
)
from lambdas.custom_resources.state import Lease, StateStore
from lambdas.shared import errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import BadProperties, Denied, LakeferryError, StaleRequest, Transient
from lambdas.shared.log import Log
from lambdas.shared.properties import Properties, parse
from lambdas.shared.resource import Context, Outputs, ResourceHandler
from lambdas.shared.secrets import SecretStore

_WAITING: Final[dict[str, Any]] = {"IsComplete": False}
_DONE: Final[dict[str, Any]] = {"IsComplete": True}
#: Seconds from the deadline to the end of a lease. By then Lambda has ended the process, and its last call
#: has arrived.
_LEASE_MARGIN: Final = 60.0
_DOING: Final = {"Create": "creating", "Update": "updating", "Delete": "deleting"}


@attrs.frozen
class Deployment:
    """The parts of names that all resources have in common."""

    project: str
    stage: str


def on_event(
    event: Mapping[str, Any], now: float, types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES
) -> dict[str, Any]:
    """Name the resource.

    `now` is in seconds since 1970. Raises BadProperties, and LakeferryError for an invalid event.
    """
    request = read_request(event)
    with _name_errors(request):
        handler = registry.find(request.kind, types).handler
        if request.verb == DELETE:
            return {"PhysicalResourceId": request.physical_id, STARTED: now}
        spec = parse(handler.PROPERTIES, request.given, strict=True)
        target, discard = _choose_targets(
            request, handler, _parse_previous(request, handler.PROPERTIES), spec
        )
        return {"PhysicalResourceId": str(target), STARTED: now, DISCARD: str(discard or "")}


@attrs.frozen
class Lifecycle:
    """`vendors` has a function for each vendor that returns its client.

    This invocation's work ends at `deadline`.
    """

    deployment: Deployment
    states: StateStore
    stacks: Stacks
    secrets: SecretStore
    vendors: Mapping[str, Callable[[], Any]]
    deadline: Deadline
    log: Log
    types: Mapping[str, ResourceType] = registry.RESOURCE_TYPES

    def is_complete(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Work on a request.

        IsComplete is False for unfinished work and temporary errors; all other errors are raised.
        """
        request = read_request(event)
        target = self._to_delete(request) if request.verb == DELETE else request.identity
        if target is None and request.verb == DELETE:
            return _DONE
        if target is None:
            raise LakeferryError(
                errors.FOREIGN,
                f"{request.physical_id!r} is not the id that was given to {request.logical_id}",
            )
        try:
            with _name_errors(request):
                return self._work_under_lease(request, target)
        except Transient as error:
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING
        except Denied as error:
            # The state table or the stack denied access. A vendor's Denied is handled in `_advance`, which
            # knows the state.
            if (
                error.row is not errors.STORAGE
                or self.deadline.clock.time() - request.started >= error.patience
            ):
                raise
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return _WAITING

    def _work_under_lease(self, request: Request, target: Identity) -> dict[str, Any]:
        self._accept(request, target)
        if discarded := parse_physical_id(request.discard):
            self._accept(attrs.evolve(request, verb=DELETE), discarded)
        lease = self._take_lease(request, target)
        try:
            outputs = self._advance(request, lease)
            lease.state.progress.done = outputs is not None
        finally:
            self._release(lease)
        if outputs is None:
            return _WAITING
        return _DONE if request.verb == DELETE else {**_DONE, "Data": dict(outputs)}

    def _advance(self, request: Request, lease: Lease) -> Outputs | None:
        """Return the outputs when all work is done, None before."""
        now = self.deadline.clock.time
        limit = registry.find(request.kind, self.types).handler.TIMEOUT_SECONDS
        if now() < lease.state.progress.not_before:
            return None
        try:
            outputs = self._reconcile(request, lease)
        except LakeferryError as error:
            reconcile.check_retry_budget(error, lease.state, now(), limit)
            self.log.info("waiting", code=error.row.code, reason=error.what)
            return None
        if outputs is None:
            reconcile.check_slow(lease.state, now(), limit)
        return outputs

    def _reconcile(self, request: Request, lease: Lease) -> Outputs | None:
        if request.verb == DELETE:
            if lease.state.progress.done:
                return {}
            return {} if self._is_absent(request, lease) else None
        outputs = self._build_reconciler(request, lease).ensure_present()
        discarded = parse_physical_id(request.discard)
        if outputs is not None and discarded and not self._is_discarded(request, discarded):
            return None
        return outputs

    def _is_discarded(self, request: Request, target: Identity) -> bool:
        """Delete a replacement that was rolled back before CloudFormation knew its id.

        Return whether it is gone.
        """
        undone = attrs.evolve(request, verb=DELETE, given=request.before)
        lease = self._take_lease(request, target)
        try:
            gone = lease.state.progress.done or self._is_absent(undone, lease)
            lease.state.progress.done = gone
            return gone
        finally:
            self._release(lease)

    def _is_absent(self, request: Request, lease: Lease) -> bool:
        """Delete the object.

        Return whether it is gone: because it is proved, or because a person has declared it.
        """
        facts = lease.state.facts
        if facts.forgotten:
            known = facts.object_id or facts.lost_id or lease.state.name
            self.log.info("forgotten, not deleted", object=known, tenant=facts.tenant, reason=facts.forgotten)
            facts.forget()
            return True
        return self._build_reconciler(request, lease, deleting=True).ensure_absent()

    def _build_reconciler(self, request: Request, lease: Lease, *, deleting: bool = False) -> Reconciler:
        registered = registry.find(request.kind, self.types)
        context = Context(
            vendor=self.vendors[registered.vendor](),
            name=lease.state.name,
            secrets=self.secrets,
            clock=self.deadline.clock,
            notes=lease.state.facts.notes,
            previous=_parse_previous(request, registered.handler.PROPERTIES),
            deleting=deleting,
            resource_uid=compute_resource_uid(request.stack_id, request.logical_id),
            rolling_back=lambda: self.stacks.is_rolling_back(request.stack_id),
            claim=lease.claim,
            is_owned=lambda: lease.state.facts.owned,
        )
        return Reconciler(
            registered.handler,
            context,
            parse(registered.handler.PROPERTIES, request.given, strict=False),
            lease,
        )

    def _to_delete(self, request: Request) -> Identity | None:
        """Return the object to delete; None if the id isn't Lakeferry's and invalid properties can't have
        created anything.
        """
        if request.identity:
            return request.identity
        handler = registry.find(request.kind, self.types).handler
        try:
            spec = parse(handler.PROPERTIES, request.given, strict=False)
        except BadProperties:
            return None
        return Identity(request.kind, request.logical_id, compute_generation(handler, spec))

    def _accept(self, request: Request, target: Identity) -> None:
        name = self._build_name(request, target)
        is_known = request.verb != CREATE and request.identity == target
        now = self.deadline.clock.time()
        try:
            self.states.change(
                _build_key(request, target),
                lambda row: state.accept_request(
                    row, request, name=name, now=now, stacks=self.stacks, is_known=is_known
                ),
            )
        except StaleRequest:
            # It may be delivered again, when another request is in force that it would seem to follow.
            self.states.change(_build_key(request, target), lambda row: state.remember_refused(row, request))
            raise

    def _build_name(self, request: Request, target: Identity) -> str:
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

    def _take_lease(self, request: Request, target: Identity) -> Lease:
        until = self.deadline.at + _LEASE_MARGIN
        return self.states.lease(_build_key(request, target), request.id, uuid.uuid4().hex, until)

    def _release(self, lease: Lease) -> None:
        """Release the lease. A failure is only logged: the lease expires, and the work is done."""
        try:
            lease.release()
        except Transient as error:
            self.log.error("lease not released", code=error.row.code, reason=error.what)


@contextmanager
def _name_errors(request: Request) -> Iterator[None]:
    """Add the operation, the resource type and the logical id to the message of an error."""
    try:
        yield
    except LakeferryError as error:
        error.doing = f"{_DOING[request.verb]} {request.kind} {request.logical_id}: "
        raise


def _choose_targets(
    request: Request, handler: ResourceHandler, before: Properties[Any] | None, spec: Properties[Any]
) -> tuple[Identity, Identity | None]:
    """Return the object that should exist, and one that CloudFormation doesn't know of and that should be
    deleted.
    """
    wanted = Identity(request.kind, request.logical_id, compute_generation(handler, spec))
    current = request.identity
    if request.verb != UPDATE or current is None:
        return wanted, None
    if before is None or not is_replaced(handler, before, spec):
        return current, None
    # If both are the same, the replacement failed: this is the rollback to the object that CloudFormation
    # still has.
    return wanted, attrs.evolve(
        wanted, generation=compute_generation(handler, before)
    ) if wanted == current else None


def _parse_previous(request: Request, spec: type[Properties[Any]]) -> Properties[Any] | None:
    try:
        return parse(spec, request.before, strict=False) if request.verb == UPDATE else None
    except BadProperties:
        return None


def _build_key(request: Request, target: Identity) -> str:
    return build_state_key(request.stack_id, target)
