"""Whole mails to engineers about mails of SES that did not arrive, and the markers and logs about them."""

from __future__ import annotations

import json

import pytest

from lambdas.notifications import errors as notification_errors
from lambdas.notifications.undelivered import Reporter
from lambdas.shared.errors import LakeferryError, Refused, Transient
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from lambdas.shared.sns import SnsTopics
from tests.support.notification_environment import BUCKET, ENGINEERS, NotificationEnvironment

CORRECT = (
    "Correct the address in recipients of the export, or remove it, and deploy. SES stops sending "
    "to an address that does not exist, and the account's reputation suffers from each further mail."
)
WAIT = (
    "Nothing, if it happens once: the recipient's server may be busy, or the mailbox full. Ask the recipient "
    "if it happens again."
)
ASK = (
    "Ask the recipient. If the mails are not wanted, remove the address from recipients of the "
    "export, and deploy. AWS stops accounts with many complaints."
)


def make_event(kind, **given):
    mail = {
        "messageId": "0101-ab",
        "destination": ["ann@example.com", "ben@example.com"],
        "tags": {"export": ["weekly_sales"]},
        "commonHeaders": {"subject": "[Weekly sales] 2026-W46 - complete"},
        **given.pop("mail", {}),
    }
    return {"eventType": kind, "mail": mail, **given}


def report(env, event):
    Reporter(
        Objects(env.bucket, BUCKET), SnsTopics(env.topics), open_log(env.log), ENGINEERS, "notices"
    ).report(event)


def read_report(event):
    """Return the subject and the lines of the one mail."""
    env = NotificationEnvironment()
    report(env, event)
    ((topic, subject, body),) = env.topics.mails
    assert topic == ENGINEERS
    assert body.endswith("\n")
    return subject, body[:-1].split("\n")


SUBJECT = "Subject: [Weekly sales] 2026-W46 - complete"


def bounce(kind="Permanent", *recipients):
    return {"bounceType": kind, "bounceSubType": "General", "bouncedRecipients": list(recipients)}


@pytest.mark.parametrize(
    ("event", "subject", "lines"),
    [
        (
            make_event(
                "Bounce",
                bounce=bounce(
                    "Permanent",
                    {"emailAddress": "ann@example.com", "diagnosticCode": "smtp; 550 user unknown"},
                    {"emailAddress": "cleo@example.com"},
                    {"emailAddress": "dan@example.com", "diagnosticCode": "smtp; 551"},
                ),
            ),
            "a mail did not arrive",
            [
                "A mail of export weekly_sales did not arrive.",
                "To: ann@example.com, cleo@example.com, dan@example.com",
                SUBJECT,
                "Why: Permanent, General. smtp; 550 user unknown smtp; 551",
                f"What to do: {CORRECT}",
            ],
        ),
        (
            make_event("Bounce", bounce=bounce("Transient")),
            "a mail did not arrive",
            [
                "A mail of export weekly_sales did not arrive.",
                "To: ann@example.com, ben@example.com",
                SUBJECT,
                "Why: Transient, General.",
                f"What to do: {WAIT}",
            ],
        ),
        (
            make_event("Bounce", mail={"destination": None, "commonHeaders": None, "tags": None}),
            "a mail did not arrive",
            ["A mail of export unknown export did not arrive.", "To: ", f"What to do: {WAIT}"],
        ),
        (
            make_event(
                "Complaint",
                complaint={
                    "complainedRecipients": [{"emailAddress": "ann@example.com"}],
                    "complaintFeedbackType": "abuse",
                },
            ),
            "a mail was reported as spam",
            [
                "A mail of export weekly_sales was reported as spam.",
                "To: ann@example.com",
                SUBJECT,
                "Why: abuse",
                f"What to do: {ASK}",
            ],
        ),
        (
            make_event("Complaint", complaint={"complainedRecipients": [{"emailAddress": "ann@x.de"}]}),
            "a mail was reported as spam",
            [
                "A mail of export weekly_sales was reported as spam.",
                "To: ann@x.de",
                SUBJECT,
                f"What to do: {ASK}",
            ],
        ),
        (
            make_event("Reject", reject={"reason": "Bad content"}, mail={"commonHeaders": {"subject": ""}}),
            "a mail was not sent",
            [
                "A mail of export weekly_sales was not sent: SES found a virus in it.",
                "To: ann@example.com, ben@example.com",
                "Why: Bad content",
                "What to do: Look at the file of the export.",
            ],
        ),
        (
            make_event("Reject", reject={"reason": None}),
            "a mail was not sent",
            [
                "A mail of export weekly_sales was not sent: SES found a virus in it.",
                "To: ann@example.com, ben@example.com",
                SUBJECT,
                "What to do: Look at the file of the export.",
            ],
        ),
        (
            make_event("Reject", mail={"tags": {"export": []}}),
            "a mail was not sent",
            [
                "A mail of export unknown export was not sent: SES found a virus in it.",
                "To: ann@example.com, ben@example.com",
                SUBJECT,
                "What to do: Look at the file of the export.",
            ],
        ),
    ],
)
def test_the_whole_mail_about_each_event(event, subject, lines):
    export = lines[0].removeprefix("A mail of export ").split(" did")[0].split(" was")[0]
    assert read_report(event) == (f"[{export}] {subject}", lines)


