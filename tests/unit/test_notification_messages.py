"""The mails: for each state what happened, where the file is, who receives it, and nothing that a mail must
not contain.
"""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from itertools import chain

import pytest

from dev.docs import samples
from glue_jobs import arguments
from lambdas.notifications.mail_links import Links
from lambdas.notifications.message import build_subject
from tests.support.notification_environment import (
    ANALYSTS,
    ENGINEERS,
    NotificationEnvironment,
    blocked,
    failed,
    incomplete,
    published,
    record,
)

KEY = "exports/weekly_sales/data/2026-W46/20261116T060009Z-5a0c9e12/weekly_sales_2026-W46.csv"


def notified(*windows, state="done", reason=None, manifests=(), glue="SUCCEEDED", before=None):
    """Return the environment after one run. `before` is a run that was reported earlier."""
    env = NotificationEnvironment()
    for document in manifests:
        env.bucket.put(f"exports/weekly_sales/manifests/{document['window']['label']}.json", document)
    if before:
        env.run(before, 0)
        env.deliver(0, "FAILED")
        env.topics.mails.clear()
    env.run(record(*windows, state=state, reason=reason))
    env.deliver(state=glue)
    return env


def manifest(**changed):
    return samples.manifests()[0] | changed


def one(mails):
    (mail,) = mails
    return mail


def test_success_has_rows_location_and_how_to_open_the_file():
    env = notified(published(), manifests=[manifest()])
    assert (
        one(env.topics.subjects())
        == "[Weekly sales] 2026-W46, 15,249 rows, run 20261116T060009Z-5a0c9e12 - complete"
    )
    body = one(env.topics.bodies())
    assert body.startswith("Weekly sales, 2026-W46: complete.\n")
    assert "\n15,249 rows\n" in body
    assert "Line total: 574,011.92 EUR (" in body
    assert "Line total: 568,534.46 USD (" in body
    assert "% against 2026-W45)" in body
    assert (
        f"https://eu-west-1.console.aws.amazon.com/s3/object/lake-bucket?region=eu-west-1&prefix={KEY}\n"
        in body
    )
    assert f"aws s3 cp 's3://lake-bucket/{KEY}' .\n" in body
    assert "09 Nov 2026 00:00 Europe/Berlin to before 16 Nov 2026 00:00 Europe/Berlin" in body
    assert "Questions: sales-data team" in body
    assert "- weekly_sales_2026-W46.csv, 5.0 MB\n" in body
    assert "solved" not in body
    assert env.topics.subjects(ENGINEERS) == []


def test_a_small_file_has_its_size_in_kilobytes():
    (data,) = [file for file in manifest()["files"] if file["role"] == "data"]
    body = one(notified(published(files=[data | {"size": 2_460}])).topics.bodies())
    assert "- weekly_sales_2026-W46.csv, 2.5 kB\n" in body


def test_the_files_of_all_formats_are_linked():
    (data,) = [file for file in manifest()["files"] if file["role"] == "data"]
    others = [
        data | {"role": form, "key": data["key"].replace(".csv", f".{form}")}
        for form in ("parquet", "jsonl", "xlsx")
    ]
    body = one(notified(published(files=[data, *others])).topics.bodies())
    for ending in ("csv", "parquet", "jsonl", "xlsx"):
        assert f"- weekly_sales_2026-W46.{ending}, 5.0 MB\n" in body


def test_success_has_failed_checks_and_notes():
    check = {
        "id": "p",
        "severity": "warn",
        "message": "A price is odd.",
        "failed": 12,
        "of": "rows",
        "passed": False,
    }
    body = one(notified(published(checks=[check], notes=["2 texts were cut."])).topics.bodies())
    assert "Check: A price is odd. (12 rows)\n" in body
    assert "Note: 2 texts were cut.\n" in body


