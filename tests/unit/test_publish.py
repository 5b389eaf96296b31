"""A window is published once, by the run with the newest view.

Files of dead runs are removed, those of live runs are kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import attrs
import boto3
import pytest

from glue_jobs import runs
from glue_jobs.delivery import cleanup
from glue_jobs.delivery.manifest import Fence, Manifest, read_fence
from glue_jobs.delivery.publish import (
    PUBLISHED,
    SUPERSEDED,
    UNCHANGED,
    Leftovers,
    Listing,
    Outcome,
    Publication,
    WindowLocation,
)
from glue_jobs.errors import BadInput, ExportError, StorageProblem
from glue_jobs.store import Bucket, Conflict, connect_s3
from simulators.core.faults import FaultClient

T0 = datetime(2026, 11, 16, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def fence(run: str, since: int = 0, started: int = 0) -> Fence:
    """Return a fence: hours after T0 at which the run's view became current, and at which the run started."""
    return Fence(T0 + since * HOUR, T0 + started * HOUR, run)


def draft(
    content: str,
    mine: Fence,
    form: str = "csv",
    status: str = "complete",
    contract: str = "1",
    accepted: str = "",
) -> Manifest:
    return {
        "run_id": mine.run_id,
        "content_sha256": content,
        "form": form,
        "contract": {"version": 1, "sha256": contract},
        "source": {"table_uuid": "5f2c9a4e-1b7f-4c57-9d3e-2f1a6b8c7d90"},
        "status": status,
        "fence": mine.document(),
        "files": [],
        "accepted": {"sentences": [accepted] if accepted else [], "neighbours": []},
    }


def attempt(location: WindowLocation, mine: Fence, content: str, **changes: str) -> Outcome:
    """Publish a manifest with this content at T0, by a run with an hour left."""
    return begin(location, mine).publish(draft(content, mine, **changes))


def begin(location: WindowLocation, mine: Fence) -> Publication:
    record = runs.RunRecord(mine.run_id, location.export, T0, mine.started_at, T0 + HOUR)
    return Publication(location, record, lambda: T0)


@contextmanager
def watch_each_write(location: WindowLocation, act: Callable[[], object], moment: str) -> Iterator[None]:
    """Call `act` before the conditional write, when the manifest has been read, or right after it."""
    events = location.bucket.s3.meta.events

    def call(**_):
        act()

    events.register(f"{moment}-call.s3.PutObject", call)
    try:
        yield
    finally:
        events.unregister(f"{moment}-call.s3.PutObject", call)


@pytest.fixture
def location(bucket) -> WindowLocation:
    return WindowLocation(bucket, "weekly_sales", "2026-W46")


def of_another_client(location: WindowLocation) -> WindowLocation:
    """Return the location as another process sees it."""
    return attrs.evolve(
        location, bucket=Bucket(boto3.client("s3"), location.bucket.name, location.bucket.prefix)
    )


def test_the_first_run_publishes_and_a_repetition_changes_nothing(location):
    assert location.current() is None
    first = attempt(location, fence("a"), "x")
    assert (first.state, first.manifest["generation"]) == (PUBLISHED, 1)
    found, etag = location.current()
    assert found == first.manifest
    again = attempt(location, fence("b", 5, 5), "x")
    assert (again.state, again.manifest) == (UNCHANGED, first.manifest)
    assert location.current() == (found, etag)
    assert list(location.bucket.keys("")) == ["weekly_sales/manifests/2026-W46.json"]


def test_a_manifest_is_readable_in_any_language(location):
    attempt(location, fence("Grüße"), "x")
    assert '  "run_id": "Grüße",\n'.encode() in location.bucket.read(location.manifest_key)[0]


