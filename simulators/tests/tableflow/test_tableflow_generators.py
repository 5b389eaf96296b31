"""Seeded records: repeatable, in the shape of the topic, and with just the trouble that was asked for."""

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from simulators.data.generators import SalesMix, generate_sales_orders, generate_stock_trades
from simulators.tableflow.kafka import Log, Sent, hash_murmur2, partition_of
from tests.support.tableflow_kit import SALES, TRADES, writer

START = datetime(2026, 10, 5, tzinfo=UTC)
END = datetime(2026, 11, 9, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000
DAY = 86_400_000
MIX = SalesMix(
    orders=2_000,
    customers=400,
    amended=0.1,
    cancelled=0.05,
    returned=0.07,
    duplicates=0.02,
    late=0.03,
    guests=0.04,
    awkward=0.05,
)


def digest(records):
    return sha256(repr(records).encode()).hexdigest()


def millis(moment):
    return (moment - EPOCH) // timedelta(milliseconds=1)


@pytest.fixture(scope="module")
def trades():
    return generate_stock_trades(20_000, seed=7, start=START, end=END)


@pytest.fixture(scope="module")
def sales():
    return generate_sales_orders(MIX, seed=7, start=START, end=END)


@pytest.fixture(scope="module")
def first_events(sales):
    return {sale.value["order_id"]: sale for sale in reversed(sales) if sale.value["status"] == "accepted"}


# The values of the test that Kafka's Java client has for its own hash.
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_in_kafkas_java_client(key, hashed):
    assert hash_murmur2(key) == hashed
    assert partition_of(key, 6) == (hashed & 0x7FFFFFFF) % 6


def test_offsets_count_up_in_each_partition_and_records_without_a_key_spread_evenly():
    records = Log("t", 3).append(Sent(n, b"%d" % (n % 50), {}) for n in range(1_000))
    for partition in range(3):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(len(offsets)))
    assert {record.partition for record in records} == {0, 1, 2}
    assert Counter(item.partition for item in Log("t", 4).append([Sent(0, None, {})] * 8)) == {
        0: 2,
        1: 2,
        2: 2,
        3: 2,
    }
    with pytest.raises(ValueError, match="0 partitions asked for"):
        Log("t", 0)


def test_the_same_seed_gives_the_same_records_on_every_machine(trades, sales):
    assert digest(trades) == "7288634576ace10d1e190ad1102af4a6d289e0f5b75d9b7384c423f7356e54de"
    assert digest(sales) == "bcde78507b6cb837b8b5a4c535e6c2fe9864825c73dc44f988dffe220358f07d"


def test_another_seed_gives_others(trades, sales):
    assert digest(generate_stock_trades(20_000, seed=8, start=START, end=END)) != digest(trades)
    assert digest(generate_sales_orders(MIX, seed=8, start=START, end=END)) != digest(sales)


def test_trades_are_as_datagen_sends_them(trades):
    assert all(trade.key == trade.value["symbol"].encode() for trade in trades)
    assert trades[1234].headers == (
        ("task.generation", b"0"),
        ("task.id", b"0"),
        ("current.iteration", b"1234"),
    )
    values = [trade.value for trade in trades]
    drawn = {name: {value[name] for value in values} for name in ("side", "symbol", "account", "userid")}
    assert drawn == {
        "side": {"BUY", "SELL"},
        "symbol": {"ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"},
        "account": {"ABC123", "LMN456", "XYZ789"},
        "userid": {f"User_{n}" for n in range(1, 10)},
    }
    quantities = [value["quantity"] for value in values]
    prices = {value["price"] for value in values}
    assert (min(quantities), max(quantities)) == (1, 4999)
    assert prices == set(range(5, 1000))
    assert all(
        abs(count - len(values) / 7) < len(values) / 70
        for count in Counter(value["symbol"] for value in values).values()
    )


@pytest.mark.parametrize("status", ["amended", "cancelled", "returned"])
def test_as_many_orders_as_asked_get_a_further_event(sales, status):
    orders = {sale.value["order_id"] for sale in sales if sale.value["status"] == status}
    assert len(orders) == round(getattr(MIX, status) * MIX.orders)


def test_as_many_events_as_asked_are_sent_twice_unchanged(sales):
    sent = defaultdict(list)
    for sale in sales:
        sent[sale.value["event_id"]].append(sale)
    twice = [item for item in sent.values() if len(item) == 2]
    assert len(sent) + len(twice) == len(sales)
    assert len(twice) == round(MIX.duplicates * len(sent))
    for first, second in twice:
        assert (first.key, first.value, first.partition) == (second.key, second.value, second.partition)
        assert first.offset < second.offset
        assert first.timestamp < second.timestamp


