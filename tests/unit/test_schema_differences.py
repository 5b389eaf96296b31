"""How a described schema differs from what exists, which topics are imported, and what Glue's tables say."""

from __future__ import annotations

import json

import attrs
import pytest

from config.deployments.confluent_model import Tableflow, Topic
from config.exports import topic_schema
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.topics import avro, schemas, tables
from lakeferry.topics.schemas import Differences, FoundSchema
from lakeferry.topics.tables import GlueTable
from tests.support import shipped

ID = {"name": "id", "type": "string"}
MAIL = {"name": "email", "type": "string"}
TAGGED = {**MAIL, "confluent:tags": ["PII"]}
PARTY = {"name": "party", "type": {"type": "record", "name": "P", "fields": [ID, TAGGED]}}


def record(*fields, **more):
    return {"type": "record", "name": "Order", "fields": list(fields), **more}


def compare(described, found, read_from=schemas.TABLE, describer="the file"):
    schema = topic_schema.from_avro(described, "orders")
    return schemas.compare(schema, FoundSchema(found, read_from), describer)


def test_equal_schemas_have_no_differences():
    differences = compare(record(ID, TAGGED), record(TAGGED, ID))
    assert differences == Differences()
    assert (differences.sentences, differences.may_export_untagged) == ((), True)


def test_columns_that_are_lost_new_or_of_another_type_are_named_in_this_order():
    described = record(MAIL, {"name": "n", "type": "int"}, ID, {"name": "gone", "type": "int"})
    found = record(
        {"name": "z", "type": "int"}, ID, {"name": "n", "type": "long"}, {"name": "a", "type": "int"}
    )
    assert compare(described, found).of_columns == (
        "email is not in the table",
        "gone is not in the table",
        "z is new",
        "a is new",
        'n is "long", and the file has "integer"',
    )
    assert compare(
        record(ID, MAIL), record({**ID, "type": "int"}), schemas.REGISTRY, "create.sql"
    ).of_columns == (
        "email is not in the registered schema",
        'id is "integer", and create.sql has "string"',
    )


def test_tags_that_only_what_exists_has_are_named():
    differences = compare(
        record(ID, MAIL), record(ID, TAGGED, {**TAGGED, "name": "other"}), describer="create.sql"
    )
    assert differences.untagged == ("email",)
    assert differences.sentences == ("other is new", "email has the tag PII, and not in create.sql")
    assert compare(record(ID, TAGGED), record(ID, MAIL)).untagged == ()
    nested = {**PARTY, "type": {**PARTY["type"], "fields": [ID, MAIL]}}
    assert compare(record(nested), record(PARTY)).untagged == ("party.email",)


def test_a_description_whose_tags_are_unknown_exports_nothing_untagged():
    unknown = record(ID, MAIL, **{topic_schema.TAGS: topic_schema.UNKNOWN_TAGS})
    assert compare(unknown, record(ID, TAGGED)) == Differences(
        (), ("email",), may_export_untagged=False, describer="the file"
    )


def test_a_file_that_is_no_schema_differs(tmp_path):
    file = tmp_path / "orders.avsc"
    file.write_text("{")
    (sentence,) = schemas.compare_to_file(file, FoundSchema(record(ID), schemas.TABLE), "orders").sentences
    assert sentence.startswith(
        f"the file is not a schema: {file}: cannot be read as an Avro schema in JSON ("
    )
    file.write_text(json.dumps(record(ID, MAIL)))
    assert schemas.compare_to_file(file, FoundSchema(record(ID), schemas.TABLE), "orders").sentences == (
        "email is not in the table",
    )


def change(loaded, **parts):
    return DeploymentContext(attrs.evolve(loaded, deployment=attrs.evolve(loaded.deployment, **parts)))


def test_topics_are_selected_in_the_order_in_which_they_are_named():
    ctx = DeploymentContext(shipped.load_existing())

    def select(*names):
        return [topic.name for topic in schemas.select_topics(ctx, list(names))]

    assert select() == ["sales_orders", "stock_trades"]
    assert select("stock_trades") == ["stock_trades"]
    assert select("stock_trades", "sales_orders") == ["stock_trades", "sales_orders"]
    with pytest.raises(CommandFailed) as refused:
        select("sales_orders", "nosuch", "neither")
    assert (refused.value.code, refused.value.message, refused.value.hint) == (
        "TOPICS-UNKNOWN",
        "nosuch, neither is not a table of the file",
        "Add [[topics]] to project/deployments/existing.toml. Tables of the file: sales_orders, stock_trades",
    )


def test_only_tables_in_glue_can_be_imported_where_tables_are_created():
    topics = [
        Topic(name="plain"),
        Topic(name="shown", tableflow=Tableflow()),
        Topic(name="managed", tableflow=Tableflow(storage="managed")),
    ]
    loaded = shipped.load("dev")
    assert [topic.name for topic in schemas.select_topics(change(loaded, topics=topics), [])] == ["shown"]
    with pytest.raises(CommandFailed) as refused:
        schemas.select_topics(change(loaded, topics=topics[:1]), [])
    assert (refused.value.message, refused.value.hint) == (
        "the file has no tables",
        "Add [[topics]] to project/deployments/dev.toml. Tables of the file: none",
    )


def test_a_file_is_written_at_once_in_a_folder_that_need_not_exist(tmp_path):
    file = tmp_path / "new" / "topics" / "orders.avsc"
    for text in ("{}\n", "Müller"):
        schemas.write_at_once(file, text)
        assert file.read_bytes() == text.encode()
        assert list(file.parent.iterdir()) == [file]


