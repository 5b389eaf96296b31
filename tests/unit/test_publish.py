"""A window is published once, by whoever knows more; what dead runs left goes, and what live ones are at stays."""

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
from glue_jobs.delivery.manifest import Fence, Manifest, fence_of
from glue_jobs.delivery.publish import PUBLISHED, SUPERSEDED, UNCHANGED, Outcome, WindowLocation, may_be_written, publish
from glue_jobs.errors import ExportError, StorageProblem
from glue_jobs.store import Bucket, Conflict, connect_s3
from simulators.core.faults import FaultClient

T0 = datetime(2026, 11, 16, 6, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def fence(run: str, since: int = 0, started: int = 0) -> Fence:
    """Hours after T0 at which the run's view became current, and at which it began."""
    return Fence(T0 + since * HOUR, T0 + started * HOUR, run)


def draft(content: str, mine: Fence, form: str = "csv", status: str = "complete", contract: str = "1") -> Manifest:
    return {
        "run_id": mine.run_id,
        "content_sha256": content,
        "form": form,
        "contract": {"version": 1, "sha256": contract},
        "status": status,
        "fence": mine.document(),
        "files": [],
    }


def attempt(location: WindowLocation, mine: Fence, content: str, **changes: str) -> Outcome:
    """What becomes of a run's manifest with this content, published at T0 by a run that has an hour to go."""
    record = runs.RunRecord(mine.run_id, location.export, T0, mine.started_at, T0 + HOUR)
    return publish(location, draft(content, mine, **changes), record, lambda: T0)


@contextmanager
def before_each_write(location: WindowLocation, act: Callable[[], object]) -> Iterator[None]:
    """Acts between the look at the manifest and the conditional write."""
    events = location.bucket.s3.meta.events

    def call(**_):
        act()

    events.register("before-call.s3.PutObject", call)
    try:
        yield
    finally:
        events.unregister("before-call.s3.PutObject", call)


@pytest.fixture
def place(bucket) -> WindowLocation:
    return WindowLocation(bucket, "weekly_sales", "2026-W46")


def of_another_client(place: WindowLocation) -> WindowLocation:
    """As another process sees it."""
    return attrs.evolve(place, bucket=Bucket(boto3.client("s3"), place.bucket.name, place.bucket.prefix))


def test_the_first_run_publishes_and_the_same_again_changes_nothing(place):
    assert place.current() is None
    first = attempt(place, fence("a"), "x")
    assert (first.state, first.manifest["generation"]) == (PUBLISHED, 1)
    found, etag = place.current()
    assert found == first.manifest
    again = attempt(place, fence("b", 5, 5), "x")
    assert (again.state, again.manifest) == (UNCHANGED, first.manifest)
    assert place.current() == (found, etag)
    assert list(place.bucket.keys("")) == ["weekly_sales/manifests/2026-W46.json"]


@pytest.mark.parametrize("change", [{"content": "y"}, {"form": "gzip"}, {"status": "incomplete"}, {"contract": "2"}])
def test_a_restatement_gets_a_generation(place, change):
    attempt(place, fence("a"), "x")
    outcome = attempt(place, fence("b", 1), **{"content": "x"} | change)
    assert outcome.state == PUBLISHED
    assert [one["run_id"] for one in place.current()[0]["generations"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (fence("a", since=2, started=1), fence("b", since=1, started=9)),
        (fence("a", since=1, started=2), fence("b", since=1, started=1)),
        (fence("b", since=1, started=1), fence("a", since=1, started=1)),
    ],
)
def test_an_older_view_never_replaces_a_newer_one(place, newer, older):
    attempt(place, newer, "new")
    late = attempt(place, older, "old")
    assert (late.state, late.manifest["content_sha256"]) == (SUPERSEDED, "new")
    assert place.current()[0]["content_sha256"] == "new"
    newest = attrs.evolve(newer, started_at=newer.started_at + HOUR, run_id="c")
    assert attempt(place, newest, "newer").state == PUBLISHED


def test_a_fence_survives_its_manifest():
    one = fence("a", 3, 5)
    assert fence_of({"fence": one.document()}) == one
    assert fence("a", since=1) > fence("z", since=0, started=9)


def test_a_run_that_is_overtaken_before_it_writes_looks_again(place):
    other, rivals = of_another_client(place), iter("b")

    def overtake():
        if (name := next(rivals, None)) is not None:
            attempt(other, fence(name), "y")

    with before_each_write(place, overtake):
        outcome = attempt(place, fence("a", 5), "x")
    assert (outcome.state, outcome.manifest["generation"]) == (PUBLISHED, 2)
    assert [one["run_id"] for one in outcome.manifest["generations"]] == ["b", "a"]


def test_a_run_that_is_overtaken_by_the_same_content_publishes_nothing(place):
    other = of_another_client(place)
    with before_each_write(place, lambda: attempt(other, fence("b"), "x")):
        outcome = attempt(place, fence("a", 5), "x")
    assert (outcome.state, outcome.manifest["run_id"]) == (UNCHANGED, "b")


def test_a_manifest_that_changes_between_look_and_write_is_not_lost(place):
    attempt(place, fence("a"), "1")
    other, rounds = of_another_client(place), iter("234")

    def overtake():
        if (content := next(rounds, None)) is not None:
            attempt(other, fence(f"r{content}", int(content)), content)

    with before_each_write(place, overtake):
        outcome = attempt(place, fence("z", 9), "mine")
    assert [one["run_id"] for one in outcome.manifest["generations"]] == ["a", "r2", "r3", "r4", "z"]


def test_of_many_runs_at_once_with_the_same_rows_one_publishes(place):
    def one(number: int) -> str:
        mine = fence(f"run-{number}", number)
        return attempt(of_another_client(place), mine, "x").state

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(one, range(6)))
    assert sorted(states) == [PUBLISHED] + [UNCHANGED] * 5
    assert place.current()[0]["generation"] == 1


