"""Athena's engine: statements that it parses, values as it writes them, and queries of a user."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from simulators.aws.athena import Malformed, parse
from simulators.aws.athena_values import format_value
from simulators.tests.aws.athena_kit import Athena
from stacks.constructs.queries import QUERIES as NAMED_QUERIES

VALUES = [
    (1.0, "1.0"),
    (1e7, "1.0E7"),
    (-2.5e22, "-2.5E22"),
    (1.5e-5, "1.5E-5"),
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (Decimal("1.50"), "1.50"),
    (date(2026, 1, 2), "2026-01-02"),
    (datetime(2026, 1, 2, 3, 4, 5, 60), "2026-01-02 03:04:05.000060"),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00.000000 UTC"),
    (b"\x00\xff", "00 ff"),
    ([1, None], "[1, null]"),
    ({"a": True, "b": "x"}, "{a=true, b=x}"),
]
MALFORMED = [
    ("", "mismatched input '<EOF>'"),
    ("SELEC 1", "mismatched input '1'"),
    ("SELECT 'a", "line 1:1"),
    ("SELECT 1; SELECT 2", "Only one sql statement is allowed"),
    ("INSERT INTO t VALUES (1)", "not simulated: INSERT"),
    ("SHOW PARTITIONS t", "not simulated: SHOW"),
]
UTILITIES = [
    ("show tables;", {"database": None}),
    ("SHOW TABLES IN `lkc-1`", {"database": "lkc-1"}),
    ('DESCRIBE "lkc-1"."Trades"', {"database": "lkc-1", "table": "Trades"}),
]
QUERIES = [
    ("SELECT count(*) FROM trades WHERE at > timestamp '2026-01-02 12:00:00'", [["1"]]),
    ("SELECT count(*) FROM trades WHERE at < current_timestamp - INTERVAL '1' DAY", [["2"]]),
    ("SELECT id, tag FROM trades CROSS JOIN UNNEST(tags) AS u(tag)", [["1", "x"]]),
    ("SELECT a.id FROM trades a JOIN trades b ON a.id = b.id AND b.id > 1", [["2"]]),
    ("WITH t AS (SELECT max(id) AS newest FROM trades) SELECT newest FROM t", [["2"]]),
    ("SELECT id FROM trades UNION ALL SELECT 5 ORDER BY 1 DESC LIMIT 1", [["5"]]),
    (
        "SELECT name, count(*) AS n FROM trades WHERE id > 0 GROUP BY name ORDER BY n, name LIMIT 1",
        [['a, "b"', "1"]],
    ),
    (
        "SELECT date_format(at, '%Y-%m'), element_at(tags, 1), cardinality(tags) FROM trades WHERE id = 1",
        [["2026-01", "x", "1"]],
    ),
    (
        "SELECT approx_distinct(id), try_cast(max(name) AS bigint), max(id) || 'x' FROM trades",
        [["2", None, "2x"]],
    ),
    ("SELECT x FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y) WHERE y = 'b'", [["2"]]),
    ("SELECT map(ARRAY['a'], ARRAY[1]), CAST(0.1 AS real)", [["{a=1}", "0.1"]]),
]
NOT_SIMULATED = [
    "SELECT 1 FROM trades FOR VERSION AS OF 1",
    'SELECT 1 FROM "trades$files"',
    "SELECT 1 FROM read_text('/etc/hosts')",
]


@pytest.fixture(scope="module")
def athena(aws):
    return Athena(aws)


@pytest.mark.parametrize(("value", "written"), VALUES)
def test_a_value_is_written_as_athena_does(value, written):
    assert format_value(value) == written


@pytest.mark.parametrize(("sql", "reason"), MALFORMED)
def test_a_malformed_statement_is_refused_with_a_reason(sql, reason):
    with pytest.raises(Malformed) as refused:
        parse(sql)
    assert reason in str(refused.value)


@pytest.mark.parametrize(("sql", "names"), UTILITIES)
def test_show_and_describe_are_parsed(sql, names):
    assert parse(sql).groupdict() == names


@pytest.mark.parametrize(("sql", "rows"), QUERIES)
def test_a_query_in_athenas_sql_is_computed(athena, sql, rows):
    assert (athena.rows(sql) or [[]])[1:] == rows, athena.reason(sql)


@pytest.mark.parametrize(("title", "sql"), NAMED_QUERIES.values())
def test_a_named_query_that_ships_runs(athena, title, sql):
    rows = athena.rows(sql.format(database=athena.database, table="trades"))
    assert rows is not None, title
    assert len(rows) > 1


@pytest.mark.parametrize("sql", NOT_SIMULATED)
def test_what_the_engine_does_not_run_fails_with_a_reason(athena, sql):
    assert "not simulated" in athena.reason(sql)


def test_queries_that_are_stopped_leave_no_result_and_make_room(aws):
    athena = Athena(aws)
    endless = " CROSS JOIN ".join(f"UNNEST(sequence(1, 100000)) AS t{number}(n)" for number in range(3))
    numbers = [athena.start(f"SELECT sum(sqrt(t0.n * t1.n * t2.n)) FROM {endless}") for _ in range(3)]
    for number in numbers:
        athena.client.stop_query_execution(QueryExecutionId=number)
    assert [athena.ended(number)["Status"]["State"] for number in numbers] == ["CANCELLED"] * 3
    assert "Contents" not in aws.s3.list_objects_v2(Bucket=athena.bucket, Prefix="athena/")
    assert athena.rows("SELECT 1") == [["_col0"], ["1"]]


def test_queries_run_concurrently_with_the_rights_of_their_callers(aws):
    athena = Athena(aws)
    callers = [athena.as_role(), athena.as_role("glue:GetTable")] * 2
    numbers = [athena.start("SELECT count(*) FROM trades", caller) for caller in callers]
    states = [athena.ended(number)["Status"]["State"] for number in numbers]
    assert states == ["SUCCEEDED", "FAILED"] * 2
