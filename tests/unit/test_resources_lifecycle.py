"""CloudFormation's events for a resource, in any order and repeated, and the objects that exist
afterwards.
"""

from __future__ import annotations

import io
import json
import threading

import pytest
from botocore.exceptions import ClientError

from lambdas.shared import aws, errors
from lambdas.shared.errors import (
    BadProperties,
    Denied,
    LakeferryError,
    OutOfTime,
    RateLimited,
    Refused,
    StaleRequest,
    TimedOut,
    Transient,
)
from tests.support.resource_environment import Resource
from tests.support.toy_kind import Toys


@pytest.fixture
def toys():
    return Toys(ready_after=12, gone_after=12)


def finish(invocations, event, physical_id):
    """Call `is_complete` until it is complete, and return its last answer."""
    known = {**event, "PhysicalResourceId": physical_id}
    while not (answer := invocations.is_complete(known))["IsComplete"]:
        invocations.clock.sleep(5)
    return answer


def test_create_update_delete(toys):
    toy = toys.resource(size="2")
    assert toy.create() == {"id": "thing-1", "size": "2"}
    assert toy.update(size="3") == {"id": "thing-1", "size": "3"}
    toy.delete()
    assert toys.shop.things == {}
    assert toys.shop.writes() == ["create", "change", "remove"]


def test_a_repeated_create_has_one_object_and_one_answer(toys):
    toy = toys.resource()
    event = toy.event("Create")
    first = toy.run(event), toy.outputs
    assert (toy.run(event), toy.outputs) == first
    assert toys.shop.writes() == ["create"]


def test_on_event_calls_no_vendor_and_writes_nothing(toys):
    toy = toys.resource()
    toys.invocations.on_event(toy.event("Create"))
    toys.invocations.on_event(toy.event("Delete", PhysicalResourceId="invented"))
    assert toys.shop.calls == []
    assert toys.invocations.documents.rows == {}


def test_wrong_properties_are_reported_first_and_their_delete_succeeds(toys):
    toy = toys.resource(size="large")
    with pytest.raises(BadProperties, match="size: 'large' is not a whole number"):
        toys.invocations.on_event(toy.event("Create"))
    assert toy.run(toy.event("Delete", PhysicalResourceId="invented")) == "invented"
    assert toys.shop.calls == []


def test_a_foreign_id_is_refused(toys):
    toy = toys.resource()
    with pytest.raises(LakeferryError, match="LF-FOREIGN-EVENT"):
        toys.invocations.is_complete(toy.event("Create", PhysicalResourceId="lake-Toy-1F2E3D"))


def test_an_unknown_kind_is_reported(toys):
    with pytest.raises(BadProperties, match="'chair' is none of toy"):
        toys.invocations.on_event(Resource(toys.invocations, "chair", "Chair").event("Create"))


@pytest.mark.parametrize("asked", [10.0, 3600.0, 86400.0])
def test_a_rate_limit_without_an_end_fails_in_time_with_the_vendor_s_reason(toys, asked):
    calls = []

    def limit(name, number, moment):
        calls.append(toys.clock.now)
        raise RateLimited(errors.INTERNAL, "a quota of the day is used up", wait=asked)

    toys.shop.at_call = limit
    toy = toys.resource()
    with pytest.raises(TimedOut, match="a quota of the day is used up; the vendor asks to wait"):
        toy.create()
    assert calls[-1] - calls[0] <= toys.kind.TIMEOUT_SECONDS
    assert len(calls) >= 8


