"""How long a request waits for each kind of error, and what it says when the wait is over."""

from __future__ import annotations

import pytest

from lambdas.custom_resources.reconcile import StillSearching, check_retry_budget, check_slow
from lambdas.custom_resources.state import RequestProgress, ResourceState
from lambdas.shared import errors
from lambdas.shared.errors import (
    Conflict,
    Denied,
    InProgress,
    NeedsReplacement,
    NotFound,
    OtherTenant,
    ParentMissing,
    RateLimited,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    StaleRequest,
    TimedOut,
    Transient,
)
from tests.support.toy_kind import Toys

LIMIT = 3000.0
SINCE = 100.0


def make_row(verb="Create", **progress):
    return ResourceState("r", verb, "f", SINCE, "n", progress=RequestProgress(**progress))


def wait_for(row, error, seconds):
    """Check the error when it comes first, and again after so many seconds."""
    check_retry_budget(error, row, SINCE + 10, LIMIT)
    check_retry_budget(error, row, SINCE + 10 + seconds, LIMIT)


@pytest.mark.parametrize(
    ("verb", "error", "patience"),
    [
        ("Create", Denied(errors.INTERNAL, "no"), 120),
        ("Create", Denied(errors.INTERNAL, "no", patience=600.0), 600),
        ("Create", NotFound(errors.INTERNAL, "no"), 600),
        ("Create", Conflict(errors.INTERNAL, "no"), 600),
        ("Create", Refused(errors.INTERNAL, "no", patience=30.0), 30),
        ("Create", ResourceFailed(errors.INTERNAL, "no", patience=30.0), 30),
        ("Create", NeedsReplacement(errors.INTERNAL, "no", patience=30.0), 30),
        ("Create", ParentMissing(errors.INTERNAL, "no"), 600),
        ("Update", Denied(errors.INTERNAL, "no", patience=600.0), 600),
        ("Delete", Denied(errors.INTERNAL, "no", patience=600.0), 300),
        ("Delete", Denied(errors.AWS_REFUSED, "no"), 120),
        ("Delete", Refused(errors.INTERNAL, "no"), 1200),
        ("Delete", Conflict(errors.INTERNAL, "no"), 1200),
        ("Delete", ResourceFailed(errors.INTERNAL, "no", patience=30.0), 30),
    ],
)
def test_an_error_is_waited_out_for_its_patience(verb, error, patience):
    wait_for(make_row(verb), error, patience - 1)
    with pytest.raises(TimedOut) as raised:
        wait_for(make_row(verb), error, patience)
    assert raised.value.kind is error.kind
    minutes = (patience + 10) / 60
    assert raised.value.what == f"no; waited for {minutes:.0f} minutes"


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("Create", Refused(errors.INTERNAL, "no")),
        ("Create", ResourceFailed(errors.INTERNAL, "no")),
        ("Delete", Refused(errors.AWS_REFUSED, "no")),
        ("Delete", ResourceFailed(errors.INTERNAL, "no")),
        ("Create", OtherTenant(errors.INTERNAL, "no")),
        ("Create", StaleRequest(errors.OVERTAKEN, "no")),
    ],
)
def test_an_error_without_patience_is_raised_at_once(verb, error):
    with pytest.raises(type(error)) as raised:
        check_retry_budget(error, make_row(verb), SINCE, LIMIT)
    assert raised.value is error


@pytest.mark.parametrize(
    "error",
    [
        Transient(errors.INTERNAL, "no"),
        InProgress(errors.INTERNAL, "no"),
        ReplacementRequired(errors.INTERNAL, "no"),
        StillSearching(errors.INTERNAL, "no"),
        NotFound(errors.INTERNAL, "no", patience=9000.0),
    ],
)
def test_any_error_ends_with_the_time_of_the_request(error):
    check_retry_budget(error, make_row(), SINCE + LIMIT - 1, LIMIT)
    with pytest.raises(TimedOut, match="no; waited for 50 minutes"):
        check_retry_budget(error, make_row(), SINCE + LIMIT, LIMIT)


def test_each_error_has_its_own_patience():
    row = make_row()
    check_retry_budget(Denied(errors.INTERNAL, "no"), row, SINCE, LIMIT)
    check_retry_budget(Denied(errors.WAITING, "no"), row, SINCE + 119, LIMIT)
    check_retry_budget(ResourceFailed(errors.INTERNAL, "no", patience=30.0), row, SINCE + 119, LIMIT)
    assert row.progress.refused_since == {"LF-INTERNAL": SINCE, "LF-WAITING": SINCE + 119}
    assert row.progress.failed_since == SINCE + 119
    with pytest.raises(TimedOut):
        check_retry_budget(Denied(errors.INTERNAL, "no"), row, SINCE + 120, LIMIT)


