"""Which mails follow from runs: order of windows, late events, runs without a record, runs and jobs of
others.
"""

from __future__ import annotations

import json

import attrs
import pytest

from dev.docs import documents, samples
from lambdas.notifications import errors as notification_errors
from lambdas.notifications import outcome
from lambdas.shared.errors import LakeferryError
from tests.support.notification_environment import (
    ENGINEERS,
    SALES,
    NotificationEnvironment,
    blocked,
    failed,
    incomplete,
    published,
    record,
)

#: The mail of each state of a window. A state that the job adds must be listed here, or is not reported.
JOB_STATES = {"published", "unchanged", "superseded", "skipped", "dry_run", "incomplete", "blocked", "failed"}


def windows(env):
    return [subject.split("] ")[1].split(",")[0] for subject in env.topics.subjects()]


def test_n2_weeks_that_were_missed_are_reported_in_their_order_each_once():
    env = NotificationEnvironment()
    env.run(record(*(published(f"2026-W{week}") for week in (44, 45, 46))))
    for _ in range(2):
        env.deliver()
    assert windows(env) == ["2026-W44", "2026-W45", "2026-W46"]


def test_n1_results_that_arrive_after_a_later_runs_are_not_reported():
    env = NotificationEnvironment()
    env.run(record(blocked("2026-W46")), 1)
    env.run(record(published("2026-W46"), weeks=1), 2)
    env.deliver(2)
    env.deliver(1, "FAILED")
    assert [subject.rsplit(" ", 1)[1] for subject in env.topics.subjects()] == ["complete"]


def test_a_repeated_problem_is_reported_once_and_again_after_a_recovery():
    env = NotificationEnvironment()
    runs = [
        blocked(),
        blocked(),
        published(),
        published(state="unchanged"),
        blocked(),
        published(generation=2),
    ]
    for number, window in enumerate(runs):
        env.run(record(window, weeks=number), number)
        env.deliver(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in env.topics.subjects()]
    assert ends == ["blocked", "recovered", "blocked", "recovered"]


def test_another_problem_of_the_same_window_is_reported_too():
    env = NotificationEnvironment()
    for number, window in enumerate([incomplete(), blocked(), failed(), incomplete(), published()]):
        env.run(record(window, weeks=number), number)
        env.deliver(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in env.topics.subjects()]
    assert ends == ["incomplete", "blocked", "failed", "recovered"]


def test_each_failed_run_and_the_recovery_are_reported():
    env = NotificationEnvironment()
    wrong = {"state": "failed", "reason": "EXP-AWS-DENIED  reading failed. Allow it"}
    for number, run in enumerate(
        [record(**wrong), record(weeks=1, **wrong), record(weeks=2), record(weeks=3)]
    ):
        env.run(run, number)
        env.deliver(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in env.topics.subjects()]
    assert ends == ["failed", "failed", "recovered"]


def test_a_run_that_wrote_no_record_is_reported_as_failed_once():
    env = NotificationEnvironment()
    env.run(record())
    env.bucket.objects.clear()
    for state in ("FAILED", "FAILED", "TIMEOUT"):
        env.deliver(state=state)
    assert len(env.topics.subjects()) == 1
    assert env.topics.subjects()[0].endswith("- failed")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("SystemExit: EXP-ARGUMENTS  --as-of is missing. Correct them", "EXP-ARGUMENTS  --as-of is missing"),
        ("SystemExit: 1", "EXP-DIED"),
        ("AnalysisException: a value of maria@example.com", "EXP-DIED"),
        ("SystemExit: EXP-DIED  a line\nmaria@example.com", "EXP-DIED"),
    ],
)
def test_the_reason_of_a_run_without_a_record_is_told_only_if_the_job_wrote_it(message, told):
    env = NotificationEnvironment()
    env.run(record())
    env.glue.runs["jr_1"]["ErrorMessage"] = message
    env.bucket.objects.clear()
    env.deliver(state="FAILED")
    (mail,) = env.topics.bodies(ENGINEERS)
    assert told in mail
    assert "maria" not in mail


