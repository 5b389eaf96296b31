"""The manifest says what was delivered, what it compares itself with, and never what it promised to withhold."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import attrs
import pytest
import samples
from sample_rows import trade_rows

from exports.contract import Contract
from glue_jobs.delivery import manifest, report
from glue_jobs.delivery.commit import Fence, Manifest
from glue_jobs.delivery.encode import PartitionReport
from glue_jobs.delivery.inspect import Inspection
from glue_jobs.delivery.manifest import CheckResult, Delivered
from glue_jobs.reconcile import Read, books
from glue_jobs.transforms import fates
from glue_jobs.version import code_version

NOW = datetime(2026, 11, 16, 6, 15, tzinfo=UTC)


def made(delivered: Delivered, current: Manifest | None = None) -> Manifest:
    fence = Fence(delivered.table.current_since, NOW, delivered.run_id)
    document = manifest.manifest(delivered, current, fence=fence, now=NOW)
    assert json.loads(json.dumps(document)) == document
    return document


def test_says_what_was_delivered_and_from_what():
    delivered = samples.weekly_sales()
    document = made(delivered)
    assert document["contract"] == {"version": 1, "sha256": delivered.contract.sha256}
    assert document["code_version"] == code_version()
    assert document["window"] == {
        "label": "2026-W46",
        "every": "iso_week",
        "zone": "Europe/Berlin",
        "start": "2026-11-08T23:00:00+00:00",
        "end": "2026-11-15T23:00:00+00:00",
    }
    assert document["source"]["table"] == "lkc-7x2k9p.sales_orders"
    assert document["source"]["offsets"] == {"0": {"min": 100, "max": 100 + len_rows(delivered)}}
    assert document["files"][0]["sha256"] == delivered.inspection.files[0].sha256
    assert document["content_sha256"] == delivered.inspection.content_sha256
    assert document["headline"][0]["total"] == document["totals"]["line_total"]["sum"]
    assert Decimal(document["totals"]["line_total"]["sum"]) == delivered.inspection.totals["line_total"]["sum"]
    assert document["pseudonyms"] == {"key_version": delivered.key_version}


def len_rows(delivered: Delivered) -> int:
    return delivered.offsets["0"][1] - 100


def test_offsets_are_listed_by_number_of_partition():
    delivered = samples.weekly_sales(offsets={"10": [1, 2], "9": [3, 4]})
    assert list(made(delivered)["source"]["offsets"]) == ["9", "10"]


def test_a_generation_counts_up_and_keeps_the_book_of_those_before():
    first = made(samples.weekly_sales())
    second = made(samples.weekly_sales(run_id="20261117T061502Z-00000000"), first)
    third = made(samples.weekly_sales(run_id="20261118T061502Z-00000000"), second)
    assert [one["generation"] for one in (first, second, third)] == [1, 2, 3]
    assert [one["run_id"][:8] for one in third["generations"]] == ["20261116", "20261117", "20261118"]
    assert [one["generation"] for one in third["generations"]] == [1, 2, 3]


def test_totals_are_plain_text():
    found = Inspection(totals={"a": {"sum": Decimal("1E+3"), "min": Decimal("1E-8"), "max": None}})
    assert manifest.totals_document(found) == {"a": {"sum": "1000", "min": "0.00000001", "max": None}}


def test_a_check_says_whether_it_counts_rows_or_speaks_of_the_file():
    checks = [CheckResult("a", "warn", "m", 3), CheckResult("b", "block", "m", 0, "file")]
    assert made(samples.weekly_sales(checks=checks))["checks"] == [
        {"id": "a", "severity": "warn", "message": "m", "failed": 3, "of": "rows", "passed": False},
        {"id": "b", "severity": "block", "message": "m", "failed": 0, "of": "file", "passed": True},
    ]


def week(label: str, rows: int, before: Manifest | None, version: int = 1) -> Manifest:
    """A manifest of so many rows, after `before`."""
    previous = manifest.previous_document(before) if before else None
    contract = attrs.evolve(samples.contract(samples.TRADES), version=version)
    delivered = samples.delivered(contract, trade_rows()[:rows], run_id=f"run-{label}", previous_window=previous)
    document = made(delivered)
    return document | {"window": document["window"] | {"label": label}}


def test_a_later_window_compares_itself_with_the_one_before_and_the_last_that_was_not_empty():
    first = week("1", 5, None)
    empty = week("2", 0, first, version=2)
    again = week("3", 0, empty)
    full = week("4", 3, again)
    told = {
        "window": "1",
        "run_id": "run-1",
        "contract_version": 1,
        "rows": 5,
        "totals": {"amount": first["totals"]["amount"]["sum"]},
    }
    assert manifest.previous_document(first) == told | {"last_with_rows": None}
    nothing = {"window": "2", "run_id": "run-2", "contract_version": 2, "rows": 0, "totals": {"amount": "0.0000"}}
    assert manifest.previous_document(empty) == nothing | {"last_with_rows": told}
    assert manifest.previous_document(again)["last_with_rows"] == told
    assert manifest.previous_document(full)["last_with_rows"] is None
    assert full["previous_window"]["window"] == "3"


def test_nothing_but_empty_windows_have_no_last_one_with_rows():
    assert manifest.previous_document(week("2", 0, week("1", 0, None)))["last_with_rows"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"table_uuid": "other"}},
        {"source": {"snapshot_id": 5}},
        {"contract": {"sha256": "0" * 64}},
        {"pseudonyms": {"key_version": "2"}},
        {"code_version": "0.0.1+000000000000"},
    ],
)
def test_a_window_is_settled_only_if_everything_it_is_made_of_is_the_same(change):
    delivered = samples.weekly_sales()
    document, key = made(delivered), delivered.key_version
    assert manifest.is_settled(document, delivered.contract, delivered.table, key)
    name, value = next(iter(change.items()))
    other = document | {name: document[name] | value if isinstance(value, dict) else value}
    assert not manifest.is_settled(other, delivered.contract, delivered.table, key)


def test_a_window_without_pseudonyms_is_settled_without_a_key():
    delivered = samples.daily_trades()
    assert made(delivered)["pseudonyms"] is None
    assert manifest.is_settled(made(delivered), delivered.contract, delivered.table, None)
    assert not manifest.is_settled(made(delivered), delivered.contract, delivered.table, "1")


def test_notes_tell_what_the_file_can_not_say():
    excel = samples.contract(samples.TRADES)
    machine = attrs.evolve(excel, delivery=attrs.evolve(excel.delivery, dialect="machine"))
    long = Inspection(rows=1_048_576, totals={"a": {"sum": None, "min": Decimal(-(10**15)), "max": Decimal(1)}})
    told = manifest.notes(excel, long, cut=1_200, replaced=3)
    assert told[0].startswith("The file has 1,048,576 rows; Excel opens the first 1,048,575 of them.")
    assert told[1].startswith("Some numbers have more than 15 digits")
    assert told[2:] == [
        "1,200 texts were longer than 32,767 characters and were cut.",
        "3 bytes that are not valid text were replaced by the sign \ufffd.",
    ]
    assert manifest.notes(machine, long, 0, 0) == []
    fits = Inspection(rows=1_048_575, totals={"a": {"sum": None, "min": Decimal("-99999999999999.9"), "max": None}})
    assert manifest.notes(excel, fits, 0, 0) == []


def one_group_alone(contract: Contract) -> Delivered:
    """A window whose only group has 7 lines of 4 orders, and 3 duplicates: too few people to be shown."""
    counted = PartitionReport(
        events={str(fates.KEPT): 4, str(fates.DUPLICATE): 3},
        items=7,
        lines={str(fates.SUPPRESSED): 7},
        rows={str(fates.SUPPRESSED): 1},
    )
    read = Read(in_table=7, inside=7, undated=0, unkeyed=0, whole_table=False)
    empty = samples.delivered(contract, [])
    return attrs.evolve(
        empty, books=books(read, counted, empty.inspection, aggregated=True), offsets={"0": [41, 47]}, previous_window=None
    )


def numbers(document: object) -> set[int]:
    """Every whole number that stands anywhere in a document, but for those about versions and generations."""
    if isinstance(document, dict):
        return set().union(*(numbers(value) for value in document.values()))
    if isinstance(document, list):
        return set().union(*map(numbers, document))
    return {document} if isinstance(document, int) and not isinstance(document, bool) else set()


def test_one_small_group_alone_does_not_reveal_its_size():
    delivered = one_group_alone(samples.sales_by_region().contract)
    document = made(delivered)
    assert document["rows"] == {
        "events": None,
        "lines": None,
        "groups": {"shown": 0, "suppressed": 1},
        "rows": 0,
        "withheld": delivered.books["withheld"],
    }
    assert "withheld" in document["rows"]["withheld"]
    assert document["source"]["offsets"] == {}
    assert numbers({name: document[name] for name in ("rows", "totals", "notes", "headline")}) <= {0, 1}
    page = report.html(delivered)
    assert "they are withheld" in page
    assert "Events that" not in page
    assert "Lines that" not in page


def test_groups_that_hide_behind_one_another_are_counted():
    document = made(samples.sales_by_region())
    assert document["rows"]["withheld"] is None
    assert document["rows"]["lines"]["suppressed"] == 38
    assert document["source"]["offsets"] != {}


def test_the_digest_is_of_the_bytes():
    assert manifest.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_window_is_told_in_utc_whatever_its_zone():
    document = made(samples.daily_trades())
    start, end = (datetime.fromisoformat(document["window"][name]) for name in ("start", "end"))
    assert end - start == timedelta(days=1)
    assert start.utcoffset() == timedelta(0)
