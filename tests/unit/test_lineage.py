"""Personal fields are followed through Flink statements; what can't be followed counts as personal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from config.deployments import lineage
from config.deployments.flink_origins import with_origins
from config.deployments.sources import Sources
from config.exports import check, topic_schema
from config.exports.check import NOT_JUDGED
from config.project import PROJECT
from config.toml_model import BadFile

SOURCES = {
    topic: topic_schema.load(PROJECT / "topics" / f"{topic}.avsc", topic)
    for topic in ("store_orders", "stock_trades")
}
ORDERS = "store_orders"
TRADES = "stock_trades"


def columns(topic: str) -> list[str] | None:
    schema = SOURCES.get(topic)
    return schema and [path for path in schema.fields if path.isidentifier()]


def origins(query: str) -> dict[str, lineage.Origin]:
    return lineage.find_origins(
        f"-- A comment.\nCREATE TABLE `made` WITH ('a' = 'b') AS\n{query};\n", columns
    )


def fields(query: str) -> dict[str, list[str]]:
    """Return the source fields of each column, and the reason where a column can't be followed."""
    return {
        name: [f"{topic}.{path}" for topic, path in sorted(origin.fields)]
        + [origin.unknown] * bool(origin.unknown)
        for name, origin in origins(query).items()
    }


FOLLOWED = {
    "SELECT `customer`.`userid` AS `who` FROM store_orders": {"who": ["store_orders.customer.userid"]},
    "SELECT o.customer.userid FROM store_orders o": {"userid": ["store_orders.customer.userid"]},
    "SELECT x.c.userid AS who FROM (SELECT customer AS c FROM store_orders) x": {
        "who": ["store_orders.customer.userid"]
    },
    "WITH a AS (SELECT * FROM store_orders), b AS (SELECT * FROM a) SELECT customer.gender FROM b": {
        "gender": ["store_orders.customer.gender"]
    },
    "SELECT UPPER(customer.userid) || '@' || status AS who FROM store_orders": {
        "who": ["store_orders.customer.userid", "store_orders.status"]
    },
    "SELECT CASE WHEN customer.gender = 'x' THEN 1 ELSE 0 END AS flag FROM store_orders": {
        "flag": ["store_orders.customer.gender"]
    },
    "SELECT MAX(userid) AS most, COUNT(DISTINCT userid) AS users, COUNT(*) AS n FROM stock_trades": {
        "most": ["stock_trades.userid"],
        "users": [],
        "n": [],
    },
    "SELECT ROW_NUMBER() OVER (PARTITION BY userid ORDER BY `$rowtime`) AS nr, `$rowtime` AS at FROM "
    "stock_trades": {
        "nr": [],
        "at": [],
    },
    "SELECT LAST_VALUE(userid) OVER (PARTITION BY symbol ORDER BY `$rowtime`) AS last FROM stock_trades": {
        "last": ["stock_trades.userid"]
    },
    "SELECT status FROM store_orders UNION ALL SELECT userid FROM stock_trades": {
        "status": ["stock_trades.userid", "store_orders.status"]
    },
    "SELECT t.userid, o.status FROM `store_orders` o JOIN stock_trades t ON o.status = t.symbol": {
        "userid": ["stock_trades.userid"],
        "status": ["store_orders.status"],
    },
    "SELECT u.a FROM store_orders CROSS JOIN UNNEST(order_lines) AS u (a, b)": {
        "a": ["store_orders.order_lines"]
    },
    "SELECT window_start, userid, SUM(price) AS p FROM TABLE(TUMBLE(TABLE stock_trades, "
    "DESCRIPTOR(`$rowtime`), INTERVAL '1' MINUTE)) GROUP BY window_start, userid": {
        "window_start": [],
        "userid": ["stock_trades.userid"],
        "p": ["stock_trades.price"],
    },
    "SELECT w.userid FROM TABLE(HOP(DATA => TABLE `stock_trades`, TIMECOL => DESCRIPTOR(`$rowtime`), "
    "SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '2' MINUTE)) AS w": {"userid": ["stock_trades.userid"]},
    "SELECT ROW(customer.userid, status) AS r, JSON_VALUE(status, '$.a') AS j, 'it''s' AS t FROM "
    "store_orders": {
        "r": ["store_orders.customer.userid", "store_orders.status"],
        "j": ["store_orders.status"],
        "t": [],
    },
    "SELECT customer.userid AS a, my_udf(status) AS b, `db`.other(status) AS c FROM store_orders": {
        "a": ["store_orders.customer.userid"],
        "b": ["store_orders.status", "function my_udf computes it"],
        "c": ["a function of another database computes it"],
    },
    "SELECT (SELECT MAX(userid) FROM stock_trades) AS m, status FROM store_orders": {
        "m": ["a subquery computes it"],
        "status": ["store_orders.status"],
    },
    "SELECT u.a FROM store_orders, LATERAL TABLE(split_it(status)) AS u (a)": {
        "a": ["a table function computes it"]
    },
    "SELECT `key` AS k FROM store_orders": {"k": ["key can't be found in its sources"]},
}
NOT_FOLLOWED = {
    "SELECT * FROM unknown_topic": "the columns of a * in its query can't be known",
    "SELECT * FROM store_orders MATCH_RECOGNIZE (PARTITION BY store_id ORDER BY `$rowtime` MEASURES "
    "A.status AS a PATTERN (A) DEFINE A AS A.store_id > 1) AS m": "its query can't be read",
    "SELECT FROM WHERE": "its query can't be",
    # A table of another database may have a topic's name.
    "SELECT t.userid FROM `other`.stock_trades t": "the name of stock_trades has a database. If it is that",
    "SELECT status FROM store_orders JOIN c.d.stock_trades ON TRUE": "the name of stock_trades has a database",
    "SELECT a FROM (SELECT status AS a FROM d.store_orders) x": "the name of store_orders has a database",
    "WITH x AS (SELECT * FROM d.store_orders) SELECT status FROM x": "the name of store_orders has a database",
    "SELECT status FROM store_orders UNION ALL SELECT symbol FROM d.stock_trades": "the name of stock_trades",
    "SELECT status FROM store_orders UNION ALL SELECT userid, price FROM stock_trades": "the branches of a UNION differ",
    "SELECT a FROM TABLE(TUMBLE(DATA => x, TIMECOL => DESCRIPTOR(y), SIZE => INTERVAL '1' MINUTE))": "windowing function",
}


