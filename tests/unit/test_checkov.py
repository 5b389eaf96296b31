"""`make checkov` fails for a finding that is not accepted, for an accepted one that no longer occurs, and for
a report that does not prove that all templates were read.
"""

from __future__ import annotations

import json

import attrs
import pytest

from dev import checkov
from dev.checkov import Accepted, Finding

LOGS = Finding("open", "CKV_AWS_158", "Log groups are encrypted", "AWS::Logs::LogGroup.WatchLogs1A2B")
ENTRY = Accepted("CKV_AWS_158", "", ["AWS::Logs::LogGroup.*"], "a reason", unless_key="encryption.logs")
FILES = {"open": {}, "closed": {"network": {}, "encryption": {"logs": "arn"}}}


def test_an_accepted_finding_is_no_problem():
    assert list(checkov.compare([LOGS], [ENTRY], FILES)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"rule": "CKV_AWS_66"},
        {"resource": "AWS::SQS::Queue.DeadLetters1A2B"},
        {"deployment": "closed"},
    ],
)
def test_a_finding_is_accepted_for_its_rule_its_resource_and_its_file_only(changed):
    new = attrs.evolve(LOGS, **changed)
    assert list(checkov.compare([LOGS, new], [ENTRY], FILES)) == [
        f"{new.deployment}: {new.rule} on {new.resource}: Log groups are encrypted"
    ]


@pytest.mark.parametrize(("key", "deployment"), [("if_key", "open"), ("unless_key", "closed")])
def test_a_finding_is_accepted_where_the_file_has_or_lacks_a_key(key, deployment):
    entry = attrs.evolve(ENTRY, **{"unless_key": "", key: "network"})
    findings = [attrs.evolve(LOGS, deployment=name) for name in FILES]
    assert [line.partition(":")[0] for line in checkov.compare(findings, [entry], FILES)] == [deployment]


def test_an_accepted_finding_that_no_longer_occurs_is_a_problem():
    entry = attrs.evolve(ENTRY, resources=["AWS::Logs::LogGroup.Watch*", "AWS::Logs::LogGroup.Notify*"])
    assert list(checkov.compare([LOGS], [entry], FILES)) == [
        "checkov.toml: CKV_AWS_158 on AWS::Logs::LogGroup.Notify* no longer occurs: remove it"
    ]


def test_the_list_is_short_and_each_reason_is_a_sentence():
    accepted = checkov.read_accepted()
    assert 5 <= len(accepted) <= 15
    assert all(entry.reason.endswith(".") and len(entry.reason.split()) >= 8 for entry in accepted)


SUMMARY = {"failed": 1, "skipped": 0, "parsing_errors": 0, "resource_count": 7}
CHECK = {
    "file_path": "/open/lakeferry-operations.template.json",
    "check_id": LOGS.rule,
    "check_name": LOGS.asks,
    "resource": LOGS.resource,
}


def report(**changed):
    return json.dumps({"summary": {**SUMMARY, **changed}, "results": {"failed_checks": [CHECK]}})


def test_findings_are_read_from_the_report():
    assert checkov.read_report(report(), 7) == [LOGS]


@pytest.mark.parametrize("changed", [{"resource_count": 6}, {"parsing_errors": 1}, {"skipped": 1}])
def test_a_report_about_a_part_of_the_templates_proves_nothing(changed):
    with pytest.raises(checkov.NotChecked, match="of 7 resources"):
        checkov.read_report(report(**changed), 7)


@pytest.mark.parametrize("text", ["", "[]", '{"passed": 0, "failed": 0}'])
def test_another_answer_proves_nothing(text):
    with pytest.raises(checkov.NotChecked, match="no report"):
        checkov.read_report(text, 7)
