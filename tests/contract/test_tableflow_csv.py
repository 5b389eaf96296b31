"""CSV rows as events by a mapping, on small files and on real data."""

import csv
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tableflow_kit import ROOT, SALES, topic_of, writer

from simulators.csv_events import read_csv
from simulators.csv_mapping import MappingError, load_mapping
from simulators.events import EventsError, to_records

RETAIL = ROOT.parent / "shared" / "data" / "online_retail_10k.csv"
RETAIL_MAPPING = ROOT / "tests" / "data" / "online_retail.mapping.toml"

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "no", "type": "int"}, {"name": "price", "type": "double"}]}
BILL = topic_of(
    ("id", "string"),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("paid", ["null", "boolean"], None),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["sale", "refund"]}),
    ("place", {"type": "record", "name": "Place", "fields": [{"name": "country", "type": ["null", "string"], "default": None}]}),
    ("items", {"type": "array", "items": ITEM}),
    name="bills",
)
MAPPING = """
[rows]
group_by = ["Bill"]
lines = "items"
delimiter = ";"
[event]
id = { hash = ["Bill"] }
at = { column = "Date", format = "%d.%m.%Y %H:%M", zone = "Europe/Berlin" }
paid = { column = "Paid" }
place.country = { column = "Land", translate = { "Deutschland" = "DE" } }
[event.kind]
when = [{ column = "Price", below = 0, value = "refund" }, { column = "Bill", starts_with = "R", value = "refund" }]
otherwise = "sale"
[line]
no = { row_number = true }
price = { column = "Price", cut_suffix = " EUR" }
"""
CSV = """Bill;Date;Paid;Land;Price
1;01.07.2026 12:00;true;Deutschland;1.50 EUR
2;25.10.2026 02:30;;Deutschland;3
1;02.07.2026 12:00;false;Deutschland;2
2;25.10.2026 02:30;;Deutschland;-3
"""


