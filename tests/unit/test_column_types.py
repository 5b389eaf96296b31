"""The schema of a topic that Flink makes is derived from the statement's SQL, or the reason says why not.

simulators/tests/confluent/test_derived_schemas.py compares what is derived with what real Flink registers.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from config.deployments import flink_origins
from config.deployments.lineage import Unknown
from config.deployments.sources import Sources
from config.exports.check import NOT_JUDGED
from config.project import PROJECT

CREATE = "CREATE TABLE made WITH ('value.fields-include' = 'all') AS "


@pytest.fixture
def project(tmp_path):
    """A project with the shipped topics, one topic more, and no statements."""
    shutil.copytree(PROJECT / "topics", tmp_path / "topics")
    fields = [
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["on", "off"]}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "either", "type": ["int", "string"]},
        {"name": "owner", "type": ["null", {"type": "record", "name": "Owner", "fields": [OWNER]}]},
    ]
    things = {"type": "record", "name": "Thing", "fields": fields}
    (tmp_path / "topics" / "things.avsc").write_text(json.dumps(things))
    return tmp_path


OWNER = {"name": "code", "type": "int"}


def derive(project: Path, **statements: str):
    for name, create in statements.items():
        folder = project / "flink" / name
        folder.mkdir(parents=True)
        (folder / "create.sql").write_text(create)
        (folder / "undo.sql").write_text(f"DROP TABLE IF EXISTS {name}")
    return flink_origins.derive_schema("made", Sources(project, NOT_JUDGED))


def test_a_copied_field_has_the_type_that_flink_writes(project):
    schema = derive(project, made=CREATE + "SELECT state, id, `at`, owner.code, owner FROM things")
    kinds = {name: field.kind for name, field in schema.fields.items()}
    assert kinds == {
        "state": "string",
        "id": "string",
        "at": "long",
        "code": "int",
        "owner": "record",
        "owner.code": "int",
    }
    nullable = {field.name: field.type.nullable for field in schema.type.fields}
    assert nullable == {"state": False, "id": False, "at": False, "code": True, "owner": True}


def test_a_column_of_the_optional_side_of_a_join_may_be_null(project):
    query = "SELECT t.state, s.side FROM things t LEFT JOIN stock_trades s ON t.id = s.symbol"
    schema = derive(project, made=CREATE + query)
    assert schema.type.fields[1].type.nullable


def test_the_list_of_a_create_table_orders_the_columns(project):
    create = CREATE.replace("made", "made (side, total)")
    schema = derive(project, made=create + "SELECT quantity * price AS total, side FROM stock_trades")
    assert [(name, field.kind) for name, field in schema.fields.items()] == [
        ("side", "string"),
        ("total", "int"),
    ]


def test_types_are_followed_through_a_topic_without_a_file(project):
    first = CREATE.replace("made", "first") + "SELECT customer AS c, order_lines AS l FROM store_orders"
    second = CREATE + "SELECT c.userid AS who, p.net FROM first CROSS JOIN UNNEST(l) AS p(i, k, n, u, net)"
    schema = derive(project, first=first, made=second)
    assert {name: field.kind for name, field in schema.fields.items()} == {"who": "string", "net": "double"}
    assert "who" in schema.personal


@pytest.mark.parametrize(
    ("create", "reason"),
    [
        (CREATE + "SELECT TURN(side) AS s FROM stock_trades", "the type of s isn't known: TURN computes it"),
        (CREATE + "SELECT quantity / 2 AS half FROM stock_trades", "the type of half isn't known: DIV"),
        (CREATE + "SELECT quantity + 1.5 AS more FROM stock_trades", "a number with a point"),
        (
            CREATE + "SELECT CAST(price AS DECIMAL(9, 2)) * quantity AS x FROM stock_trades",
            "Flink's type of the result depends on its release",
        ),
        (
            CREATE + "SELECT CASE WHEN price > 1 THEN price ELSE side END AS x FROM stock_trades",
            "its branches have different types",
        ),
        (CREATE + "SELECT either AS x FROM things", "Flink has no type for a union of several types"),
        (CREATE + "SELECT CAST(price AS INTERVAL DAY) AS x FROM stock_trades", "the type of x isn't known"),
        (CREATE + "SELECT customer.shoe AS x FROM store_orders", "there is no field shoe"),
        (CREATE + "SELECT colour AS x FROM store_orders", "colour can't be found in its sources"),
        (CREATE + "SELECT a AS x FROM nowhere", "no statement and no file shows the schema of nowhere"),
        (CREATE + "SELECT x FROM made", "the schema of made isn't known"),
        (CREATE + "SELECT * FROM nowhere", "the columns of a * in its query can't be known"),
        (
            CREATE + "SELECT side AS x FROM stock_trades UNION ALL SELECT price FROM stock_trades",
            "the branches of its UNION have different types",
        ),
        (
            CREATE + "SELECT l.a AS x FROM store_orders CROSS JOIN UNNEST(order_lines) AS l(a, b)",
            "the names after UNNEST don't match",
        ),
        (
            CREATE.replace("made", "made (x, y)") + "SELECT side FROM stock_trades",
            "its list of columns doesn't match its query",
        ),
        ("CREATE TABLE made (x STRING)", "it isn't one CREATE TABLE … AS or INSERT INTO with a query"),
        ("INSERT INTO made (x) SELECT side FROM stock_trades", "is not the only statement that creates and"),
        (
            "CREATE TABLE made DISTRIBUTED BY HASH(side) INTO 2 BUCKETS AS SELECT side FROM stock_trades",
            "has key columns, which the values lack without 'value.fields-include' = 'all'",
        ),
    ],
)
def test_a_type_that_is_not_certain_is_unknown(project, create, reason):
    with pytest.raises(Unknown) as unknown:
        derive(project, made=create)
    assert reason in str(unknown.value)
    assert "project/flink/made/create.sql" in str(unknown.value)


def test_a_topic_with_two_writers_is_unknown(project):
    more = "INSERT INTO made (side) SELECT symbol FROM stock_trades"
    with pytest.raises(Unknown, match="is not the only statement"):
        derive(project, made=CREATE + "SELECT side FROM stock_trades", more=more)


def test_a_source_with_a_broken_file_is_unknown(project):
    (project / "topics" / "things.avsc").write_text("{")
    with pytest.raises(Unknown, match="the schema of things isn't known"):
        derive(project, made=CREATE + "SELECT state FROM things")
