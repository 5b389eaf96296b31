"""The table that the benchmarks export: flat sales events of five weeks, as Tableflow would have written
them.

Seeded, so that each run measures the same rows: 5 % later corrections of an order, 1 % of events up to two
days late, 1 to 3 % null personal data, unpartitioned, zstd, in order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table

from dev.benchmarks.shapes import Shape

START = datetime(2026, 1, 5, tzinfo=UTC)
WEEKS = 5
_MICROS = 1_000_000
_SPAN = int(timedelta(weeks=WEEKS).total_seconds()) * _MICROS
_TWO_DAYS = 2 * 86_400 * _MICROS
_ZONE = pa.timestamp("us", tz="UTC")

ARROW_SCHEMA = pa.schema(
    [
        ("order_id", pa.string()),
        ("event_id", pa.string()),
        ("channel", pa.string()),
        ("product_id", pa.string()),
        ("quantity", pa.int32()),
        ("unit_price", pa.decimal128(10, 2)),
        ("currency", pa.string()),
        ("customer_name", pa.string()),
        ("customer_email", pa.string()),
        ("customer_phone", pa.string()),
        ("customer_address", pa.string()),
        ("event_time", _ZONE),
        ("$$topic", pa.string()),
        ("$$partition", pa.int32()),
        ("$$offset", pa.int64()),
        ("$$timestamp", _ZONE),
        ("$$leader-epoch", pa.int32()),
    ]
)


def write(catalog: Catalog, database: str, location: str, shape: Shape) -> Table:
    """Create `database`.`shape.name` below `location`, and write its events."""
    catalog.create_namespace_if_not_exists(database, {"location": location})
    properties = {"write.parquet.compression-codec": "zstd", "format-version": "2"}
    name = shape.name
    table = catalog.create_table(
        (database, name), ARROW_SCHEMA, location=f"{location}/{name}", properties=properties
    )
    batches = _generate_files(shape.rows, shape.files)
    for number in range(shape.commits):
        files = range(shape.files * number // shape.commits, shape.files * (number + 1) // shape.commits)
        # One snapshot for all of them, as Tableflow does; appending to a transaction would make one for each.
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as appended:
            for _ in files:
                for file in _dataframe_to_data_files(transaction.table_metadata, next(batches), table.io):
                    appended.append_data_file(file)
    return table


def correct(table: Table, shape: Shape, day: date, orders: int) -> None:
    """Append corrections of this many orders that happened on `day` (UTC), in one commit."""
    seconds = (datetime(day.year, day.month, day.day, 12, tzinfo=UTC) - START).total_seconds()
    first = int(shape.rows * seconds * _MICROS / _SPAN)
    # Corrections have later offsets than any event before.
    offsets = np.full(6, shape.rows + first, dtype=np.int64)
    events = _build_file(np.random.default_rng(first), offsets, first, first + orders, shape.rows)
    on_the_day = pc.equal(
        pc.floor_temporal(events["event_time"], unit="day"), pa.scalar(day).cast(pa.date32()).cast(_ZONE)
    )
    table.append(events.filter(on_the_day))


def _generate_files(rows: int, files: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(20260105)
    offsets = np.zeros(6, dtype=np.int64)
    bounds = np.linspace(0, rows, files + 1).astype(np.int64)
    for first, last in pairwise(bounds):
        yield _build_file(random, offsets, int(first), int(last), rows)


def _build_file(
    random: np.random.Generator, offsets: np.ndarray, first: int, last: int, rows: int
) -> pa.Table:
    count = last - first
    number = np.arange(first, last)
    # A correction repeats an order of the last few thousand with a new event.
    corrected = (random.random(count) < 0.05) & (number > 5000)
    order = np.where(corrected, number - random.integers(1, 5000, count), number)
    arrived = (number * (_SPAN / rows)).astype(np.int64)
    happened = (order * (_SPAN / rows)).astype(np.int64)
    late = _hash_order(order, 7) < 0.01
    happened = np.where(
        late, np.maximum(0, happened - (_hash_order(order, 11) * _TWO_DAYS).astype(np.int64)), happened
    )
    partition = (order * 2654435761 % 4294967296 % 6).astype(np.int32)
    columns = _build_people(order, rows) | {
        "order_id": _build_texts("SO", order, 10),
        "event_id": _build_texts("EV", random.integers(0, 10**12, count), 12),
        "channel": _pick(["web", "app", "store", "partner"], _hash_order(order, 1)),
        "product_id": _build_texts("P", (_hash_order(order, 2) * 5000).astype(np.int64), 5),
        "quantity": pa.array(random.integers(1, 10, count).astype(np.int32)),
        "unit_price": _build_prices(random.integers(100, 50_000, count)),
        "currency": _pick(["EUR", "USD", "GBP"], _hash_order(order, 4)),
        "event_time": _build_times(happened + (_hash_order(order, 5) * 1000).astype(np.int64)),
        "$$topic": pa.array(["sales"]).take(pa.array(np.zeros(count, dtype=np.int32))),
        "$$partition": pa.array(partition),
        "$$offset": pa.array(_assign_offsets(partition, offsets)),
        "$$timestamp": _build_times(arrived),
        "$$leader-epoch": pa.array(np.zeros(count, dtype=np.int32)),
    }
    return pa.table(columns).select(ARROW_SCHEMA.names).cast(ARROW_SCHEMA)


def _build_people(order: np.ndarray, rows: int) -> dict[str, pa.Array]:
    person = (_hash_order(order, 3) * rows * 0.65).astype(np.int64)
    names = [f"First{number % 20:02} Last{number // 20:02}" for number in range(400)]
    house_number = pc.cast(pa.array((_hash_order(person, 6) * 999).astype(np.int64)), pa.string())
    columns = {
        "customer_name": (_pick(names, _hash_order(person, 8)), 0.01),
        "customer_email": (
            pc.binary_join_element_wise(_build_texts("user", person, 7), "@example.com", ""),
            0.02,
        ),
        "customer_phone": (
            _build_texts("+1555", (_hash_order(person, 9) * 10_000_000).astype(np.int64), 7),
            0.03,
        ),
        "customer_address": (
            pc.binary_join_element_wise(house_number, " Road ", _build_texts("", person * 7, 8), ""),
            0.01,
        ),
    }
    nulls = {
        name: _hash_order(order, 20 + number) < share
        for number, (name, (_, share)) in enumerate(columns.items())
    }
    return {name: pc.if_else(pa.array(nulls[name]), None, values) for name, (values, _) in columns.items()}


def _hash_order(order: np.ndarray, salt: int) -> np.ndarray:
    """Return a number in [0, 1) that is the same for all events of an order."""
    mixed = (order.astype(np.uint64) + np.uint64(salt * 1_000_003)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return (mixed * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _assign_offsets(partition: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the next offsets of each partition, and advance `offsets`."""
    result = np.empty(len(partition), dtype=np.int64)
    for index in range(len(offsets)):
        in_partition = partition == index
        result[in_partition] = offsets[index] + np.arange(in_partition.sum())
        offsets[index] += in_partition.sum()
    return result


def _build_texts(prefix: str, numbers: np.ndarray, width: int) -> pa.Array:
    return pc.binary_join_element_wise(
        prefix, pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), width, "0"), ""
    )


def _pick(values: list[str], where: np.ndarray) -> pa.Array:
    return pa.array(values).take(pa.array((where * len(values)).astype(np.int32)))


def _build_prices(numbers: np.ndarray) -> pa.Array:
    """Return whole cents as decimal(10,2), by reading the same bytes with another scale."""
    cents = pa.array(numbers).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 0))
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), cents.buffers())


def _build_times(micros: np.ndarray) -> pa.Array:
    return pa.array(micros + int(START.timestamp()) * _MICROS).cast(_ZONE)
