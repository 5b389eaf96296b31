"""A task that fails after its effect, and that Spark runs again."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import job_process
from tests.support.lake import AS_OF, WEEK
from tests.support.things import LINES, LONG_TEXT, TOPIC, events, files_of, uploads_of

#: An error in response to the task's last call, the upload of its part (the first part is the driver's). The
#: part is uploaded, and the client doesn't retry such an error.
REFUSED_TOO_LATE = {
    "fault": "effect_then_error",
    "method": "PUT",
    "path": "/lake-*/*/data/*.csv",
    "query": {"partNumber": "2"},
    "shape": "s3",
    "status": 403,
}


@pytest.fixture(scope="module")
def stocked(lakes):
    lake = lakes()
    lake.commit(TOPIC, *events(14, text=LONG_TEXT), at=AS_OF)
    return lake


@pytest.mark.slow
def test_a_retried_task_delivers_its_rows_once(stocked, faults):
    undisturbed = stocked.export(LINES).csv()
    faults.rule(REFUSED_TOO_LATE)
    # A cluster runs a failed task again; a local master does so only if told how often.
    options = os.environ["PYSPARK_SUBMIT_ARGS"].replace("local[2]", "local[2,4]")
    job = job_process.start(
        stocked,
        stocked.write_contract(LINES),
        "--prefix",
        "retried",
        environment={"PYSPARK_SUBMIT_ARGS": options},
    )
    while not job.ended():
        pass
    assert faults.state()["rules"][0]["hits"] == 1
    assert job.process.returncode == 0, job.output()
    manifest = json.loads(stocked.read(f"retried/things/manifests/{WEEK}.json"))
    (data,) = [file for file in manifest["files"] if file["role"] == "data"]
    assert (manifest["generation"], data["rows"]) == (1, 14)
    assert stocked.read(data["key"]) == undisturbed
    assert files_of(stocked, "retried") == {file["key"] for file in manifest["files"]}
    assert uploads_of(stocked, "retried") == set()
