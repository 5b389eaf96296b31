"""Clients that nobody here wrote work against the simulator: confluent-kafka's Schema Registry client, and
confluent-sql.
"""

import json
from contextlib import closing

import confluent_sql
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from test_confluent_flink import CTAS, TRADES, Built
from test_confluent_flink_worker import produce, trade

from simulators.confluent.flink.engine import FlinkEngine
from simulators.confluent.server import ConfluentCloud
from tests.support.confluent_kit import LONG, Organization


@pytest.fixture
def registry():
    """Schema Registry's client, with a key that may do everything there."""
    with ConfluentCloud(seed=31) as cloud:
        org = Organization(cloud)
        environment = org.environment()
        org.cluster(environment)
        found = org.registry(environment)
        account = org.account("registrar")
        org.bind(account, "ResourceOwner", f"{found['metadata']['resource_name']}/subject=*")
        cloud.advance(LONG)
        key = ":".join(org.key(account, {"id": found["id"], "kind": "Cluster"}))
        with SchemaRegistryClient(
            {"url": found["spec"]["http_endpoint"], "basic.auth.user.info": key}
        ) as client:
            yield client


def test_schema_registry_client(registry):
    schema = Schema(json.dumps(TRADES), "AVRO")
    schema_id = registry.register_schema("trades-value", schema)
    assert json.loads(registry.get_schema(schema_id).schema_str) == TRADES
    assert registry.get_subjects() == ["trades-value"]
    latest = registry.get_latest_version("trades-value")
    assert (latest.schema_id, latest.version) == (schema_id, 1)
    assert registry.lookup_schema("trades-value", schema).version == 1
    narrower = TRADES | {"fields": [{"name": "new", "type": "string"}]}
    assert not registry.test_compatibility("trades-value", Schema(json.dumps(narrower), "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        registry.register_schema("trades-value", Schema(json.dumps(narrower), "AVRO"))
    assert refused.value.http_status_code == 409
    registry.set_compatibility("trades-value", "NONE")
    assert registry.get_compatibility("trades-value") == "NONE"
    assert registry.delete_subject("trades-value") == [1]


def connected(built):
    """confluent-sql's connection, as the runner."""
    key, secret = built.flink._session.auth
    return confluent_sql.connect(
        flink_api_key=key,
        flink_api_secret=secret,
        environment_id=built.environment,
        organization_id=built.org.id,
        compute_pool_id=built.pool,
        database="events",
        endpoint=built.flink.url,
        result_page_fetch_pause_millis=1,
        http_timeout_secs=120,
    )


def test_confluent_sql_makes_a_table():
    with ConfluentCloud(seed=33, time_scale=1000) as cloud:
        built = Built(Organization(cloud))
        with closing(connected(built)) as connection:
            statement = connection.execute_streaming_ddl(CTAS, statement_name="from-confluent-sql")
            assert statement.name == "from-confluent-sql"
            assert [listed_statement.name for listed_statement in connection.list_statements()] == [
                "from-confluent-sql"
            ]
        built.kafka.get(f"{built.topics}/stock_trades_with_totals")


def test_confluent_sql_reads_rows(flink):
    with ConfluentCloud(seed=35, time_scale=1000, engine=FlinkEngine(flink)) as cloud:
        built = Built(Organization(cloud))
        for number in range(3):
            produce(built, "stock_trades", 100001, TRADES, trade(number), 1_793_610_000_000 + number)
        with closing(connected(built)) as connection, connection.closing_cursor() as cursor:
            cursor.execute("SELECT userid, quantity * price AS total FROM stock_trades")
            assert sorted(cursor.fetchall()) == [("User_0", 0), ("User_0", 20), ("User_1", 10)]
