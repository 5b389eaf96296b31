"""What is logged and raised when the function of notifications can't do its work."""

from __future__ import annotations

import json

import attrs
import pytest
from botocore.exceptions import ClientError

from dev.docs import samples
from lambdas.notifications import outcome
from lambdas.notifications.mail_links import Links
from lambdas.notifications.mailer import Marker
from lambdas.notifications.message import compose_alarm
from lambdas.notifications.outcome import Facts, RunOutcome
from lambdas.shared.errors import Denied, InProgress, LakeferryError, Transient
from tests.support.notification_environment import (
    ANALYSTS,
    BUCKET,
    ENGINEERS,
    SALES,
    NotificationEnvironment,
    blocked,
    published,
    record,
)

RUN = "20261116T060009Z-5a0c9e12"
MANIFEST = samples.manifests()[0]


def test_each_mail_that_is_not_sent_is_logged_with_its_marker():
    env = NotificationEnvironment()
    env.run(record(published()))
    env.topics.refused = {""}
    with pytest.raises(Transient):
        env.deliver()
    key = "notices/weekly_sales/2026-W46/recipients.json"
    (entry,) = [line for line in map(json.loads, env.log.getvalue().splitlines()) if line["level"] == "ERROR"]
    what = entry.pop("reason")
    assert entry == {
        "level": "ERROR",
        "message": "not sent",
        "marker": key,
        "run": RUN,
        "code": "MAIL-NOT-SENT",
    }
    assert "InvalidParameter" in what
    assert json.loads(env.bucket.objects[key][0]) == attrs.asdict(Marker())


def test_each_event_that_is_not_put_is_logged_with_its_window():
    env = NotificationEnvironment()
    env.publish(MANIFEST)
    env.run(record(published()))
    env.bus.code = "InternalFailure"
    with pytest.raises(LakeferryError, match="MAIL-EVENT-NOT-SENT"):
        env.deliver()
    entries = [line for line in map(json.loads, env.log.getvalue().splitlines()) if line["level"] == "ERROR"]
    assert [(entry["message"], entry["window"], entry["run"], entry["code"]) for entry in entries] == [
        ("not announced", "2026-W46", RUN, "MAIL-EVENT-NOT-SENT")
    ]


def test_without_a_topic_engineers_get_no_mail():
    env = NotificationEnvironment()
    env.run(record(blocked()))
    attrs.evolve(env.notifier("1"), alarm_topic="").job_ended(SALES.job, "jr_1", "FAILED")
    assert [topic for topic, _, _ in env.topics.mails] == [ANALYSTS]


def test_a_successful_run_without_a_record_is_named():
    env = NotificationEnvironment()
    env.run(record())
    env.bucket.objects.clear()
    with pytest.raises(LakeferryError) as raised:
        env.deliver()
    assert raised.value.what == f"run jr_1 of {SALES.job}, below exports/weekly_sales/runs/"
    with pytest.raises(LakeferryError) as raised:
        env.deliver(job="other")
    assert raised.value.what == "job other is not one of this deployment"


def test_a_marker_that_another_invocation_wrote_first_is_named():
    env = NotificationEnvironment()
    env.run(record(published()))
    key = "notices/weekly_sales/2026-W46/recipients.json"
    env.bucket.on_write = lambda: env.bucket.put(key, {})
    with pytest.raises(InProgress) as raised:
        env.deliver()
    assert raised.value.kind.code == "MAIL-BUSY"
    assert raised.value.what == f"s3://{BUCKET}/{key} was written by another invocation"
    assert env.topics.mails == []


def test_an_error_of_glue_names_the_run():
    class Denying:
        def get_job_run(self, **asked):
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetJobRun")

    with pytest.raises(Denied) as raised:
        outcome.get_job_run(Denying(), "the-job", "jr_1")
    assert raised.value.what.startswith("getting run jr_1 of job the-job: AccessDeniedException")


def test_an_alarm_without_a_code_needs_no_work_and_says_the_reason():
    news = RunOutcome("weekly_sales", "2026-W46", "incomplete", "incomplete", RUN, reason="late")
    mail = compose_alarm(
        ENGINEERS,
        news,
        "incomplete",
        Facts("Weekly sales", "", "UTC", None),
        links=Links(BUCKET, "eu-west-1", "exports"),
        export=SALES,
        job_run=("jr_1", "SUCCEEDED"),
    )
    lines = mail.body.splitlines()
    assert (mail.topic, mail.page, mail.attachments) == (ENGINEERS, "", ())
    assert (lines[1], lines[2], lines[-1]) == ("late", "", "Nothing has to be done.")