LOCATION = "s3://acme-tables/1/v1/orders/metadata/3.metadata.json"


@pytest.mark.parametrize(
    ("parameters", "metadata"),
    [
        ({"table_type": "ICEBERG", "metadata_location": LOCATION}, LOCATION),
        ({"table_type": "iceberg", "metadata_location": LOCATION}, LOCATION),
        ({"table_type": "EXTERNAL_TABLE", "metadata_location": LOCATION}, ""),
        ({"metadata_location": LOCATION}, ""),
        ({"table_type": "ICEBERG"}, ""),
        (None, ""),
    ],
)
def test_only_an_iceberg_table_leads_to_metadata(parameters, metadata):
    assert tables.read_table({"Name": "orders", "Parameters": parameters}) == GlueTable("orders", metadata)
    assert tables.read_table({"Name": "orders"}) == GlueTable("orders", "")


def test_metadata_is_in_a_bucket_under_a_key():
    table = GlueTable("orders", LOCATION)
    assert (table.bucket, table.key) == ("acme-tables", "1/v1/orders/metadata/3.metadata.json")


def test_the_database_is_the_one_of_the_source():
    assert tables.find_database(DeploymentContext(shipped.load_existing())) == "lkc-abc123"


def test_the_current_schema_is_the_one_with_its_id():
    listed = [{"schema-id": number, "fields": [number]} for number in (0, 1, 2)]
    for current in (0, 1, 2):
        found = tables.find_schema({"current-schema-id": current, "schemas": listed})
        assert found == {"schema-id": current, "fields": [current]}


#: Types of Iceberg, and what stands for each in Avro.
TYPES = [
    ("boolean", "boolean"),
    ("int", "int"),
    ("long", "long"),
    ("float", "float"),
    ("double", "double"),
    ("string", "string"),
    ("binary", "bytes"),
    ("date", {"type": "int", "logicalType": "date"}),
    ("time", {"type": "long", "logicalType": "time-micros"}),
    ("timestamptz", {"type": "long", "logicalType": "timestamp-micros"}),
    ("timestamp", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("uuid", {"type": "string", "logicalType": "uuid"}),
    ("decimal(12, 2)", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
    ("decimal(12,2)", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
    ("fixed[16]", {"type": "fixed", "name": "shop_orders_1", "size": 16}),
    ({"type": "list", "element": "int", "element-required": True}, {"type": "array", "items": "int"}),
    (
        {"type": "list", "element": "int", "element-required": False},
        {"type": "array", "items": ["null", "int"]},
    ),
    (
        {"type": "map", "key": "string", "value": "int", "value-required": True},
        {"type": "map", "values": "int"},
    ),
    (
        {"type": "map", "key": "string", "value": "int", "value-required": False},
        {"type": "map", "values": ["null", "int"]},
    ),
    (
        {"type": "map", "key": "fixed[2]", "value": "fixed[4]", "value-required": False},
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "shop_orders_3",
                "connect.internal.type": "MapEntry",
                "fields": [
                    {"name": "key", "type": {"type": "fixed", "name": "shop_orders_2", "size": 2}},
                    {
                        "name": "value",
                        "type": ["null", {"type": "fixed", "name": "shop_orders_1", "size": 4}],
                    },
                ],
            },
        },
    ),
    (
        {"type": "struct", "fields": [{"name": "a", "type": "int", "required": False}]},
        {
            "type": "record",
            "name": "shop_orders_1",
            "fields": [{"name": "a", "type": ["null", "int"], "default": None}],
        },
    ),
]


@pytest.mark.parametrize(("iceberg", "expected"), TYPES)
def test_each_type_of_a_table_has_one_in_avro(iceberg, expected):
    columns = [
        {"name": "must", "type": iceberg, "required": True},
        {"name": "may", "type": "int", "required": False},
    ]
    assert avro.build_schema({"fields": columns}, "shop.orders") == {
        "type": "record",
        "name": "shop_orders",
        "lakeferry:tags": "unknown",
        "fields": [
            {"name": "must", "type": expected},
            {"name": "may", "type": ["null", "int"], "default": None},
        ],
    }


@pytest.mark.parametrize(
    ("iceberg", "path", "kind"),
    [
        ("timestamp_ns", "c", "timestamp_ns"),
        ("xdecimal(1, 2)", "c", "xdecimal(1, 2)"),
        ({"type": "list", "element": "variant", "element-required": True}, "c[]", "variant"),
        ({"type": "map", "key": "string", "value": "variant", "value-required": True}, "c{}", "variant"),
        ({"type": "map", "key": "variant", "value": "int", "value-required": True}, "c{key}", "variant"),
        (
            {"type": "struct", "fields": [{"name": "f", "type": "variant", "required": True}]},
            "c.f",
            "variant",
        ),
        ({"type": "variant"}, "c", "variant"),
    ],
)
def test_the_place_of_a_type_that_tableflow_does_not_write_is_named(iceberg, path, kind):
    with pytest.raises(avro.UnknownType) as unknown:
        avro.build_schema({"fields": [{"name": "c", "type": iceberg, "required": True}]}, "orders")
    assert str(unknown.value) == f"column {path} has type {kind}, which Tableflow doesn't write"


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        ("key", "string", 1),
        ("key", "boolean", 1),
        ("key", {"type": "list", "element": "binary", "element-required": True}, 1),
        ("key", "binary", 0),
        ("other", "binary", 1),
    ],
)
def test_only_a_binary_key_is_that_of_the_record(name, kind, count):
    fields = [{"name": name, "type": kind, "required": True}]
    assert len(avro.build_schema({"fields": fields}, "orders")["fields"]) == count
