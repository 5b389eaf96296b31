"""With every fault at every call, a resource's life has the same end, and no object is left over or created
twice.
"""

from __future__ import annotations

import pytest

from lambdas.shared import errors
from lambdas.shared.errors import Conflict, Denied, OutOfTime, RateLimited, Transient
from lambdas.shared.http import NotSent, ResponseLost
from tests.support.toy_kind import Toys


class Killed(BaseException):
    """The Lambda function's process ends here. Nothing else of it runs, so its lease is not returned."""


def raised_for(kind, **given):
    return lambda: kind(errors.UNREACHABLE, "as the test wants", **given)


#: By the fault's name: when it happens, and what it raises.
FAULTS = {
    "failure before the effect": ("before", raised_for(Transient)),
    "failure after the effect": ("after", raised_for(Transient)),
    "reset before the effect": ("before", raised_for(ResponseLost)),
    "reset after the effect": ("after", raised_for(ResponseLost)),
    "no connection": ("before", raised_for(NotSent)),
    "too many requests": ("before", raised_for(RateLimited, wait=30.0)),
    "denied": ("before", raised_for(Denied)),
    "denied after the effect": ("after", raised_for(Denied)),
    "conflict": ("before", raised_for(Conflict)),
    "conflict after the effect": ("after", raised_for(Conflict)),
    "out of time": ("before", raised_for(OutOfTime)),
    "killed before the effect": ("before", Killed),
    "killed after the effect": ("after", Killed),
}


class History:
    """The life of a resource with one fault at one call. A killed invocation is repeated, as Lambda does."""

    def __init__(self, strikes, fault, **shop):
        self.toys = Toys(**shop)
        self.toy = self.toys.resource(size="1", shelf="north")
        self.struck = 0
        moment, error = FAULTS[fault]
        count = 0

        def strike(name, number, when):
            nonlocal count
            count += when == "before"
            if count in strikes and when == moment and self.struck < len(strikes):
                self.struck += 1
                raise self.dying(error())

        self.toys.shop.at_call = strike

    def dying(self, error):
        if isinstance(error, Killed):
            self.toys.invocations.documents.dead = error
        return error

    def live(self):
        toy = self.toy
        toys = self.toys
        toy.physical_id = self.survive(toy.event("Create"))
        assert toys.sizes() == [1]
        toy.physical_id = self.survive(toy.event("Create"))
        old = toy.properties
        toy.properties = {"size": "2", "shelf": "north"}
        self.survive(toy.event("Update", old))
        assert toys.sizes() == [2]
        self.survive(toy.event("Update", toy.properties))
        before = toy.physical_id
        old = toy.properties
        toy.properties = {"size": "2", "shelf": "south"}
        toy.physical_id = self.survive(toy.event("Update", old))
        self.survive(
            {**toy.event("Delete", PhysicalResourceId=before), "ResourceProperties": {"kind": "toy", **old}}
        )
        assert toys.shelves() == ["south"]
        for _ in range(2):
            self.survive(toy.event("Delete"))
        assert toys.shop.things == {}

    def survive(self, event):
        for _ in range(20):
            try:
                return self.toy.run(event)
            except Killed:
                self.toys.invocations.documents.dead = None
                self.toys.clock.sleep(5)
        raise AssertionError("killed more often than it was struck")


def calls_of_a_life(**shop):
    quiet = History((), "no connection", **shop)
    quiet.live()
    return len(quiet.toys.shop.calls)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("slow", [0, 12])
def test_one_fault_at_any_call(fault, slow):
    calls = calls_of_a_life(ready_after=slow, gone_after=slow)
    for number in range(1, calls + 1):
        history = History((number,), fault, ready_after=slow, gone_after=slow)
        history.live()
        assert history.struck == 1, number


@pytest.mark.slow
def test_two_faults_in_one_life():
    calls = calls_of_a_life()
    pairs = [(call, call + apart) for call in range(1, calls) for apart in (1, 2)]
    assert len(pairs) >= 50
    for fault in ("failure after the effect", "denied", "killed after the effect"):
        for pair in pairs:
            History(pair, fault).live()


@pytest.mark.parametrize("hidden_for", [1, 20, 50])
def test_an_object_that_lists_show_late_is_not_created_twice(hidden_for):
    """The create's response is lost, and the object is not listed for a while."""
    toys = Toys()
    made_at = []

    def lose(name, number, when):
        if name == "create" and when == "after" and not made_at:
            made_at.append(toys.clock.now)
            toys.shop.hidden |= set(toys.shop.things)
            raise ResponseLost(errors.UNREACHABLE, "reset")
        if made_at and toys.clock.now - made_at[0] >= hidden_for:
            toys.shop.hidden.clear()

    toys.shop.at_call = lose
    assert toys.resource().create()["id"] == "thing-1"
    assert len(toys.shop.things) == 1


