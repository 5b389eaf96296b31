"""Kafka REST, Schema Registry and Connect over real HTTP."""

import base64
import io
import json
import re

import fastavro
import pytest

from simulators.confluent.kafka_log import unframe_value
from tests.support.confluent_kit import LONG, Client

AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


class Built:
    def __init__(self, org):
        self.org = org
        self.environment = org.environment()
        self.cluster = org.cluster(self.environment)
        self.id = self.cluster["id"]
        self.admin = org.administrator(self.cluster)
        self.kafka = org.kafka(self.cluster, self.admin)
        self.topics = f"/kafka/v3/clusters/{self.id}/topics"
        self.acls = f"/kafka/v3/clusters/{self.id}/acls"
        self.connect = f"/connect/v1/environments/{self.environment}/clusters/{self.id}"

    def topic(self, name="stock_trades", **more):
        made = self.kafka.post(self.topics, {"topic_name": name} | more, 201)
        self.org.cloud.advance(LONG)
        return made

    def acl(self, principal, operation, topic=None):
        where = ("TOPIC", topic) if topic else ("CLUSTER", "kafka-cluster")
        return {
            "resource_type": where[0],
            "resource_name": where[1],
            "pattern_type": "LITERAL",
            "principal": f"User:{principal}",
            "host": "*",
            "operation": operation,
            "permission": "ALLOW",
        }

    def datagen(self, account, **more):
        config = {
            "connector.class": "DatagenSource",
            "name": "source",
            "kafka.auth.mode": "SERVICE_ACCOUNT",
            "kafka.service.account.id": account,
            "kafka.topic": "stock_trades",
            "output.data.format": "AVRO",
            "quickstart": "STOCK_TRADES",
            "tasks.max": "1",
        }
        return {name: value for name, value in (config | more).items() if value is not None}

    def start(self, account, **more):
        """Create the connector; what the vendor answers."""
        return self.org.control.post(
            f"{self.connect}/connectors", {"name": "source", "config": self.datagen(account, **more)}, 201
        )

    def run(self, seconds):
        """Let time pass, and connectors produce."""
        self.org.cloud.advance(seconds)
        self.org.cloud.objects()


@pytest.fixture
def built(org):
    return Built(org)


def messages(cloud, cluster, topic):
    """What lies in the topic; Kafka's own protocol, by which clients would read it, isn't simulated."""
    return cloud._simulation.organization.clusters[cluster].topics[topic].messages


def test_topic_lives_and_dies(built, cloud):
    made = built.kafka.post(
        built.topics, {"topic_name": "t", "configs": [{"name": "retention.ms", "value": "86400000"}]}, 201
    )
    assert made["partitions_count"] == 6
    path = f"{built.topics}/t"
    assert built.kafka.get(path, 404)["error_code"] == 40403, "not seen at once"
    cloud.advance(LONG)
    built.kafka.get(path)
    assert built.kafka.post(built.topics, {"topic_name": "t"}, 400)["error_code"] == 40002
    settings = {item["name"]: item for item in built.kafka.get(f"{path}/configs")["data"]}
    assert settings["retention.ms"]["value"] == "86400000"
    assert settings["cleanup.policy"]["is_default"]
    change = {
        "data": [
            {"name": "retention.ms", "operation": "DELETE"},
            {"name": "cleanup.policy", "value": "compact"},
        ]
    }
    assert built.kafka.post(f"{path}/configs:alter", change, 204) is None
    assert built.kafka.get(f"{path}/configs/cleanup.policy")["value"] == "compact"
    assert built.kafka.get(f"{path}/configs/retention.ms")["is_default"]
    assert built.kafka.patch(path, {"partitions_count": 9})["partitions_count"] == 9
    built.kafka.patch(path, {"partitions_count": 3}, 400)
    built.kafka.delete(path)
    built.kafka.get(path, 404)
    assert "marked for deletion" in built.kafka.post(built.topics, {"topic_name": "t"}, 400)["message"]
    cloud.advance(LONG)
    built.kafka.post(built.topics, {"topic_name": "t"}, 201)