@pytest.mark.parametrize("query", FOLLOWED)
def test_columns_are_followed_to_their_fields(query):
    assert fields(query) == FOLLOWED[query]


@pytest.mark.parametrize("query", NOT_FOLLOWED)
def test_a_query_that_cannot_be_followed_is_unknown(query):
    with pytest.raises(lineage.Unknown) as unknown:
        origins(query)
    assert NOT_FOLLOWED[query] in str(unknown.value)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("INSERT INTO made (a, b) SELECT userid, price FROM stock_trades", {"a": "userid", "b": "price"}),
        (
            "CREATE TABLE made (price, userid) AS SELECT userid, price FROM stock_trades",
            {"userid": "userid", "price": "price"},
        ),
        (
            "CREATE TABLE made (a, b) AS SELECT userid AS b, price AS a FROM stock_trades",
            {"b": "userid", "a": "price"},
        ),
        (
            "CREATE TABLE made DISTRIBUTED BY (`userid`) INTO 3 BUCKETS AS SELECT userid FROM stock_trades",
            {"userid": "userid"},
        ),
        ("INSERT INTO made (a) WITH x AS (SELECT userid FROM stock_trades) SELECT * FROM x", {"a": "userid"}),
    ],
)
def test_columns_have_the_names_that_the_statement_lists(statement, names):
    found = {name: origin.copies for name, origin in lineage.find_origins(statement, columns).items()}
    assert found == {name: (TRADES, field) for name, field in names.items()}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO made SELECT userid FROM stock_trades",
        "CREATE TABLE made (a STRING) WITH ('connector' = 'faker')",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO made (a) SELECT userid FROM stock_trades; END",
        "CREATE TABLE made (a) AS SELECT userid, price FROM stock_trades",
        "CREATE TABLE made (a, b) AS SELECT userid, price FROM stock_trades",
        "CREATE TABLE made AS SELECT 'unfinished",
        "",
    ],
)
def test_a_statement_of_another_form_is_unknown(statement):
    with pytest.raises(lineage.Unknown):
        lineage.find_origins(statement, columns)


def avro(name: str, *names: str, **more) -> dict:
    """Return a schema as Flink derives it: without tags, every field nullable."""
    fields_ = [{"name": field, "type": ["null", "string"], "default": None} for field in names]
    fields_ += [{"name": field, "type": kind} for field, kind in more.items()]
    return {"type": "record", "name": f"{name}_value", "fields": fields_}


CUSTOMERS = """
CREATE TABLE customers_flat AS
SELECT store_id, store_order_id, coupon_code, status, customer.registertime AS registertime,
  customer.userid AS userid, customer.regionid AS regionid, customer.gender AS gender
FROM store_orders"""
FLAT = avro(
    "customers_flat",
    *("coupon_code", "status", "userid", "regionid", "gender"),
    store_id="int",
    store_order_id="int",
    registertime="long",
    at={"type": "long", "logicalType": "timestamp-millis"},
)


