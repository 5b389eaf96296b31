"""The evidence of `lakeferry verify`: what an answer means, what may be in the evidence, and what the page is."""

from __future__ import annotations

import html.parser
import json

import pytest
from botocore.exceptions import ClientError

from lakeferry.errors import CommandFailed
from lakeferry.health.exports import ExportStatus, LastRun
from lakeferry.health.model import Check, Group, Observation, Result, State
from lakeferry.rehearsal.phases import LAST, PHASES
from lakeferry.verification import exports, report, run, standing
from lakeferry.verification.claims import NOT_ASKED, Claim
from lakeferry.verification.evidence import Answer, Asked, Finding, Outcome
from tests.support import canary

ASKED = Asked("it holds", "a thing", "S3: GetObject")
GROUP = Group("Group")


def raising(error):
    def look():
        raise error

    return look


class TestWhatAnAnswerMeans:
    @pytest.mark.parametrize(
        ("holds", "outcome"), [(True, Outcome.PASSED), (False, Outcome.FAILED), (None, Outcome.UNKNOWN)]
    )
    def test_an_answer_passes_only_if_it_tells_so(self, holds, outcome):
        assert ASKED.look(lambda: Answer(holds, "seen")).outcome is outcome

    @pytest.mark.parametrize(
        "error",
        [
            ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject"),
            CommandFailed("NOT-DEPLOYED", "there is no stack"),
            TimeoutError("late"),
            ValueError("a mistake in a check"),
        ],
    )
    def test_what_cannot_be_seen_is_unknown(self, error):
        finding = ASKED.look(raising(error))
        assert finding.outcome is Outcome.UNKNOWN
        assert finding.seen

    @pytest.mark.parametrize(
        ("state", "outcome"),
        [
            (State.OK, Outcome.PASSED),
            (State.WAITING, Outcome.UNKNOWN),
            (State.ACTION_NEEDED, Outcome.FAILED),
            (State.WRONG, Outcome.FAILED),
            (State.UNKNOWN, Outcome.UNKNOWN),
        ],
    )
    def test_every_state_of_status_has_an_outcome(self, state, outcome):
        assert ASKED.observed(Observation(state, message="m")).outcome is outcome

    @pytest.mark.parametrize(
        ("check", "outcome"),
        [
            (GROUP.ok("a", "m"), Outcome.PASSED),
            (GROUP.warn("a", "m"), Outcome.PASSED),
            (GROUP.warn_unseen("a", "m"), Outcome.UNKNOWN),
            (GROUP.fail("a", "m", "fix"), Outcome.FAILED),
            (GROUP.skip("a", "it doesn't apply"), Outcome.NOT_ASKED),
            (GROUP.skip_unseen("a"), Outcome.UNKNOWN),
            (Check("Group", "a", Result.FAIL, "no answer", is_seen=False), Outcome.UNKNOWN),
        ],
    )
    def test_every_result_of_doctor_has_an_outcome(self, check, outcome):
        assert standing._read_check(check).outcome is outcome


def test_every_claim_of_a_rehearsal_is_asked_or_has_a_reason():
    claimed = {step.claim for phase in (*PHASES, LAST) for step in phase.steps}
    assert claimed == set(Claim)
    asked = {Claim.DEPLOYED, Claim.EVENTS_FLOW, Claim.STATUS, Claim.DOCTOR, Claim.MONITORING}
    asked |= {Claim.SUBSCRIPTIONS, Claim.PUBLISHED, Claim.ROTATION, Claim.REPAIRED}
    assert set(NOT_ASKED) == set(Claim) - asked


