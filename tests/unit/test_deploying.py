"""Progress and failure causes of a CloudFormation deployment, from recorded stack events."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from pathlib import Path

import pytest

from lakeferry import errors
from lakeferry.deploy import failure_causes
from lakeferry.deploy.progress import Progress
from lakeferry.deployment.stacks import Event, parse_event
from lakeferry.plan.durations import Phase

STACK = "lakeferry-dev-confluent"
STACKS = ["lakeferry-dev-data", STACK]
RECORDED = Path(__file__).resolve().parents[1] / "data" / "operator" / "failed_update.json"
_ids = itertools.count(1)


@pytest.fixture
def recorded():
    """Return recorded events, the oldest first.

    Reasons have Lambda's additions, and no paths of one machine.
    """
    result = json.loads(RECORDED.read_text())
    return [
        parse_event({**stack_event, "Timestamp": datetime.fromisoformat(stack_event["Timestamp"])})
        for stack_event in reversed(result)
    ]


def event(logical_id, status, at, reason="", type="Custom::LakeferryKafkaCluster"):
    of_stack = logical_id == STACK
    return Event(
        id=str(next(_ids)),
        stack=STACK,
        stack_id="arn",
        logical_id=logical_id,
        physical_id="arn" if of_stack else "",
        type="AWS::CloudFormation::Stack" if of_stack else type,
        status=status,
        reason=reason,
        at=at,
    )


class Watched:
    """A progress with a manual clock."""

    def __init__(self):
        self.lines = []
        self.result = []
        self.at = 0.0
        phases = {STACK: Phase(STACK, 11, 33, 113.0)}
        self.progress = Progress(STACKS, phases, self.lines.append, self.result.append, lambda: self.at)

    def feed(self, *events):
        for stack_event in events:
            self.at = max(self.at, stack_event.at)
            self.progress.feed([stack_event])
        self.progress.tick()

    def wait(self, seconds):
        self.at += seconds
        self.progress.tick()


def test_a_stack_has_a_line_with_its_usual_time_and_one_with_what_it_took():
    watched = Watched()
    watched.feed(event(STACK, "CREATE_IN_PROGRESS", 0), event(STACK, "CREATE_COMPLETE", 192))
    assert watched.lines == [
        f"[2/2] {STACK} … (estimated 11–33 min, last time 1m53s)",
        f"[2/2] {STACK} created, 3m12s",
    ]
    assert watched.progress.under_way == []


def test_a_change_set_is_not_the_start_of_the_stack():
    watched = Watched()
    watched.feed(event(STACK, "REVIEW_IN_PROGRESS", 0), event(STACK, "CREATE_IN_PROGRESS", 9))
    assert watched.lines == [f"[2/2] {STACK} … (estimated 11–33 min, last time 1m53s)"]


def test_a_slow_resource_has_a_line_at_its_start_and_at_its_end():
    watched = Watched()
    watched.feed(
        event(STACK, "CREATE_IN_PROGRESS", 0),
        event("KafkaCluster", "CREATE_IN_PROGRESS", 5),
        event("KafkaCluster", "CREATE_IN_PROGRESS", 6),
        event("KafkaCluster", "CREATE_COMPLETE", 197),
    )
    assert [line.strip() for line in watched.lines[1:]] == [
        "kafka cluster KafkaCluster … (estimated 2–5 min)",
        "kafka cluster KafkaCluster done in 3m12s",
    ]


def test_a_fast_resource_is_only_counted():
    watched = Watched()
    role = {"type": "AWS::IAM::Role"}
    watched.feed(
        event(STACK, "CREATE_IN_PROGRESS", 0),
        event("R", "CREATE_IN_PROGRESS", 1, **role),
        event("R", "CREATE_COMPLETE", 99, **role),
    )
    watched.wait(1)
    assert len(watched.lines) == 1
    assert watched.result[-1] == f"[2/2] {STACK} 1m40s, 1 done: finishing"


def test_silence_is_reported_after_five_and_after_ten_minutes():
    watched = Watched()
    watched.feed(event(STACK, "CREATE_IN_PROGRESS", 0), event("KafkaCluster", "CREATE_IN_PROGRESS", 0))
    watched.wait(299)
    assert len(watched.lines) == 2
    for _ in range(3):
        watched.wait(1)
    quiet = [line for line in watched.lines if "Nothing has changed" in line]
    assert len(quiet) == 1
    assert "5m00s. In progress: kafka cluster KafkaCluster for 5m00s (estimated 2–5 min)" in quiet[0]
    watched.wait(300)
    assert len([line for line in watched.lines if "10m00s" in line]) == 1


def test_silence_after_the_end_is_not_reported():
    watched = Watched()
    watched.feed(event(STACK, "CREATE_IN_PROGRESS", 0), event(STACK, "CREATE_COMPLETE", 1))
    watched.wait(3000)
    assert len(watched.lines) == 2


def test_the_progress_of_a_recorded_failed_update(recorded):
    watched = Watched()
    watched.feed(*recorded)
    assert [line.strip() for line in watched.lines] == [
        f"[2/2] {STACK} … (estimated 11–33 min, last time 1m53s)",
        "kafka cluster KafkaCluster … (estimated 2–5 min)",
        "kafka cluster KafkaCluster done in 0s",
        "topic RehearsalRefusedTopic UPDATE_FAILED",
        f"[2/2] {STACK} failed after 26s; CloudFormation rolls it back",
        f"[2/2] {STACK} rolled back to its previous state, 37s",
    ]


def test_the_cause_of_a_recorded_failure_is_our_error(recorded):
    cause = failure_causes.find(recorded)
    assert (cause.code, cause.where) == ("CFL-INVALID", f"topic RehearsalRefusedTopic in {STACK}")
    assert "'compression.type' is read-only" in cause.what
    assert cause.why == "A value is outside of what Confluent allows."
    assert cause.fix == "Correct the value that the message names, and deploy again."
    assert "framework.js" not in str(cause) + cause.fix


AWS_SAYS = (
    'Resource handler returned message: "lakeferry-dev already exists" (RequestToken: 5c1f-22, '
    "HandlerErrorCode: AlreadyExists)"
)
OURS = (
    "Received response status [FAILED] from custom resource. Message returned: Error: CFL-QUOTA  creating "
    "kafka_cluster KafkaCluster: HTTP 402. What to do: Have it raised.\n\nLogs: /aws/lambda/x\n\n    at y "
    "(RequestId: 0e12-99)"
)


def test_the_first_failed_resource_is_the_cause():
    found = failure_causes.find(
        [
            event("Later", "CREATE_FAILED", 9, AWS_SAYS, type="AWS::Glue::Job"),
            event("Cancelled", "CREATE_FAILED", 1, "Resource creation cancelled", type="AWS::IAM::Role"),
            event("KafkaCluster", "CREATE_FAILED", 2, OURS),
            event(
                STACK,
                "ROLLBACK_IN_PROGRESS",
                3,
                "The following resource(s) failed to create: [KafkaCluster].",
            ),
        ]
    )
    assert (found.code, found.what) == ("CFL-QUOTA", "creating kafka_cluster KafkaCluster: HTTP 402")
    assert (found.why, found.fix) == (
        errors.find_entry("CFL-QUOTA").cause,
        errors.find_entry("CFL-QUOTA").remedy,
    )


def test_an_error_of_aws_has_its_message_and_our_advice():
    found = failure_causes.find(
        [event("DailyTradesJob", "CREATE_FAILED", 1, AWS_SAYS, type="AWS::Glue::Job")]
    )
    assert found.code == ""
    assert "lakeferry-dev already exists" in found.what
    assert "lakeferry inventory" in found.fix


def test_without_a_failed_resource_there_is_no_cause():
    assert (
        failure_causes.find([event(STACK, "UPDATE_FAILED", 1, "why"), event("A", "CREATE_COMPLETE", 1)])
        is None
    )
    assert failure_causes.find([event("A", "CREATE_FAILED", 1, "Resource update cancelled")]) is None


def test_a_text_that_resembles_a_code_of_ours_is_ignored():
    found = failure_causes.find([event("A", "CREATE_FAILED", 1, "NOT-OURS  x. What to do: z.")])
    assert (found.code, found.what.partition("  ")[0]) == ("", "NOT-OURS")


def test_a_secret_in_a_reason_is_redacted():
    secret = "cflt" + "A1b2C3d4" * 8
    assert secret not in str(failure_causes.find([event("A", "CREATE_FAILED", 1, f"refused {secret}")]))


@pytest.mark.parametrize("status", sorted(failure_causes.STATES))
def test_every_status_has_a_description(status):
    assert failure_causes.describe_state("s", status)[0].islower()


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "CREATE_IN_PROGRESS"])
def test_a_stack_in_progress_is_reported(status):
    assert "still working" in failure_causes.describe_state("s", status)
