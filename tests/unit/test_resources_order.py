"""Which request of several is in force, in any order of their events, and how the others are refused."""

from __future__ import annotations

import json

import attrs
import pytest

from lambdas.custom_resources.request import Request
from lambdas.custom_resources.state import ResourceState, StateStore, accept_request
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, StaleRequest
from tests.support.resource_environment import ManualClock, MemoryDocuments, StackStates
from tests.support.toy_kind import Toys

FORWARD = "UPDATE_IN_PROGRESS"
BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
AFTER_DELETE = "Update came after the delete, and CloudFormation no longer waits for it"
AFTER_ROLLBACK = "an update came after its own rollback"
DURING_ROLLBACK = "an update came after its stack had begun to roll back"


def asked(old, new, verb="Update", request_id="r2"):
    return Request(request_id, verb, "stack", "Toy", "toy", "", {"size": new}, {"size": old})


def make_row(old, new, verb="Update", *, backward=False):
    request = asked(old, new, verb, "r1")
    before = "" if old is None else request.fingerprint_before
    row = ResourceState("r1", verb, request.fingerprint, 0.0, "n", fingerprint_before=before)
    return attrs.evolve(row, backward=backward)


@pytest.mark.parametrize(
    ("row", "request_of", "status", "creating", "refusal"),
    [
        (make_row("1", "2", "Delete"), ("1", "2"), FORWARD, True, None),
        (make_row("1", "2", "Delete"), ("1", "2"), FORWARD, False, AFTER_DELETE),
        (make_row("1", "2", "Delete"), ("2", "2", "Delete"), FORWARD, False, None),
        (make_row("1", "2"), ("2", "3"), FORWARD, False, None),
        (make_row("1", "2"), ("2", "1"), BACK, False, None),
        (make_row("1", "2"), ("2", "3"), BACK, False, DURING_ROLLBACK),
        (make_row("1", "2"), ("2", "2"), BACK, False, None),
        (make_row("1", "2"), ("3", "2"), BACK, False, None),
        (make_row("1", "2"), ("3", "4"), BACK, False, None),
        (make_row(None, "2"), ("2", "3"), BACK, False, None),
        (make_row("3", "2", backward=True), ("3", "2"), BACK, False, None),
        (make_row("3", "2", backward=True), ("2", "3"), BACK, False, AFTER_ROLLBACK),
        (make_row("3", "2", backward=True), ("2", "3"), FORWARD, False, None),
        (make_row("3", "2", backward=True), ("2", "3", "Delete"), BACK, False, None),
    ],
)
def test_which_update_follows_which(row, request_of, status, creating, refusal):
    stacks = StackStates()
    stacks.status, stacks.creating = status, creating
    request = asked(*request_of)
    if refusal is None:
        accepted = accept_request(row, request, name="n", now=1.0, stacks=stacks)
        assert (accepted.request_id, accepted.past) == ("r2", ["r1"])
        assert accepted.backward is (status == BACK and request.verb == "Update")
        return
    with pytest.raises(StaleRequest) as raised:
        accept_request(row, request, name="n", now=1.0, stacks=stacks)
    assert (raised.value.kind, raised.value.what) == (errors.OVERTAKEN, refusal)


# --- leases


@pytest.fixture
def states():
    return StateStore(MemoryDocuments(), ManualClock())


def accept(states, request):
    stacks = StackStates()
    states.change("key", lambda row: accept_request(row, request, name="n", now=1.0, stacks=stacks))


def lease(states, owner="me", request_id="r1", seconds=100):
    return states.lease("key", request_id, owner, states.clock.time() + seconds)


def refuse(kind, call):
    with pytest.raises(kind) as raised:
        call()
    return raised.value.kind, raised.value.what


def test_a_lease_is_refused_with_the_reason(states):
    overtaken = (errors.OVERTAKEN, "request r1 is no longer in force")
    assert refuse(StaleRequest, lambda: lease(states)) == overtaken
    accept(states, asked("0", "1", request_id="r1"))
    lease(states, "other")
    waiting = (errors.WAITING, "another invocation is working on it")
    assert refuse(InProgress, lambda: lease(states)) == waiting
    accept(states, asked("1", "2"))
    assert refuse(StaleRequest, lambda: lease(states)) == overtaken


def test_an_invocation_whose_lease_has_ended_is_told_so(states):
    accept(states, asked("0", "1", request_id="r1"))
    mine = lease(states)
    states.clock.sleep(100)
    lease(states, "other")
    passed = (errors.OVERTAKEN, "the lease has passed to another invocation")
    assert refuse(StaleRequest, mine.save) == passed
    assert refuse(StaleRequest, mine.claim) == passed
    assert not mine.state.facts.owned


def test_an_invocation_whose_request_was_replaced_is_told_by_which(states):
    accept(states, asked("0", "1", request_id="r1"))
    mine = lease(states)
    accept(states, asked("1", "2"))
    mine.state.facts.object_id = "thing-1"
    replaced = (errors.OVERTAKEN, "request r2 replaced r1")
    assert refuse(StaleRequest, mine.save) == replaced
    assert states.read("key").facts.object_id == "thing-1"
    assert states.read("key").lease_owner == "me"


def test_a_lease_that_was_returned_may_be_returned_again(states):
    """The answer of the first write was lost."""
    accept(states, asked("0", "1", request_id="r1"))
    mine = lease(states)
    mine.release()
    assert mine.state.lease_owner == ""
    version = states.documents.read("key").version
    mine.release()
    assert states.documents.read("key").version == version


def test_a_lease_that_was_returned_with_other_facts_is_lost(states):
    accept(states, asked("0", "1", request_id="r1"))
    mine = lease(states)
    mine.release()
    mine.state.facts.object_id = "thing-1"
    assert refuse(StaleRequest, mine.release)[0] is errors.OVERTAKEN


def test_a_state_that_does_not_exist_any_more_takes_no_facts(states):
    accept(states, asked("0", "1", request_id="r1"))
    mine = lease(states)
    states.documents.rows.clear()
    assert refuse(StaleRequest, mine.save)[0] is errors.OVERTAKEN


def test_a_replacement_that_a_rollback_deletes_is_deleted_with_its_own_properties():
    toys = Toys()
    toy = toys.resource(shelf="north", size="1")
    toy.create()
    new = {"shelf": "south", "size": "5", "colour": "blue"}
    forward = toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", **new})
    new_id = toys.invocations.on_event(forward)["PhysicalResourceId"]
    toys.invocations.is_complete({**forward, "PhysicalResourceId": new_id})
    toys.stacks.status = BACK
    back = toy.event("Update", new)
    toy.run(back)
    assert toys.kind.deleted == [("thing-2", "blue", 5)]
    text, _ = toys.invocations.documents.rows[f"{toy.stack_id}|{new_id}"]
    row = json.loads(text)
    assert (row["request_id"], row["verb"], row["progress"]["done"]) == (back["RequestId"], "Delete", True)
    assert row["given"] == back["OldResourceProperties"]
