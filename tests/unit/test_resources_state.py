"""What the state of a resource says after each request and each answer of the vendor."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress

import attrs
import pytest

from lambdas.custom_resources.provider import on_event
from lambdas.custom_resources.request import Request
from lambdas.custom_resources.state import (
    DynamoDocuments,
    KnownObject,
    RequestProgress,
    ResourceState,
    StateStore,
    accept_request,
    remember_refused,
)
from lambdas.shared import errors
from lambdas.shared.errors import Conflict, Denied, RateLimited, Refused, StaleRequest, Transient
from lambdas.shared.http import NotSent
from tests.support.resource_environment import START, ManualClock, MemoryDocuments, StackStates
from tests.support.toy_kind import Toys

NOTHING = {**attrs.asdict(KnownObject()), **attrs.asdict(RequestProgress())}
OF_FORGOTTEN = KnownObject(creates=3, removed_own=True)


def read_known(toys):
    """Return what is known about the object and about the progress, without what has its default."""
    ((text, _),) = toys.invocations.documents.rows.values()
    row = json.loads(text)
    known = {**row["facts"], **row["progress"]}
    return {name: value for name, value in known.items() if value != NOTHING[name]}


def read_row(toys):
    ((text, _),) = toys.invocations.documents.rows.values()
    return {
        name: value for name, value in json.loads(text).items() if name not in {"facts", "progress", "given"}
    }


def test_the_state_after_each_request():
    toys = Toys(ready_after=12, gone_after=12)
    toys.shop.creator = "OWNER"
    toy = toys.resource(size="2")
    events = [toy.event("Create")]
    toy.physical_id = toy.run(events[0])
    ready = {"object_id": "thing-1", "tenant": "shop-1", "creator": "OWNER", "owned": True, "creates": 1}
    assert read_known(toys) == {**ready, "done": True, "applied": True}
    created = read_row(toys)
    assert created == {
        "request_id": events[0]["RequestId"],
        "verb": "Create",
        "fingerprint": created["fingerprint"],
        "since": START,
        "name": "lakeferry-test-eu-west-1-toy-adb192ed",
        "past": [],
        "fingerprint_before": created["fingerprint_before"],
        "backward": False,
        "lease_owner": "",
        "lease_until": START + 15 + 90 + 60,
    }
    old = toy.properties
    toy.properties = {"size": "3"}
    events.append(toy.event("Update", old))
    toy.run(events[1])
    assert read_known(toys) == {**ready, "done": True, "applied": True}
    updated = read_row(toys)
    assert updated == {
        **created,
        "request_id": events[1]["RequestId"],
        "verb": "Update",
        "fingerprint": updated["fingerprint"],
        "fingerprint_before": created["fingerprint"],
        "since": START + 15,
        "past": [events[0]["RequestId"]],
    }
    assert updated["fingerprint"] != created["fingerprint"]
    toy.delete()
    assert read_known(toys) == {
        "removed_own": True,
        "creates": 1,
        "done": True,
        "deletion_sent_at": START + 15,
        "empty_searches": 2,
    }
    assert read_row(toys)["past"] == [event["RequestId"] for event in events]


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (Transient(errors.UNREACHABLE, "no answer"), {"attempted": True, "creates": 1}),
        (Conflict(errors.INTERNAL, "it exists"), {"attempted": True, "creates": 1}),
        (NotSent(errors.UNREACHABLE, "no connection"), {}),
        (Refused(errors.INTERNAL, "no"), {}),
        (RateLimited(errors.INTERNAL, "slow down", wait=30.0), {"creates": 1}),
    ],
)
def test_what_is_known_after_a_create_that_failed(error, known):
    """An object may exist only if there was no answer, or a conflict."""
    toys = Toys()
    toys.shop.at_call = lambda name, number, moment: raise_(error) if name == "create" else None
    event = toys.resource().event("Create")
    known_event = {**event, **toys.invocations.on_event(event)}
    with suppress(Refused):
        assert toys.invocations.is_complete(known_event) == {"IsComplete": False}
    facts = {name: value for name, value in read_known(toys).items() if hasattr(KnownObject(), name)}
    assert facts == {"tenant": "shop-1", **known}


def raise_(error):
    raise error


def test_an_object_that_was_found_is_the_resource_s_own():
    """Its name is the proof. The state doesn't say who created it."""
    toys = Toys()
    toy = toys.resource()
    toy.create()
    toys.invocations.documents.rows.clear()
    toy.update()
    assert read_known(toys) == {
        "object_id": "thing-1",
        "tenant": "shop-1",
        "owned": True,
        "done": True,
        "applied": True,
    }