@pytest.mark.parametrize(
    "change",
    [
        {"content": "y"},
        {"form": "gzip"},
        {"status": "incomplete"},
        {"contract": "2"},
        {"accepted": "A loss was accepted."},
    ],
)
def test_a_restatement_gets_a_generation(location, change):
    attempt(location, fence("a"), "x")
    outcome = attempt(location, fence("b", 1), **{"content": "x"} | change)
    assert outcome.state == PUBLISHED
    assert [generation["run_id"] for generation in location.current()[0]["generations"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (fence("a", since=2, started=1), fence("b", since=1, started=9)),
        (fence("a", since=1, started=2), fence("b", since=1, started=1)),
        (fence("b", since=1, started=1), fence("a", since=1, started=1)),
    ],
)
def test_an_older_view_never_replaces_a_newer_one(location, newer, older):
    attempt(location, newer, "new")
    late = attempt(location, older, "old")
    assert (late.state, late.manifest["content_sha256"]) == (SUPERSEDED, "new")
    assert location.current()[0]["content_sha256"] == "new"
    newest = attrs.evolve(newer, started_at=newer.started_at + HOUR, run_id="c")
    assert attempt(location, newest, "newer").state == PUBLISHED


def test_a_fence_survives_its_manifest():
    one = fence("a", 3, 5)
    assert read_fence({"fence": one.document()}) == one
    assert fence("a", since=1) > fence("z", since=0, started=9)


def test_a_run_that_is_overtaken_by_the_same_content_publishes_nothing(location):
    other = of_another_client(location)
    with watch_each_write(location, lambda: attempt(other, fence("b"), "x"), "before"):
        outcome = attempt(location, fence("a", 5), "x")
    assert (outcome.state, outcome.manifest["run_id"]) == (UNCHANGED, "b")


def test_a_manifest_that_changes_between_read_and_write_is_not_lost(location):
    attempt(location, fence("a"), "1")
    other_location = of_another_client(location)
    rounds = iter("234")

    def overtake():
        if (content := next(rounds, None)) is not None:
            attempt(other_location, fence(f"r{content}", int(content)), content)

    with watch_each_write(location, overtake, "before"):
        outcome = attempt(location, fence("z", 9), "mine")
    assert [generation["run_id"] for generation in outcome.manifest["generations"]] == [
        "a",
        "r2",
        "r3",
        "r4",
        "z",
    ]


def test_a_run_has_published_even_if_another_one_replaces_its_manifest_at_once(location):
    other = of_another_client(location)
    with watch_each_write(location, lambda: attempt(other, fence("b", 1), "y"), "after"):
        outcome = attempt(location, fence("a"), "x")
    assert (outcome.state, outcome.manifest["generation"]) == (PUBLISHED, 1)
    assert [generation["run_id"] for generation in location.current()[0]["generations"]] == ["a", "b"]


def test_of_many_runs_at_once_with_the_same_rows_one_publishes(location):
    def one(number: int) -> str:
        mine = fence(f"run-{number}", number)
        return attempt(of_another_client(location), mine, "x").state

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(one, range(6)))
    assert sorted(states) == [PUBLISHED] + [UNCHANGED] * 5
    assert location.current()[0]["generation"] == 1


def test_of_many_runs_at_once_with_different_rows_the_newest_view_wins(location):
    def one(number: int) -> str:
        own_fence = fence(f"run-{number}", number)
        return attempt(of_another_client(location), own_fence, str(number)).state

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(one, range(6)))
    manifest = location.current()[0]
    assert (manifest["run_id"], states[5]) == ("run-5", PUBLISHED)
    published = [f"run-{number}" for number, state in enumerate(states) if state == PUBLISHED]
    assert [generation["run_id"] for generation in manifest["generations"]] == published
    assert set(states) <= {PUBLISHED, SUPERSEDED}