@pytest.mark.parametrize(
    "body",
    [
        {"topic_name": "no spaces"},
        {"topic_name": "t", "partitions_count": 0},
        {"topic_name": "t", "configs": [{"name": "made.up", "value": "1"}]},
        {"topic_name": "t", "configs": [{"name": "retention.ms", "value": "long"}]},
        {"topic_name": "t", "configs": [{"name": "compression.type", "value": "gzip"}]},
        {"topic_name": "t", "replication_factor": 1},
    ],
)
def test_topics_that_cant_be(built, body):
    assert built.kafka.post(built.topics, body, 400)["error_code"] == 40002


def test_what_the_vendor_s_terraform_provider_sets_can_be_set(built):
    """Its list of editable settings, with min.insync.replicas; the deployment file for production sets
    that.
    """
    editable = {"min.insync.replicas": "2", "max.compaction.lag.ms": "1", "confluent.topic.type": "standard"}
    configs = [{"name": name, "value": value} for name, value in editable.items()]
    built.kafka.post(built.topics, {"topic_name": "t", "configs": configs}, 201)


def test_validate_only_makes_nothing(built, cloud):
    built.kafka.post(built.topics, {"topic_name": "t", "validate_only": True}, 200)
    assert cloud.objects()["topics"] == []


def test_kafka_needs_its_own_key(built, org):
    wrong = built.kafka.url
    for client in (Client(wrong), Client(wrong, *org.key(built.admin)), org.tableflow(built.admin)):
        result = Client(wrong, *client._session.auth or ()).raw("GET", built.topics)
        assert result.status_code == 401
        assert result.text.startswith("<html>")


def test_a_key_without_rights_lists_nothing_and_makes_nothing(built, org, cloud):
    built.topic("t")
    stranger = org.account("stranger")
    client = org.kafka(built.cluster, stranger)
    assert client.get(built.topics)["data"] == []
    assert client.get(f"{built.topics}/t", 403)["error_code"] == 40301
    client.post(built.topics, {"topic_name": "mine"}, 403)
    client.post(built.acls, built.acl(stranger, "WRITE", "t"), 403)
    built.kafka.post(built.acls, built.acl(stranger, "WRITE", "t"), 201)
    assert [item["topic_name"] for item in client.get(built.topics)["data"]] == ["t"], (
        "WRITE includes DESCRIBE"
    )
    org.bind(stranger, "ResourceOwner", f"{built.cluster['metadata']['resource_name']}/topic=mine*")
    client.post(built.topics, {"topic_name": "mine"}, 403)
    cloud.advance(LONG)
    client.post(built.topics, {"topic_name": "mine-too"}, 201)
    client.post(built.topics, {"topic_name": "other"}, 403)


def test_acls(built, org, cloud):
    account = org.account("producer")
    write = built.acl(account, "WRITE", "t")
    read = built.acl(account, "READ", "t")
    built.kafka.post(built.acls, write, 201)
    built.kafka.post(built.acls, write, 201)
    built.kafka.post(f"{built.acls}:batch", {"data": [read, built.acl(account, "DESCRIBE")]}, 201)
    assert len(cloud.objects()["acls"]) == 3, "the same one twice is one"
    (found,) = built.kafka.get(built.acls, operation="READ")["data"]
    assert found["resource_name"] == "t"
    assert built.kafka.get(built.acls, principal="User:sa-nobody")["data"] == []
    built.kafka.delete(built.acls, 400, resource_type="TOPIC")
    loose = {"resource_type": "TOPIC", "pattern_type": "ANY", "operation": "ANY", "permission": "ANY"}
    assert len(built.kafka.delete(built.acls, 200, **loose)["data"]) == 2
    assert len(built.kafka.get(built.acls)["data"]) == 1
    built.kafka.post(built.acls, write | {"operation": "FLY"}, 400)
    built.kafka.post(built.acls, write | {"principal": "User:sa-nobody"}, 400)


