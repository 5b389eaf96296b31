"""`lakeferry verify --assumptions` against the stand-ins: the list says of each what it really answers."""

from __future__ import annotations

import re

import attrs
import pytest

from lakeferry.verification import assumptions
from lakeferry.verification.assumptions import CALLS, load_assumptions
from lakeferry.verification.evidence import Outcome

BUCKET = {"Type": "AWS::S3::Bucket"}


def test_every_assumption_has_a_call_and_a_source():
    listed = load_assumptions()
    assert [assumption.id for assumption in listed] == list(CALLS)
    for assumption in listed:
        assert all(attrs.astuple(assumption))
        assert re.match("https://docs|https://iceberg", assumption.source)


def check(ctx, listed):
    return {finding.about: finding for finding in assumptions.check_assumptions(ctx, listed)}


@pytest.mark.slow
def test_the_stand_ins_answer_as_the_list_says(deployed):
    found = check(deployed.ctx, load_assumptions())
    others = {name: finding.seen for name, finding in found.items() if finding.outcome is not Outcome.PASSED}
    # The deployment of these tests has no bucket of exports.
    assert others == {
        "s3-missing-object": "NOT-DEPLOYED  stack ferry1-test-data has no output LakeBucketName"
    }


def test_another_answer_is_shown_beside_that_of_the_stand_in(deployed):
    (listed,) = [entry for entry in load_assumptions() if entry.id == "role-missing"]
    finding = check(deployed.ctx, [attrs.evolve(listed, stand_in="Another")])["role-missing"]
    assert finding.outcome is Outcome.FAILED
    assert finding.seen == "live: NoSuchEntity; the simulator: Another"
