"""Each recipient gets a mail of their own, once, whatever fails for the others."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import attrs
import pytest

from dev.docs import samples
from lambdas.notifications.mailer import LinkSigner
from lambdas.shared.errors import LakeferryError
from lambdas.shared.link_tokens import KeyRing, Link
from lambdas.shared.redaction import Secret
from tests.support.notification_environment import (
    ANALYSTS,
    ENGINEERS,
    FAULTS,
    SALES,
    Killed,
    NotificationEnvironment,
    blocked,
    published,
    record,
)

ANN = "a" * 16
BEN = "b" * 16
CLEO = "c" * 16
#: How often Lambda invokes a function that fails.
TRIES = 3
_invocations = itertools.count(1)


def environment(*recipients):
    env = NotificationEnvironment()
    set_recipients(env, *recipients)
    return env


def set_recipients(env, *recipients):
    env.exports[SALES.name] = attrs.evolve(SALES, recipients=recipients)


def invoke(env, number=1):
    """Deliver the event as Lambda does: again with the same request id while the function fails."""
    invocation = f"event-{next(_invocations)}"
    for _ in range(TRIES):
        try:
            env.deliver(number, invocation=invocation)
        except (LakeferryError, Killed):
            continue
        return True
    return False


def counted(env):
    topics = [topic for topic, _, _ in env.topics.mails]
    return Counter(
        recipient for topic, recipient in zip(topics, env.topics.recipients, strict=True) if topic == ANALYSTS
    )


def test_each_recipient_gets_one_mail_however_often_the_event_comes():
    env = environment(ANN, BEN)
    env.run(record(published()))
    for _ in range(3):
        env.deliver()
    assert counted(env) == {ANN: 1, BEN: 1}


def test_without_recipients_of_their_own_all_get_the_same_mail():
    env = environment()
    env.run(record(published()))
    env.deliver()
    assert counted(env) == {"": 1}


def test_a_mail_that_fails_for_one_recipient_is_repeated_to_that_one_only():
    env = environment(ANN, BEN, CLEO)
    env.run(record(published()))
    env.topics.refused = {BEN}
    assert not invoke(env)
    assert counted(env) == {ANN: 1, CLEO: 1}
    env.topics.refused = set()
    assert invoke(env)
    assert counted(env) == {ANN: 1, BEN: 1, CLEO: 1}


def count_calls():
    env = environment(ANN, BEN)
    env.run(record(published()))
    env.deliver()
    return env.wire.names


@pytest.mark.parametrize("fault", FAULTS)
def test_each_recipient_gets_the_mail_despite_any_fault_and_only_one_may_get_it_twice(fault):
    names = count_calls()
    for number, name in enumerate(names):
        env = environment(ANN, BEN)
        env.run(record(published()))
        env.wire.faults[number] = fault
        assert invoke(env), (number, name)
        assert set(counted(env)) == {ANN, BEN}, (number, name)
        answer_lost = (name, fault) in {("Publish", "no answer"), ("Publish", "killed after")}
        after_publish = names[number - 1] == "Publish" and fault in {"refused", "not sent", "killed before"}
        assert counted(env).total() - 2 <= (1 if answer_lost or after_publish else 0), (number, name)


def test_somebody_who_joins_the_list_gets_no_old_news():
    env = environment(ANN)
    env.run(record(published()), 1)
    env.deliver(1)
    set_recipients(env, ANN, BEN)
    env.run(record(published(state="unchanged"), weeks=1), 2)
    env.deliver(2)
    assert counted(env) == {ANN: 1}
    env.run(record(published(generation=2), weeks=2), 3)
    env.deliver(3)
    assert counted(env) == {ANN: 2, BEN: 1}


def test_nobody_gets_news_again_when_mails_of_their_own_begin_or_end():
    env = environment()
    for number, recipients in enumerate([(), (ANN, BEN), (), (BEN,)]):
        set_recipients(env, *recipients)
        env.run(record(published(state="unchanged" if number else "published"), weeks=number), number)
        env.deliver(number)
    assert counted(env) == {"": 1}


def test_an_earlier_problem_is_over_for_each_recipient():
    env = environment(ANN, BEN)
    env.run(record(blocked()), 1)
    env.deliver(1, "FAILED")
    env.run(record(published(), weeks=1), 2)
    env.deliver(2)
    recovered = [subject for subject in env.topics.subjects() if subject.endswith("recovered")]
    assert len(recovered) == 2


KEYS = KeyRing("lakeferry-dev", Secret("k" * 64))
LINK = re.compile(r"^https://links\.example\.com/open/(\S+)$", re.MULTILINE)


def environment_with_links(*recipients):
    env = environment()
    env.exports[SALES.name] = attrs.evolve(SALES, recipients=recipients, link_days=14)
    env.signer = LinkSigner(KEYS, "https://links.example.com", env.clock)
    return env


def read_links(env):
    """Return what the link of each mail opens, by recipient."""
    opened = {}
    for body, recipient in zip(env.topics.bodies(), env.topics.recipients, strict=True):
        (token,) = LINK.findall(body)
        signed = KEYS.verify(token, now=env.clock.time())
        assert signed.expires - signed.signed == 14 * 86400
        opened[recipient] = signed.link
    return opened


def test_each_mail_has_a_link_of_its_recipient_and_no_address_of_the_console():
    env = environment_with_links(ANN, BEN)
    env.run(record(published(generation=2)))
    env.deliver()
    assert read_links(env) == {who: Link(SALES.name, "2026-W46", 2, who) for who in (ANN, BEN)}
    for body in env.topics.bodies():
        assert "works until 30 Nov 2026 07:03 Europe/Berlin" in body
        assert "- weekly_sales_2026-W46.csv, 5.0 MB" in body
        assert "console.aws.amazon.com" not in body
        assert "aws s3 cp" not in body


def test_a_mail_without_a_file_has_a_link_to_the_last_one():
    env = environment_with_links(ANN)
    manifest = samples.manifests()[0]
    env.bucket.put("exports/weekly_sales/manifests/2026-W46.json", manifest)
    env.run(record(blocked("2026-W47")))
    env.deliver(state="FAILED")
    bodies = [body for body in env.topics.bodies() if "The last file with rows is of 2026-W46" in body]
    (token,) = LINK.findall(bodies[0])
    assert KEYS.verify(token, now=env.clock.time()).link == Link(SALES.name, "2026-W46", 1, ANN)


def test_engineers_get_no_link():
    env = environment_with_links(ANN)
    env.run(record(blocked()))
    env.deliver(state="FAILED")
    (alarm,) = env.topics.bodies(ENGINEERS)
    assert "links.example.com" not in alarm
