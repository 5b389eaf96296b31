"""One rehearsal by the command that users call, its results, and the transcript that the tutorial shows.

After a change that is meant: `UPDATE_TRANSCRIPT=1 make test-slow`, then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from lakeferry.errors import CommandFailed
from lakeferry.rehearsal import report, run
from lakeferry.rehearsal.harness import Check, CheckFailed, NotApplicable, Phase, require
from tests.support.lake import ROOT
from tests.support.promises import promised

PAGE = ROOT / "docs" / "tutorial" / "in-your-own-accounts.md"
BEGIN = "<!-- transcript -->\n"
END = "<!-- end of transcript -->\n"
#: What the document has with `--faults` only.
FAULTS = {"seeds", "hits", "failed_first", "steps", "runs"}
#: The commands of the transcript: as they were called, and as a user types them.
SHOWN = {
    "init": "init",
    "secrets set confluent": "secrets set confluent",
    "secrets set snowflake": "secrets set snowflake --generate",
    "doctor": "doctor",
    "plan": "plan",
    "deploy --yes": "deploy",
    "status": "status",
}
#: Without one of these, a rehearsal has not shown that a deployment works.
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
    "init, secrets, doctor and plan lead to a deployment",
    "status looks at every hop of every table",
    "logs finds what a name wrote",
    "a key is rotated and revoked by hand",
    "an interrupted rotate claims no result",
    "what somebody deleted is reported and created again",
    "permissions that grow are shown before a deployment",
    "an interrupted deploy stops nothing in AWS, and the next one does the rest",
    "nothing is left over at any vendor",
)
#: What differs from run to run, and what stands for it on the page.
_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? s\b"), "… s"),
    (re.compile(r"\b(\d+m)?\d+s\b"), "…"),
    (re.compile(r"\b(env|lkc|lfcp|sa|cspi|tci|u|lsrc|lcc)-[a-z0-9]{4,}\b"), r"\1-…"),
    (re.compile(r"127\.0\.0\.1:\d+"), "…"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b"), "…"),
    (re.compile(r"(:secret:\S+)-[0-9a-f]{6}\b"), r"\1-…"),
    (re.compile(r"SHA256:[A-Za-z0-9+/]{43}="), "SHA256:…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?( UTC|Z)?"), "…"),
    (re.compile(r"\b[A-Z0-9]{16}\b"), "…"),
    (re.compile(r"\b\d+\.\d+ (days|hours)"), "…"),
    (re.compile(r"s3://\S+\.metadata\.json"), "s3://…"),
    (re.compile(r"(bucket[0-9a-f]{8})-[0-9a-f]{13}"), r"\1-…"),
    (re.compile(r"(Java: 17|uv:|Python: 3\.11|Node: \d+).*"), r"\1 …"),
    (re.compile(r"concurrent executions: \d+"), "concurrent executions: …"),
    (re.compile(r" {2,}"), "  "),
)
#: How far it is, which depends on the machine.
_PROGRESS = re.compile(r"^(\[\d/\d\].*| {8}.*)\n", re.MULTILINE)


def steady(text: str) -> str:
    text = _PROGRESS.sub("", text)
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def transcript(printed):
    """What `deploy` prints before it begins is what `plan` prints."""
    blocks = []
    for words, typed in SHOWN.items():
        text = printed[words]
        if words.startswith("deploy"):
            text = text[text.index("Deployed ") :]
        blocks.append(f"```console\n$ lakeferry {typed}\n{steady(text)}\n```\n")
    return "\n" + "\n".join(blocks) + "\n"


def written_by(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_rehearsal_removes_only_what_an_earlier_one_wrote(tmp_path):
    written_by(tmp_path, "cdk.log", "project/cdk.json", "environment.sh", "notes.txt", "mine/plan.md")
    run.remove_earlier(tmp_path)
    assert files_in(tmp_path) == ["mine/plan.md", "notes.txt"]
    run.remove_earlier(tmp_path)
    run.remove_earlier(tmp_path / "new")
    assert files_in(tmp_path) == ["mine/plan.md", "notes.txt"]


def test_a_folder_with_a_project_that_no_rehearsal_made_is_refused(tmp_path):
    written_by(tmp_path, "project/thesis.tex", "deployments/dev.toml")
    with pytest.raises(CommandFailed) as refused:
        run.remove_earlier(tmp_path)
    assert refused.value.code == "OUT-FOLDER"
    assert "has project, deployments, which a rehearsal would replace" in refused.value.message
    assert files_in(tmp_path) == ["deployments/dev.toml", "project/thesis.tex"]


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    out = tmp_path_factory.mktemp("rehearsal")
    command = [sys.executable, "-m", "lakeferry", "rehearse", "--example", "--json", "--out", str(out)]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=2400, env={**os.environ, "NO_COLOR": "1"}
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    return json.loads(answer.stdout), out, answer.stderr


@pytest.mark.slow
@pytest.mark.timeout(2700)
class TestRehearsal:
    def test_every_check_passes(self, rehearsed):
        document, _, _ = rehearsed
        claims = [check["claim"] for phase in document["phases"] for check in phase["checks"]]
        assert document["passed"]
        assert not any(phase["failure"] or phase["not_applicable"] for phase in document["phases"])
        assert not set(CLAIMS) - set(claims)

    def test_numbers_are_those_of_something_real(self, rehearsed):
        document, _, _ = rehearsed
        numbers = {
            check["claim"]: check["numbers"] for phase in document["phases"] for check in phase["checks"]
        }
        assert numbers["stock_trades flows into an Iceberg table"]["records"] > 100
        assert numbers["the same question gives the same rows everywhere"]["rows"] > 100
        assert numbers["the schedule fires, and the job publishes the right rows"]["rows"] > 1
        assert numbers["every secret rotates while a reader reads"]["secrets"] >= 8
        assert sum(numbers["the real CDK deploys the unmodified templates"].values()) > 200

    def test_it_leaves_a_page_and_a_document(self, rehearsed):
        document, out, result = rehearsed
        page = (out / "rehearsal.html").read_text(encoding="utf-8")
        written = json.loads((out / "rehearsal.json").read_text(encoding="utf-8"))
        assert written["phases"] == document["phases"]
        assert all(claim.replace("'", "&#x27;") in page for claim in CLAIMS)
        assert "http" not in page
        assert "<script" not in page
        assert document["not_covered"] == list(report.NOT_COVERED)
        assert "✓ deploy " in result

    def test_the_document_is_as_promised(self, rehearsed):
        assert set(rehearsed[0]) == promised("rehearse") - FAULTS

    def test_the_tutorial_shows_what_the_commands_print(self, rehearsed):
        printed = json.loads((rehearsed[1] / "rehearsal" / "printed.json").read_text(encoding="utf-8"))
        assert " to create" in printed["plan"].splitlines()[0], "the plan is that of the first deployment"
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        shown, _, after = rest.partition(END)
        if os.environ.get("UPDATE_TRANSCRIPT"):
            shown = transcript(printed)
            PAGE.write_text(before + BEGIN + shown + END + after, encoding="utf-8")
        assert shown == transcript(printed)


def test_what_varies_is_distinguished_from_what_does_not():
    assert steady("made lkc-abc123 in 12.3 s") == "made lkc-… in … s"
    assert steady("2 tables") == "2 tables"


def test_a_claim_that_does_not_hold_fails():
    with pytest.raises(CheckFailed, match="2 rows"):
        require(1 == 2, "2 rows")


def test_the_page_of_a_failure_says_what_failed(tmp_path):
    absent = [NotApplicable("a mail", "no <export>")]
    phases = [
        Phase("one", 1.0, [Check("a claim", "seen <b>")], "", absent),
        Phase("two", 2.0, [], "it <broke>"),
    ]
    document = report.write(phases, 3.0, tmp_path)
    page = (tmp_path / "rehearsal.html").read_text(encoding="utf-8")
    assert not document["passed"]
    assert "two: it &lt;broke&gt;" in page
    assert "seen &lt;b&gt;" in page
    assert "no &lt;export&gt;" in page
    assert document["phases"][0]["not_applicable"] == [{"claim": "a mail", "why": "no <export>"}]
