"""The manifest of a window: the delivered files, their source, the run that made them, and the results of
checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

import attrs

from config.exports.contract import Contract
from config.exports.windows import Window
from glue_jobs.delivery.verify import FileStats
from glue_jobs.platform import compute_code_version
from glue_jobs.source import PinnedTable

Manifest = dict[str, Any]

FORMAT = 1
#: The status of a window that was published before it was known that the table has all its events.
INCOMPLETE: Final = "incomplete"
#: Outcomes of events that lie in the window.
OF_WINDOW: Final = ("kept", "duplicates", "filtered", "null_key")


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
    """`failed` is the number of rows that fail a check of rows (`of` is rows), of which `tolerated` may, and
    0 or 1 for a check of the file. `found` says more about what was found, and `unknown` why the check could
    not be made.
    """

    id: str
    severity: str
    message: str
    failed: int
    of: Literal["rows", "file"] = "rows"
    tolerated: int = 0
    found: str | None = None
    unknown: str | None = None

    @property
    def has_failed(self) -> bool:
        return self.unknown is None and self.failed > self.tolerated

    @property
    def passed(self) -> bool | None:
        """None if the check could not be made."""
        return None if self.unknown else not self.has_failed


@attrs.frozen
class Accepted:
    """What somebody accepted so that the window could be published, also in earlier generations.

    `sentences` are for the reader. `neighbours` are labels of published windows to which the contract
    assigned events by other rules.
    """

    sentences: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()

    def document(self) -> dict[str, list[str]]:
        return {"sentences": list(self.sentences), "neighbours": list(self.neighbours)}

    def with_loss(self, sentence: str) -> Accepted:
        return attrs.evolve(self, sentences=tuple(dict.fromkeys((*self.sentences, sentence))))

    def with_neighbours(self, labels: Iterable[str], sentences: Iterable[str]) -> Accepted:
        return Accepted(
            tuple(dict.fromkeys((*self.sentences, *sentences))),
            tuple(dict.fromkeys((*self.neighbours, *labels))),
        )


def read_accepted(current: Manifest | None, contract: Contract) -> Accepted:
    """Return what was accepted for the published generation, unless other events belong to the window now."""
    if current is None or current["membership"] != membership(contract):
        return Accepted()
    document = current["accepted"]
    return Accepted(tuple(document["sentences"]), tuple(document["neighbours"]))


@attrs.frozen
class WindowResult:
    """Everything a run knows about a window once the file is finished and was read back."""

    contract: Contract
    window: Window
    table: PinnedTable
    run_id: str
    status: str
    #: How it is known that the table has all events of the window, or why it is not known.
    completeness: str
    counts: dict[str, Any]
    #: All events in the window with a valid time, even if `counts` withholds them.
    events: int
    offsets: dict[str, list[int]]
    stats: FileStats
    checks: list[CheckResult]
    notes: list[str]
    files: list[File]
    key_version: str | None
    previous_window: dict[str, Any] | None
    aggregate_table: str | None
    accepted: Accepted = Accepted()


@attrs.frozen(order=True)
class Fence:
    """A fencing token. The run with the newer view of the source wins, then the one that started later."""

    source_since: datetime
    started_at: datetime
    run_id: str

    def document(self) -> list[str]:
        return [self.source_since.isoformat(), self.started_at.isoformat(), self.run_id]


def read_fence(manifest: Manifest) -> Fence:
    since, started, run_id = manifest["fence"]
    return Fence(datetime.fromisoformat(since), datetime.fromisoformat(started), run_id)


def build_manifest(result: WindowResult, fence: Fence, now: datetime) -> Manifest:
    """Return the manifest as that of a first generation. `build_next_generation` makes it the next one."""
    contract = result.contract
    delivery = contract.delivery
    files = [attrs.asdict(file) for file in result.files]
    checks = [attrs.asdict(check) | {"passed": check.passed} for check in result.checks]
    return build_next_generation(
        {
            "format": FORMAT,
            "export": contract.name,
            "title": contract.title,
            "status": result.status,
            "completeness": result.completeness,
            "run_id": result.run_id,
            "contract": {"version": contract.version, "sha256": contract.sha256},
            "code_version": compute_code_version(),
            "generation": None,
            "generations": None,
            "published_at": None,
            "window": describe_window(result.window, contract),
            "membership": membership(contract),
            "deduplicate_key": deduplicate_key(contract),
            "source": _describe_source(result),
            "rows": result.counts,
            "files": files,
            "content_sha256": result.stats.content_sha256,
            "form": {
                "dialect": delivery.dialect,
                "delimiter": delivery.delimiter,
                "gzip": delivery.gzip,
                "null_text": delivery.null_text,
            },
            "headline": build_headline(result),
            "totals": describe_totals(result.stats),
            "checks": checks,
            "notes": result.notes,
            "accepted": result.accepted.document(),
            "pseudonyms": {"key_version": result.key_version} if result.key_version else None,
            "previous_window": result.previous_window,
            "aggregate_table": result.aggregate_table,
            "fence": fence.document(),
        },
        None,
        now,
    )


def build_next_generation(manifest: Manifest, current: Manifest | None, now: datetime) -> Manifest:
    """Return `manifest` as the generation after `current`, the manifest that it would replace."""
    generation = current["generation"] + 1 if current else 1
    mine = {
        "generation": generation,
        "run_id": manifest["run_id"],
        "published_at": now.isoformat(),
        "table_uuid": manifest["source"]["table_uuid"],
    }
    return manifest | {
        "generation": generation,
        "generations": [*(current["generations"] if current else []), mine],
        "published_at": now.isoformat(),
    }


def list_table_uuids(manifest: Manifest) -> set[str]:
    """Return the ids of the tables that the generations of a window were made from."""
    return {generation["table_uuid"] for generation in manifest["generations"]}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def membership(contract: Contract) -> dict[str, Any]:
    """Return what decides to which window an event belongs, by the contract's keys.

    The default of `source.min_event_date` is before every window, so that it doesn't decide.
    """
    first_valid = contract.source.min_event_date
    decides = {
        "source.topic": contract.source.topic,
        "source.event_time": contract.source.event_time,
        "source.min_event_date": first_valid.isoformat() if first_valid else None,
        "window.every": contract.window.every,
        "window.zone": contract.window.zone,
        "window.filter_stage": contract.window.filter_stage,
    }
    # The event that deduplication keeps then decides.
    by_key = contract.deduplicate if contract.window.filter_stage == "after_deduplication" else None
    return decides | {"deduplicate": attrs.asdict(by_key) if by_key else None}


def deduplicate_key(contract: Contract) -> list[str]:
    return contract.deduplicate.key if contract.deduplicate else []


def was_complete(current: Manifest, window: Window, table: PinnedTable) -> bool:
    """Return whether it was known, when `current` was published, that this table has all events until the
    window's end.
    """
    is_known = current["status"] != INCOMPLETE
    covers = datetime.fromisoformat(current["window"]["end"]) >= window.end
    source = current["source"]
    # A table that was rolled back since then may lack events again.
    is_later = datetime.fromisoformat(source["committed_at"]) <= table.committed_at
    return is_known and covers and is_later and source["table_uuid"] == table.uuid


def describe_window(window: Window, contract: Contract) -> dict[str, str]:
    return {
        "label": window.label,
        "every": contract.window.every,
        "zone": contract.window.zone,
        "start": window.start.isoformat(),
        "end": window.end.isoformat(),
    }


def describe_totals(stats: FileStats) -> dict[str, dict[str, str | None]]:
    """Return numbers as text, because JSON has no decimals. A column whose unit varies only has a sum for
    each unit.

    A column that does not add up has no sum.
    """
    totals: dict[str, dict[str, str | None]] = {}
    for name, total in stats.totals.items():
        if name not in stats.units:
            totals[name] = {measure: _format_total(value) for measure, value in total.items()}
    for name, sums in stats.units.items():
        for unit in sorted(sums, key=lambda unit: unit or ""):
            totals[_label_unit(name, unit)] = {"sum": _format_total(sums[unit])}
    return totals


def _format_total(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def describe_previous(manifest: Manifest) -> dict[str, Any]:
    """Return the numbers of a window with which the report of the next window compares.

    If the window is empty, `last_with_rows` has those of the latest window before it that isn't, or None.
    """
    document = {
        "window": manifest["window"]["label"],
        "run_id": manifest["run_id"],
        "contract_version": manifest["contract"]["version"],
        "rows": manifest["rows"]["rows"],
        "totals": {name: total["sum"] for name, total in manifest["totals"].items() if "sum" in total},
    }
    last_with_rows = None if document["rows"] else _find_last_with_rows(manifest["previous_window"])
    return document | {"last_with_rows": last_with_rows}


def find_comparable(manifest: Manifest, contract: Contract) -> dict[str, Any]:
    """Return the numbers of an earlier window, without those that mean something else in this contract.

    A number has the same meaning if the contract has the same text, or the same version and the number is a
    headline of both windows with the same unit.
    """
    document = describe_previous(manifest)
    if manifest["contract"]["sha256"] == contract.sha256:
        return document
    units = {find_headline_total(number): number["unit"] for number in manifest["headline"]}
    fixed = {column.name: column.unit for column in contract.columns if not column.per}
    same_version = manifest["contract"]["version"] == contract.version
    totals = {
        name: total
        for name, total in document["totals"].items()
        if same_version and name in units and fixed.get(name, units[name]) == units[name]
    }
    return document | {"totals": totals}


def find_headline_total(number: dict[str, Any]) -> str:
    """Return the key in `totals` of a number of the headline."""
    return _label_unit(number["column"], number["unit"]) if number["per"] else str(number["column"])


def _label_unit(column: str, unit: str | None) -> str:
    # An empty unit differs from a missing one, whose key ends with a space.
    return f'{column} ""' if unit == "" else f"{column} {unit or ''}"


def _find_last_with_rows(before: dict[str, Any] | None) -> dict[str, Any] | None:
    if before is None:
        return None
    if before["rows"]:
        return {name: value for name, value in before.items() if name != "last_with_rows"}
    earlier: dict[str, Any] | None = before["last_with_rows"]
    return earlier


def build_headline(result: WindowResult) -> list[dict[str, Any]]:
    """Return totals in the contract's order. A column whose unit varies has a total for each unit."""
    columns = {column.name: column for column in result.contract.columns}
    numbers: list[dict[str, Any]] = []
    for name in result.contract.report.headline:
        column = columns[name]
        by_unit: dict[str | None, Decimal | None] = {column.unit: result.stats.totals[name]["sum"]}
        if column.per:
            by_unit = dict(result.stats.units[name])
        about = {"column": name, "title": column.title, "per": column.per}
        ordered = sorted(by_unit.items(), key=lambda item: item[0] or "")
        numbers += [about | {"unit": unit, "total": f"{total:f}"} for unit, total in ordered]
    return numbers


def _describe_source(result: WindowResult) -> dict[str, Any]:
    table = result.table
    # The offsets of a window limit the number of its events, so they are withheld if that number is.
    offsets = {} if result.counts["withheld"] else result.offsets
    return {
        "topic": result.contract.source.topic,
        "table": f"{table.database}.{table.name}",
        "table_uuid": table.uuid,
        "snapshot_id": table.snapshot_id,
        "committed_at": table.committed_at.isoformat(),
        "offsets": {
            partition: {"min": ends[0], "max": ends[1]}
            for partition, ends in sorted(offsets.items(), key=_read_number)
        },
    }


def _read_number(item: tuple[str, list[int]]) -> int:
    return int(item[0])
