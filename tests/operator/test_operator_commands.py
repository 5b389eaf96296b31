"""`lakeferry inventory` and `lakeferry destroy` as users call them, for the deployment of deployments/dev.toml."""

from __future__ import annotations

import json

import pytest
from leftovers import QUEUE
from promises import promised
from stand_ins import Planter, Stacks
from typer.testing import CliRunner

from lakeferry.__main__ import app


def call(*words):
    answer = CliRunner().invoke(app, [*words])
    return answer.exit_code, json.loads(answer.stdout) if "--json" in words else answer.output


@pytest.mark.usefixtures("dev")
def test_an_inventory_without_left_overs_succeeds():
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["ok"]) == (0, True)
    assert document.keys() == promised("inventory")
    assert {item["verdict"] for item in document["items"]} == {"retained"}


def test_left_overs_are_listed_with_exit_code_1(dev):
    name = Planter(dev).make("snowflake_warehouse", "Warehouse")
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["code"], document["exit_code"]) == (1, "LEFT-OVER", 1)
    assert [item["name"] for item in document["details"]["items"] if item["verdict"] == "orphaned"] == [name]
    code, printed = call("inventory", "--stage", "dev")
    assert (code, printed.count("orphaned: snowflake_warehouse")) == (1, 1)
    assert "orphan" in printed


def test_a_plan_is_one_document_and_changes_nothing(dev):
    code, document = call("destroy", "--stage", "dev", "--plan", "--json")
    assert (code, document.keys()) == (0, promised("destroy"))
    assert [item["kind"] for item in document["to_delete"]] == ["snowflake_warehouse"]
    assert call("inventory", "--stage", "dev", "--json")[0] == 1


@pytest.mark.usefixtures("dev")
@pytest.mark.parametrize("words", [(), ("--confirm", "prod"), ("--json",)])
def test_without_confirmation_nothing_is_destroyed(words):
    code, _ = call("destroy", "--stage", "dev", *words)
    assert code == 2
    assert call("--yes", "destroy", "--stage", "dev", *words)[0] == 2
    assert call("inventory", "--stage", "dev", "--json")[0] == 1


@pytest.mark.usefixtures("dev")
def test_a_destroy_ends_with_an_inventory_without_left_overs():
    code, document = call("destroy", "--stage", "dev", "--confirm", "dev", "--json")
    assert (code, [item["kind"] for item in document["removed"]]) == (0, ["snowflake_warehouse"])
    assert {item["verdict"] for item in document["items"]} == {"retained"}
    assert call("inventory", "--stage", "dev", "--json")[0] == 0


def test_stacks_are_destroyed_the_last_deployed_first(dev):
    stacks = [Stacks(dev).make(part, {"Queue": QUEUE}) for part in ("data", "operations")]
    code, document = call("destroy", "--stage", "dev", "--confirm", "dev", "--json")
    assert (code, document["code"]) == (0, "DONE")
    assert list(document["stacks"]) == stacks[::-1]


@pytest.mark.usefixtures("dev")
def test_an_unreachable_vendor_has_exit_code_1(broken):
    broken("Snowflake", status=401, shape="json", code="390144")
    code, document = call("inventory", "--stage", "dev", "--json")
    assert (code, document["code"]) == (1, "INCOMPLETE")
    assert "Snowflake" in document["message"]