@pytest.mark.parametrize(
    ("fault", "before"),
    [({"fault": "effect_then_reset"}, None), ({"fault": "effect_then_error", "status": 500}, "published")],
)
def test_a_manifest_whose_answer_was_lost_is_the_runs_own(lake_aws, location, fault, before):
    """The client sends it again and gets a conflict.

    If the run took it for another's manifest, its files would be removed.
    """
    if before:
        attempt(location, fence(before), "x")
    own_fence = fence("mine", 1)
    patient = attrs.evolve(location, bucket=attrs.evolve(location.bucket, s3=connect_s3("us-east-1")))
    faults = FaultClient(lake_aws.url)
    faults.rule({"method": "PUT", "path": "*/manifests/*", "times": 1} | fault)
    try:
        outcome = attempt(patient, own_fence, "y")
        assert [rule["hits"] for rule in faults.state()["rules"]] == [1]
    finally:
        faults.clear()
    assert (outcome.state, outcome.manifest["run_id"]) == (PUBLISHED, "mine")
    assert [generation["run_id"] for generation in location.current()[0]["generations"]] == [
        *([before] if before else []),
        "mine",
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("fault", "open_", "code"),
    [
        ({"fault": "reset"}, True, "EXP-AWS-UNREACHABLE"),
        ({"fault": "error", "status": 503}, True, "EXP-AWS-FAILED"),
        ({"fault": "error", "status": 403, "code": "AccessDenied"}, False, "EXP-AWS-DENIED"),
    ],
)
def test_a_failed_write_shows_whether_the_window_may_be_visible(lake_aws, location, fault, open_, code):
    publication = begin(location, fence("mine"))
    faults = FaultClient(lake_aws.url)
    faults.rule({"method": "PUT", "path": "*/manifests/*", "times": 0, "shape": "s3"} | fault)
    try:
        with pytest.raises(StorageProblem) as failed:
            publication.publish(draft("x", fence("mine")))
    finally:
        faults.clear()
    assert (failed.value.code, publication.may_be_visible) == (code, open_)
    assert ("Give the job's role this permission" in failed.value.remedy) == (code == "EXP-AWS-DENIED")


def test_a_refused_retry_of_a_write_may_be_the_runs_own(lake_aws, location):
    """S3 executed the first write, and its answer was lost. The run then can't read the manifest."""
    mine = fence("mine")
    s3 = connect_s3(location.bucket.s3.meta.region_name)
    patient = attrs.evolve(location, bucket=attrs.evolve(location.bucket, s3=s3))
    publication = begin(patient, mine)
    faults = FaultClient(lake_aws.url)
    faults.rule(
        {"fault": "effect_then_reset", "method": "PUT", "path": "*/manifests/*", "times": 1},
        {
            "fault": "error",
            "status": 403,
            "code": "AccessDenied",
            "shape": "s3",
            "method": "GET",
            "path": "*/manifests/*",
            "nth": 2,
        },
    )
    try:
        with pytest.raises(StorageProblem) as failed:
            publication.publish(draft("x", mine))
    finally:
        faults.clear()
    assert (failed.value.code, publication.may_be_visible) == ("EXP-AWS-DENIED", True)
    assert location.current()[0]["run_id"] == "mine"


def test_a_manifest_of_another_run_rules_out_the_runs_own(location):
    """S3 refused the write, and refuses it for ever: the object has another ETag now."""
    publication = begin(location, fence("mine"))
    other = of_another_client(location)
    newer = fence("other", since=1)
    published = []

    def win() -> None:
        if not published:
            published.append(attempt(other, newer, "y"))

    with watch_each_write(location, win, "before"):
        outcome = publication.publish(draft("x", fence("mine")))
    assert (outcome.state, publication.may_be_visible) == (SUPERSEDED, False)


def test_the_manifest_that_a_run_wanted_to_replace_rules_out_nothing(lake_aws, location):
    """The answer to a first write is lost, and S3 refuses its repetition. Both may still be on their way
    while the earlier manifest is there.
    """
    attempt(location, fence("before"), "x")
    s3 = connect_s3(location.bucket.s3.meta.region_name)
    patient = attrs.evolve(location, bucket=attrs.evolve(location.bucket, s3=s3))
    times = iter([T0, T0 + HOUR])
    publication = attrs.evolve(begin(patient, fence("mine", 1)), clock=lambda: next(times))
    conflict = {"fault": "error", "status": 409, "code": "ConditionalRequestConflict", "shape": "s3"}
    write = {"method": "PUT", "path": "*/manifests/*"}
    faults = FaultClient(lake_aws.url)
    faults.rule({"fault": "reset", "times": 1} | write, conflict | {"nth": 2} | write)
    try:
        with pytest.raises(ExportError) as late:
            publication.publish(draft("y", fence("mine", 1)))
    finally:
        faults.clear()
    assert (late.value.code, publication.may_be_visible) == ("EXP-TIME-LIMIT", True)
    assert location.current()[0]["run_id"] == "before"