def test_a_forgotten_object_leaves_nothing_behind():
    known = KnownObject(
        object_id="a",
        lost_id="b",
        tenant="c",
        creator="d",
        attempted=True,
        deleted_by="e",
        unrecorded=True,
        forgotten="f",
        owned=True,
        removed_own=True,
        absent_since=1.0,
        creates=3,
        notes={"g": "h"},
    )
    known.forget()
    assert known == OF_FORGOTTEN


@pytest.mark.parametrize(
    ("known", "may_exist"),
    [
        ({}, False),
        ({"object_id": "a"}, True),
        ({"lost_id": "a"}, True),
        ({"attempted": True}, True),
        ({"unrecorded": True}, True),
        ({"owned": True, "tenant": "a", "creator": "b", "creates": 1}, False),
    ],
)
def test_when_an_object_may_exist(known, may_exist):
    assert KnownObject(**known).may_exist is may_exist


# --- requests


def asked(request_id="r2", verb="Update", **changed):
    return Request(request_id, verb, "stack", "Toy", "toy", "", {"size": "1"}, {"size": "0"}, **changed)


def accept(row, request, *, status="UPDATE_IN_PROGRESS", now=9.0, is_known=False):
    stacks = StackStates()
    stacks.status = status
    return accept_request(row, request, name="n", now=now, stacks=stacks, is_known=is_known)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("started", "since"), [(0.0, 9.0), (5.0, 5.0)])
@pytest.mark.parametrize(
    ("verb", "status", "backward"),
    [
        ("Create", "ROLLBACK_IN_PROGRESS", False),
        ("Update", "UPDATE_IN_PROGRESS", False),
        ("Update", "UPDATE_ROLLBACK_IN_PROGRESS", True),
        ("Delete", "UPDATE_ROLLBACK_IN_PROGRESS", False),
    ],
)
def test_the_first_request(is_known, started, since, verb, status, backward):
    request = asked(verb=verb, started=started)
    assert accept(None, request, status=status, is_known=is_known) == ResourceState(
        "r2",
        verb,
        request.fingerprint,
        since,
        "n",
        given={"size": "1"},
        fingerprint_before=request.fingerprint_before,
        backward=backward,
        facts=KnownObject(unrecorded=is_known),
    )


ROW = ResourceState(
    "r1",
    "Create",
    "before",
    5.0,
    "its name",
    past=["r0"],
    given={"size": "0"},
    lease_owner="somebody",
    lease_until=7.0,
    facts=KnownObject(object_id="thing-1"),
    progress=RequestProgress(done=True, applied=True),
)


def test_the_next_request_begins_anew_and_keeps_what_is_known_and_the_lease():
    request = asked()
    assert accept(ROW, request) == attrs.evolve(
        ROW,
        request_id="r2",
        verb="Update",
        fingerprint=request.fingerprint,
        since=9.0,
        past=["r0", "r1"],
        given={"size": "1"},
        fingerprint_before=request.fingerprint_before,
        progress=RequestProgress(),
    )


@pytest.mark.parametrize(("started", "is_new_try"), [(0.0, False), (4.0, False), (5.0, False), (6.0, True)])
def test_a_request_that_is_tried_again_has_its_whole_time_again(started, is_new_try):
    again = accept(ROW, asked("r1", started=started))
    assert (again is ROW) is not is_new_try
    if is_new_try:
        assert again == attrs.evolve(ROW, since=started, progress=RequestProgress())


def test_a_request_that_was_replaced_is_named():
    with pytest.raises(StaleRequest, match=r"LF-OVERTAKEN .*request r0 was answered before"):
        accept(ROW, asked("r0"))


def test_a_request_that_came_too_late_is_remembered_once():
    refused = remember_refused(ROW, asked("late"))
    assert refused == attrs.evolve(ROW, past=["r0", "late"])
    for request_id in ("late", "r0", "r1"):
        assert remember_refused(refused, asked(request_id)) is refused
    many = attrs.evolve(ROW, past=[str(number) for number in range(50)])
    assert remember_refused(many, asked("late")).past == [*many.past[1:], "late"]
    with pytest.raises(StaleRequest, match="the state that request late came too late for has expired"):
        remember_refused(None, asked("late"))


def test_a_row_that_is_written_by_others_all_the_time_is_tried_twenty_times():
    documents = MemoryDocuments()
    tries = []
    documents.write = lambda key, *given: tries.append(key)
    with pytest.raises(Transient, match=r"AWS-REFUSED .*too many other invocations write the same item"):
        StateStore(documents, ManualClock()).change("key", lambda row: ROW)
    assert tries == ["key"] * 20


def test_a_lease_that_ends_now_is_free():
    clock = ManualClock()
    states = StateStore(MemoryDocuments(), clock)
    states.change("key", lambda row: attrs.evolve(ROW, lease_until=clock.now))
    lease = states.lease("key", "r1", "me", clock.now + 1)
    assert (lease.state.lease_owner, lease.state.lease_until) == ("me", clock.now + 1)


