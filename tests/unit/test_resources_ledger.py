"""Rows are written only over the version that was read, and a lease excludes other invocations."""

from __future__ import annotations

import attrs
import pytest

from lambdas.custom_resources.request import Request
from lambdas.custom_resources.state import TOMBSTONE_SECONDS, ResourceState, StateStore, accept_request
from lambdas.shared import errors
from lambdas.shared.errors import InProgress, StaleRequest, Transient
from tests.support.resource_environment import ManualClock, MemoryDocuments, StackStates


def asked(request_id="r1", verb="Create", **given):
    return Request(request_id, verb, "stack", "Toy", "toy", "", given, {})


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def ledger(clock):
    return StateStore(MemoryDocuments(), clock)


@pytest.fixture
def stacks():
    return StackStates()


def put(ledger, request, stacks):
    now = ledger.clock.time()
    return ledger.change("key", lambda row: accept_request(row, request, name="n", now=now, stacks=stacks))


def test_a_row_survives_being_written_and_read(ledger, stacks):
    put(ledger, asked(), stacks)
    lease = ledger.lease("key", "r1", "me", ledger.clock.time() + 100)
    lease.state.facts.notes["a"] = "b"
    lease.state.facts.object_id = "thing-1"
    lease.state.progress.refused_since["CODE"] = 7.5
    lease.save()
    assert ledger.read("key") == lease.state
    assert ledger.read("other") is None


def test_a_row_of_another_release_is_still_read(ledger):
    text = {
        "request_id": "r",
        "verb": "Create",
        "fingerprint": "m",
        "since": 1.0,
        "name": "n",
        "new": 1,
        "facts": {"newer": 2},
    }
    ledger.documents.write("key", text, 0, None)
    assert ledger.read("key").facts.object_id is None


@pytest.mark.parametrize(
    ("facts", "owned"),
    [
        ({}, False),
        ({"notes": {"topic": "new"}}, False),
        ({"object_id": "orders"}, True),
        ({"lost_id": "orders"}, True),
        ({"attempted": True}, True),
        ({"object_id": "orders", "owned": False}, False),
    ],
)
def test_a_row_of_a_release_that_did_not_know_owners_owns_what_it_may_have_created(ledger, facts, owned):
    """A note that a search had found nothing was no proof."""
    text = {
        "request_id": "r",
        "verb": "Create",
        "fingerprint": "m",
        "since": 1.0,
        "name": "n",
        "facts": facts,
    }
    ledger.documents.write("key", text, 0, None)
    assert ledger.read("key").facts.owned is owned


def test_a_create_that_can_not_be_written_down_is_not_claimed(ledger, stacks):
    put(ledger, asked(), stacks)
    lease = ledger.lease("key", "r1", "me", ledger.clock.time() + 100)
    ledger.documents.dead = Transient(errors.AWS_REFUSED, "the table is throttled")
    with pytest.raises(Transient):
        lease.claim()
    assert not lease.state.facts.owned
    ledger.documents.dead = None
    lease.claim()
    assert ledger.read("key").facts.owned


def test_two_writers_at_once_both_keep_what_they_wrote(ledger, stacks):
    put(ledger, asked(), stacks)
    calls = []

    def slow(row):
        calls.append(row.past)
        if len(calls) == 1:
            put(ledger, asked("r2", "Update"), stacks)
        return attrs.evolve(row, past=[*row.past, "mine"])

    assert ledger.change("key", slow).past == ["r1", "mine"]
    assert len(calls) == 2


def test_an_endless_race_is_given_up(ledger, stacks):
    put(ledger, asked(), stacks)
    ledger.documents.write = lambda *given: False
    with pytest.raises(Transient):
        ledger.change("key", lambda row: attrs.evolve(row, name="other"))


def test_nothing_is_written_where_nothing_changes(ledger, stacks):
    put(ledger, asked(), stacks)
    before = ledger.documents.read("key").version
    put(ledger, asked(), stacks)
    assert ledger.documents.read("key").version == before


def test_a_lease_excludes_others_until_it_is_returned_or_ends(ledger, clock, stacks):
    put(ledger, asked(), stacks)
    lease = ledger.lease("key", "r1", "me", clock.now + 100)
    ledger.lease("key", "r1", "me", clock.now + 100)
    with pytest.raises(InProgress):
        ledger.lease("key", "r1", "other", clock.now + 100)
    lease.release()
    ledger.lease("key", "r1", "other", clock.now + 100)
    clock.now += 99
    with pytest.raises(InProgress):
        ledger.lease("key", "r1", "third", clock.now + 100)
    clock.now += 2
    ledger.lease("key", "r1", "third", clock.now + 100)