def test_deleting_an_object_that_never_existed_writes_nothing(toys):
    toy = toys.resource()
    toy.run(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D"))
    assert toys.shop.writes() == []


def test_a_delete_that_takes_effect_at_once_needs_one_poll():
    toys = Toys()
    toy = toys.resource()
    toy.create()
    event = toy.event("Delete")
    known = {**event, **toys.invocations.on_event(event)}
    assert toys.invocations.is_complete(known)["IsComplete"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_delete_with_a_property_of_an_earlier_release_succeeds(toys, is_known):
    toy = toys.resource()
    toy.create()
    toy.properties["retired"] = "x"
    if not is_known:
        toy.physical_id = "invented"
    toy.delete()
    assert toys.shop.things == {}


def test_deleting_a_missing_object_succeeds_twice(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.things.clear()
    toy.delete()
    toy.delete()
    assert toys.shop.writes() == ["create"]


def test_a_completed_delete_stays_complete(toys):
    toy = toys.resource()
    toy.create()
    event = toy.event("Delete")
    toy.run(event)
    calls = len(toys.shop.calls)
    assert toys.invocations.is_complete(event) == {"IsComplete": True}
    assert len(toys.shop.calls) == calls


def test_a_delete_with_an_invented_id_finds_the_object_by_its_name(toys):
    toy = toys.resource()
    toy.create()
    toys.invocations.documents.rows.clear()
    assert toy.run(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D")) == "lake-Toy-1F2E3D"
    assert toys.shop.things == {}


def test_what_somebody_changed_manually_is_repaired(toys):
    toy = toys.resource(size="2")
    toy.create()
    toys.shop.things["thing-1"]["size"] = 9
    toy.update()
    assert toys.sizes() == [2]
    toys.shop.things.clear()
    assert toy.update()["id"] == "thing-2"
    assert toys.sizes() == [2]


def test_a_missing_object_is_created_again_by_an_update_that_changes_nothing_but_the_repair(toys):
    toy = toys.resource(size="2")
    toy.create()
    before = toy.physical_id
    toys.shop.things.clear()
    assert toy.update(repair="1764000000")["id"] == "thing-2"
    assert (toys.sizes(), toy.physical_id) == ([2], before)
    writes = len(toys.shop.writes())
    toy.update(repair="1764000001")
    assert len(toys.shop.writes()) == writes


def test_a_replaced_object_is_deleted_after_the_new_one_works(toys):
    toy = toys.resource(shelf="north")
    toy.create()
    old_id = toy.physical_id
    old = toy.properties
    toy.properties = {"shelf": "south"}
    toy.physical_id = toy.run(toy.event("Update", old))
    assert toy.physical_id != old_id
    assert toys.shelves() == ["north", "south"]
    assert len({thing["name"] for thing in toys.shop.things.values()}) == 2
    toy.run({**toy.event("Delete", PhysicalResourceId=old_id), "ResourceProperties": {"kind": "toy", **old}})
    assert toys.shelves() == ["south"]


def test_a_rollback_of_a_replacement_returns_the_old_id(toys):
    toy = toys.resource(shelf="north")
    toy.create()
    old_id = toy.physical_id
    old = toy.properties
    new_id = toy.run(toy.event("Update", old, ResourceProperties={"kind": "toy", "shelf": "south"}))
    back = toy.event("Update", {"shelf": "south"}, PhysicalResourceId=new_id)
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    assert toy.run(back) == old_id
    gone = toy.event(
        "Delete", PhysicalResourceId=new_id, ResourceProperties={"kind": "toy", "shelf": "south"}
    )
    toy.run(gone)
    assert toys.shelves() == ["north"]
    assert "thing-1" in toys.shop.things


def test_an_unreported_replacement_is_deleted_by_its_rollback(toys):
    toy = toys.resource(shelf="north")
    toy.create()
    old_id = toy.physical_id
    old = toy.properties
    forward = toy.event("Update", old, ResourceProperties={"kind": "toy", "shelf": "south"})
    new_id = toys.invocations.on_event(forward)["PhysicalResourceId"]
    toys.invocations.is_complete({**forward, "PhysicalResourceId": new_id})
    assert toys.shelves() == ["north", "south"]
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    assert toy.run(toy.event("Update", {"shelf": "south"})) == old_id
    assert toys.existing() == ["thing-1"], "the rollback ends when the replacement is gone, not before"
    with pytest.raises(StaleRequest):
        toys.invocations.is_complete({**forward, "PhysicalResourceId": new_id})


def test_a_replacement_that_comes_after_its_rollback_creates_nothing(toys):
    """Its event reached the framework. Its work arrives when a later deployment updates other resources."""
    toy = toys.resource(shelf="north")
    toy.create()
    late = toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", "shelf": "south"})
    new_id = toys.invocations.on_event(late)["PhysicalResourceId"]
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    toy.run(toy.event("Update", {"shelf": "south"}))
    toys.stacks.status = "UPDATE_IN_PROGRESS"
    toys.stacks.creating = False
    with pytest.raises(StaleRequest):
        toys.invocations.is_complete({**late, "PhysicalResourceId": new_id})
    assert toys.shelves() == ["north"]


def test_a_partly_failed_update_is_rolled_back(toys):
    toy = toys.resource(size="2")
    toy.create()
    forward = toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", "size": "7"})
    toys.invocations.on_event(forward)
    toys.invocations.is_complete(forward)
    assert toys.sizes() == [7]
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    toy.run(toy.event("Update", {"size": "7"}))
    assert toys.sizes() == [2]


def test_an_update_that_comes_after_its_rollback_changes_nothing(toys):
    toy = toys.resource(size="2")
    toy.create()
    late = toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", "size": "7"})
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    back = toy.event("Update", {"size": "7"})
    toy.run(back)
    with pytest.raises(StaleRequest):
        toy.run(late)
    assert toys.sizes() == [2]
    toy.run(back)
    toy.run(toy.event("Update", {"size": "7"}))
    toys.stacks.status = "UPDATE_IN_PROGRESS"
    toy.run({**late, "RequestId": "a later deployment"})
    assert toys.sizes() == [7]


def test_an_update_that_comes_during_its_rollback_is_not_taken_for_it(toys):
    """CDK's framework reports a failure if its connection breaks; the call itself may arrive afterwards."""
    toy = toys.resource(size="2")
    toy.create()
    late = toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", "size": "7"})
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    with pytest.raises(StaleRequest):
        toy.run(late)
    toy.run(toy.event("Update", {"size": "7"}))
    assert toys.sizes() == [2]


def test_an_update_that_is_not_of_the_last_state_is_a_rollback(toys):
    """Its own forward update never arrived, or was accepted: both times the stack returns to where it was."""
    toy = toys.resource(size="2")
    toy.create()
    toy.run(toy.event("Update", toy.properties, ResourceProperties={"kind": "toy", "size": "3"}))
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    toy.run(toy.event("Update", {"kind": "toy", "size": "3"}))
    assert toys.sizes() == [2]
    toys.stacks.status = "UPDATE_IN_PROGRESS"
    toy.properties = {"size": "5"}
    toy.run(toy.event("Update", {"size": "2"}))
    toys.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    toy.run(toy.event("Update", {"size": "9"}))
    assert toys.sizes() == [5]


def test_a_create_after_its_delete_creates_nothing(toys):
    toy = toys.resource()
    late = toy.event("Create")
    toy.run(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D"))
    toys.stacks.creating = False
    with pytest.raises(StaleRequest):
        toy.run(late)
    assert toys.shop.writes() == []


def test_a_create_that_was_refused_stays_refused_when_it_comes_again(toys):
    toy = toys.resource(size="2")
    late = toy.event("Create")
    toy.run(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D"))
    toys.stacks.creating = False
    with pytest.raises(StaleRequest):
        toy.run(late)
    toys.stacks.creating = True
    toy.properties = {"kind": "toy", "size": "5"}
    toy.create()
    toys.stacks.creating = False
    with pytest.raises(StaleRequest):
        toy.run(late)
    assert toys.sizes() == [5]


def test_a_resource_that_was_deleted_may_be_created_again(toys):
    toy = toys.resource()
    toy.create()
    toy.delete()
    assert toy.create()["id"] == "thing-2"


def test_a_repeated_event_has_no_effect(toys):
    toy = toys.resource()
    create = toy.event("Create")
    toy.physical_id = toy.run(create)
    delete = toy.event("Delete")
    toy.run(delete)
    toy.create()
    for old in (create, delete):
        with pytest.raises(StaleRequest):
            toys.invocations.is_complete({**old, "PhysicalResourceId": toy.physical_id})
    assert len(toys.shop.things) == 1


def test_a_delete_waits_for_a_running_create_and_deletes_its_object(toys):
    """The delete comes before and after the effect of each call of the create, which continues until it finds
    out.
    """
    probe = Toys()
    probe.resource().create()
    for number in range(1, len(probe.shop.calls) + 1):
        for moment in ("before", "after"):
            toys = Toys()
            toy = toys.resource()
            others = []

            def come_in(name, at, when, toys=toys, toy=toy, others=others, number=number, moment=moment):
                if (at, when) == (number, moment) and not others:
                    delete = toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D")
                    others.append(delete)
                    toys.invocations.on_event(delete)
                    assert toys.invocations.is_complete(delete) == {"IsComplete": False}

            toys.shop.at_call = come_in
            with pytest.raises(StaleRequest):
                toy.create()
            toys.shop.at_call = lambda *call: None
            finish(toys.invocations, others[0], "lake-Toy-1F2E3D")
            assert toys.shop.things == {}, (number, moment)


def test_an_overtaken_create_creates_nothing(toys):
    toy = toys.resource()

    def come_in(name, number, moment):
        toys.shop.at_call = lambda *call: None
        assert toys.invocations.is_complete(toy.event("Delete", PhysicalResourceId="lake-Toy-1F2E3D")) == {
            "IsComplete": False
        }

    toys.shop.at_call = come_in
    with pytest.raises(StaleRequest):
        toy.create()
    assert toys.shop.writes() == []


def test_a_concurrent_repeated_create_has_one_object():
    probe = Toys()
    probe.resource().create()
    for number in range(1, len(probe.shop.calls) + 1):
        toys = Toys()
        toy = toys.resource()
        nested = []
        event = toy.event("Create")

        def come_in(name, at, when, toys=toys, nested=nested, event=event, number=number):
            if at == number and not nested:
                nested.append(toys.invocations.on_event(event)["PhysicalResourceId"])
                nested.append(toys.invocations.is_complete({**event, "PhysicalResourceId": nested[0]}))

        toys.shop.at_call = come_in
        physical_id = toy.run(event)
        assert nested == [physical_id, {"IsComplete": False}]
        assert len(toys.shop.things) == 1


def test_two_threads_create_one_object(toys):
    toy = toys.resource()
    event = toy.event("Create")
    physical_id = toys.invocations.on_event(event)["PhysicalResourceId"]
    gate = threading.Barrier(8, timeout=60)
    failures = []

    def work():
        try:
            gate.wait()
            toys.invocations.is_complete({**event, "PhysicalResourceId": physical_id})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert finish(toys.invocations, event, physical_id)["IsComplete"]
    assert len(toys.shop.things) == 1


def test_two_stacks_share_nothing(toys):
    one = toys.resource(stack="one")
    other = toys.resource(stack="other")
    one.create()
    other.create()
    assert len({thing["name"] for thing in toys.shop.things.values()}) == 2
    kept = dict(toys.shop.things[other.outputs["id"]])
    one.delete()
    assert toys.shop.things == {other.outputs["id"]: kept}


def test_an_object_of_a_deleted_stack_is_taken_over_by_the_next_of_its_name(toys):
    toy = toys.resource(size="2")
    toy.create()
    toys.invocations.documents.rows.clear()
    again = toys.resource(size="3")
    again.stack_id = toy.stack_id.replace("11111111", "99999999")
    assert again.create() == {"id": "thing-1", "size": "3"}
    assert len(toys.shop.things) == 1


def test_a_slow_delete_is_requested_once_and_polled_rarely(toys):
    toys.shop.gone_after = 600
    toy = toys.resource()
    toy.create()
    toy.delete()
    assert toys.shop.writes().count("remove") == 5
    assert toys.shop.calls.count("listed") > 100


def test_an_object_in_use_is_waited_for_and_then_reported(toys):
    toy = toys.resource()
    toy.create()
    toys.shop.busy = True
    with pytest.raises(TimedOut, match="deleting toy Toy: thing-1 is in use; waited for 20 minutes"):
        toy.delete()
    toys.shop.busy = False
    toy.delete()
    assert toys.shop.things == {}


def test_an_object_that_never_becomes_ready_is_given_up_with_the_reason(toys):
    toys.shop.ready_after = 10**9
    with pytest.raises(TimedOut, match="creating toy Toy: thing-1 is being made; waited for 50 minutes"):
        toys.resource().create()


def test_an_update_is_applied_once_while_the_object_becomes_ready(toys):
    toy = toys.resource(size="2")
    toy.create()
    toys.shop.things["thing-1"]["ready_at"] = toys.clock.time() + 600
    assert toy.update(size="3")["size"] == "3"
    assert toys.kind.updated == ["thing-1"]


def test_a_refusal_of_the_vendor_is_reported_at_once(toys):
    toys.kind.refuse = True
    with pytest.raises(Refused, match="creating toy Toy: the vendor wants none"):
        toys.resource().create()
    assert toys.clock.slept == []


@pytest.mark.parametrize(("patience", "minutes"), [(120.0, 2), (1200.0, 20)])
def test_a_denial_is_retried_as_long_as_its_api_defines(toys, patience, minutes):
    def deny(name, number, moment):
        raise Denied(errors.WAITING, "no role", patience=patience)

    toys.shop.at_call = deny
    with pytest.raises(TimedOut, match=f"no role; waited for {minutes} minutes"):
        toys.resource().create()


def test_an_intermittent_denial_is_retried(toys):
    toys.shop.ready_after = 2000

    def deny(name, number, moment):
        if number % 7 == 0 and moment == "before":
            raise Denied(errors.WAITING, "no role")

    toys.shop.at_call = deny
    assert toys.resource().create()["id"] == "thing-1"


def test_an_invalid_key_never_makes_a_delete_succeed(toys):
    toy = toys.resource()
    toy.create()

    def deny(name, number, moment):
        raise Denied(errors.WAITING, "invalid API key", patience=1200.0)

    toys.shop.at_call = deny
    with pytest.raises(TimedOut, match="invalid API key; waited for 5 minutes"):
        toy.delete()
    assert len(toys.shop.things) == 1


@pytest.mark.parametrize("error", [Transient, Denied])
def test_what_a_request_waits_for_is_logged(toys, error):
    refusals = iter([error(errors.AWS_REFUSED, "no access yet")])

    def read(key):
        for refusal in refusals:
            raise refusal
        return right(key)

    def deny(name, number, moment):
        if number == 1:
            raise error(errors.WAITING, "no role yet")

    right = toys.invocations.documents.read
    toys.invocations.documents.read = read
    toys.shop.at_call = deny
    toys.invocations.log = io.StringIO()
    toys.resource().create()
    assert waits(toys)[:2] == [
        (errors.AWS_REFUSED.code, "no access yet"),
        (errors.WAITING.code, "no role yet"),
    ]


def waits(toys):
    lines = [json.loads(line) for line in toys.invocations.log.getvalue().splitlines()]
    return [(line["code"], line["reason"]) for line in lines if line["message"] == "waiting"]


def test_a_vendors_retry_after_is_respected(toys):
    calls = []

    def turn_away(name, number, moment):
        calls.append(toys.clock.now)
        if len(calls) == 1:
            raise RateLimited(errors.WAITING, "slow down", wait=100.0)

    toys.shop.at_call = turn_away
    toys.resource().create()
    assert calls[1] - calls[0] >= 100


def test_an_invocation_without_time_is_continued_by_the_next(toys):
    def stop(name, number, moment):
        if number % 3 == 1:
            raise OutOfTime(errors.OUT_OF_TIME, "no time is left")

    toys.shop.at_call = stop
    toy = toys.resource()
    toy.create()
    assert len(toys.shop.things) == 1


def test_an_unchangeable_object_is_created_again_under_the_same_id(toys):
    toy = toys.resource(colour="red")
    toy.create()
    before = toy.physical_id
    began = toys.clock.now
    assert toy.update(colour="blue", size="2")["id"] == "thing-2"
    assert toys.clock.now - began < 60, "nobody searches for what was deleted on purpose"
    assert toy.physical_id == before
    assert [thing["colour"] for thing in toys.shop.things.values()] == ["blue"]
    assert toys.kind.deleted == [("thing-1", "red", 1)], "it is deleted with the properties that it has"


def test_a_broken_object_is_deleted_with_the_wanted_properties(toys):
    toy = toys.resource()
    toy.create()
    toys.kind.broken = lambda thing: thing["ready_at"] < began
    began = toys.clock.now
    assert toy.update(size="2")["id"] == "thing-2"
    assert toys.kind.deleted == [("thing-1", "red", 2)]


def test_an_object_that_is_broken_at_first_is_created_again(toys):
    toys.kind.broken = lambda thing: toys.clock.now < toys.clock_start + 100
    toys.clock_start = toys.clock.now
    toys.resource().create()
    assert len(toys.shop.things) == 1
    assert toys.shop.writes().count("create") == 2


def test_an_object_that_stays_broken_is_reported_with_the_vendors_reason(toys):
    toys.kind.broken = lambda thing: True
    toy = toys.resource()
    with pytest.raises(TimedOut, match="is broken"):
        toy.create()
    assert toys.shop.writes().count("create") < 8
    toys.kind.broken = lambda thing: False
    toy.run(toy.event("Delete", PhysicalResourceId="lf1:toy:Toy:" + toy_generation(toys)))
    assert toys.shop.things == {}


def toy_generation(toys):
    (key,) = toys.invocations.documents.rows
    return key.rpartition(":")[2]


def test_a_failing_ledger_only_delays(toys):
    toy = toys.resource()
    event = toy.event("Create")
    known = {**event, "PhysicalResourceId": toys.invocations.on_event(event)["PhysicalResourceId"]}
    documents = toys.invocations.documents
    right = documents.write
    failing = iter([True, False, True, False, False, True, True, False, True])

    def write(*given):
        if next(failing, False):
            raise Transient(errors.AWS_REFUSED, "throttled")
        return right(*given)

    documents.write = write
    for _ in range(9):
        toys.invocations.is_complete(known)
        toys.clock.sleep(200)
    assert toys.invocations.is_complete(known)["IsComplete"]
    assert len(toys.shop.things) == 1


def test_a_deployment_that_is_retried_with_the_same_request_id_has_its_whole_time_again(toys):
    """CloudFormation reuses the id when it retries (aws-cdk PR 35988)."""
    toys.kind.broken = lambda thing: True
    toy = toys.resource()
    event = toy.event("Create")
    with pytest.raises(TimedOut):
        toy.run(event)
    toys.clock.sleep(2 * 3600)
    toys.kind.broken = lambda thing: False
    physical_id = toy.run(event)
    assert len(toys.shop.things) == 1
    assert toy.run(event) == physical_id, "a second delivery of the same event ends like the first"


@pytest.mark.parametrize(("code", "seconds"), [("AccessDeniedException", 120), ("ValidationException", 0)])
def test_a_permanent_refusal_of_aws_ends_the_request_soon(toys, code, seconds):
    toy = toys.resource()
    event = toy.event("Create")
    started_at = toys.clock.time()

    def read(key):
        with aws.translate_aws_errors("reading table"):
            raise ClientError({"Error": {"Code": code}}, "GetItem")

    toys.invocations.documents.read = read
    with pytest.raises(Refused, match=f"AWS-REFUSED .*{code}"):
        toy.run(event)
    assert seconds <= toys.clock.time() - started_at <= seconds + 5


def test_errors_name_operation_kind_and_id(toys):
    toys.kind.refuse = True
    with pytest.raises(LakeferryError) as raised:
        toys.resource("Trades").create()
    assert str(raised.value).startswith(
        "LF-INTERNAL  creating toy Trades: the vendor wants none. What to do: "
    )
