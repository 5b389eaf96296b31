"""Realistic rows, made with a fixed random seed."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal


def sales_rows(orders: int) -> list[dict]:
    dice = random.Random(46)
    return [row for number in range(orders) for row in _order(dice, number)]


def region_rows() -> list[dict]:
    return [
        {
            "region": region,
            "channel": channel,
            "currency": "EUR",
            "order_lines": lines,
            "pieces": lines * 3,
            "sales": Decimal(lines * 3741) / 100,
            "discounted_lines": lines // 7,
        }
        for region, lines in (("North", 410), ("South", 388), ("West", 201), (None, 55))
        for channel in ("app", "store", "web")
    ] + [
        {
            "region": "West",
            "channel": "web",
            "currency": "USD",
            "order_lines": 90,
            "pieces": 270,
            "sales": Decimal("3366.90"),
            "discounted_lines": 12,
        }
    ]


def symbol_rows() -> list[dict]:
    hours = [hour for hour in range(4, 20) if hour not in (12, 13)]
    return [
        _traded(symbol, side, hour)
        for symbol in ("ZBZX", "ZJZZT", "ZVZZT")
        for side in ("BUY", "SELL")
        for hour in hours
    ]


def _traded(symbol: str, side: str, hour: int) -> dict:
    shares = 1_000 + 37 * hour * len(symbol) + (250 if side == "BUY" else 0)
    prices = {"lowest_price": Decimal("5.04"), "highest_price": Decimal("9.99")}
    return {
        "symbol": symbol,
        "side": side,
        "hour": hour,
        "trades": shares // 50,
        "shares": shares,
        "value": shares * Decimal("7.41"),
    } | prices


def trade_rows() -> list[dict]:
    """Return trades at each hour from 9 to 20 (UTC) but two."""
    dice = random.Random(9)
    hours = [datetime(2026, 11, 9, hour, tzinfo=UTC) for hour in range(9, 21) if hour not in (12, 13)]
    return [
        {
            "hour": hour,
            "side": dice.choice(["BUY", "SELL"]),
            "amount": Decimal(dice.randrange(10**7)) / 10_000,
            "settled": None,
        }
        for hour in hours
        for _ in range(dice.randrange(3, 9))
    ]


_PRODUCTS = (
    ("P-1001", "Kettle, 1.7 l", "Kitchen", "39.9000"),
    ("P-1002", 'Mug "Nordsee"', "Kitchen", "8.5000"),
    ("P-2001", "Desk lamp", "Light", "54.0000"),
    ("P-2002", "LED strip 5 m", "Light", "23.4900"),
    ("P-3001", "Büroklammern, 100 Stück", "Office", "2.9900"),
    ("P-3002", "-10 % Sommerblock", "Office", "4.2500"),
    ("P-4001", "Wool blanket", None, "79.0000"),
)


def _order(dice: random.Random, number: int) -> list[dict]:
    moment = datetime(2026, 11, 8, 23, tzinfo=UTC) + timedelta(
        seconds=dice.randrange(7 * 86_400), microseconds=dice.randrange(10**6)
    )
    returned = dice.random() < 0.04
    channel = dice.choices(["web", "app", "store", "partner"], [50, 30, 15, 5])[0]
    email = dice.random() < 0.9
    order = {
        "order_id": f"SO-{100_000 + number}",
        "ordered_at": moment,
        "order_date": (moment + timedelta(hours=1)).date(),
        "status": "returned" if returned else dice.choice(["accepted", "accepted", "amended"]),
        "channel": channel,
        "store_id": dice.randrange(1, 9),
        "currency": "EUR",
        "coupon_code": "HERBST26" if dice.random() < 0.1 else None,
        "customer": _pseudonym(dice),
        "customer_email": _pseudonym(dice) if email else None,
        "customer_phone": _pseudonym(dice) if not email else None,
        "customer_region": dice.choice(["North", "South", "West", "East", None]),
        "customer_since": dice.randrange(2014, 2027),
        "postal_area": f"{dice.randrange(1, 99):02}",
        "country": dice.choice(["DE", "DE", "DE", "AT", "CH"]),
    }
    return [order | _line(dice, line_number, returned) for line_number in range(1, dice.randrange(2, 5))]


def _line(dice: random.Random, line_number: int, returned: bool) -> dict:
    product_id, product, category, price = dice.choice(_PRODUCTS)
    quantity = dice.randrange(1, 6) * (-1 if returned else 1)
    discount = Decimal(dice.choice(["0.0000", "0.0000", "0.1000", "0.2500"]))
    total = (quantity * Decimal(price) * (1 - discount)).quantize(Decimal("0.01"))
    return {
        "line_no": line_number,
        "product_id": product_id,
        "product": product,
        "category": category,
        "quantity": quantity,
        "unit_price": Decimal(price),
        "discount": discount,
        "line_total": total,
    }


def _pseudonym(dice: random.Random) -> str:
    return hashlib.sha256(dice.randbytes(8)).hexdigest()
