"""Flink statements over real HTTP, without a worker: their lives, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.support.confluent_kit import LONG, REGION, Client, scope_of

ROOT = Path(__file__).resolve().parents[3]
TRADES = {
    "type": "record",
    "name": "StockTrade",
    "namespace": "ksql",
    "fields": [
        *({"name": name, "type": "string"} for name in ("side", "symbol", "account", "userid")),
        *({"name": name, "type": "int"} for name in ("quantity", "price")),
    ],
}
CTAS = """
CREATE TABLE IF NOT EXISTS stock_trades_with_totals
DISTRIBUTED INTO 3 BUCKETS
WITH ('changelog.mode' = 'append', 'kafka.cleanup-policy' = 'delete',
      'kafka.producer.compression.type' = 'zstd', 'value.fields-include' = 'all')
AS SELECT `$rowtime` AS trade_timestamp, userid, side, symbol, quantity, price, quantity * price AS total_price
FROM stock_trades -- the source
;
"""


class Built:
    """A topic with a schema, a pool, and a runner with the kickstarter's roles; `flink` calls as the
    runner.
    """

    def __init__(self, org):
        self.org = org
        self.environment = org.environment()
        self.cluster = org.cluster(self.environment)
        self.admin = org.administrator(self.cluster)
        self.kafka = org.kafka(self.cluster, self.admin)
        self.topics = f"/kafka/v3/clusters/{self.cluster['id']}/topics"
        self.kafka.post(self.topics, {"topic_name": "stock_trades"}, 201)
        self.runner = org.account("runner")
        name = self.cluster["metadata"]["resource_name"]
        registry = org.registry(self.environment)["metadata"]["resource_name"]
        for role, crn in (
            ("FlinkDeveloper", org.crn),
            ("ResourceOwner", f"{name}/topic=*"),
            ("ResourceOwner", f"{name}/transactional-id=*"),
            ("ResourceOwner", f"{registry}/subject=*"),
        ):
            org.bind(self.runner, role, crn)
        org.cloud.advance(LONG)
        org.schemas(self.environment, self.runner).post(
            "/subjects/stock_trades-value/versions", {"schema": json.dumps(TRADES)}, 200
        )
        self.pool = self._pool()
        self.flink = self.client(self.runner)
        self.path = f"/sql/v1/organizations/{org.id}/environments/{self.environment}/statements"

    def _pool(self):
        where = {"cloud": "AWS", "region": REGION, "environment": {"id": self.environment}}
        made = self.org.control.post(
            "/fcpm/v2/compute-pools", {"spec": {"display_name": "p", "max_cfu": 10} | where}, 202
        )
        self.org.cloud.advance(LONG)
        return made["id"]

    def client(self, account):
        (region,) = self.org.control.get("/fcpm/v2/regions", region_name=REGION)["data"]
        resource = {
            "id": region["id"],
            "kind": "Region",
            "api_version": "fcpm/v2",
            "environment": self.environment,
        }
        return Client(region["http_endpoint"], *self.org.key(account, resource))

    def body(self, name, sql, **changed):
        spec = {
            "statement": sql,
            "properties": {"sql.current-catalog": "lake", "sql.current-database": "events"},
            "compute_pool_id": self.pool,
            "principal": self.runner,
        }
        return {"name": name, "spec": spec | changed}

    def run(self, name, sql, **changed):
        """The statement once it left PENDING."""
        assert (
            self.flink.post(self.path, self.body(name, sql, **changed), 201)["status"]["phase"] == "PENDING"
        )
        self.org.cloud.advance(60)
        return self.flink.get(f"{self.path}/{name}")


@pytest.fixture
def built(org):
    return Built(org)


def test_a_table_from_a_query(built, cloud):
    made = built.run("ctas", CTAS)
    assert made["status"]["phase"] == "RUNNING", made["status"]
    assert made["status"]["traits"]["sql_kind"] == "CREATE_TABLE_AS"
    topic = built.kafka.get(f"{built.topics}/stock_trades_with_totals")
    assert topic["partitions_count"] == 3
    settings = {
        item["name"]: item["value"]
        for item in built.kafka.get(f"{built.topics}/stock_trades_with_totals/configs")["data"]
    }
    assert (settings["compression.type"], settings["cleanup.policy"]) == ("zstd", "delete")
    schemas = cloud._simulation.organization.schema_registries.copy().popitem()[1].schemas
    fields = json.loads(schemas.latest("stock_trades_with_totals-value").text)["fields"]
    names = ["trade_timestamp", "userid", "side", "symbol", "quantity", "price", "total_price"]
    assert [field["name"] for field in fields] == names
    built.flink.post(built.path, built.body("ctas", "SELECT 1"), 409)
    built.flink.delete(f"{built.path}/ctas", 202)
    assert built.flink.get(f"{built.path}/ctas")["status"]["phase"] == "DELETING"
    cloud.advance(60)
    built.flink.get(f"{built.path}/ctas", 404)
    built.flink.delete(f"{built.path}/ctas", 404)
    (
        built.kafka.get(f"{built.topics}/stock_trades_with_totals"),
        "deleting a statement doesn't undo what it did",
    )
    assert (
        built.run("drop", "DROP TABLE IF EXISTS `stock_trades_with_totals`;")["status"]["phase"]
        == "COMPLETED"
    )
    built.kafka.get(f"{built.topics}/stock_trades_with_totals", 404)
    assert schemas.latest("stock_trades_with_totals-value") is None
    assert (
        built.run("drop-again", "DROP TABLE IF EXISTS stock_trades_with_totals")["status"]["phase"]
        == "COMPLETED"
    )
    assert built.run("drop-hard", "DROP TABLE stock_trades_with_totals")["status"]["phase"] == "FAILED"


@pytest.mark.parametrize(
    ("sql", "expected_message"),
    [
        ("SELEKT 1", "parse failed"),
        (CTAS.replace("changelog.mode", "kafka.partitions"), "kafka.partitions"),
        (CTAS.replace("'append'", "'sometimes'"), "changelog.mode"),
        (CTAS.replace("FROM stock_trades", "FROM elsewhere"), "elsewhere"),
        (CTAS.replace("userid,", "usrid,"), "usrid"),
        ("INSERT INTO nowhere SELECT side FROM stock_trades", "nowhere"),
        ("SELECT side FROM", "SQL"),
    ],
)
def test_statements_that_fail(built, sql, expected_message):
    status = built.run("bad", sql)["status"]
    assert status["phase"] == "FAILED"
    assert expected_message in status["detail"]
    (exception,) = built.flink.get(f"{built.path}/bad/exceptions")["data"]
    assert exception["message"] == status["detail"]


@pytest.mark.parametrize(
    "changed",
    [
        {"properties": {"sql.current-catalog": "elsewhere", "sql.current-database": "events"}},
        {"properties": {"sql.current-catalog": "lake", "sql.current-database": "elsewhere"}},
        {"compute_pool_id": "lfcp-none"},
    ],
)
def test_statements_about_what_is_not_there(built, changed):
    assert built.run("lost", CTAS, **changed)["status"]["phase"] == "FAILED"


@pytest.mark.parametrize("name", ["with_underscore", "Upper", "-dash", "x" * 101, ""])
def test_statement_names(built, name):
    built.flink.post(built.path, built.body(name, CTAS), 422)


def test_statements_cant_be_made_stopped(built):
    built.flink.post(built.path, built.body("s", CTAS, stopped=True), 422)


def test_stopping_and_going_on(built):
    made = built.run("ctas", CTAS)
    one = f"{built.path}/ctas"
    built.flink.put(one, made | {"spec": made["spec"] | {"stopped": True}}, 202)
    stopped = built.flink.get(one)
    assert stopped["status"]["phase"] == "STOPPED"
    built.flink.put(one, made, 409)
    built.flink.put(one, stopped | {"spec": stopped["spec"] | {"statement": "SELECT 1"}}, 400)
    built.flink.put(one, stopped | {"spec": stopped["spec"] | {"properties": {}}}, 400)
    built.flink.put(one, stopped | {"spec": stopped["spec"] | {"stopped": False}}, 202)
    assert built.flink.get(one)["status"]["phase"] == "RUNNING"


def test_statements_list(built, cloud):
    for name in ("a", "b"):
        built.flink.post(built.path, built.body(name, CTAS), 201)
    assert [item["name"] for item in built.flink.get(built.path)["data"]] == ["a", "b"]
    assert built.flink.get(built.path, spec__compute_pool_id="lfcp-none")["data"] == []
    first = built.flink.get(built.path, page_size=1)
    assert [item["name"] for item in built.flink("GET", first["metadata"]["next"], expect=200)["data"]] == [
        "b"
    ]


def test_flink_keys_and_roles(built, org, cloud):
    Client(built.flink.url).get(built.path, 401)
    stranger = org.account("stranger")
    client = built.client(stranger)
    client.get(built.path, 403)
    org.bind(stranger, "FlinkDeveloper", f"{org.crn}/environment={built.environment}")
    cloud.advance(LONG)
    client.get(built.path)
    client.post(built.path, built.body("as-runner", CTAS), 403)
    org.bind(stranger, "Assigner", f"{org.crn}/service-account={built.runner}")
    cloud.advance(LONG)
    client.post(built.path, built.body("as-runner", CTAS), 201)
    client.post(built.path, built.body("as-myself", "SELECT side FROM stock_trades", principal=stranger), 201)
    cloud.advance(60)
    status = client.get(f"{built.path}/as-myself")["status"]
    assert status["phase"] == "FAILED", "without rights on the topic its table can't be seen"
    other = org.environment("other")
    client.get(f"/sql/v1/organizations/{org.id}/environments/{other}/statements", 401)
    assert scope_of(built.cluster).endswith(built.cluster["id"])


def test_a_pool_that_goes_takes_its_statements_down(built, org):
    built.run("ctas", CTAS)
    org.control.delete(f"/fcpm/v2/compute-pools/{built.pool}", environment=built.environment)
    assert built.flink.get(f"{built.path}/ctas")["status"]["phase"] == "FAILED"


@pytest.mark.parametrize("name", sorted(entry.name for entry in (ROOT / "project" / "flink").iterdir()))
def test_shipped_statements_run_on_paper_too(built, name):
    """Without a worker their tables and schemas are made, so that everything around them can be tried."""
    schema = json.loads((ROOT / "project" / "topics" / "store_orders.avsc").read_text())
    built.kafka.post(built.topics, {"topic_name": "store_orders"}, 201)
    client = built.org.schemas(built.environment, built.runner)
    client.post("/subjects/store_orders-value/versions", {"schema": json.dumps(schema)}, 200)
    made = built.run("create", (ROOT / "project" / "flink" / name / "create.sql").read_text())
    assert made["status"]["phase"] == "RUNNING", made["status"]
    assert client.get(f"/subjects/{name}-value/versions") == [1]
    assert (
        built.run("undo", (ROOT / "project" / "flink" / name / "undo.sql").read_text())["status"]["phase"]
        == "COMPLETED"
    )
    client.get(f"/subjects/{name}-value/versions", 404)
