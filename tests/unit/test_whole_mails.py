"""Whole mails, line by line: what recipients and engineers read in each state."""

from __future__ import annotations

import re

import attrs
import pytest

from dev.docs import samples
from lambdas.notifications import message
from lambdas.notifications.mailer import LinkSigner
from lambdas.shared.link_tokens import KeyRing
from lambdas.shared.redaction import Secret
from tests.support.notification_environment import (
    ANALYSTS,
    ENGINEERS,
    SALES,
    NotificationEnvironment,
    blocked,
    failed,
    incomplete,
    published,
    record,
)

RUN = "20261116T060009Z-5a0c9e12"
KEY = f"exports/weekly_sales/data/2026-W46/{RUN}/weekly_sales_2026-W46.csv"
CONSOLE = "https://eu-west-1.console.aws.amazon.com"
CHECK = {
    "id": "p",
    "severity": "warn",
    "message": "A price is odd.",
    "failed": 1200,
    "of": "rows",
    "passed": False,
}
FILES = f"""Files. {message.HOW_TO_DOWNLOAD}
- weekly_sales_2026-W46.csv, 5.0 MB
  {CONSOLE}/s3/object/lake-bucket?region=eu-west-1&prefix={KEY}
  aws s3 cp 's3://lake-bucket/{KEY}' .
"""
NEXT = "The next try is on 23 Nov 2026 07:00 Europe/Berlin.\n"
CLOSING = f"Run: {RUN}\nQuestions: sales-data team\nTo unsubscribe, use the link below this text.\n"
NOTE = "Note: 2 texts were longer than 32,767 characters, Excel's limit, and cut to it.\n"
PLACES = f"""
Run's record: s3://lake-bucket/exports/weekly_sales/runs/{RUN}.json
Job's runs and logs: {CONSOLE}/gluestudio/home?region=eu-west-1#/job/lakeferry-dev-weekly_sales/run/jr_1
"""
AS_OF = r'"{\"--as-of\": \"$(date -u +%FT%TZ)\"}"'
AGAIN = f"Run again: aws glue start-job-run --job-name lakeferry-dev-weekly_sales --arguments {AS_OF}\n"


def manifest(**changed):
    return samples.manifests()[0] | changed


def manifest_of(label, **changed):
    return manifest(window=manifest()["window"] | {"label": label}, **changed)


def notified(*windows, glue="SUCCEEDED", manifests=(), before=None, exports=(), **ended):
    env = NotificationEnvironment()
    env.exports |= exports
    for document in manifests:
        env.publish(document)
    if before:
        env.run(before, 0)
        env.deliver(0, "FAILED")
        env.topics.mails.clear()
    env.run(record(*windows, **ended))
    env.deliver(state=glue)
    return env


def read_mails(env):
    """Return the bodies to recipients and to engineers, each without the line of the other's."""
    return env.topics.bodies(ANALYSTS), env.topics.bodies(ENGINEERS)


def test_a_complete_window():
    env = notified(published(checks=[CHECK]), manifests=[manifest()])
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: complete.

The file is ready.

15,249 rows
Line total: 574,011.92 EUR (+0.0 % against 2026-W45)
Line total: 568,534.46 USD (+0.0 % against 2026-W45)
Quantity: 31,870 pieces (+0.0 % against 2026-W45)

Check: A price is odd. (1,200 rows)
{NOTE}
{FILES}
The window is from 09 Nov 2026 00:00 Europe/Berlin to before 16 Nov 2026 00:00 Europe/Berlin.
{CLOSING}"""
        ],
        [],
    )


def test_a_window_without_rows_and_without_a_file():
    window = published(state="skipped", status="empty", rows={"rows": 0})
    env = notified(window, manifests=[manifest_of("2026-W45")])
    assert env.topics.subjects() == [f"[Weekly sales] 2026-W46, run {RUN} - empty"]
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: empty.

There were no rows in this window.

{NOTE}
The last file with rows is of 2026-W45:
{FILES}
{NEXT}
{CLOSING}"""
        ],
        [],
    )


def test_an_incomplete_window():
    env = notified(incomplete())
    reason = "the table's last commit is of 2026-11-15 21:40 UTC, before the window's end"
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: incomplete.

Not final yet: the table does not have all data of this window.
Because {reason}.

{NEXT}
{CLOSING}"""
        ],
        [
            f"""Export weekly_sales, window 2026-W46: incomplete.
{reason}
{PLACES}State of the job: SUCCEEDED
Nothing has to be done.
"""
        ],
    )


def test_an_incomplete_window_without_a_reason():
    env = notified(incomplete() | {"reason": None})
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: incomplete.

Not final yet: the table does not have all data of this window.

{NEXT}
{CLOSING}"""
        ],
        [
            f"""Export weekly_sales, window 2026-W46: incomplete.
{PLACES}State of the job: SUCCEEDED
Nothing has to be done.
"""
        ],
    )


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("EXP-CHECK-BLOCKED", "window 2026-W44: A unit price is negative. (price_not_negative: 3)"),
        ("EXP-PERSONAL-DATA", "it contains what looks like personal data."),
        ("EXP-WINDOW-CHANGED", "the export's rules don't allow it."),
    ],
)
def test_a_blocked_window(code, why):
    env = notified(blocked(code=code), manifests=[manifest_of("2026-W45")], glue="FAILED")
    assert env.topics.subjects() == [f"[Weekly sales] 2026-W46, run {RUN} - blocked"]
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: blocked.

