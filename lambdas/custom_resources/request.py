"""A custom resource's event, the object that it names, and the status of its stack.

The physical id that CloudFormation gets consists of the resource type, the logical id and a generation. The
generation is a hash of the create-only properties' values, not a counter: the same values always give the
same id. So a rollback computes the old object's id, and an object whose create got no answer is found again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from lambdas.shared import errors
from lambdas.shared.aws import raise_instead, translate_aws_errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.properties import Properties
from lambdas.shared.resource import ResourceHandler

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_PREFIX: Final = "lf1"
#: The generation of resource types that are never replaced.
ONLY_GENERATION: Final = "0"


@attrs.frozen
class Identity:
    kind: str
    logical_id: str
    generation: str

    def __str__(self) -> str:
        """Return at most 1 KB, CloudFormation's limit: a logical id has 255 characters at most."""
        return ":".join((_PREFIX, self.kind, self.logical_id, self.generation))


def parse_physical_id(physical_id: str) -> Identity | None:
    """Return the parsed id, or None for any other text: CloudFormation makes up an id if a create never
    answered.
    """
    prefix, *parts = physical_id.split(":")
    return Identity(*parts) if prefix == _PREFIX and len(parts) == 3 else None


def compute_generation(handler: ResourceHandler, spec: Properties[Any]) -> str:
    """Return the generation.

    The algorithm must never change, because the ids of existing resources contain its result.
    """
    if not handler.PROPERTIES.CREATE_ONLY:
        return ONLY_GENERATION
    values = json.dumps([getattr(spec, name) for name in handler.PROPERTIES.CREATE_ONLY])
    return hashlib.sha256(values.encode()).hexdigest()[:8]


def is_replaced(handler: ResourceHandler, before: Properties[Any], after: Properties[Any]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in handler.PROPERTIES.CREATE_ONLY)


def compute_resource_uid(stack_id: str, logical_id: str) -> str:
    """Return a hash that all generations of a resource share.

    The stack's id makes it unique among stacks of the same name.
    """
    return hashlib.sha256(f"{stack_id}/{logical_id}".encode()).hexdigest()[:32]


def build_state_key(stack_id: str, identity: Identity) -> str:
    """Return the key of the object's item in the table of states."""
    return f"{stack_id}|{identity}"


_IN_PROGRESS: Final = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


class Stacks(Protocol):
    def is_forward(self, stack_id: str) -> bool:
        """Return whether the stack is being created or updated. False during a rollback."""

    def is_rolling_back(self, stack_id: str) -> bool:
        """Return whether the stack is being rolled back, which deletes what the failed operation created."""

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        """Return whether CloudFormation is creating or updating this resource.

        False if the stack doesn't have it.
        """


@attrs.frozen
class CloudFormationStacks:
    """Methods raise Transient, and Denied or Refused if AWS refuses."""

    client: CloudFormationClient

    def is_forward(self, stack_id: str) -> bool:
        return self._read_status(stack_id) in _IN_PROGRESS

    def is_rolling_back(self, stack_id: str) -> bool:
        return "ROLLBACK" in self._read_status(stack_id)

    def is_creating(self, stack_id: str, logical_id: str) -> bool:
        try:
            with (
                translate_aws_errors("describing a resource of the stack"),
                raise_instead(("ValidationError",), LookupError),
            ):
                detail = self.client.describe_stack_resource(StackName=stack_id, LogicalResourceId=logical_id)
        except LookupError:
            return False
        return detail.get("StackResourceDetail", {}).get("ResourceStatus", "") in _IN_PROGRESS

    def _read_status(self, stack_id: str) -> str:
        with translate_aws_errors("describing the stack"):
            return str(self.client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"])


CREATE: Final = "Create"
UPDATE: Final = "Update"
DELETE: Final = "Delete"
#: What `on_event` adds to the event for `is_complete`: when it was called, in seconds since 1970, and the
#: physical id of a replacement that was rolled back.
STARTED: Final = "StartedAt"
DISCARD: Final = "Discard"


def is_first_call(event: Mapping[str, Any]) -> bool:
    """Return whether this is the framework's first call for the request: the one to `on_event`, which names
    the resource.
    """
    return STARTED not in event


@attrs.frozen
class Request:
    """`verb` is Create, Update or Delete; `physical_id` is "" on Create.

    `started` and `discard` are what `on_event` added.
    """

    id: str
    verb: str
    stack_id: str
    logical_id: str
    kind: str
    physical_id: str
    given: Mapping[str, Any]
    before: Mapping[str, Any]
    started: float = 0.0
    discard: str = ""

    @property
    def identity(self) -> Identity | None:
        parsed = parse_physical_id(self.physical_id)
        return parsed if parsed and (parsed.kind, parsed.logical_id) == (self.kind, self.logical_id) else None

    @property
    def fingerprint(self) -> str:
        """Return a hash that differs when the wanted properties differ."""
        return _hash_properties(self.given)

    @property
    def fingerprint_before(self) -> str:
        """Return the same hash of the properties that CloudFormation had before an update."""
        return _hash_properties(self.before)


def _hash_properties(properties: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(properties, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read_request(event: Mapping[str, Any]) -> Request:
    """Parse an event. Raises LakeferryError for an event that CloudFormation can't have sent."""
    try:
        properties = dict(event["ResourceProperties"])
        verb = event["RequestType"]
        request = Request(
            id=str(event["RequestId"]),
            verb=str(verb),
            stack_id=str(event["StackId"]),
            logical_id=str(event["LogicalResourceId"]),
            kind=str(properties.get("kind", "")),
            physical_id=str(event.get("PhysicalResourceId") or ""),
            given=properties,
            before=dict(event.get("OldResourceProperties") or {}),
            started=float(event.get(STARTED) or 0.0),
            discard=str(event.get(DISCARD) or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LakeferryError(errors.FOREIGN, f"an event without {error}") from None
    if verb not in (CREATE, UPDATE, DELETE):
        raise LakeferryError(errors.FOREIGN, f"an event of type {verb}")
    return request


def parse_stack_arn(stack_id: str) -> tuple[str, str, str]:
    """Return account, region and name of a stack from its ARN. Raises LakeferryError for any other text."""
    parts = stack_id.split(":", 5)
    if len(parts) != 6 or parts[2] != "cloudformation" or not parts[5].startswith("stack/"):
        raise LakeferryError(errors.FOREIGN, f"{stack_id!r} is not the ARN of a stack")
    return parts[4], parts[3], parts[5].split("/")[1]
