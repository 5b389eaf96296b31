"""A user's JSON Lines as records: what is read, and every mistake told at once by line and field."""

import gzip
import json
from datetime import UTC, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.data.events import EventsError, read_json_lines, to_records
from simulators.tableflow.avro_json import build_decoder
from tests.support.tableflow_kit import SALES, TRADES, topic_of, writer

ORDER = {
    "event_id": "e-1",
    "order_id": "SO-1",
    "channel": "web",
    "store_id": 1,
    "ordered_at": "2026-11-02T10:15:00+01:00",
    "status": "accepted",
    "currency": "EUR",
    "customer": {"name": "Alvira Ashquill"},
    "ship_to": {"country": "DE"},
    "order_lines": [{"line_no": 1, "product_id": "P1", "quantity": 2, "unit_price": "19.9", "discount": 0.1}],
}
NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def read(tmp_path, *lines, topic=SALES):
    file = tmp_path / "events.jsonl"
    file.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    )
    return read_json_lines(file, topic)


def mistakes(tmp_path, *lines, topic=SALES):
    with pytest.raises(EventsError) as refused:
        read(tmp_path, *lines, topic=topic)
    return [(mistake.line, mistake.path, mistake.problem) for mistake in refused.value.mistakes]


def mistake_of(tmp_path, avro, value):
    ((line, path, problem),) = mistakes(
        tmp_path, {"x": value} if not isinstance(value, bytes) else value, topic=topic_of(("x", avro))
    )
    assert (line, path) == (1, "x")
    return problem


def test_an_order_is_read_with_defaults_exact_decimals_and_instants_in_utc(tmp_path):
    (value,) = read(tmp_path, ORDER)
    assert value["ordered_at"] == datetime(2026, 11, 2, 9, 15, tzinfo=UTC)
    assert value["coupon_code"] is None
    assert value["customer"]["name"] == "Alvira Ashquill"
    assert value["customer"]["email"] is None
    (line,) = value["order_lines"]
    assert (line["unit_price"], line["discount"], line["product"]) == (
        Decimal("19.9000"),
        Decimal("0.1000"),
        None,
    )


def test_bom_blank_lines_windows_line_ends_and_gzip_are_taken(tmp_path):
    one = json.dumps(ORDER).encode()
    plain = b"\xef\xbb\xbf" + one + b"\r\n\r\n  \n" + one
    (tmp_path / "plain.jsonl").write_bytes(plain)
    (tmp_path / "zipped.jsonl").write_bytes(gzip.compress(plain))
    assert len(read_json_lines(tmp_path / "plain.jsonl", SALES)) == 2
    assert read_json_lines(tmp_path / "zipped.jsonl", SALES) == read_json_lines(
        tmp_path / "plain.jsonl", SALES
    )


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path):
    (value,) = read(tmp_path, json.dumps({**ORDER, "currency": "a\u2028b\x85c"}, ensure_ascii=False).encode())
    assert value["currency"] == "a\u2028b\x85c"


def test_an_empty_file_has_no_events(tmp_path):
    assert read(tmp_path, b"") == []


def test_all_mistakes_are_reported_with_line_and_field(tmp_path):
    (line,) = ORDER["order_lines"]
    found = mistakes(
        tmp_path,
        ORDER,
        {**ORDER, "store_id": "1", "status": "lost"},
        b"{not json",
        {key: ORDER[key] for key in ORDER if key != "order_id"} | {"extra": 1},
        b"",
        b"\xff",
        {
            **ORDER,
            "order_lines": [line, {**line, "quantity": None, "discount": "0.33333"}, "x"],
            "customer": {"nmae": "A"},
        },
    )
    assert [(line, path) for line, path, _ in found] == [
        (2, "store_id"),
        (2, "status"),
        (3, ""),
        (4, "extra"),
        (4, "order_id"),
        (6, ""),
        (7, "customer.nmae"),
        (7, "order_lines[1].quantity"),
        (7, "order_lines[1].discount"),
        (7, "order_lines[2]"),
    ]
    result = dict(((line, path), problem) for line, path, problem in found)
    assert result[2, "status"] == "expected one of accepted, amended, cancelled, returned, found 'lost'"
    assert result[4, "order_id"] == "is missing, and the schema has no default for it"
    assert "has customer_id, name, email" in result[7, "customer.nmae"]


def test_the_message_names_file_line_and_field_and_is_bounded(tmp_path):
    with pytest.raises(EventsError) as refused:
        read(tmp_path, *[{**ORDER, f"extra_{chr(ord('a') + number)}": 1} for number in range(23)])
    lines = str(refused.value).splitlines()
    assert lines[0] == "events.jsonl: some events can't be read, so nothing was written:"
    assert lines[1].startswith("  line 1, field extra_a: is not in the schema, which has event_id, ")
    assert (len(lines), lines[-1]) == (22, "  and 3 more")