@pytest.mark.parametrize(
    ("stored", "state"),
    [({"a": b"1", "b": b"22"}, UNCHANGED), ({"a": b"1", "b": b"2"}, PUBLISHED), ({"b": b"22"}, PUBLISHED)],
    ids=["all", "another size", "one is missing"],
)
def test_the_same_content_is_published_again_if_a_file_of_it_is_not_there(location, stored, state):
    bucket = location.bucket
    files = [{"key": bucket.key(name), "size": size} for name, size in (("a", 1), ("b", 2))]
    for name, content in stored.items():
        bucket.write(name, content, "text/csv")
    begin(location, fence("before")).publish(draft("x", fence("before")) | {"files": files})
    outcome = begin(location, fence("mine", 1)).publish(draft("x", fence("mine", 1)) | {"files": files})
    assert outcome.state == state


def test_writers_that_s3_refuses_wait_longer_each_time(lake_aws, location):
    faults = FaultClient(lake_aws.url)
    pauses = []
    record = runs.RunRecord("mine", location.export, T0, T0, T0 + HOUR)
    faults.rule(
        {"fault": "error", "status": 409, "shape": "s3", "method": "PUT", "path": "*/manifests/*", "times": 0}
    )
    try:
        with pytest.raises(StorageProblem) as busy:
            Publication(location, record, lambda: T0, pauses.append).publish(draft("x", fence("mine")))
    finally:
        faults.clear()
    assert (busy.value.code, len(pauses)) == ("EXP-MANIFEST-BUSY", 50)
    assert all(0 <= pause <= min(1, 0.01 * 2**n) for n, pause in enumerate(pauses))
    assert max(pauses) > 0.1, "fifty draws of up to a second"


def test_objects_that_s3_does_not_delete_are_an_error(lake_aws, location):
    """DeleteObjects answers 200 even if it lists objects that remain."""
    location.bucket.write("kept", b"1", "text/plain")
    body = (
        '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Error><Key>kept</Key>'
        "<Code>AccessDenied</Code><Message>Access Denied</Message></Error></DeleteResult>"
    )
    faults = FaultClient(lake_aws.url)
    faults.rule(
        {
            "fault": "error",
            "status": 200,
            "body": body,
            "method": "POST",
            "query": {"delete": "*"},
            "path": "*",
        }
    )
    try:
        with pytest.raises(StorageProblem) as refused:
            location.bucket.delete(["kept"])
    finally:
        faults.clear()
    assert refused.value.code == "EXP-AWS-DENIED"
    assert "kept failed: AccessDenied" in refused.value.what


def test_a_conditional_write_leaves_no_condition_behind(bucket):
    bucket.write_if("a", b"1", "text/plain", etag=None)
    with pytest.raises(Conflict):
        bucket.write_if("a", b"2", "text/plain", etag=None)
    with pytest.raises(Conflict):
        bucket.write_if("a", b"2", "text/plain", etag='"0123"')
    with pytest.raises(Conflict):
        bucket.write_if("gone", b"2", "text/plain", etag='"0123"')
    bucket.write("a", b"3", "text/plain")
    _, etag = bucket.read("a")
    bucket.write_if("a", b"4", "text/plain", etag=etag)
    assert bucket.read("a")[0] == b"4"


def run(location: WindowLocation, run_id: str, *, state: str = "running", **changes) -> str:
    """Store a run's record, started an hour ago by this process, with an hour left."""
    record = runs.RunRecord(run_id, location.export, T0, T0 - HOUR, T0 + HOUR, state=state)
    attrs.evolve(record, **changes).save(location.bucket)
    return run_id


