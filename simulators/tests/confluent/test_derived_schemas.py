"""What is derived from a statement's SQL is what real Flink registers for its table."""

from __future__ import annotations

import json

import pytest
from test_confluent_flink import Built
from test_confluent_flink_worker import ROOT, make_store_orders, shipped

from config.deployments import flink_origins
from config.deployments.sources import Sources
from config.exports import topic_schema
from config.exports.avro_document import build_document
from config.exports.check import NOT_JUDGED
from config.exports.table_columns import find_spark_type
from simulators.confluent.flink.engine import FlinkEngine
from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_kit import Organization

OPTIONS = "WITH ('value.fields-include' = 'all')"
#: Expressions over store_orders, each with the name of its column.
EXPRESSIONS = """
    store_id AS store_number, `date` AS order_day, customer AS party, customer.userid AS who, order_lines AS items_ordered,
    order_lines[1] AS first_item, order_lines[1].unit_price AS first_price, `$rowtime` AS received,
    store_id * coupon_code AS multiplied, CAST(store_id AS BIGINT) + coupon_code AS total_number, unit.price * 2 AS twice,
    CAST(unit.price AS DECIMAL(12, 2)) AS exact_price, CAST(`$rowtime` AS TIMESTAMP(3)) AS local_time,
    CAST(`date` AS TIMESTAMP_LTZ(6)) AS at_midnight, CAST(store_id AS STRING) AS text_of_number,
    TRY_CAST(status AS DOUBLE) AS floating_point, CAST(status AS VARCHAR(3)) AS short_text, status || '!' AS loud,
    CONCAT(status, '-', customer.regionid) AS joined_text, UPPER(status) AS shouted, SUBSTRING(status FROM 1 FOR 2) AS beginning,
    SHA256(customer.userid) AS digest, MD5(status) AS digest5, REGEXP_REPLACE(status, 'a', 'b') AS replaced_text,
    DATE_FORMAT(CAST(`date` AS TIMESTAMP(3)), 'yyyy') AS written_year, EXTRACT(YEAR FROM `date`) AS calendar_year,
    CASE WHEN store_id > 5 THEN 'high' ELSE status END AS rank_of_store, COALESCE(status, 'none') AS order_state,
    IF(store_id > 5, store_id, coupon_code) AS chosen, store_id > 5 AS is_high, status IS NULL AS is_missing,
    NOT (store_id > 5 AND coupon_code = 7) AS is_low, TRUE AS is_always, 1 AS single, 'x' AS letter_x, -store_id AS negative_id,
    ABS(store_id) AS size_of_number
"""
QUERIES = {
    "expressions": f"SELECT {EXPRESSIONS} FROM store_orders CROSS JOIN UNNEST(order_lines) AS "
    "unit(product, kind, pieces, price, net)",
    "a union": "SELECT status AS s FROM store_orders UNION ALL SELECT customer.regionid FROM store_orders",
    "a star": "WITH picked AS (SELECT store_id, customer.gender AS g FROM store_orders) SELECT * FROM picked",
    "sums": """
        SELECT window_start, window_end, window_time, status, COUNT(*) AS n, SUM(store_id) AS ids,
          SUM(CAST(store_id AS BIGINT)) AS wide, SUM(CAST(store_id AS DECIMAL(9, 2))) AS exact_price,
          MIN(`date`) AS earliest_day, MAX(status) AS last_status
        FROM TABLE(TUMBLE(TABLE store_orders, DESCRIPTOR(`$rowtime`), INTERVAL '1' MINUTE))
        GROUP BY window_start, window_end, window_time, status""",
}


@pytest.fixture(scope="module")
def cloud(flink):
    with ConfluentCloud(seed=23, start=1_793_610_000, engine=FlinkEngine(flink)) as running:
        yield running


@pytest.fixture
def built(cloud):
    cloud.reset()
    return Built(Organization(cloud))


def registered(built, topic):
    (registry,) = built.org.cloud._simulation.organization.schema_registries.copy().values()
    return json.loads(registry.schemas.latest(f"{topic}-value").text)


def columns(schema):
    return {field.name: find_spark_type(field.type) for field in schema.type.fields}


def sources(tmp_path, statements):
    for name, create in statements.items():
        folder = tmp_path / "flink" / name
        folder.mkdir(parents=True)
        (folder / "create.sql").write_text(create)
        (folder / "undo.sql").write_text(f"DROP TABLE IF EXISTS {name};")
    (tmp_path / "topics").mkdir()
    for topic in ("store_orders", "stock_trades"):
        text = (ROOT / "project" / "topics" / f"{topic}.avsc").read_text()
        (tmp_path / "topics" / f"{topic}.avsc").write_text(text)
    return Sources(tmp_path, NOT_JUDGED)


def require_same(built, tmp_path, statements):
    """Run the statements in their order, and compare what Flink registers with what is derived."""
    project = sources(tmp_path, statements)
    for name, create in statements.items():
        made = built.run(name.replace("_", "-"), create)
        assert made["status"]["phase"] == "RUNNING", made["status"]
        document = registered(built, name)
        expected = topic_schema.from_avro(document, name)
        derived = flink_origins.derive_schema(name, project)
        assert columns(derived) == columns(expected)
        written = build_document(derived.type, name)
        assert written["name"] == document["name"]
        assert written["namespace"] == document["namespace"]
        assert columns(topic_schema.from_avro(written, name)) == columns(expected)


@pytest.mark.parametrize("query", QUERIES)
def test_what_a_query_makes_is_derived(built, tmp_path, query):
    make_store_orders(built, range(1000, 1004))
    require_same(built, tmp_path, {"made": f"CREATE TABLE `made` {OPTIONS} AS {QUERIES[query]}"})


def test_what_the_shipped_statements_make_is_derived(built, tmp_path):
    make_store_orders(built, range(1000, 1004))
    names = ("store_orders_once", "store_orders_flat", "stock_trades_with_totals", "stock_trades_by_minute")
    require_same(built, tmp_path, {name: shipped(name) for name in names})
