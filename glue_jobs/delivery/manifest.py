"""The manifest of a window: what was delivered, from what, by whom, and whether it holds."""

from __future__ import annotations

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import attrs

from exports.contract import Contract
from exports.windows import Window
from glue_jobs.delivery.publish import Fence, Manifest
from glue_jobs.delivery.verify import Inspection
from glue_jobs.table_metadata import PinnedTable
from glue_jobs.version import code_version

FORMAT = 1
#: Excel shows no more rows of a sheet than this, the header among them.
EXCEL_ROWS = 1_048_576


@attrs.frozen
class File:
    """An object of the delivery. `key` is absolute in the bucket."""

    role: str
    key: str
    size: int
    sha256: str
    rows: int | None = None


@attrs.frozen
class CheckResult:
    """`failed` counts rows where a rule speaks of each row (`of` is rows); it is 0 or 1 where it speaks of the file."""

    id: str
    severity: str
    message: str
    failed: int
    of: Literal["rows", "file"] = "rows"

    @property
    def passed(self) -> bool:
        return self.failed == 0


@attrs.frozen
class Delivered:
    """Everything a run knows about a window once the file is finished and was read back."""

    contract: Contract
    window: Window
    table: PinnedTable
    run_id: str
    status: str
    books: dict[str, Any]
    offsets: dict[str, list[int]]
    inspection: Inspection
    checks: list[CheckResult]
    notes: list[str]
    files: list[File]
    key_version: str | None
    previous_window: dict[str, Any] | None
    aggregate_table: str | None


def manifest(delivered: Delivered, current: Manifest | None, *, fence: Fence, now: datetime) -> Manifest:
    """`current` is the manifest that this one would replace."""
    generation = current["generation"] + 1 if current else 1
    mine = {"generation": generation, "run_id": delivered.run_id, "published_at": now.isoformat()}
    return _head(delivered) | {
        "generation": generation,
        "generations": [*(current["generations"] if current else []), mine],
        "published_at": now.isoformat(),
        "window": window_document(delivered.window, delivered.contract),
        "source": _source(delivered),
        "rows": delivered.books,
        "files": [attrs.asdict(file) for file in delivered.files],
        "content_sha256": delivered.inspection.content_sha256,
        "form": _form(delivered.contract),
        "headline": headline(delivered),
        "totals": totals_document(delivered.inspection),
        "checks": [attrs.asdict(check) | {"passed": check.passed} for check in delivered.checks],
        "notes": delivered.notes,
        "pseudonyms": {"key_version": delivered.key_version} if delivered.key_version else None,
        "previous_window": delivered.previous_window,
        "aggregate_table": delivered.aggregate_table,
        "fence": fence.document(),
    }


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_settled(current: Manifest, contract: Contract, table: PinnedTable, key_version: str | None) -> bool:
    """Whether the same code already made this window from the same snapshot, contract and key: the same file again."""
    pseudonyms = current["pseudonyms"] or {"key_version": None}
    source = current["source"]
    made_of = (source["table_uuid"], source["snapshot_id"], current["contract"]["sha256"], pseudonyms["key_version"])
    mine = (table.uuid, table.snapshot_id, contract.sha256, key_version)
    return made_of == mine and current["code_version"] == code_version()


def lost_events(current: Manifest, delivered: Delivered) -> bool:
    """Whether events that the published generation was made of are no longer in the table, as after Tableflow's retention.

    A table that only grows still has every event of a window: there are never fewer, and no partition begins later. Where
    rows are replaced by key, or the contract has another version, the two can't be compared.
    """
    before, now = current["rows"]["events"], delivered.books["events"]
    version = delivered.contract.version
    if before is None or now is None or delivered.table.upserts or current["contract"]["version"] != version:
        return False
    names = ["kept", "duplicates", "filtered"]
    if delivered.contract.window.applies == "after_deduplication":
        names.append("outside_window")
    fewer = sum(now[name] for name in names) < sum(before[name] for name in names)
    firsts = {partition: ends["min"] for partition, ends in current["source"]["offsets"].items()}
    return fewer or any(
        partition not in delivered.offsets or delivered.offsets[partition][0] > first for partition, first in firsts.items()
    )


def window_document(window: Window, contract: Contract) -> dict[str, str]:
    return {
        "label": window.label,
        "every": contract.window.every,
        "zone": contract.window.zone,
        "start": window.start.isoformat(),
        "end": window.end.isoformat(),
    }