def leave(location: WindowLocation, run_id: str) -> None:
    """Leave a file, and an upload that is not completed."""
    location.bucket.write(f"{location.run_folder(run_id)}file.csv", b"x", "text/csv")
    key = location.bucket.key(f"{location.run_folder(run_id)}more.csv")
    location.bucket.s3.create_multipart_upload(Bucket=location.bucket.name, Key=key)


def clean(location: WindowLocation, own_run: str, now: datetime) -> list[str]:
    current, _ = location.current() or (None, None)
    left_by_runs = Listing.read(location.bucket, location.export).leftovers(location.window)
    return cleanup.clean_window(location, current, left_by_runs, own_run, now)


def latest(location: WindowLocation) -> list[dict]:
    ids = Listing.read(location.bucket, location.export).labels("runs")
    return runs.load_recent(location.bucket, location.export, [run_id for run_id in ids if run_id != "own"])


def left(location: WindowLocation) -> set[str]:
    """Return the runs with files or uploads in the window."""
    found = [
        *location.bucket.keys(location.data),
        *(key for key, _ in location.bucket.uploads(location.data)),
    ]
    return {key.removeprefix(location.data).partition("/")[0] for key in found}


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(60)
    return process.pid


def test_files_of_dead_runs_are_removed_and_nothing_else(location):
    own_fence = fence("published")
    attempt(location, own_fence, "x")
    elsewhere = {"host": "another/boot"}
    alive = {
        run(location, "own", expires_at=T0),  # the run that cleans up is alive, even after its time limit
        run(location, "published", state="done"),
        run(location, "at-work"),
        run(location, "at-work-elsewhere", pid=1, **elsewhere),
        run(location, "may-be-writing-still", expires_at=T0 - 9 * MINUTE, **elsewhere),
    }
    dead = {
        run(location, "failed", state="failed"),
        run(location, "out-of-time", expires_at=T0 - 10 * MINUTE, **elsewhere),
        run(location, "killed", pid=ended_process()),
        "never-recorded",
    }
    for run_id in alive | dead:
        leave(location, run_id)
    neighbour = attrs.evolve(location, window="2026-W45")
    leave(neighbour, "never-recorded")
    assert clean(location, "own", T0) == sorted(dead)
    assert left(location) == alive
    assert left(neighbour) == {"never-recorded"}
    assert location.current() is not None
    assert clean(location, "own", T0) == []


@pytest.mark.parametrize(
    "ended",
    [
        {"state": "failed", "windows": [{"window": "2026-W46", "state": "failed", "may_be_published": True}]},
        {
            "state": "blocked",
            "windows": [{"window": "2026-W46", "state": "failed", "may_be_published": True}],
        },
        {"state": "failed", "working_on": "2026-W46"},
    ],
    ids=["failed", "another window blocked", "stopped"],
)
def test_files_stay_while_the_manifest_of_a_run_that_ended_may_still_appear(location, ended):
    """S3 didn't answer the write of the manifest."""
    leave(location, run(location, "unsure", ended_at=T0, **ended))
    elsewhere = attrs.evolve(location, window="2026-W45")
    leave(elsewhere, "unsure")
    assert clean(location, "own", T0 + 9 * MINUTE) == []
    assert clean(elsewhere, "own", T0) == ["unsure"]
    cleanup.clean_up_dead_runs(
        Listing.read(location.bucket, location.export), "own", latest(location), T0 + 9 * MINUTE
    )
    assert left(location) == {"unsure"}
    cleanup.clean_up_dead_runs(
        Listing.read(location.bucket, location.export), "own", latest(location), T0 + 10 * MINUTE
    )
    assert left(location) == set(), "also in a window that no run works on again"
    assert [record["state"] for record in latest(location)] == [ended["state"]]


def test_files_of_a_killed_run_stay_while_its_manifest_may_still_appear(location):
    """It was killed while it wrote the manifest, which S3 may still carry out."""
    leave(location, run(location, "killed", pid=ended_process(), working_on=location.window))
    elsewhere = attrs.evolve(location, window="2026-W45")
    leave(elsewhere, "killed")

    def clean_up(now):
        listing = Listing.read(location.bucket, location.export)
        cleanup.clean_up_dead_runs(listing, "own", latest(location), now)

    clean_up(T0)
    assert (left(location), left(elsewhere)) == ({"killed"}, set())
    assert clean(location, "own", T0 + 9 * MINUTE) == []
    clean_up(T0 + 10 * MINUTE)
    assert left(location) == set(), "also if no run publishes the window again"