def test_acls_name_service_accounts_by_numbers_unless_asked_for_ids(built, org):
    """The vendor's OpenAPI file: answers to `User:` and without a principal have numbers, answers to
    `UserV2:` have ids.
    """
    one = org.account("one")
    other = org.account("other")
    built.kafka.post(
        f"{built.acls}:batch", {"data": [built.acl(one, "READ", "t"), built.acl(other, "READ", "t")]}, 201
    )
    built.kafka.post(built.acls, built.acl("*", "READ", "u"), 201)

    def principals(**query):
        return [item["principal"] for item in built.kafka.get(built.acls, **query)["data"]]

    first, second, everybody = principals()
    assert re.fullmatch(r"User:\d+", first)
    assert re.fullmatch(r"User:\d+", second)
    assert (first != second, everybody) == (True, "User:*")
    assert principals(principal=f"User:{one}") == [first]
    assert principals(principal=first) == [first]
    assert principals(principal="User:*") == ["User:*"]
    assert principals(principal=f"UserV2:{one}") == [f"User:{one}"]
    assert principals(principal="UserV2:*") == [f"User:{one}", f"User:{other}", "User:*"]
    assert principals(principal=first.replace("User:", "UserV2:")) == []
    every = {"resource_type": "TOPIC", "pattern_type": "ANY", "operation": "ANY", "permission": "ANY"}
    for principal, granted in ((f"User:{one}", [second, "User:*"]), (second, ["User:*"])):
        assert len(built.kafka.delete(built.acls, 200, **every, principal=principal)["data"]) == 1
        assert principals() == granted


def test_an_acl_keeps_its_number_when_its_account_is_deleted(built, org):
    account = org.account("short-lived")
    built.kafka.post(built.acls, built.acl(account, "READ", "t"), 201)
    (before,) = built.kafka.get(built.acls)["data"]
    assert before["principal"] != f"User:{account}"
    org.control.delete(f"/iam/v2/service-accounts/{account}")
    assert built.kafka.get(built.acls)["data"] == [before]


def test_acls_of_a_prefix_and_acls_that_deny(built, org):
    account = org.account("maker")
    client = org.kafka(built.cluster, account)
    built.kafka.post(built.acls, built.acl(account, "CREATE", "mine-") | {"pattern_type": "PREFIXED"}, 201)
    client.post(built.topics, {"topic_name": "mine-1"}, 201)
    client.post(built.topics, {"topic_name": "other"}, 403)
    built.kafka.post(built.acls, built.acl(account, "CREATE", "mine-2") | {"permission": "DENY"}, 201)
    client.post(built.topics, {"topic_name": "mine-2"}, 403)
    built.kafka.post(
        built.acls, built.acl(built.admin, "CREATE", "not-even-mine") | {"permission": "DENY"}, 201
    )
    built.kafka.post(built.topics, {"topic_name": "not-even-mine"}, 403)


def test_producing_a_record(built, cloud):
    built.topic("t")
    value = {"type": "BINARY", "data": base64.b64encode(b"hello").decode()}
    answer = built.kafka.post(
        f"{built.topics}/t/records", {"key": {"type": "STRING", "data": "k"}, "value": value}, 200
    )
    assert (answer["offset"], answer["value"]["size"]) == (0, 5)
    (kept,) = messages(cloud, built.id, "t")
    assert (kept.key, kept.value) == (b"k", b"hello")


@pytest.mark.parametrize("data", ["%", 5])
def test_a_record_that_is_not_base64_is_refused(built, data):
    built.topic("t")
    built.kafka.post(f"{built.topics}/t/records", {"value": {"type": "BINARY", "data": data}}, 400)
    built.kafka.post(f"{built.topics}/t/records", {"headers": [{"name": "h", "value": data}]}, 400)