def test_what_a_server_says_is_cleaned_and_an_address_stays():
    recipient = {"emailAddress": "a\nb@example.com", "diagnosticCode": "call +49 170 1234567\nBcc: x"}
    _, lines = read_report(
        make_event(
            "Bounce", bounce=bounce("Permanent", recipient), mail={"commonHeaders": {"subject": "x@y.de"}}
        )
    )
    assert lines[1:4] == ["To: a", "Subject: [hidden]", "Why: Permanent, General. call [hidden]"]


def test_each_kind_of_event_about_a_mail_is_reported_once_and_leaves_a_marker():
    env = NotificationEnvironment()
    events = [
        make_event("Bounce", bounce=bounce()),
        make_event("Complaint", complaint={}),
        make_event("Reject", mail={"messageId": "a/b c@d.e_f-g", "tags": {}}),
    ]
    for event in events * 2:
        report(env, event)
    assert len(env.topics.mails) == 3
    assert {key: json.loads(content) for key, (content, _) in env.bucket.objects.items()} == {
        "notices/undelivered/0101-ab-Bounce.json": {"export": "weekly_sales", "type": "Bounce"},
        "notices/undelivered/0101-ab-Complaint.json": {"export": "weekly_sales", "type": "Complaint"},
        "notices/undelivered/a-b-c@d.e_f-g-Reject.json": {"export": "unknown export", "type": "Reject"},
    }


def test_the_log_has_of_an_address_its_first_letter_and_its_domain():
    env = NotificationEnvironment()
    report(env, make_event("Bounce", mail={"destination": ["ann@example.com", "b", "x@y@z.de"]}))
    entry = json.loads(env.log.getvalue())
    assert entry == {
        "level": "INFO",
        "message": "reported",
        "export": "weekly_sales",
        "type": "Bounce",
        "addresses": ["a…@example.com", "b…@b", "x…@z.de"],
    }


@pytest.mark.parametrize(
    ("fault", "kind", "sent"),
    [
        ("refused", notification_errors.NOT_SENT, 0),
        ("not sent", notification_errors.NOT_SENT, 0),
        ("no answer", notification_errors.UNCERTAIN, 1),
    ],
)
def test_a_report_that_failed_is_tried_again(fault, kind, sent):
    env = NotificationEnvironment()
    env.wire.faults = {1: fault}
    with pytest.raises(Transient) as raised:
        report(env, make_event("Bounce", bounce=bounce()))
    assert raised.value.kind is kind
    assert (len(env.topics.mails), env.bucket.objects) == (sent, {})
    report(env, make_event("Bounce", bounce=bounce()))
    assert len(env.topics.mails) == sent + 1


@pytest.mark.parametrize(("kind", "named"), [("Delivery", "Delivery"), (None, "None"), ("a\nb", "a")])
def test_an_event_of_another_type_is_refused_by_its_type(kind, named):
    env = NotificationEnvironment()
    with pytest.raises(Refused) as raised:
        report(env, make_event(kind))
    assert raised.value.kind is notification_errors.EVENT
    assert raised.value.what == f"an event of SES of type {named}"
    assert env.wire.calls == 0


def test_an_event_without_a_type_is_refused():
    with pytest.raises(LakeferryError):
        report(NotificationEnvironment(), {"mail": {}})