def test_files_of_a_killed_run_are_removed_once_its_manifest_is_refused(location):
    leave(location, run(location, "killed", pid=ended_process(), working_on=location.window))
    late = Publication(location, runs.RunRecord("killed", location.export, T0, T0, T0 + HOUR), lambda: T0)
    listing = Listing.read(location.bucket, location.export)
    cleanup.clean_up_dead_runs(listing, "own", latest(location), T0)
    assert attempt(location, fence("own"), "x").state == PUBLISHED
    assert clean(location, "another", T0) == [], "another run may have published it before the death"
    assert clean(location, "own", T0) == ["killed"]
    assert not late._write(draft("y", fence("killed")), None), "S3 refuses what may still be on its way"


def test_files_of_a_run_that_may_have_died_after_the_last_publication_stay(location):
    """It may have read the manifest that it then wanted to replace."""
    leave(location, run(location, "killed", pid=ended_process(), working_on=location.window))
    assert attempt(location, fence("own"), "x").state == PUBLISHED
    assert clean(location, "own", T0) == []
    leave(location, run(location, "failed", state="failed", ended_at=T0 + MINUTE, working_on=location.window))
    assert clean(location, "own", T0 + 2 * MINUTE) == []


def test_a_process_of_another_container_with_the_same_host_name_is_not_taken_for_a_dead_one(location):
    """Containers share the machine's boot and may share a host name.

    Their processes have numbers of their own.
    """
    here = runs.RunRecord("own", location.export, T0, T0, T0).host
    name, boot, _ = here.split("/")
    leave(location, run(location, "at-work", host=f"{name}/{boot}/pid:[1]", pid=ended_process()))
    assert clean(location, "own", T0) == []
    leave(location, run(location, "killed", host=here, pid=ended_process()))
    assert clean(location, "own", T0) == ["killed"]


def test_files_of_dead_runs_are_removed_from_all_windows(location):
    windows = [attrs.evolve(location, window=label) for label in ("2026-W43", "2026-W44", "2026-W45")]
    for name, pid in (("killed", ended_process()), ("at-work", os.getpid())):
        run(location, name, pid=pid)
        for window in windows[:2]:
            leave(window, name)
    windows[2].bucket.s3.create_multipart_upload(
        Bucket=location.bucket.name, Key=location.bucket.key(f"{windows[2].run_folder('killed')}begun.csv")
    )
    cleanup.clean_up_dead_runs(Listing.read(location.bucket, location.export), "own", latest(location), T0)
    assert [left(window) for window in windows] == [{"at-work"}, {"at-work"}, set()]
    states = {record["id"]: record["state"] for record in latest(location)}
    assert states == {"killed": "failed", "at-work": "running"}


def test_a_run_publishes_nothing_once_others_may_remove_its_files(location):
    """Its process slept, as a laptop does with its lid closed."""
    record = runs.RunRecord("slow", location.export, T0, T0 - HOUR, T0, host="another/boot")
    record.save(location.bucket)
    leave(location, "slow")

    def awake(now):
        return Publication(location, record, lambda: now).publish(draft("x", fence("slow")))

    assert clean(location, "other", T0 + 10 * MINUTE) == ["slow"]
    with pytest.raises(ExportError) as late:
        awake(T0 + 10 * MINUTE)
    assert (late.value.code, location.current()) == ("EXP-TIME-LIMIT", None)
    with pytest.raises(ExportError):
        awake(T0)
    assert awake(T0 - MINUTE).state == PUBLISHED


