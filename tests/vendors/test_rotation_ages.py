"""The ages, due dates and live keys that operators see.

Each row of rotation's catalogue of failures has a test.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import LakeferryError
from tests.support.rotation_environment import NAME, USER, RotationEnvironment
from tests.support.staged_secrets import STEPS


@pytest.fixture
def env():
    with RotationEnvironment() as env:
        yield env


def status(env, name):
    return env.ask(operation="status", secret=name)


def test_r22_a_rotation_that_is_overdue_is_reported_in_days(env):
    assert status(env, "kafka")["overdue_days"] == 0.0
    env.clock.sleep(34 * DAY)
    assert status(env, "kafka")["overdue_days"] == pytest.approx(4, abs=0.2)
    env.rotate("kafka")
    assert status(env, "kafka")["overdue_days"] == 0.0


def test_r22_a_rotation_that_keeps_failing_is_reported_in_days(env):
    env.clock.sleep(30 * DAY)
    version = env.secrets.start("snowflake")
    for step in STEPS[:2]:
        env.step("snowflake", step, version)
    env.clock.sleep(3 * DAY)
    result = status(env, "snowflake")
    assert result["pending_days"] == pytest.approx(3, abs=0.1)
    assert result["overdue_days"] == pytest.approx(3, abs=0.2)
    assert result["age_days"] == pytest.approx(33, abs=0.2)


def test_r22_where_rotation_is_off_nothing_is_overdue(env):
    env.secrets.all["kafka"].enabled = False
    env.clock.sleep(100 * DAY)
    result = status(env, "kafka")
    assert (result["enabled"], result["overdue_days"]) == (False, 0.0)
    assert result["age_days"] == pytest.approx(100, abs=0.2)


def test_r22_live_keys_and_the_slot_of_the_current_key_are_reported(env):
    assert status(env, "snowflake")["current_label"] == "RSA_PUBLIC_KEY"
    env.rotate("snowflake")
    result = status(env, "snowflake")
    assert (result["current_label"], len(result["keys"])) == ("RSA_PUBLIC_KEY_2", 2)
    assert {key["label"] for key in result["keys"]} == {"RSA_PUBLIC_KEY", "RSA_PUBLIC_KEY_2"}
    env.rotate("kafka")
    result = status(env, "kafka")
    assert (result["current_label"], {key["label"] for key in result["keys"]}) == (
        "AWSCURRENT",
        {"AWSCURRENT", "AWSPREVIOUS"},
    )
    assert NAME not in json.dumps(result)


def test_r22_a_current_key_that_the_vendor_does_not_have_has_no_slot(env):
    del env.confluent.organization.api_keys[env.fields("kafka")["apiKey"]]
    assert status(env, "kafka")["current_label"] == ""
    env.run_sql(f"ALTER USER {USER} UNSET RSA_PUBLIC_KEY")
    with pytest.raises(LakeferryError) as raised:
        status(env, "snowflake")
    assert raised.value.kind.code == "ROT-LOCKED-OUT"


@pytest.mark.parametrize(
    ("rules", "days"),
    [
        ({"AutomaticallyAfterDays": 30}, 30),
        ({"ScheduleExpression": "rate(10 days)"}, 10),
        ({"ScheduleExpression": "rate(48 hours)"}, 2),
    ],
)
def test_r22_without_a_date_the_schedule_decides_when_a_rotation_is_due(env, rules, days):
    without_date(env, rules)
    env.clock.sleep((days + 5) * DAY)
    assert status(env, "kafka")["overdue_days"] == pytest.approx(5, abs=0.2)


def without_date(env, rules):
    """Make AWS return a rule without the date of the next rotation."""
    describe = env.secrets._describe

    def described(held):
        result = describe(held) | {"RotationRules": rules}
        return {key: value for key, value in result.items() if key != "NextRotationDate"}

    env.secrets._describe = described


def test_a_status_holds_no_secret(env):
    env.rotate("kafka")
    env.rotate("snowflake")
    result = json.dumps([status(env, name) for name in ("kafka", "snowflake")])
    assert env.fields("kafka")["apiSecret"] not in result
    assert "PRIVATE" not in result


def test_each_row_of_the_catalogue_has_a_test():
    named = {
        int(number)
        for file in Path(__file__).parent.glob("test_rotation_*.py")
        for number in re.findall(r"^def test_r(\d+)_", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == set(range(1, 23))
