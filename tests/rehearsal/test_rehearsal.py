"""The whole rehearsal once, by the command that users call; and what it says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from lake import ROOT
from promises import promised

from rehearsal import report, run
from rehearsal.harness import Check, CheckFailed, Phase, require

#: What the document has with `--faults` only.
FAULTS = {"seeds", "hits", "failed_first", "steps", "runs"}
#: The whole of it is the set-up of the first test.
pytestmark = pytest.mark.timeout(2700)
#: What the issue of a rehearsal is: without one of these it has not shown that a deployment works.
CLAIMS = (
    "the real CDK deploys the unmodified templates",
    "stock_trades flows into an Iceberg table",
    "stock_trades_with_totals flows into an Iceberg table",
    "the same question gives the same rows everywhere",
    "Snowflake shows new rows after its refresh",
    "Snowflake's reader can only read",
    "Athena's named queries run",
    "doctor finds nothing wrong",
    "doctor names a broken handshake",
    "the schedule fires, and the job publishes the right rows",
    "a second firing publishes nothing twice",
    "the recipients get a mail",
    "a failed run is reported by mail",
    "every secret rotates while a reader reads",
    "an update changes what the file says and nothing else",
    "a failed change rolls back completely",
    "nothing is left over at any vendor",
)


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    out = tmp_path_factory.mktemp("rehearsal")
    command = [sys.executable, "-m", "lakeferry", "rehearse", "--json", "--out", str(out)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2400, env={**os.environ, "NO_COLOR": "1"})
    assert answer.returncode == 0, answer.stderr[-4000:]
    return json.loads(answer.stdout), out, answer.stderr


def test_every_check_passes(rehearsed):
    document, _, _ = rehearsed
    claims = [check["claim"] for phase in document["phases"] for check in phase["checks"]]
    assert document["passed"]
    assert not any(phase["failure"] for phase in document["phases"])
    assert not set(CLAIMS) - set(claims)
    assert claims.count("nothing is left over at any vendor") == 2


def test_numbers_are_those_of_something_real(rehearsed):
    document, _, _ = rehearsed
    numbers = {check["claim"]: check["numbers"] for phase in document["phases"] for check in phase["checks"]}
    assert numbers["stock_trades flows into an Iceberg table"]["records"] > 100
    assert numbers["the same question gives the same rows everywhere"]["trades"] > 100
    assert numbers["the schedule fires, and the job publishes the right rows"]["rows"] > 1
    assert numbers["every secret rotates while a reader reads"]["secrets"] >= 8
    assert sum(numbers["the real CDK deploys the unmodified templates"].values()) > 200


def test_it_leaves_a_page_and_a_document(rehearsed):
    document, out, result = rehearsed
    page = (out / "rehearsal.html").read_text(encoding="utf-8")
    written = json.loads((out / "rehearsal.json").read_text(encoding="utf-8"))
    assert written["phases"] == document["phases"]
    assert all(claim.replace("'", "&#x27;") in page for claim in CLAIMS)
    assert "http" not in page
    assert "<script" not in page
    assert document["not_covered"] == list(report.NOT_COVERED)
    assert "✓ cdk deploy --all" in result


def test_the_document_is_as_promised(rehearsed):
    assert set(rehearsed[0]) == promised("rehearse") - FAULTS


def test_who_has_looked_around_does_not_wait_for_a_second_deployment():
    kept, whole = ([name for name, _ in run._last_phases(keep=keep)] for keep in (True, False))
    assert kept == ["cdk destroy --all, and the inventory"]
    assert whole == [*kept, "once more: deploy", "once more: destroy, and the inventory"]


def test_a_claim_that_does_not_hold_fails():
    with pytest.raises(CheckFailed, match="2 rows"):
        require(1 == 2, "2 rows")


def test_the_page_of_a_failure_says_what_failed(tmp_path):
    phases = [Phase("one", 1.0, [Check("a claim", "seen <b>")]), Phase("two", 2.0, [], "it <broke>")]
    document = report.write(phases, 3.0, tmp_path)
    page = (tmp_path / "rehearsal.html").read_text(encoding="utf-8")
    assert not document["passed"]
    assert "two: it &lt;broke&gt;" in page
    assert "seen &lt;b&gt;" in page
