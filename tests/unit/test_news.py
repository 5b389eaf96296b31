"""The news in a run's record, what an addressee is told of it, and the facts that mails add."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from dev.docs import samples
from lambdas.notifications import outcome
from lambdas.notifications.mailer import Addressee, LinkSigner, Marker
from lambdas.notifications.outcome import ExportSettings, Facts, JobRun, RunOutcome
from lambdas.shared.link_tokens import KeyRing, Link
from lambdas.shared.redaction import Secret
from lambdas.shared.s3 import Objects
from tests.support.notification_environment import (
    BUCKET,
    SALES,
    MemoryBucket,
    Wire,
    blocked,
    failed,
    incomplete,
    published,
    record,
)
from tests.support.resource_environment import ManualClock

RUN = "20261116T060009Z-5a0c9e12"
COMMON = {"export": "weekly_sales", "window": "2026-W46", "run_id": RUN}


def read(window):
    """Return the news about a window, and check that the run itself has none."""
    *news, of_run = outcome.read_record(record(window))
    assert of_run == RunOutcome("weekly_sales", "run", "fine", "fine", RUN)
    return news


@pytest.mark.parametrize("state", ["published", "unchanged", "superseded"])
@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("complete", "complete"),
        ("empty", "empty"),
        ("incomplete", "incomplete"),
        ("blocked", "complete"),
        ("new", "complete"),
    ],
)
def test_the_news_about_a_window_with_a_manifest(state, status, shown):
    window = published(state=state, status=status, generation=3)
    (news,) = read(window)
    assert news == RunOutcome(**COMMON, state=shown, identity="published-3", document=window)
    assert (news.has_file, news.is_bad) == (True, False)


def test_the_news_about_a_window_that_was_skipped_has_no_file():
    window = published(state="skipped", status="empty")
    (news,) = read(window)
    document = {**window, "files": []}
    assert news == RunOutcome(**COMMON, state="empty", identity="skipped", document=document)
    assert (news.has_file, news.is_bad) == (False, False)


@pytest.mark.parametrize(("reason", "told"), [("late", "late"), (None, "")])
def test_the_news_about_an_incomplete_window(reason, told):
    (news,) = read(incomplete() | {"reason": reason})
    assert news == RunOutcome(**COMMON, state="incomplete", identity="incomplete", reason=told)
    assert news.is_bad


@pytest.mark.parametrize(
    ("window", "code"),
    [
        (blocked(code="EXP-CHECK-BLOCKED", reason="a", remedy="b"), "EXP-CHECK-BLOCKED"),
        (failed(code="EXP-EMPTY", reason="a", remedy="b"), "EXP-EMPTY"),
        (failed(code="A-B-C", reason="a", remedy="b"), "A-B-C"),
        (failed(code="nonsense", reason="a", remedy="b"), "EXP-INTERNAL"),
        (failed(code="EXP", reason="a", remedy="b"), "EXP-INTERNAL"),
        (failed(code="EXP-EMPTY x", reason="a", remedy="b"), "EXP-INTERNAL"),
    ],
)
def test_the_news_about_a_window_that_failed(window, code):
    state = window["state"]
    (news,) = read(window)
    assert news == RunOutcome(
        **COMMON, state=state, identity=f"{state}-{code}", code=code, reason="a", remedy="b"
    )
    assert news.is_bad


def test_a_window_that_failed_without_a_reason_has_no_text():
    (news,) = read(failed(reason=None, remedy=None))
    assert (news.reason, news.remedy) == ("", "")
    (news, _) = outcome.read_record(record() | {"windows": [failed(code=None)]})
    assert news.code == "EXP-INTERNAL"


def test_a_run_in_which_no_window_was_due_has_the_news_of_the_run_alone():
    fine = RunOutcome("weekly_sales", "run", "fine", "fine", RUN)
    assert outcome.read_record(record()) == [fine]
    without = {name: value for name, value in record().items() if name != "windows"}
    assert outcome.read_record(without) == [fine]


@pytest.mark.parametrize(
    ("windows", "reason", "code", "what"),
    [
        ([], "EXP-AWS-DENIED  reading failed. Allow it", "EXP-AWS-DENIED", "reading failed. Allow it"),
        ([], None, "EXP-INTERNAL", ""),
        ([], "EXP-A-B", "EXP-A-B", ""),
        ([], "EXP-A-B  one  two", "EXP-A-B", "one  two"),
        ([failed(code="EXP-EMPTY")], "EXP-OTHER-CODE  why", "EXP-OTHER-CODE", "why"),
        ([failed(code="EXP-EMPTY", exit_code=0)], "EXP-EMPTY  why", "EXP-EMPTY", "why"),
    ],
)
@pytest.mark.parametrize("state", ["failed", "blocked"])
def test_the_news_about_a_run_that_failed(windows, reason, code, what, state):
    made = record() | {"windows": windows, "state": state, "reason": reason}
    news = outcome.read_record(made)[-1]
    assert news == RunOutcome("weekly_sales", "run", "failed", f"failed-{RUN}", RUN, code, what)


def test_a_run_that_failed_with_its_window_has_no_news_of_its_own():
    made = record(failed(code="EXP-EMPTY"))
    assert made["state"] == "failed"
    assert [news.state for news in outcome.read_record(made)] == ["failed", "fine"]


def test_the_news_about_a_run_that_died():
    died = RunOutcome(
        "weekly_sales",
        "run",
        "failed",
        f"failed-{RUN}",
        RUN,
        "EXP-DIED",
        "the run ended without a reason",
        "Look at the job's log, then run again",
    )
    assert outcome.read_record(record(state="running")) == [died]
    assert outcome.describe_dead_run("weekly_sales", RUN) == died
    told = outcome.describe_dead_run("weekly_sales", RUN, "SystemExit: EXP-A-B  what. Do it")
    assert told == attrs.evolve(died, code="EXP-A-B", reason="what. Do it", remedy="")


# --- markers

FINE, GOOD, SECOND, LATE, BLOCKED, FAILED = (
    RunOutcome("e", "w", state, identity, run, document={"files": files})
    for state, identity, run, files in (
        ("fine", "fine", "2", []),
        ("complete", "published-1", "2", ["f"]),
        ("complete", "published-2", "2", ["f"]),
        ("incomplete", "incomplete", "2", []),
        ("blocked", "blocked-A", "2", []),
        ("failed", "failed-B", "2", []),
    )
)


@pytest.mark.parametrize(
    ("marker", "news", "state"),
    [
        (Marker(), GOOD, "complete"),
        (Marker(), FINE, None),
        (Marker(), LATE, "incomplete"),
        (Marker("2"), GOOD, "complete"),
        (Marker("3"), GOOD, None),
        (Marker("3", "failed"), GOOD, None),
        (Marker("1", "", ["published-1"]), GOOD, None),
        (Marker("1", "", ["published-1"]), SECOND, "complete"),
        (Marker("1", "blocked", ["blocked-A"]), GOOD, "recovered"),
        (Marker("1", "blocked", ["blocked-A", "published-1"]), GOOD, "recovered"),
        (Marker("1", "failed", ["failed-B"]), FINE, "recovered"),
        (Marker("1", "blocked", ["blocked-A"]), BLOCKED, None),
        (Marker("1", "blocked", ["blocked-A"]), FAILED, "failed"),
        (Marker("1", "blocked", ["blocked-A"]), LATE, "incomplete"),
    ],
)
def test_what_an_addressee_is_told(marker, news, state):
    assert marker.pending_state(news) == state


@pytest.mark.parametrize(
    ("marker", "news", "after"),
    [
        (Marker(), GOOD, Marker("2", "", ["published-1"])),
        (Marker("1", "blocked", ["blocked-A"], "x"), GOOD, Marker("2", "", ["published-1"])),
        (Marker("1", "blocked", ["blocked-A"], "x"), FINE, Marker("2", "", ["fine"])),
        (Marker("1", "", ["a"], "x"), LATE, Marker("2", "", ["a", "incomplete"])),
        (Marker("1", "blocked", ["blocked-A"]), LATE, Marker("2", "blocked", ["blocked-A", "incomplete"])),
        (Marker("1", "blocked", ["blocked-A"]), FAILED, Marker("2", "failed", ["blocked-A", "failed-B"])),
        (Marker("1", "blocked", ["blocked-A"]), BLOCKED, Marker("2", "blocked", ["blocked-A"])),
        (Marker("2", "", ["a"]), GOOD, Marker("2", "", ["published-1"])),
        (Marker("3", "", ["a"], "x"), GOOD, Marker("3", "", ["a"], "x")),
    ],
)
def test_what_an_addressee_knows_afterwards(marker, news, after):
    assert marker.after(news) == after


def test_an_incomplete_window_with_a_file_is_no_bad_news():
    assert not attrs.evolve(GOOD, state="incomplete").is_bad
    assert not attrs.evolve(BLOCKED, document={"files": ["f"]}).is_bad


@pytest.mark.parametrize(
    ("addressee", "states"),
    [
        (Addressee("engineers"), {"incomplete", "blocked", "failed", "recovered"}),
        (Addressee("recipients", "a"), {"complete", "empty", "incomplete", "blocked", "failed", "recovered"}),
        (Addressee("recipients"), {"complete", "empty", "incomplete", "blocked", "failed", "recovered"}),
    ],
)
def test_which_mails_there_are_for_an_addressee(addressee, states):
    known = {"complete", "empty", "incomplete", "blocked", "failed", "recovered"}
    assert {state for state in known if addressee.gets(state, SALES)} == states
    assert addressee.marker == ("recipient-a" if addressee.recipient else addressee.audience)


def test_all_recipients_get_one_mail_only_over_a_topic_and_without_mails_of_their_own():
    everybody = Addressee("recipients")
    assert everybody.gets("complete", SALES)
    assert not everybody.gets("complete", attrs.evolve(SALES, recipients=("a",)))
    assert not everybody.gets("complete", attrs.evolve(SALES, topic=""))


def test_the_links_of_a_recipient_begin_and_end_with_the_mail():
    clock = ManualClock()
    keys = KeyRing("lakeferry-dev", Secret("k" * 64))
    export = attrs.evolve(SALES, link_days=3)
    personal = LinkSigner(keys, "https://links.example.com", clock).open_for(export, "ann")
    assert personal.until == datetime.fromtimestamp(clock.now, UTC) + timedelta(days=3)
    clock.sleep(100)
    base, _, token = personal.sign("2026-W46", 2).rpartition("/")
    assert base == "https://links.example.com/open"
    signed = keys.verify(token, now=clock.now)
    assert signed.link == Link("weekly_sales", "2026-W46", 2, "ann")
    assert (signed.signed, signed.expires) == (clock.now - 100, clock.now - 100 + 3 * 86400)


# --- facts

MANIFEST = samples.manifests()[0]
FOLDER = "exports/weekly_sales/manifests/"


def put_manifests(*labels, rows=5):
    bucket = MemoryBucket(Wire())
    for label in labels:
        document = MANIFEST | {"window": MANIFEST["window"] | {"label": label}, "rows": {"rows": rows}}
        bucket.put(f"{FOLDER}{label}.json", document)
    return bucket


def gather(bucket, news, export=SALES, now=0.0):
    return outcome.gather_facts(Objects(bucket, BUCKET), "exports", export, news, now)


@pytest.mark.parametrize(
    ("news", "last"),
    [
        (RunOutcome("weekly_sales", "2026-W46", "failed", "", RUN), "2026-W45"),
        (RunOutcome("weekly_sales", "2026-W45", "failed", "", RUN), "2026-W44"),
        (RunOutcome("weekly_sales", "2026-W44", "failed", "", RUN), None),
        (RunOutcome("weekly_sales", "run", "failed", "", RUN), "2026-W47"),
        (RunOutcome("weekly_sales", "2026-W46", "empty", "", RUN, document={"files": ["f"]}), "2026-W45"),
        (RunOutcome("weekly_sales", "2026-W46", "complete", "", RUN, document={"files": ["f"]}), None),
    ],
)
def test_the_last_window_with_rows_is_one_before_the_window(news, last):
    bucket = put_manifests("2026-W44", "2026-W47", "2026-W45")
    facts = gather(bucket, news)
    assert (facts.last["window"]["label"] if facts.last else None) == last


@pytest.mark.parametrize(("empty", "found"), [(9, True), (10, False)])
def test_ten_manifests_are_read_to_find_a_window_with_rows(empty, found):
    bucket = put_manifests(*(f"2026-W{20 + number}" for number in range(empty)), rows=0)
    bucket.put(f"{FOLDER}2026-W01.json", MANIFEST)
    bucket.put(f"{FOLDER}2026-W29.json", {})
    if empty == 9:
        del bucket.objects[f"{FOLDER}2026-W29.json"]
    facts = gather(bucket, RunOutcome("weekly_sales", "2026-W46", "failed", "", RUN))
    assert bool(facts.last) is found


def test_a_manifest_that_expires_after_it_was_listed_is_passed_over():
    bucket = put_manifests("2026-W44", "2026-W45")
    get = bucket.get_object

    def expire(**asked):
        bucket.objects.pop(f"{FOLDER}2026-W45.json", None)
        return get(**asked)

    bucket.get_object = expire
    facts = gather(bucket, RunOutcome("weekly_sales", "run", "failed", "", RUN))
    assert facts.last["window"]["label"] == "2026-W44"


def test_a_manifest_of_another_generation_is_no_fact():
    bucket = put_manifests("2026-W46")
    for generation, is_fact in ((MANIFEST["generation"], True), (9, False), (None, False)):
        news = RunOutcome(
            "weekly_sales", "2026-W46", "complete", "", RUN, document={"generation": generation}
        )
        assert bool(gather(bucket, news).manifest) is is_fact
    of_run = RunOutcome("weekly_sales", "run", "fine", "fine", RUN)
    assert gather(bucket, of_run).manifest == {}


def test_the_facts_of_an_export():
    now = datetime(2026, 11, 16, 6, 0, tzinfo=UTC)
    facts = gather(
        put_manifests(), RunOutcome("weekly_sales", "run", "fine", "fine", RUN), now=now.timestamp()
    )
    assert facts == Facts(
        "Weekly sales", "sales-data team", "Europe/Berlin", datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
    )
    unknown = ExportSettings("not_in_project", "job", "", "UTC")
    assert gather(put_manifests(), RunOutcome("x", "run", "fine", "fine", RUN), unknown) == Facts(
        "not_in_project", "", "UTC", None
    )


def test_a_run_without_a_record_has_an_id_by_its_start():
    run = JobRun("j" * 50, datetime(2026, 11, 16, 6, 0, 9, tzinfo=UTC))
    assert run.run_id == f"20261116T060009Z-{'j' * 40}"


@pytest.mark.parametrize(("early", "is_found"), [(90, True), (91, False)])
def test_a_record_may_be_ninety_seconds_older_than_its_job_run(early, is_found):
    bucket = MemoryBucket(Wire())
    started = datetime(2026, 11, 16, 6, 0, 9, tzinfo=UTC)
    run_id = f"{started - timedelta(seconds=early):%Y%m%dT%H%M%SZ}-0"
    bucket.put(f"runs/{run_id}.json", {"job_run_id": "jr_1"})
    found = outcome.find_record(Objects(bucket, BUCKET), "runs/", JobRun("jr_1", started))
    assert (found is not None) is is_found
