"""Ages, due dates and live keys, as operators see them; and that each row of the catalogue of rotation has its test."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rotation_world import NAME, USER, RotationWorld
from staged_secrets import STEPS

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import LakeferryError


@pytest.fixture
def world():
    with RotationWorld() as world:
        yield world


def status(world, name):
    return world.ask(operation="status", secret=name)


def test_r22_a_rotation_that_is_overdue_is_told_in_days(world):
    assert status(world, "kafka")["overdue_days"] == 0.0
    world.clock.sleep(34 * DAY)
    assert status(world, "kafka")["overdue_days"] == pytest.approx(4, abs=0.2)
    world.rotate("kafka")
    assert status(world, "kafka")["overdue_days"] == 0.0


def test_r22_a_rotation_that_keeps_failing_is_told_in_days(world):
    world.clock.sleep(30 * DAY)
    version = world.secrets.start("snowflake")
    for step in STEPS[:2]:
        world.step("snowflake", step, version)
    world.clock.sleep(3 * DAY)
    told = status(world, "snowflake")
    assert told["pending_days"] == pytest.approx(3, abs=0.1)
    assert told["overdue_days"] == pytest.approx(3, abs=0.2)
    assert told["age_days"] == pytest.approx(33, abs=0.2)


def test_r22_where_rotation_is_off_nothing_is_overdue(world):
    world.secrets.all["kafka"].enabled = False
    world.clock.sleep(100 * DAY)
    told = status(world, "kafka")
    assert (told["enabled"], told["overdue_days"]) == (False, 0.0)
    assert told["age_days"] == pytest.approx(100, abs=0.2)


def test_r22_live_keys_and_the_slot_of_the_current_one_are_told(world):
    assert status(world, "snowflake")["current_label"] == "RSA_PUBLIC_KEY"
    world.rotate("snowflake")
    told = status(world, "snowflake")
    assert (told["current_label"], len(told["keys"])) == ("RSA_PUBLIC_KEY_2", 2)
    assert {key["label"] for key in told["keys"]} == {"RSA_PUBLIC_KEY", "RSA_PUBLIC_KEY_2"}
    world.rotate("kafka")
    told = status(world, "kafka")
    assert (told["current_label"], {key["label"] for key in told["keys"]}) == ("AWSCURRENT", {"AWSCURRENT", "AWSPREVIOUS"})
    assert NAME not in json.dumps(told)


def test_r22_a_current_key_that_the_vendor_does_not_have_stands_nowhere(world):
    del world.confluent.world.api_keys[world.fields("kafka")["apiKey"]]
    assert status(world, "kafka")["current_label"] == ""
    world.run_sql(f"ALTER USER {USER} UNSET RSA_PUBLIC_KEY")
    with pytest.raises(LakeferryError) as told:
        status(world, "snowflake")
    assert told.value.row.code == "ROT-LOCKED-OUT"


@pytest.mark.parametrize(
    ("rules", "days"),
    [
        ({"AutomaticallyAfterDays": 30}, 30),
        ({"ScheduleExpression": "rate(10 days)"}, 10),
        ({"ScheduleExpression": "rate(48 hours)"}, 2),
    ],
)
def test_r22_without_a_date_the_schedule_tells_when_a_rotation_is_due(world, rules, days):
    describe = world.secrets._describe

    def invalid_event_time(held):
        told = describe(held) | {"RotationRules": rules}
        return {key: value for key, value in told.items() if key != "NextRotationDate"}

    world.secrets._describe = invalid_event_time
    world.clock.sleep((days + 5) * DAY)
    assert status(world, "kafka")["overdue_days"] == pytest.approx(5, abs=0.2)


def test_a_status_holds_no_secret(world):
    world.rotate("kafka")
    world.rotate("snowflake")
    told = json.dumps([status(world, name) for name in ("kafka", "snowflake")])
    assert world.fields("kafka")["apiSecret"] not in told
    assert "PRIVATE" not in told


def test_each_row_of_the_catalogue_has_a_test():
    named = {
        int(number)
        for file in Path(__file__).parent.glob("test_rotation_*.py")
        for number in re.findall(r"^def test_r(\d+)_", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == set(range(1, 23))