def read(tmp_path, text=CSV, mapping=MAPPING, topic=BILL):
    (tmp_path / "bills.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "bills.toml").write_text(mapping)
    return read_csv(tmp_path / "bills.csv", load_mapping(tmp_path / "bills.toml", topic), topic)


def test_rows_of_one_key_become_one_event_with_a_line_each(tmp_path):
    first, second = read(tmp_path)
    assert first["items"] == [{"no": 1, "price": 1.5}, {"no": 2, "price": 2.0}]
    assert (first["at"], first["paid"], first["kind"]) == (datetime(2026, 7, 1, 10, tzinfo=UTC), True, "sale")
    assert (second["paid"], second["kind"], second["place"]) == (None, "refund", {"country": "DE"})


def test_a_time_that_clocks_show_twice_is_the_first_of_the_two(tmp_path):
    assert read(tmp_path)[1]["at"] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_a_hash_is_the_same_in_every_run_and_keeps_columns_apart(tmp_path):
    assert [each["id"] for each in read(tmp_path)] == [
        "d6b5915c46057bcb005f46f6433df656",
        "673aeeb08cfbb00b91e5e3c60b5ba318",
    ]
    both = MAPPING.replace('hash = ["Bill"]', 'hash = ["Bill", "Land"]').replace(
        '{ "Deutschland" = "DE" }', '{ "2" = "A", "12" = "B" }'
    )
    ids = [
        each["id"]
        for each in read(tmp_path, "Bill;Date;Paid;Land;Price\n1;01.07.2026 12:00;;12;1\n11;01.07.2026 12:00;;2;1\n", both)
    ]
    assert ids[0] != ids[1]


def test_each_row_is_an_event_where_nothing_groups_them(tmp_path):
    mapping = '[event]\nn = { column = "N" }\n'
    assert read(tmp_path, "N\n1\n2\n", mapping, topic_of(("n", "int"))) == [{"n": 1}, {"n": 2}]


def test_quotes_separators_and_line_ends_inside_a_field_are_kept(tmp_path):
    mapping = '[event]\ns = { column = "S" }\n'
    text = b'\xef\xbb\xbfS\r\n"a, ""b"""\r\n"two\r\n\r\nlines"\r\n'
    assert [each["s"] for each in read(tmp_path, text, mapping, topic_of(("s", "string")))] == ['a, "b"', "two\r\n\r\nlines"]


def test_mistakes_in_rows_are_told_by_line_and_field(tmp_path):
    text = (
        "Bill;Date;Paid;Land;Price\n"
        "1;01.07.2026 12:00;true;Deutschland;1\n"
        "1;;;;dear\n"
        "2;yesterday;;Atlantis;1\n"
        "3;01.07.2026 12:00;maybe;Deutschland;\n"
        "4;01.07.2026 12:00\n"
    )
    with pytest.raises(EventsError) as refused:
        read(tmp_path, text)
    assert [(each.line, each.path, each.problem.split(",")[0]) for each in refused.value.mistakes] == [
        (6, "", "has 2 fields"),
        (3, "items[1].price", "expected a number"),
        (4, "at", "expected a time as in %d.%m.%Y %H:%M"),
        (4, "place.country", "'Atlantis' is not among the texts that the mapping translates. Add it there"),
        (5, "paid", "expected true or false"),
        (5, "items[0].price", "expected a number"),
    ]


@pytest.mark.parametrize(("text", "told"), [(b'S\n"never closed\n', "line 2: is not CSV"), (b"S\nok\n\xff\n", "line 3: byte 1")])
def test_a_file_that_is_no_csv_is_told_by_line(tmp_path, text, told):
    with pytest.raises(EventsError, match=told):
        read(tmp_path, text, '[event]\ns = { column = "S" }\n', topic_of(("s", "string")))


@pytest.mark.parametrize(
    ("header", "told"), [("A", "column 'N' is not in the file, which has A"), ("N,N", "column 'N' is in the file twice")]
)
def test_a_column_that_the_file_lacks_is_told(tmp_path, header, told):
    with pytest.raises(MappingError, match=told):
        read(tmp_path, f"{header}\n1,1\n", '[event]\nn = { column = "N" }\n', topic_of(("n", "int")))


def test_all_mistakes_of_a_mapping_are_told_by_key(tmp_path):
    (tmp_path / "m.toml").write_text("""
        extra = 1
        [rows]
        group_by = "Bill"
        lines = "place"
        delimiter = ";;"
        [event]
        unknown = { value = 1 }
        id = { column = "A", value = "B" }
        at = { column = "Date", zone = "Mars/Olympus", format = "%d" }
        paid = { value = "yes" }
        kind = { when = [{ column = "A", below = "x", value = "gift" }], otherwise = "sale" }
        place = { country = "DE" }
        [line]
        no = { row_number = true }
    """)
    with pytest.raises(MappingError) as refused:
        load_mapping(tmp_path / "m.toml", BILL)
    assert {each.split(": ")[0] for each in refused.value.problems} == {
        "extra",
        "rows.group_by",
        "rows.lines",
        "rows.delimiter",
        "event.unknown",
        "event.id",
        "event.at",
        "event.paid",
        "event.kind",
        "event.place.country",
        "event.items",
    }
    assert "event.paid: expected true or false, found 'yes'" in refused.value.problems
    assert str(refused.value).startswith(
        "m.toml: the mapping can't be used\n  extra: not known here. There are rows, event, line"
    )


@pytest.mark.parametrize(
    ("mapping", "told"),
    [
        ("[event", "not a readable TOML file"),
        ("rows = 1", "rows: is a table, found 1"),
        ("event = 1", "event: is a table of rules, found 1"),
        ("[event]\nn = 5", "event.n: needs a rule"),
        ("[event]\nn = {}", "event.n: needs exactly one of column, value, hash, when, row_number, found nothing"),
        ("[event]\nn = { value = 1, zone = 'UTC' }", "event.n: zone: not known beside value"),
        ("[event]\nn = { column = 5 }", "event.n: column is a text, found 5"),
        ("[event]\nn = { hash = [] }", "event.n: hash is a list of columns"),
        ("[event]\nn = { when = [5], otherwise = 1 }", "event.n: when is a list of conditions"),
        ("[event]\nn = { when = [{ column = 'A' }], otherwise = 1 }", "event.n: a condition names a column and one of"),
        ("[event]\nn = { column = 'A', translate = 5 }", "event.n: translate is a table of texts"),
        ("[line]\nn = { value = 1 }", "line: has rules, but rows.lines doesn't say"),
        ("[event]\nm = { value = 1 }", "event.n: has no rule, and the schema no default for it"),
    ],
)
def test_a_mistake_in_a_mapping(tmp_path, mapping, told):
    (tmp_path / "m.toml").write_text(mapping)
    with pytest.raises(MappingError) as refused:
        load_mapping(tmp_path / "m.toml", topic_of(("n", "int")))
    assert told in str(refused.value)


@pytest.fixture(scope="module")
def retail_orders():
    if not RETAIL.exists():
        pytest.skip("the Online Retail rows are not committed; put them at ../shared/data/online_retail_10k.csv")
    return read_csv(RETAIL, load_mapping(RETAIL_MAPPING, SALES), SALES)


def test_real_invoices_keep_every_line_and_every_penny(tmp_path, retail_orders):
    flow = writer(tmp_path)
    table = flow.materialise(SALES, to_records(SALES, retail_orders, datetime(2011, 1, 1, tzinfo=UTC)), commits=5)
    ours = defaultdict(Decimal)
    for row in table.scan(selected_fields=("order_id", "order_lines")).to_arrow().to_pylist():
        for line in row["order_lines"]:
            ours[row["order_id"], line["product_id"]] += line["quantity"] * line["unit_price"]
    theirs = defaultdict(Decimal)
    with RETAIL.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            theirs[row["InvoiceNo"], row["StockCode"]] += int(row["Quantity"]) * Decimal(row["UnitPrice"])
    assert ours == theirs
    assert sum(ours.values()) > 100_000


def test_real_returns_guests_and_countries_are_told_apart(retail_orders):
    assert len(retail_orders) == 512
    returned = {each["order_id"] for each in retail_orders if each["status"] == "returned"}
    assert len(returned) == 73
    assert len([each for each in returned if each.startswith("C")]) == 43
    guests = [each for each in retail_orders if each["customer"]["customer_id"] is None]
    assert sum(len(each["order_lines"]) for each in guests) == 2291
    assert {each["ship_to"]["country"] for each in retail_orders} >= {"GB", "IE", "JP"}
    assert all(line["line_no"] == number for each in retail_orders for number, line in enumerate(each["order_lines"], start=1))
    assert {each["event_id"] for each in retail_orders} != {None}
    assert len({each["event_id"] for each in retail_orders}) == 512