def test_success_has_what_a_check_found_and_no_check_that_could_not_be_made():
    check = {"id": "v", "severity": "warn", "message": "The volume is odd.", "failed": 1, "of": "file"}
    failed = check | {"passed": False, "found": "900 is 10 % less than usual", "unknown": None}
    unknown = check | {"message": "Not made.", "failed": 0, "passed": None, "unknown": "no earlier window"}
    body = one(notified(published(checks=[failed, unknown])).topics.bodies())
    assert "Check: The volume is odd. (900 is 10 % less than usual)\n" in body
    assert "Not made." not in body


def test_n4_numbers_of_a_later_version_are_not_mixed_into_an_earlier_ones_mail():
    env = notified(published(generation=1), manifests=[manifest(generation=2)])
    assert "% against" not in one(env.topics.bodies())


@pytest.mark.parametrize(("generation", "shown"), [(None, False), (1, False), (2, True)])
def test_a_file_that_replaces_another_says_so(generation, shown):
    body = one(notified(published(generation=generation), manifests=[manifest()]).topics.bodies())
    assert ("This is version 2 of the file" in body) is shown


def test_a_long_subject_keeps_the_beginning_of_the_title():
    rest = "x" * 200
    assert build_subject("Weekly sales", rest) == "[Weekl] " + "x" * 91
    assert build_subject("Weekly [x]" * 20, "rest").startswith("[Weekly (x)Weekly")


def test_empty_names_the_last_window_that_had_rows():
    former = manifest(window=manifest()["window"] | {"label": "2026-W45"})
    none = {"rows": 0}
    env = notified(published(status="empty", rows=none), manifests=[former, manifest(rows=none)])
    assert one(env.topics.subjects()).endswith("0 rows, run 20261116T060009Z-5a0c9e12 - empty")
    body = one(env.topics.bodies())
    assert "There were no rows in this window.\n\n0 rows\n" in body
    assert "The last window with rows is 2026-W45.\nThe window is from " in body


def test_a_first_window_without_rows_names_no_other():
    none = {"rows": 0}
    env = notified(published(status="empty", rows=none), manifests=[manifest(rows=none)])
    assert "last window with rows" not in one(env.topics.bodies())


def test_empty_without_a_file_names_the_last_file():
    former = [
        manifest(window=manifest()["window"] | {"label": label})
        for label in ("2026-W43", "2026-W45", "2026-W44")
    ]
    env = notified(
        published(state="skipped", status="empty", rows={"rows": 0}, notes=["2 texts were cut."]),
        manifests=former,
    )
    body = one(env.topics.bodies())
    assert "Note: 2 texts were cut.\n" in body
    assert "The last file with rows is of 2026-W45:" in body
    assert KEY in body


def test_incomplete_has_the_reason_and_the_next_try():
    env = notified(incomplete(), manifests=[manifest(window=manifest()["window"] | {"label": "2026-W45"})])
    body = one(env.topics.bodies())
    assert "Not final yet" in body
    assert "last commit is of 2026-11-15 21:40 UTC" in body
    assert "The next try is on 23 Nov 2026 07:00 Europe/Berlin." in body
    assert "2026-W45" in body
    assert one(env.topics.subjects(ENGINEERS)).endswith("- incomplete")


def test_blocked_has_the_checks_message_and_the_engineers_remedy():
    window = blocked("2026-W46")
    env = notified(window, glue="FAILED")
    body = one(env.topics.bodies())
    assert "not published" in body
    assert "A unit price is negative." in body
    assert "EXP-" not in body, "codes are for engineers"
    engineers = one(env.topics.bodies(ENGINEERS))
    assert "EXP-CHECK-BLOCKED" in engineers
    assert f"What to do: {window['remedy']}" in engineers
    assert "s3://lake-bucket/exports/weekly_sales/runs/20261116T060009Z-5a0c9e12.json" in engineers
    assert "#/job/lakeferry-dev-weekly_sales/run/jr_1" in engineers