def project(root: Path, **statements: str) -> Sources:
    """Return the shipped topics and statements, and these besides."""
    for name in ("topics", "flink"):
        shutil.copytree(PROJECT / name, root / name)
    for name, text in statements.items():
        (root / "flink" / name).mkdir()
        (root / "flink" / name / "create.sql").write_text(text)
        (root / "flink" / name / "undo.sql").write_text(f"DROP TABLE IF EXISTS {name};")
    return Sources(root, NOT_JUDGED)


def personal(schema: dict, topic: str, sources: Sources) -> dict[str, str]:
    found = with_origins(topic_schema.from_avro(schema, topic), sources).personal
    return {path: finding.why for path, finding in found.items()}


def test_what_a_statement_copies_from_tagged_fields_is_personal(tmp_path):
    found = personal(FLAT, "customers_flat", project(tmp_path, customers_flat=CUSTOMERS))
    file = "project/flink/customers_flat/create.sql"
    assert {name: found[name] for name in ("registertime", "userid", "regionid", "gender")} == {
        name: f"{file} computes it from store_orders.customer.{name}, which is personal"
        for name in ("registertime", "userid", "regionid", "gender")
    }
    assert (
        found["at"]
        == f"{file} doesn't show which fields it comes from: it is not among the columns of the query"
    )
    assert found.keys() == {"registertime", "userid", "regionid", "gender", "at"}


def test_a_copied_record_has_its_personal_fields_at_their_new_place(tmp_path):
    sources = project(
        tmp_path, made="CREATE TABLE made AS SELECT customer AS party, order_lines FROM store_orders"
    )
    customer = avro("x", "userid", "regionid", "shoe") | {"name": "P"}
    found = personal(avro("made", party=customer), "made", sources)
    assert {"party.userid", "party.gender", "party.registertime", "party.regionid"} <= found.keys()
    assert "order_lines" not in found


def test_personal_fields_are_followed_through_topics_without_a_schema_file(tmp_path):
    sources = project(
        tmp_path,
        first="CREATE TABLE first AS SELECT account AS a, symbol AS s FROM stock_trades",
        second="CREATE TABLE second AS SELECT * FROM first",
        third="CREATE TABLE third AS SELECT a AS x, s AS y FROM second",
    )
    assert personal(avro("third", "x", "y"), "third", sources) == {
        "x": "project/flink/third/create.sql computes it from second.a, which is personal"
    }


@pytest.mark.parametrize(
    ("create", "reason"),
    [
        ("CREATE TABLE made AS SELECT * FROM nowhere", "the columns of a * in its query can't be known"),
        (
            "CREATE TABLE made (x STRING, y STRING)",
            "it isn't one CREATE TABLE … AS or INSERT INTO with a query",
        ),
        ("INSERT INTO made SELECT symbol, side FROM stock_trades", "it inserts by position"),
        ("CREATE TABLE made AS SELECT a AS x, b AS y FROM nowhere", "can't be found in its sources"),
        ("CREATE TABLE made AS SELECT stock AS x, customer.shoe AS y FROM store_orders", ""),
        ("CREATE TABLE made AS SELECT x, y FROM made", "can't be found in its sources"),
    ],
)
def test_every_column_that_cannot_be_followed_needs_a_decision(tmp_path, create, reason):
    found = personal(avro("made", "x", "y"), "made", project(tmp_path, other=create))
    assert found.keys() == {"x", "y"}
    assert all(reason in why for why in found.values())


def test_a_table_that_one_statement_creates_and_another_fills(tmp_path):
    sources = project(
        tmp_path,
        creates="CREATE TABLE made (x STRING, y STRING)",
        fills="INSERT INTO made (x, y) SELECT userid, symbol FROM stock_trades",
    )
    assert personal(avro("made", "x", "y"), "made", sources).keys() == {"x"}


@pytest.mark.parametrize("names", [("first", "second"), ("second", "first")])
def test_a_field_that_any_statement_fills_with_personal_data_is_personal_in_numbers_too(tmp_path, names):
    """A text beside a personal field is personal only as text."""
    sources = project(
        tmp_path,
        creates="CREATE TABLE made (x INT)",
        **{
            name: f"INSERT INTO made (x) SELECT {column} FROM parcels"
            for name, column in zip(names, ("code", "remark"), strict=True)
        },
    )
    parcels = avro("parcels", "remark")
    parcels["fields"].append({"name": "code", "type": "int", "confluent:tags": ["PII"]})
    (tmp_path / "topics" / "parcels.avsc").write_text(json.dumps(parcels))
    found = with_origins(topic_schema.from_avro(avro("made", x="int"), "made"), sources)
    assert found.personal_inside_or_around("x", as_text=False) == ["x"]
    assert "parcels.code" in found.personal["x"].why