There is no new file: it did not pass its checks, so it was not published.
Why: {why}

The last file with rows is of 2026-W45:
{FILES}
{NEXT}
{CLOSING}"""
        ],
        [
            f"""Export weekly_sales, window 2026-W46: blocked.
{code}  window 2026-W44: A unit price is negative. (price_not_negative: 3)
What to do: Correct the source, or the check
{PLACES}State of the job: FAILED
Code explained: docs/reference/errors.md#{code.lower()}
{AGAIN}"""
        ],
    )


def test_a_run_that_died():
    env = notified(state="running", glue="TIMEOUT")
    assert env.topics.subjects() == [f"[Weekly sales] run {RUN} - failed"]
    assert read_mails(env) == (
        [
            f"""Weekly sales: failed.

The file is delayed. The team that runs the export has been notified.

{NEXT}
{CLOSING}"""
        ],
        [
            f"""Export weekly_sales, the run: failed.
EXP-DIED  the run ended without a reason
What to do: Look at the job's log, then run again
{PLACES}State of the job: TIMEOUT
Code explained: docs/reference/errors.md#exp-died
{AGAIN}"""
        ],
    )


def test_a_window_that_recovered():
    env = notified(published(generation=2), before=record(failed(), weeks=-1))
    assert read_mails(env) == (
        [
            f"""Weekly sales, 2026-W46: recovered.

The earlier problem is solved. This replaces the notice about it.
The file is ready.

15,249 rows
Line total: 574,011.92 EUR
Line total: 568,534.46 USD
Quantity: 31,870 pieces
This is version 2 of the file; use it instead of the earlier one.

{NOTE}
{FILES}
{CLOSING}"""
        ],
        [
            f"""Export weekly_sales, window 2026-W46: recovered.
{PLACES}State of the job: SUCCEEDED
Nothing has to be done.
"""
        ],
    )


def test_a_run_that_recovered_has_no_news_about_a_file():
    before = record(weeks=-1, state="failed", reason="EXP-AWS-DENIED  reading failed. Allow it")
    env = notified(before=before)
    assert read_mails(env) == (
        [f"Weekly sales: recovered.\n\nThe earlier problem is solved.\n\n{NEXT}\n{CLOSING}"],
        [
            f"""Export weekly_sales, the run: recovered.
{PLACES}State of the job: SUCCEEDED
Nothing has to be done.
"""
        ],
    )


@pytest.mark.parametrize("settings", [{"link_days": 14}, {"recipients": ("a" * 16,)}])
def test_only_a_mail_to_one_reader_in_a_deployment_with_links_has_one(settings):
    env = NotificationEnvironment()
    env.exports[SALES.name] = attrs.evolve(SALES, **settings)
    env.signer = LinkSigner(
        KeyRing("lakeferry-dev", Secret("k" * 64)), "https://links.example.com", env.clock
    )
    env.publish(manifest())
    env.run(record(published(notes=[], headline=[])))
    env.deliver()
    ((body,), _) = read_mails(env)
    assert "https://links.example.com" not in body
    assert FILES.strip() in body


def test_a_mail_with_a_link_of_its_reader():
    keys = KeyRing("lakeferry-dev", Secret("k" * 64))
    env = NotificationEnvironment()
    env.exports[SALES.name] = attrs.evolve(SALES, recipients=("a" * 16,), link_days=14)
    env.signer = LinkSigner(keys, "https://links.example.com", env.clock)
    env.publish(manifest())
    env.run(record(published(notes=[], headline=[])))
    env.deliver()
    ((body,), _) = read_mails(env)
    assert re.sub(r"open/\S+", "open/token", body) == (
        f"""Weekly sales, 2026-W46: complete.

The file is ready.

15,249 rows

Files. Open this link and choose a file. The link is yours, and works until 30 Nov 2026 07:03 Europe/Berlin:
https://links.example.com/open/token

- weekly_sales_2026-W46.csv, 5.0 MB

The window is from 09 Nov 2026 00:00 Europe/Berlin to before 16 Nov 2026 00:00 Europe/Berlin.
{CLOSING}"""
    )


def test_a_mail_with_a_link_to_files_whose_names_it_does_not_show():
    """It has no list, and still one empty line."""
    env = NotificationEnvironment()
    env.exports[SALES.name] = attrs.evolve(SALES, recipients=("a" * 16,), link_days=14)
    env.signer = LinkSigner(
        KeyRing("lakeferry-dev", Secret("k" * 64)), "https://links.example.com", env.clock
    )
    env.run(record(published(notes=[], headline=[], files=[{"role": "data", "key": "weekly sales.csv"}])))
    env.deliver()
    ((body,), _) = read_mails(env)
    assert body.endswith(f"\n\n{CLOSING}")
    assert "weekly sales.csv" not in body
    assert "\n\n\n" not in body


def test_an_export_without_a_schedule_has_no_next_try_and_one_without_a_contract_no_title():
    nameless = attrs.evolve(SALES, name="not_in_project", cron="")
    env = NotificationEnvironment()
    env.exports = {nameless.name: nameless}
    env.run(record(incomplete()) | {"export": nameless.name})
    env.deliver()
    ((body,), _) = read_mails(env)
    assert body.splitlines()[0] == "not_in_project, 2026-W46: incomplete."
    assert body.splitlines()[-3:] == ["", f"Run: {RUN}", "To unsubscribe, use the link below this text."]
    assert "next try" not in body
    assert "Questions" not in body
