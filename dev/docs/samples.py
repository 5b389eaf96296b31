"""Build sample manifests and a run record with the code of the job, so that their keys are the real ones."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from config.exports import contracts
from config.exports.contract import Contract
from config.exports.windows import find_window
from glue_jobs.delivery import counts, manifest
from glue_jobs.delivery.counts import PartitionReport, ReadCounts
from glue_jobs.delivery.manifest import Accepted, CheckResult, Fence, File, WindowResult
from glue_jobs.delivery.verify import FileStats
from glue_jobs.runs import RunRecord, describe_outcome
from glue_jobs.source import PinnedTable

_MONDAY = date(2026, 11, 9)
_RUN = "20261116T060009Z-5a0c9e12"
_JOB_RUN = "jr_7d3e0c6a5b1f4982"
_STARTED = datetime(2026, 11, 16, 6, 0, 9, tzinfo=UTC)
_COMMITTED = datetime(2026, 11, 16, 5, 51, 30, tzinfo=UTC)
_CODE = "0.1.0+4f1c2a9b03d4"
_SHA256 = "e7efeef511bb608dfe54dbc45b4b5c4ce90ff05c364c183b5d1d4d54d0a69fdf"
_FOLDER = f"exports/weekly_sales/data/2026-W46/{_RUN}/"


def manifests() -> list[dict[str, Any]]:
    """Return a manifest of an export of lines, after a window with rows, and one of an aggregate, after an
    empty window.
    """
    sales = _load_contract("weekly_sales")
    regions = _load_contract("weekly_sales_by_region")
    full = _build_manifest(sales, date(2026, 11, 2), 14972, None)
    previous = _build_manifest(regions, date(2026, 10, 26), 25, None)
    empty = _build_manifest(regions, date(2026, 11, 2), 0, previous)
    return [_build_manifest(sales, _MONDAY, 15249, full), _build_manifest(regions, _MONDAY, 25, empty)]


def run_record() -> dict[str, Any]:
    """Return a run with a published, a waiting and a failed window."""
    record = RunRecord(
        _RUN,
        "weekly_sales",
        _STARTED,
        _STARTED,
        _STARTED + timedelta(hours=1),
        _JOB_RUN,
        host="ip-10-0-0-1/9f2c/pid:[4026531836]",
        pid=417,
    )
    window = find_window(_MONDAY, contracts.load("weekly_sales").window)
    waiting = "the table's last commit is of 2026-11-15 21:40 UTC, before the window's end"
    record.windows = [
        describe_outcome(window.label, "published", manifests()[0])
        | {"inputs_sha256": _INPUTS, "seconds": 33.723},
        {"window": "2026-W47", "state": "incomplete", "reason": waiting},
        _BLOCKED,
    ]
    record.state = "blocked"
    record.ended_at = _STARTED + timedelta(seconds=58)
    record.reason = f"{_BLOCKED['code']}  {_BLOCKED['reason']}. {_BLOCKED['remedy']}"
    record.phases = {"compute": 31.207, "verify": 2.114, "publish": 0.402}
    return attrs.asdict(record) | {"code_version": _CODE}


_INPUTS = "9b0f64c5d1f9ad0a2ec6aee1d07c9f4c37f2b6d0f6a8d0f9a1e6b6bd3a0c5e17"
_BLOCKED = {
    "window": "2026-W44",
    "state": "blocked",
    "code": "EXP-CHECK-BLOCKED",
    "reason": "window 2026-W44: A unit price is negative. (price_not_negative: 3)",
    "remedy": "Correct the source, or the check",
    "exit_code": 7,
    "stops": False,
    "may_be_published": False,
}


def _load_contract(name: str) -> Contract:
    return attrs.evolve(contracts.load(name), sha256=_SHA256)


def _build_manifest(
    contract: Contract, day: date, rows: int, before: dict[str, Any] | None
) -> dict[str, Any]:
    document = manifest.build_manifest(
        _build_result(contract, day, rows, manifest.describe_previous(before) if before else None),
        Fence(_COMMITTED, _STARTED, _RUN),
        _STARTED + timedelta(seconds=55),
    )
    return dict(json.loads(json.dumps(document | {"code_version": _CODE})))


def _build_result(contract: Contract, day: date, rows: int, previous: dict[str, Any] | None) -> WindowResult:
    totals: dict[str, Decimal | None] = {"sum": Decimal(31870), "min": Decimal(-4), "max": Decimal(12)}
    numbers = [column for column in contract.columns if column.numeric]
    columns = {column.name: {measure: totals[measure] for measure in column.totals} for column in numbers}
    by_currency: dict[str | None, Decimal] = {"EUR": Decimal("574011.92"), "USD": Decimal("568534.46")}
    varying = [column for column in numbers if column.per]
    units = {column.name: by_currency if "sum" in column.totals else {} for column in varying}
    stats = FileStats(content_sha256=_SHA256, rows=rows, totals=columns, units=units)
    check = contract.check[0]
    return WindowResult(
        contract=contract,
        window=find_window(day, contract.window),
        table=_build_table(),
        run_id=_RUN,
        status="complete" if rows else "empty",
        completeness="Each Kafka partition has an event from after the window's end, or is idle.",
        counts=_build_counts(contract, stats),
        events=6913,
        offsets={"0": [1097, 2380]},
        stats=stats,
        checks=[CheckResult(check.id, check.severity, check.message, 0)],
        notes=["2 texts were longer than 32,767 characters, Excel's limit, and cut to it."],
        files=[File("data", f"{_FOLDER}weekly_sales_2026-W46.csv", 4985960, _SHA256, rows)],
        key_version="5f3a4c1e-9d0b-4c7a-8a44-0c8f6f1d2b3e" if contract.hashed else None,
        previous_window=previous,
        accepted=Accepted(
            ("3 events of generation 1 are no longer in the table. That was accepted.",), ("2026-W45",)
        ),
        aggregate_table=None if contract.aggregate is None else "lakeferry.weekly_sales_by_region",
    )


def _build_counts(contract: Contract, stats: FileStats) -> dict[str, Any]:
    rows = {"delivered": stats.rows} | ({"suppressed": 20} if contract.aggregate else {})
    counted = PartitionReport(
        written=stats.rows,
        events={"kept": 5858, "duplicates": 874, "filtered": 181},
        items=15249,
        lines={"delivered": 15249},
        rows=rows,
    )
    read = ReadCounts(
        in_table=13696, inside=6913, invalid_time=0, invalid_time_received=0, null_key=0, whole_table=False
    )
    return counts.reconcile(read, counted, stats, aggregated=contract.aggregate is not None)


def _build_table() -> PinnedTable:
    return PinnedTable(
        database="lkc-abc123",
        name="sales_orders",
        uuid="e753c234-7c2c-445a-b380-9c425e01ac1a",
        snapshot_id=2244809164101853962,
        schema_id=0,
        committed_at=_COMMITTED,
        current_since=_COMMITTED,
        appended_at=_COMMITTED,
        events=13696,
        upserts=False,
        fields={},
        former={},
    )
