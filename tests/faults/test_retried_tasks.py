"""A task that fails after its work has had its effect, and that Spark then runs again."""

from __future__ import annotations

import json
import os

import job_process
import pytest
from lake import AS_OF, WEEK, column, contract
from things import PEOPLE, TOPIC, events, files_of, uploads_of

#: Each task completes an object of its own.
PARTS = contract(column("id"), column("who", personal=PEOPLE), column("text"), delivery={"files": "parts"})
#: The answer to the task's last call: what it asked for is done, and a refusal isn't asked again by the client.
REFUSED_TOO_LATE = {
    "fault": "effect_then_error",
    "method": "POST",
    "path": "/lake-*/*/data/*.csv",
    "query": {"uploadId": "*"},
    "shape": "s3",
    "status": 403,
}


@pytest.fixture(scope="module")
def stocked(lakes):
    lake = lakes()
    lake.commit(TOPIC, *events(30), at=AS_OF)
    return lake


def test_a_task_that_is_tried_again_delivers_its_rows_once(stocked, nemesis):
    undisturbed = stocked.export(PARTS).csv()
    nemesis.rule(REFUSED_TOO_LATE)
    options = os.environ["PYSPARK_SUBMIT_ARGS"].replace("local[2]", "local[2,4]")
    assert "local[2,4]" in options
    job = job_process.start(
        stocked, stocked.write_contract(PARTS), "--prefix", "retried", environment={"PYSPARK_SUBMIT_ARGS": options}
    )
    while not job.ended():
        pass
    assert nemesis.state()["rules"][0]["hits"] == 1
    assert job.process.returncode == 0, job.output()
    manifest = json.loads(stocked.read(f"retried/things/manifests/{WEEK}.json"))
    (data,) = [file for file in manifest["files"] if file["role"] == "data"]
    assert (manifest["generation"], data["rows"]) == (1, 30)
    assert stocked.read(data["key"]) == undisturbed
    assert files_of(stocked, "retried") == {file["key"] for file in manifest["files"]}
    assert uploads_of(stocked, "retried") == set()