def test_topics_of_a_deleted_cluster_are_gone(built, org, cloud):
    built.topic("t")
    org.control.delete(f"/cmk/v2/clusters/{built.id}", environment=built.environment)
    cloud.advance(LONG)
    built.kafka.get(f"{built.topics}/t", 404)


@pytest.fixture
def schemas(built, org, cloud):
    registry = org.registry(built.environment)
    account = org.account("registrar")
    for role in ("ResourceOwner",):
        org.bind(account, role, f"{registry['metadata']['resource_name']}/subject=*")
    cloud.advance(LONG)
    return org.schemas(built.environment, account)


def body(schema, kind=None):
    return {"schema": json.dumps(schema)} | ({"schemaType": kind} if kind else {})


def test_schema_registry_keeps_versions(schemas):
    first = schemas.post("/subjects/t-value/versions", body(AVRO), 200)
    assert schemas.post("/subjects/t-value/versions", body(AVRO), 200)["id"] == first["id"]
    wider = AVRO | {"fields": [*AVRO["fields"], {"name": "b", "type": ["null", "string"], "default": None}]}
    second = schemas.post("/subjects/t-value/versions", body(wider), 200)
    assert second["id"] == first["id"] + 1
    assert schemas.get("/subjects/t-value/versions") == [1, 2]
    assert schemas.get("/subjects/t-value/versions/latest")["version"] == 2
    assert json.loads(schemas.get(f"/schemas/ids/{first['id']}")["schema"]) == AVRO
    assert schemas.post("/subjects/t-value", body(AVRO), 200)["version"] == 1
    assert schemas.post("/subjects/other/versions", body(AVRO), 200)["id"] == first["id"], (
        "one schema, one id"
    )


def test_schema_registry_refuses_what_breaks_readers(schemas):
    schemas.post("/subjects/t-value/versions", body(AVRO), 200)
    narrower = AVRO | {"fields": [{"name": "b", "type": "string"}]}
    result = schemas.post("/subjects/t-value/versions", body(narrower), 409)
    assert "/b" in result["message"]
    check = "/compatibility/subjects/t-value/versions/latest?verbose=true"
    assert schemas.post(check, body(narrower), 200)["is_compatible"] is False
    schemas.put("/config/t-value", {"compatibility": "NONE"}, 200)
    assert schemas.get("/config/t-value")["compatibilityLevel"] == "NONE"
    schemas.post("/subjects/t-value/versions", body(narrower), 200)
    schemas.put("/config/t-value", {"compatibility": "SOME"}, 422)
    assert schemas.delete("/config/t-value", 200) == "NONE"
    schemas.delete("/config/t-value", 404)
    assert schemas.get("/config")["compatibilityLevel"] == "BACKWARD"
    assert schemas.get("/config/other", 404)["error_code"] == 40408


def test_a_subject_goes_softly_then_for_good(schemas):
    schemas.post("/subjects/t-value/versions", body(AVRO), 200)
    assert schemas.delete("/subjects/t-value", 404, permanent="true")["error_code"] == 40405
    assert schemas.delete("/subjects/t-value", 200) == [1]
    assert schemas.get("/subjects") == []
    assert schemas.get("/subjects", deleted="true") == ["t-value"]
    schemas.delete("/subjects/t-value", 404)
    assert schemas.delete("/subjects/t-value", 200, permanent="true") == [1]
    assert schemas.get("/subjects", deleted="true") == []