def test_of_two_created_objects_one_is_deleted():
    toys = Toys()

    def hide(name, number, when):
        if name == "create" and when == "after" and len(toys.shop.things) == 1:
            toys.shop.hidden |= set(toys.shop.things)
            raise ResponseLost(errors.UNREACHABLE, "reset")
        if len(toys.shop.things) == 2:
            toys.shop.hidden.clear()

    toys.shop.at_call = hide
    assert toys.resource().create()["id"] == "thing-2"
    assert toys.shop.things["thing-1"]["gone_at"]
    assert toys.sizes() == [1]


def test_a_duplicate_that_lists_show_late_is_deleted_too():
    """The first create's response is lost, and its object is listed when the second one is almost ready."""
    toys = Toys(ready_after=300)
    toys.kind.quiet = True
    made_at = []

    def hide(name, number, when):
        if name == "create" and when == "after" and not made_at:
            made_at.append(toys.clock.now)
            toys.shop.hidden |= set(toys.shop.things)
            raise ResponseLost(errors.UNREACHABLE, "reset")
        if made_at and toys.clock.now - made_at[0] >= 200:
            toys.shop.hidden.clear()

    toys.shop.at_call = hide
    assert toys.resource().create()["id"] == "thing-2"
    assert toys.existing() == ["thing-2"]


def hide_for(toys, seconds):
    """Hide all objects from lists and reads for some seconds."""
    hidden = dict(toys.shop.things)
    until = toys.clock.now + seconds
    toys.shop.things = {}

    def show(name, number, when):
        if hidden and toys.clock.now >= until:
            toys.shop.things |= hidden
            hidden.clear()

    toys.shop.at_call = show


def test_an_object_that_a_vendor_does_not_show_for_a_while_is_not_created_again():
    """This is repeated: an earlier absence proves nothing."""
    toys = Toys()
    toy = toys.resource()
    toy.create()
    for _ in range(2):
        hide_for(toys, 40)
        assert toy.update()["id"] == "thing-1"
        toys.clock.sleep(3600)
    assert toys.shop.writes().count("create") == 1


def test_an_object_that_replaces_a_missing_one_gets_the_wanted_properties():
    toys = Toys(ready_after=12)
    toy = toys.resource(size="2")
    event = toy.event("Create")
    known = event | toys.invocations.on_event(event)
    assert toys.invocations.is_complete(known) == {"IsComplete": False}
    toys.shop.things = {"another": toys.shop.things["thing-1"] | {"size": 9}}
    assert toy.run(event)
    assert toys.shop.things["another"]["size"] == 2


def test_a_delete_after_an_unanswered_create_waits_for_the_object():
    toys = Toys()
    toy = toys.resource()

    def lose(name, number, when):
        if name == "create" and when == "after":
            toys.shop.hidden |= set(toys.shop.things)
            raise ResponseLost(errors.UNREACHABLE, "reset")

    toys.shop.at_call = lose
    create = toy.event("Create")
    known = create | toys.invocations.on_event(create)
    for _ in range(2):
        assert toys.invocations.is_complete(known) == {"IsComplete": False}
        toys.clock.sleep(5)
    toys.clock.sleep(100)
    (thing,) = toys.shop.things.values()
    toys.shop.hidden.clear()
    began = toys.clock.now

    def appear(name, number, when):
        if toys.clock.now - began >= 40 and "late" not in toys.shop.things:
            toys.shop.things["late"] = dict(thing, gone_at=None)
            toys.shop.at_call = lambda *call: None

    toys.shop.at_call = appear
    toy.run(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D"))
    assert {object_id for object_id, _, _ in toys.kind.deleted} == {"thing-1", "late"}
    assert toys.existing() == []


def test_one_empty_list_hides_no_object_from_a_delete():
    toys = Toys()
    toy = toys.resource()
    toy.create()
    toys.invocations.documents.rows.clear()
    shown = iter([True, False])

    def blink(name, number, when):
        if name == "listed" and when == "before":
            toys.shop.hidden = set(toys.shop.things) if next(shown, False) else set()

    toys.shop.at_call = blink
    toy.run(toy.event("Delete", PhysicalResourceId="invented"))
    assert toys.shop.things == {}


def test_a_killed_invocation_blocks_others_no_longer_than_lambdas_timeout():
    toys = Toys()

    def kill(name, number, when):
        toys.invocations.documents.dead = Killed()
        raise Killed

    toys.shop.at_call = kill
    toy = toys.resource()
    event = toy.event("Create")
    with pytest.raises(Killed):
        toy.run(event)
    toys.shop.at_call = lambda *call: None
    toys.invocations.documents.dead = None
    began = toys.clock.now
    toy.run(event)
    assert 120 <= toys.clock.now - began <= 160