class TestTheVerdict:
    def require(self, *outcomes):
        findings = [Finding("it holds", "a thing", "S3", "seen", outcome) for outcome in outcomes]
        run._require_passed(findings, {"findings": []})

    def test_nothing_failed_and_nothing_is_unknown(self):
        self.require(Outcome.PASSED, Outcome.NOT_ASKED)

    @pytest.mark.parametrize(
        ("outcomes", "code"),
        [
            ((Outcome.PASSED, Outcome.UNKNOWN), "VERIFY-UNKNOWN"),
            ((Outcome.UNKNOWN, Outcome.FAILED), "VERIFY-FAILED"),
        ],
    )
    def test_a_failure_and_something_unknown_end_with_code_1(self, outcomes, code):
        with pytest.raises(CommandFailed) as failed:
            self.require(*outcomes)
        assert (failed.value.code, failed.value.exit_code) == (code, 1)
        assert "a thing: it holds: seen" in failed.value.message


class Page(html.parser.HTMLParser):
    """Collects the addresses that a page would load, and its visible text."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]

    def handle_data(self, data):
        self.text.append(data)


def document(*findings):
    return {
        "deployment": "shop-prod", "stage": "prod", "account": "000000000000", "region": "eu-central-1",
        "caller": "arn:aws:iam::000000000000:user/ada", "began": "2026-11-28T06:00:00Z",
        "ended": "2026-11-28T06:01:00Z", "passed": False, "versions": {"Lakeferry": "0.1.0"},
        "templates": {"shop-prod-data": "ab" * 32, "shop-prod-exports": ""},
        "counts": run.count_outcomes(findings), "findings": run.describe(findings),
    }  # fmt: skip


class TestThePage:
    def page(self, *findings):
        return report.render_page(document(*findings))

    def test_it_loads_nothing_and_fits_a_phone(self):
        page = self.page(ASKED.passed("seen"))
        assert Page(page).addresses == []
        assert "url(" not in page
        assert "@import" not in page
        assert "<script" not in page
        assert "width=device-width" in page
        assert "overflow-wrap:anywhere" in page
        assert "<table" not in page

    def test_it_has_every_finding_with_who_was_asked_and_what_was_seen(self):
        findings = [ASKED.found(outcome, f"seen as {outcome}") for outcome in Outcome]
        text = " ".join(Page(self.page(*findings)).text)
        for outcome in Outcome:
            assert f"seen as {outcome}" in text
        assert text.count("asked: S3: GetObject") == len(Outcome)
        assert "1 failed, 1 unknown, 1 passed, 1 not asked" in text
        assert "2026-11-28T06:00:00Z" in text

    def test_what_was_seen_is_text_and_not_markup(self):
        assert "<b>" not in self.page(ASKED.failed("<b>bold</b>"))

    def test_both_files_have_the_time_in_their_names_and_no_secret(self, tmp_path):
        secret = canary.AWS_SECRET
        finding = ASKED.look(raising(RuntimeError(f"aws_secret_access_key={secret}")))
        data, page = report.write(document(finding), tmp_path / "new" / "verify-prod-20261128T060000Z")
        assert json.loads(data.read_text())["findings"][0]["outcome"] == "unknown"
        assert secret not in data.read_text() + page.read_text()


RUN = LastRun("jr_1", 0.0, 60.0, "SUCCEEDED", record="published")
WAITING = Observation(State.WAITING, message="the first scheduled run comes at 2026-11-30 05:00 UTC")
LATE = Observation(State.WRONG, 9.0, "9 hours late")


@pytest.mark.parametrize(
    ("last", "observations", "outcomes", "words"),
    [
        (RUN, (), ["passed"], "run jr_1: published"),
        (RUN, (WAITING,), ["passed"], "comes at 2026-11-30"),
        (RUN, (LATE,), ["failed"], "9 hours late"),
        (RUN, (WAITING, LATE), ["failed"], "9 hours late"),
        (None, (WAITING,), ["unknown"], "comes at 2026-11-30"),
        (None, (LATE,), ["failed"], "9 hours late"),
        (None, (), ["unknown"], "no run yet"),
    ],
)
def test_before_its_first_scheduled_run_an_export_that_has_run_is_not_late(
    last, observations, outcomes, words
):
    status = ExportStatus("weekly_sales", last, None, "UTC", observations)
    findings = exports.judge_runs(status)
    assert [str(finding.outcome) for finding in findings] == outcomes
    assert words in findings[0].seen
