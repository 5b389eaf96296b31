"""A run that has no window to export: its record, and what it cleans up. It needs no session of Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import boto3
import pytest

from config.exports.windows import find_window
from glue_jobs import export
from glue_jobs.arguments import Arguments, parse
from glue_jobs.errors import (
    BadInput,
    Blocked,
    DataProblem,
    ExportError,
    Inconsistent,
    SourceProblem,
    StorageProblem,
)
from glue_jobs.runs import RunRecord, run_key
from tests.support import samples

T0 = datetime(2026, 11, 4, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
#: The windows of a contract from 1 November on that are over at T0.
CLOSED = ["2026-11-01", "2026-11-02", "2026-11-03"]
CONTRACT = samples.HEAD.format(first="id", delivery="") + samples.COLUMN.format("id", "text", "Id", "")


def metadata() -> bytes:
    names = ("id", "at", "$$partition", "$$offset", "$$timestamp")
    types = ("string", "timestamptz", "int", "long", "timestamptz")
    fields = [
        {"id": number, "name": name, "type": type_, "required": False}
        for number, (name, type_) in enumerate(zip(names, types, strict=True), 1)
    ]
    document = {
        "table-uuid": "f0d4",
        "current-snapshot-id": 1,
        "current-schema-id": 0,
        "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1_700_000_000_000, "summary": {}}],
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
    }
    return json.dumps(document).encode()


@pytest.fixture
def arguments(bucket, tmp_path):
    """Return a function that parses the arguments of a run over a table that exists."""
    bucket.write("1.metadata.json", metadata(), "application/json")
    location = f"s3://{bucket.name}/{bucket.key('1.metadata.json')}"
    glue = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": bucket.name})
    table = {"Name": "things", "Parameters": {"metadata_location": location, "table_type": "ICEBERG"}}
    glue.create_table(DatabaseName=bucket.name, TableInput=table)
    contract = tmp_path / "things.toml"
    contract.write_text(CONTRACT.replace('zone = "UTC"', 'zone = "UTC"\nrestate_for_days = 0'))
    known = {
        "export": str(contract),
        "as-of": T0.isoformat(),
        "database": bucket.name,
        "bucket": bucket.name,
        "prefix": bucket.prefix,
    }

    def build(**changes: str) -> Arguments:
        values = known | {name.replace("_", "-"): value for name, value in changes.items()}
        return parse(["--JOB_RUN_ID=jr_1", *(f"--{name}={value}" for name, value in values.items())], now=T0)

    return build


def idle(args: Arguments) -> RunRecord:
    """Run in a session that no step may use."""
    return export.run(args, spark=object(), clock=lambda: T0)


def settle(bucket, folder: str, *labels: str) -> None:
    for label in labels:
        bucket.write(f"things/{folder}/{label}.json", b"{}", "application/json")


def test_a_run_before_the_first_window_ends_has_nothing_to_do(bucket, arguments):
    record = idle(arguments(as_of="2026-11-01T23:59:59Z", time_limit_minutes="90"))
    stored, _ = bucket.read_json(run_key("things", record.id))
    assert (stored["export"], stored["as_of"]) == ("things", "2026-11-01T23:59:59+00:00")
    assert (stored["state"], stored["reason"], stored["ended_at"]) == ("done", None, T0.isoformat())
    assert (stored["windows"], stored["windows_left"], stored["working_on"]) == ([], 0, None)
    assert (stored["job_run_id"], stored["asked"]) == ("jr_1", None)
    assert stored["expires_at"] == (T0 + 90 * timedelta(minutes=1)).isoformat()
    assert export.exit_code(record) == 0


def test_windows_that_are_published_or_were_empty_are_left_alone(bucket, arguments):
    settle(bucket, "manifests", *CLOSED[:2])
    settle(bucket, "skipped", *CLOSED[2:])
    for args in (arguments(), arguments(windows="2026-11-01..2026-11-03", only="missing")):
        record = idle(args)
        assert (record.state, record.windows) == ("done", [])


def test_a_run_that_was_asked_for_windows_says_so_in_its_record(bucket, arguments):
    settle(bucket, "manifests", "2026-11-02")
    record = idle(arguments(windows="2026-11-01..2026-11-01", only="published"))
    stored, _ = bucket.read_json(record.key)
    assert stored["asked"] == {"windows": "2026-11-01..2026-11-01", "only": "published"}
    assert stored["windows"] == []


def test_the_first_day_of_the_arguments_replaces_that_of_the_contract(arguments):
    assert idle(arguments(first_day="2026-11-04")).windows == []
    with pytest.raises(BadInput) as refused:
        idle(arguments(first_day="2026-11-03", windows="2026-11-02"))
    assert refused.value.code == "EXP-WINDOWS"


def test_a_run_cleans_up_after_those_that_died(bucket, arguments):
    """Clocks differ, so one of them may seem to have begun later."""
    settle(bucket, "skipped", *CLOSED)
    dead = ["20261103T060000Z-00000000", "20261105T060000Z-00000000"]
    for run_id in dead:
        RunRecord(run_id, "things", T0, T0 - 5 * HOUR, T0 - 4 * HOUR, host="elsewhere").save(bucket)
        bucket.write(f"things/data/2026-11-02/{run_id}/a.csv", b"a", "text/csv")
    own = idle(arguments())
    assert list(bucket.keys("things/data/")) == []
    for run_id in dead:
        stored, _ = bucket.read_json(run_key("things", run_id))
        assert (stored["state"], stored["ended_at"]) == ("failed", T0.isoformat())
    assert bucket.read_json(own.key)[0]["state"] == "done"


def test_a_run_that_fails_as_a_whole_has_the_reason_in_its_record(bucket, arguments):
    with pytest.raises(SourceProblem) as missing:
        idle(arguments(table="others"))
    (name,) = bucket.keys("things/runs/")
    stored, _ = bucket.read_json(name)
    assert missing.value.code == "EXP-TABLE-MISSING"
    assert (stored["state"], stored["ended_at"], stored["windows"]) == ("failed", T0.isoformat(), [])
    whole = f"EXP-TABLE-MISSING  {missing.value.what}. {missing.value.remedy}"
    assert stored["reason"] == str(missing.value) == whole


def test_nothing_is_written_for_a_contract_or_windows_that_cannot_be_read(bucket, arguments, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("version = 1.")
    for changes, code in (
        ({"export": str(wrong)}, "EXP-CONTRACT"),
        ({"windows": "2026-W40"}, "EXP-WINDOWS"),
    ):
        with pytest.raises(BadInput) as refused:
            idle(arguments(**changes))
        assert refused.value.code == code
        assert not refused.value.what.endswith(".")
    assert list(bucket.keys("")) == ["1.metadata.json"]


@pytest.mark.parametrize(
    ("thrown", "raised", "code", "is_logged"),
    [
        (KeyboardInterrupt, KeyboardInterrupt, "EXP-CANCELLED", False),
        (KeyError, Inconsistent, "EXP-UNEXPECTED", True),
        (
            partial(SourceProblem, "EXP-TABLE-MISSING", "it is gone"),
            SourceProblem,
            "EXP-TABLE-MISSING",
            False,
        ),
    ],
)
def test_what_ends_a_run_is_in_its_record_and_in_the_log_if_nobody_expects_it(
    bucket, arguments, caplog, thrown, raised, code, is_logged
):
    times = iter([T0, None, T0 + HOUR])

    def tick() -> datetime:
        now = next(times)
        if now is None:
            raise thrown()
        return now

    with pytest.raises(raised) as ended:
        export.run(arguments(), spark=object(), clock=tick)
    assert ended.value.__cause__ is None
    (name,) = bucket.keys("things/runs/")
    stored, _ = bucket.read_json(name)
    assert (stored["state"], stored["ended_at"]) == ("failed", (T0 + HOUR).isoformat())
    assert stored["reason"].startswith(f"{code}  ")
    assert bool(caplog.records) == is_logged


# --- what the record says about windows that failed


def record_of(*windows: dict) -> RunRecord:
    return RunRecord("r", "things", T0, T0, T0 + HOUR, windows=list(windows))


@pytest.mark.parametrize(
    ("codes", "expected"), [([], 0), ([None], 0), ([0, None], 0), ([1], 1), ([1, 7, None], 7), ([7, 2], 7)]
)
def test_a_run_ends_with_the_highest_code_of_its_windows(codes, expected):
    windows = [{"window": "w"} if code is None else {"window": "w", "exit_code": code} for code in codes]
    assert export.exit_code(record_of(*windows)) == expected


@pytest.mark.parametrize(
    ("error", "state", "exit_code", "stops"),
    [
        (DataProblem("EXP-CAST", "a text is no number"), "failed", 1, False),
        (Blocked("EXP-CHECK-BLOCKED", "a check failed", "Correct it"), "blocked", 7, False),
        (Inconsistent("EXP-COUNTS", "two counts differ"), "failed", 1, False),
        (StorageProblem("EXP-AWS-FAILED", "S3 failed"), "failed", 1, False),
        (StorageProblem("EXP-AWS-UNREACHABLE", "S3 is gone"), "failed", 1, False),
        (StorageProblem("EXP-CATALOG-UNREACHABLE", "no answer"), "failed", 1, False),
        (StorageProblem("EXP-CREDENTIALS-ENDED", "they ended"), "failed", 1, False),
        (StorageProblem("EXP-AWS-DENIED", "S3 refused"), "failed", 1, True),
        (SourceProblem("EXP-SCHEMA-CHANGED", "a field is gone"), "failed", 1, True),
        (BadInput("EXP-CONTRACT", "it is wrong"), "failed", 2, True),
        (ExportError("EXP-TIME-LIMIT", "it passed"), "failed", 1, True),
    ],
)
def test_an_error_ends_the_run_unless_other_windows_may_do_without_it(error, state, exit_code, stops):
    window = find_window(T0.date(), samples.contract(CONTRACT).window)
    for may_be_published in (False, True):
        assert export._explain(window, error, may_be_published=may_be_published) == {
            "window": "2026-11-04",
            "state": state,
            "code": error.code,
            "reason": error.what,
            "remedy": error.remedy,
            "exit_code": exit_code,
            "stops": stops,
            "may_be_published": may_be_published,
        }


DONE = {"window": "a", "state": "published"}
BLOCKED = {
    "window": "b",
    "state": "blocked",
    "exit_code": 7,
    "code": "EXP-CHECK-BLOCKED",
    "reason": "A check failed",
    "remedy": "Correct it",
}
FAILED = BLOCKED | {"window": "c", "state": "failed", "code": "EXP-CAST", "exit_code": 1}


@pytest.mark.parametrize(
    ("windows", "error", "state", "reason"),
    [
        ([], None, "done", None),
        ([DONE, {**DONE, "exit_code": 0}], None, "done", None),
        ([DONE, BLOCKED, FAILED], None, "blocked", "EXP-CHECK-BLOCKED  A check failed. Correct it"),
        ([FAILED, BLOCKED], None, "failed", "EXP-CAST  A check failed. Correct it"),
        (
            [BLOCKED],
            ExportError("EXP-TIME-LIMIT", "It ended", "Run again"),
            "failed",
            "EXP-TIME-LIMIT  It ended. Run again",
        ),
    ],
)
def test_the_end_of_a_run_is_that_of_its_first_window_that_failed(bucket, windows, error, state, reason):
    record = record_of(*windows)
    export._end(record, bucket, lambda: T0 + HOUR, error)
    stored, _ = bucket.read_json(record.key)
    assert (stored["state"], stored["reason"]) == (state, reason)
    assert stored["ended_at"] == (T0 + HOUR).isoformat()
    assert stored["windows"] == windows