def test_the_command_to_run_again_has_all_required_arguments():
    body = one(notified(blocked()).topics.bodies(ENGINEERS))
    (command,) = re.findall(r"^Run again: aws (glue start-job-run .*)$", body, re.MULTILINE)
    shown = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True, timeout=30
    )
    *words, given = shown.stdout.splitlines()
    assert words == ["glue", "start-job-run", "--job-name", "lakeferry-dev-weekly_sales", "--arguments"]
    assert json.loads(given).keys() == {"--as-of"}
    of_job = ["--export", "weekly_sales", "--database", "lkc", "--bucket", "lake"]
    parsed = arguments.parse([*of_job, *chain(*json.loads(given).items())], now=datetime.now(UTC))
    assert parsed.as_of.isoformat() == json.loads(given)["--as-of"].replace("Z", "+00:00")


def test_blocked_for_personal_data_does_not_say_where_it_was_found():
    window = blocked(
        code="EXP-PERSONAL-DATA",
        reason="the file of 2026-W46 holds what looks like personal data (note: 3 of Doe)",
    )
    body = one(notified(window).topics.bodies())
    assert "Doe" not in body
    assert "personal data" in body


def test_n5_a_failed_run_is_reported_once_and_to_engineers_with_its_code():
    reason = "EXP-TABLE-MISSING  the Glue catalog has no table lkc-abc123.sales_orders. Check the database"
    env = notified(state="failed", reason=reason, glue="FAILED")
    env.deliver(state="FAILED")
    assert one(env.topics.subjects()) == "[Weekly sales] run 20261116T060009Z-5a0c9e12 - failed"
    assert "The file is delayed." in one(env.topics.bodies())
    assert "EXP-" not in one(env.topics.bodies())
    assert "EXP-TABLE-MISSING  the Glue catalog has no table" in one(env.topics.bodies(ENGINEERS))


def test_n5_a_failed_window_is_not_reported_as_a_failed_run_too():
    window = failed()
    env = notified(window, glue="FAILED")
    assert one(env.topics.subjects()) == "[Weekly sales] 2026-W46, run 20261116T060009Z-5a0c9e12 - failed"


def test_a_run_that_died_is_reported_as_failed():
    env = notified(state="running", glue="TIMEOUT")
    assert one(env.topics.subjects()).endswith("- failed")
    assert "EXP-DIED" in one(env.topics.bodies(ENGINEERS))
    assert "State of the job: TIMEOUT" in one(env.topics.bodies(ENGINEERS))


def test_recovered_follows_blocked_and_brings_the_file():
    before = record(blocked("2026-W46"), weeks=-1)
    env = notified(published("2026-W46"), manifests=[manifest()], before=before)
    assert one(env.topics.subjects()).endswith("- recovered")
    body = one(env.topics.bodies())
    assert "The earlier problem is solved. This replaces the notice about it." in body
    assert KEY in body
    assert one(env.topics.subjects(ENGINEERS)).endswith("- recovered")


def test_recovered_follows_a_run_that_failed():
    before = record(weeks=-1, state="failed", reason="EXP-AWS-DENIED  reading failed. Allow it")
    env = notified(published("2026-W46"), before=before)
    first, second = env.topics.subjects()
    assert first.endswith("- complete")
    assert second == "[Weekly sales] run 20261116T060009Z-5a0c9e12 - recovered"
    complete, recovered = env.topics.bodies()
    assert "solved" not in complete
    assert "The earlier problem is solved.\n" in recovered


def test_a_complete_window_after_an_incomplete_one():
    env = notified(published("2026-W46"), before=record(incomplete("2026-W46"), weeks=-1))
    assert one(env.topics.subjects()).endswith("- complete")


def test_a_dry_run_is_not_reported():
    assert notified(published(state="dry_run")).topics.mails == []


@pytest.mark.parametrize("state", ["published", "unchanged", "superseded"])
def test_a_visible_window_is_reported_once_by_any_run(state):
    env = notified(published(state=state))
    env.run(record(published(state="unchanged"), weeks=1), 2)
    env.deliver(2)
    assert len(env.topics.mails) == 1


def test_a_new_version_of_a_file_is_reported_as_one():
    env = notified(published())
    env.run(record(published(generation=2), weeks=1), 2)
    env.deliver(2)
    assert "This is version 2 of the file" in env.topics.bodies()[1]


