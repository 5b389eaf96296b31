"""The shipped statements on real Flink: what they make of the records in their topics, and that a change in
one shows.
"""

import base64
import io
import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest
from test_confluent_flink import Built

from simulators.confluent.flink.engine import FlinkEngine
from simulators.confluent.kafka_log import frame_value, unframe_value
from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_kit import Client, Organization

ROOT = Path(__file__).resolve().parents[3]
START = 1_793_610_000


def shipped(name):
    return (ROOT / "project" / "flink" / name / "create.sql").read_text()


@pytest.fixture(scope="module")
def cloud(flink):
    with ConfluentCloud(seed=21, start=START, engine=FlinkEngine(flink)) as running:
        yield running


@pytest.fixture
def built(cloud):
    cloud.reset()
    return Built(Organization(cloud))


def produce(built, topic, schema_id, schema, value, time):
    """A record with a time of its own, as a producer would send it; the REST route has only the present."""
    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, fastavro.parse_schema(schema), value)
    world = built.org.cloud._simulation.organization
    world.clusters[built.cluster["id"]].topics[topic].append(
        time, b"k", frame_value(schema_id, encoded.getvalue())
    )


def trade(number, **changed):
    made = {
        "side": "BUY",
        "symbol": "ZVV",
        "account": "ABC123",
        "userid": f"User_{number % 2}",
        "quantity": number,
        "price": 10,
    }
    return made | changed


def trades(built, count, first=0):
    schema = built.schema("stock_trades")
    now = int(built.org.cloud._simulation.organization.clock.now() * 1000) // 60_000 * 60_000
    for number in range(first, first + count):
        produce(built, "stock_trades", 100001, schema, trade(number), now + number * 7000)
    return now


def rows(built, topic):
    world = built.org.cloud._simulation.organization
    schemas = world.schema_registries.copy().popitem()[1].schemas
    parsed = fastavro.parse_schema(json.loads(schemas.latest(f"{topic}-value").text))
    messages = world.clusters[built.cluster["id"]].topics[topic].messages
    return [
        fastavro.schemaless_reader(io.BytesIO(unframe_value(message.value)[1]), parsed)
        for message in messages
    ]


Built.schema = lambda self, topic: json.loads(
    self.org.cloud._simulation.organization.schema_registries.copy()
    .popitem()[1]
    .schemas.latest(f"{topic}-value")
    .text
)


def test_totals(built):
    start = trades(built, 5)
    made = built.run("totals", shipped("stock_trades_with_totals"))
    assert made["status"]["phase"] == "RUNNING", made["status"]
    found = rows(built, "stock_trades_with_totals")
    assert [each["total_price"] for each in found] == [0, 10, 20, 30, 40]
    assert found[1]["trade_timestamp"] == datetime.fromtimestamp(start / 1000 + 7, UTC)
    assert list(found[0]) == [
        "trade_timestamp",
        "userid",
        "side",
        "symbol",
        "quantity",
        "price",
        "total_price",
    ]
    trades(built, 2, first=5)
    built.org.cloud.advance(60)
    built.flink.get(f"{built.path}/totals")
    assert [row["total_price"] for row in rows(built, "stock_trades_with_totals")] == [
        0,
        10,
        20,
        30,
        40,
        50,
        60,
    ], "and goes on"


def test_a_changed_expression_and_alias_show(built):
    trades(built, 3)
    changed = shipped("stock_trades_with_totals").replace(
        "`quantity` * `price` AS `total_price`", "`quantity` + `price` AS `sum`"
    )
    assert built.run("changed", changed)["status"]["phase"] == "RUNNING"
    assert [row["sum"] for row in rows(built, "stock_trades_with_totals")] == [10, 11, 12]


