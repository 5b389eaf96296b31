"""A topic's fields, and which of them are personal, for every form of Avro schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.exports.avro_schema import BadSchema
from config.exports.topic_schema import TopicSchema, from_avro, load

TOPICS = Path(__file__).resolve().parents[2] / "project" / "topics"


def record(*fields, name: str = "Event", **more) -> dict:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind, **more) -> dict:
    return {"name": name, "type": kind, **more}


PII = {"confluent:tags": ["PII"]}


def schema(*fields, **more) -> TopicSchema:
    return from_avro(record(*fields, **more), "topic")


def personal(found: TopicSchema) -> set[str]:
    return {path for path, finding in found.personal.items() if not finding.only_as_text}


def kinds(topic_schema: TopicSchema) -> dict[str, str]:
    return {schema_field.path: schema_field.kind for schema_field in topic_schema.fields.values()}


def test_shipped_topics_mark_personal_fields():
    sales = load(TOPICS / "sales_orders.avsc", "sales_orders")
    assert sales.fields["ordered_at"].kind == "timestamp-millis"
    assert sales.fields["order_lines[].unit_price"].kind == "decimal"
    assert sales.fields["status"].kind == "enum"
    assert personal(sales) == {
        *(f"customer.{name}" for name in ("customer_id", "name", "email", "phone", "registered_at")),
        *(f"ship_to.{name}" for name in ("street", "city", "postal_code")),
    }
    assert personal(load(TOPICS / "stock_trades.avsc", "stock_trades")) == {"account", "userid"}


def test_kinds_of_every_shape():
    found = schema(
        field("plain", "string"),
        field("maybe", ["null", "int"]),
        field("maybe_last", ["int", "null"]),
        field("wrapped", {"type": "string"}),
        field("twice", {"type": {"type": "long", "logicalType": "timestamp-micros"}}),
        field("decimal", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}),
        field("list", {"type": "array", "items": ["null", "string"]}),
        field("lists", {"type": "array", "items": {"type": "array", "items": "int"}}),
        field("map", {"type": "map", "values": record(field("inner", "int"), name="Value")}),
        field(
            "one_of",
            ["null", record(field("a", "int"), name="ns.A"), "string", {"type": "array", "items": "int"}],
        ),
        field("enum", {"type": "enum", "name": "E", "symbols": ["X"]}),
        field("fixed", {"type": "fixed", "name": "F", "size": 2}),
    )
    assert kinds(found) == {
        "plain": "string",
        "maybe": "int",
        "maybe_last": "int",
        "wrapped": "string",
        "twice": "timestamp-micros",
        "decimal": "decimal",
        "list": "array",
        "list[]": "string",
        "lists": "array",
        "lists[]": "array",
        "lists[][]": "int",
        "map": "map",
        "map{}": "record",
        "map{}.inner": "int",
        "one_of": "union",
        "one_of.A": "record",
        "one_of.A.a": "int",
        "one_of.string": "string",
        "one_of.array": "array",
        "one_of.array[]": "int",
        "enum": "enum",
        "fixed": "fixed",
    }


@pytest.mark.parametrize(
    ("definition", "kind", "size"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "decimal", (4, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal", (4, 0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": None}, "decimal", (4, 0)),
        ({"type": "bytes", "logicalType": "decimal"}, "decimal", (10, 0)),
        ({"type": "string", "logicalType": "decimal"}, "string", None),
        ({"type": "string", "logicalType": "decimal", "precision": 4}, "string", None),
    ],
)
def test_digits_of_a_decimal(definition, kind, size):
    found = schema(field("price", definition)).fields["price"]
    assert (found.kind, found.size) == (kind, size)


@pytest.mark.parametrize(
    ("type_", "logical", "kind"),
    [
        ("string", "timestamp-millis", "string"),
        ("string", "date", "string"),
        ("int", "timestamp-millis", "int"),
        ("long", "date", "long"),
        ("long", "time-millis", "long"),
        ("int", "time-micros", "int"),
        ("bytes", "uuid", "bytes"),
        ("double", "decimal", "double"),
        ("long", "Timestamp-Millis", "timestamp-millis"),
    ],
)
def test_a_logical_type_that_does_not_fit_its_type_is_ignored(type_, logical, kind):
    assert schema(field("x", {"type": type_, "logicalType": logical})).fields["x"].kind == kind


def test_a_branch_has_the_name_of_its_avro_type():
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    found = schema(field("value", ["null", "string", price, moment]))
    assert kinds(found) == {
        "value": "union",
        "value.string": "string",
        "value.bytes": "decimal",
        "value.long": "timestamp-millis",
    }


@pytest.mark.parametrize("tagged", ["a", "b"])
def test_branches_with_one_short_name_have_their_full_names_and_keep_their_tags(tagged):
    branches = [
        record(
            field("card", "string", **(PII if space == tagged else {})),
            name="Person",
            namespace=f"shop.{space}",
        )
        for space in ("a", "b")
    ]
    found = schema(field("body", ["null", *branches]))
    cards = {path: field.tagged for path, field in found.fields.items() if path.endswith("card")}
    assert cards == {"body.shop_a_Person.card": tagged == "a", "body.shop_b_Person.card": tagged == "b"}
    assert f"body.shop_{tagged}_Person.card" in found.personal_inside_or_around("body")


def test_an_array_of_map_entries_is_a_map_and_its_keys_can_be_personal():
    entry = record(
        field("key", "long", **PII),
        field("value", ["null", "string"]),
        name="MapEntry",
        namespace="io.confluent.connect.avro",
    )
    found = schema(field("labels", {"type": "array", "items": entry}))
    assert kinds(found) == {"labels": "map", "labels{}": "string", "labels{key}": "long"}
    assert found.personal_inside_or_around("labels") == ["labels{key}"]


def test_a_tag_beside_a_reference_counts():
    place = record(field("city", "string"), name="Place")
    found = schema(field("first", place), field("second", {"type": "Place", **PII}))
    assert personal(found) == {"second", "second.city"}


@pytest.mark.parametrize(
    ("definition", "reference", "more"),
    [
        ({"name": "Person"}, "Person", {}),
        ({"name": "Person"}, "com.acme.Person", {"namespace": "com.acme"}),
        ({"name": "Person"}, "Person", {"namespace": "com.acme"}),
        ({"name": "Person", "namespace": "org.other"}, "org.other.Person", {"namespace": "com.acme"}),
        ({"name": "org.other.Person"}, "org.other.Person", {"namespace": "com.acme"}),
        ({"name": "Person"}, {"type": "Person"}, {}),
        ({"name": "Person"}, ["null", "Person"], {}),
    ],
)
def test_a_type_by_name_is_as_personal_as_where_it_was_defined(definition, reference, more):
    person = record(field("card", "string", **PII)) | definition
    found = schema(
        field("first", person),
        field("second", reference),
        field("all", {"type": "array", "items": reference}),
        **more,
    )
    assert personal(found) == {"first.card", "second.card", "all[].card"}


def test_names_inside_a_type_are_looked_up_in_its_own_namespace():
    inner = record(field("card", "string", **PII), name="Card")
    outer = record(field("one", inner), field("two", "Card"), name="Wallet", namespace="org.other")
    assert personal(schema(field("wallet", outer), namespace="com.acme")) == {
        "wallet.one.card",
        "wallet.two.card",
    }


def test_a_tag_counts_for_everything_inside():
    person = record(field("a", "string"), field("b", {"type": "array", "items": "int"}), name="Person")
    assert personal(schema(field("person", person, **PII))) == {
        "person",
        "person.a",
        "person.b",
        "person.b[]",
    }
    assert personal(schema(field("person", person | PII))) == {"person", "person.a", "person.b", "person.b[]"}
    assert personal(schema(field("x", "int"), **PII)) == {"x"}
    assert personal(schema(field("x", "int", **{"confluent:tags": ["PUBLIC"]}))) == set()


@pytest.mark.parametrize(
    "name",
    [
        "email",
        "Email",
        "eMail",
        "phoneNumber",
        "firstName",
        "last_name",
        "IBAN",
        "dateOfBirth",
        "ipAddress",
        "street",
    ],
)
def test_a_personal_name_needs_no_tag(name):
    assert personal(schema(field(name, "string"))) == {name}
    assert personal(
        schema(field("list", {"type": "array", "items": record(field(name, "string"), name="R")}))
    ) == {f"list[].{name}"}


@pytest.mark.parametrize(
    "name",
    [
        "customer_email",
        "customerEmail",
        "email_address",
        "contactPhone",
        "mobile_number",
        "home_street",
        "billingAddress",
        "EMAIL2",
        "clientIPAddress",
        "ipv4",
        "customer_first_name",
        "firstname",
        "customerName",
        "birthDate",
        "email_id",
        "emails",
    ],
)
def test_a_personal_word_inside_a_name_needs_no_tag(name):
    assert personal(schema(field(name, "string"))) == {name}


def test_a_record_or_an_array_can_have_a_personal_name():
    place = record(field("city", "string"), name="Place")
    found = schema(field("home_address", place), field("phoneNumbers", {"type": "array", "items": "string"}))
    assert personal(found) == {"home_address", "home_address.city", "phoneNumbers", "phoneNumbers[]"}
    assert found.personal_inside_or_around("home_address.city") == ["home_address", "home_address.city"]


@pytest.mark.parametrize(
    "name",
    [
        "name",
        "product",
        "emailed",
        "streetlights",
        "shipment",
        "customer_region",
        "product_name",
        "address_id",
    ],
)
def test_other_names_are_not_personal(name):
    assert personal(schema(field(name, "string"))) == set()


def test_a_value_that_is_no_text_can_be_a_number_or_a_birth_date_and_no_address():
    day = {"type": "int", "logicalType": "date"}
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    found = schema(
        field("email_sent_count", "int"),
        field("email_opened_at", moment),
        field("address_count", "long"),
        field("has_phone", "boolean"),
        field("mobile_platform", {"type": "enum", "name": "Platform", "symbols": ["IOS", "ANDROID"]}),
        field("phone", "long"),
        field("birth_date", day),
        field("email_uuid", {"type": "string", "logicalType": "uuid"}),
    )
    assert personal(found) == {"phone", "birth_date"}


def test_what_a_value_contains():
    person = record(field("email", "string"), field("region", "string"), name="Person")
    item = record(field("note", "string", **PII), field("count", "int"), name="Item")
    found = schema(
        field("person", person),
        field("items", {"type": "array", "items": item}),
        field("people", {"type": "map", "values": "Person"}),
        field("either", ["Person", "Item"]),
        field("person_count", "int"),
    )
    assert found.personal_inside_or_around("person") == ["person.email", "person.region"]
    assert found.personal_inside_or_around("person", as_text=False) == ["person.email"]
    assert found.personal_inside_or_around("person.email") == ["person.email"]
    assert found.personal_inside_or_around("person.region") == ["person.region"]
    assert found.personal_inside_or_around("person.region", as_text=False) == []
    assert found.personal_inside_or_around("person_count") == []
    assert (
        found.personal_inside_or_around("items")
        == found.personal_inside_or_around("items[]")
        == ["items[].note"]
    )
    assert found.personal_inside_or_around("items[].count") == []
    assert found.personal_inside_or_around("people", as_text=False) == ["people{}.email"]
    assert found.personal_inside_or_around("either", as_text=False) == [
        "either.Person.email",
        "either.Item.note",
    ]


@pytest.mark.parametrize(
    ("document", "expected_message"),
    [
        ("[]", "is not an Avro record"),
        ('"string"', "is not an Avro record"),
        ('{"type": "enum"}', "is not an Avro record"),
        ('{"type": "record"}', "is not valid Avro"),
        ('{"type": "record", "name": "A"}', "is not valid Avro (KeyError: 'fields')"),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "b"}]}',
            "is not valid Avro (KeyError: 'type')",
        ),
        ('{"type": "record", "name": "A", "fields": 5}', "is not valid Avro"),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "b", "type": {"type": "array"}}]}',
            "is not valid Avro",
        ),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "b", "type": ["null", "A"]}]}',
            "record A contains itself",
        ),
        ("{", "cannot be read as an Avro schema in JSON"),
        (json.dumps(record()), "record Event has no fields"),
        (json.dumps(record(field("x", "int"), field("x", "int"))), "two of one name"),
        (json.dumps(record(field("x-y", "int"))), "field x-y: a name has letters, digits and _"),
        (json.dumps(record(field("x", "null"))), "field x: the type is null alone"),
        (json.dumps(record(field("x", ["null"]))), "field x: the type is null alone"),
        (
            json.dumps(record(field("x", ["int", {"type": "int", "logicalType": "date"}]))),
            "two branches of one type",
        ),
        (
            json.dumps(record(field("x", {"type": "long", "logicalType": "timestamp-nanos"}))),
            "can't hold timestamp-nanos",
        ),
        (
            json.dumps(record(field("x", {"type": "bytes", "logicalType": "decimal", "precision": 64}))),
            "field x: a table can't hold decimal(64, 0)",
        ),
    ],
)
def test_an_invalid_schema_is_reported_with_the_reason(tmp_path, document, expected_message):
    file = tmp_path / "topic.avsc"
    file.write_text(document)
    with pytest.raises(BadSchema) as bad:
        load(file, "topic")
    assert expected_message in str(bad.value)


def test_a_record_that_contains_itself_further_down_is_reported_by_its_field():
    inner = record(field("again", ["null", "ns.Outer"]), name="Inner")
    outer = record(field("inner", {"type": "array", "items": inner}), name="Outer", namespace="ns")
    with pytest.raises(BadSchema, match=r"field top\.inner\[\]\.again: record ns\.Outer contains itself"):
        schema(field("top", outer))


def test_a_file_that_is_missing_or_not_text(tmp_path):
    with pytest.raises(BadSchema, match="cannot be read"):
        load(tmp_path / "none.avsc", "topic")
    (tmp_path / "bad.avsc").write_bytes(b"\xff\xfe{}")
    with pytest.raises(BadSchema, match="cannot be read"):
        load(tmp_path / "bad.avsc", "topic")


def test_every_shipped_schema_is_json_that_avro_takes():
    for file in TOPICS.glob("*.avsc"):
        assert load(file, file.stem).fields.keys() >= {
            avro_field["name"] for avro_field in json.loads(file.read_text())["fields"]
        }
