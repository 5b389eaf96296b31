"""Which object a request is about, known before any vendor is asked.

The physical id that CloudFormation keeps is made of the kind, the logical id and a generation. The generation is a mark of
the property values that make another object, not a count: the same values give the same object again. So a rollback names
the old object by itself, and a create that was lost finds its own.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

import attrs

from lambdas.shared.properties import Properties
from lambdas.shared.resource import Kind

_PREFIX: Final = "lf1"
#: The generation of kinds that are never replaced.
ONLY: Final = "0"


@attrs.frozen
class Identity:
    kind: str
    logical_id: str
    generation: str

    def __str__(self) -> str:
        """At most 1 KB, as CloudFormation wants it: a logical id has 255 characters at most."""
        return ":".join((_PREFIX, self.kind, self.logical_id, self.generation))


def parse(physical_id: str) -> Identity | None:
    """None where the id isn't one of ours: CloudFormation invents one where a create never answered."""
    prefix, *parts = physical_id.split(":")
    return Identity(*parts) if prefix == _PREFIX and len(parts) == 3 else None


def generation(kind: Kind, spec: Properties) -> str:
    """Never changes for the same values: ids of living resources are made of it."""
    if not kind.REPLACE_ON:
        return ONLY
    values = json.dumps([getattr(spec, name) for name in kind.REPLACE_ON])
    return hashlib.sha256(values.encode()).hexdigest()[:8]


def is_replaced(kind: Kind, before: Properties, after: Properties) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in kind.REPLACE_ON)


def origin(stack_id: str, logical_id: str) -> str:
    """A mark of the resource whatever its generation. The stack's id tells it from those of stacks of the same name too."""
    return hashlib.sha256(f"{stack_id}/{logical_id}".encode()).hexdigest()[:32]