def by_minute(count, seconds, minutes):
    """What the aggregate must say, reckoned by hand: per window and user, of windows that are over."""
    over = (count - 1) * seconds // (60 * minutes)
    wanted = Counter()
    for number in range(count):
        if (window := number * seconds // (60 * minutes)) < over:
            wanted[window, f"User_{number % 2}"] += number * 10
    return wanted


@pytest.mark.parametrize("minutes", [1, 2])
def test_aggregate_and_its_window(built, minutes):
    start = trades(built, 40)
    sql = shipped("stock_trades_by_minute").replace("INTERVAL '1' MINUTE", f"INTERVAL '{minutes}' MINUTE")
    made = built.run("minutes", sql)
    assert made["status"]["phase"] == "RUNNING", made["status"]
    found = {}
    for row in rows(built, "stock_trades_by_minute"):
        begun = row["window_start"].replace(tzinfo=UTC).timestamp() - start / 1000
        found[begun // (60 * minutes), row["userid"]] = row["total_price"]
    assert found == by_minute(40, 7, minutes) if start % (60_000 * minutes) == 0 else found


def make_store_orders(built, numbers):
    """Create the topic store_orders with one record for each order number, a millisecond apart."""
    schema = json.loads((ROOT / "project" / "topics" / "store_orders.avsc").read_text())
    schema = json.loads(re.sub(r'"arg\.properties"', '"arg"', json.dumps(schema)))
    built.kafka.post(built.topics, {"topic_name": "store_orders"}, 201)
    built.org.cloud.advance(60)
    schemas = built.org.schemas(built.environment, built.runner)
    subject = "/subjects/store_orders-value/versions"
    schema_id = schemas.post(subject, {"schema": json.dumps(schema)}, 200)["id"]
    now = int(built.org.cloud._simulation.organization.clock.now() * 1000)
    customer = {"registertime": 1493899960000, "userid": "User_1", "regionid": "Region_1", "gender": "OTHER"}
    for place, number in enumerate(numbers):
        line = {"product_id": 1, "category": "pizza", "quantity": place, "unit_price": 1.5, "net_price": 1.5}
        order = {
            "store_id": place,
            "store_order_id": number,
            "coupon_code": 7,
            "date": 18_000,
            "status": "accepted",
            "customer": customer,
            "order_lines": [line],
        }
        produce(built, "store_orders", schema_id, schema, order, now + place)


def test_each_order_once_and_flat_without_the_customer(built):
    make_store_orders(built, (1000, 1001, 1000, 1002))
    once = built.run("once", shipped("store_orders_once"))
    assert once["status"]["phase"] == "RUNNING", once["status"]
    flat = built.run("flat", shipped("store_orders_flat"))
    assert flat["status"]["phase"] == "RUNNING", flat["status"]
    found = sorted(rows(built, "store_orders_flat"), key=lambda row: row["store_order_id"])
    orders = [(row["store_order_id"], row["store_id"]) for row in found]
    assert orders == [(1000, 0), (1001, 1), (1002, 3)], "the first stays"
    assert found[0]["order_lines"][0]["category"] == "pizza"
    assert str(found[0]["order_date"]) == "2019-04-14"
    assert (found[0]["region"], found[0]["customer_since"]) == ("Region_1", 2017)
    assert not {"customer", "userid", "gender", "registertime"} & set(found[0])


@pytest.mark.parametrize(
    ("sql", "expected_message"),
    [
        ("SELECT nope FROM stock_trades", "nope"),
        ("SELECT side FROM stock_trades WHERE", "Encountered"),
        ("SELECT side, COUNT(*) AS n FROM stock_trades GROUP BY side", "update changes"),
        ("CREATE TABLE t AS SELECT side, side FROM elsewhere", "elsewhere"),
    ],
)
def test_what_flink_itself_refuses(built, sql, expected_message):
    status = built.run("bad", sql)["status"]
    assert status["phase"] == "FAILED"
    assert expected_message in status["detail"]


def test_results_of_a_select(built):
    trades(built, 3)
    built.run("look", "SELECT userid, quantity FROM stock_trades WHERE quantity > 0")
    answer = built.flink.get(f"{built.path}/look/results")
    assert [item["row"] for item in answer["results"]["data"]] == [["User_1", "1"], ["User_0", "2"]]
    more = Client(built.flink.url, *built.flink._session.auth)("GET", answer["metadata"]["next"], expect=200)
    assert more["results"]["data"] == []


def test_a_record_without_a_schema_fails_the_statement(built):
    bad = {"value": {"type": "BINARY", "data": base64.b64encode(b"not avro").decode()}}
    built.kafka.post(f"{built.topics}/stock_trades/records", bad, 200)
    status = built.run("totals", shipped("stock_trades_with_totals"))["status"]
    assert status["phase"] == "FAILED"
    assert "Magic number" in status["detail"]
