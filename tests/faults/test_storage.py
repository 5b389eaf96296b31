"""S3 and Glue refuse calls, cut responses or return wrong ones.

No partial result is visible, and no visible one is lost.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from glue_jobs.errors import ExportError
from tests.support.job_process import await_held
from tests.support.lake import AS_OF, WEEK
from tests.support.things import LINES, TOPIC, counts, ended, events, files_of, uploads_of
from tests.support.waiting import PATIENCE

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def stocked(lakes):
    lake = lakes()
    lake.commit(TOPIC, *events(30), at=AS_OF)
    return lake


@pytest.fixture(scope="module")
def undisturbed(stocked):
    return stocked.export(LINES).csv()


@pytest.fixture
def prefix():
    """Return a prefix for this test in the shared lake."""
    return f"prefix-{next(_numbers)}"


def s3(fault, method, path, *, query=None, **more):
    """Return a fault of S3's response to a call on an object of the lake."""
    return {
        "fault": fault,
        "method": method,
        "path": f"/lake-*/{path}",
        "query": query or {},
        "shape": "s3",
    } | more


def glue(fault, operation, **more):
    return {
        "fault": fault,
        "headers": {"x-amz-target": f"AWSGlue.{operation}"},
        "shape": "aws-json",
        "status": 400,
    } | more


PART = {"partNumber": "*"}
COMPLETE = {"uploadId": "*"}
BEGIN = {"uploads": "*"}
TABLE_FILE = "*/v1/*/data/*.parquet"
DATA = "prefix-*/data/*.csv"


def visible(lake, prefix, name="things"):
    return json.loads(lake.read(f"{prefix}/{name}/manifests/{WEEK}.json"))


def assert_nothing_left(lake, prefix):
    assert [key for key in lake.keys(prefix) if "/runs/" not in key] == []
    assert uploads_of(lake, prefix) == set()


