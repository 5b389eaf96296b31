"""A statement that begins where another one stopped: on paper what is refused, on Flink that each record is read
once.
"""

import pytest
from test_confluent_flink import TRADES, Built
from test_confluent_flink_worker import rows, trades

from simulators.confluent.flink.engine import FlinkEngine
from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_kit import Organization

CTAS = """CREATE TABLE flat WITH ('changelog.mode' = 'append') AS
SELECT userid, quantity * price AS total FROM stock_trades"""
NEXT = "INSERT INTO `flat` (`userid`, `total`) SELECT userid, quantity * price + 1 AS total FROM stock_trades"
SIX_HOURS = 6 * 3600


@pytest.fixture
def built(org):
    return Built(org)


def go_on(built, name, sql=NEXT, after="old", **properties):
    """The statement `name` some time after it was sent with the offsets of `after`."""
    session = built.body(name, sql)["spec"]["properties"]
    given = {**session, "sql.tables.initial-offset-from": after, **properties}
    return built.run(name, sql, properties=given)


def stop(built, name):
    one = built.flink.get(f"{built.path}/{name}")
    built.flink.put(f"{built.path}/{name}", one | {"spec": one["spec"] | {"stopped": True}}, 202)


def test_a_statement_waits_until_the_other_one_stops(built):
    built.run("old", CTAS)
    assert go_on(built, "new")["status"]["phase"] == "PENDING"
    stop(built, "old")
    built.org.cloud.advance(60)
    status = built.flink.get(f"{built.path}/new")["status"]
    assert status["phase"] == "RUNNING"
    partitions = ";".join(f"partition:{number},offset:0" for number in range(6))
    assert status["latest_offsets"] == {"stock_trades": partitions}


def test_it_waits_for_six_hours(built):
    built.run("old", CTAS)
    go_on(built, "new")
    built.org.cloud.advance(SIX_HOURS)
    status = built.flink.get(f"{built.path}/new")["status"]
    assert (status["phase"], "was not stopped" in status["detail"]) == ("FAILED", True)


@pytest.mark.parametrize(
    ("sql", "expected_message"),
    [
        (NEXT.replace("userid, quantity", "DISTINCT userid, quantity"), "stateless statements only"),
        (NEXT.replace("FROM stock_trades", "FROM stock_trades ORDER BY total"), "stateless statements only"),
        (NEXT.replace("FROM stock_trades", "FROM other_trades"), "reads other tables: stock_trades"),
        (NEXT.replace("`total`)", "`sum`)"), "Unknown target column 'sum'"),
        (NEXT.replace(", `total`)", ")"), "do not match"),
    ],
)
def test_statements_that_cant_take_over_offsets(built, sql, expected_message):
    built.run(
        "others", CTAS.replace("flat", "other_trades").replace("quantity * price AS total", "quantity, price")
    )
    built.run("old", CTAS)
    stop(built, "old")
    status = go_on(built, "new", sql)["status"]
    assert status["phase"] == "FAILED"
    assert expected_message in status["detail"]
    assert "latest_offsets" not in status


def test_statements_whose_offsets_cant_be_taken_over(built):
    assert "does not exist" in go_on(built, "new", after="nobody")["status"]["detail"]
    built.run("bad", "SELECT nothing FROM stock_trades")
    assert "is FAILED, not STOPPED" in go_on(built, "of-bad", after="bad")["status"]["detail"]
    built.run("old", CTAS)
    built.run("counts", "SELECT DISTINCT side FROM stock_trades")
    stop(built, "counts")
    assert "'counts' in" in go_on(built, "of-counts", after="counts")["status"]["detail"]
    go_on(built, "waiting")
    stop(built, "waiting")
    assert "has no offsets" in go_on(built, "of-waiting", after="waiting")["status"]["detail"]


@pytest.fixture(scope="module")
def cloud_of_flink(flink):
    with ConfluentCloud(seed=22, start=1_793_610_000, engine=FlinkEngine(flink)) as running:
        yield running


@pytest.fixture
def on_flink(cloud_of_flink):
    cloud_of_flink.reset()
    return Built(Organization(cloud_of_flink))


def test_each_record_is_read_once(on_flink):
    trades(on_flink, 4)
    on_flink.run("old", CTAS)
    stop(on_flink, "old")
    trades(on_flink, 3, first=4)
    assert go_on(on_flink, "new")["status"]["phase"] == "RUNNING"
    trades(on_flink, 2, first=7)
    on_flink.org.cloud.advance(60)
    stop(on_flink, "new")
    again = NEXT.replace("+ 1", "+ 2")
    assert go_on(on_flink, "newer", again, after="new")["status"]["phase"] == "RUNNING"
    trades(on_flink, 1, first=9)
    on_flink.org.cloud.advance(60)
    on_flink.flink.get(f"{on_flink.path}/newer")
    assert [row["total"] for row in rows(on_flink, "flat")] == [0, 10, 20, 30, 41, 51, 61, 71, 81, 92]


def test_a_stopped_statement_goes_on_where_it_stopped(on_flink):
    trades(on_flink, 2)
    on_flink.run("old", CTAS)
    stop(on_flink, "old")
    trades(on_flink, 2, first=2)
    one = on_flink.flink.get(f"{on_flink.path}/old")
    on_flink.flink.put(f"{on_flink.path}/old", one | {"spec": one["spec"] | {"stopped": False}}, 202)
    on_flink.flink.get(f"{on_flink.path}/old")
    assert [row["total"] for row in rows(on_flink, "flat")] == [0, 10, 20, 30]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT userid, ROW_NUMBER() OVER (PARTITION BY userid ORDER BY `$rowtime` ASC) AS total FROM stock_trades",
        "SELECT userid, LAG(price) OVER (ORDER BY `$rowtime`) AS total FROM stock_trades",
        "SELECT a.userid, b.price AS total FROM stock_trades a JOIN stock_trades b ON a.userid = b.userid",
        "SELECT userid, CAST(COUNT(*) AS INT) AS total FROM TABLE(TUMBLE(TABLE stock_trades, "
        "DESCRIPTOR(`$rowtime`), INTERVAL '1' MINUTE)) GROUP BY userid, window_start, window_end",
    ],
)
def test_flink_itself_finds_what_needs_state(on_flink, query):
    on_flink.run("old", CTAS)
    stop(on_flink, "old")
    status = go_on(on_flink, "new", f"INSERT INTO flat (userid, total) {query}")["status"]
    assert (status["phase"], "stateless statements only" in status["detail"]) == ("FAILED", True), status


def test_flink_refuses_columns_of_other_types(on_flink):
    on_flink.run("old", CTAS)
    stop(on_flink, "old")
    status = go_on(on_flink, "new", NEXT.replace("quantity * price + 1 AS total", "side AS total"))["status"]
    assert "column 'total' of table 'flat' has another type" in status["detail"]
    assert TRADES["fields"][0]["name"] == "side"