def test_mistakes_of_one_kind_in_one_field_are_reported_once(tmp_path):
    (line,) = ORDER["order_lines"]
    events = [
        {**ORDER, "store_id": f"{number}", "order_lines": [line, {**line, "quantity": None}]}
        for number in range(30)
    ]
    with pytest.raises(EventsError) as refused:
        read(tmp_path, *events, {**ORDER, "store_id": 2**40})
    assert str(refused.value).splitlines()[1:] == [
        "  line 1, field store_id: expected a whole number, found '0' (and 29 more like it)",
        "  line 1, field order_lines[1].quantity: is null, and the schema requires a value (and 29 more "
        "like it)",
        "  line 31, field store_id: 1099511627776 does not fit int, which has 32 bits",
    ]


def test_fields_that_the_schema_lacks_can_be_left_out(tmp_path):
    file = tmp_path / "events.jsonl"
    file.write_text(json.dumps({**ORDER, "extra": 1, "customer": {"name": "A", "nickname": "B"}}))
    (value,) = read_json_lines(file, SALES, ignore_unknown=True)
    assert value["customer"]["name"] == "A"
    assert not {"extra", "nickname"} & {*value, *value["customer"]}


@pytest.mark.parametrize(
    ("line", "expected_message"),
    [
        (b"{", "is not JSON"),
        (b'{"x": 1} {"x": 2}', "is not JSON: Extra data at character 10"),
        (
            b'{"ride_id": "x", ',
            "is not JSON: Expecting property name enclosed in double quotes at character 17",
        ),
        (b"[1]", "expected one event as a JSON object, found [1]"),
        (b"null", "expected one event as a JSON object, found None"),
        (b'{"x": 1, "x": 2}', "names the field 'x' twice"),
        (b'{"x": NaN}', "has NaN, which JSON does not know"),
        (b'{"x": -Infinity}', "has -Infinity"),
        (b'{"x": ' + b"9" * 5000 + b"}", "a number of more digits than any field takes"),
        (b'{"x": 1e99999999999999999999}', "a number of more digits than any field takes"),
        (b"[" * 100_000, "is nested too deep"),
        (b'{"x": "\xe9"}', "byte 8 (0xe9) is not UTF-8. Save the file as UTF-8"),
        (b"\xff\xfe{\x00", "the file is text in UTF-16. Save it as UTF-8"),
        (b'{"x": 1}\0', "the file is not text: it has zero bytes"),
        (b"\xfd7zXZ\x01\x02\x03\x04", "the file is not text"),
        (b'[{"x": 1}]', "use jq -c '.[]'"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_line_that_is_no_event(tmp_path, line, expected_message):
    ((number, path, problem),) = mistakes(tmp_path, line, topic=topic_of(("x", "double")))
    assert (number, path) == (1, "")
    assert expected_message in problem


def test_a_gzip_file_cut_short_is_reported_and_not_half_read(tmp_path):
    whole = gzip.compress(b"\n".join([json.dumps(ORDER).encode()] * 50))
    (tmp_path / "events.jsonl.gz").write_bytes(whole[:-10])
    with pytest.raises(EventsError, match="gzipped file is damaged here"):
        read_json_lines(tmp_path / "events.jsonl.gz", SALES)


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
INSTANT = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
CLOCK = {"type": "int", "logicalType": "time-millis"}
DAY = {"type": "int", "logicalType": "date"}
FIXED = {"type": "fixed", "name": "Two", "size": 2}
PLACE = {
    "type": "record",
    "name": "Place",
    "namespace": "shop",
    "fields": [{"name": "city", "type": "string"}],
}


@pytest.mark.parametrize(
    ("avro", "value", "expected_message"),
    [
        ("string", 1, "expected a string, found 1"),
        ("string", b'{"x": "a\\ud800"}', "character 2 is a lone surrogate"),
        ("string", None, "is null, and the schema requires a value"),
        ("boolean", 1, "expected true or false, found 1"),
        ("int", True, "expected a whole number, found True"),
        ("int", 1.0, "expected a whole number, found 1.0"),
        ("int", 2**31, "2147483648 does not fit int"),
        ("long", -(2**63) - 1, "does not fit long"),
        ("double", "1", "expected a number, found '1'"),
        ("double", b'{"x": 1e400}', "1E+400 does not fit double"),
        ("float", b'{"x": 1e39}', "1E+39 does not fit float"),
        (DECIMAL, True, "expected a number"),
        (DECIMAL, "twelve", "expected a number, or a number as text, found 'twelve'"),
        (DECIMAL, "n/a", "expected a number, or a number as text, found 'n/a'"),
        (["null", DECIMAL], {"bytes": "12345"}, "does not fit decimal(5, 2)"),
        (["null", DECIMAL], {"string": "1"}, "expected a number"),
        (["null", "string"], {"bytes": "a"}, "expected a string"),
        (DECIMAL, "NaN", "does not fit decimal(5, 2)"),
        (DECIMAL, 1000, "1000 does not fit decimal(5, 2)"),
        (DECIMAL, "1e999999", "does not fit decimal(5, 2)"),
        (DECIMAL, b'{"x": 0.125}', "0.125 has more than the 2 decimals"),
        (INSTANT, "2026-11-02T10:15:00", "with Z or an offset"),
        (INSTANT, "2026-11-02", "with Z or an offset"),
        (INSTANT, "yesterday", "expected a timestamp"),
        (INSTANT, True, "expected a timestamp"),
        (INSTANT, 253402300800000, "in the years 1 to 9999"),
        (INSTANT, "0001-01-01T00:00:00+05:00", "in the years 1 to 9999"),
        (LOCAL, "2026-11-02T10:15:00Z", "without an offset"),
        (CLOCK, "10:15:00Z", "without an offset"),
        (CLOCK, 86_400_000, "millis since midnight"),
        (DAY, "2026-02-30", "expected a date such as 2026-11-02"),
        ("bytes", "\u0100", "expected bytes as characters up to U+00FF"),
        (FIXED, "abc", "expected 2 bytes, found 3"),
        ({"type": "string", "logicalType": "uuid"}, "no-uuid", "expected a UUID"),
        ({"type": "array", "items": "int"}, {}, "expected an array"),
        ({"type": "map", "values": "int"}, [], "expected an object"),
        (["int", "string"], 5, "names one of int, string"),
        (["int", "string"], {"long": 5}, "names one of int, string"),
        (["null", "int"], "5", "expected a whole number"),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_reported(tmp_path, avro, value, expected_message):
    assert expected_message in mistake_of(tmp_path, avro, value)


@pytest.mark.parametrize(
    ("avro", "given_value", "kept"),
    [
        (DECIMAL, "1e2", Decimal("100.00")),
        (DECIMAL, 1.5, Decimal("1.50")),
        (DECIMAL, "0e50", Decimal("0.00")),
        (DECIMAL, 999, Decimal("999.00")),
        ("double", 1, 1.0),
        ("long", 2**63 - 1, 2**63 - 1),
        (INSTANT, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        (INSTANT, "0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        (INSTANT, "9999-12-31T23:59:59.999Z", datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        (INSTANT, "2026-11-02T10:15:00.123999Z", datetime(2026, 11, 2, 10, 15, 0, 123_000, tzinfo=UTC)),
        (MICROS, "2026-11-02T10:15:00.123999Z", datetime(2026, 11, 2, 10, 15, 0, 123_999, tzinfo=UTC)),
        (LOCAL, "2026-11-02T10:15:00", datetime(2026, 11, 2, 10, 15)),
        (CLOCK, 1000, time(0, 0, 1)),
        ("bytes", "\x00\xff", b"\x00\xff"),
        (["int", "string"], {"string": "5"}, ("string", "5")),
        (["null", "int"], None, None),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        (
            {"type": "string", "logicalType": "uuid"},
            "{9A3B5C1E-0000-4000-8000-0123456789AB}",
            "{9A3B5C1E-0000-4000-8000-0123456789AB}",
        ),
        (DECIMAL, "\x04\u00d2", Decimal("12.34")),
        # Avro's encoding, as kafka-avro-console-consumer prints it.
        (["null", "string"], {"string": "X5"}, "X5"),
        (["null", DECIMAL], {"bytes": "\x04\u00d2"}, Decimal("12.34")),
        (["null", DECIMAL], {"bytes": "12"}, Decimal("125.94")),
        (["null", DECIMAL], {"bytes": "1.5"}, Decimal("1.50")),
        (["null", INSTANT], {"long": 0}, datetime(1970, 1, 1, tzinfo=UTC)),
        (["null", {**FIXED, "namespace": "shop"}], {"shop.Two": "ab"}, b"ab"),
        (["null", {"type": "map", "values": "int"}], {"map": {"a": 1}}, {"a": 1}),
        (["null", {"type": "map", "values": "int"}], {"map": 1}, {"map": 1}),
        (["null", PLACE], {"shop.Place": {"city": "Oslo"}}, {"city": "Oslo"}),
        (["null", PLACE], {"city": "Oslo"}, {"city": "Oslo"}),
        (["null", {"type": "array", "items": ["null", "int"]}], {"array": [{"int": 1}, None]}, [1, None]),
        (["null", "string", DECIMAL], {"bytes": "12.50"}, ("bytes", Decimal("12.50"))),
    ],
    ids=str,
)
def test_a_value_that_fits_is_kept(tmp_path, avro, given_value, kept):
    (value,) = read(tmp_path, {"x": given_value}, topic=topic_of(("x", avro)))
    assert value == {"x": kept}
    assert type(value["x"]) is type(kept)


def test_a_missing_field_takes_its_default_whatever_its_type(tmp_path):
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    topic = topic_of(
        ("e", enum, "B"),
        ("u", ["int", "string"], 7),
        ("s", ["string", "null"], "none"),
        ("b", "bytes", "\x00"),
    )
    assert read(tmp_path, {}, topic=topic) == [{"e": "B", "u": ("int", 7), "s": "none", "b": b"\x00"}]


def test_the_default_of_a_decimal_is_bytes_wherever_it_is(tmp_path):
    price = {"type": "record", "name": "Price", "fields": [{"name": "net", "type": DECIMAL}]}
    fixed = {
        "type": "fixed",
        "name": "Money",
        "size": 2,
        "logicalType": "decimal",
        "precision": 4,
        "scale": 2,
    }
    fields = [
        ("zero", DECIMAL, "\x00"),
        ("digits", DECIMAL, "12"),
        ("fixed", fixed, "\xff\xff"),
        ("union", [DECIMAL, "string"], "\x01"),
        ("maybe", [DECIMAL, "null"], "\x02"),
        ("record", price, {"net": "\x03"}),
        ("prices", {"type": "array", "items": "Price"}, [{"net": "\x04"}]),
        ("by_name", {"type": "map", "values": DECIMAL}, {"a": "\x05"}),
    ]
    (value,) = read(tmp_path, {}, topic=topic_of(*fields))
    assert value == {
        "zero": Decimal("0.00"),
        "digits": Decimal("125.94"),
        "fixed": Decimal("-0.01"),
        "union": ("bytes", Decimal("0.01")),
        "maybe": Decimal("0.02"),
        "record": {"net": Decimal("0.03")},
        "prices": [{"net": Decimal("0.04")}],
        "by_name": {"a": Decimal("0.05")},
    }


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(sorted(ORDER)), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.fixed_dictionaries({name: JSON_VALUES | st.just(value) for name, value in ORDER.items()}))
def test_whatever_comes_is_either_read_or_reported(event):
    reported = []
    value = build_decoder(SALES.root)(event, "", lambda path, problem: reported.append((path, problem)))
    if not reported:
        assert value["status"] in ("accepted", "amended", "cancelled", "returned")
        to_records(SALES, [value], NOON)
    assert all(problem.isascii() or "…" in problem for _, problem in reported)


def test_records_are_keyed_and_dated_as_the_topic_says(tmp_path):
    values = read(
        tmp_path, ORDER, {**ORDER, "event_id": "e-2"}, {**ORDER, "order_id": "SO-2", "ordered_at": 0}
    )
    records = to_records(SALES, values, NOON)
    assert [(record.key, record.timestamp) for record in records] == [
        (b"SO-1", 1793610900000),
        (b"SO-1", 1793610900000),
        (b"SO-2", 0),
    ]
    assert records[0].partition == records[1].partition
    assert [record.offset for record in records[:2]] == [0, 1]


def test_a_topic_without_event_time_is_dated_by_its_receipt(tmp_path):
    trade = {
        "side": "BUY",
        "quantity": 1,
        "symbol": "ZVV",
        "price": 5,
        "account": "ABC123",
        "userid": "User_1",
    }
    (record,) = to_records(TRADES, read(tmp_path, trade, topic=TRADES), NOON)
    assert (record.key, record.timestamp) == (b"ZVV", 1793620800000)


def test_events_of_a_file_end_up_in_the_table(tmp_path):
    values = read(tmp_path, ORDER, {**ORDER, "event_id": "e-2", "status": "cancelled"})
    table = writer(tmp_path).materialise(SALES, to_records(SALES, values, NOON))
    rows = table.scan().to_arrow().to_pylist()
    assert [(row["event_id"], row["status"], row["order_lines"][0]["unit_price"]) for row in rows] == [
        ("e-1", "accepted", Decimal("19.9000")),
        ("e-2", "cancelled", Decimal("19.9000")),
    ]
