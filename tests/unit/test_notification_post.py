"""Each mail is sent once, whatever call fails or kills the function.

It is sent twice only if SNS's acceptance was lost.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.notifications import errors as notification_errors
from lambdas.shared.errors import InProgress, LakeferryError, Refused, Transient
from tests.support.notification_environment import (
    ANALYSTS,
    BUCKET,
    ENGINEERS,
    FAULTS,
    Killed,
    NotificationEnvironment,
    blocked,
    incomplete,
    published,
    record,
)

WINDOW = re.compile(r"2026-W\d\d")
WINDOWS = (published("2026-W45"), blocked("2026-W46"), incomplete("2026-W47"))
#: One mail per window to the recipients, and for problems another to the engineers.
WANTED = {(ANALYSTS, "2026-W45"): 1}
WANTED |= {(topic, window): 1 for topic in (ANALYSTS, ENGINEERS) for window in ("2026-W46", "2026-W47")}
#: How often Lambda invokes a function that fails.
TRIES = 3
_invocations = itertools.count(1)


def sent(env):
    """Return the number of mails by topic and window."""
    return Counter((topic, WINDOW.search(subject)[0]) for topic, subject, _ in env.topics.mails)


def invoke(env, tries=TRIES):
    """Deliver the event as Lambda does: again with the same request id while the function fails."""
    invocation = f"event-{next(_invocations)}"
    for _ in range(tries):
        try:
            env.deliver(state="FAILED", invocation=invocation)
        except (LakeferryError, Killed):
            continue
        return True
    return False


def environment_with_run():
    env = NotificationEnvironment()
    env.run(record(*WINDOWS))
    return env


def calls_of_one_run():
    env = environment_with_run()
    env.deliver(state="FAILED")
    return env.wire.names


CALLS = calls_of_one_run()


def test_n1_an_event_that_comes_twice_or_late_makes_one_mail():
    env = environment_with_run()
    for _ in range(3):
        env.deliver(state="FAILED")
        env.clock.sleep(26 * 3600)
    assert sent(env) == WANTED


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_n3_each_mail_is_sent_despite_any_fault_and_n4_at_most_twice(fault):
    """A second copy is sent only if SNS accepted the first, and its response or the write after it was
    lost.
    """
    for number, name in enumerate(CALLS):
        env = environment_with_run()
        env.wire.faults[number] = fault
        assert invoke(env), (number, name)
        counted = sent(env)
        assert set(counted) == set(WANTED), (number, name)
        answer_lost = (name, fault) in {("Publish", "no answer"), ("Publish", "killed after")}
        after_publish = CALLS[number - 1] == "Publish" and fault in {"refused", "not sent", "killed before"}
        assert sum(counted.values()) - len(WANTED) <= (1 if answer_lost or after_publish else 0), (
            number,
            name,
        )


@given(st.dictionaries(st.integers(0, TRIES * len(CALLS)), st.sampled_from(FAULTS), max_size=6))
def test_n4_no_sequence_of_faults_sends_too_many_mails_or_loses_one_silently(faults):
    """If all tries fail, the event goes to the dead-letter queue, which has an alarm."""
    env = environment_with_run()
    env.wire.faults = faults
    succeeded = invoke(env)
    counted = sent(env)
    assert max(counted.values(), default=0) <= TRIES
    assert not succeeded or set(counted) == set(WANTED)


def test_n4_a_second_copy_has_the_same_subject_with_the_runs_id():
    env = environment_with_run()
    env.wire.faults = {CALLS.index("Publish"): "no answer"}
    assert invoke(env)
    (twice,) = [subject for subject, count in Counter(env.topics.subjects()).items() if count == 2]
    assert "20261116T060009Z-5a0c9e12" in twice


def test_an_answer_that_was_lost_is_reported_as_uncertain():
    env = environment_with_run()
    env.wire.faults = {CALLS.index("Publish"): "no answer"}
    with pytest.raises(LakeferryError) as raised:
        env.deliver(state="FAILED")
    assert raised.value.kind is notification_errors.UNCERTAIN


def test_a_mail_of_a_dead_invocation_is_not_sent_until_its_marker_is_deleted():
    env = environment_with_run()
    env.wire.faults = {CALLS.index("Publish"): "killed before"}
    with pytest.raises(Killed):
        env.deliver(state="FAILED")
    env.wire.faults = {}
    with pytest.raises(InProgress) as raised:
        env.deliver(state="FAILED")
    assert raised.value.kind is notification_errors.BUSY
    assert set(WANTED) - set(sent(env)) == {(ANALYSTS, "2026-W45")}
    (marker,) = re.findall(rf"s3://{BUCKET}/(\S+\.json)", str(raised.value))
    del env.bucket.objects[marker]
    env.deliver(state="FAILED")
    assert sent(env) == WANTED


def test_a_later_run_sends_its_own_mail_though_an_earlier_ones_is_stuck():
    env = environment_with_run()
    env.wire.faults = {CALLS.index("Publish"): "killed before"}
    with pytest.raises(Killed):
        env.deliver(state="FAILED")
    env.run(record(published("2026-W45"), weeks=1), 2)
    env.deliver(2)
    assert [subject.rsplit(" ", 1)[1] for subject in env.topics.subjects()] == ["complete"]


def test_two_invocations_at_once_send_one_mail():
    """The second invocation runs during each call of the first."""
    for number, name in enumerate(CALLS):
        env = environment_with_run()
        inner = []
        carry = env.wire.carry

        def meanwhile(name, effect, number=number, env=env, inner=inner, carry=carry):
            if env.wire.calls == number and not inner:
                inner.append(name)
                with contextlib.suppress(InProgress):
                    env.deliver(state="FAILED", invocation="the second")
            return carry(name, effect)

        env.wire.carry = meanwhile
        assert invoke(env)
        env.wire.carry = carry
        env.deliver(state="FAILED", invocation="the second")
        assert sent(env) == WANTED, (number, name)


def test_a_mail_that_cannot_be_sent_blocks_no_other():
    env = environment_with_run()
    env.wire.faults = {CALLS.index("Publish"): "refused"}
    with pytest.raises(LakeferryError) as raised:
        env.deliver(state="FAILED")
    assert raised.value.kind is notification_errors.NOT_SENT
    assert sum(sent(env).values()) == len(WANTED) - 1
    env.deliver(state="FAILED")
    assert sent(env) == WANTED


def test_of_two_failures_the_permanent_one_is_reported():
    faults = {CALLS.index("Publish"): "no answer"}
    probe = environment_with_run()
    probe.wire.faults = dict(faults)
    with pytest.raises(Transient):
        probe.deliver(state="FAILED")
    last_marker = max(number for number, name in enumerate(probe.wire.names) if name == "GetObject")
    env = environment_with_run()
    env.wire.faults = faults | {last_marker: "refused"}
    with pytest.raises(Refused):
        env.deliver(state="FAILED")


def test_a_repeatedly_refused_mail_is_sent_by_any_later_invocation():
    """For example, somebody invokes the function with the event of the dead-letter queue."""
    env = environment_with_run()
    publish = env.topics.publish

    def refused(**asked):
        env.wire.faults = {env.wire.calls: "refused"}
        return publish(**asked)

    env.topics.publish = refused
    for _ in range(5):
        with pytest.raises(LakeferryError, match="MAIL-NOT-SENT"):
            env.deliver(state="FAILED")
    env.topics.publish = publish
    env.deliver(state="FAILED")
    assert sent(env) == WANTED


def test_a_mail_that_was_refused_after_a_lost_answer_is_sent_by_any_later_invocation():
    env = environment_with_run()
    publish = env.topics.publish
    for fault in ("no answer", "refused"):

        def failing(fault=fault, **asked):
            env.wire.faults = {env.wire.calls: fault}
            return publish(**asked)

        env.topics.publish = failing
        with pytest.raises(LakeferryError):
            env.deliver(state="FAILED", invocation="first")
    env.topics.publish = publish
    env.deliver(state="FAILED", invocation="later")
    assert sent(env) == dict.fromkeys(WANTED, 2)


def test_a_marker_holds_nothing_of_a_mails_text():
    env = environment_with_run()
    env.deliver(state="FAILED")
    marker = json.loads(env.bucket.objects["notices/weekly_sales/2026-W46/recipients.json"][0])
    assert marker == {
        "run": "20261116T060009Z-5a0c9e12",
        "failure": "blocked",
        "identities": ["blocked-EXP-CHECK-BLOCKED"],
        "sending": "",
    }