def test_other_schema_types(schemas):
    schemas.post("/subjects/j/versions", body({"type": "object"}, "JSON"), 200)
    proto = {"schema": 'syntax = "proto3"; message M { int32 a = 1; }', "schemaType": "PROTOBUF"}
    schemas.post("/subjects/p/versions", proto, 200)
    assert schemas.get("/subjects/p/versions/1")["schemaType"] == "PROTOBUF"
    assert schemas.post("/subjects/a/versions", {"schema": '{"type": "nope"}'}, 422)["error_code"] == 42201
    schemas.post("/subjects/a/versions", {"schema": "{}", "schemaType": "XML"}, 422)


def test_schema_registry_rights(built, org, schemas, cloud):
    stranger = org.schemas(built.environment, org.account("stranger"))
    schemas.post("/subjects/t-value/versions", body(AVRO), 200)
    assert stranger.get("/subjects") == []
    stranger.post("/subjects/t-value/versions", body(AVRO), 403)
    stranger.get("/subjects/t-value/versions", 403)
    Client(schemas.url).get("/subjects", 401)


@pytest.fixture
def source(built, org, cloud):
    """The account of a connector that may do what it must."""
    built.topic()
    account = org.account("connector")
    built.kafka.post(built.acls, built.acl(account, "WRITE", "stock_trades"), 201)
    built.kafka.post(built.acls, built.acl(account, "DESCRIBE"), 201)
    return account


def test_datagen_produces_stock_trades(built, org, source, cloud):
    made = built.start(source)
    assert "id" not in made, "the vendor's answer has no id"
    status = f"{built.connect}/connectors/source/status"
    assert org.control.get(status)["connector"]["state"] == "PROVISIONING"
    assert cloud.objects()["subjects"] == []
    cloud.advance(200)
    assert org.control.get(status)["connector"]["state"] == "RUNNING"
    assert [subject.partition("/")[2] for subject in cloud.objects()["subjects"]] == ["stock_trades-value"]
    built.run(60)
    found = messages(cloud, built.id, "stock_trades")
    assert 300 < len(found) < 800, "about four a second"
    schema = fastavro.parse_schema(
        json.loads(
            cloud._simulation.organization.schema_registries.copy().popitem()[1].schemas.by_id[100001].text
        )
    )
    for row in found:
        schema_id, encoded = unframe_value(row.value)
        trade = fastavro.schemaless_reader(io.BytesIO(encoded), schema)
        assert schema_id == 100001
        assert trade["side"] in ("BUY", "SELL")
        assert 1 <= trade["quantity"] < 5000
        assert 5 <= trade["price"] < 1000
        assert trade["userid"] in {f"User_{n}" for n in range(1, 10)}
        assert row.key == trade["symbol"].encode()
        assert [name for name, _ in row.headers] == ["task.generation", "task.id", "current.iteration"]
    assert len({row.partition for row in found}) > 1


def test_connector_lists(built, org, source, cloud):
    built.start(source)
    assert org.control.get(f"{built.connect}/connectors") == ["source"]
    expanded = org.control.get(f"{built.connect}/connectors", expand="info,status,id")["source"]
    assert expanded["id"]["id"].startswith("lcc-")
    assert expanded["info"]["config"]["quickstart"] == "STOCK_TRADES"
    assert org.control.get(f"{built.connect}/connectors/source")["type"] == "source"
    org.control.post(f"{built.connect}/connectors", {"name": "source", "config": built.datagen(source)}, 400)
    org.control.get(f"{built.connect}/connectors/none", 404)


def test_connector_pauses_and_ends(built, org, source, cloud):
    one = f"{built.connect}/connectors/source"
    org.control.put(f"{one}/config", built.datagen(source), 200)
    org.control.put(f"{one}/config", built.datagen(source, **{"connector.class": None}), 400)
    built.run(200)
    org.control("PUT", f"{one}/pause", expect=202)
    before = len(messages(cloud, built.id, "stock_trades"))
    cloud.advance(60)
    assert org.control.get(f"{one}/status")["connector"]["state"] == "PAUSED"
    assert len(messages(cloud, built.id, "stock_trades")) == before
    org.control("PUT", f"{one}/resume", expect=202)
    built.run(60)
    assert before < len(messages(cloud, built.id, "stock_trades")) < before + 800, (
        "what was missed isn't made up for"
    )
    assert org.control.delete(one, 200) == {"error": None}
    org.control.get(one, 404)
    left = len(messages(cloud, built.id, "stock_trades"))
    built.run(60)
    assert len(messages(cloud, built.id, "stock_trades")) == left
    assert cloud.objects()["subjects"], "what it made stays"