def totals_document(inspection: Inspection) -> dict[str, dict[str, str | None]]:
    """Numbers as text: JSON has no decimals. A column whose unit varies has a sum for each unit, and no other total."""
    whole = {
        name: {what: None if value is None else f"{value:f}" for what, value in total.items()}
        for name, total in inspection.totals.items()
        if name not in inspection.units
    }
    return whole | {
        _of_unit(name, unit): {"sum": f"{total:f}"}
        for name, sums in inspection.units.items()
        for unit, total in sorted(sums.items(), key=lambda item: item[0] or "")
    }


def previous_document(manifest: Manifest) -> dict[str, Any]:
    """What a later window's report compares itself with. Where that window is empty, `last_with_rows` is the same of the
    latest one before it that isn't, or None.
    """
    document = {
        "window": manifest["window"]["label"],
        "run_id": manifest["run_id"],
        "contract_version": manifest["contract"]["version"],
        "rows": manifest["rows"]["rows"],
        "totals": {name: total["sum"] for name, total in manifest["totals"].items()},
    }
    return document | {"last_with_rows": None if document["rows"] else _last_with_rows(manifest["previous_window"])}


def figure(number: dict[str, Any]) -> str:
    """What `totals` calls a number of the headline."""
    return _of_unit(number["column"], number["unit"]) if number["per"] else str(number["column"])


def _of_unit(column: str, unit: str | None) -> str:
    return f"{column} {unit or ''}"


def _last_with_rows(before: dict[str, Any] | None) -> dict[str, Any] | None:
    if before is None or not before["rows"]:
        return before["last_with_rows"] if before else None
    return {name: value for name, value in before.items() if name != "last_with_rows"}


def notes(contract: Contract, inspection: Inspection, cut: int, replaced: int) -> list[str]:
    """Sentences for the reader about what a file can't say itself."""
    told = []
    if contract.delivery.dialect == "excel" and inspection.rows >= EXCEL_ROWS:
        told.append(f"The file has {inspection.rows:,} rows; Excel opens the first {EXCEL_ROWS - 1:,} of them.")
    if contract.delivery.dialect == "excel" and _many_digits(inspection):
        told.append("Some numbers have more than 15 digits; Excel rounds them when it opens the file.")
    if cut:
        told.append(f"{_counted(cut, 'text was', 'texts were')} longer than 32,767 characters, Excel's limit, and cut to it.")
    if replaced:
        told.append(f"{_counted(replaced, 'byte that is', 'bytes that are')} not valid text became the character \ufffd.")
    return told


def _counted(amount: int, one: str, more: str) -> str:
    return f"{amount:,} {one if amount == 1 else more}"


def _many_digits(inspection: Inspection) -> bool:
    values = [value for total in inspection.totals.values() for value in (total["min"], total["max"]) if value is not None]
    return any(len(Decimal(value).as_tuple().digits) > 15 for value in values)


def _head(delivered: Delivered) -> dict[str, Any]:
    contract = delivered.contract
    return {
        "format": FORMAT,
        "export": contract.name,
        "title": contract.title,
        "status": delivered.status,
        "run_id": delivered.run_id,
        "contract": {"version": contract.version, "sha256": contract.sha256},
        "code_version": code_version(),
    }


def _form(contract: Contract) -> dict[str, Any]:
    """What the bytes depend on beside the rows."""
    delivery = contract.delivery
    return {name: getattr(delivery, name) for name in ("dialect", "delimiter", "gzip", "null_text")}


def headline(delivered: Delivered) -> list[dict[str, Any]]:
    """Totals in the contract's order, those of a column whose unit varies by unit."""
    columns = {column.name: column for column in delivered.contract.columns}
    found: list[dict[str, Any]] = []
    for name in delivered.contract.report.headline:
        column = columns[name]
        by_unit: dict[str | None, Decimal | None] = {column.unit: delivered.inspection.totals[name]["sum"]}
        if column.per:
            by_unit = dict(delivered.inspection.units[name])
        about = {"column": name, "title": column.title, "per": column.per}
        ordered = sorted(by_unit.items(), key=lambda item: item[0] or "")
        found += [about | {"unit": unit, "total": f"{total:f}"} for unit, total in ordered]
    return found


def _source(delivered: Delivered) -> dict[str, Any]:
    table = delivered.table
    # The offsets of a window bound the count of its events, so they are withheld with it.
    offsets = {} if delivered.books["withheld"] else delivered.offsets
    return {
        "topic": delivered.contract.source.topic,
        "table": f"{table.database}.{table.name}",
        "table_uuid": table.uuid,
        "snapshot_id": table.snapshot_id,
        "committed_at": table.committed_at.isoformat(),
        "offsets": {partition: {"min": ends[0], "max": ends[1]} for partition, ends in sorted(offsets.items(), key=_number)},
    }


def _number(item: tuple[str, list[int]]) -> int:
    return int(item[0])
