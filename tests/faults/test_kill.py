"""SIGKILL of the real process at the critical moments. The next run then publishes exactly once.

test_kill_everywhere.py kills it after every call.
"""

from __future__ import annotations

import json

import pytest

from tests.support import job_process
from tests.support.lake import AS_OF, WEEK
from tests.support.things import LINES, TOPIC, counts, events, files_of, uploads_of


@pytest.fixture(scope="module")
def stocked(lakes):
    lake = lakes()
    lake.commit(TOPIC, *events(30), at=AS_OF)
    return lake


@pytest.fixture(scope="module")
def undisturbed(stocked):
    return stocked.export(LINES)


def s3(method, path, **query):
    """Hold the response to a call of S3 whose effect is done."""
    return {"fault": "hang", "method": method, "path": f"/lake-*/{path}", "query": query}


#: By the name of a moment: the call, and whether the window is visible then.
POINTS = {
    "begun": (s3("PUT", "*/runs/*"), False),
    "upload-begun": (s3("POST", "*/data/*", uploads="*"), False),
    "part-uploaded": (s3("PUT", "*/data/*", partNumber="*"), False),
    "upload-completed": (s3("POST", "*/data/*", uploadId="*"), False),
    "visible": (s3("PUT", "*/manifests/*"), True),
}


def kill_at(lake, faults, point, contract, *words):
    faults.rule(point)
    job = job_process.start(lake, contract, *words)
    job_process.await_held(faults, job.ended, job.output)
    job.kill()
    faults.clear()


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("point", POINTS)
def test_the_run_after_a_killed_one_cleans_up_and_publishes_once(stocked, undisturbed, faults, point):
    call, visible = POINTS[point]
    prefix = ("--prefix", f"killed-{point}")
    kill_at(stocked, faults, call, stocked.write_contract(LINES), *prefix)
    (dead,) = stocked.keys(f"{prefix[1]}/things/runs/")
    left = files_of(stocked, prefix[1]) | uploads_of(stocked, prefix[1])
    assert bool(left) == (point != "begun")
    assert bool(stocked.keys(f"{prefix[1]}/things/manifests/")) == visible
    run = stocked.export(LINES, *prefix)
    assert run.state() == ("unchanged" if visible else "published")
    manifest = json.loads(stocked.read(f"{prefix[1]}/things/manifests/{WEEK}.json"))
    assert (manifest["generation"], manifest["run_id"] in dead) == (1, visible)
    assert files_of(stocked, prefix[1]) == {file["key"] for file in manifest["files"]}
    assert uploads_of(stocked, prefix[1]) == set()
    data = next(file for file in manifest["files"] if file["role"] == "data")
    assert stocked.read(data["key"]) == undisturbed.csv()
    assert json.loads(stocked.read(dead))["reason"].startswith("EXP-DIED")


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("point", ["before the commit", "after the commit"])
def test_the_run_after_one_killed_during_an_aggregate_completes_it(stocked, faults, point):
    name = f"counts_{point.split()[0]}"
    call = s3("PUT", f"warehouse/*/{name}/data/*")
    if point == "after the commit":
        call = {
            "fault": "hang",
            "method": "POST",
            "path": "/",
            "headers": {"x-amz-target": "AWSGlue.UpdateTable"},
        }
    contract = counts(name)
    kill_at(stocked, faults, call, stocked.write_contract(contract))
    assert stocked.published(name) == [WEEK]
    run = stocked.export(contract)
    assert run.state() == "unchanged"
    database = stocked.target.aggregates_database
    kept = (
        stocked.spark.table(f"lake.{database}.{name}")
        .select("window", "kind", "things", "run_id")
        .orderBy("kind")
        .collect()
    )
    visible = json.loads(stocked.read(f"{stocked.target.prefix}/{name}/manifests/{WEEK}.json"))
    assert [tuple(row) for row in kept] == [(WEEK, kind, 15, visible["run_id"]) for kind in "ab"]
    assert files_of(stocked, f"{stocked.target.prefix}/{name}") == {file["key"] for file in visible["files"]}
