"""Delivered windows that look real: rows made up here, written as CSV, and read back by the code that reads real files."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import attrs

from exports import contract as contracts
from exports.contract import Contract
from exports.windows import Window, window_of
from glue_jobs.delivery import csv_line, manifest
from glue_jobs.delivery.inspect import Inspection, Object, inspect
from glue_jobs.delivery.manifest import CheckResult, Delivered, File
from glue_jobs.delivery.sinks import Part
from glue_jobs.table_metadata import PinnedTable

MONDAY = date(2026, 11, 9)
RUN = "20261116T061502Z-5a0c9e12"

REGIONS = """
name = "sales_by_region"
version = 3
title = "Sales by region"
description = "Sales of the week by region and channel."
owner = "sales-data team"
grain = "one row per region and channel"
[source]
topic = "sales_orders"
event_time = "ordered_at"
[window]
every = "iso_week"
zone = "Europe/Berlin"
from = 2026-10-26
[explode]
array = "order_lines"
as = "line"
[[column]]
name = "region"
from = "customer.region"
type = "text"
title = "Region"
description = "The customer's sales region."
nullable = true
[[column]]
name = "channel"
type = "text"
title = "Channel"
description = "Where the order came from."
[[column]]
name = "lines"
measure = "count(*)"
type = "integer"
title = "Order lines"
description = "How many order lines."
[[column]]
name = "sales"
measure = "sum(line.quantity * line.unit_price)"
type = "decimal(18,2)"
title = "Sales"
description = "Sum of quantity times unit price."
unit = "EUR"
[aggregate]
people = "customer.customer_id"
smallest_group = 10
[delivery]
order_by = ["region", "channel"]
dialect = "machine"
[report]
headline = ["lines", "sales"]
[[report.chart]]
title = "Sales per region"
x = "region"
y = "sales"
"""

TRADES = """
name = "trades"
version = 1
title = "Trades of the day"
description = "Every trade of the day."
owner = "trading desk"
grain = "one row per trade"
[source]
topic = "stock_trades"
event_time = "traded_at"
[window]
every = "day"
zone = "America/New_York"
from = 2026-11-01
on_late = "publish"
[[column]]
name = "hour"
expression = "date_trunc('hour', traded_at)"
type = "timestamp"
title = "Hour"
description = "The hour of the trade."
[[column]]
name = "side"
type = "text"
title = "Side"
description = "BUY or SELL."
allowed = ["BUY", "SELL"]
[[column]]
name = "amount"
type = "decimal(12,4)"
title = "Amount"
description = "Price times quantity."
unit = "USD"
[[column]]
name = "settled"
type = "boolean"
title = "Settled"
description = "Whether it is paid."
nullable = true
[delivery]
order_by = ["hour"]
null_text = "NULL"
gzip = true
files = "parts"
[report]
headline = ["amount"]
[[report.chart]]
title = "Amount per hour"
x = "hour"
y = "amount"
kind = "line"
[[report.chart]]
title = "Trades per side"
x = "side"
y = "rows"
"""


def contract(text: str) -> Contract:
    return contracts.parse(text, name="sample.toml")


def csv_bytes(rows_of: Contract, rows: list[dict]) -> bytes:
    """The file as the job writes it, without compression."""
    columns, null_text = rows_of.columns, rows_of.delivery.null_text
    lines = [",".join(_cell(row[column.name], null_text) for column in columns) + "\r\n" for row in rows]
    return csv_line.header(columns, rows_of.delivery) + "".join(lines).encode()


def inspected(rows_of: Contract, content: bytes) -> Inspection:
    header = csv_line.header(rows_of.columns, rows_of.delivery)
    stored = gzip.compress(content, mtime=0) if rows_of.delivery.gzip else content
    part = Part(1, "etag", len(stored), hashlib.sha256(stored).hexdigest())
    return inspect([Object("exports/file.csv", io.BytesIO(stored), [part])], rows_of, header)


def delivered(rows_of: Contract, rows: list[dict], *, day: date = MONDAY, **changes) -> Delivered:
    """A window with these rows, of which every event was kept; `changes` replace parts of it."""
    window = window_of(day, rows_of.window)
    inspection = inspected(rows_of, csv_bytes(rows_of, rows))
    ending = ".csv.gz" if rows_of.delivery.gzip else ".csv"
    key = f"exports/{rows_of.name}/data/{window.label}/{RUN}/{rows_of.name}_{window.label}{ending}"
    made = Delivered(
        contract=rows_of,
        window=window,
        table=pinned(window, rows_of.source.topic),
        run_id=RUN,
        status="complete" if rows else "empty",
        books=books(len(rows), aggregated=rows_of.aggregate is not None),
        offsets={"0": [100, 100 + len(rows)]},
        inspection=inspection,
        checks=[CheckResult(check.id, check.severity, check.message, 0) for check in rows_of.check],
        notes=manifest.notes(rows_of, inspection, 0, 0),
        files=[File("data", key, one.size, one.sha256, one.rows) for one in inspection.files],
        key_version="7f6d3c52-0b1e-4f7e-9a55-2f4f6a4e8c11" if rows_of.hashed else None,
        previous_window=None,
        aggregate_table=None,
    )
    return attrs.evolve(made, **changes)


def pinned(window: Window, name: str) -> PinnedTable:
    committed = window.end + timedelta(minutes=52)
    return PinnedTable("lkc-7x2k9p", name, "f0d4", 6083129935478620001, committed, committed, 51_204, {}, {})


def books(kept: int, *, aggregated: bool = False, **events: int) -> dict:
    """Rows by fate; other events than those kept are named."""
    fates = {"duplicates": 0, "outside_window": 0, "filtered": 0, "undated": 0, "unkeyed": 0, "kept": kept} | events
    return {
        "events": {"in_table": sum(fates.values()), **fates},
        "lines": {"of_kept_events": kept, "filtered": 0, "suppressed": 0, "delivered": kept},
        "groups": {"shown": kept, "suppressed": 0} if aggregated else None,
        "rows": kept,
    }


def weekly_sales(orders: int = 400, **changes) -> Delivered:
    """A week of the export that ships, with something of everything that happens to rows."""
    shipped = contracts.load("weekly_sales")
    rows = sales_rows(orders)
    known = {
        "books": books(orders, duplicates=61, outside_window=50_633, filtered=23, undated=2, unkeyed=1),
        "previous_window": previous("2026-W45", 1_154, line_total="61274.20", quantity="3411"),
    }
    known["books"]["lines"] = {"of_kept_events": len(rows), "filtered": 0, "suppressed": 0, "delivered": len(rows)}
    return delivered(shipped, rows, **known | changes)


def previous(label: str, rows: int, **totals: str | None) -> dict:
    return {"window": label, "run_id": "20261109T061502Z-0b77d1aa", "rows": rows, "totals": totals}


def sales_rows(orders: int, seed: int = 46) -> list[dict]:
    dice = random.Random(seed)
    return [row for number in range(orders) for row in _order(dice, number)]


def region_rows() -> list[dict]:
    return [
        {"region": region, "channel": channel, "lines": lines, "sales": Decimal(lines * 3741) / 100}
        for region, lines in (("North", 410), ("South", 388), ("West", 201), (None, 55))
        for channel in ("app", "store", "web")
    ]


def trade_rows(day: date = MONDAY, closed: tuple[int, ...] = (12, 13)) -> list[dict]:
    """Trades at each hour from 9 to 20 (UTC) but the `closed` ones."""
    dice = random.Random(9)
    hours = [datetime(day.year, day.month, day.day, hour, tzinfo=UTC) for hour in range(9, 21) if hour not in closed]
    return [
        {"hour": hour, "side": dice.choice(["BUY", "SELL"]), "amount": Decimal(dice.randrange(10**7)) / 10_000, "settled": None}
        for hour in hours
        for _ in range(dice.randrange(3, 9))
    ]


_PRODUCTS = (
    ("P-1001", "Kettle, 1.7 l", "Kitchen", "39.9000"),
    ("P-1002", "Mug \"Nordsee\"", "Kitchen", "8.5000"),
    ("P-2001", "Desk lamp", "Light", "54.0000"),
    ("P-2002", "LED strip 5 m", "Light", "23.4900"),
    ("P-3001", "Büroklammern, 100 Stück", "Office", "2.9900"),
    ("P-3002", "-10 % Sommerblock", "Office", "4.2500"),
    ("P-4001", "Wool blanket", None, "79.0000"),
)


def _order(dice: random.Random, number: int) -> list[dict]:
    moment = datetime(2026, 11, 8, 23, tzinfo=UTC) + timedelta(seconds=dice.randrange(7 * 86_400), microseconds=dice.randrange(10**6))
    returned = dice.random() < 0.04
    channel = dice.choices(["web", "app", "store", "partner"], [50, 30, 15, 5])[0]
    email = dice.random() < 0.9
    order = {
        "order_id": f"SO-{100_000 + number}",
        "ordered_at": moment,
        "order_date": (moment + timedelta(hours=1)).date(),
        "status": "returned" if returned else dice.choice(["accepted", "accepted", "amended"]),
        "channel": channel,
        "store_id": f"ST-{dice.randrange(1, 9):02}" if channel == "store" else None,
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
    return [order | _line(dice, place, returned) for place in range(1, dice.randrange(2, 5))]


def _line(dice: random.Random, place: int, returned: bool) -> dict:
    product_id, product, category, price = dice.choice(_PRODUCTS)
    quantity = dice.randrange(1, 6) * (-1 if returned else 1)
    discount = Decimal(dice.choice(["0.0000", "0.0000", "0.1000", "0.2500"]))
    total = (quantity * Decimal(price) * (1 - discount)).quantize(Decimal("0.01"))
    return {
        "line_no": place,
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


def _cell(value: object, null_text: str) -> str:
    if value is None:
        return null_text
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    guarded = f"'{value}" if re.search(csv_line.GUARDED, value) else value
    quotes = re.search(r'[",\r\n]|^ | $', guarded) or guarded in ("", null_text)
    return '"' + guarded.replace('"', '""') + '"' if quotes else guarded
