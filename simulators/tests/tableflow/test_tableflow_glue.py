"""The tables in an AWS Glue catalog, read by Spark with the Iceberg that Glue 5.1 has."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from glue_jobs.platform import DEFAULT_RELEASE
from lakeferry.local.bootstrap import locate_jar
from lakeferry.local.java import find_java
from simulators.data.generators import SalesMix, generate_sales_orders, generate_stock_trades
from simulators.tableflow.kafka import Log
from simulators.tableflow.writer import Tableflow, TableLocation
from tests.support.tableflow_kit import SALES, TRADES, glue_catalog, numbered, sent, topic_of

START = datetime(2026, 10, 5, tzinfo=UTC)
END = datetime(2026, 11, 9, tzinfo=UTC)
ORDERS = generate_sales_orders(SalesMix(orders=300, customers=60, awkward=0.1), seed=5, start=START, end=END)
DATABASE = "lkc-spark1"
THINGS = topic_of(("n", "int"))
ACCOUNTS = topic_of(("owner", "string"), ("balance", "long"), name="accounts")


def account(owner, balance):
    return sent(owner, None if balance is None else {"owner": owner, "balance": balance})


@pytest.fixture(scope="module")
def flow(aws):
    return Tableflow(glue_catalog(aws), TableLocation(aws.new_bucket(), cluster_id=DATABASE))


@pytest.fixture(scope="module")
def filled(flow):
    """Fill the database."""
    flow.materialise(SALES, ORDERS, commits=2)
    flow.materialise(TRADES, generate_stock_trades(500, seed=1, start=START, end=END), compact_every=1)
    flow.materialise(THINGS, numbered(20), commits=4)
    flow.evolve(topic_of(("n", "long"), ("more", ["null", "string"], None)))
    flow.append("things", Log("things").append([sent("k", {"n": 1 << 40, "more": "new"})]))
    flow.compact("things")
    flow.expire("things", keep=1)
    log = Log("accounts", 3)
    flow.create_table(ACCOUNTS, "upsert")
    flow.append("accounts", log.append([account("a", 1), account("b", 2), account("c", 3), account("a", 4)]))
    flow.append("accounts", log.append([account("b", 20), account("c", None), account("d", 5)]))
    flow.append("accounts", log.append([account("a", None), account("e", 1), account("e", None)]))
    flow.append("accounts", log.append([account("a", 7)]))


@pytest.fixture(scope="module")
def spark(aws, filled):
    """The answers of one Spark to all queries."""
    things = f"lake.`{DATABASE}`.things"
    accounts = f"lake.`{DATABASE}`.accounts"
    sales = f"lake.`{DATABASE}`.sales_orders"
    queries = {
        "sales": (
            "SELECT `$$partition` AS p, min(`$$offset`) AS low, max(`$$offset`) + 1 AS high, count(*) AS n,"
            " max(`$$timestamp`) AS newest, count_if(CAST(key AS STRING) = order_id) AS keyed,"
            f" count_if(CAST(`$$headers`['source'] AS STRING) = channel) AS headed FROM {sales} GROUP BY 1"
        ),
        "lines": (
            "SELECT count(*) AS n, sum(line.quantity * line.unit_price) AS total, "
            f"collect_set(line.product) AS products FROM (SELECT explode(order_lines) AS line FROM {sales})"
        ),
        "trades": f"SELECT count(*) AS n FROM lake.`{DATABASE}`.stock_trades",
        "operations": f"SELECT operation FROM lake.`{DATABASE}`.stock_trades.snapshots ORDER BY committed_at",
        "things": f"SELECT n, more FROM {things} ORDER BY n",
        "accounts": f"SELECT owner, balance FROM {accounts} ORDER BY owner",
        "deletes": f"SELECT sum(record_count) AS n FROM {accounts}.delete_files WHERE content = 2",
    }
    java = find_java().home
    environment = aws.server.environment(os.environ) | {
        "JAVA_HOME": str(java),
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_reader.py"))],
        input=json.dumps(
            {
                "jars": [str(locate_jar(DEFAULT_RELEASE, jar)) for jar in DEFAULT_RELEASE.jars],
                "queries": queries,
            }
        ),
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_glue_has_a_database_named_like_the_cluster_and_a_table_for_each_topic(aws, filled):
    tables = {
        listed_table["Name"]: listed_table
        for listed_table in aws.glue.get_tables(DatabaseName=DATABASE)["TableList"]
    }
    assert tables.keys() == {"sales_orders", "stock_trades", "things", "accounts"}
    parameters = tables["sales_orders"]["Parameters"]
    assert parameters["table_type"] == "ICEBERG"
    assert parameters["metadata_location"].startswith(
        tables["sales_orders"]["StorageDescriptor"]["Location"] + "/metadata/"
    )


def test_pyiceberg_and_spark_see_the_same_order_lines(flow, spark):
    rows = flow.create_table(SALES).scan().to_arrow()["order_lines"].to_pylist()
    amounts = [line["quantity"] * line["unit_price"] for lines in rows for line in lines]
    assert (spark["lines"][0]["n"], Decimal(spark["lines"][0]["total"])) == (len(amounts), sum(amounts))


def test_spark_reads_awkward_text_as_it_was_sent(spark):
    assert set(spark["lines"][0]["products"]) == {
        line["product"] for order in ORDERS for line in order.value["order_lines"]
    }


def test_spark_reads_keys_headers_offsets_and_record_times(spark):
    assert sum(row["n"] for row in spark["sales"]) == len(ORDERS)
    assert all((row["low"], row["high"]) == (0, row["n"]) for row in spark["sales"])
    assert all(row["keyed"] == row["headed"] == row["n"] for row in spark["sales"])
    newest = datetime.fromtimestamp(max(order.timestamp for order in ORDERS) / 1000, UTC)
    assert max(row["newest"] for row in spark["sales"]).startswith(f"{newest:%Y-%m-%d %H:%M:%S}")


def test_spark_reads_a_compacted_table(spark):
    assert spark["trades"] == [{"n": 500}]
    assert spark["operations"] == [{"operation": "append"}, {"operation": "replace"}]


def test_spark_reads_rows_of_both_schemas(spark):
    assert spark["things"] == [{"n": n, "more": None} for n in range(20)] + [{"n": 1 << 40, "more": "new"}]


def test_spark_honours_upserts_and_tombstones(flow, spark):
    assert spark["deletes"] == [{"n": 6}]
    assert spark["accounts"] == [
        {"owner": "a", "balance": 7},
        {"owner": "b", "balance": 20},
        {"owner": "d", "balance": 5},
    ]
    ours = flow.read("accounts").select(["owner", "balance"]).sort_by("owner").to_pylist()
    assert ours == spark["accounts"]
