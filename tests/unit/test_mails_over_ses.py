"""Mails over SES: what they look like, that each recipient gets one, and what happens if one bounces."""

from __future__ import annotations

import email
import email.policy
import hashlib
import json
import re
from html.parser import HTMLParser

import attrs
import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from config.exports import contracts
from dev.docs import samples
from lambdas.notifications import errors as notification_errors
from lambdas.notifications.attachments import Attachment, read_attachments
from lambdas.notifications.ses_mailer import SesMailer
from lambdas.notifications.undelivered import Reporter
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.http import NotSent, ResponseLost
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from lambdas.shared.ses import SesSender
from lambdas.shared.sns import SnsTopics
from tests.support.notification_environment import (
    BUCKET,
    ENGINEERS,
    SALES,
    NotificationEnvironment,
    blocked,
    incomplete,
    published,
    record,
)

SENDER = "Exports <exports@reports.example.com>"
READERS = ("ann@example.com", "ben@example.com")


class MemorySes:
    """Collects `mails` as (address, message, tags)."""

    def __init__(self, wire):
        self.wire = wire
        self.mails = []
        self.refused = set()

    def send_email(self, **asked):
        return self.wire.carry("SendEmail", lambda: self._send(asked))

    def _send(self, asked):
        (address,) = asked["Destination"]["ToAddresses"]
        if address in self.refused:
            raise ClientError(
                {"Error": {"Code": "MessageRejected"}, "ResponseMetadata": {"HTTPStatusCode": 400}},
                "SendEmail",
            )
        message = email.message_from_bytes(asked["Content"]["Raw"]["Data"], policy=email.policy.default)
        self.mails.append((address, message, asked["EmailTags"]))
        return {"MessageId": "1"}


class SesEnvironment(NotificationEnvironment):
    def __init__(self, addresses=READERS):
        super().__init__()
        self.ses = MemorySes(self.wire)
        ids = tuple(f"id-of-{number}" for number, _ in enumerate(addresses))
        self.exports = {SALES.name: attrs.evolve(SALES, topic="", recipients=ids, addresses=tuple(addresses))}

    def notifier(self, invocation):
        ses_mailer = SesMailer(SesSender(self.ses, SENDER, "lakeferry-dev-mails"))
        return attrs.evolve(super().notifier(invocation), ses_mailer=ses_mailer)


def notified(*windows, manifests=(), state="SUCCEEDED", addresses=READERS):
    env = SesEnvironment(addresses)
    for document in manifests:
        env.publish(document)
    env.run(record(*windows))
    env.deliver(state=state)
    return env


def manifest(**changed):
    return samples.manifests()[0] | changed


def read_page(message):
    return message.get_body(("html",)).get_content()


def first_page(*windows, **given):
    return read_page(notified(*windows, **given).ses.mails[0][1])


def read_words(page):
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).split())


def test_each_recipient_gets_one_mail_of_their_own_however_often_the_event_comes():
    env = notified(published(), manifests=[manifest()])
    env.deliver()
    assert [address for address, _, _ in env.ses.mails] == list(READERS)
    assert [(message["To"], message["From"]) for _, message, _ in env.ses.mails] == [
        (address, SENDER) for address in READERS
    ]
    assert {json.dumps(tags) for _, _, tags in env.ses.mails} == {
        json.dumps([{"Name": "export", "Value": "weekly_sales"}])
    }
    assert env.topics.mails == []


def test_engineers_get_their_alarms_over_sns():
    env = notified(blocked(), state="FAILED")
    assert [topic for topic, _, _ in env.topics.mails] == [ENGINEERS]
    assert len(env.ses.mails) == 2


def test_an_export_without_recipients_mails_nobody():
    env = notified(published(), manifests=[manifest()], addresses=())
    assert (env.ses.mails, env.topics.mails) == ([], [])


def test_a_mail_that_ses_refuses_is_repeated_to_that_recipient_alone():
    env = SesEnvironment()
    env.publish(manifest())
    env.run(record(published()))
    env.ses.refused = {READERS[0]}
    with pytest.raises(LakeferryError) as raised:
        env.deliver()
    assert raised.value.kind is notification_errors.NOT_SENT
    assert READERS[0] not in str(raised.value) + env.log.getvalue()
    env.ses.refused = set()
    env.deliver()
    assert sorted(address for address, _, _ in env.ses.mails) == sorted(READERS)