def test_a_successful_run_without_a_record_is_an_internal_error():
    env = NotificationEnvironment()
    env.run(record())
    env.bucket.objects.clear()
    with pytest.raises(LakeferryError) as raised:
        env.deliver()
    assert raised.value.kind is notification_errors.NO_RECORD


def test_only_the_record_that_names_the_job_run_counts():
    """Records of a concurrent run on a laptop and of the next job run are ignored."""
    env = NotificationEnvironment()
    laptop = record(failed("2026-W40"), mark="1aptop00") | {"job_run_id": None}
    env.bucket.put("exports/weekly_sales/runs/20261116T060009Z-1aptop00.json", laptop)
    env.run(record(published("2026-W46")))
    env.run(record(failed("2026-W41"), mark="6ater000"), 2)
    env.deliver()
    assert windows(env) == ["2026-W46"]


def test_a_job_that_is_not_ours_is_refused():
    env = NotificationEnvironment()
    with pytest.raises(LakeferryError) as raised:
        env.deliver(state="FAILED", job="somebody-elses")
    assert raised.value.kind is notification_errors.EVENT
    assert env.wire.calls == 0


@pytest.mark.parametrize("state", sorted(JOB_STATES))
def test_every_state_of_a_window_is_listed(state):
    window = (
        published() if state in ("published", "unchanged", "superseded", "skipped", "dry_run") else blocked()
    )
    found = outcome.read_record(record(window | {"state": state}))
    assert len(found) == (1 if state == "dry_run" else 2)


def test_the_listed_states_are_the_jobs():
    """The states are read from the reference page, which a test compares with the job's code."""
    result = documents._RUN["windows[].state"]
    assert {word.strip("`:;.,") for word in result.split() if word.startswith("`")} == JOB_STATES


def test_the_log_says_which_mail_was_sent_and_which_was_not():
    env = NotificationEnvironment()
    env.exports[SALES.name] = attrs.evolve(SALES, recipients=("a" * 16, "b" * 16))
    env.topics.refused.add("b" * 16)
    run = record(incomplete())
    run_id = run["id"]
    env.run(run)
    with pytest.raises(LakeferryError):
        env.deliver()
    lines = [json.loads(line) for line in env.log.getvalue().splitlines()]
    subject = f"[Weekly sales] 2026-W46, run {run_id} - incomplete"
    folder = "notices/weekly_sales/2026-W46"
    assert lines[0] == {
        "level": "INFO",
        "message": "sent",
        "marker": f"{folder}/recipient-{'a' * 16}.json",
        "subject": subject,
    }
    assert lines[1].pop("reason").startswith("MAIL-NOT-SENT")
    assert lines[1:] == [
        {
            "level": "ERROR",
            "message": "not sent",
            "marker": f"{folder}/recipient-{'b' * 16}.json",
            "run": run_id,
            "code": "MAIL-NOT-SENT",
        },
        {"level": "INFO", "message": "sent", "marker": f"{folder}/engineers.json", "subject": subject},
    ]


def test_a_record_or_a_manifest_that_is_removed_after_it_was_listed_is_passed_over():
    env = NotificationEnvironment()
    env.publish(manifest_of("2026-W44"))
    env.publish(manifest_of("2026-W45"))
    run = record(incomplete())
    env.run(run)
    first = f"exports/weekly_sales/runs/{run['id'][:-1]}.json"
    env.bucket.put(first, {})
    gone = {first, "exports/weekly_sales/manifests/2026-W45.json"}
    get_object = env.bucket.get_object
    env.bucket.get_object = lambda **asked: get_object(Key="gone" if asked["Key"] in gone else asked["Key"])
    env.deliver()
    (body,) = env.topics.bodies()
    assert "Weekly sales, 2026-W46: incomplete." in body
    assert "The last file with rows is of 2026-W44:" in body


def manifest_of(label):
    (manifest, *_) = samples.manifests()
    return manifest | {"window": manifest["window"] | {"label": label}}
