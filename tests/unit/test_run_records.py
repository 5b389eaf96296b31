"""The record of a run, field by field, and what a later run learns from the records of earlier ones."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone

import attrs
import pytest

from glue_jobs import runs
from glue_jobs.errors import ExportError
from glue_jobs.platform import compute_code_version

T0 = datetime(2026, 11, 16, 6, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
WINDOW = "2026-W46"


def test_an_id_sorts_by_time_and_is_unique():
    ids = {runs.make_run_id(T0) for _ in range(20)}
    assert len(ids) == 20
    for run_id in ids:
        assert re.fullmatch(r"20261116T060102Z-[0-9a-f]{8}", run_id)
    assert runs.make_run_id(T0 + timedelta(seconds=1)) > max(ids)


def test_times_of_runs_are_in_utc():
    before = datetime.now(UTC)
    assert before <= runs.utc_now() <= datetime.now(UTC)
    assert runs.utc_now().tzinfo == UTC


def test_a_run_that_begins_writes_its_record(bucket):
    record = runs.begin(bucket, "things", T0 - HOUR, 90 * MINUTE, lambda: T0)
    assert record.key == runs.run_key("things", record.id) == f"things/runs/{record.id}.json"
    stored, _ = bucket.read_json(record.key)
    assert stored == {
        "id": record.id,
        "export": "things",
        "as_of": "2026-11-16T05:01:02+00:00",
        "started_at": "2026-11-16T06:01:02+00:00",
        "expires_at": "2026-11-16T07:31:02+00:00",
        "job_run_id": None,
        "state": "running",
        "reason": None,
        "ended_at": None,
        "windows": [],
        "working_on": None,
        "windows_left": 0,
        "phases": {},
        "asked": None,
        "host": record.host,
        "pid": os.getpid(),
        "code_version": compute_code_version(),
    }
    head = bucket.s3.head_object(Bucket=bucket.name, Key=bucket.key(record.key))
    assert head["ContentType"] == "application/json"


def test_a_run_of_glue_that_was_asked_for_windows_says_so(bucket):
    asked = {"windows": "2026-W40..W44", "only": "missing"}
    record = runs.begin(bucket, "things", T0, HOUR, lambda: T0, job_run_id="jr_1", asked=asked)
    stored, _ = bucket.read_json(record.key)
    assert (stored["job_run_id"], stored["asked"]) == ("jr_1", asked)


def test_a_record_is_readable_in_any_language(bucket):
    record = runs.begin(bucket, "things", T0, HOUR, lambda: T0)
    record.reason = "Größe"
    record.ended_at = datetime(2026, 11, 16, 9, tzinfo=timezone(2 * HOUR))
    record.windows.append({"window": WINDOW, "limit": MINUTE})
    record.save(bucket)
    text = bucket.read(record.key)[0].decode()
    assert '\n  "reason": "Größe",\n' in text
    assert '\n  "ended_at": "2026-11-16T09:00:00+02:00",\n' in text
    assert '"limit": "0:01:00"' in text


def record_of(**changes) -> runs.RunRecord:
    return attrs.evolve(runs.RunRecord("r", "things", T0, T0, T0 + HOUR), **changes)


def test_a_run_has_time_until_its_limit():
    record = record_of(expires_at=datetime(2026, 11, 16, 7, 31, 59, tzinfo=UTC))
    record.require_time(record.expires_at - timedelta(microseconds=1))
    for now in (record.expires_at, record.expires_at + HOUR):
        with pytest.raises(ExportError) as late:
            record.require_time(now)
        assert late.value.code == "EXP-TIME-LIMIT"
        assert late.value.what == (
            "the run's time limit passed at 2026-11-16 07:31 UTC, so it publishes nothing more"
        )


def test_phases_add_up_to_the_millisecond():
    record = record_of(phases={"read": 0.001})
    for name in ("read", "write", "read"):
        with record.phase(name):
            pass
    assert list(record.phases) == ["read", "write"]
    assert 0.001 <= record.phases["read"] < 60
    assert 0 <= record.phases["write"] < 60
    with pytest.raises(KeyError), record.phase("fail"):
        raise KeyError
    assert all(seconds == round(seconds, 3) for seconds in record.phases.values())
    assert record.phases.keys() == {"read", "write", "fail"}


def test_a_host_is_named_with_its_boot_and_its_processes():
    name, boot, processes = record_of().host.split("/")
    assert name
    assert re.fullmatch(r"[0-9a-f-]{36}", boot)
    assert re.fullmatch(r"pid:\[\d+\]", processes)


def test_the_outcome_of_a_window_has_facts_of_its_manifest():
    facts = {
        "status": "complete",
        "completeness": "c",
        "generation": 3,
        "run_id": "r",
        "rows": {"rows": 5},
        "headline": [],
        "files": [{"key": "k"}],
        "checks": [],
        "notes": ["n"],
    }
    outcome = runs.describe_outcome(WINDOW, "published", facts | {"source": "not in the record"})
    assert outcome == {"window": WINDOW, "state": "published", "reason": None} | facts


# --- whether files of another run may be removed


def stored(bucket, *, windows: list[dict] | None = None, **changes) -> str:
    """Store the record of a run that has an hour left, in a process that is not on this host."""
    usual = {"host": "elsewhere", "windows": windows or []}
    record_of(**usual | changes).save(bucket)
    return "r"


def removable(bucket, now: datetime, replaced_at: datetime | None = None) -> bool:
    return runs.may_be_removed(bucket, "things", "r", WINDOW, now, replaced_at=replaced_at)


UNSURE = {"window": WINDOW, "state": "failed", "exit_code": 1, "may_be_published": True}
END = T0 + HOUR
ENDED = {"state": "failed", "ended_at": END}


def test_files_of_a_run_without_a_record_may_be_removed(bucket):
    assert removable(bucket, T0)


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        # Its time limit, and the grace for a write that may still be on its way.
        ({}, END + 10 * MINUTE - timedelta(microseconds=1), False),
        ({}, END + 10 * MINUTE, True),
        ({"working_on": "2026-W45"}, END + 10 * MINUTE, True),
        ({"state": "done", "ended_at": T0}, T0, True),
        ({"state": "failed", "ended_at": T0}, T0, True),
        # The other window is published, this one isn't.
        ({**ENDED, "windows": [{"window": "2026-W45", "state": "published"}]}, END, True),
        ({**ENDED, "windows": [{"window": WINDOW, "state": "published"}]}, END + HOUR, False),
        ({"windows": [{"window": WINDOW, "state": "published"}]}, END + HOUR, False),
        ({**ENDED, "windows": [{"window": WINDOW, "state": "unchanged"}]}, END, True),
        ({**ENDED, "windows": [UNSURE | {"may_be_published": False}]}, END, True),
        ({**ENDED, "windows": [UNSURE | {"window": "2026-W45"}]}, END, True),
        ({**ENDED, "windows": [UNSURE]}, END + 10 * MINUTE - timedelta(microseconds=1), False),
        ({**ENDED, "windows": [UNSURE]}, END + 10 * MINUTE, True),
        ({**ENDED, "working_on": WINDOW}, END + 9 * MINUTE, False),
        ({**ENDED, "working_on": WINDOW}, END + 10 * MINUTE, True),
        # It died: its end is not known, so its time limit counts.
        ({"working_on": WINDOW}, END + 10 * MINUTE, True),
    ],
)
def test_files_stay_while_their_run_works_or_its_manifest_may_still_appear(bucket, changes, now, expected):
    stored(bucket, **changes)
    assert removable(bucket, now) == expected


@pytest.mark.parametrize(("later", "expected"), [(timedelta(microseconds=-1), False), (timedelta(), True)])
def test_files_may_go_once_a_later_manifest_refuses_that_of_their_run(bucket, later, expected):
    stored(bucket, **ENDED, windows=[UNSURE])
    assert removable(bucket, END, END + later) == expected
    stored(bucket, state="running", windows=[UNSURE])
    assert not removable(bucket, END, END + later), "a run that works may still publish"


# --- what records say about runs and windows


def document(run_id: str, *windows: dict, **changes) -> dict:
    """Return the record of a run that has ended, as `load_recent` returns it."""
    usual = {
        "id": run_id,
        "state": "done",
        "host": "elsewhere",
        "pid": 1,
        "expires_at": END.isoformat(),
        "windows": list(windows),
        "working_on": None,
    }
    return usual | changes


def failed(label: str, exit_code: int = 1, **more) -> dict:
    return {"window": label, "state": "failed", "exit_code": exit_code, **more}


def published(label: str, **more) -> dict:
    return {"window": label, "state": "published", **more}


def test_a_run_is_dead_if_it_says_that_it_is_running_and_its_time_is_over():
    records = [
        document("ended"),
        document("failed", state="failed"),
        document("at-work", state="running", expires_at=(END + HOUR).isoformat()),
        document("late", state="running", expires_at=(END - 10 * MINUTE).isoformat()),
        document("in-grace", state="running", expires_at=(END - 9 * MINUTE).isoformat()),
        document("here", state="running", host=record_of().host, pid=os.getpid()),
    ]
    assert runs.list_dead_runs(records, END) == ["late"]
    assert runs.list_dead_runs([], END) == []


def test_a_process_that_one_may_not_signal_is_alive():
    """Process 1 belongs to root. If these tests do too, it is alive all the more."""
    record = document("r", state="running", host=record_of().host, pid=1)
    assert runs.list_dead_runs([record], T0) == []


def test_an_ended_run_may_not_know_what_it_published():
    unsure = failed("a", may_be_published=True)
    records = [
        document("sure", published("a"), failed("b", may_be_published=False)),
        document("unsure", unsure, failed("c", may_be_published=True), published("b"), working_on="d"),
        document("stopped", state="failed", working_on="e"),
        document("at-work", unsure, state="running", working_on="f"),
    ]
    assert runs.list_unsure_runs(records) == {"unsure": {"a", "c", "d"}, "stopped": {"e"}}


def test_the_last_failure_of_each_window_counts_until_a_run_ends_it():
    records = [
        document("1", failed("a"), failed("b", 7), published("c")),
        document("2", failed("b"), published("a", exit_code=0), working_on="c"),
        document("3", failed("d"), state="running"),
    ]
    assert runs.find_last_failures(records) == {"b": "2", "c": "2", "d": "3"}
    assert runs.find_last_failures([]) == {}


def test_the_latest_inputs_of_each_window_count():
    first = published("a", inputs_sha256="1")
    second = {"window": "a", "state": "unchanged", "inputs_sha256": "2"}
    other = published("b", inputs_sha256="3")
    records = [
        document("1", first, other),
        document("2", second, published("c"), published("d", inputs_sha256=None)),
        document("3", failed("a")),
    ]
    assert runs.find_last_computed(records) == {"a": second, "b": other}


def test_the_seconds_of_the_last_publication_count():
    records = [
        document("1", published("a", seconds=1.5), published("b", seconds=2.5)),
        document("2", published("a", seconds=3.5), published("b")),
        document("3", failed("a", seconds=9.0), {"window": "c", "state": "unchanged", "seconds": 8.0}),
    ]
    assert runs.find_durations(records) == {"a": 3.5, "b": 2.5}


def test_records_are_read_until_one_has_a_window(bucket):
    """Twenty at a time, from the latest on, and sorted by the time at which the runs started."""
    ids = [f"run-{number:02}" for number in range(45)]
    for number, run_id in enumerate(ids):
        windows = [published("a")] if number in (3, 20) else []
        record_of(id=run_id, started_at=T0 - number * MINUTE, windows=windows).save(bucket)
    found = runs.load_recent(bucket, "things", ids)
    assert [record["id"] for record in found] == ids[:4:-1], "the latest twenty have none"
    assert [record["id"] for record in runs.load_recent(bucket, "things", ids[:30])] == ids[29:9:-1]
    gone = ["run-00", "run-00x", "run-01"]
    assert [record["id"] for record in runs.load_recent(bucket, "things", gone)] == ["run-01", "run-00"]
    assert runs.load_recent(bucket, "things", []) == []
    assert runs.load_recent(bucket, "others", ids) == []


class Empty:
    """A bucket without objects, which keeps the keys that were asked for."""

    def __init__(self):
        self.keys = set()

    def read_json(self, key):
        self.keys.add(key)


@pytest.mark.parametrize(("amount", "read"), [(19, 19), (499, 499), (500, 500), (501, 500), (700, 500)])
def test_at_most_five_hundred_records_are_read(amount, read):
    empty = Empty()
    ids = [f"run-{number:03}" for number in range(amount)]
    assert runs.load_recent(empty, "things", ids) == []
    assert empty.keys == {runs.run_key("things", run_id) for run_id in ids[-read:]}


def test_a_dead_run_is_marked_as_failed_and_keeps_what_it_had_done(bucket):
    stored(bucket, windows=[published("a")], working_on=WINDOW)
    before, _ = bucket.read_json("things/runs/r.json")
    runs.mark_died(bucket, "things", "r", T0 + HOUR)
    after, _ = bucket.read_json("things/runs/r.json")
    changed = {name: value for name, value in after.items() if before[name] != value}
    assert changed.keys() == {"state", "ended_at", "reason"}
    assert (changed["state"], changed["ended_at"]) == ("failed", "2026-11-16T07:01:02+00:00")
    assert changed["reason"].startswith("EXP-DIED  the run's process ended without saying why. ")
    runs.mark_died(bucket, "things", "unknown", T0)
    assert bucket.read("things/runs/unknown.json") is None


def test_a_process_of_another_user_is_alive():
    """It may get no signal of this one."""
    child = os.fork()
    if not child:
        code = 2
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            code = 0 if runs._is_alive(1) else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
