"""Generates records for Lakeferry's own topics from a seed: the same arguments give the same records on every
machine.

Only random.Random is used, without its methods that depend on the platform's math library. Shares are exact,
up to rounding, because exactly that number of orders or events is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from simulators.data import sales_words as words
from simulators.data.sales_people import SMALLEST_CROWD, generate_people, generate_products
from simulators.tableflow.kafka import DEFAULT_PARTITIONS, Log, Record, Sent

_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000
_MINUTE = 60_000
_HOUR = 3_600_000
_DAY = 86_400_000

# The STOCK_TRADES template of the Datagen connector. Its random ranges exclude the upper bound.
_SIDES: Final = ("BUY", "SELL")
_SYMBOLS: Final = ("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT")
_ACCOUNTS: Final = ("ABC123", "LMN456", "XYZ789")
_USERS: Final = tuple(f"User_{number}" for number in range(1, 10))


def generate_stock_trades(count: int, *, seed: int, start: datetime, end: datetime) -> list[Record]:
    """Return `count` trades as Datagen sends them, at random times from `start` to `end` (exclusive), both
    aware.
    """
    rng = random.Random(seed)  # noqa: S311 - must be repeatable, not secure
    first, span = _measure_span(start, end)
    times = sorted(first + rng.randrange(span) for _ in range(count))
    return Log("stock_trades").append(_generate_trade(rng, time, number) for number, time in enumerate(times))


def _generate_trade(rng: random.Random, time: int, iteration: int) -> Sent:
    symbol = rng.choice(_SYMBOLS)
    value = {
        "side": rng.choice(_SIDES),
        "quantity": rng.randrange(1, 5000),
        "symbol": symbol,
        "price": rng.randrange(5, 1000),
        "account": rng.choice(_ACCOUNTS),
        "userid": rng.choice(_USERS),
    }
    # Connect's default header converter writes numbers as text.
    headers = (("task.generation", b"0"), ("task.id", b"0"), ("current.iteration", b"%d" % iteration))
    return Sent(time, symbol.encode(), value, headers)


@dataclass(frozen=True)
class SalesMix:
    """The numbers of orders and customers, and the shares of orders or events that are special cases."""

    orders: int = 20_000
    customers: int = 3_000
    #: Shares of the orders that get a further event.
    amended: float = 0.06
    cancelled: float = 0.03
    returned: float = 0.04
    #: Share of all events that are sent a second time, byte for byte, at a later offset.
    duplicates: float = 0.01
    #: Share of the orders whose first event arrives more than an hour, and up to `late_days`, after the
    #: order.
    late: float = 0.01
    late_days: int = 2
    #: Share of the orders without any personal data.
    guests: float = 0.03
    #: Share of the orders with text that is difficult for file formats.
    awkward: float = 0.01

    def __post_init__(self) -> None:
        for name in ("amended", "cancelled", "returned", "duplicates", "late", "guests", "awkward"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a number from 0 to 1, got {getattr(self, name)}")
        if self.orders < 0 or self.customers < SMALLEST_CROWD or self.late_days < 1:
            raise ValueError(
                f"orders must be at least 0, customers at least {SMALLEST_CROWD} and late_days at least 1, "
                f"got {self}"
            )


def generate_sales_orders(
    mix: SalesMix,
    *,
    seed: int,
    start: datetime,
    end: datetime,
    partitions: int = DEFAULT_PARTITIONS,
    topic: str = "sales_orders",
) -> list[Record]:
    """Return the events of orders placed from `start` to `end` (exclusive), both aware; some events are later
    than `end`.
    """
    rng = random.Random(seed)  # noqa: S311 - must be repeatable, not secure
    events = list(_Sales(mix, rng, start, end).generate_events())
    duplicated_indices = rng.sample(range(len(events)), _count_share(mix.duplicates, len(events)))
    for index in duplicated_indices:
        later = events[index].timestamp + rng.randrange(_SECOND, 2 * _HOUR)
        events.append(events[index]._replace(timestamp=later))
    return Log(topic, partitions).append(sorted(events, key=lambda event: event.timestamp))


class _Sales:
    def __init__(self, mix: SalesMix, rng: random.Random, start: datetime, end: datetime) -> None:
        self._mix = mix
        self._rng = rng
        self._first, self._length = _measure_span(start, end)
        self._people = generate_people(rng, mix.customers, start)
        self._products = generate_products()
        self._chosen = {
            name: set(rng.sample(range(mix.orders), _count_share(getattr(mix, name), mix.orders)))
            for name in ("amended", "cancelled", "returned", "late", "guests", "awkward")
        }

    def generate_events(self) -> Iterator[Sent]:
        for number in range(self._mix.orders):
            yield from self._generate_order(number)

    def _generate_order(self, number: int) -> Iterator[Sent]:
        rng = self._rng
        placed = self._draw_moment()
        order = self._generate_first_event(number, placed)
        if self._is("late", number):
            delay = rng.randrange(_HOUR + 1, self._mix.late_days * _DAY)
        else:
            delay = rng.randrange(50, 5_000)
        time = placed + delay
        yield self._build_sent(order, time)
        if self._is("amended", number):
            time += rng.randrange(10 * _MINUTE, 2 * _DAY)
            order = {**order, "status": "amended", "order_lines": _amend_lines(rng, order["order_lines"])}
            yield self._build_sent(order, time)
        for status, soonest, latest in (("cancelled", _HOUR, _DAY), ("returned", 2 * _DAY, 10 * _DAY)):
            if self._is(status, number):
                time += rng.randrange(soonest, latest)
                yield self._build_sent({**order, "status": status}, time)

    def _generate_first_event(self, number: int, placed: int) -> dict[str, Any]:
        rng = self._rng
        region, customer, address = rng.choice(self._people)
        (channel, _, stores) = rng.choices(words.CHANNELS, [weight for _, weight, _ in words.CHANNELS])[0]
        awkward = self._is("awkward", number)
        guest = self._is("guests", number)
        if awkward:
            address = {**address, "street": rng.choice(words.AWKWARD_STREETS)}
        if guest:
            customer = dict.fromkeys(customer)
            address = {**dict.fromkeys(address), "country": region.country}
        return {
            "event_id": "",
            "order_id": f"SO-{number + 1:08d}",
            "channel": channel,
            "store_id": rng.choice(stores),
            "ordered_at": _EPOCH + placed * _MILLISECOND,
            "status": "accepted",
            "currency": region.currency,
            "coupon_code": rng.choice(words.COUPONS) if rng.random() < 0.15 else None,
            "customer": customer,
            "ship_to": address,
            "order_lines": self._generate_lines(awkward),
        }

    def _generate_lines(self, awkward: bool) -> list[dict[str, Any]]:
        rng = self._rng
        products = rng.sample(self._products, rng.choice((1, 1, 2, 2, 3, 4, 5)))
        lines = [
            {
                "line_no": number,
                **product,
                "quantity": rng.randrange(1, 6),
                "discount": Decimal(rng.choice(words.DISCOUNTS)),
            }
            for number, product in enumerate(products, start=1)
        ]
        if awkward:
            lines[0]["product"] = rng.choice(words.AWKWARD_PRODUCTS)
        return lines

    def _build_sent(self, order: dict[str, Any], time: int) -> Sent:
        event = {**order, "event_id": f"{self._rng.getrandbits(128):032x}"}
        return Sent(time, event["order_id"].encode(), event, (("source", event["channel"].encode()),))

    def _draw_moment(self) -> int:
        """Draw a time in milliseconds since 1970 UTC, weighted by the hour of the day."""
        while True:
            moment = self._first + self._rng.randrange(self._length)
            if self._rng.randrange(max(words.HOURS)) < words.HOURS[moment // _HOUR % 24]:
                return moment

    def _is(self, case: str, number: int) -> bool:
        return number in self._chosen[case]


def _amend_lines(rng: random.Random, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    line_number = rng.randrange(len(lines))
    amended_lines = list(lines)
    line = lines[line_number]
    amended_lines[line_number] = {**line, "quantity": line["quantity"] + rng.randrange(1, 4)}
    return amended_lines


def _count_share(share: float, count: int) -> int:
    return round(share * count)


def _measure_span(start: datetime, end: datetime) -> tuple[int, int]:
    """Return the start in milliseconds since 1970 UTC, and the length in milliseconds."""
    first = (start - _EPOCH) // _MILLISECOND
    after = (end - _EPOCH) // _MILLISECOND
    if after <= first:
        raise ValueError(
            f"from {start.isoformat()} until {end.isoformat()}: the span is empty. The end must come later"
        )
    return first, after - first
