"""The one shape that all kinds of resources have: a module with these verbs, in this order, and data.

    create          makes the object and returns its id; called only when `find_existing` returned no id
    is_ready        the outputs once the object works, None while it comes into being
    update          writes what differs between the object and the properties, and nothing else
    delete          asks the vendor to remove an object; quiet about what is gone, may be asked again
    find_existing   ids of the objects that are ours, as the vendor shows them now

Every verb may be called twice, and each call may be the one whose answer got lost. Verbs never wait: they raise InProgress,
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

    `name` is the object's deterministic name: a-z, 0-9 and hyphens, at most 60 characters. `notes` survive from call to
    call. `previous` are the properties before the update that is under way. `deleting` tells that the object shall go. `origin`
    is a mark that the resource keeps over all its generations and that no other resource, of whatever stack, has.
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
        """Seconds after which waiting for a resource of this type is given up."""

    def create(self, context: Any, spec: Any) -> str: ...

    def is_ready(self, context: Any, spec: Any, object_id: str) -> Outputs | None: ...

    def update(self, context: Any, spec: Any, object_id: str) -> None: ...

    def delete(self, context: Any, spec: Any, object_id: str) -> None: ...

    def find_existing(self, context: Any, spec: Any, known: str | None) -> list[str]:
        """`known` is the id that we remember. An empty list means: looked, and there is none."""
