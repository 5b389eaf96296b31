"""Invented customers and products of the generated sales orders."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any, Final, NamedTuple

from simulators.data import sales_words as words

#: The smallest number of customers: those of the regions with a fixed number, and one more.
SMALLEST_CROWD: Final = sum(region.people or 0 for region in words.REGIONS) + 1


class Person(NamedTuple):
    region: words.Region
    customer: dict[str, Any]
    address: dict[str, Any]


def generate_people(rng: random.Random, count: int, before: datetime) -> list[Person]:
    """Return `count` customers, all registered in the three years before `before`."""
    fixed_regions: list[words.Region] = []
    for region in words.REGIONS:
        fixed_regions += [region] * (region.people or 0)
    weights = [region.weight for region in words.REGIONS]
    drawn_regions = rng.choices(words.REGIONS, weights, k=count - len(fixed_regions))
    return [
        _generate_person(rng, number, region, before)
        for number, region in enumerate(fixed_regions + drawn_regions, start=1)
    ]


def generate_products() -> list[dict[str, Any]]:
    """Return a product for each good and material. The material adds to the price."""
    pairs = product(enumerate(words.GOODS), enumerate(words.MATERIALS))
    return [
        {
            "product_id": f"P{good * 100 + number:04d}",
            "product": f"{material} {name}",
            "category": category,
            "unit_price": Decimal(cents + 150 * number).scaleb(-2),
        }
        for (good, (name, category, cents)), (number, material) in pairs
    ]


def _generate_person(rng: random.Random, number: int, region: words.Region, before: datetime) -> Person:
    first = rng.choice(words.FIRST_NAMES)
    last = rng.choice(words.LAST_NAMES)
    customer = {
        "customer_id": f"C{number:06d}",
        "name": f"{first} {last}",
        "email": f"{first}.{last}.{number}@{rng.choice(words.MAIL_DOMAINS)}".lower(),
        "phone": _generate_phone(rng, region),
        "region": region.name,
        "registered_at": before - timedelta(milliseconds=rng.randrange(3 * 365 * 86_400_000)),
    }
    address = {
        "street": f"{rng.randrange(1, 200)} {rng.choice(words.STREETS)}",
        "city": rng.choice(words.CITIES),
        "postal_code": f"{rng.randrange(100_000):05d}",
        "country": region.country,
    }
    return Person(region, customer, address)


def _generate_phone(rng: random.Random, region: words.Region) -> str | None:
    if rng.random() < 0.1:
        return None
    if region.country == "US":
        return f"+1-202-555-{rng.randrange(100, 200):04d}"
    return f"+44 20 7946 {rng.randrange(1_000):04d}"
