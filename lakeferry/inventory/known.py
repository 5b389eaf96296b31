"""What the functions know of their objects: the states in their tables. And whether each object still exists
at its vendor.

The question is asked by the code of the resource type, with the id and the properties in the state, so it
means the same object as the function does: an id, or a name inside a container that has an id. What the login
can't see is unknown, never absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack, StackResource
from lakeferry.errors import CommandFailed
from lakeferry.inventory.snowflake import KINDS as SHOWN
from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import build_path, get_path, get_text
from lambdas.custom_resources import registry, request
from lambdas.custom_resources.request import Identity
from lambdas.custom_resources.state import DynamoDocuments, ResourceState, StateStore
from lambdas.shared.errors import (
    BadProperties,
    Denied,
    LakeferryError,
    NotFound,
    OtherTenant,
    ParentMissing,
    Refused,
)
from lambdas.shared.properties import Properties, parse
from lambdas.shared.resource import Context
from lambdas.shared.tenants import require_tenant
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import sql
from lambdas.snowflake.client import Snowflake

_TABLE: Final = "AWS::DynamoDB::Table"
_OLD_STATE: Final = (
    "an earlier release wrote its state, which doesn't say where it is; `lakeferry deploy --repair` checks it"
)
_IF_FREE: Final = "`lakeferry deploy --repair` creates it if its name is free"
_UNSEEN: Final = "-UNSEEN"
#: In the codes of errors about an object that somebody else created.
_FOREIGN: Final = "-FOREIGN"
_NO_STATE: Final = "the functions' table has no state of it"


class Answer(StrEnum):
    """`STOPPED`: it is there, and somebody paused or stopped it. `RENAMED`: it is there under another name.

    `FOREIGN`: an object that somebody else created has its name.
    """

    THERE = "there"
    STOPPED = "stopped"
    RENAMED = "renamed"
    FOREIGN = "foreign"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@attrs.frozen
class Existence:
    """`why` says why it is unknown, in which state it is, or its new name.

    `refused`: a key that the check needs was refused. `can_repair`: an update checks the object, and creates
    it if it is gone.
    """

    answer: Answer
    why: str = ""
    refused: bool = False
    can_repair: bool = False


@attrs.frozen
class KnownResource:
    """A custom resource of a stack. `state` is None if the table of states has none."""

    stack: Stack
    identity: Identity
    status: str
    state: ResourceState | None

    @property
    def vendor(self) -> str:
        return registry.find(self.identity.kind).vendor

    @property
    def properties(self) -> dict[str, Any]:
        return self.state.given if self.state else {}


def read_known(ctx: DeploymentContext, stack: Stack) -> list[KnownResource]:
    """Return the stack's custom resources, with their states.

    Raises LakeferryError if the table can't be read.
    """
    states = open_states(ctx, stack)
    known = []
    for resource, identity in list_custom_resources(stack):
        key = request.build_state_key(stack.id, identity)
        state = states.read(key) if states else None
        known.append(KnownResource(stack, identity, resource.status, state))
    return known


def require_same_tenants(ctx: DeploymentContext, deployed: Iterable[Stack]) -> None:
    """Raise OtherTenant if a login is of another organization or account than the objects of the stacks.

    Such a login sees none of them: a deployment would change nothing and look well, and a deletion would find
    nothing left. Raises CommandFailed, LakeferryError.
    """
    for _, refusal in find_other_tenants(ctx, deployed):
        raise refusal


def find_other_tenants(
    ctx: DeploymentContext, deployed: Iterable[Stack]
) -> Iterator[tuple[KnownResource, OtherTenant]]:
    """Yield the first object of each stack that is in another organization or account than the login.

    Raises CommandFailed, LakeferryError.
    """
    checker = ExistenceChecker(ctx)
    for stack in deployed:
        for resource in read_known(ctx, stack):
            try:
                checker.require_tenant(resource)
            except OtherTenant as other:
                yield resource, other
                break


def list_custom_resources(stack: Stack) -> Iterator[tuple[StackResource, Identity]]:
    """Yield the stack's resources that are objects at a vendor."""
    for resource in stack.resources:
        identity = request.parse_physical_id(resource.physical_id)
        if identity and identity.kind in registry.RESOURCE_TYPES:
            yield resource, identity


