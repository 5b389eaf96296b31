"""A vendor with one resource type in memory: it generates ids, names need not be unique, and work takes time.

`at_call` is called before and after the effect of every call, with its name and number. It may raise, or do
anything else.
"""

from __future__ import annotations

import itertools
from typing import ClassVar, NamedTuple

from lambdas.custom_resources.registry import ResourceType
from lambdas.shared import errors
from lambdas.shared.errors import (
    Conflict,
    Denied,
    InProgress,
    NeedsReplacement,
    OtherTenant,
    Refused,
    ReplacementRequired,
    ResourceMissing,
)
from lambdas.shared.properties import Properties, prop, properties
from tests.support.resource_environment import Invocations, Resource

WRITES = ("create", "change", "remove")


class Outputs(NamedTuple):
    id: str
    size: str


@properties
class Spec(Properties[Outputs]):
    TYPE: ClassVar = "toy"
    CREATE_ONLY: ClassVar = ("shelf",)

    shelf: str = prop("Its location. Another shelf is another thing.", default="north")
    size: int = prop("How large it is.", default=1)
    colour: str = prop("What can only be changed by making it anew.", default="red")


class Shop:
    """Sells things. `ready_after` and `gone_after` are seconds; a thing in `busy` can't be removed.

    While `blind`, it shows nothing, and its login has no role with which it would see anything. `tenant` and
    `principal` are the login's.
    """

    NAMES_ARE_UNIQUE = False
    creator = ""

    def __init__(self, ready_after=0, gone_after=0):
        self.things = {}
        self.tenant = "shop-1"
        self.principal = "key-1"
        self.blind = False
        self.calls = []
        self.at_call = lambda name, number, moment: None
        self.ready_after = ready_after
        self.gone_after = gone_after
        self.busy = False
        self.hidden = set()
        self._ids = itertools.count(1)

    def wrong_tenant(self, tenant):
        return OtherTenant(errors.INTERNAL, f"it is in {tenant}, not in {self.tenant}")

    def unseen(self, why):
        return Denied(errors.INTERNAL, f"unseen: {why}", patience=60.0)

    def require_sight(self, spec):
        if self.blind:
            raise self.unseen("no role")

    def create(self, now, **fields):
        return self._call("create", lambda: self._made(now, fields))

    def change(self, thing_id, **fields):
        return self._call("change", lambda: self._of(thing_id).update(fields))

    def remove(self, now, thing_id):
        return self._call("remove", lambda: self._removed(now, thing_id))

    def read(self, now, thing_id):
        return self._call("read", lambda: self._seen(now).get(thing_id))

    def listed(self, now, name):
        def found():
            return [
                one
                for one, thing in self._seen(now).items()
                if thing["name"] == name and one not in self.hidden
            ]

        return self._call("listed", found)

    def writes(self):
        return [name for name in self.calls if name in WRITES]

    def _call(self, name, effect):
        self.calls.append(name)
        number = len(self.calls)
        self.at_call(name, number, "before")
        answer = effect()
        self.at_call(name, number, "after")
        return answer

    def _made(self, now, fields):
        thing_id = f"thing-{next(self._ids)}"
        self.things[thing_id] = {**fields, "ready_at": now + self.ready_after, "gone_at": None}
        return thing_id

    def _of(self, thing_id):
        if thing_id not in self.things:
            raise ResourceMissing(errors.VANISHED, f"{thing_id} is gone")
        return self.things[thing_id]

    def _removed(self, now, thing_id):
        if self.busy:
            raise Conflict(errors.WAITING, f"{thing_id} is in use")
        if thing_id in self.things and self.things[thing_id]["gone_at"] is None:
            self.things[thing_id]["gone_at"] = now + self.gone_after

    def _seen(self, now):
        self.things = {
            one: thing
            for one, thing in self.things.items()
            if thing["gone_at"] is None or thing["gone_at"] > now
        }
        return {} if self.blind else self.things


class ToyKind:
    """The verbs of a resource type for `Shop`. `broken` returns whether a thing doesn't work.

    With `quiet`, a thing in creation is no error. `deleted` has the properties with which things were
    deleted, `updated` a thing for each call of `update`.
    """

    PROPERTIES = Spec
    TIMEOUT_SECONDS = 3000.0

    def __init__(self):
        self.broken = lambda thing: False
        self.refuse = self.quiet = False
        self.deleted = []
        self.updated = []

    def create(self, context, spec):
        if self.refuse:
            raise Refused(errors.INTERNAL, "the vendor wants none")
        now = context.clock.time()
        return context.vendor.create(
            now, name=context.name, size=spec.size, shelf=spec.shelf, colour=spec.colour
        )

    def is_ready(self, context, spec, object_id):
        thing = self._there(context, object_id)
        if self.broken(thing):
            raise NeedsReplacement(errors.WAITING, f"{object_id} is broken", patience=600.0)
        if thing["ready_at"] > context.clock.time():
            if self.quiet:
                return None
            raise InProgress(errors.WAITING, f"{object_id} is being made")
        return {"id": object_id, "size": str(thing["size"])}

    def update(self, context, spec, object_id):
        self.updated.append(object_id)
        thing = self._there(context, object_id)
        if thing["colour"] != spec.colour:
            raise ReplacementRequired(errors.OUTDATED, f"{object_id} is {thing['colour']}")
        if thing["size"] != spec.size:
            context.vendor.change(object_id, size=spec.size)

    def delete(self, context, spec, object_id):
        assert context.deleting
        self.deleted.append((object_id, spec.colour, spec.size))
        context.vendor.remove(context.clock.time(), object_id)

    def find_existing(self, context, spec, known):
        now = context.clock.time()
        found = [known] if known and context.vendor.read(now, known) else []
        return found + [item for item in context.vendor.listed(now, context.name) if item not in found]

    def _there(self, context, object_id):
        thing = context.vendor.read(context.clock.time(), object_id)
        if thing is None:
            raise ResourceMissing(errors.VANISHED, f"{object_id} is not there")
        return thing


class Toys:
    """A shop, and the Lambda functions that call it."""

    def __init__(self, **shop):
        self.shop = Shop(**shop)
        self.kind = ToyKind()
        self.invocations = Invocations(
            lambda *given: self.shop, types={"toy": ResourceType(self.kind, "confluent")}
        )
        self.clock = self.invocations.clock
        self.stacks = self.invocations.stacks

    def resource(self, logical_id="Toy", stack="lake", **properties):
        return Resource(self.invocations, "toy", logical_id, stack, **properties)

    def existing(self):
        return sorted(self.shop._seen(self.clock.now))

    def sizes(self):
        return sorted(thing["size"] for thing in self.shop.things.values() if thing["gone_at"] is None)

    def shelves(self):
        return sorted(thing["shelf"] for thing in self.shop.things.values() if thing["gone_at"] is None)