def test_of_many_runs_at_once_with_other_rows_the_one_that_knows_most_wins_and_none_is_lost(place):
    def one(number: int) -> str:
        mine = fence(f"run-{number}", number)
        return attempt(of_another_client(place), mine, str(number)).state

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(one, range(6)))
    found = place.current()[0]
    assert (found["run_id"], states[5]) == ("run-5", PUBLISHED)
    published = [f"run-{number}" for number, state in enumerate(states) if state == PUBLISHED]
    assert [each["run_id"] for each in found["generations"]] == published
    assert set(states) <= {PUBLISHED, SUPERSEDED}


@pytest.mark.parametrize(
    ("fault", "before"),
    [({"fault": "effect_then_reset"}, None), ({"fault": "effect_then_error", "status": 500}, "published")],
)
def test_a_manifest_whose_answer_was_lost_is_the_runs_own(lake_aws, place, fault, before):
    """The client sends it again and is told that it is too late. Taken for another run's, it would cost the files."""
    if before:
        attempt(place, fence(before), "x")
    mine, patient = fence("mine", 1), attrs.evolve(place, bucket=attrs.evolve(place.bucket, s3=connect_s3()))
    faults = FaultClient(lake_aws.url)
    faults.rule({"method": "PUT", "path": "*/manifests/*", "times": 1} | fault)
    try:
        outcome = attempt(patient, mine, "y")
        assert [rule["hits"] for rule in faults.state()["rules"]] == [1]
    finally:
        faults.clear()
    assert (outcome.state, outcome.manifest["run_id"]) == (PUBLISHED, "mine")
    assert [one["run_id"] for one in place.current()[0]["generations"]] == [*([before] if before else []), "mine"]


@pytest.mark.parametrize(
    ("fault", "open_", "code"),
    [
        ({"fault": "reset"}, True, "EXP-AWS-UNREACHABLE"),
        ({"fault": "error", "status": 503}, True, "EXP-AWS-FAILED"),
        ({"fault": "error", "status": 403, "code": "AccessDenied"}, False, "EXP-AWS-DENIED"),
    ],
)
def test_it_is_known_whether_a_failed_write_may_have_made_the_window_visible(lake_aws, place, fault, open_, code):
    faults = FaultClient(lake_aws.url)
    faults.rule({"method": "PUT", "path": "*/manifests/*", "times": 0, "shape": "s3"} | fault)
    try:
        with pytest.raises(StorageProblem) as failed:
            attempt(place, fence("mine"), "x")
    finally:
        faults.clear()
    assert (failed.value.code, may_be_written(failed.value)) == (code, open_)