def test_the_text_has_the_same_facts_and_no_link_of_sns():
    message = notified(published(), manifests=[manifest()]).ses.mails[0][1]
    text = message.get_body(("plain",)).get_content()
    words = read_words(read_page(message))
    assert "unsubscribe" not in text
    for fact in ("15,249", "574,011.92 EUR", "31,870 pieces", "2026-W46", "weekly_sales_2026-W46.csv"):
        assert fact in text
        assert fact in words


def test_a_change_has_a_sign_and_a_word():
    before = manifest()["previous_window"]
    totals = {"line_total EUR": "500000", "line_total USD": "600000", "quantity": "31870"}
    page = first_page(published(), manifests=[manifest(previous_window=before | {"totals": totals})])
    words = read_words(page)
    assert "▲ +14.8 % compared with 2026-W45" in words
    assert "▼ −5.2 % compared with 2026-W45" in words
    assert "= unchanged from 2026-W45" in words


@pytest.mark.parametrize(
    ("window", "says"),
    [
        (published(status="empty"), "There were no rows in this window."),
        (incomplete(), "Not final yet"),
        (blocked(), "A unit price is negative."),
        (published(generation=2), "This is version 2 of the file"),
    ],
)
def test_each_state_is_explained(window, says):
    assert says in read_words(first_page(window, state="FAILED"))