def test_the_tenants_are_those_of_all_objects():
    states = StateStore(MemoryDocuments(), ManualClock())
    assert states.tenants() == frozenset()
    for key, tenant in {"a": "shop-1", "b": "", "c": "shop-2", "d": "shop-1"}.items():
        row = attrs.evolve(ROW, facts=KnownObject(tenant=tenant))
        states.change(key, lambda _, row=row: row)
    assert states.tenants() == {"shop-1", "shop-2"}
    assert [row.name for row in states.read_all()] == ["its name"] * 4


class Items:
    """The table's calls as they are sent."""

    def __init__(self):
        self.sent = []
        self.pages = iter([{"LastEvaluatedKey": {"id": {"S": "a"}}}, {}])

    def put_item(self, **asked):
        self.sent.append(asked)

    def get_item(self, **asked):
        self.sent.append(asked)
        return {}

    def scan(self, **asked):
        self.sent.append(asked)
        return next(self.pages)


def test_the_requests_to_the_table():
    items = Items()
    documents = DynamoDocuments(items, "states")
    documents.read("key")
    documents.write("key", {"a": 1}, 0, None)
    documents.write("key", {"a": 1}, 7, 12.5)
    assert list(documents.read_all()) == []
    item = {"id": {"S": "key"}, "document": {"S": '{"a": 1}'}}
    assert items.sent == [
        {"TableName": "states", "Key": {"id": {"S": "key"}}, "ConsistentRead": True},
        {
            "TableName": "states",
            "Item": {**item, "version": {"N": "1"}},
            "ConditionExpression": "attribute_not_exists(id)",
        },
        {
            "TableName": "states",
            "Item": {**item, "version": {"N": "8"}, "expires": {"N": "12"}},
            "ConditionExpression": "version = :over",
            "ExpressionAttributeValues": {":over": {"N": "7"}},
        },
        {"TableName": "states", "ConsistentRead": True},
        {"TableName": "states", "ConsistentRead": True, "ExclusiveStartKey": {"id": {"S": "a"}}},
    ]


def test_the_item_of_a_deleted_object_stays_for_a_week():
    """Lambda may deliver an event up to six hours late."""
    clock = ManualClock()
    documents = MemoryDocuments()
    ends = []
    documents.write = lambda key, document, over, expires: ends.append(expires) or True
    done = RequestProgress(done=True)
    for verb, progress in itertools.product(("Create", "Delete"), (RequestProgress(), done)):
        row = attrs.evolve(ROW, verb=verb, progress=progress)
        StateStore(documents, clock).change("key", lambda _, row=row: row)
    assert ends == [None, None, None, clock.now + 7 * 24 * 3600]


# --- the first call


@pytest.mark.parametrize(
    ("old", "new", "current", "named", "discarded"),
    [
        ("north", "north", "north", "north", ""),
        ("north", "south", "north", "south", ""),
        ("south", "north", "north", "north", "south"),
        ("north", "south", "invented", "south", ""),
        ("north", "north", "invented", "north", ""),
    ],
)
def test_the_id_that_an_update_gets_and_the_replacement_that_it_discards(old, new, current, named, discarded):
    toys = Toys()
    types = toys.invocations.lifecycle().types

    def name(shelf):
        event = toys.resource(shelf=shelf).event("Create")
        return on_event(event, 1.5, types)["PhysicalResourceId"]

    toy = toys.resource(shelf=new)
    given = name(current) if current != "invented" else "lake-Toy-1F2E3D"
    before = {"shelf": old, "retired": "by an earlier release"}
    answer = on_event(toy.event("Update", before, PhysicalResourceId=given), 1.5, types)
    assert answer == {
        "PhysicalResourceId": name(named),
        "StartedAt": 1.5,
        "Discard": name(discarded) if discarded else "",
    }


def test_a_delete_keeps_its_id_and_is_not_checked():
    toys = Toys()
    event = toys.resource(size="large").event("Delete", PhysicalResourceId="invented")
    answer = on_event(event, 1.5, toys.invocations.lifecycle().types)
    assert answer == {"PhysicalResourceId": "invented", "StartedAt": 1.5}


@pytest.mark.parametrize(("seconds", "is_raised"), [(119.0, False), (120.0, True)])
def test_a_denial_of_the_table_is_retried_for_two_minutes(seconds, is_raised):
    toys = Toys()
    event = toys.resource().event("Create")
    known = {**event, **toys.invocations.on_event(event)}
    toys.clock.sleep(seconds)
    denial = Denied(errors.AWS_REFUSED, "reading the table", patience=120.0)
    toys.invocations.documents.read = lambda key: raise_(denial)
    if not is_raised:
        assert toys.invocations.is_complete(known) == {"IsComplete": False}
        return
    with pytest.raises(Denied):
        toys.invocations.is_complete(known)
