"""The same export as one SQL statement in DuckDB: Iceberg in, deduplicated, hashed, sorted, one CSV out, over
the same S3.

It counts nothing, checks nothing, quarantines nothing and publishes nothing; it is the reference for raw
speed.
"""

from __future__ import annotations

import sys

import boto3
import duckdb

from dev.benchmarks.lake import DATABASE, TARGET
from lakeferry.local import query

_KEY = "benchmark" * 4
_PERSONAL = ("customer_name", "customer_email", "customer_phone", "customer_address")


def main(table: str, key: str, memory: str) -> None:
    glue = boto3.client("glue")
    metadata = glue.get_table(DatabaseName=DATABASE, Name=table)["Table"]["Parameters"]["metadata_location"]
    with duckdb.connect(config={"threads": 2, "memory_limit": memory}) as connection:
        query.load(connection)
        hashes = ", ".join(f"{_build_hmac_sql(name)} AS {name}" for name in _PERSONAL)
        connection.execute(
            f"""
            COPY (
                SELECT * EXCLUDE (rank) FROM (
                    SELECT order_id, event_id, channel, product_id, quantity, unit_price, currency, {hashes},
                           strftime(event_time, '%Y-%m-%dT%H:%M:%S.%fZ') AS event_time,
                           (quantity * unit_price)::DECIMAL(18, 2) AS line_total,
                           row_number() OVER (PARTITION BY order_id ORDER BY "$$offset" DESC) AS rank
                    FROM iceberg_scan('{metadata}')
                    WHERE event_time >= TIMESTAMPTZ '2026-01-19 00:00:00+00'
                      AND event_time < TIMESTAMPTZ '2026-01-26 00:00:00+00'
                ) WHERE rank = 1 ORDER BY order_id
            ) TO 's3://{TARGET}/{key}' (HEADER, DELIMITER ',')
            """
        )


def _build_hmac_sql(column: str) -> str:
    """Return HMAC-SHA-256 of a column in DuckDB's functions.

    The inner digest enters the outer one as a blob of 32 bytes.
    """
    inner, outer = (
        bytes(byte ^ pad for byte in _KEY.encode().ljust(64, b"\0")).hex() for pad in (0x36, 0x5C)
    )
    value = f"encode(lower(trim({column})))"
    return f"sha256(unhex('{outer}') || unhex(sha256(unhex('{inner}') || {value})))"


if __name__ == "__main__":
    main(*sys.argv[1:])