@pytest.mark.parametrize(
    ("error", "is_forgotten"),
    [
        (InProgress(errors.WAITING, "it is being made"), True),
        (StillSearching(errors.VANISHED, "searching"), False),
        (Transient(errors.UNREACHABLE, "no answer"), False),
        (ResourceFailed(errors.WAITING, "it failed", patience=30.0), False),
    ],
)
def test_only_an_operation_that_makes_progress_ends_a_refusal(error, is_forgotten):
    row = make_row(refused_since={"LF-INTERNAL": SINCE}, failed_since=SINCE + 5)
    check_retry_budget(error, row, SINCE + 10, LIMIT)
    assert (row.progress.refused_since == {}) is is_forgotten
    assert row.progress.failed_since == SINCE + 5


@pytest.mark.parametrize(("asked", "wait"), [(0.0, 0.0), (299.0, 299.0), (300.0, 300.0), (9999.0, 300.0)])
def test_a_vendor_that_limits_the_rate_is_asked_again_after_five_minutes_at_most(asked, wait):
    row = make_row()
    check_retry_budget(RateLimited(errors.INTERNAL, "slow down", wait=asked), row, SINCE + 10, LIMIT)
    assert row.progress.not_before == SINCE + 10 + wait


def test_a_wait_that_is_longer_than_the_request_s_time_is_not_begun():
    limited = RateLimited(errors.INTERNAL, "slow down", wait=200.4)
    check_retry_budget(limited, make_row(), SINCE + LIMIT - 200.5, LIMIT)
    with pytest.raises(TimedOut) as raised:
        check_retry_budget(limited, make_row(), SINCE + LIMIT - 200.4, LIMIT)
    assert raised.value.kind is errors.INTERNAL
    assert raised.value.what == "slow down; the vendor asks to wait 200 s more"


@pytest.mark.parametrize(("verb", "problem"), [("Create", "it is not ready"), ("Delete", "it still exists")])
def test_slow_work_ends_with_the_time_of_the_request(verb, problem):
    row = make_row(verb, refused_since={"LF-INTERNAL": SINCE})
    check_slow(row, SINCE + LIMIT - 1, LIMIT)
    assert row.progress.refused_since == {}
    with pytest.raises(TimedOut) as raised:
        check_slow(row, SINCE + LIMIT, LIMIT)
    assert (raised.value.kind, raised.value.what) == (errors.WAITING, f"{problem} after 50 minutes")


# --- gaps between calls


def test_a_delete_is_sent_again_after_two_minutes():
    toys = Toys(gone_after=10**6)
    toy = toys.resource()
    toy.create()
    event = toy.event("Delete")
    known = {**event, **toys.invocations.on_event(event)}
    sent = []
    for _ in range(25):
        assert toys.invocations.is_complete(known) == {"IsComplete": False}
        sent.append(len(toys.kind.deleted))
        toys.clock.sleep(10)
    assert sent == [1] * 12 + [2] * 12 + [3]


def test_an_object_of_a_lost_create_is_ruled_out_after_a_minute():
    toys = Toys()
    toy = toys.resource()
    event = toy.event("Create")

    def lose(name, number, moment):
        if name == "create":
            toys.shop.at_call = lambda *call: None
            raise Transient(errors.UNREACHABLE, "no answer")

    toys.shop.at_call = lose
    known = {**event, **toys.invocations.on_event(event)}
    creates = []
    for _ in range(9):
        toys.invocations.is_complete(known)
        creates.append(toys.shop.writes().count("create"))
        toys.clock.sleep(10)
    assert creates == [1] * 7 + [2] * 2


def test_no_call_is_made_before_the_time_that_the_vendor_named():
    toys = Toys()
    event = toys.resource().event("Create")
    known = {**event, **toys.invocations.on_event(event)}
    toys.shop.at_call = lambda *call: limit()

    def limit():
        raise RateLimited(errors.INTERNAL, "slow down", wait=30.0)

    calls = []
    for _ in range(5):
        toys.invocations.is_complete(known)
        calls.append(len(toys.shop.calls))
        toys.clock.sleep(15)
    assert calls == [1, 1, 2, 2, 3]


def test_a_slow_object_is_given_up_in_the_answer_too():
    toys = Toys(ready_after=10**9)
    toys.kind.quiet = True
    toy = toys.resource()
    with pytest.raises(TimedOut, match="creating toy Toy: it is not ready after 50 minutes"):
        toy.run(toy.event("Create"), every=300)