#: Temporary faults of AWS.
PASSING = {
    "throttled part": s3("error", "PUT", DATA, query=PART),
    "reset part": s3("reset", "PUT", DATA, query=PART),
    "upload started twice": s3("effect_then_reset", "POST", DATA, query=BEGIN),
    "upload completed, answer lost": s3("effect_then_reset", "POST", DATA, query=COMPLETE),
    "upload completed, answer says that it is gone": s3(
        "effect_then_error", "POST", DATA, query=COMPLETE, status=404, code="NoSuchUpload"
    ),
    "failed with status 200": s3("error", "POST", DATA, status=200, code="InternalError", query=COMPLETE),
    "throttled listing": s3("error", "GET", "", query={"list-type": "2"}) | {"path": "/lake-*"},
    "manifest conflicts with another write": s3("error", "PUT", "*/manifests/*", status=409, times=2),
    "manifest refused, though nobody wrote": s3("error", "PUT", "*/manifests/*", status=412),
    "manifest written, answer lost": s3("effect_then_reset", "PUT", "*/manifests/*"),
    "manifest written, answer an error": s3("effect_then_error", "PUT", "*/manifests/*", status=500),
    "throttled table": s3("error", "GET", TABLE_FILE),
    "file broken off": s3("truncate", "GET", DATA, after_bytes=700, times=2),
    "table's metadata broken off": s3("truncate", "GET", "*.metadata.json", after_bytes=100),
    "sample of the table broken off": s3("truncate", "GET", TABLE_FILE, after_bytes=1),
    "throttled catalog": glue("error", "GetTable", code="ThrottlingException"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault_name", PASSING)
def test_temporary_faults_are_retried(stocked, undisturbed, faults, prefix, fault_name):
    faults.rule(PASSING[fault_name])
    run = stocked.export(LINES, "--prefix", prefix)
    assert faults.state()["rules"][0]["hits"] >= 1
    manifest = visible(stocked, prefix)
    assert (run.state(), manifest["generation"], manifest["run_id"]) == ("published", 1, run.record.id)
    assert files_of(stocked, prefix) == {file["key"] for file in manifest["files"]}
    assert uploads_of(stocked, prefix) == set()
    assert stocked.read(manifest["files"][0]["key"]) == undisturbed


@pytest.mark.slow
def test_a_run_waits_for_a_slow_response(stocked, undisturbed, faults, prefix):
    faults.rule(s3("hang", "GET", DATA, after_bytes=100))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stocked.export, LINES, "--prefix", prefix)
        await_held(faults, ended(running))
        assert stocked.keys(f"{prefix}/things/manifests/") == []
        faults.release()
        assert running.result(PATIENCE).state() == "published"
    assert stocked.read(visible(stocked, prefix)["files"][0]["key"]) == undisturbed


@pytest.mark.slow
def test_a_run_reads_each_manifest_once(stocked, faults, prefix):
    stocked.export(LINES, "--prefix", prefix)
    read = Counter(item["call"] for item in faults.state()["trace"] if item["call"].endswith(".avro"))
    assert set(read.values()) == {1}, read


def test_reading_back_goes_on_where_the_connection_broke(stocked, undisturbed, faults, prefix):
    """The rest must be of the same object."""
    faults.rule(s3("truncate", "GET", DATA, after_bytes=700))
    run = stocked.export(LINES, "--prefix", prefix)
    assert (run.state(), "compute" in run.record.phases) == ("published", True)
    reads = [
        call
        for call in faults.state()["trace"]
        if call["call"].startswith("GET") and call["call"].endswith(".csv")
    ]
    assert len(reads) == 2, "the window is not computed a second time"
    assert stocked.read(visible(stocked, prefix)["files"][0]["key"]) == undisturbed


@pytest.mark.slow
def test_a_window_is_tried_once_more_after_a_problem_with_storage(stocked, undisturbed, faults, prefix):
    faults.rule(s3("error", "PUT", DATA, query=PART, status=400, code="BadDigest"))
    run = stocked.export(LINES, "--prefix", prefix)
    assert (run.state(), run.record.state) == ("published", "done")
    assert files_of(stocked, prefix) == {file["key"] for file in visible(stocked, prefix)["files"]}
    assert stocked.read(visible(stocked, prefix)["files"][0]["key"]) == undisturbed


@pytest.mark.slow
def test_other_windows_are_tried_after_one_whose_storage_fails(stocked, faults, prefix):
    faults.rule(s3("error", "GET", f"prefix-*/data/{WEEK}/*", status=404, times=0))
    days = LINES.replace("from = 2024-03-04", "from = 2024-02-26")
    run = stocked.export(days, "--prefix", prefix)
    states = {window["window"]: (window["state"], window.get("stops")) for window in run.record.windows}
    assert states == {WEEK: ("failed", False), "2024-W09": ("published", None)}
    assert run.record.state == "failed"


#: Permanent faults of AWS, and the window's error code.
LASTING = {
    "part denied": (s3("error", "PUT", DATA, query=PART, status=403), "EXP-AWS-DENIED"),
    "part damaged on the way": (
        s3("error", "PUT", DATA, query=PART, status=400, code="BadDigest"),
        "EXP-AWS-FAILED",
    ),
    "upload denied": (s3("error", "POST", DATA, query=BEGIN, status=403), "EXP-AWS-DENIED"),
    "upload gone": (
        s3("error", "POST", DATA, query=COMPLETE, status=404, code="NoSuchUpload"),
        "EXP-AWS-FAILED",
    ),
    "report denied": (s3("error", "PUT", "*/report.html", status=403), "EXP-AWS-DENIED"),
    "manifest denied": (s3("error", "PUT", "*/manifests/*", status=403), "EXP-AWS-DENIED"),
    "manifest never taken": (s3("error", "PUT", "*/manifests/*", status=412), "EXP-MANIFEST-BUSY"),
    "table denied": (s3("error", "GET", TABLE_FILE, status=403), "EXP-AWS-DENIED"),
    "file broken off": (s3("truncate", "GET", DATA, after_bytes=0), "EXP-AWS-UNREACHABLE"),
    "file cut": (s3("cut", "GET", DATA), "EXP-RECORDS"),
    "file gone": (s3("error", "GET", DATA, status=404), "EXP-AWS-FAILED"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault_name", LASTING)
def test_permanent_faults_fail_the_run_and_leave_no_files(stocked, faults, prefix, fault_name):
    fault, code = LASTING[fault_name]
    faults.rule(fault | {"times": 0})
    window = stocked.export(LINES, "--prefix", prefix).window()
    assert (window["state"], window["code"], window["exit_code"]) == ("failed", code, 1)
    assert window["remedy"]
    assert_nothing_left(stocked, prefix)


@pytest.mark.slow
def test_files_are_kept_while_a_manifest_may_still_appear(stocked, faults, prefix):
    """It is unknown whether S3 wrote the manifest.

    If the files were removed, a visible manifest could lack them. Once another run has published the window,
    S3 refuses the manifest.
    """
    faults.rule(s3("error", "PUT", "*/manifests/*", status=503, times=0))
    run = stocked.export(LINES, "--prefix", prefix)
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-AWS-FAILED")
    assert {key.rpartition("/")[2].split(".")[-1] for key in files_of(stocked, prefix)} == {
        "csv",
        "json",
        "html",
    }
    kept = files_of(stocked, prefix)
    faults.clear()
    faults.rule(s3("error", "PUT", DATA, query=PART, status=400, code="BadDigest", times=0))
    assert stocked.export(LINES, "--prefix", prefix).state() == "failed"
    assert files_of(stocked, prefix) == kept
    faults.clear()
    assert stocked.export(LINES, "--prefix", prefix).state() == "published"
    assert files_of(stocked, prefix) == {file["key"] for file in visible(stocked, prefix)["files"]}


@pytest.mark.slow
def test_the_first_error_is_reported_when_the_clean_up_fails_too(stocked, faults, prefix):
    faults.rule(
        s3("error", "PUT", DATA, query=PART, status=400, code="BadDigest", times=0),
        s3("error", "DELETE", "*", status=403, times=0),
    )
    assert "BadDigest" in stocked.export(LINES, "--prefix", prefix).window()["reason"]
    faults.clear()
    assert stocked.export(LINES, "--prefix", prefix).state() == "published"
    assert uploads_of(stocked, prefix) == set()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["gone", "of another length"])
def test_a_visible_file_that_is_damaged_is_made_again(stocked, undisturbed, prefix, damage):
    first = stocked.export(LINES, "--prefix", prefix)
    key = visible(stocked, prefix)["files"][0]["key"]
    if damage == "gone":
        stocked.s3.delete_object(Bucket=stocked.target.bucket, Key=key)
    else:
        stocked.s3.put_object(Bucket=stocked.target.bucket, Key=key, Body=b"short")
    again = stocked.export(LINES, "--prefix", prefix)
    manifest = visible(stocked, prefix)
    assert (first.state(), again.state(), manifest["generation"]) == ("published", "published", 2)
    assert stocked.read(manifest["files"][0]["key"]) == undisturbed


@pytest.mark.slow
def test_an_aggregate_that_cannot_be_kept_does_not_affect_the_visible_file(stocked, faults, prefix):
    contract = counts("refused")
    faults.rule(glue("error", "UpdateTable", code="AccessDeniedException", times=0))
    for _ in range(2):  # the second run finds the file published and unchanged
        window = stocked.export(contract, "--prefix", prefix).window()
        assert (window["state"], window["code"]) == ("failed", "EXP-AWS-DENIED")
        assert window["may_be_published"], "otherwise no later run completes the table of an old window"
    manifest = visible(stocked, prefix, "refused")
    assert files_of(stocked, prefix) == {file["key"] for file in manifest["files"]}
    faults.clear()
    assert stocked.export(contract, "--prefix", prefix).state() == "unchanged"
    assert kept(stocked, "refused") == [(WEEK, "a", 15), (WEEK, "b", 15)]
    assert files_of(stocked, prefix) == {file["key"] for file in manifest["files"]}


@pytest.mark.slow
def test_an_aggregate_whose_commit_was_not_answered_is_kept_once(stocked, faults, prefix):
    faults.rule(glue("effect_then_reset", "UpdateTable"))
    assert stocked.export(counts("unanswered"), "--prefix", prefix).state() == "published"
    assert faults.state()["rules"][0]["hits"] == 1
    assert kept(stocked, "unanswered") == [(WEEK, "a", 15), (WEEK, "b", 15)]


def kept(lake, name):
    table = lake.spark.table(f"lake.{lake.target.aggregates_database}.{name}")
    return sorted(tuple(row) for row in table.select("window", "kind", "things").collect())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (glue("error", "GetTable", code="AccessDeniedException"), "EXP-AWS-DENIED"),
        (s3("error", "GET", "*.metadata.json", status=403), "EXP-AWS-DENIED"),
        (s3("truncate", "GET", "*.metadata.json", after_bytes=0), "EXP-AWS-UNREACHABLE"),
    ],
)
def test_an_unreadable_table_ends_the_run_before_it_starts(stocked, faults, prefix, fault, code):
    faults.rule(fault | {"times": 0})
    with pytest.raises(ExportError) as refused:
        stocked.export(LINES, "--prefix", prefix)
    assert refused.value.code == code
    faults.clear()
    (record,) = (json.loads(stocked.read(key)) for key in stocked.keys(prefix))
    assert record["state"] == "failed"
    assert code in record["reason"]
