"""Every form of statement that the custom resources send, in the order of a deployment and back, by a role of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from snowflake_kit import Client, new_key, sql_key

from simulators.snowflake.server import Snowflake

DATA = Path(__file__).resolve().parents[2] / "data" / "snowflake"
VALUES = {"{arn}": "arn:aws:iam::000000000000:role/reader", "{other}": sql_key(new_key("two"))}


def lines(name, key):
    """Of one of the files: each line is a statement."""
    text = (DATA / f"{name}.sql").read_text()
    for mark, value in (VALUES | {"{key}": sql_key(key)}).items():
        text = text.replace(mark, value)
    return text.strip().splitlines()


@pytest.fixture
def deployer():
    with Snowflake(seed=7) as snowflake:
        admin = Client(snowflake)
        for _ in range(2):
            for statement in lines("prepare", new_key()):
                admin.run(statement)
        yield Client(snowflake, "LAKEFERRY", new_key(), "LAKEFERRY", "LAKEFERRY")


def test_a_deployment_and_its_end(deployer):
    before = deployer.snowflake.objects()
    for statement in lines("deploy", new_key("one")):
        deployer.run(statement)
    user = Client(deployer.snowflake, "U", new_key("one"), "PUBLIC")
    assert user.one("SELECT CURRENT_USER() AS RESULT") == "U"
    assert deployer.result("SELECT SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG('LDB')")["allowedNamespaces"] == [
        "lkc-1",
        "lkc-2",
        "lkc-4",
    ]
    for statement in lines("destroy", new_key()):
        deployer.run(statement)
    assert deployer.snowflake.objects() == before
    for statement in lines("destroy", new_key()):
        assert deployer.post(statement).json()["code"] in ("090001", "002003")
