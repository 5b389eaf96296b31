"""Athena's engine: how values and statements are written, and queries that are stopped or run side by side."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from athena_kit import Athena
from pyiceberg import types as iceberg

from simulators.aws.athena import parsing, types
from simulators.aws.athena.outcomes import Malformed

VALUES = [
    (1.0, pa.float64(), "1.0"),
    (1e7, pa.float64(), "1.0E7"),
    (-2.5e22, pa.float64(), "-2.5E22"),
    (1.5e-5, pa.float64(), "1.5E-5"),
    (0.1, pa.float32(), "0.1"),
    (math.nan, pa.float64(), "NaN"),
    (math.inf, pa.float64(), "Infinity"),
    (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
    (date(2026, 1, 2), pa.date32(), "2026-01-02"),
    (datetime(2026, 1, 2, 3, 4, 5, 60), pa.timestamp("us"), "2026-01-02 03:04:05.000060"),
    (datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC"), "2026-01-02 00:00:00.000000 UTC"),
    (b"\x00\xff", pa.binary(), "00 ff"),
    ([1, None], pa.list_(pa.int64()), "[1, null]"),
    ([("a", 1)], pa.map_(pa.string(), pa.int64()), "{a=1}"),
    ({"a": True, "b": "x"}, pa.struct([("a", pa.bool_()), ("b", pa.string())]), "{a=true, b=x}"),
    (None, pa.string(), None),
]


@pytest.mark.parametrize(("value", "kind", "written"), VALUES)
def test_a_value_is_written_as_athena_does(value, kind, written):
    given = pa.scalar(value, kind)
    assert types.text(given.as_py(), kind) == written


def test_a_nested_type_has_the_engines_name():
    inner = iceberg.StructType(iceberg.NestedField(2, "B", iceberg.DecimalType(10, 2)))
    assert types.engine_type(iceberg.ListType(1, inner)) == 'array(row("b" decimal(10,2)))'


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "mismatched input '<EOF>'"),
        ("SELEC 1", "mismatched input '1'"),
        ("SELECT 'a", "line 1:1"),
        ("SELECT 1; SELECT 2", "Only one sql statement is allowed"),
        ("INSERT INTO t VALUES (1)", "not simulated: INSERT"),
        ("SHOW PARTITIONS t", "not simulated: SHOW"),
    ],
)
def test_what_is_no_statement_is_refused_with_a_reason(sql, said):
    with pytest.raises(Malformed) as refused:
        parsing.statement(sql)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "form", "names"),
    [
        ("show tables;", "tables", ("", "", "")),
        ("SHOW TABLES IN `lkc-1` 'tr*'", "tables", ("lkc-1", "", "tr*")),
        ('DESCRIBE "lkc-1"."Trades"', "describe", ("lkc-1", "trades", "")),
        ("SHOW COLUMNS IN trades", "columns", ("", "trades", "")),
        ("SHOW DATABASES", "databases", ("", "", "")),
    ],
)
def test_names_in_show_and_describe_are_found(sql, form, names):
    found = parsing.statement(sql)
    assert (found.form, (found.database, found.table, found.pattern)) == (form, names)


def test_queries_that_are_stopped_leave_no_result_and_make_room(aws):
    athena = Athena(aws)
    endless = " CROSS JOIN ".join(f"UNNEST(sequence(1, 100000)) AS t{number}(n)" for number in range(3))
    numbers = [athena.start(f"SELECT sum(sqrt(t0.n * t1.n * t2.n)) FROM {endless}") for _ in range(3)]
    for number in numbers:
        athena.client.stop_query_execution(QueryExecutionId=number)
    assert [athena.ended(number)["Status"]["State"] for number in numbers] == ["CANCELLED"] * 3
    assert "Contents" not in aws.s3.list_objects_v2(Bucket=athena.bucket, Prefix="athena/")
    assert athena.rows("SELECT 1") == [["_col0"], ["1"]]


QUERIES = [
    ("SELECT count(*) FROM trades WHERE at > timestamp '2026-01-02 12:00:00'", [["1"]]),
    ("SELECT count(*) FROM trades WHERE at < current_timestamp - INTERVAL '1' DAY", [["2"]]),
    ("SELECT id, tag FROM trades CROSS JOIN UNNEST(tags) AS u(tag)", [["1", "x"]]),
    ("SELECT a.id FROM trades a JOIN trades b ON a.id = b.id AND b.id > 1", [["2"]]),
    ("WITH t AS (SELECT max(id) AS newest FROM trades) SELECT newest FROM t", [["2"]]),
    ("SELECT id FROM trades UNION ALL SELECT 5 ORDER BY 1 DESC LIMIT 1", [["5"]]),
    ("SELECT date_format(at, '%Y-%m'), element_at(tags, 1), cardinality(tags) FROM trades WHERE id = 1", [["2026-01", "x", "1"]]),
    ("SELECT approx_distinct(id), try_cast(max(name) AS bigint), max(id) || 'x' FROM trades", [["2", None, "2x"]]),
    ("SELECT x FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y) WHERE y = 'b'", [["2"]]),
]


@pytest.fixture(scope="module")
def athena(aws):
    return Athena(aws)


@pytest.mark.parametrize(("sql", "rows"), QUERIES)
def test_a_query_in_athenas_words_is_computed(athena, sql, rows):
    assert (athena.rows(sql) or [[]])[1:] == rows, athena.reason(sql)


def test_queries_run_side_by_side_as_whoever_asked_each(aws):
    athena = Athena(aws)
    callers = [athena.as_role(), athena.as_role("glue:GetTable")] * 2
    numbers = [athena.start("SELECT count(*) FROM trades", caller) for caller in callers]
    states = [athena.ended(number)["Status"]["State"] for number in numbers]
    assert states == ["SUCCEEDED", "FAILED"] * 2


def test_a_control_that_is_not_there_is_named(aws):
    request = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as missing:
        request.open(f"{aws.server.url}/_simulator/nothing")
    with missing.value as answer:
        assert "GET /mail" in json.load(answer)["error"]
