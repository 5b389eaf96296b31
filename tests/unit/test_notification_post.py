"""Each thing is told once, whatever fails or dies on the way; twice only where SNS took a mail and nobody heard of it."""

from __future__ import annotations

import contextlib
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notification_world import ANALYSTS, ENGINEERS, FAULTS, Killed, World, blocked, late, published, record

from lambdas.notifications import errors as notification_errors
from lambdas.notifications.mailer import CLAIM_SECONDS
from lambdas.shared.errors import InProgress, LakeferryError

WINDOW = re.compile(r"2026-W\d\d")
WINDOWS = (published("2026-W45"), blocked("2026-W46"), late("2026-W47"))
#: One mail a window to those who get files, and of trouble one to those who run the deployment.
WANTED = {(ANALYSTS, "2026-W45"): 1}
WANTED |= {(topic, window): 1 for topic in (ANALYSTS, ENGINEERS) for window in ("2026-W46", "2026-W47")}


def sent(world):
    """By topic and window."""
    return Counter((topic, WINDOW.search(subject)[0]) for topic, subject, _ in world.topics.mails)


def tried(world, again):
    """As Lambda does it: again after a while, as long as it fails."""
    for _ in range(again):
        try:
            world.tell(state="FAILED")
        except (LakeferryError, Killed):
            world.clock.sleep(CLAIM_SECONDS + 10)
        else:
            return


def world_with_run():
    world = World()
    world.run(record(*WINDOWS))
    return world


def calls_of_one_run():
    world = world_with_run()
    world.tell(state="FAILED")
    return world.wire.names


CALLS = calls_of_one_run()


def test_n1_an_event_that_comes_twice_or_late_is_told_once():
    world = world_with_run()
    for _ in range(3):
        world.tell(state="FAILED")
        world.clock.sleep(26 * 3600)
    assert sent(world) == WANTED


@pytest.mark.parametrize("fault", FAULTS)
def test_n3_whatever_call_fails_or_kills_each_mail_goes_out_and_n4_at_most_twice(fault):
    """A second copy only where SNS took the first and its answer, or the mark of it, was lost."""
    for number, name in enumerate(CALLS):
        world = world_with_run()
        world.wire.faults[number] = fault
        tried(world, 4)
        counted = sent(world)
        assert set(counted) == set(WANTED), (number, name)
        unheard = (name, fault) in {("Publish", "no answer"), ("Publish", "killed after")}
        marking = "Publish" in CALLS[max(number - 2, 0) : number] and (name, fault) != ("PutObject", "killed after")
        unmarked = marking and fault.startswith("killed")
        assert sum(counted.values()) - len(WANTED) <= (1 if unheard or unmarked else 0), (number, name)


@given(st.dictionaries(st.integers(0, 3 * len(CALLS)), st.sampled_from(FAULTS), max_size=6))
def test_n4_no_history_of_faults_sends_a_mail_three_times_or_loses_one_without_a_word(faults):
    world = world_with_run()
    world.wire.faults = faults
    tried(world, 12)
    counted = sent(world)
    assert max(counted.values(), default=0) <= 2
    given_up = "MAIL-UNCERTAIN" in world.said.getvalue()
    assert given_up or set(counted) == set(WANTED)


def test_n4_a_second_copy_carries_the_same_subject_with_the_runs_id():
    world = world_with_run()
    world.wire.faults = {CALLS.index("Publish"): "no answer"}
    tried(world, 3)
    (twice,) = [subject for subject, count in Counter(world.topics.subjects()).items() if count == 2]
    assert "20261116T060009Z-5a0c9e12" in twice


def test_a_mail_of_which_nobody_knows_twice_is_left_to_people_who_are_told():
    world = world_with_run()
    world.topics.wire.faults = {number: "no answer" for number, name in enumerate(CALLS) if name == "Publish"}
    publish = world.topics.publish
    lost = Counter()

    def deaf(**asked):
        world.wire.faults = {world.wire.calls: "no answer"}
        lost[asked["Subject"], asked["TopicArn"]] += 1
        return publish(**asked)

    world.topics.publish = deaf
    for _ in range(2):
        with pytest.raises(LakeferryError):
            world.tell(state="FAILED")
    with pytest.raises(LakeferryError) as told:
        world.tell(state="FAILED")
    assert told.value.row is notification_errors.UNCERTAIN
    world.tell(state="FAILED")
    assert set(lost.values()) == {2}


def test_two_invocations_at_once_send_one_mail():
    """The second one comes in the middle of each call of the first."""
    for number, name in enumerate(CALLS):
        world = world_with_run()
        inner = []
        carry = world.wire.carry

        def meanwhile(name, effect, number=number, world=world, inner=inner, carry=carry):
            if world.wire.calls == number and not inner:
                inner.append(name)
                with contextlib.suppress(InProgress):
                    world.tell(state="FAILED")
            return carry(name, effect)

        world.wire.carry = meanwhile
        try:
            world.tell(state="FAILED")
        except InProgress:
            world.clock.sleep(CLAIM_SECONDS + 1)
            world.tell(state="FAILED")
        assert sent(world) == WANTED, (number, name)


def test_one_mail_that_cannot_go_out_keeps_no_other_back():
    world = world_with_run()
    world.wire.faults = {CALLS.index("Publish"): "refused"}
    with pytest.raises(LakeferryError) as told:
        world.tell(state="FAILED")
    assert told.value.row is notification_errors.NOT_SENT
    assert sum(sent(world).values()) == len(WANTED) - 1
    world.tell(state="FAILED")
    assert sent(world) == WANTED


def test_a_mail_that_was_refused_often_still_goes_out_once_it_is_taken():
    """A refusal is an answer: nobody has to wonder about that mail."""
    world = world_with_run()
    publish = world.topics.publish

    def refused(**asked):
        world.wire.faults = {world.wire.calls: "refused"}
        return publish(**asked)

    world.topics.publish = refused
    for _ in range(5):
        with pytest.raises(LakeferryError, match="MAIL-NOT-SENT"):
            world.tell(state="FAILED")
    world.topics.publish = publish
    world.tell(state="FAILED")
    assert sent(world) == WANTED


def test_what_was_sent_keeps_no_text_in_the_bucket():
    world = world_with_run()
    world.tell(state="FAILED")
    world.run(record(published("2026-W46"), weeks=1), 2)
    world.tell(2)
    notice = world.bucket.objects["notices/weekly_sales/2026-W46.json"][0].decode()
    assert "kept back" not in notice
    assert "The file is ready" in notice, "the last one is there until the next"
