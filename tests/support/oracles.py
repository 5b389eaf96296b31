"""Computes the same results by other means: Python's hmac instead of Spark's sha2, and DuckDB instead of the
job.
"""

from __future__ import annotations

import hmac
import re
import unicodedata

import duckdb

from tests.support.lake import KEY

#: weekly_sales over a table `orders` with the topic's fields and Kafka's as kafka_…. All cells are text.
WEEKLY_SALES = r"""
WITH latest AS (
    SELECT * FROM orders
    QUALIFY row_number() OVER (
        PARTITION BY order_id ORDER BY kafka_offset DESC, kafka_timestamp DESC, kafka_partition DESC) = 1
), sold AS (
    SELECT *, unnest(order_lines) AS line FROM latest
    WHERE status <> 'cancelled' AND ordered_at >= $1::TIMESTAMP AND ordered_at < $2::TIMESTAMP
)
SELECT order_id, line.line_no, strftime(ordered_at, '%Y-%m-%dT%H:%M:%S.%fZ'),
    ((ordered_at AT TIME ZONE 'UTC') AT TIME ZONE 'Europe/Berlin')::DATE, status, channel, store_id,
    line.product_id, line.product, line.category, line.quantity, line.unit_price, line.discount,
    (line.quantity::DECIMAL(10, 0) * line.unit_price * (1 - line.discount))::DECIMAL(18, 2), currency, coupon_code,
    pseudonym(customer.customer_id, 'id'), pseudonym(customer.email, 'email'), pseudonym(customer.phone, 'phone'),
    customer.region, year(customer.registered_at), substr(trim(ship_to.postal_code), 1, 2), ship_to.country
FROM sold ORDER BY order_id, line.line_no
"""
LINE = (
    "STRUCT(line_no INTEGER, product_id VARCHAR, product VARCHAR, category VARCHAR, quantity INTEGER, "
    "unit_price DECIMAL(12,4), discount DECIMAL(5,4))"
)
PERSON = (
    "STRUCT(customer_id VARCHAR, name VARCHAR, email VARCHAR, phone VARCHAR, region VARCHAR, registered_at "
    "TIMESTAMP)"
)
ADDRESS = "STRUCT(street VARCHAR, city VARCHAR, postal_code VARCHAR, country VARCHAR)"
ORDERS = {
    "order_id": "VARCHAR",
    "channel": "VARCHAR",
    "store_id": "INTEGER",
    "ordered_at": "TIMESTAMP",
    "status": "VARCHAR",
    "currency": "VARCHAR",
    "coupon_code": "VARCHAR",
    "customer": PERSON,
    "ship_to": ADDRESS,
    "order_lines": f"{LINE}[]",
    "kafka_timestamp": "BIGINT",
    "kafka_offset": "BIGINT",
    "kafka_partition": "INTEGER",
}


def connect() -> duckdb.DuckDBPyConnection:
    """Return a database with the function pseudonym(text, kind)."""
    database = duckdb.connect()
    database.create_function(
        "pseudonym", _pseudonym, ["VARCHAR", "VARCHAR"], "VARCHAR", null_handling="special"
    )
    return database


def pseudonym(text: str | None, kind: str, key: bytes = KEY) -> str | None:
    """Return the pseudonym that the documentation defines."""
    text = unicodedata.normalize("NFKC", text or "").strip(" \t\n\r")
    if not text:
        return None
    if kind == "phone":
        text = "".join(
            str(unicodedata.digit(sign)) if sign.isdecimal() else sign
            for sign in text
            if sign.isdecimal() or sign == "+"
        )
        if not text.strip("+"):
            return None
    elif kind != "id":
        text = text.lower()
    if kind in ("name", "text"):
        text = re.sub("[ \t\n\r]+", " ", text)
    return hmac.new(key, f"v1|{kind}|{text}".encode(), "sha256").hexdigest()


def _pseudonym(text: str | None, kind: str) -> str | None:
    return pseudonym(text, kind)


def cells(database: duckdb.DuckDBPyConnection, sql: str, *given: str) -> list[list[str]]:
    """Return the result as a file has it, with an empty text for null."""
    return [
        ["" if value is None else str(value) for value in row]
        for row in database.execute(sql, given).fetchall()
    ]
