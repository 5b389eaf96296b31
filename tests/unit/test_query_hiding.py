"""A query of a stage shows no hidden column, whatever its text, and says what it hides."""

from __future__ import annotations

import duckdb
import pytest

from config.deployments.shown_columns import Shown, Unshown
from lakeferry.errors import CommandFailed
from lakeferry.queries import hiding

COLUMNS = {"trades": ["price", "userid", "$$raw-value"], "orders": ["n", "email"]}
KNOWN = hiding.Hiding(
    {
        "trades": Shown(("price", "later"), {"userid": "it has the tag PII", "$$raw-value": "all"}),
        "orders": Shown(("n",), {"email": "it has the tag PII"}),
        "unknown": Unshown("nobody has said"),
    },
    ["lkc-1"],
    ["aggregates"],
)
SECRET = "ada@example.com"


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    connection.execute('CREATE SCHEMA "lkc-1"; CREATE SCHEMA aggregates')
    for place in ("main", '"lkc-1"'):
        connection.execute(
            f"CREATE TABLE {place}.trades AS "
            f"SELECT 1 AS price, '{SECRET}' AS userid, '{SECRET}' AS \"$$raw-value\""
        )
        connection.execute(f"CREATE TABLE {place}.orders AS SELECT 1 AS n, '{SECRET}' AS email")
    connection.execute("CREATE TABLE aggregates.daily AS SELECT 7 AS n")
    yield connection
    connection.close()


def run(engine, sql):
    text = hiding.restrict(sql, "duckdb", KNOWN, COLUMNS.__getitem__)
    answer = engine.execute(text)
    return [column[0] for column in answer.description], answer.fetchall()


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM trades", ["price"]),
        ('SELECT * FROM "lkc-1"."trades"', ["price"]),
        ('SELECT t.* FROM "lkc-1".TRADES AS t WHERE t.price = 1', ["price"]),
        ("SELECT trades.price FROM trades", ["price"]),
        ("SELECT a.price, b.n FROM trades a JOIN orders b ON a.price = b.n", ["price", "n"]),
        ("WITH x AS (SELECT * FROM trades) SELECT * FROM x", ["price"]),
        ("WITH trades AS (SELECT * FROM trades) SELECT * FROM trades", ["price"]),
        ("SELECT * FROM (SELECT * FROM trades) AS x", ["price"]),
        ("SELECT price FROM trades UNION ALL SELECT n FROM orders", ["price"]),
        ("SELECT n FROM orders WHERE n IN (SELECT price FROM trades)", ["n"]),
        ("SELECT * FROM aggregates.daily", ["n"]),
    ],
)
def test_a_query_gets_the_columns_that_people_may_see(engine, sql, columns):
    names, rows = run(engine, sql)
    assert names == columns
    assert rows
    assert SECRET not in str(rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT userid FROM trades",
        "SELECT trades.userid FROM trades",
        "SELECT price FROM trades WHERE userid LIKE 'a%'",
        "SELECT price FROM trades ORDER BY userid",
        'SELECT "$$raw-value" FROM "lkc-1".trades',
        "WITH x AS (SELECT userid FROM trades) SELECT * FROM x",
        "SELECT (SELECT max(email) FROM orders) FROM trades",
        "SELECT n FROM orders WHERE EXISTS (SELECT 1 FROM trades WHERE trades.userid = 'a')",
    ],
)
def test_no_clause_reaches_a_hidden_column(engine, sql):
    with pytest.raises(duckdb.BinderException):
        run(engine, sql)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM unknown", "nobody has said"),
        ("SELECT * FROM absent", "not a table of the deployment file"),
        ("WITH absent AS (SELECT * FROM absent) SELECT * FROM absent", "not a table of the deployment file"),
        ("WITH b AS (SELECT * FROM absent), absent AS (SELECT 1 AS a) SELECT * FROM b", "not a table"),
        ("SELECT * FROM elsewhere.trades", "not a table of the deployment file"),
        ("SELECT * FROM iceberg_scan('s3://lake/trades')", "isn't the name of a table"),
        ("SELECT * FROM 's3://lake/trades.parquet'", "not a table of the deployment file"),
        ("SELECT * FROM trades, read_parquet('x') AS p", "isn't the name of a table"),
        ("WITH x AS (SELECT 1 AS a) SELECT * FROM read_parquet('f') AS x", "isn't the name of a table"),
        ("WITH x AS (SELECT 1 AS a) SELECT * FROM absent AS x", "not a table of the deployment file"),
        ('SELECT * FROM "trades$files"', "values of hidden columns"),
        ('SELECT * FROM "lkc-1"."trades$partitions"', "values of hidden columns"),
        ("SELECT * FROM", "can't be seen"),
    ],
)
def test_what_may_show_hidden_columns_is_refused(engine, sql, why):
    with pytest.raises(CommandFailed, match=why) as refused:
        run(engine, sql)
    assert refused.value.code == "QUERY-HIDDEN"


def test_tables_about_a_table_without_its_values_are_shown():
    sql = 'SELECT * FROM "lkc-1"."trades$snapshots"'
    assert hiding.restrict(sql, "athena", KNOWN, COLUMNS.__getitem__) == sql


def test_what_is_hidden_is_named():
    _, named = hiding.find_named("SELECT * FROM trades JOIN orders ON true", "athena", KNOWN)
    assert hiding.list_hidden(named) == {
        "trades": {"userid": "it has the tag PII", "$$raw-value": "all"},
        "orders": {"email": "it has the tag PII"},
    }


def test_time_travel_stays_inside(engine):
    sql = "SELECT * FROM trades FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00 UTC'"
    text = hiding.restrict(sql, "athena", KNOWN, COLUMNS.__getitem__)
    assert text.startswith('SELECT * FROM (SELECT "price" FROM trades FOR TIMESTAMP AS OF')
