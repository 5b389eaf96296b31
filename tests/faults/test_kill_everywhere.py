"""SIGKILL of the real process after each of its calls to AWS, with one process per call."""

from __future__ import annotations

import json

import pytest

from tests.support import job_process
from tests.support.lake import AS_OF, WEEK
from tests.support.things import LINES, LONG_TEXT, TOPIC, counts, events, files_of, uploads_of

LONG = ("things", LINES, [*events(14, text=LONG_TEXT)])
KEPT = ("counts", counts(), [*events(30)])


@pytest.mark.deep
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize(("name", "contract", "week"), [LONG, KEPT], ids=["parts", "aggregate"])
def test_wherever_a_run_is_killed_the_next_one_publishes_once(lake, faults, name, contract, week):
    lake.commit(TOPIC, *week, at=AS_OF)
    expected = lake.export(contract).csv()
    path = lake.write_contract(contract)
    calls = 0
    while killed_after(lake, faults, calls + 1, path, f"killed-{calls + 1}"):
        calls += 1
        prefix = f"killed-{calls}"
        lake.export(contract, "--prefix", prefix)
        manifest = json.loads(lake.read(f"{prefix}/{name}/manifests/{WEEK}.json"))
        assert manifest["generation"] == 1, f"call {calls}"
        assert files_of(lake, prefix) == {file["key"] for file in manifest["files"]}, f"call {calls}"
        assert uploads_of(lake, prefix) == set(), f"call {calls}"
        assert lake.read(manifest["files"][0]["key"]) == expected, f"call {calls}"
        records = [json.loads(lake.read(key)) for key in lake.keys(f"{prefix}/{name}/runs/")]
        assert {record["state"] for record in records} <= {"done", "failed"}, f"call {calls}"
    assert calls > 25


def killed_after(lake, faults, calls, path, prefix) -> bool:
    """Kill the job after a number of calls. Return False if it ends earlier, because it makes fewer calls."""
    faults.rule({"fault": "hang", "nth": calls})
    job = job_process.start(lake, path, "--prefix", prefix)
    while not faults.state()["held"]:
        if job.ended():
            assert job.process.returncode == 0, job.output()
            return False
    job.kill()
    faults.clear()
    return True
