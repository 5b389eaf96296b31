"""Only one SELECT is sent to Athena and Snowflake."""

from __future__ import annotations

import pytest

from lakeferry.errors import CommandFailed
from lakeferry.queries.read_only import require_select


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("athena", "SELECT 1"),
        ("athena", "SELECT 1;"),
        ("athena", "-- a comment; DROP TABLE x\nSELECT 1"),
        ("athena", "SELECT 'DROP TABLE x; DELETE'"),
        (
            "athena",
            'SELECT count(*) FROM "lkc-1"."t$snapshots" WHERE "$$timestamp" < TIMESTAMP \'2026-01-01 UTC\'',
        ),
        ("athena", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("athena", "SELECT 1 UNION ALL SELECT 2"),
        ("athena", "SELECT * FROM t FOR VERSION AS OF 12"),
        ("snowflake", "SELECT symbol, max(price) FROM sales.public.trades GROUP BY symbol"),
        ("snowflake", "SELECT * FROM x AT(OFFSET => -60)"),
        ("snowflake", "SELECT f.value FROM t, LATERAL FLATTEN(input => t.items) f"),
    ],
)
def test_a_select_is_sent(dialect, sql):
    require_select(sql, dialect)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("athena", ""),
        ("athena", "INSERT INTO t SELECT 1"),
        ("athena", "WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a"),
        ("athena", "DROP TABLE t"),
        ("athena", "SELECT 1; DROP TABLE t"),
        ("athena", "CREATE TABLE t AS SELECT 1"),
        ("athena", "UNLOAD (SELECT 1) TO 's3://b/k' WITH (format = 'PARQUET')"),
        ("athena", "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE"),
        ("athena", "EXPLAIN ANALYZE SELECT 1"),
        ("athena", "EXECUTE something"),
        ("athena", "USING EXTERNAL FUNCTION f(x INT) RETURNS INT LAMBDA 'l' SELECT f(1)"),
        ("snowflake", "DELETE FROM t"),
        ("snowflake", "CALL p()"),
        ("snowflake", "EXECUTE IMMEDIATE 'DROP TABLE x'"),
        ("snowflake", "SELECT 1 ->> DROP TABLE x"),
        ("snowflake", "SELECT SYSTEM$CANCEL_ALL_QUERIES(1)"),
        ("snowflake", "SELECT s.NEXTVAL"),
        ("snowflake", "SELECT a INTO b FROM c"),
        ("snowflake", "SELECT * FROM TABLE(writes())"),
        ("snowflake", "GRANT SELECT ON TABLE t TO ROLE r"),
        ("snowflake", "ALTER SESSION SET x = 1"),
        ("snowflake", "SELECT (("),
    ],
)
def test_everything_else_is_refused(dialect, sql):
    with pytest.raises(CommandFailed) as refused:
        require_select(sql, dialect)
    assert (refused.value.code, refused.value.exit_code) == ("QUERY-READ-ONLY", 2)