def test_writers_that_s3_refuses_wait_longer_each_time(lake_aws, place):
    faults, pauses = FaultClient(lake_aws.url), []
    record = runs.RunRecord("mine", place.export, T0, T0, T0 + HOUR)
    faults.rule({"fault": "error", "status": 409, "shape": "s3", "method": "PUT", "path": "*/manifests/*", "times": 0})
    try:
        with pytest.raises(StorageProblem) as busy:
            publish(place, draft("x", fence("mine")), record, lambda: T0, pause=pauses.append)
    finally:
        faults.clear()
    assert (busy.value.code, len(pauses)) == ("EXP-MANIFEST-BUSY", 50)
    assert all(0 <= pause <= min(1, 0.01 * 2**n) for n, pause in enumerate(pauses))
    assert max(pauses) > 0.1, "fifty draws of up to a second"


def test_objects_that_s3_does_not_delete_are_an_error(lake_aws, place):
    """The answer to DeleteObjects is 200 also where it lists objects that stay."""
    place.bucket.write("kept", b"1", "text/plain")
    body = (
        '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Error><Key>kept</Key>'
        "<Code>AccessDenied</Code><Message>Access Denied</Message></Error></DeleteResult>"
    )
    faults = FaultClient(lake_aws.url)
    faults.rule({"fault": "error", "status": 200, "body": body, "method": "POST", "query": {"delete": "*"}, "path": "*"})
    try:
        with pytest.raises(StorageProblem) as refused:
            place.bucket.delete(["kept"])
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
    bucket.write("a", b"3", "text/plain")
    _, etag = bucket.read("a")
    bucket.write_if("a", b"4", "text/plain", etag=etag)
    assert bucket.read("a")[0] == b"4"


def run(place: WindowLocation, run_id: str, *, state: str = "running", **changes) -> str:
    """A run's record, begun an hour ago by this process with an hour to go."""
    record = runs.RunRecord(run_id, place.export, T0, T0 - HOUR, T0 + HOUR, state=state)
    attrs.evolve(record, **changes).save(place.bucket)
    return run_id


def leave(place: WindowLocation, run_id: str) -> None:
    """A file, and an upload that was begun."""
    place.bucket.write(f"{place.run_folder(run_id)}file.csv", b"x", "text/csv")
    key = place.bucket.key(f"{place.run_folder(run_id)}more.csv")
    place.bucket.s3.create_multipart_upload(Bucket=place.bucket.name, Key=key)


def left(place: WindowLocation) -> set[str]:
    """Runs that have something in the window."""
    found = [*place.bucket.keys(place.data), *(key for key, _ in place.bucket.uploads(place.data))]
    return {key.removeprefix(place.data).partition("/")[0] for key in found}


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(60)
    return process.pid


def test_what_dead_runs_left_is_removed_and_nothing_else(place):
    mine = fence("published")
    attempt(place, mine, "x")
    elsewhere = {"host": "another/boot"}
    alive = {
        run(place, "own", expires_at=T0),  # whoever cleans up is at work, also beyond its time
        run(place, "published", state="done"),
        run(place, "at-work"),
        run(place, "at-work-elsewhere", pid=1, **elsewhere),
        run(place, "may-be-writing-still", expires_at=T0 - 9 * MINUTE, **elsewhere),
    }
    dead = {
        run(place, "failed", state="failed"),
        run(place, "out-of-time", expires_at=T0 - 10 * MINUTE, **elsewhere),
        run(place, "killed", pid=ended_process()),
        "never-told",
    }
    for one in alive | dead:
        leave(place, one)
    neighbour = attrs.evolve(place, window="2026-W45")
    leave(neighbour, "never-told")
    assert cleanup.clean_window(place, "own", T0) == sorted(dead)
    assert left(place) == alive
    assert left(neighbour) == {"never-told"}
    assert place.current() is not None
    assert cleanup.clean_window(place, "own", T0) == []


