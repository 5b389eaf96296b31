"""From an Avro schema to the table that Tableflow makes of it, and the values through Parquet and back."""

import io
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import fastavro
import pyarrow.parquet as pq
import pytest

from simulators.tableflow.arrow import RecordError
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.kafka import Log, Sent
from simulators.tableflow.layout import build_table_schema
from simulators.tableflow.topic import Topic, load_topic
from tests.support.tableflow_kit import ROOT, SALES, TRADES, topic_of, writer

METADATA = {
    "topic": "string",
    "partition": "int",
    "headers": "map<string, binary>",
    "leader-epoch": "int",
    "offset": "long",
    "timestamp": "timestamptz",
    "timestamp-type": "string",
    "raw-key": "binary",
    "raw-value": "binary",
}


def columns(topic, naming):
    return [str(field).split(": ", 1)[1] for field in build_table_schema(topic, naming).fields]


def column_type(avro):
    return (
        str(build_table_schema(topic_of(("x", avro)), "DEFAULT").find_field("x"))
        .split(": ", 1)[1]
        .removeprefix("x: ")
    )


@pytest.mark.parametrize(
    "file", sorted((ROOT / "project" / "topics").glob("*.avsc")), ids=lambda file: file.stem
)
def test_shipped_topics_are_valid_avro_and_every_field_is_explained(file):
    schema = json.loads(file.read_text("utf-8"))
    fastavro.parse_schema(schema)
    assert load_topic(file).name == file.stem

    def undocumented(node):
        if isinstance(node, list):
            return [name for element in node for name in undocumented(element)]
        if not isinstance(node, dict):
            return []
        own = [item["name"] for item in node.get("fields", ()) if not item.get("doc")]
        return own + undocumented(list(node.values()))

    assert undocumented(schema) == []


@pytest.mark.parametrize("naming", ["DEFAULT", "PORTABLE"])
def test_a_trade_has_the_raw_key_first_its_fields_and_nine_metadata_columns_last(naming):
    fields = {
        "side": "string",
        "quantity": "int",
        "symbol": "string",
        "price": "int",
        "account": "string",
        "userid": "string",
    }
    names = {
        constant: f"$${constant}" if naming == "DEFAULT" else f"cflt_metadata_{constant.replace('-', '_')}"
        for constant in METADATA
    }
    assert columns(TRADES, naming) == [
        "key: optional binary",
        *(f"{name}: required {kind}" for name, kind in fields.items()),
        *(f"{names[name]}: optional {kind}" for name, kind in METADATA.items()),
    ]


def test_the_order_event_keeps_its_nesting():
    schema = build_table_schema(SALES, "DEFAULT")
    assert [schema.find_type(name).__class__.__name__ for name in ("customer", "ship_to", "order_lines")] == [
        "StructType",
        "StructType",
        "ListType",
    ]
    assert str(schema.find_type("order_lines.element.unit_price")) == "decimal(12, 4)"
    assert str(schema.find_type("order_lines.element.discount")) == "decimal(5, 4)"
    assert str(schema.find_type("customer.registered_at")) == "timestamptz"
    assert not schema.find_field("coupon_code").required


def logical(kind, logical_type, **more):
    return {"type": kind, "logicalType": logical_type, **more}


@pytest.mark.parametrize(
    ("avro", "iceberg"),
    [
        ("boolean", "required boolean"),
        ("int", "required int"),
        ("long", "required long"),
        ("float", "required float"),
        ("double", "required double"),
        ("string", "required string"),
        ("bytes", "required binary"),
        ({"type": "fixed", "name": "F", "size": 4}, "required fixed[4]"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "required string"),
        (logical("int", "date"), "required date"),
        (logical("int", "time-millis"), "required time"),
        (logical("long", "time-micros"), "required time"),
        (logical("long", "timestamp-millis"), "required timestamptz"),
        (logical("long", "timestamp-micros"), "required timestamptz"),
        (logical("long", "local-timestamp-millis"), "required timestamp"),
        (logical("long", "local-timestamp-micros"), "required timestamp"),
        (logical("bytes", "decimal", precision=9, scale=2), "required decimal(9, 2)"),
        (logical("fixed", "decimal", name="D", size=16, precision=38), "required decimal(38, 0)"),
        (logical("string", "uuid"), "required string"),
        (logical("string", "no-such-logical-type"), "required string"),
        (logical("string", "timestamp-millis"), "required string"),
        (logical("string", "decimal", precision=-3), "required string"),
        (logical("int", "timestamp-millis"), "required int"),
        (logical("long", "date"), "required long"),
        (logical("long", "time-millis"), "required long"),
        (logical("int", "time-micros"), "required int"),
        (logical("bytes", "uuid"), "required binary"),
        (logical("fixed", "uuid", name="U", size=16), "required fixed[16]"),
        (logical("bytes", "decimal", scale=2), "required decimal(10, 2)"),
        (logical("bytes", "decimal", precision=9, scale="2"), "required decimal(9, 0)"),
        (logical("bytes", "Decimal", precision=9, scale=2), "required decimal(9, 2)"),
        ({"type": {"type": "string"}}, "required string"),
        ({"type": ["null", {"type": "int"}]}, "optional int"),
        (["null", "int"], "optional int"),
        (["int", "null"], "optional int"),
        ({"type": "array", "items": ["null", "int"]}, "required list<int>"),
        ({"type": "map", "values": "long"}, "required map<string, long>"),
        (["null", "int", "string"], "optional struct<int: optional int, string: optional string>"),
    ],
    ids=json.dumps,
)
def test_each_avro_type_becomes_the_iceberg_type_that_tableflow_gives_it(avro, iceberg):
    found = column_type(avro)
    assert found.replace("3: ", "").replace("4: ", "") == iceberg


