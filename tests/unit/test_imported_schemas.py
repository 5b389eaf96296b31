"""Schemas made from tables, what is unknown of their tags, and what monitoring measures without a key."""

from __future__ import annotations

import itertools
import json

import attrs
import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.exports import check, contracts, topic_schema
from config.exports.avro_schema import BadSchema
from config.exports.personal import Finding
from config.exports.table_columns import list_spark_columns
from config.exports.topic_schema import REVIEWED_TAGS, TAGS, UNTAGGED
from config.toml_model import BadFile
from lakeferry.topics import avro
from lakeferry.topics.avro import UnknownType
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.checks import list_checks, measure_age_of_existing
from lambdas.monitoring.settings import Monitored, MonitoredTable
from lambdas.shared.errors import LakeferryError
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.layout import build_table_schema
from simulators.tableflow.topic import Topic
from tests.support.avro_schemas import AvroTypes

ORDERS = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {
            "name": "total",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        },
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "checksum", "type": {"type": "fixed", "name": "Sum", "size": 4}},
                    ],
                },
            },
        },
        {"name": "labels", "type": {"type": "map", "values": ["null", "double"]}},
    ],
}

CONTRACT = """
name = "orders"
version = 1
title = "Orders"
description = "The orders of a day."
owner = "sales"
grain = "one row per order"
source = { topic = "orders", event_time = "placed_at" }
window = { every = "day", zone = "UTC", from = 2026-11-01 }
delivery = { order_by = ["order_id"] }

[[column]]
name = "order_id"
from = "order_id"
type = "text"
title = "Order"
description = "The order's id"
personal = { treatment = "keep", reason = "The shop's own number" }

[[column]]
name = "status"
from = "status"
type = "text"
title = "Status"
description = "The status"
"""


def table_schema(schema, naming="DEFAULT"):
    """Return the schema of the table that Tableflow writes for a topic, as in its metadata."""
    table = build_table_schema(Topic("orders", schema), naming)
    return json.loads(table.model_dump_json())


def columns_of(schema):
    return list_spark_columns(topic_schema.from_avro(schema, "orders"))


@pytest.mark.parametrize("naming", ["DEFAULT", "PORTABLE"])
def test_a_schema_made_from_a_table_describes_the_same_columns(naming):
    made = avro.build_schema(table_schema(ORDERS, naming), "orders")
    fastavro.parse_schema({key: value for key, value in made.items() if key != TAGS})
    assert columns_of(made) == columns_of(ORDERS)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_so_does_that_of_any_table(seed):
    schema = {"type": "record", "name": "Any", "fields": list(AvroTypes(seed).fields(4))}
    try:
        expected = columns_of(schema)
        table = table_schema(schema)
    except (BadSchema, SchemaError):
        return
    assert columns_of(avro.build_schema(table, "orders")) == expected


def test_a_field_called_key_is_one_of_the_value():
    """Unless it is Tableflow's column with the record's key, which is binary."""
    key = {"id": 1, "name": "key", "type": "string", "required": True}
    record_key = {**key, "type": "binary"}
    (field,) = avro.build_schema({"fields": [key]}, "orders")["fields"]
    assert field == {"name": "key", "type": "string"}
    assert avro.build_schema({"fields": [record_key]}, "orders")["fields"] == []


def test_a_type_that_tableflow_does_not_write_is_named():
    table = {"fields": [{"id": 1, "name": "at", "type": "timestamp_ns", "required": True}]}
    with pytest.raises(UnknownType, match="column at has type timestamp_ns"):
        avro.build_schema(table, "orders")


@pytest.mark.parametrize(
    ("topic", "name"),
    [("orders", "orders"), ("shop.orders-v1", "shop_orders_v1"), ("9x", "_9x"), ("a1", "a1")],
)
def test_the_name_of_a_record_is_one_that_avro_allows(topic, name):
    assert avro.to_avro_name(topic) == name


def test_every_field_may_be_personal_until_somebody_has_looked():
    made = avro.build_schema(table_schema(ORDERS), "orders")
    assert (TAGS, made[TAGS]) == ("lakeferry:tags", "unknown")
    schema = topic_schema.from_avro(made, "orders")
    assert schema.personal.keys() == schema.fields.keys()
    assert set(schema.personal.values()) == {UNTAGGED}
    reviewed = topic_schema.from_avro(made | {TAGS: REVIEWED_TAGS}, "orders")
    assert reviewed.personal == topic_schema.from_avro(ORDERS, "orders").personal == {}


