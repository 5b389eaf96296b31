"""The shape of every resource type: a module with these verbs, in this order, and data.

    create          creates the object and returns its id; called only when `find_existing` returned no id
    is_ready        returns the outputs once the object works, None while it is being created
    update          writes what differs between the object and the properties, and nothing else
    delete          deletes an object; one that is gone is no error, and a call may be repeated
    find_existing   returns the ids of managed objects, as the vendor lists them now

Every verb may be called twice, and each call may be the one whose answer was lost. Verbs never wait: they raise InProgress,
and are called again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Generic, Protocol, TypeVar

import attrs

from lambdas.shared.clock import Clock
from lambdas.shared.properties import Properties
from lambdas.shared.secrets import SecretStore

V_co = TypeVar("V_co", covariant=True)

#: What `Fn::GetAtt` can ask for: short, flat, never a secret.
Outputs = Mapping[str, str]


@attrs.frozen
class Context(Generic[V_co]):
    """What a verb works with besides the properties.

    `name` is the object's deterministic name: a-z, 0-9 and hyphens, at most 60 characters. `notes` are kept from call to call.
    `previous` are the properties before the update that is under way. `deleting` says that the object is to be deleted.
    `origin` is a hash that the resource keeps over all its generations, unique among the resources of all stacks.
    `rolling_back` asks CloudFormation whether the object was created by an operation that failed; it raises what AWS refuses.
    """

    vendor: V_co
    name: str
    secrets: SecretStore
    clock: Clock
    notes: MutableMapping[str, str]
    previous: Any = None
    deleting: bool = False
    origin: str = ""
    rolling_back: Callable[[], bool] = lambda: False


class ResourceHandler(Protocol):
    """A module of `resources/`."""

    @property
    def PROPERTIES(self) -> type[Properties[Any]]: ...  # noqa: N802

    @property
    def TIMEOUT_SECONDS(self) -> float:  # noqa: N802
        """Return the seconds after which waiting for a resource of this type ends."""

    def create(self, context: Any, spec: Any) -> str: ...

    def is_ready(self, context: Any, spec: Any, object_id: str) -> Outputs | None: ...

    def update(self, context: Any, spec: Any, object_id: str) -> None: ...

    def delete(self, context: Any, spec: Any, object_id: str) -> None: ...

    def find_existing(self, context: Any, spec: Any, known: str | None) -> list[str]:
        """Return the ids that exist; none if there is none. `known` is the id in the state."""
