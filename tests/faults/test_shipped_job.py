"""The job as it ships, in the embedded Glue and as a process, sees what the session of the tests sees, and
computes the same.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest

from glue_jobs import arguments, probe, runs
from lakeferry.local.spark import GLUE_VERSION
from tests.support.glue_kit import findings, run_in_glue
from tests.support.job_process import start
from tests.support.lake import AS_OF, MONDAY, column, contract, topic_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        GLUE_VERSION != "5.1", reason="the embedded Glue 6.0 has Python 3.11; the probe expects 3.13 there"
    ),
]

THINGS = topic_of(("a", "long"), ("b", "long"), ("text", "string"), ("kept", "string"))
PLAIN = contract(column("id"))

#: What the session of the tests sees and the job in Glue doesn't, or the other way round, with the reason.
MEANT = {
    "Glue passes the id of the run": "only Glue does",
    "AWS clients have a region": "the environment of the tests names one; the stack passes --region, because Glue documents none",
    "the code has a version": "Glue imports the job from the zip, the tests from the checkout; the versions are equal",
    "Python on executors imports the job": "the same",
}


@pytest.fixture(scope="module")
def lake(lakes):
    made = lakes()
    made.commit(THINGS, {"id": "1", "at": MONDAY, "a": 1, "b": 1, "text": "1", "kept": "1"})
    return made


@pytest.fixture(scope="module")
def in_glue(lake):
    run = run_in_glue(lake, lake.write_contract(PLAIN), probe="true")
    assert run.record["JobRunState"] == "SUCCEEDED", "\n".join([*run.output, *run.error])
    assert not any(probe.VALUE in line for line in [*run.output, *run.error])
    return run


@pytest.fixture(scope="module")
def in_tests(lake):
    """Return what the probe sees in this process, in the session of all tests of exports."""
    words = ["--export", lake.write_contract(PLAIN), "--as-of", AS_OF.isoformat(), *lake.target.arguments()]
    seen = probe.look(arguments.parse([*words, "--probe", "true"], now=runs.utc_now()))
    return json.loads(json.dumps({finding.name: finding.seen for finding in seen}))


def differing(one, other):
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def test_the_session_of_the_tests_is_that_of_the_job_in_glue(in_glue, in_tests):
    assert differing(findings(in_glue.output), in_tests) == set(MEANT)


def test_the_job_as_a_process_is_that_of_the_tests(lake, in_tests):
    job = start(lake, lake.write_contract(PLAIN), "--probe", "true")
    assert job.wait() == 1  # it is not in Glue
    assert differing(findings(job.output().splitlines()), in_tests) == set()


def test_the_code_that_was_probed_is_that_of_this_checkout(in_glue, in_tests):
    name = "the code has a version"
    (version, file), (own_version, _) = findings(in_glue.output)[name], in_tests[name]
    assert version == own_version
    assert ".zip/" in file


def test_the_probe_reads_only(lake, in_glue):
    assert lake.keys(f"{lake.target.prefix}/") == []


@pytest.mark.parametrize(
    ("given", "code"),
    [({"as_of": ""}, "EXP-ARGUMENTS  --as-of is missing"), ({"table": "absent"}, "EXP-")],
)
def test_glue_shows_why_a_run_failed(lake, given, code):
    run = run_in_glue(lake, lake.write_contract(PLAIN), **given)
    assert run.record["ErrorMessage"].startswith(f"SystemExit: {code}")
    assert run.record["ErrorMessage"].removeprefix("SystemExit: ") in run.error


def test_a_missing_table_fails_the_probe_without_a_traceback(lake):
    run = run_in_glue(lake, lake.write_contract(PLAIN), probe="true", table="absent")
    assert run.record["JobRunState"] == "FAILED"
    assert [line for line in run.output if " FAIL " in line] == [
        'probe FAIL the table can be read: "SourceProblem"'
    ]


#: Columns and a filter whose results ANSI mode decides, and a week for each result.
DECIDED = contract(
    column("id"),
    column("total", "integer", expression="a + b"),
    column("ratio", "integer", expression="a div b"),
    column("number", "integer", expression="cast(text as bigint)"),
    column("zero", "decimal(20,8)", expression="cast(a - a as decimal(20,8))"),
    filter=[{"where": "cast(kept as int) = 1", "reason": "Others are not wanted."}],
    window={"every": "iso_week", "zone": "UTC", "from": MONDAY.date()},
)
GOOD = {"a": 6, "b": 3, "text": "12", "kept": "1"}
WEEKS = {
    "2024-W10": ({"a": 9223372036854775807}, "EXP-OVERFLOW"),
    "2024-W11": ({"b": 0}, "EXP-DIVISION"),
    "2024-W12": ({"text": "twelve"}, "EXP-CAST"),
    "2024-W13": ({"kept": "one"}, "EXP-CAST"),
    "2024-W14": ({}, None),
}


def test_ansi_mode_decides_the_results_of_the_job_that_ships(lakes):
    lake = lakes()
    days = [MONDAY + timedelta(weeks=number) for number in range(len(WEEKS))]
    events = [
        GOOD | {"id": week, "at": day} | changed
        for day, (week, (changed, _)) in zip(days, WEEKS.items(), strict=True)
    ]
    lake.commit(THINGS, *events)
    as_of = AS_OF + timedelta(weeks=len(WEEKS) - 1)
    stated = {"as_of": as_of.isoformat(), "complete_until": as_of.isoformat()}
    run = run_in_glue(lake, lake.write_contract(DECIDED), **stated)
    (key,) = lake.keys(f"{lake.target.prefix}/things/runs/")
    windows = {window["window"]: window for window in json.loads(lake.read(key))["windows"]}
    assert {week: window.get("code") for week, window in windows.items()} == {
        week: code for week, (_, code) in WEEKS.items()
    }
    assert run.record["JobRunState"] == "FAILED"
    (data,) = (file["key"] for file in windows["2024-W14"]["files"] if file["role"] == "data")
    rows = csv.DictReader(io.StringIO(lake.read(data).decode("utf-8-sig")))
    assert list(rows) == [
        {"id": "2024-W14", "total": "9", "ratio": "2", "number": "12", "zero": "0.00000000"}
    ]