def test_files_of_a_window_without_its_manifest_stay(location):
    """Somebody deleted the manifest. Published files are not removed as if their runs had died."""
    of_window = [{"window": location.window, "state": "published"}]
    for name, windows in (
        ("first", of_window),
        ("second", of_window),
        ("failed", [{"window": location.window, "state": "failed"}]),
    ):
        run(location, name, state="done", windows=windows)
        leave(location, name)
    assert clean(location, "own", T0) == ["failed"]
    assert left(location) == {"first", "second"}


def test_windows_that_failed_or_ended_their_run_count_as_tried(location):
    failed = [{"window": "a", "state": "blocked", "exit_code": 7}, {"window": "b", "state": "published"}]
    run(location, "run-1", state="failed", windows=failed)
    run(location, "run-2", working_on="c")
    run(location, "run-3", state="failed", windows=[{"window": "a", "state": "failed", "exit_code": 1}])
    run(location, "own", working_on="d")
    assert runs.find_last_failures(latest(location)) == {"a": "run-3", "c": "run-2"}


def test_a_window_that_no_longer_fails_does_not_count_as_tried(location):
    run(
        location,
        "run-1",
        state="failed",
        windows=[{"window": window, "state": "failed", "exit_code": 1} for window in "ab"],
    )
    run(location, "run-2", state="done", windows=[{"window": "a", "state": "published"}])
    run(location, "own")
    assert runs.find_last_failures(latest(location)) == {"b": "run-1"}


def test_runs_that_failed_before_their_first_window_hide_no_earlier_one(location):
    for number in range(3):
        run(
            location, f"run-1{number}", state="done", windows=[{"window": f"w{number}", "state": "published"}]
        )
    for number in range(70):
        run(location, f"run-2{number:02}", state="failed")
    assert [record["windows"][0]["window"] for record in latest(location) if record["windows"]] == [
        "w0",
        "w1",
        "w2",
    ]


def test_files_of_earlier_generations_stay(location):
    for number, name in enumerate("abc"):
        leave(location, name)
        attempt(location, fence(name, number), name)
    assert clean(location, "own", T0) == []
    assert left(location) == {"a", "b", "c"}


def test_the_first_clean_up_of_a_window_finds_nothing(location):
    assert clean(location, "own", T0) == []


def test_a_run_discards_its_own_files_only(location):
    leave(location, "mine")
    leave(location, "mine-too")
    cleanup.discard_files(location, "mine")
    assert left(location) == {"mine-too"}
    cleanup.discard_files(location, "mine")


def test_a_skipped_window_is_marked(location):
    location.mark_skipped("mine")
    assert location.bucket.read_json("weekly_sales/skipped/2026-W46.json")[0] == {"run_id": "mine"}


def test_an_upload_that_is_gone_can_be_removed_again(location):
    cleanup.remove(location, Leftovers(["nothing"], [(f"{location.run_folder('x')}a.csv", "no-such-upload")]))


def test_more_objects_than_one_call_deletes(location):
    keys = [f"{location.run_folder('x')}{number:04}" for number in range(3)]
    for key in keys:
        location.bucket.write(key, b"", "text/plain")
    location.bucket.delete([*(f"none-{number}" for number in range(999)), *keys])
    assert left(location) == set()


def test_an_older_contract_replaces_no_newer_file(bucket):
    """Also if the newer file appears between the look at the manifest and the write."""
    location = WindowLocation(bucket, "things", "2026-W46")
    newer = draft("new", fence("a")) | {
        "contract": {"version": 2, "sha256": "2"},
        "window": {"label": "2026-W46"},
    }
    record = runs.RunRecord("b", "things", T0, T0, T0 + HOUR)
    older = draft("old", fence("b", since=1, started=1))

    def clock():
        """Publish the newer file when the older run has read the manifest and looks at its time."""
        if location.current() is None:
            begin(location, fence("a")).publish(newer)
        return T0

    for _ in range(2):
        with pytest.raises(BadInput) as refused:
            Publication(location, record, clock).publish(older)
        assert refused.value.code == "EXP-CONTRACT-OLDER"
        assert location.current()[0]["content_sha256"] == "new"
    higher = older | {"contract": {"version": 3, "sha256": "3"}}
    assert Publication(location, record, lambda: T0).publish(higher).state == PUBLISHED