def test_branches_of_a_union_are_named_in_full_only_where_short_names_meet():
    branch = {"type": "record", "name": "Sale", "fields": [{"name": "n", "type": "int"}]}
    both = [{**branch, "namespace": "shop"}, {**branch, "namespace": "web"}]
    fields = build_table_schema(topic_of(("x", [*both, "long"])), "DEFAULT").find_type("x").fields
    assert [field.name for field in fields] == ["shop_Sale", "web_Sale", "long"]


def test_a_branch_has_the_name_of_its_avro_type_and_not_of_its_logical_type():
    union = [
        "null",
        "string",
        logical("bytes", "decimal", precision=9, scale=2),
        logical("long", "timestamp-millis"),
    ]
    fields = build_table_schema(topic_of(("x", union)), "DEFAULT").find_type("x").fields
    assert [(field.name, str(field.field_type)) for field in fields] == [
        ("string", "string"),
        ("bytes", "decimal(9, 2)"),
        ("long", "timestamptz"),
    ]


def test_values_of_two_branches_with_one_short_name_are_kept(tmp_path):
    branch = {"type": "record", "name": "Sale", "fields": [{"name": "n", "type": "int"}]}
    topic = topic_of(("x", [branch | {"namespace": "shop.v1"}, branch | {"namespace": "shop.v2"}]))
    flow = writer(tmp_path)
    flow.create_table(topic)
    values = [{"x": (f"shop.{version}.Sale", {"n": number})} for version, number in (("v1", 1), ("v2", 2))]
    rows = (
        flow.append("things", Log("things").append(Sent(0, b"k", value) for value in values))
        .scan()
        .to_arrow()
        .to_pylist()
    )
    assert [row["x"] for row in rows] == [
        {"shop_v1_Sale": {"n": 1}, "shop_v2_Sale": None},
        {"shop_v1_Sale": None, "shop_v2_Sale": {"n": 2}},
    ]


ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "namespace": "io.confluent.connect.avro",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
}


@pytest.mark.parametrize(
    "items",
    [ENTRY, ENTRY | {"name": "Own", "namespace": "shop", "connect.internal.type": "MapEntry"}],
    ids=["usual", "named"],
)
def test_an_array_of_map_entries_is_a_map(tmp_path, items):
    topic = topic_of(("labels", {"type": "array", "items": items}))
    assert column_type({"type": "array", "items": items}).startswith("required map<int, string>")
    flow = writer(tmp_path)
    flow.create_table(topic)
    value = {"labels": [{"key": 1, "value": "x"}, {"key": 2, "value": None}]}
    (row,) = flow.append("things", Log("things").append([Sent(0, b"k", value)])).scan().to_arrow().to_pylist()
    assert row["labels"] == [(1, "x"), (2, None)]


@pytest.mark.parametrize("reference", ["Place", {"type": "Place"}, {"type": {"type": "Place"}}], ids=str)
def test_a_named_type_can_be_used_twice(reference):
    place = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
    schema = build_table_schema(topic_of(("home", place), ("work", reference)), "DEFAULT")
    assert schema.find_field("home.city").field_type == schema.find_field("work.city").field_type


PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "int"}]}
RECURSIVE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


