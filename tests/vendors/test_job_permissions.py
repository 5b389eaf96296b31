"""The exports need all permissions in docs/reference/iam.md, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dev.docs.permissions import GRANTS

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("permission_runs.py")
#: What only a failed run needs, one that finds files of a dead run, or one whose snapshot expires.
CLEANING = {"s3:DeleteObject", "s3:AbortMultipartUpload"}
EXPIRED = "ListTables"
NEEDED = [
    number for number, grant in enumerate(GRANTS) if grant.action not in CLEANING and grant.purpose != EXPIRED
]
#: Actions that are missed only after the file is published, which takes a while.
LATE = [number for number in NEEDED if GRANTS[number].purpose == "KeepAggregates"]
EARLY = [number for number in NEEDED if number not in LATE]


def named(number):
    return f"{GRANTS[number].purpose}-{GRANTS[number].action}"


def outcomes(numbers):
    command = [sys.executable, str(PROGRAM), *map(str, numbers)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=PROGRAM.parents[2], timeout=3000)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def found():
    return outcomes(EARLY)


def test_the_policy_is_enough(found):
    assert found["none"] == {"weekly_sales": "published", "daily_trades": "published"}


@pytest.mark.parametrize("number", EARLY, ids=named)
def test_without_one_action_nothing_is_published(found, number):
    wanted = "EXP-KEY-UNREADABLE" if GRANTS[number].purpose == "ReadKey" else "EXP-AWS-DENIED"
    assert set(found[str(number)].values()) == {wanted}


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_without_one_action_no_aggregate_is_kept():
    found = outcomes(LATE)
    assert {number: set(found[str(number)].values()) for number in LATE} == {
        number: {"EXP-AWS-DENIED"} for number in LATE
    }
