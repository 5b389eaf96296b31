"""What the state says of an object that was not known or not found for a while."""

from __future__ import annotations

import attrs

from lambdas.custom_resources.state import KnownObject
from lambdas.shared import errors
from lambdas.shared.errors import Transient
from tests.support.toy_kind import Toys

READY = KnownObject(object_id="thing-1", tenant="shop-1", owned=True, creates=1)


def read_facts(toys):
    (state,) = toys.invocations.lifecycle().states.read_all()
    return state.facts


def begin(toys, event):
    return {**event, **toys.invocations.on_event(event)}


def lose_answer(toys, call):
    def lose(name, number, moment):
        if (name, moment) == (call, "after"):
            toys.shop.at_call = lambda *others: None
            raise Transient(errors.UNREACHABLE, "no answer")

    toys.shop.at_call = lose


def test_an_object_whose_create_got_no_answer_is_known_as_any_other_once_it_is_listed():
    toys = Toys()
    toy = toys.resource()
    known = begin(toys, toy.event("Create"))
    toys.shop.hidden.add("thing-1")
    lose_answer(toys, "create")
    for _ in range(2):
        assert toys.invocations.is_complete(known) == {"IsComplete": False}
    assert read_facts(toys) == KnownObject(
        tenant="shop-1", creates=1, attempted=True, absent_since=toys.clock.now
    )
    toys.shop.hidden.clear()
    assert toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys) == READY
    toy.physical_id = known["PhysicalResourceId"]
    assert toys.invocations.is_complete(begin(toys, toy.event("Delete")))["IsComplete"]


def test_an_object_that_was_missing_for_a_moment_keeps_its_id():
    toys = Toys()
    toy = toys.resource()
    toy.create()
    thing = toys.shop.things.pop("thing-1")
    known = begin(toys, toy.event("Update", toy.properties))
    for _ in range(2):
        assert toys.invocations.is_complete(known) == {"IsComplete": False}
    assert read_facts(toys) == attrs.evolve(
        READY, object_id=None, lost_id="thing-1", absent_since=toys.clock.now
    )
    toys.shop.things["thing-1"] = thing
    assert toys.invocations.is_complete(known)["Data"]["id"] == "thing-1"
    assert read_facts(toys) == READY
