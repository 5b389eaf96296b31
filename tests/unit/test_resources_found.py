"""What the state says of an object that was not known or not found for a while."""

from __future__ import annotations

import io
import json

import attrs
import pytest

from lambdas.custom_resources.state import KnownObject
from lambdas.shared import errors
from lambdas.shared.errors import Refused, TimedOut, Transient
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


def test_an_object_that_is_created_again_is_known_as_the_first_was():
    """Nothing of the first, of its delete and of the search for it stays."""
    toys = Toys()
    toys.shop.creator = "FIRST"
    toy = toys.resource()
    toy.create()
    assert read_facts(toys) == attrs.evolve(READY, creator="FIRST")
    toys.shop.creator = "SECOND"
    toys.shop.things.clear()
    toy.update()
    assert read_facts(toys) == attrs.evolve(READY, object_id="thing-2", creator="SECOND")
    toy.delete()
    assert read_facts(toys) == KnownObject(removed_own=True, creates=1)
    toy.create()
    assert read_facts(toys) == attrs.evolve(READY, object_id="thing-3", creator="SECOND")


def test_a_delete_that_had_no_effect_is_forgotten_once_the_object_is_wanted_and_works():
    toys = Toys(gone_after=10**6)
    toy = toys.resource()
    toy.create()
    for principal in ("key-2", "key-1"):
        toys.shop.principal = principal
        assert not toys.invocations.is_complete(begin(toys, toy.event("Delete")))["IsComplete"]
        assert read_facts(toys) == attrs.evolve(READY, deleted_by=principal)
    toys.shop.things["thing-1"]["ready_at"] = toys.clock.now + 30
    known = begin(toys, toy.event("Update", toy.properties))
    assert not toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys).deleted_by == "key-1"
    toys.clock.sleep(30)
    assert toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys) == READY


def test_an_object_that_a_person_declared_gone_is_not_looked_for_any_more():
    toys = Toys()
    toy = toys.resource()
    toy.create()
    states = toys.invocations.lifecycle().states
    ((key, _),) = toys.invocations.documents.rows.items()
    forgotten = attrs.evolve(READY, forgotten="2026-11-29 the shop has closed", creates=0, notes={"a": "b"})
    states.change(key, lambda row: attrs.evolve(row, facts=forgotten))
    toys.shop.things.clear()
    toys.shop.tenant = "shop-2"
    toy.update()
    assert read_facts(toys) == attrs.evolve(READY, object_id="thing-2", tenant="shop-2")


@pytest.mark.parametrize(
    ("known", "named"),
    [
        ({"object_id": "thing-1"}, "thing-1"),
        ({"object_id": None, "lost_id": "thing-2"}, "thing-2"),
        ({"object_id": "thing-1", "lost_id": "thing-2"}, "thing-1"),
        ({"object_id": None}, "lakeferry-test-eu-west-1-toy-adb192ed"),
    ],
)
def test_an_object_that_a_person_declared_gone_is_logged_by_what_is_known_of_it(known, named):
    toys = Toys()
    toy = toys.resource()
    toy.create()
    ((key, _),) = toys.invocations.documents.rows.items()
    facts = attrs.evolve(READY, forgotten="the shop has closed", **known)
    toys.invocations.lifecycle().states.change(key, lambda row: attrs.evolve(row, facts=facts))
    toys.invocations.log = io.StringIO()
    toy.delete()
    assert json.loads(toys.invocations.log.getvalue()) == {
        "level": "INFO",
        "message": "forgotten, not deleted",
        "object": named,
        "tenant": "shop-1",
        "reason": "the shop has closed",
    }
    assert toys.existing() == ["thing-1"]


def test_what_was_removed_to_be_made_anew_is_nobody_s_until_it_is_made():
    toys = Toys(gone_after=10**6)
    toy = toys.resource()
    toy.create()
    changed = {"kind": "toy", "colour": "blue"}
    known = begin(toys, toy.event("Update", toy.properties, ResourceProperties=changed))
    assert not toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys) == attrs.evolve(READY, deleted_by="key-1")
    toys.shop.things.clear()
    toys.kind.refuse = True
    assert not toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys) == attrs.evolve(READY, object_id=None, owned=False, deleted_by="key-1")
    with pytest.raises(Refused):
        toys.invocations.is_complete(known)
    assert read_facts(toys) == attrs.evolve(READY, object_id=None, owned=False)


def test_what_was_missing_for_a_minute_is_nobody_s_if_it_can_not_be_made_again():
    toys = Toys()
    toy = toys.resource()
    toy.create()
    toys.shop.things.clear()
    toys.kind.refuse = True
    with pytest.raises(Refused):
        toy.update()
    assert read_facts(toys) == attrs.evolve(READY, object_id=None, owned=False)


def test_what_somebody_left_is_removed_with_the_wanted_properties_if_it_can_not_be_changed():
    """The request that finds it is a create, so nothing says which properties it had."""
    toys = Toys()
    toys.resource(colour="red").create()
    toys.invocations.documents.rows.clear()
    assert toys.resource(colour="blue").create()["id"] == "thing-2"
    assert toys.kind.deleted == [("thing-1", "blue", 1)]
    assert toys.existing() == ["thing-2"]


def test_of_two_objects_that_were_created_the_other_is_removed_once_one_works():
    toys = Toys(ready_after=12)
    toys.kind.quiet = True
    toy = toys.resource()
    known = begin(toys, toy.event("Create"))
    toys.shop.hidden.add("thing-1")
    lose_answer(toys, "create")
    while toys.existing() != ["thing-1", "thing-2"]:
        assert not toys.invocations.is_complete(known)["IsComplete"]
        toys.clock.sleep(5)
    toys.shop.hidden.clear()
    assert not toys.invocations.is_complete(known)["IsComplete"]
    assert read_facts(toys) == attrs.evolve(READY, object_id="thing-2", creates=2)
    assert toys.kind.deleted == []
    toys.clock.sleep(10)
    assert toys.invocations.is_complete(known)["Data"]["id"] == "thing-2"
    assert toys.kind.deleted == [("thing-1", "red", 1)]
    assert read_facts(toys) == attrs.evolve(READY, object_id="thing-2")
    assert toys.existing() == ["thing-2"]


@pytest.mark.parametrize(
    ("known", "is_gone"),
    [
        ({"attempted": True, "creator": "OWNER"}, True),
        ({"attempted": True, "creator": "SOMEBODY"}, False),
        ({"attempted": True, "creator": ""}, False),
        ({"object_id": "thing-1", "creator": "OWNER"}, False),
        ({"lost_id": "thing-1", "creator": "OWNER"}, False),
        ({"lost_id": "thing-1", "creator": "OWNER", "deleted_by": "key-1"}, True),
        ({"lost_id": "thing-1", "creator": "OWNER", "deleted_by": "key-2"}, False),
    ],
)
def test_whose_login_knows_without_a_role_that_an_object_is_gone(known, is_gone):
    """That of the creator, of an object whose create got no answer; and that which deleted it."""
    toys = Toys()
    toys.shop.creator = "OWNER"
    toy = toys.resource()
    toy.create()
    ((key, _),) = toys.invocations.documents.rows.items()
    facts = KnownObject(tenant="shop-1", **known)
    toys.invocations.lifecycle().states.change(key, lambda row: attrs.evolve(row, facts=facts))
    toys.shop.blind = True
    if is_gone:
        assert toy.delete() == toy.physical_id
    else:
        with pytest.raises(TimedOut, match="unseen: no role"):
            toy.delete()