def test_without_its_lease_an_invocation_writes_nothing(ledger, clock, stacks):
    put(ledger, asked(), stacks)
    lost = ledger.lease("key", "r1", "me", clock.now + 100)
    clock.now += 101
    ledger.lease("key", "r1", "other", clock.now + 100)
    lost.state.facts.object_id = "thing-of-the-dead"
    for keep in (lost.save, lost.release):
        with pytest.raises(StaleRequest):
            keep()
    assert ledger.read("key").facts.object_id is None


def test_only_the_request_in_force_gets_a_lease(ledger, clock, stacks):
    with pytest.raises(StaleRequest):
        ledger.lease("key", "r1", "me", clock.now + 100)
    put(ledger, asked(), stacks)
    put(ledger, asked("r2", "Delete"), stacks)
    with pytest.raises(StaleRequest):
        ledger.lease("key", "r1", "me", clock.now + 100)


def test_an_overtaken_invocation_still_records_facts_of_the_object(ledger, clock, stacks):
    put(ledger, asked(), stacks)
    lease = ledger.lease("key", "r1", "me", clock.now + 100)
    put(ledger, asked("r2", "Delete"), stacks)
    lease.state.facts.object_id = "thing-1"
    lease.state.progress.applied = True
    with pytest.raises(StaleRequest):
        lease.save()
    row = ledger.read("key")
    assert row.facts.object_id == "thing-1"
    assert not row.progress.applied
    assert row.lease_owner == "me"
    with pytest.raises(StaleRequest):
        lease.release()
    assert ledger.read("key").lease_owner == ""


def test_only_the_row_of_a_deleted_object_expires(ledger, clock, stacks):
    kept = []
    right = ledger.documents.write
    ledger.documents.write = lambda key, document, over, expires: (
        kept.append(expires) or right(key, document, over, expires)
    )
    put(ledger, asked("r1", "Delete"), stacks)
    lease = ledger.lease("key", "r1", "me", clock.now + 100)
    lease.state.progress.done = True
    lease.release()
    assert kept == [None, None, clock.now + TOMBSTONE_SECONDS]


ROW = ResourceState("r1", "Create", "m", 0.0, "n")


@pytest.mark.parametrize(
    ("before", "verb", "creating", "taken"),
    [
        ("Create", "Delete", False, True),
        ("Create", "Update", False, True),
        ("Update", "Create", False, True),
        ("Delete", "Create", False, False),
        ("Delete", "Update", False, False),
        ("Delete", "Create", True, True),
        ("Delete", "Update", True, True),
        ("Delete", "Delete", False, True),
    ],
)
def test_which_request_replaces_which(before, verb, creating, taken, stacks):
    stacks.creating = creating
    row = attrs.evolve(ROW, verb=before)
    if not taken:
        with pytest.raises(StaleRequest):
            accept_request(row, asked("r2", verb), name="n", now=1.0, stacks=stacks)
        return
    admitted = accept_request(row, asked("r2", verb), name="other", now=1.0, stacks=stacks)
    assert (admitted.request_id, admitted.verb, admitted.since, admitted.past) == ("r2", verb, 1.0, ["r1"])
    assert admitted.name == "n", "the name of what may exist never changes"
    assert admitted.facts is row.facts


@pytest.mark.parametrize(
    ("backward", "status", "same", "taken"),
    [
        (True, "UPDATE_ROLLBACK_IN_PROGRESS", False, False),
        (True, "UPDATE_ROLLBACK_IN_PROGRESS", True, True),
        (True, "UPDATE_IN_PROGRESS", False, True),
        (False, "UPDATE_ROLLBACK_IN_PROGRESS", False, True),
    ],
)
def test_updates_around_a_rollback(backward, status, same, taken, stacks):
    stacks.status = status
    late = asked("r2", "Update", size=1)
    row = attrs.evolve(
        ROW, verb="Update", backward=backward, fingerprint=late.fingerprint if same else "other"
    )
    if taken:
        assert accept_request(row, late, name="n", now=1.0, stacks=stacks).backward is ("ROLLBACK" in status)
    else:
        with pytest.raises(StaleRequest):
            accept_request(row, late, name="n", now=1.0, stacks=stacks)


def test_past_requests_are_remembered_up_to_a_limit(stacks):
    row = ROW
    for number in range(100):
        row = accept_request(row, asked(f"u{number}", "Update"), name="n", now=1.0, stacks=stacks)
    assert len(row.past) == 50
    with pytest.raises(StaleRequest):
        accept_request(row, asked("u98", "Update"), name="n", now=1.0, stacks=stacks)
