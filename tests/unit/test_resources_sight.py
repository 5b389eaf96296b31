"""What is not found is gone only if that is proved: by the login that deleted it, or by one of its tenant
that would see it.
"""

from __future__ import annotations

import io
import json
from contextlib import suppress

import pytest

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError, OutOfTime, Refused, TimedOut, Transient
from tests.support.toy_kind import Toys


@pytest.fixture
def toys():
    return Toys()


def facts(toys):
    (text, _), *_ = toys.invocations.documents.rows.values()
    return json.loads(text)["facts"]


def set_fact(toys, **changed):
    """Change the state as a command or an earlier release would have written it."""
    ((key, (text, version)),) = toys.invocations.documents.rows.items()
    row = json.loads(text)
    row["facts"].update(changed)
    toys.invocations.documents.rows[key] = (json.dumps(row), version)


def raise_once(shop, call, moment, error):
    """Raise `error` in the next call with that name, before or after its effect."""

    def fail(name, number, when):
        if (name, when) == (call, moment):
            shop.at_call = lambda *others: None
            raise error

    shop.at_call = fail


def test_a_login_that_sees_nothing_deletes_nothing_and_says_so(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()
    toys.shop.blind = False
    assert toys.existing() == ["thing-1"]
    toy.delete()
    assert toys.existing() == []


def test_a_login_that_sees_nothing_creates_no_second_object(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.update(size="2")
    assert toys.shop.writes() == ["create"]


def test_an_object_that_somebody_deleted_is_created_again_by_a_login_that_sees(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.things.clear()
    assert toy.update(size="2") == {"id": "thing-2", "size": "2"}


@pytest.mark.parametrize("is_created", [True, False])
def test_a_lost_create_is_not_ruled_out_by_a_login_that_sees_nothing(toys, is_created):
    toy = toys.resource()
    raise_once(
        toys.shop,
        "create",
        "after" if is_created else "before",
        Transient(errors.UNREACHABLE, "the answer is lost"),
    )
    toys.invocations.is_complete({**toy.event("Create"), **toys.invocations.on_event(toy.event("Create"))})
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.run(toy.event("Delete", PhysicalResourceId="invented"))
    assert len(toys.shop.things) == is_created


def end_after_removal(shop):
    """End the function after the vendor has accepted the delete."""

    def end(name, number, moment):
        if "remove" in shop.calls and name == "listed":
            shop.at_call = lambda *others: None
            raise OutOfTime(errors.OUT_OF_TIME, "the function ends")

    shop.at_call = end


def test_what_a_login_deleted_is_gone_for_that_login(toys):
    toy = toys.resource()
    toy.create()
    event = toy.event("Delete")
    end_after_removal(toys.shop)
    known = {**event, **toys.invocations.on_event(event)}
    assert not toys.invocations.is_complete(known)["IsComplete"]
    toys.shop.blind = True
    assert toys.invocations.is_complete(known)["IsComplete"]
    assert toys.shop.things == {}


def test_what_another_login_deleted_needs_a_proof_because_the_vendor_may_have_failed(toys):
    """The vendor accepts the delete, and fails. The next request comes with a key that sees less."""
    toy = toys.resource()
    toy.create()
    thing = dict(toys.shop.things["thing-1"])
    event = toy.event("Delete")
    end_after_removal(toys.shop)
    assert not toys.invocations.is_complete({**event, **toys.invocations.on_event(event)})["IsComplete"]
    toys.shop.things["thing-1"] = thing
    toys.shop.principal = "key-2"
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()
    toys.shop.blind = False
    assert toys.existing() == ["thing-1"]
    toy.delete()
    assert toys.existing() == []


def test_an_accepted_delete_in_a_state_of_an_earlier_release_proves_nothing(toys):
    toy = toys.resource()
    toy.create()
    set_fact(toys, deleted=True)
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()


def test_a_delete_that_the_vendor_refused_proves_nothing(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.busy = True
    with pytest.raises(TimedOut):
        toy.delete()
    assert facts(toys)["deleted_by"] == ""
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()


def test_a_delete_that_was_accepted_and_had_no_effect_proves_nothing_later(toys):
    toy = toys.resource()
    toy.create()
    set_fact(toys, deleted_by="key-1")
    toy.update(size="2")
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()
    toys.shop.blind = False
    assert toys.existing() == ["thing-1"]


def test_nothing_needs_proof_if_no_create_was_sent(toys):
    toys.shop.blind = True
    toys.resource().run(toys.resource().event("Delete", PhysicalResourceId="invented"))
    toys.kind.refuse = True
    toy = toys.resource("Refused")
    with pytest.raises(Refused, match="wants none"):
        toy.create()
    toy.run(toy.event("Delete", PhysicalResourceId="invented"))


def test_the_tenant_is_recorded_before_the_create(toys):
    seen = []
    toys.shop.at_call = lambda name, number, moment: seen.append((name, facts(toys)["tenant"]))
    toys.resource().create()
    assert ("create", "shop-1") in seen


@pytest.mark.parametrize("request_type", ["update", "delete"])
def test_a_login_of_another_tenant_is_refused_before_any_call(toys, request_type):
    toy = toys.resource()
    toy.create()
    toys.shop.tenant = "shop-2"
    toys.shop.calls = []
    with pytest.raises(LakeferryError, match="it is in shop-1, not in shop-2"):
        getattr(toy, request_type)()
    assert toys.shop.calls == []


def test_a_create_that_is_repeated_with_a_login_of_another_tenant_is_refused(toys):
    toy = toys.resource()
    event = toy.event("Create")
    raise_once(toys.shop, "create", "after", Transient(errors.UNREACHABLE, "the answer is lost"))
    known = {**event, **toys.invocations.on_event(event)}
    toys.invocations.is_complete(known)
    toys.shop.tenant = "shop-2"
    with pytest.raises(LakeferryError, match="it is in shop-1"):
        toys.invocations.is_complete(known)
    assert toys.shop.writes() == ["create"]


def test_a_state_without_a_tenant_learns_it_from_the_object(toys):
    toy = toys.resource()
    toy.create()
    set_fact(toys, tenant="")
    toy.update(size="2")
    assert facts(toys)["tenant"] == "shop-1"


def test_without_a_tenant_what_is_not_found_is_unknown(toys):
    toy = toys.resource()
    toy.create()
    set_fact(toys, tenant="")
    toys.shop.things.clear()
    with pytest.raises(TimedOut, match="an earlier release"):
        toy.delete()


def test_without_a_tenant_what_is_found_is_deleted(toys):
    toy = toys.resource()
    toy.create()
    set_fact(toys, tenant="")
    toy.delete()
    assert toys.shop.things == {}


@pytest.mark.parametrize("is_of_other_tenant", [True, False])
def test_a_forgotten_object_is_not_asked_for_and_logged_by_name(toys, is_of_other_tenant):
    toys.invocations.log = io.StringIO()
    toy = toys.resource()
    toy.create()
    toys.shop.blind = True
    toys.shop.calls = []
    toys.shop.tenant = "shop-2" if is_of_other_tenant else "shop-1"
    set_fact(toys, forgotten="2026-11-26T10:00:00Z deleted in the console")
    toy.delete()
    assert toys.shop.calls == []
    logged = toys.invocations.log.getvalue()
    assert "thing-1" in logged
    assert "deleted in the console" in logged


def test_after_a_forgotten_object_the_next_one_is_created_and_deleted_as_usual(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.things.clear()
    set_fact(toys, forgotten="deleted in the console", tenant="shop-0")
    assert toy.update(size="2") == {"id": "thing-2", "size": "2"}
    assert (facts(toys)["forgotten"], facts(toys)["tenant"]) == ("", "shop-1")
    toy.delete()
    assert toys.existing() == []


def test_a_login_that_sees_what_it_created_needs_no_more_to_rule_out_a_lost_create(toys):
    toys.shop.creator = "OWNER"
    toy = toys.resource()
    raise_once(toys.shop, "create", "before", Transient(errors.UNREACHABLE, "no answer"))
    toys.invocations.is_complete({**toy.event("Create"), **toys.invocations.on_event(toy.event("Create"))})
    toys.shop.blind = True
    toy.run(toy.event("Delete", PhysicalResourceId="invented"))


def lose_states(toys, *kept):
    """Remove the states of all resources but `kept`, as a table that was lost or restored would lack them."""
    rows = toys.invocations.documents.rows
    toys.invocations.documents.rows = {
        key: row for key, row in rows.items() if any(f":{name}:" in key for name in kept)
    }


def deployed_without_state(toys):
    """Create two resources, and lose the state of one. Return that one."""
    toys.resource("Other").create()
    toy = toys.resource()
    toy.create()
    lose_states(toys, "Other")
    return toy


def test_without_a_state_what_is_found_is_deleted(toys):
    toy = deployed_without_state(toys)
    toy.delete()
    assert toys.existing() == ["thing-1"]


@pytest.mark.parametrize("request_type", ["update", "delete"])
def test_without_a_state_what_is_not_found_needs_a_login_that_sees(toys, request_type):
    toy = deployed_without_state(toys)
    toys.shop.blind = True
    with pytest.raises(TimedOut, match="unseen: no role"):
        getattr(toy, request_type)()
    toys.shop.blind = False
    assert toys.existing() == ["thing-1", "thing-2"]
    toys.shop.things.pop("thing-2")
    toy.delete()


def test_without_a_state_a_login_of_another_tenant_is_refused(toys):
    toy = deployed_without_state(toys)
    toys.shop.things.clear()
    toys.shop.tenant = "shop-2"
    with pytest.raises(LakeferryError, match="it is in shop-1, not in shop-2"):
        toy.delete()


def test_without_any_state_what_is_not_found_is_unknown(toys):
    toy = toys.resource()
    toy.create()
    lose_states(toys)
    toys.shop.things.clear()
    with pytest.raises(TimedOut, match="no state of it, nor of another object"):
        toy.delete()
    set_fact(toys, forgotten="2026-11-26T10:00:00Z deleted in the console")
    toy.delete()


def test_a_rollback_deletes_what_was_never_created_without_a_proof(toys):
    """The function could not write a state, so it created nothing.

    CloudFormation has the id from the first call.
    """
    toy = toys.resource()
    toy.physical_id = toys.invocations.on_event(toy.event("Create"))["PhysicalResourceId"]
    toys.stacks.status = "ROLLBACK_IN_PROGRESS"
    toys.shop.blind = True
    toy.delete()
    assert "create" not in toys.shop.calls


@pytest.mark.parametrize(("whose", "creates"), [("shop", 2), ("kind", 2), (None, 1)])
def test_where_names_are_unique_a_second_create_needs_no_proof(toys, whose, creates):
    """The vendor refuses a second object of the name."""
    if whose:
        getattr(toys, whose).NAMES_ARE_UNIQUE = True
    raise_once(toys.shop, "create", "before", Transient(errors.UNREACHABLE, "no answer"))
    event = toys.resource().event("Create")
    known = {**event, **toys.invocations.on_event(event)}
    toys.invocations.is_complete(known)
    toys.shop.blind = True
    toys.invocations.is_complete(known)
    toys.clock.sleep(61)
    with suppress(TimedOut):
        toys.invocations.is_complete(known)
    assert toys.shop.writes().count("create") == creates


def test_an_object_whose_absence_the_vendor_shows_needs_no_login_that_sees(toys):
    toy = toys.resource()
    toy.create()
    toys.kind.ABSENCE_IS_SHOWN = True
    toys.shop.blind = True
    toy.delete()
    assert facts(toys)["removed_own"]


def test_an_object_that_lists_show_late_is_deleted_in_the_same_call(toys):
    toy = toys.resource()
    toy.create()
    toys.invocations.documents.rows.clear()
    toys.shop.hidden = {"thing-1"}

    def show(name, number, moment):
        if (name, moment) == ("listed", "after"):
            toys.shop.hidden = set()

    toys.shop.at_call = show
    delete = toy.event("Delete", PhysicalResourceId="invented")
    assert toys.invocations.is_complete(delete) == {"IsComplete": True}
    assert toys.existing() == []


def test_the_delete_of_another_object_of_the_name_proves_nothing_about_the_known_one(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.things["thing-2"] = toys.shop.things.pop("thing-1")

    def hide(name, number, moment):
        toys.shop.blind = toys.shop.blind or (name, moment) == ("remove", "after")

    toys.shop.at_call = hide
    with pytest.raises(TimedOut, match="unseen: no role"):
        toy.delete()
    assert toys.kind.deleted == [("thing-2", "red", 1)]