@pytest.mark.parametrize(
    ("fields", "expected_message"),
    [
        ([("tree", RECURSIVE)], "field tree.next: record Node contains itself"),
        ([("x", "null")], "field x: the type is 'null'"),
        ([("x", ["null"])], "field x: the type is null alone"),
        ([("x", logical("bytes", "decimal", precision=39))], "field x: Iceberg has no decimal(39, 0)"),
        ([("x", logical("bytes", "decimal", precision=0))], "field x: Iceberg has no decimal(0, 0)"),
        ([("x", logical("bytes", "decimal", precision="9"))], "precision must be a positive integer"),
        ([("x", ["int", logical("int", "date")])], "two branches of one type"),
        ([("x", ["string", ["int", "long"]])], "can't have another union in it"),
        ([("x", {"type": "fixed", "name": "F", "size": 0})], "a fixed type of 0 bytes"),
        (
            [("x", {"type": "array", "items": {**ENTRY, "fields": ENTRY["fields"][:1]}})],
            "the array encodes a map",
        ),
        (
            [("x", [{**PAIR, "namespace": "a"}, {**PAIR, "namespace": "b"}, {**PAIR, "name": "a_Pair"}])],
            "the same column name",
        ),
        ([("x", logical("bytes", "decimal", precision=2, scale=3))], "scale must be less than or equal"),
        ([("x", logical("long", "timestamp-nanos"))], "field x: timestamp-nanos needs Iceberg format 3"),
        ([("x", "no_such_type")], "not a valid Avro schema: UnknownType no_such_type"),
        ([("x-y", "int")], "field x-y: Avro takes letters, digits"),
        ([("x", "int"), ("x", "int")], "two of one name"),
        ([], "record Thing has no fields"),
        ([("x", "int", "text")], "not a valid Avro schema"),
    ],
)
def test_what_no_table_can_hold_is_refused_by_field(fields, expected_message):
    with pytest.raises(SchemaError) as refused:
        topic_of(*fields)
    assert expected_message in str(refused.value)


def test_a_topic_must_be_a_record_with_the_fields_that_it_names():
    record = {"type": "record", "name": "T", "fields": [{"name": "n", "type": "int"}]}
    for arguments, result in [
        (("t", {"type": "enum", "name": "E", "symbols": ["A"]}), "a record at the top"),
        (("t/x", record), "topic name 't/x'"),
        (("t", record, "nope"), "names the field 'nope'"),
        (("t", record, "n", "n"), "needs a timestamp field"),
    ]:
        with pytest.raises(SchemaError, match=result):
            Topic(*arguments)


@pytest.mark.parametrize(
    ("text", "expected_message"), [("{", "not a readable JSON file"), ("[]", "one record, found list")]
)
def test_a_broken_schema_file_is_named(tmp_path, text, expected_message):
    (tmp_path / "broken.avsc").write_text(text)
    with pytest.raises(SchemaError, match=rf"broken\.avsc: .*{expected_message}"):
        load_topic(tmp_path / "broken.avsc")