class _Names(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = set()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.addresses += [value for name, value in attributes if name in {"src", "href", "background"}]


@pytest.mark.parametrize("size", [{}, {"size": None}, {"size": 0}])
def test_a_file_of_unknown_size_is_offered_as_empty(size):
    file = {"role": "data", "key": "exports/weekly_sales/sales.csv", **size}
    env = notified(published(files=[file]))
    message = env.ses.mails[0][1]
    assert "- sales.csv, 0.0 kB\r\n" in message.get_body(("plain",)).get_content()
    assert "sales.csv , 0.0 kB" in read_words(read_page(message))


def test_a_page_loads_and_runs_nothing_and_escapes_texts():
    hostile = '<script>alert(1)</script><img src="https://evil.example/x">'
    page = first_page(
        published(
            notes=[hostile], headline=[{"column": "a", "title": hostile, "unit": hostile, "total": hostile}]
        ),
        manifests=[manifest()],
    )
    names = _Names()
    names.feed(page)
    assert not names.tags & {"script", "img", "link", "iframe", "object", "form"}
    assert all(address.startswith("https://eu-west-1.console.aws.amazon.com/") for address in names.addresses)
    assert "url(" not in page
    assert "@import" not in page


def test_a_page_fits_on_a_telephone():
    """No element has a width of its own, nothing keeps a long line, and names may break anywhere."""
    page = first_page(published(), manifests=[manifest()])
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert re.findall(r"(?<![a-z-])(?:min-)?width:", style) == []
    assert "white-space" not in style
    assert "overflow-wrap:anywhere" in style
    assert "prefers-color-scheme:dark" in style
    names = _Names()
    names.feed(page)
    assert not names.tags & {"table", "pre"}


# --- attached files

#: An export whose contract attaches files of up to this many kilobytes.
ATTACHED = "weekly_sales_by_region"
MOST = contracts.load(ATTACHED).delivery.attach_up_to_kb * 1000


def attaching(*contents, changed=b"", name=ATTACHED):
    """Deliver the news of a window whose files have these contents. `changed` is what one has become."""
    env = SesEnvironment(("ann@example.com",))
    (settings,) = env.exports.values()
    env.exports = {name: attrs.evolve(settings, name=name)}
    files = []
    for role, content in zip(("data", "xlsx"), contents, strict=False):
        key = f"exports/{ATTACHED}/data/2026-W46/sales.{role.replace('data', 'csv')}"
        env.bucket.objects[key] = (changed or content, '"1"')
        digest = hashlib.sha256(content).hexdigest()
        files.append({"role": role, "key": key, "size": len(content), "sha256": digest})
    files.append({"role": "report", "key": "exports/report.html", "size": 5, "sha256": ""})
    env.run(record(published(files=files)) | {"export": name})
    env.deliver()
    return env


def read_attached(env):
    ((_, message, _),) = env.ses.mails
    return [
        (part.get_filename(), part.get_content_type(), part.get_payload(decode=True))
        for part in message.iter_attachments()
    ]


def test_small_files_are_attached_and_named_in_text_and_html():
    env = attaching(b"\xef\xbb\xbfregion,sold\r\nnorth,1\r\n", b"PK workbook")
    assert read_attached(env) == [
        ("sales.csv", "text/csv", b"\xef\xbb\xbfregion,sold\r\nnorth,1\r\n"),
        (
            "sales.xlsx",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            b"PK workbook",
        ),
    ]
    ((_, message, _),) = env.ses.mails
    for words in (message.get_body(("plain",)).get_content(), read_words(read_page(message))):
        assert "Attached: sales.csv, sales.xlsx." in words


@pytest.mark.parametrize(("size", "attached"), [(MOST, 1), (MOST + 1, 0)])
def test_files_are_attached_up_to_the_size_of_the_contract(size, attached):
    env = attaching(b"x" * size)
    assert len(read_attached(env)) == attached
    ((_, message, _),) = env.ses.mails
    assert ("Attached" in message.get_body(("plain",)).get_content()) is bool(attached)


def test_the_limit_is_that_of_all_files_together():
    assert read_attached(attaching(b"x" * (MOST - 10), b"y" * 11)) == []


@pytest.mark.parametrize(
    ("content", "changed"), [(b"region,sold", b"region,SOLD"), (b"region,SOLD", b"region,sold")]
)
def test_a_file_that_somebody_changed_is_not_sent(content, changed):
    with pytest.raises(LakeferryError) as raised:
        attaching(content, changed=changed)
    assert raised.value.kind is notification_errors.ATTACHMENT
    assert f"s3://{BUCKET}/exports/{ATTACHED}/data/2026-W46/sales.csv" in raised.value.what


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("a.csv", ("text", "csv")),
        ("a.csv.gz", ("application", "gzip")),
        ("a.jsonl", ("application", "jsonl")),
        ("a.parquet", ("application", "vnd.apache.parquet")),
        ("a.csv.zst", ("application", "octet-stream")),
        ("csv", ("application", "octet-stream")),
    ],
)
def test_a_file_is_attached_with_the_type_that_its_name_ends_with(name, content_type):
    attachment = Attachment(name, b"a person")
    assert attachment.type == content_type
    assert "person" not in repr(attachment)


def test_a_mail_about_a_file_that_has_expired_has_only_the_link():
    env = SesEnvironment(("ann@example.com",))
    missing = [{"role": "data", "key": "exports/gone.csv", "size": 1, "sha256": ""}]
    assert read_attachments(Objects(env.bucket, BUCKET), missing, 1) == ()


def test_nothing_is_attached_without_a_contract():
    assert read_attached(attaching(b"region,sold", name="not_in_project")) == []


def test_a_contract_that_attaches_nothing_attaches_nothing():
    env = notified(published(), manifests=[manifest()])
    assert [list(message.iter_attachments()) for _, message, _ in env.ses.mails] == [[], []]


# --- what SES answers


def send(raised):
    class Client:
        def send_email(self, **_):
            raise raised

    message = email.message.EmailMessage()
    SesSender(Client(), SENDER, "set").send(message, "ann@example.com", {})


def refusal(status, code):
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "SendEmail")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(500, "InternalFailure"), ResponseLost),
        (refusal(429, "TooManyRequestsException"), NotSent),
        (refusal(400, "LimitExceededException"), NotSent),
        (refusal(400, "MessageRejected"), Refused),
        (refusal(403, "AccessDeniedException"), Refused),
        (ConnectTimeoutError(endpoint_url="https://aws"), NotSent),
        (ReadTimeoutError(endpoint_url="https://aws"), ResponseLost),
    ],
)
def test_each_answer_of_ses_shows_whether_a_mail_may_have_been_sent(answer, error):
    with pytest.raises(error):
        send(answer)


