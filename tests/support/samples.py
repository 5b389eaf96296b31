"""Realistic windows: generated rows, written as CSV, and read back by the code that reads real files."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import attrs

from config.exports import contracts
from config.exports.contract import Contract
from config.exports.file_model import Check
from config.exports.windows import Window, find_window
from glue_jobs.delivery import csv, manifest, notes
from glue_jobs.delivery.checks import list_implied_checks
from glue_jobs.delivery.manifest import CheckResult, File, WindowResult
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import FileStats, verify_file
from glue_jobs.source import PinnedTable
from tests.support.sample_rows import region_rows, sales_rows, symbol_rows, trade_rows

MONDAY = date(2026, 11, 9)
RUN = "20261116T061502Z-5a0c9e12"

#: The first tables of a contract, with a place for more keys of `delivery`, and a column.
HEAD = """name = "things"
version = 1
title = "Things"
description = "Things."
owner = "somebody"
grain = "one row per thing"
[source]
topic = "things"
event_time = "at"
[window]
every = "day"
zone = "UTC"
from = 2026-11-01
[delivery]
order_by = ["{first}"]
{delivery}
"""
COLUMN = '[[column]]\nname = "{0}"\ntype = "{1}"\ntitle = "{2}"\ndescription = "D."\n{3}\n'

#: A contract with every type, compressed, in parts, and with a text for missing values.
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
on_incomplete_source = "publish"
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


def things(*columns: tuple, delivery: str = "", more: str = "") -> Contract:
    """Return a contract. Columns are (name, type), or (name, type, more keys of its table)."""
    text = HEAD.format(first=columns[0][0], delivery=delivery)
    text += "".join(
        COLUMN.format(name, kind, name.capitalize(), "\n".join(keys)) for name, kind, *keys in columns
    )
    return contract(text + more)


def contract(text: str) -> Contract:
    return contracts.parse(text, name="sample.toml")


def csv_bytes(rows_of: Contract, rows: list[dict]) -> bytes:
    """Return the file as the job writes it, without compression."""
    columns = rows_of.columns
    null_text = rows_of.delivery.null_text
    lines = [",".join(_cell(row[column.name], null_text) for column in columns) + "\r\n" for row in rows]
    return csv.build_header(columns, rows_of.delivery) + "".join(lines).encode()


def inspected(rows_of: Contract, content: bytes) -> FileStats:
    header = csv.build_header(rows_of.columns, rows_of.delivery)
    stored = gzip.compress(content, mtime=0) if rows_of.delivery.gzip else content
    part = Part(1, "etag", len(stored), hashlib.sha256(stored).hexdigest())
    return verify_file("exports/file.csv", io.BytesIO(stored), [part], rows_of, header)


def delivered(
    rows_of: Contract, rows: list[dict], *, day: date = MONDAY, counted=None, **changes
) -> WindowResult:
    """Return a window with these rows, in which every event was kept. `changes` replace fields."""
    counted = counted or counts(len(rows), aggregated=rows_of.aggregate is not None)
    window = find_window(day, rows_of.window)
    stats = inspected(rows_of, csv_bytes(rows_of, rows))
    ending = ".csv.gz" if rows_of.delivery.gzip else ".csv"
    key = f"exports/{rows_of.name}/data/{window.label}/{RUN}/{rows_of.name}_{window.label}{ending}"
    made = WindowResult(
        contract=rows_of,
        window=window,
        table=pinned(window, rows_of.source.topic),
        run_id=RUN,
        status="complete" if rows else "empty",
        completeness="Each Kafka partition has an event from after the window's end, or is idle.",
        counts=counted,
        events=sum(counted["events"][name] for name in manifest.OF_WINDOW),
        offsets={"0": [100, 100 + len(rows)]},
        stats=stats,
        checks=[*list_implied_checks(rows_of, stats), *map(passed, rows_of.check)],
        notes=notes.write_notes(rows_of, stats, 0, 0),
        files=[File("data", key, stats.size, stats.sha256, stats.rows)],
        key_version="7f6d3c52-0b1e-4f7e-9a55-2f4f6a4e8c11" if rows_of.hashed else None,
        previous_window=None,
        aggregate_table=None,
    )
    return attrs.evolve(made, **changes)


def pinned(window: Window, name: str) -> PinnedTable:
    committed = window.end + timedelta(minutes=52)
    return PinnedTable(
        "lkc-7x2k9p",
        name,
        "f0d4",
        6083129935478620001,
        0,
        committed,
        committed,
        committed,
        51_204,
        False,
        {},
        {},
    )


def counts(kept: int, *, aggregated: bool = False, **events: int) -> dict:
    """Return counts by outcome, with the names of events that were not kept."""
    all_events = {
        "duplicates": 0,
        "outside_window": 0,
        "filtered": 0,
        "invalid_event_time": 0,
        "null_key": 0,
        "kept": kept,
    } | events
    return {
        "events": {"in_table": sum(all_events.values()), **all_events},
        "lines": {"of_kept_events": kept, "filtered": 0, "suppressed": 0, "delivered": kept},
        "groups": {"shown": kept, "suppressed": 0} if aggregated else None,
        "rows": kept,
        "withheld": None,
    }


def weekly_sales(orders: int = 400, **changes) -> WindowResult:
    """Return a week of the shipped export, with an example of each outcome."""
    rows = sales_rows(orders)
    counted = counts(
        orders, duplicates=61, outside_window=50_633, filtered=23, invalid_event_time=2, null_key=1
    )
    counted["lines"] |= {"of_kept_events": len(rows), "delivered": len(rows)}
    known = {
        "counted": counted,
        "previous_window": previous("2026-W45", 1_154, **{"line_total EUR": "61274.20", "quantity": "3411"}),
    }
    return delivered(contracts.load("weekly_sales"), rows, **known | changes)


def sales_by_region(**changes) -> WindowResult:
    """Return an aggregate with two suppressed groups."""
    counted = counts(1_500, aggregated=True)
    counted["lines"] |= {"of_kept_events": 3_200, "delivered": 3_162, "suppressed": 38}
    counted["groups"] = {"shown": 12, "suppressed": 2}
    before = previous("2026-W45", 12, **{"sales EUR": "118290.42", "pieces": "0", "discounted_lines": "1"})
    return delivered(
        contracts.load("weekly_sales_by_region"),
        region_rows(),
        **{"counted": counted, "previous_window": before} | changes,
    )


def daily_trades(**changes) -> WindowResult:
    """Return an aggregate without people, also kept as a table. The market was closed for two hours."""
    rows = symbol_rows()
    known = {"counts": counts(len(rows), aggregated=True), "aggregate_table": "lakeferry.daily_trades"}
    return delivered(contracts.load("daily_trades"), rows, **known | changes)


def trades(**changes) -> WindowResult:
    return delivered(contract(TRADES), trade_rows(), **changes)


def passed(check: Check) -> CheckResult:
    return CheckResult(check.id, check.severity, check.message, 0, "file" if check.overall else "rows")


def previous(label: str, rows: int, **totals: str | None) -> dict:
    known = {
        "window": label,
        "run_id": "20261109T061502Z-0b77d1aa",
        "contract_version": 1,
        "last_with_rows": None,
    }
    return known | {"rows": rows, "totals": totals}


def _cell(value: object, null_text: str) -> str:
    if value is None:
        return null_text
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    guarded = csv.guarded(value)
    quotes = re.search(r'[",\r\n]|^ | $', guarded) or guarded in ("", null_text)
    return '"' + guarded.replace('"', '""') + '"' if quotes else guarded
