"""A custom resource's event, read into what the lifecycle needs of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from lambdas.custom_resources import identity
from lambdas.custom_resources.identity import Identity
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError

CREATE: Final = "Create"
UPDATE: Final = "Update"
DELETE: Final = "Delete"
#: What `on_event` adds to the event for `is_complete`: when it was called, in seconds since 1970, and the physical id of a
#: replacement that was rolled back.
STARTED: Final = "StartedAt"
DISCARD: Final = "Discard"


@attrs.frozen
class Request:
    """`verb` is Create, Update or Delete; `physical_id` is "" on Create. `started` and `discard` are what `on_event` added."""

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
        found = identity.parse(self.physical_id)
        return found if found and (found.kind, found.logical_id) == (self.kind, self.logical_id) else None

    @property
    def mark(self) -> str:
        """Differs when the wanted properties differ."""
        return hashlib.sha256(json.dumps(self.given, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read(event: Mapping[str, Any]) -> Request:
    """Raises LakeferryError for what CloudFormation doesn't send."""
    try:
        given = dict(event["ResourceProperties"])
        verb = event["RequestType"]
        request = Request(
            id=str(event["RequestId"]),
            verb=str(verb),
            stack_id=str(event["StackId"]),
            logical_id=str(event["LogicalResourceId"]),
            kind=str(given.get("kind", "")),
            physical_id=str(event.get("PhysicalResourceId") or ""),
            given=given,
            before=dict(event.get("OldResourceProperties") or {}),
            started=float(event.get(STARTED) or 0.0),
            discard=str(event.get(DISCARD) or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LakeferryError(errors.FOREIGN, f"an event without {error}") from None
    if verb not in (CREATE, UPDATE, DELETE):
        raise LakeferryError(errors.FOREIGN, f"an event of type {verb}")
    return request


def stack_of(stack_id: str) -> tuple[str, str, str]:
    """Account, region and name of a stack, from its ARN. Raises LakeferryError where it isn't one."""
    parts = stack_id.split(":", 5)
    if len(parts) != 6 or parts[2] != "cloudformation" or not parts[5].startswith("stack/"):
        raise LakeferryError(errors.FOREIGN, f"{stack_id!r} is not the ARN of a stack")
    return parts[4], parts[3], parts[5].split("/")[1]
