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
from lambdas.custom_resources import reconcile, registry
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
from lambdas.custom_resources.state import (
    Lease,
    ResourceState,
    StateStore,
    accept_request,
    remember_refused,
)
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
        target = self._find_target(request)
        if target is None:
            return _DONE
        try:
            with _name_errors(request):
                return Task(self, request, target).work()
        except Transient as error:
            return self.wait(error)
        except Denied as error:
            # The state table or the stack denied access. A vendor's Denied is handled in `Task._advance`,
            # which knows the state.
            waited = self.deadline.clock.time() - request.started
            if error.kind is not errors.AWS_REFUSED or waited >= error.patience:
                raise
            return self.wait(error)

    def wait(self, error: LakeferryError) -> dict[str, Any]:
        """Log what the request waits for, and answer that it isn't complete."""
        self.log.info("waiting", code=error.kind.code, reason=error.what)
        return _WAITING

    def _find_target(self, request: Request) -> Identity | None:
        """Return the object that the request is for.

        None if there is nothing to delete: the id isn't Lakeferry's, and invalid properties can't have
        created anything.
        """
        if request.identity:
            return request.identity
        if request.verb != DELETE:
            raise LakeferryError(
                errors.FOREIGN,
                f"{request.physical_id!r} is not the id that was given to {request.logical_id}",
            )
        handler = registry.find(request.kind, self.types).handler
        try:
            spec = parse(handler.PROPERTIES, request.given, strict=False)
        except BadProperties:
            return None
        return Identity(request.kind, request.logical_id, compute_generation(handler, spec))


@attrs.frozen
class Task:
    """One request for one object."""

    lifecycle: Lifecycle
    request: Request
    target: Identity

    def work(self) -> dict[str, Any]:
        """Do all or part of the work, and return the answer to the framework."""
        self._accept()
        if discard := self._plan_discard():
            discard._accept()
        with self._hold_lease() as lease:
            outputs = self._advance(lease)
            lease.state.progress.done = outputs is not None
        if outputs is None:
            return _WAITING
        return _DONE if self.request.verb == DELETE else {**_DONE, "Data": dict(outputs)}

    @property
    def _resource_type(self) -> ResourceType:
        return registry.find(self.request.kind, self.lifecycle.types)

    @property
    def _key(self) -> str:
        return build_state_key(self.request.stack_id, self.target)

    def _now(self) -> float:
        return self.lifecycle.deadline.clock.time()

    def _plan_discard(self) -> Task | None:
        """Return the task to delete a replacement that was rolled back before CloudFormation knew its id."""
        target = parse_physical_id(self.request.discard)
        if target is None:
            return None
        request = attrs.evolve(self.request, verb=DELETE, given=self.request.before)
        return Task(self.lifecycle, request, target)

    def _accept(self) -> None:
        """Make this the request in force. Raises StaleRequest if it came too late."""
        states = self.lifecycle.states
        request = self.request
        is_known = request.verb != CREATE and request.identity == self.target
        name = self._build_name()
        now = self._now()

        def accept(row: ResourceState | None) -> ResourceState:
            return accept_request(
                row, request, name=name, now=now, stacks=self.lifecycle.stacks, is_known=is_known
            )

        try:
            states.change(self._key, accept)
        except StaleRequest:
            # It may be delivered again, when another request is in force that it would seem to follow.
            states.change(self._key, lambda row: remember_refused(row, request))
            raise

    def _build_name(self) -> str:
        account, region, stack = parse_stack_arn(self.request.stack_id)
        return contract.build_object_name(
            project=self.lifecycle.deployment.project,
            stage=self.lifecycle.deployment.stage,
            region=region,
            account=account,
            stack=stack,
            logical_id=self.target.logical_id,
            generation=self.target.generation,
        )

    @contextmanager
    def _hold_lease(self) -> Iterator[Lease]:
        until = self.lifecycle.deadline.at + _LEASE_MARGIN
        lease = self.lifecycle.states.lease(self._key, self.request.id, uuid.uuid4().hex, until)
        try:
            yield lease
        finally:
            try:
                lease.release()
            except Transient as error:
                # The lease expires, and the work is done.
                self.lifecycle.log.error("lease not released", code=error.kind.code, reason=error.what)

    def _advance(self, lease: Lease) -> Outputs | None:
        """Return the outputs when all work is done, None before."""
        limit = self._resource_type.handler.TIMEOUT_SECONDS
        if self._now() < lease.state.progress.not_before:
            return None
        try:
            outputs = self._reconcile(lease)
        except LakeferryError as error:
            reconcile.check_retry_budget(error, lease.state, self._now(), limit)
            self.lifecycle.wait(error)
            return None
        if outputs is None:
            reconcile.check_slow(lease.state, self._now(), limit)
        return outputs

    def _reconcile(self, lease: Lease) -> Outputs | None:
        if self.request.verb == DELETE:
            is_gone = lease.state.progress.done or self._delete(lease)
            return {} if is_gone else None
        outputs = self._build_reconciler(lease, deleting=False).ensure_present()
        discard = self._plan_discard()
        if outputs is not None and discard and not discard._delete_under_lease():
            return None
        return outputs

    def _delete_under_lease(self) -> bool:
        """Delete the object. Return whether it is gone."""
        with self._hold_lease() as lease:
            gone = lease.state.progress.done or self._delete(lease)
            lease.state.progress.done = gone
        return gone

    def _delete(self, lease: Lease) -> bool:
        """Delete the object.

        Return whether it is gone: because it is proved, or because a person has declared it.
        """
        facts = lease.state.facts
        if not facts.forgotten:
            return self._build_reconciler(lease, deleting=True).ensure_absent()
        self.lifecycle.log.info(
            "forgotten, not deleted",
            object=facts.object_id or facts.lost_id or lease.state.name,
            tenant=facts.tenant,
            reason=facts.forgotten,
        )
        facts.forget()
        return True

    def _build_reconciler(self, lease: Lease, *, deleting: bool) -> Reconciler:
        request = self.request
        handler = self._resource_type.handler
        stacks = self.lifecycle.stacks
        context = Context(
            vendor=self.lifecycle.vendors[self._resource_type.vendor](),
            name=lease.state.name,
            secrets=self.lifecycle.secrets,
            clock=self.lifecycle.deadline.clock,
            notes=lease.state.facts.notes,
            previous=_parse_previous(request, handler.PROPERTIES),
            deleting=deleting,
            resource_uid=compute_resource_uid(request.stack_id, request.logical_id),
            rolling_back=lambda: stacks.is_rolling_back(request.stack_id),
            claim=lease.claim,
            is_owned=lambda: lease.state.facts.owned,
        )
        spec = parse(handler.PROPERTIES, request.given, strict=False)
        return Reconciler(handler, context, spec, lease)


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
    if current is None:
        return wanted, None
    if before is None or not is_replaced(handler, before, spec):
        return current, None
    if wanted != current:
        return wanted, None
    # The replacement failed: this is the rollback to the object that CloudFormation still has.
    return wanted, attrs.evolve(wanted, generation=compute_generation(handler, before))


def _parse_previous(request: Request, spec: type[Properties[Any]]) -> Properties[Any] | None:
    try:
        return parse(spec, request.before, strict=False) if request.verb == UPDATE else None
    except BadProperties:
        return None