INSERTS = "INSERT INTO made (x, y) SELECT userid, symbol FROM stock_trades"


@pytest.mark.parametrize(
    "create",
    [
        f"EXECUTE STATEMENT SET BEGIN {INSERTS}; {INSERTS.replace('made', 'other')}; END;",
        f"{INSERTS.replace('made', 'other')}; {INSERTS.replace('made', '`c`.`d`.`made`')};",
        f"SET 'sql.state-ttl' = '1 d';\n{INSERTS};",
        "WITH t AS (SELECT * FROM stock_trades) INSERT INTO made (x, y) SELECT userid, symbol FROM t",
        INSERTS.replace("INTO", "INTO TABLE"),
        INSERTS.replace("INTO", "/* all of it */ INTO"),
        "CREATE OR REPLACE TABLE made AS SELECT userid AS x, symbol AS y FROM stock_trades",
        "CREATE MATERIALIZED TABLE made AS SELECT userid AS x, symbol AS y FROM stock_trades",
    ],
)
def test_a_topic_that_a_statement_of_any_form_fills_has_the_personal_fields(tmp_path, create):
    assert "x" in personal(avro("made", "x", "y"), "made", project(tmp_path, other=create))


def test_a_topic_that_a_statement_only_reads_or_mentions_is_as_its_schema_says(tmp_path):
    create = f"-- {INSERTS}\n{INSERTS.replace('stock_trades', 'made').replace('INTO made', 'INTO other')}"
    assert personal(avro("made", "userid_count", "y"), "made", project(tmp_path, other=create)) == {}


def test_a_topic_that_no_statement_writes_is_as_its_schema_says(tmp_path):
    assert personal(avro("made", "x", "y"), "made", project(tmp_path)) == {}


CONTRACT = """name = "flat"
version = 1
title = "Flat orders"
description = "Orders of stores."
owner = "somebody"
grain = "one row per order"
[source]
topic = "customers_flat"
event_time = "kafka_timestamp"
[window]
every = "day"
zone = "UTC"
from = 2026-11-01
[delivery]
order_by = ["store_order_id"]
[[column]]
name = "store_order_id"
type = "integer"
title = "Order"
description = "Order."
[[column]]
name = "userid"
type = "text"
title = "User"
description = "User."
[[column]]
name = "gender"
type = "text"
title = "Gender"
description = "Gender."
"""


def test_a_contract_over_flat_orders_needs_treatments(tmp_path):
    contract = tmp_path / "flat.toml"
    contract.write_text(CONTRACT)
    sources = project(tmp_path / "project", customers_flat=CUSTOMERS)
    schema = with_origins(topic_schema.from_avro(FLAT, "customers_flat"), sources)
    with pytest.raises(BadFile) as bad:
        check.check_file(contract, schema, check.NOT_JUDGED)
    assert [problem.key for problem in bad.value.problems] == ["column[1]", "column[2]"]
    assert (
        "userid contains personal data (userid: project/flink/customers_flat/create.sql computes it from "
        in str(bad.value)
    )
    treated = CONTRACT.replace(
        'title = "User"', 'title = "U"\npersonal = { treatment = "hash", kind = "id" }'
    )
    treated = treated.replace('title = "Gender"', 'title = "G"\npersonal = { treatment = "drop" }')
    contract.write_text(treated)
    assert check.check_file(contract, schema, check.NOT_JUDGED).name == "flat"


def test_a_statement_file_that_is_no_sql_is_unknown(tmp_path):
    sources = project(tmp_path, made="CREATE TABLE made AS SELECT 'unfinished FROM stock_trades")
    assert personal(avro("made", "x"), "made", sources).keys() == {"x"}


def test_schemas_written_by_hand_are_used(tmp_path):
    """The source's own file decides, tags and all."""
    sources = project(tmp_path, made="CREATE TABLE made AS SELECT code AS x, size AS y FROM boxes")
    boxes = avro("boxes", "size")
    boxes["fields"].append({"name": "code", "type": "string", "confluent:tags": ["PII"]})
    (tmp_path / "topics" / "boxes.avsc").write_text(json.dumps(boxes))
    assert personal(avro("made", "x", "y"), "made", sources).keys() == {"x"}