def test_what_a_run_that_died_left_goes_also_from_windows_that_no_run_works_on_again(place):
    windows = [attrs.evolve(place, window=label) for label in ("2026-W43", "2026-W44", "2026-W45")]
    for name, pid in (("killed", ended_process()), ("at-work", os.getpid())):
        run(place, name, pid=pid)
        for window in windows[:2]:
            leave(window, name)
    windows[2].bucket.s3.create_multipart_upload(
        Bucket=place.bucket.name, Key=place.bucket.key(f"{windows[2].run_folder('killed')}begun.csv")
    )
    earlier = runs.latest(place.bucket, place.export, "own")
    cleanup.clean_up_dead_runs(place.bucket, place.export, "own", earlier, T0)
    assert [left(window) for window in windows] == [{"at-work"}, {"at-work"}, set()]
    states = {record["id"]: record["state"] for record in runs.latest(place.bucket, place.export, "own")}
    assert states == {"killed": "failed", "at-work": "running"}


def test_a_run_publishes_nothing_once_others_may_remove_its_files(place):
    """Its process was asleep, as a laptop's is with its lid closed."""
    record = runs.RunRecord("slow", place.export, T0, T0 - HOUR, T0, host="another/boot")
    record.save(place.bucket)
    leave(place, "slow")

    def awake(now):
        return publish(place, draft("x", fence("slow")), record, lambda: now)

    assert cleanup.clean_window(place, "other", T0 + 10 * MINUTE) == ["slow"]
    with pytest.raises(ExportError) as late:
        awake(T0 + 10 * MINUTE)
    assert (late.value.code, place.current()) == ("EXP-TIME-LIMIT", None)
    with pytest.raises(ExportError):
        awake(T0)
    assert awake(T0 - MINUTE).state == PUBLISHED


def test_files_of_a_window_without_its_manifest_stay(place):
    """Somebody deleted the manifest. What the runs published is not removed as if they had died."""
    of_window = [{"window": place.window, "state": "published"}]
    for name, windows in (("first", of_window), ("second", of_window), ("failed", [{"window": place.window, "state": "failed"}])):
        run(place, name, state="done", windows=windows)
        leave(place, name)
    assert cleanup.clean_window(place, "own", T0) == ["failed"]
    assert left(place) == {"first", "second"}


def test_windows_that_failed_or_ended_their_run_were_tried(place):
    failed = [{"window": "a", "state": "blocked", "exit_code": 7}, {"window": "b", "state": "published"}]
    run(place, "run-1", state="failed", windows=failed)
    run(place, "run-2", working_on="c")
    run(place, "run-3", state="failed", windows=[{"window": "a", "state": "failed", "exit_code": 1}])
    run(place, "own", working_on="d")
    assert runs.tried(runs.latest(place.bucket, place.export, "own")) == {"a": "run-3", "c": "run-2"}


def test_files_of_earlier_generations_stay(place):
    for number, name in enumerate("abc"):
        leave(place, name)
        attempt(place, fence(name, number), name)
    assert cleanup.clean_window(place, "own", T0) == []
    assert left(place) == {"a", "b", "c"}


def test_the_first_clean_up_of_a_window_finds_nothing(place):
    assert cleanup.clean_window(place, "own", T0) == []


def test_a_run_takes_back_what_it_wrote_and_only_that(place):
    leave(place, "mine")
    leave(place, "mine-too")
    cleanup.discard_files(place, "mine")
    assert left(place) == {"mine-too"}
    cleanup.discard_files(place, "mine")


def test_a_window_that_is_passed_over_is_marked(place):
    place.mark_skipped("mine")
    assert place.bucket.read_json("weekly_sales/skipped/2026-W46.json")[0] == {"run_id": "mine"}


def test_an_upload_that_is_gone_can_be_removed_again(place):
    cleanup.remove(place, ["nothing"], [(f"{place.run_folder('x')}a.csv", "no-such-upload")])


def test_more_objects_than_one_call_deletes(place):
    keys = [f"{place.run_folder('x')}{number:04}" for number in range(3)]
    for key in keys:
        place.bucket.write(key, b"", "text/plain")
    place.bucket.delete([*(f"none-{number}" for number in range(999)), *keys])
    assert left(place) == set()
