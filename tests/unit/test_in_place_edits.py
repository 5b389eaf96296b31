"""Which Flink statements are proved to be stateless, so that an edit keeps their table."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from config.deployments.in_place_edits import Stateful, find_in_place_edit, read_in_place_edit
from config.deployments.sources import Sources, StatementText
from config.exports.check import NOT_JUDGED

FLINK = Path(__file__).parents[2]
HEAD = "CREATE TABLE t WITH ('changelog.mode' = 'append')"
TEXT = StatementText("", "", {}, "t", {"changelog.mode": "append"}, 6)


def statement(query, head=HEAD, **changed):
    return attrs.evolve(TEXT, **{"create": f"{head} AS {query};\n", **changed})


@pytest.mark.parametrize(
    ("query", "columns", "reads"),
    [
        ("SELECT a FROM s", ("a",), ("s",)),
        ("SELECT `$rowtime` AS ts, a + b AS c FROM s WHERE d LIKE 'x%' AND e IN (1, 2)", ("ts", "c"), ("s",)),
        ("SELECT CASE WHEN a = 1 THEN 'b' ELSE UPPER(c) END AS d FROM s", ("d",), ("s",)),
        ("WITH x AS (SELECT a, r.f.g AS h FROM s) SELECT h, a FROM x", ("h", "a"), ("s",)),
        ("SELECT a FROM (SELECT * FROM s WHERE b IS NOT NULL) AS x", ("a",), ("s",)),
        ("SELECT o.a, l.q FROM s AS o CROSS JOIN UNNEST(o.ls) AS l (p, q)", ("a", "q"), ("s",)),
        ("SELECT a, q FROM s LEFT JOIN UNNEST(ls) AS l (p, q) ON TRUE", ("a", "q"), ("s",)),
        ("SELECT a FROM s UNION ALL SELECT b FROM u", ("a",), ("s", "u")),
        ("SELECT a FROM s UNION ALL SELECT b FROM `c`.`d`.`u`", ("a",), ("c.d.u", "s")),
        (
            "SELECT DATE_FORMAT(t, 'yyyy') AS a, TO_TIMESTAMP_LTZ(b, 3) AS b, TRY_CAST(c AS DECIMAL(9, 2)) AS c, "
            "COALESCE(d, 'x') AS d, JSON_VALUE(e, '$.f') AS e, SUBSTRING(f, 1, 2) AS f FROM s",
            tuple("abcdef"),
            ("s",),
        ),
    ],
)
def test_statements_that_process_each_record_by_itself(query, columns, reads):
    edit = read_in_place_edit(statement(query))
    assert (edit.columns, edit.reads) == (columns, reads)
    listed = ", ".join(f"`{column}`" for column in columns)
    assert edit.insert == f"INSERT INTO `t` ({listed})\n{query}"
    assert edit.head == HEAD


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT DISTINCT a FROM s", "DISTINCT"),
        ("SELECT a, COUNT(*) AS n FROM s GROUP BY a", "GROUP"),
        ("SELECT MAX(a) AS n FROM s", "the aggregate MAX"),
        ("SELECT LAG(a) OVER (ORDER BY b) AS l FROM s", "WINDOW"),
        (
            "SELECT a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM s) WHERE r = 1",
            "WINDOW",
        ),
        ("SELECT a FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(b), INTERVAL '1' MINUTE))", "can't be read"),
        (
            "SELECT a FROM s MATCH_RECOGNIZE (ORDER BY b MEASURES c AS d PATTERN (A) DEFINE A AS a > 1)",
            "be read",
        ),
        ("SELECT a FROM s, u", "a join"),
        ("SELECT s.a FROM s JOIN u ON s.a = u.a", "a join"),
        ("SELECT a FROM s FOR SYSTEM_TIME AS OF s.b", "VERSION"),
        ("SELECT a FROM s LEFT JOIN UNNEST(ls) AS l (p) ON l.p = 1", "a join"),
        ("SELECT x FROM s CROSS JOIN LATERAL TABLE(f(a)) AS l (x)", "a join"),
        ("SELECT a FROM s UNION SELECT a FROM u", "DISTINCT"),
        ("SELECT a FROM s EXCEPT SELECT a FROM u", "EXCEPT"),
        ("SELECT a FROM s ORDER BY a", "ORDER"),
        ("SELECT a FROM s LIMIT 3", "LIMIT"),
        ("SELECT a FROM s WHERE a IN (SELECT b FROM u)", "subquery"),
        ("SELECT a FROM s WHERE EXISTS (SELECT 1 FROM u)", "EXISTS"),
        ("SELECT (SELECT MAX(b) FROM u) AS a FROM s", "SUBQUERY"),
        ("SELECT my_function(a) AS b FROM s", "the function my_function"),
        ("SELECT CURRENT_WATERMARK(`$rowtime`) AS w FROM s", "CURRENT_WATERMARK"),
        ("SELECT 1 AS a", "a SELECT without FROM"),
        ("SELECT a FROM s UNION ALL SELECT 1", "a SELECT without FROM"),
        ("SELECT a FROM UNNEST(ARRAY[1, 2]) AS l (a)", "UNNEST in another place"),
        ("SELECT a FROM (VALUES (1)) AS x (a)", "VALUES"),
        ("SELECT * FROM s", "doesn't name each column"),
        ("SELECT a + 1 FROM s", "doesn't name each column"),
        ("SELECT a AS b, c AS b FROM s", "doesn't name each column"),
        ("SELECT a FROM s /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */", "a hint"),
        ("SELEKT a", "can't be read"),
    ],
)
def test_what_is_not_proved_to_be_stateless_is_stateful(query, why):
    with pytest.raises(Stateful, match=why):
        read_in_place_edit(statement(query))
    assert find_in_place_edit(statement(query)) is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"create": "INSERT INTO t SELECT a FROM s", "table": ""}, "isn't a CREATE TABLE"),
        ({"create": "CREATE TABLE t (a INT)"}, "isn't a CREATE TABLE"),
        ({"create": f"{HEAD} AS SELECT a FROM s; DROP TABLE u"}, "isn't a CREATE TABLE"),
        ({"options": {}}, "doesn't say 'changelog.mode' = 'append'"),
        ({"options": {"changelog.mode": "upsert"}}, "doesn't say 'changelog.mode' = 'append'"),
        ({"properties": {"sql.tables.scan.startup.mode": "latest-offset"}}, "where it begins to read"),
        ({"properties": {"sql.tables.initial-offset-from": "other"}}, "where it begins to read"),
    ],
)
def test_tables_and_properties_that_an_edit_cant_keep(changed, why):
    with pytest.raises(Stateful, match=why):
        read_in_place_edit(statement("SELECT a FROM s", **changed))


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (HEAD.replace("t WITH", "t (PRIMARY KEY (a) NOT ENFORCED) WITH"), "primary key"),
        (HEAD.replace("t WITH", "`c`.`d`.`t` WITH"), "has a database"),
    ],
)
def test_heads_that_an_edit_cant_keep(head, why):
    with pytest.raises(Stateful, match=why):
        read_in_place_edit(statement("SELECT a FROM s", head))


def test_the_shipped_statements():
    sources = Sources(FLINK / "project", NOT_JUDGED)
    totals = read_in_place_edit(sources.statement("stock_trades_with_totals"))
    assert totals.reads == ("stock_trades",)
    flat = read_in_place_edit(sources.statement("store_orders_flat"))
    assert flat.reads == ("store_orders_once",)
    for name in ("stock_trades_by_minute", "store_orders_once"):
        assert find_in_place_edit(sources.statement(name)) is None


def test_a_comment_of_a_statement_proves_nothing(tmp_path):
    """Neither a comment nor a text in quotes is an option of the table."""
    folder = tmp_path / "flink" / "t"
    folder.mkdir(parents=True)
    options = "'kafka.retention.time' = '-- 1 d', 'changelog.mode' = 'upsert'"
    comments = "-- 'changelog.mode' = 'append'\n/* INTO 9 BUCKETS */"
    folder.joinpath("create.sql").write_text(
        f"CREATE TABLE t WITH ({options}) {comments} AS SELECT a FROM s;\n"
    )
    folder.joinpath("undo.sql").write_text("DROP TABLE t; -- DROP TABLE u;\n")
    text = Sources(tmp_path, NOT_JUDGED).statement("t")
    assert (text.options, text.partitions, text.dropped) == ({"changelog.mode": "upsert"}, 6, ("t",))
