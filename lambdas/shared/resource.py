"""The interface of resource types: a module with these functions, in this order, and two constants.

    create          creates the object and returns its id; called only when `find_existing` returned no id
    is_ready        returns the outputs once the object works, None while it is being created
    update          writes what differs between the object and the properties, and nothing else. If another
                    object has taken its place, it returns the id of that one, and is called again with it
    delete          deletes an object; it is no error if the object is gone, and a call may be repeated
    find_existing   returns the ids of managed objects, as the vendor lists them now

Every function may be called twice, and the answer to any call may be lost. Functions never wait: they raise
InProgress, and are called again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Generic, Protocol, TypeVar

import attrs

from lambdas.shared.clock import Clock
from lambdas.shared.errors import LakeferryError, OtherTenant
from lambdas.shared.properties import Properties
from lambdas.shared.secrets import SecretStore

V_co = TypeVar("V_co", covariant=True)

#: The values for `Fn::GetAtt`: short, flat, never a secret.
Outputs = Mapping[str, str]


@attrs.frozen
class Context(Generic[V_co]):
    """The arguments of each function besides the properties.

    `name` is deterministic: a-z, 0-9 and hyphens, at most 60 characters. `notes` are stored between calls.
    `previous` are the properties before an update. `deleting` is True for a delete. `resource_uid` is a hash
    that is unique among the resources of all stacks, and stays the same when the resource is replaced.
    `rolling_back` asks CloudFormation whether the stack is being rolled back, and raises Transient, Denied or
    Refused.

    Some objects have names that the user chose and don't name their owner, so anybody may have created them.
    Their `create` calls `claim` immediately before it sends the request that creates. From then on `owned` is
    True, unless the vendor certainly refuses: an object that exists is then the resource's own. An object
    that isn't owned is never changed, deleted or undone.
    """

    vendor: V_co
    name: str
    secrets: SecretStore
    clock: Clock
    notes: MutableMapping[str, str]
    previous: Any = None
    deleting: bool = False
    resource_uid: str = ""
    rolling_back: Callable[[], bool] = lambda: False
    claim: Callable[[], None] = lambda: None
    is_owned: Callable[[], bool] = lambda: False

    @property
    def owned(self) -> bool:
        """Return whether an object that exists is the resource's own."""
        return self.is_owned()


class Vendor(Protocol):
    """What the lifecycle of all resources needs to know of a vendor's client.

    `tenant` is the organization or account of the login. It has no name in it that somebody can change.
    `creator` is the login, if it always sees what it created; otherwise "".
    `principal` is the login, as far as its rights can differ from another one's. NAMES_ARE_UNIQUE: a create
    fails while another object has the name, seen or not.
    """

    @property
    def NAMES_ARE_UNIQUE(self) -> bool: ...  # noqa: N802

    @property
    def tenant(self) -> str: ...

    @property
    def creator(self) -> str: ...

    @property
    def principal(self) -> str: ...

    def wrong_tenant(self, tenant: str) -> OtherTenant: ...

    def unseen(self, why: str) -> LakeferryError: ...

    def require_sight(self, spec: Any) -> None:
        """Return if the login would see the object with these properties.

        Raises Denied or InProgress otherwise.
        """


class ResourceHandler(Protocol):
    """A module of `resources/`.

    With `ABSENCE_IS_SHOWN = True`, `find_existing` returns [] only if it has seen that the object doesn't
    exist. Without it, an object that isn't found may also be hidden from the login.

    With `NAMES_ARE_UNIQUE = True`, a create fails while another object of this type has the name, seen or
    not.

    With a function `has_completed(context, spec, object_id)`, an object may be absent as it should be: it
    returns True for one that has done all its work and that the vendor removed since.
    """

    @property
    def PROPERTIES(self) -> type[Properties[Any]]: ...  # noqa: N802

    @property
    def TIMEOUT_SECONDS(self) -> float:  # noqa: N802
        """Return the seconds after which waiting for a resource of this type ends."""

    def create(self, context: Any, spec: Any) -> str: ...

    def is_ready(self, context: Any, spec: Any, object_id: str) -> Outputs | None: ...

    def update(self, context: Any, spec: Any, object_id: str) -> str | None: ...

    def delete(self, context: Any, spec: Any, object_id: str) -> None: ...

    def find_existing(self, context: Any, spec: Any, known_id: str | None) -> list[str]:
        """Return the ids of the objects that exist. `known_id` is the id in the state."""