def test_n9_a_very_long_label_leaves_run_and_state_in_the_subject():
    subject = one(notified(incomplete("2026-W46" * 90)).topics.subjects())
    assert len(subject) < 100
    assert subject.endswith("run 20261116T060009Z-5a0c9e12 - incomplete")


# --- content that must never be in a mail

PLANTED = (
    "jo.doe@example.com", "+49 170 1234567", "4111111111111111", "Traceback (most recent call last)",
    "Bcc: thief", "cfltABCDEFGHIJKLMNOPQRSTUVWXYZ0123", "X-Amz-Signature=deadbeef",
    "-----BEGIN PRIVATE KEY-----",
)  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize(
    "kind", ["incomplete", "blocked", "failed", "run", "notes", "check", "unit", "file", "label"]
)
def test_n8_forbidden_content_is_in_no_mail_wherever_it_is_planted(planted, kind):
    dirty = (
        f"the value\n{planted}" if planted.startswith("Bcc") else f"the value https://x/y?{planted} {planted}"
    )
    check = {"id": "p", "severity": "warn", "message": dirty, "failed": 1, "of": "rows", "passed": False}
    windows = {
        "incomplete": incomplete() | {"reason": dirty},
        "blocked": blocked(reason=dirty, remedy=dirty),
        "failed": failed(reason=dirty, remedy=dirty, code=dirty),
        "run": published(state="dry_run"),
        "notes": published(notes=[dirty]),
        "check": published(checks=[check]),
        "unit": published(headline=[{"column": "a", "title": dirty, "unit": dirty, "total": dirty}]),
        "file": published(
            files=[{"role": "data", "key": f"exports/{dirty}", "size": 1, "sha256": "", "rows": 1}]
        ),
        "label": incomplete(f"2026-W46 {dirty}"),
    }
    made = record(
        windows[kind],
        state="failed" if kind == "run" else "done",
        reason=f"EXP-X  {dirty}" if kind == "run" else None,
    )
    env = NotificationEnvironment()
    env.run(made)
    env.deliver(state="FAILED")
    assert env.topics.mails
    shown = planted.split("=")[0] if "Signature" in planted else planted
    for _, subject, body in env.topics.mails:
        assert shown not in subject
        assert planted not in body


def test_n8_no_link_is_signed_and_every_link_asks_for_a_sign_in():
    env = notified(published(), manifests=[manifest()])
    hosts = {match for body in env.topics.bodies() for match in re.findall(r"https://([^/\s]+)", body)}
    assert hosts == {"eu-west-1.console.aws.amazon.com"}
    assert not any(
        word in body
        for body in env.topics.bodies()
        for word in ("Signature", "X-Amz", "AWSAccessKeyId", "token")
    )


def test_n8_an_unexpected_key_becomes_neither_a_link_nor_a_command():
    file = {
        "role": "data",
        "key": "exports/x' ; rm -rf ~ #&prefix=y\n.csv",
        "size": 1,
        "sha256": "",
        "rows": 1,
    }
    body = one(notified(published(files=[file])).topics.bodies())
    assert "rm -rf" not in body
    assert "the window's manifest has their keys" in body
    links = Links("lake-bucket", "eu-west-1", "exports")
    assert links.page(file["key"]).endswith(
        "prefix=exports/x%27%20%3B%20rm%20-rf%20~%20%23%26prefix%3Dy%0A.csv"
    )
    assert links.command(file["key"]).count("'") == 2


def test_n5_glues_error_message_is_never_sent():
    """It has the job's exception, which may contain values of the data."""
    env = NotificationEnvironment()
    env.run(record(state="running"))
    env.glue.runs["jr_1"]["ErrorMessage"] = "ValueError: Ms Doe"
    env.deliver(state="FAILED")
    assert {topic for topic, _, _ in env.topics.mails} == {ANALYSTS, ENGINEERS}
    assert "Doe" not in str(env.topics.mails) + env.log.getvalue()