def open_states(ctx: DeploymentContext, stack: Stack) -> StateStore | None:
    """Return the states of the stack's resources, None if the stack has no table of them."""
    table = next((resource.physical_id for resource in stack.resources if resource.type == _TABLE), "")
    return StateStore(DynamoDocuments(ctx.client("dynamodb"), table), ctx.clock) if table else None


@attrs.frozen
class ExistenceChecker:
    """Asks the vendors whether objects exist. It changes nothing. Each vendor's client is opened once."""

    ctx: DeploymentContext
    #: Ask as a delete does: what is left of an object counts, and nothing that only a stack in use needs.
    deleting: bool = False

    @cached_property
    def _confluent(self) -> Confluent:
        return self.ctx.confluent()

    @cached_property
    def _snowflake(self) -> Snowflake:
        return self.ctx.snowflake()

    def look(self, known: KnownResource) -> Existence:
        if known.state is None:
            return Existence(Answer.UNKNOWN, _NO_STATE)
        if not known.state.given:
            return Existence(Answer.UNKNOWN, _OLD_STATE, can_repair=True)
        try:
            spec = parse(
                registry.find(known.identity.kind).handler.PROPERTIES, known.state.given, strict=False
            )
            return self._look(known, known.state, spec)
        except CommandFailed as failure:
            return Existence(Answer.UNKNOWN, f"{failure.code}: {failure.message}")
        except BadProperties as bad:
            return Existence(Answer.UNKNOWN, f"its properties can't be read: {bad.what}")
        except LakeferryError as error:
            return Existence(
                Answer.UNKNOWN, f"{error.kind.code}: {error.what}", refused=isinstance(error, Denied)
            )

    def require_tenant(self, known: KnownResource) -> None:
        """Raise OtherTenant if the login is of another organization or account than the object's.

        Raises CommandFailed, LakeferryError.
        """
        if known.state:
            require_tenant(self._open_vendor(known), [known.state.facts.tenant])

    def _open_vendor(self, known: KnownResource) -> Confluent | Snowflake:
        return self._confluent if known.vendor == registry.CONFLUENT else self._snowflake

    def _look(self, known: KnownResource, state: ResourceState, spec: Properties[Any]) -> Existence:
        """Raises CommandFailed, LakeferryError."""
        handler = registry.find(known.identity.kind).handler
        context = self._build_context(known, state)
        self.require_tenant(known)
        try:
            ids = handler.find_existing(context, spec, state.facts.object_id or state.facts.lost_id)
        except ParentMissing as missing:
            return Existence(Answer.ABSENT, missing.what)
        except (Denied, NotFound):
            # For a delete, a resource type returns nothing if the container is gone, and raises the same
            # error again if it isn't.
            try:
                ids = handler.find_existing(attrs.evolve(context, deleting=True), spec, state.facts.object_id)
            except (Denied, NotFound) as unseen:
                return self._answer_hidden(known, unseen)
        except LakeferryError as error:
            return self._answer_for(known, state, error)
        if not ids:
            return self._answer_absent(known, state, context, spec)
        stopped = self._find_stopped_state(known.identity.kind, state.name, spec, ids[0])
        return Existence(Answer.STOPPED, stopped) if stopped else Existence(Answer.THERE)

    def _answer_absent(
        self, known: KnownResource, state: ResourceState, context: Context[Any], spec: Properties[Any]
    ) -> Existence:
        """Return the answer for an object that was not found. Raises LakeferryError."""
        handler = registry.find(known.identity.kind).handler
        object_id = state.facts.object_id
        has_completed = getattr(handler, "has_completed", None)
        if has_completed and object_id and not self.deleting and has_completed(context, spec, object_id):
            return Existence(Answer.THERE)
        if renamed := self._find_new_name(known.identity.kind, state):
            return Existence(Answer.RENAMED, renamed)
        has_deleted = state.facts.deleted_by == self._open_vendor(known).principal
        if has_deleted or getattr(handler, "ABSENCE_IS_SHOWN", False):
            return Existence(Answer.ABSENT)
        if state.facts.unrecorded:
            return Existence(Answer.UNKNOWN, _NO_STATE)
        return self._prove_absence(known, spec)

    def _answer_for(self, known: KnownResource, state: ResourceState, error: LakeferryError) -> Existence:
        """Return the answer for an object that was renamed, or whose name another one has.

        Raises every other error again.
        """
        if error.kind == snowflake_errors.RENAMED:
            return Existence(Answer.RENAMED, self._find_new_name(known.identity.kind, state) or error.what)
        if isinstance(error, Refused) and _FOREIGN in error.kind.code:
            return Existence(Answer.FOREIGN, error.what)
        raise error

    def _prove_absence(self, known: KnownResource, spec: Properties[Any]) -> Existence:
        """Return the answer for an object that was not found and may be hidden. Raises LakeferryError.

        If names are unique, a repair is safe: the vendor refuses to create an object whose name a hidden one
        has.
        """
        vendor = self._open_vendor(known)
        try:
            vendor.require_sight(spec)
        except Denied as unseen:
            return self._answer_hidden(known, unseen)
        return Existence(Answer.ABSENT)

    def _answer_hidden(self, known: KnownResource, error: LakeferryError) -> Existence:
        """Return the answer for an object that the login may not be allowed to see.

        Raises the error unless a repair can safely create the object.
        """
        is_hidden = isinstance(error, NotFound) or error.kind.code.endswith(_UNSEEN)
        if self.deleting or not is_hidden or not self._open_vendor(known).NAMES_ARE_UNIQUE:
            raise error
        return Existence(Answer.UNKNOWN, f"{error.kind.code}: {error.what}. {_IF_FREE}", can_repair=True)

    def _build_context(self, known: KnownResource, state: ResourceState) -> Context[Any]:
        return Context(
            vendor=self._open_vendor(known),
            name=state.name,
            secrets=self.ctx.secrets,
            clock=self.ctx.clock,
            notes=dict(state.facts.notes),
            deleting=self.deleting,
            resource_uid=request.compute_resource_uid(known.stack.id, known.identity.logical_id),
            is_owned=lambda: state.facts.owned,
        )

    def _find_new_name(self, kind: str, state: ResourceState) -> str:
        """Return the name of the Snowflake object that has the resource's comment, "" if there is none.
        Raises LakeferryError.

        Snowflake has no ids, so the functions find objects by name, and somebody may have renamed one.
        """
        show = SHOWN.get(kind)
        rows = self._snowflake.run(sql.statement(show)) if show else []
        tagged = re.compile(rf"lakeferry {re.escape(state.name)}(?![a-z0-9-])")
        return next((row.get("name", "") for row in rows if tagged.search(row.get("comment", ""))), "")

    def _find_stopped_state(self, kind: str, name: str, spec: Any, object_id: str) -> str:
        """Return in which state an object is that somebody paused or stopped, "" for every other one.

        Raises LakeferryError.
        """
        if kind == "connector":
            parents = ("environments", spec.environment_id, "clusters", spec.cluster_id)
            listed = self._confluent.cloud.get(
                build_path("connect", "v1", *parents, "connectors"), expand="info,status,id"
            )
            state = get_text(get_path(listed, name), "status", "connector", "state")
            return state if state in ("PAUSED", "STOPPED") else ""
        if kind == "flink_statement":
            parents = ("organizations", self._confluent.organization_id, "environments", spec.environment_id)
            plane = self._confluent.flink(spec.region, self.ctx.secrets.read_key(spec.credentials))
            actual = plane.read(build_path("sql", "v1", *parents, "statements", object_id))
            phase = get_text(actual, "status", "phase")
            return phase if phase == "STOPPED" else ""
        return ""