def test_a_field_is_marked_by_its_tag_or_by_what_it_is_copied_from():
    fields = [
        {"name": "plain", "type": "int"},
        {"name": "tagged", "type": "int", "confluent:tags": ["PII"]},
        {"name": "copied", "type": "int"},
    ]
    schema = topic_schema.from_avro({"type": "record", "name": "R", "fields": fields}, "orders")
    copy = Finding("a statement copies it", only_as_text=True)
    schema = attrs.evolve(schema, copied={"copied": copy})
    assert [schema.is_marked(name) for name in ("plain", "tagged", "copied")] == [False, True, True]
    assert schema.personal == {"tagged": Finding("it has the tag PII"), "copied": copy}
    assert schema.personal_inside_or_around("copied") == ["copied"]
    assert schema.personal_inside_or_around("copied", as_text=False) == []
    both = attrs.evolve(schema, copied={"tagged": copy})
    assert both.personal == {"tagged": Finding("it has the tag PII")}, "in numbers too"
    assert both.personal_inside_or_around("tagged", as_text=False) == ["tagged"]
    counted = Finding("a statement counts it")
    assert attrs.evolve(schema, copied={"tagged": counted}).personal == {"tagged": counted}
    unknown = attrs.evolve(schema, tags_unknown=True)
    assert unknown.personal == {"plain": UNTAGGED, **schema.personal}


@pytest.mark.parametrize(
    ("path", "outer", "expected"),
    [
        ("a", "a", True),
        ("a.b", "a", True),
        ("a[]", "a", True),
        ("a[].b", "a", True),
        ("a{}", "a", True),
        ("a{key}", "a", True),
        ("ab", "a", False),
        ("a", "a.b", False),
        ("b.a", "a", False),
    ],
)
def test_what_is_inside_of_a_field(path, outer, expected):
    assert topic_schema.is_inside(path, outer) is expected


def test_a_schema_file_that_cannot_be_used_is_named(tmp_path):
    file = tmp_path / "orders.avsc"
    with pytest.raises(BadSchema) as bad:
        topic_schema.load(file, "orders")
    assert str(bad.value) == f"{file}: cannot be read: No such file or directory"
    for content in (b"{", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(BadSchema) as bad:
            topic_schema.load(file, "orders")
        assert str(bad.value).startswith(f"{file}: cannot be read as an Avro schema in JSON (")


def test_another_word_about_the_tags_is_refused():
    with pytest.raises(BadSchema) as bad:
        topic_schema.from_avro({**ORDERS, TAGS: "yes"}, "orders")
    assert str(bad.value) == (
        'the schema of orders has "lakeferry:tags": "yes". Write "reviewed" if the personal fields have the tag '
        'PII, "unknown" if nobody has looked'
    )


def test_a_schema_that_flink_derives_has_no_tags_that_are_unknown():
    type_ = topic_schema.from_avro({**ORDERS, TAGS: "unknown"}, "orders").type
    derived = topic_schema.from_type(type_, "orders")
    assert (derived.topic, derived.type, derived.tags_unknown, derived.personal) == (
        "orders",
        type_,
        False,
        {},
    )


def test_without_a_key_only_the_tables_in_glue_are_measured():
    tables = [MonitoredTable("orders", "orders", database="lkc-1")]
    monitored = Monitored(cluster="lkc-1", tables=tables, tables_exist=True)
    assert [check.metric for check in list_checks(monitored, _NoVendor())] == [
        "GlueAgeHours",
        "IcebergAgeHours",
    ]


class _NoVendor:
    """Clients of which only Glue may be asked."""

    def lake(self, database):
        return _NoTables()


class _NoTables:
    def glue_age(self, table):
        raise AssertionError

    iceberg_age = glue_age


def test_a_table_without_commits_counts_as_a_week_old():
    def measure():
        raise LakeferryError(monitoring_errors.NO_COMMIT, "orders")

    assert measure_age_of_existing(measure) == 168.0
    assert measure_age_of_existing(itertools.repeat(2.0).__next__) == 2.0


def test_another_failure_stays_one():
    def measure():
        raise LakeferryError(monitoring_errors.NO_TABLE, "orders")

    with pytest.raises(LakeferryError):
        measure_age_of_existing(measure)


def test_unknown_tags_are_one_mistake_that_names_the_undecided_columns():
    schema = topic_schema.from_avro(avro.build_schema(table_schema(ORDERS), "orders"), "orders")
    with pytest.raises(BadFile) as bad:
        contracts.parse(CONTRACT, name="orders.toml", more_rules=check.rules(schema, check.NOT_JUDGED))
    (problem,) = bad.value.problems
    assert problem.key == "source.topic"
    assert 'its "lakeferry:tags" to "reviewed"' in problem.message
    assert problem.message.endswith("these columns: status")


def test_a_decision_for_each_column_is_enough():
    schema = topic_schema.from_avro(avro.build_schema(table_schema(ORDERS), "orders"), "orders")
    decided = CONTRACT.replace(
        'description = "The status"', 'description = "The status"\npersonal = { treatment = "drop" }'
    )
    assert contracts.parse(decided, name="orders.toml", more_rules=check.rules(schema, check.NOT_JUDGED))