# --- mails that did not arrive


def undelivered(kind, **about):
    mail = {
        "messageId": "0101-ab",
        "destination": ["ann@example.com"],
        "tags": {"export": ["weekly_sales"]},
        "commonHeaders": {"subject": "[Weekly sales] 2026-W46 - complete"},
    }
    return {"eventType": kind, "mail": mail, **about}


def report(env, *details):
    reporter = Reporter(
        Objects(env.bucket, BUCKET), SnsTopics(env.topics), open_log(env.log), ENGINEERS, "notices"
    )
    for detail in details:
        reporter.report(detail)


BOUNCE = {
    "bounceType": "Permanent",
    "bounceSubType": "General",
    "bouncedRecipients": [{"emailAddress": "ann@example.com", "diagnosticCode": "smtp; 550 user unknown"}],
}


def test_engineers_get_one_mail_about_a_bounce_with_the_address_that_logs_hide():
    env = NotificationEnvironment()
    report(env, *[undelivered("Bounce", bounce=BOUNCE)] * 2)
    ((topic, subject, body),) = env.topics.mails
    assert (topic, subject) == (ENGINEERS, "[weekly_sales] a mail did not arrive")
    for fact in (
        "To: ann@example.com",
        "2026-W46",
        "Permanent, General. smtp; 550 user unknown",
        "What to do",
    ):
        assert fact in body
    assert "ann@" not in env.log.getvalue()
    assert "a…@example.com" in env.log.getvalue()


@pytest.mark.parametrize(
    ("bounce_type", "advice"),
    [("Permanent", "Correct the address"), ("Transient", "Nothing, if it happens once")],
)
def test_the_advice_about_a_bounce_depends_on_whether_it_will_happen_again(bounce_type, advice):
    env = NotificationEnvironment()
    report(env, undelivered("Bounce", bounce=BOUNCE | {"bounceType": bounce_type}))
    ((_, _, body),) = env.topics.mails
    assert f"What to do: {advice}" in body


def test_a_complaint_and_a_rejection_are_reported():
    env = NotificationEnvironment()
    complained = {
        "complainedRecipients": [{"emailAddress": "ann@example.com"}],
        "complaintFeedbackType": "abuse",
    }
    report(
        env,
        undelivered("Complaint", complaint=complained),
        undelivered("Reject", reject={"reason": "Bad content"}),
    )
    assert [subject for _, subject, _ in env.topics.mails] == [
        "[weekly_sales] a mail was reported as spam",
        "[weekly_sales] a mail was not sent",
    ]


def test_a_report_that_sns_refused_is_sent_by_the_next_try():
    env = NotificationEnvironment()
    env.wire.faults[1] = "refused"
    with pytest.raises(LakeferryError):
        report(env, undelivered("Bounce", bounce=BOUNCE))
    report(env, undelivered("Bounce", bounce=BOUNCE))
    assert len(env.topics.mails) == 1


def test_another_event_of_ses_is_refused():
    with pytest.raises(Refused, match="MAIL-EVENT"):
        report(NotificationEnvironment(), undelivered("Delivery"))


def test_a_mail_arrives_in_the_embedded_aws(lake_aws):
    client = boto3.client("sesv2")
    client.create_email_identity(EmailIdentity="reports.example.com")
    client.create_configuration_set(ConfigurationSetName="of-a-test")
    env = SesEnvironment(("reader@example.com",))
    env.publish(manifest())
    env.run(record(published()))
    ses_mailer = SesMailer(SesSender(client, SENDER, "of-a-test"))
    attrs.evolve(env.notifier("1"), ses_mailer=ses_mailer).job_ended(SALES.job, "jr_1", "SUCCEEDED")
    from urllib.request import urlopen

    (mail,) = json.load(urlopen(f"{lake_aws.url}/_simulator/mail?to=reader@example.com"))
    assert mail["sender"] == SENDER
    assert "574,011.92" in mail["body"]
    assert "<!doctype html>" in mail["html"]