def test_connector_without_rights_fails(built, org, cloud):
    built.topic()
    account = org.account("powerless")
    built.start(account)
    cloud.advance(LONG)
    result = org.control.get(f"{built.connect}/connectors/source/status")["connector"]
    assert result["state"] == "FAILED"
    assert account in result["trace"]


@pytest.mark.parametrize(
    "changed",
    [
        {"kafka.service.account.id": "sa-nobody"},
        {"quickstart": "PIZZAS"},
        {"quickstart": None},
        {"quickstart": None, "schema.string": "{"},
        {"quickstart": None, "schema.string": json.dumps(AVRO), "schema.keyfield": "z"},
        {"output.data.format": "CSV"},
        {"kafka.topic": None},
        {"tasks.max": 1},
    ],
)
def test_connectors_that_cant_be(built, org, source, changed):
    config = built.datagen(source, **changed)
    checked = org.control.put(f"{built.connect}/connector-plugins/DatagenSource/config/validate", config, 200)
    assert checked["error_count"] >= 1
    result = org.control.post(f"{built.connect}/connectors", {"name": "source", "config": config}, 400)
    assert set(result) == {"code", "message"}


def test_a_good_configuration_has_no_errors(built, org, source):
    checked = org.control.put(
        f"{built.connect}/connector-plugins/DatagenSource/config/validate", built.datagen(source), 200
    )
    assert checked["error_count"] == 0


def test_datagen_of_an_own_schema(built, org, source, cloud):
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {
                "name": "id",
                "type": {"type": "int", "arg.properties": {"iteration": {"start": 1000, "step": 1}}},
            },
            {
                "name": "day",
                "type": {
                    "type": "int",
                    "logicalType": "date",
                    "arg.properties": {"range": {"min": 18000, "max": 19000}},
                },
            },
            {"name": "status", "type": {"type": "string", "arg.properties": {"options": ["accepted"]}}},
            {"name": "code", "type": {"type": "string", "arg.properties": {"regex": "[A-C]{2}-\\d|x+"}}},
            {
                "name": "lines",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Line",
                        "fields": [{"name": "net", "type": "double"}],
                    },
                    "arg.properties": {"length": {"min": 1, "max": 5}},
                },
            },
        ],
    }
    more = {
        "quickstart": None,
        "schema.string": json.dumps(schema),
        "schema.keyfield": "id",
        "max.interval": "100",
    }
    built.start(source, **more)
    built.run(200)
    registry = cloud._simulation.organization.schema_registries.copy().popitem()[1].schemas
    registered = json.loads(registry.latest("stock_trades-value").text)
    assert "arg.properties" not in json.dumps(registered)
    parsed = fastavro.parse_schema(registered)
    orders = [
        fastavro.schemaless_reader(io.BytesIO(unframe_value(message.value)[1]), parsed)
        for message in messages(cloud, built.id, "stock_trades")
    ]
    assert [order["id"] for order in orders] == list(range(1000, 1000 + len(orders)))
    assert len(orders) > 100
    assert {len(order["lines"]) for order in orders} == {1, 2, 3, 4}
    assert all(order["code"][0] in "ABCx" for order in orders)


def test_a_cluster_with_connectors_stays(built, org, source):
    built.start(source)
    result = org.control.delete(f"/cmk/v2/clusters/{built.id}", 403, environment=built.environment)
    assert "associated connect clusters" in result["errors"][0]["detail"]