OUTER = {
    "type": "record",
    "name": "Outer",
    "fields": [
        {"name": "tags", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
        {"name": "either", "type": {"type": "array", "items": ["int", "string"]}},
    ],
}
#: Name, Avro type and a value.
FIELDS = [
    ("flag", "boolean", True),
    ("small", "int", -(1 << 31)),
    ("big", "long", (1 << 63) - 1),
    ("single", "float", 1.5),
    ("real", "double", math.pi),
    ("text", "string", 'Cre\u0300me\n"br\u00fbl\u00e9e" \u65e5\u672c \U0001fad6'),
    ("data", "bytes", bytes(range(256))),
    ("four", {"type": "fixed", "name": "Four", "size": 4}, b"\x00\xff\x00\xff"),
    ("colour", {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}, "GREEN"),
    ("day", logical("int", "date"), date(9999, 12, 31)),
    ("clock", logical("int", "time-millis"), time(23, 59, 59, 999_000)),
    ("fine_clock", logical("long", "time-micros"), time(23, 59, 59, 999_999)),
    ("at", logical("long", "timestamp-millis"), datetime(1, 1, 1, tzinfo=UTC)),
    (
        "at_micros",
        logical("long", "timestamp-micros"),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    ("local", logical("long", "local-timestamp-millis"), datetime(1969, 12, 31, 23, 59, 59, 999_000)),
    ("local_micros", logical("long", "local-timestamp-micros"), datetime(2026, 11, 2, 10, 15, 0, 1)),
    (
        "money",
        logical("bytes", "decimal", precision=38, scale=10),
        Decimal("9999999999999999999999999999.9999999999"),
    ),
    (
        "money_fixed",
        logical("fixed", "decimal", name="Money", size=8, precision=12, scale=4),
        Decimal("-12345678.9012"),
    ),
    ("id", logical("string", "uuid"), "9a3b5c1e-0000-4000-8000-0123456789ab"),
    ("maybe", ["null", "string"], None),
    ("numbers", {"type": "array", "items": ["null", "int"]}, [1, None, 3]),
    ("counts", {"type": "map", "values": "long"}, {"a": 1, "b": 2}),
    ("choice", ["null", "int", "string", PAIR], None),
    ("nested", OUTER, {"tags": [{"k": "v"}, {}], "either": [("int", 1), ("string", "one")]}),
]
EVERYTHING = topic_of(*((name, avro) for name, avro, _ in FIELDS))
FULL = {name: value for name, _, value in FIELDS}


def stored(tmp_path, *values, naming="DEFAULT"):
    flow = writer(tmp_path, naming)
    flow.create_table(EVERYTHING)
    return flow.append("things", Log("things").append(Sent(0, b"k", value) for value in values))


def test_every_type_keeps_its_values_through_parquet(tmp_path):
    choices = [None, ("int", 5), ("string", "five"), ("Pair", {"a": 5})]
    rows = stored(tmp_path, *({**FULL, "choice": choice} for choice in choices)).scan().to_arrow().to_pylist()
    found = rows[0]
    for name in FULL.keys() - {"choice", "nested", "counts"}:
        assert found[name] == FULL[name], name
    assert dict(found["counts"]) == FULL["counts"]
    assert [dict(tag) for tag in found["nested"]["tags"]] == FULL["nested"]["tags"]
    assert found["nested"]["either"] == [{"int": 1, "string": None}, {"int": None, "string": "one"}]
    assert [row["choice"] for row in rows] == [
        None,
        {"int": 5, "string": None, "Pair": None},
        {"int": None, "string": "five", "Pair": None},
        {"int": None, "string": None, "Pair": {"a": 5}},
    ]


def test_the_raw_value_is_the_avro_message_as_kafka_has_it(tmp_path):
    value = {**FULL, "choice": ("int", 5)}
    raw = stored(tmp_path, value).scan().to_arrow()["$$raw-value"][0].as_py()
    assert raw[:5] == b"\x00" + (100001).to_bytes(4, "big")
    decoded = fastavro.schemaless_reader(io.BytesIO(raw[5:]), dict(EVERYTHING.schema), None)
    assert decoded["text"] == FULL["text"]
    assert decoded["money"] == FULL["money"]
    assert decoded["at_micros"] == FULL["at_micros"]


def test_metadata_columns_hold_the_record(tmp_path):
    flow = writer(tmp_path)
    topic = topic_of(("n", "int"))
    at = datetime(2026, 11, 2, 10, 15, 0, 123_000, tzinfo=UTC)
    millis = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    records = Log("things", 6).append(
        [Sent(millis, b"k1", {"n": 7}, (("h", b"1"), ("h", b"2"), ("g", b"\xff")))]
    )
    flow.create_table(topic)
    (row,) = flow.append("things", records).scan().to_arrow().to_pylist()
    # Kafka may have a header twice, a map may not: the last one stays.
    assert sorted(row.pop("$$headers")) == [("g", b"\xff"), ("h", b"2")]
    assert row.pop("$$raw-value").endswith(b"\x0e")
    assert row == {
        "key": b"k1",
        "n": 7,
        "$$topic": "things",
        "$$partition": records[0].partition,
        "$$leader-epoch": 0,
        "$$offset": 0,
        "$$timestamp": at,
        "$$timestamp-type": "CreateTime",
        "$$raw-key": b"k1",
    }


@pytest.mark.parametrize(
    ("naming", "offset", "epoch"),
    [
        ("DEFAULT", "_x24_x24offset", "_x24_x24leader_x2Depoch"),
        ("PORTABLE", "cflt_metadata_offset", "cflt_metadata_leader_epoch"),
    ],
)
def test_parquet_has_names_that_avro_could_have_too(tmp_path, naming, offset, epoch):
    table = stored(tmp_path, FULL, naming=naming)
    (task,) = table.scan().plan_files()
    file = pq.ParquetFile(task.file.file_path.removeprefix("file://"))
    assert {offset, epoch} <= set(file.schema_arrow.names)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    ids = [int(item.metadata[b"PARQUET:field_id"]) for item in file.schema_arrow]
    assert ids == [field.field_id for field in table.schema().fields]


@pytest.mark.parametrize(
    ("change", "expected_message"),
    [
        ({"small": 1 << 31}, "does not fit"),
        ({"text": None}, "field text is null in 1 records"),
        ({"money": "no"}, "does not fit"),
        ({"nested": {"tags": None, "either": []}}, "does not fit"),
        ({"colour": "BLUE"}, "does not fit"),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_never_written(tmp_path, change, expected_message):
    with pytest.raises(RecordError, match=expected_message):
        stored(tmp_path, {**FULL, **change})
    assert not any(name.endswith(".parquet") for name in (entry.name for entry in tmp_path.rglob("*")))