def test_as_many_orders_as_asked_arrive_late_and_within_bounds(first_events):
    delays = [event.timestamp - millis(event.value["ordered_at"]) for event in first_events.values()]
    late = [delay for delay in delays if delay > HOUR]
    assert len(late) == round(MIX.late * MIX.orders)
    assert max(late) < MIX.late_days * DAY
    assert max(late) > DAY
    assert all(0 < delay < 5_000 for delay in delays if delay not in late)


def test_as_many_orders_as_asked_have_no_personal_data(first_events):
    guests = [
        event.value for event in first_events.values() if set(event.value["customer"].values()) == {None}
    ]
    assert len(guests) == round(MIX.guests * MIX.orders)
    assert {value for guest in guests for name, value in guest["ship_to"].items() if name != "country"} == {
        None
    }
    assert all(guest["ship_to"]["country"] for guest in guests)


def test_awkward_text_comes_in_its_share_and_of_every_kind(sales, first_events):
    def is_awkward(value):
        text = [value["ship_to"]["street"] or "", *(line["product"] for line in value["order_lines"])]
        return any(not re.fullmatch(r"[A-Za-z0-9 ]*", word) or word != word.strip() for word in text)

    awkward = [event.value for event in first_events.values() if is_awkward(event.value)]
    assert len(awkward) == round(MIX.awkward * MIX.orders)
    text = [
        text
        for value in awkward
        for text in (value["order_lines"][0]["product"], value["ship_to"]["street"] or "")
    ]
    for kind in (",", '"', "\n", "\r\n", "\t", "\\"):
        assert any(kind in word for word in text)
    assert any(word.startswith("=") for word in text)
    assert any(word != unicodedata.normalize("NFC", word) for word in text)
    assert any(not word.isascii() and word == unicodedata.normalize("NFC", word) for word in text)


def test_some_regions_have_ten_customers_and_more_and_some_have_fewer(first_events):
    people = defaultdict(set)
    for event in first_events.values():
        people[event.value["customer"]["region"]].add(event.value["customer"]["customer_id"])
    del people[None]
    counts = {region: len(ids) for region, ids in people.items()}
    assert {region for region, count in counts.items() if count < 10} == {"Highlands", "Islands"}
    assert len([count for count in counts.values() if count >= 10]) == 5


def test_people_can_be_reached_only_where_nobody_is(first_events):
    customers = [event.value["customer"] for event in first_events.values()]
    mails = {customer["email"] for customer in customers} - {None}
    phones = {customer["phone"] for customer in customers} - {None}
    assert all(re.fullmatch(r"[a-z.-]+\.\d+@example\.(org|com|net)", mail) for mail in mails)
    assert all(re.fullmatch(r"\+1-202-555-01\d\d|\+44 20 7946 0\d{3}", phone) for phone in phones)
    assert any(customer["phone"] is None and customer["email"] for customer in customers)


def test_a_mix_of_nothing_special_has_nothing_special():
    plain = replace(MIX, amended=0, cancelled=0, returned=0, duplicates=0, late=0, guests=0, awkward=0)
    records = generate_sales_orders(plain, seed=1, start=START, end=END)
    assert len(records) == plain.orders
    assert {record.value["status"] for record in records} == {"accepted"}


def test_an_order_can_be_late_amended_and_returned_all_at_once():
    everything = replace(MIX, orders=50, amended=1, cancelled=0, returned=1, duplicates=1, late=1)
    records = generate_sales_orders(everything, seed=1, start=START, end=END)
    assert Counter(record.value["status"] for record in records) == {
        "accepted": 100,
        "amended": 100,
        "returned": 100,
    }


@pytest.mark.parametrize(
    "change", [{"late": 1.1}, {"duplicates": -0.1}, {"customers": 3}, {"late_days": 0}, {"orders": -1}]
)
def test_a_mix_that_cannot_be_is_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(MIX, **change)


def test_an_empty_span_is_refused():
    with pytest.raises(ValueError, match="the span is empty"):
        generate_stock_trades(1, seed=1, start=END, end=START)


def test_generated_records_fit_their_schemas(tmp_path, trades, sales):
    flow = writer(tmp_path)
    assert flow.materialise(TRADES, trades).scan().count() == len(trades)
    assert flow.materialise(SALES, sales).scan().count() == len(sales)
