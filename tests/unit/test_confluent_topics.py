"""Topics and schemas."""

from __future__ import annotations

import json

import pytest
from confluent_context import AVRO, CLUSTER, ENV, IN_CLUSTER, KAFKA, context, listing, spec, wrote

from lambdas.confluent.resources import schema, topic
from lambdas.shared.errors import BadProperties, Conflict, InProgress, ParentMissing, Refused


def topic_spec(**given):
    return spec(topic, credentials="kafka", topic="trades", **IN_CLUSTER, **given)


def test_topic_create(server):
    server.answers[f"POST {KAFKA}/topics"] = (201, {})
    wanted = topic_spec(partitions="3", config={"retention.ms": "1", "cleanup.policy": "delete"})
    assert topic.create(context(server), wanted) == "trades"
    assert wrote(server)[0][1] == {
        "topic_name": "trades",
        "partitions_count": 3,
        "configs": [{"name": "cleanup.policy", "value": "delete"}, {"name": "retention.ms", "value": "1"}],
    }


@pytest.mark.parametrize(
    ("message", "error"),
    [("Topic 'trades' already exists.", Conflict), ("Topic 'trades' is marked for deletion.", InProgress), ("Bad name", Refused)],
)
def test_topic_create_reads_what_a_400_means(server, message, error):
    server.answers[f"POST {KAFKA}/topics"] = (400, {"error_code": 40002, "message": message})
    with pytest.raises(error) as raised:
        topic.create(context(server), topic_spec())
    assert type(raised.value) is error


def test_topic_update(server):
    now = [("retention.ms", "5", False), ("cleanup.policy", "delete", True), ("segment.ms", "9", False)]
    configs = [{"name": name, "value": value, "is_default": default} for name, value, default in now]
    server.answers[f"GET {KAFKA}/topics/trades"] = (200, {"partitions_count": 3})
    server.answers[f"GET {KAFKA}/topics/trades/configs"] = listing(*configs)
    server.answers[f"PATCH {KAFKA}/topics/trades"] = (200, {})
    server.answers[f"POST {KAFKA}/topics/trades/configs:alter"] = (204, None)
    same = topic_spec(partitions="2", config={"retention.ms": "5", "cleanup.policy": "delete"})
    topic.update(context(server), same, "trades")
    assert wrote(server) == []
    before = topic_spec(config={"segment.ms": "9", "cleanup.policy": "delete"})
    topic.update(context(server, previous=before), topic_spec(partitions="5", config={"retention.ms": "6"}), "trades")
    changes = [{"name": "retention.ms", "value": "6"}, {"name": "segment.ms", "operation": "DELETE"}]
    assert wrote(server) == [
        (f"PATCH {KAFKA}/topics/trades", {"partitions_count": 5}),
        (f"POST {KAFKA}/topics/trades/configs:alter", {"data": changes}),
    ]


def test_topic_of_a_cluster_that_is_gone(server):
    result = context(server, deleting=True)
    server.answers[f"GET {CLUSTER}"] = (404, {})
    assert topic.find_existing(result, topic_spec(), "trades") == []
    with pytest.raises(ParentMissing):
        topic.is_ready(context(server), topic_spec(), "trades")


def schema_spec(**given):
    return spec(schema, environment_id=ENV, credentials="sr", subject="orders-value", **{"schema": AVRO, **given})


def test_schema_create_and_delete(server):
    versions, config = "/subjects/orders-value/versions", "/config/orders-value"
    server.answers |= {
        f"GET {config}": (404, {"error_code": 40408, "message": "no config"}),
        f"PUT {config}": (200, {}),
        f"POST {versions}": (200, {"id": 1}),
        "DELETE /subjects/orders-value": (200, [1]),
        f"DELETE {config}": (200, {}),
    }
    wanted = schema_spec(compatibility="FULL", delete_permanently="true")
    assert schema.create(context(server), wanted) == "orders-value"
    schema.delete(context(server, notes={"subject": "new"}), wanted, "orders-value")
    assert wrote(server) == [
        (f"PUT {config}", {"compatibility": "FULL"}),
        (f"POST {versions}", {"schema": AVRO, "schemaType": "AVRO"}),
        ("DELETE /subjects/orders-value", None),
        ("DELETE /subjects/orders-value", None),
        (f"DELETE {config}", None),
    ]
    assert [sent.query for sent in server.writes()[2:4]] == [{}, {"permanent": "true"}]


@pytest.mark.parametrize(
    ("now", "wanted", "writes"),
    [
        ({"schema": AVRO.replace(" ", "")}, {}, 0),
        ({"schema": '{"fields":[],"name":"O","type":"record"}'}, {}, 0),
        ({"schema": AVRO.replace("O", "P")}, {}, 1),
        ({"schema": AVRO, "schemaType": "JSON"}, {}, 1),
        ({"schema": "message A {\n}", "schemaType": "PROTOBUF"}, {"schema": "message A { }", "schema_type": "PROTOBUF"}, 0),
        ({"schema": AVRO}, {"compatibility": "FULL"}, 0),
        ({"schema": AVRO}, {"compatibility": "NONE"}, 1),
    ],
)
def test_schema_update(server, now, wanted, writes):
    server.answers["GET /subjects/orders-value/versions/latest"] = (200, {"id": 7, "version": 2, **now})
    server.answers["GET /config/orders-value"] = (200, {"compatibilityLevel": "FULL"})
    server.answers["PUT /config/orders-value"] = server.answers["POST /subjects/orders-value/versions"] = (200, {})
    schema.update(context(server), schema_spec(**wanted), "orders-value")
    assert len(server.writes()) == writes
    outputs = schema.is_ready(context(server), schema_spec(**wanted), "orders-value")
    assert outputs == {"subject": "orders-value", "schema_id": "7", "version": "2"}


def test_a_subject_of_which_only_the_soft_delete_came_through_is_still_to_be_deleted(server):
    server.answers["GET /subjects"] = lambda sent: (
        200,
        ["orders-value", "orders-value-2"] if sent.query["deleted"] == "true" else [],
    )
    result = context(server, deleting=True, notes={"subject": "new"})
    assert schema.find_existing(result, schema_spec(delete_permanently="true"), None) == ["orders-value"]
    assert schema.find_existing(result, schema_spec(), None) == []
    assert schema.find_existing(context(server), schema_spec(), None) == []


def test_a_schema_that_is_no_json_is_refused_before_anything_is_made():
    with pytest.raises(BadProperties, match="is not JSON"):
        schema_spec(schema="message A {}")


def test_a_secret_is_sent_in_the_header_and_nowhere_else(server):
    server.answers[f"POST {KAFKA}/topics"] = (201, {})
    topic.create(context(server), topic_spec())
    assert "canary" not in json.dumps([(sent.route, sent.query, sent.body) for sent in server.sent])
