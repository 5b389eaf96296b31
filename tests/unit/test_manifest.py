"""The manifest: what was delivered, its comparison with earlier windows, and nothing that must be
withheld.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import attrs
import pytest

from config.exports.contract import Contract, Deduplicate
from glue_jobs.delivery import losses, manifest, notes, report
from glue_jobs.delivery.counts import PartitionReport, ReadCounts, reconcile
from glue_jobs.delivery.manifest import Accepted, CheckResult, Fence, Manifest, WindowResult
from glue_jobs.delivery.verify import FileStats
from tests.support import samples
from tests.support.lake import ROOT
from tests.support.sample_rows import region_rows, sales_rows, trade_rows

SHIPPED = ROOT / "project" / "exports" / "weekly_sales.toml"
NOW = datetime(2026, 11, 16, 6, 15, tzinfo=UTC)


def made(delivered: WindowResult, current: Manifest | None = None) -> Manifest:
    fence = Fence(delivered.table.current_since, NOW, delivered.run_id)
    document = manifest.build_next_generation(manifest.build_manifest(delivered, fence, NOW), current, NOW)
    assert json.loads(json.dumps(document)) == document
    return document


def test_the_manifest_has_delivery_and_source():
    delivered = samples.weekly_sales(offsets={"0": [100, 731]})
    document = made(delivered)
    rows = sales_rows(400)
    content = samples.csv_bytes(delivered.contract, rows)
    assert document["contract"] == {"version": 1, "sha256": hashlib.sha256(SHIPPED.read_bytes()).hexdigest()}
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{12}", document["code_version"])
    assert document["window"] == {
        "label": "2026-W46",
        "every": "iso_week",
        "zone": "Europe/Berlin",
        "start": "2026-11-08T23:00:00+00:00",
        "end": "2026-11-15T23:00:00+00:00",
    }
    assert document["source"]["table"] == "lkc-7x2k9p.sales_orders"
    assert document["source"]["offsets"] == {"0": {"min": 100, "max": 731}}
    assert (document["files"][0]["sha256"], document["files"][0]["size"]) == (
        hashlib.sha256(content).hexdigest(),
        len(content),
    )
    assert document["content_sha256"] == hashlib.sha256(content).hexdigest()
    total = sum(row["line_total"] for row in sales_rows(400))
    assert document["headline"][0] == {
        "column": "line_total",
        "title": "Line total",
        "per": "currency",
        "unit": "EUR",
        "total": f"{total:f}",
    }
    assert document["totals"]["line_total EUR"] == {"sum": f"{total:f}"}
    assert document["totals"]["quantity"]["sum"] == str(sum(row["quantity"] for row in rows))
    assert document["pseudonyms"] == {"key_version": "7f6d3c52-0b1e-4f7e-9a55-2f4f6a4e8c11"}


def test_offsets_are_listed_by_number_of_partition():
    delivered = samples.weekly_sales(offsets={"10": [1, 2], "9": [3, 4]})
    assert list(made(delivered)["source"]["offsets"]) == ["9", "10"]


def test_a_generation_counts_up_and_lists_earlier_ones():
    first = made(samples.weekly_sales())
    second = made(samples.weekly_sales(run_id="20261117T061502Z-00000000"), first)
    third = made(samples.weekly_sales(run_id="20261118T061502Z-00000000"), second)
    assert [document["generation"] for document in (first, second, third)] == [1, 2, 3]
    assert [generation["run_id"][:8] for generation in third["generations"]] == [
        "20261116",
        "20261117",
        "20261118",
    ]
    assert [generation["generation"] for generation in third["generations"]] == [1, 2, 3]


def test_totals_are_plain_text():
    found = FileStats(totals={"a": {"sum": Decimal("1E+3"), "min": Decimal("1E-8"), "max": None}})
    assert manifest.describe_totals(found) == {"a": {"sum": "1000", "min": "0.00000001", "max": None}}


def test_a_column_whose_unit_varies_has_a_total_for_each_unit_and_none_over_all():
    whole = {"sum": Decimal("9.00"), "min": Decimal(1), "max": Decimal(5)}
    found = FileStats(
        totals={"a": whole, "n": whole},
        units={"a": {"USD": Decimal("4.00"), None: Decimal(3), "EUR": Decimal(2)}},
    )
    assert manifest.describe_totals(found) == {
        "n": {"sum": "9.00", "min": "1", "max": "5"},
        "a ": {"sum": "3"},
        "a EUR": {"sum": "2"},
        "a USD": {"sum": "4.00"},
    }


def test_a_unit_that_is_empty_and_a_missing_one_have_a_total_each():
    units = {"line_total": {None: Decimal(3), "": Decimal(4), "EUR": Decimal(5)}}
    made_of = samples.weekly_sales()
    document = made(attrs.evolve(made_of, stats=attrs.evolve(made_of.stats, units=units)))
    totals = {
        name: total["sum"] for name, total in document["totals"].items() if name.startswith("line_total")
    }
    assert totals == {"line_total ": "3", 'line_total ""': "4", "line_total EUR": "5"}
    headline = {
        manifest.find_headline_total(entry): entry["total"]
        for entry in document["headline"]
        if entry["column"] == "line_total"
    }
    assert (
        headline == totals == {name: manifest.describe_previous(document)["totals"][name] for name in totals}
    )


def test_a_check_is_about_rows_or_about_the_file():
    checks = [CheckResult("a", "warn", "m", 3), CheckResult("b", "block", "m", 0, "file")]
    more = {"message": "m", "tolerated": 0, "found": None, "unknown": None}
    assert made(samples.weekly_sales(checks=checks))["checks"] == [
        {"id": "a", "severity": "warn", "failed": 3, "of": "rows", "passed": False, **more},
        {"id": "b", "severity": "block", "failed": 0, "of": "file", "passed": True, **more},
    ]


def test_a_check_that_could_not_be_made_has_neither_passed_nor_failed():
    check = CheckResult("a", "block", "m", 0, "file", unknown="there are no earlier windows")
    assert not check.has_failed
    assert made(samples.weekly_sales(checks=[check]))["checks"][0]["passed"] is None


@pytest.mark.parametrize(("failed", "passed"), [(2, True), (3, False)])
def test_a_check_passes_if_no_more_rows_fail_than_may(failed, passed):
    assert CheckResult("a", "warn", "m", failed, tolerated=2).passed is passed


def week(label: str, rows: int, before: Manifest | None, version: int = 1) -> Manifest:
    """Return a manifest with so many rows, after `before`."""
    previous = manifest.describe_previous(before) if before else None
    contract = attrs.evolve(samples.contract(samples.TRADES), version=version)
    delivered = samples.delivered(
        contract, trade_rows()[:rows], run_id=f"run-{label}", previous_window=previous
    )
    document = made(delivered)
    return document | {"window": document["window"] | {"label": label}}


def test_a_window_is_compared_with_the_previous_and_the_last_non_empty_one():
    first = week("1", 5, None)
    empty = week("2", 0, first, version=2)
    again = week("3", 0, empty)
    full = week("4", 3, again)
    result = {
        "window": "1",
        "run_id": "run-1",
        "contract_version": 1,
        "rows": 5,
        "totals": {"amount": first["totals"]["amount"]["sum"]},
    }
    assert manifest.describe_previous(first) == result | {"last_with_rows": None}
    nothing = {
        "window": "2",
        "run_id": "run-2",
        "contract_version": 2,
        "rows": 0,
        "totals": {"amount": "0.0000"},
    }
    assert manifest.describe_previous(empty) == nothing | {"last_with_rows": result}
    assert manifest.describe_previous(again)["last_with_rows"] == result
    assert manifest.describe_previous(full)["last_with_rows"] is None
    assert full["previous_window"]["window"] == "3"


def test_only_numbers_with_the_same_meaning_are_compared():
    before = made(samples.sales_by_region())
    contract = samples.sales_by_region().contract
    every = manifest.describe_previous(before)["totals"]
    assert manifest.find_comparable(before, contract)["totals"] == every
    headlines = {"sales EUR", "sales USD", "pieces", "order_lines"}
    edited = attrs.evolve(contract, sha256="0" * 64)
    assert set(manifest.find_comparable(before, edited)["totals"]) == headlines & set(every)
    assert "discounted_lines" in every, "its unit at that time is not known"
    boxes = [
        attrs.evolve(column, unit="boxes") if column.name == "pieces" else column
        for column in contract.column
    ]
    assert set(
        manifest.find_comparable(before, attrs.evolve(edited, column=boxes))["totals"]
    ) == headlines - {"pieces"}
    later = manifest.find_comparable(before, attrs.evolve(edited, version=2))
    assert (later["totals"], later["rows"]) == ({}, before["rows"]["rows"])


def test_a_total_whose_unit_varies_is_reported_and_compared_by_unit():
    document = made(samples.sales_by_region())
    totals = {
        unit: f"{sum(row['sales'] for row in region_rows() if row['currency'] == unit):f}"
        for unit in ("EUR", "USD")
    }
    assert [
        (entry["unit"], entry["total"]) for entry in document["headline"] if entry["column"] == "sales"
    ] == list(totals.items())
    compared = manifest.describe_previous(document)["totals"]
    assert (compared["sales EUR"], compared["sales USD"], compared["pieces"]) == (
        *totals.values(),
        document["totals"]["pieces"]["sum"],
    )
    assert "sales" not in compared


def test_without_a_window_with_rows_there_is_no_last_one():
    assert manifest.describe_previous(week("2", 0, week("1", 0, None)))["last_with_rows"] is None


def test_notes_have_what_the_file_cannot_show():
    excel = samples.contract(samples.TRADES)
    machine = attrs.evolve(excel, delivery=attrs.evolve(excel.delivery, dialect="machine"))
    long = FileStats(
        rows=1_048_576, totals={"a": {"sum": None, "min": Decimal(-(10**15)), "max": Decimal(1)}}
    )
    result = notes.write_notes(excel, long, cut=1_200, replaced=3)
    assert result[0].startswith("The file has 1,048,576 rows; Excel opens the first 1,048,575 of them.")
    assert result[1].startswith("Some numbers have more than 15 digits")
    assert result[2:] == [
        "1,200 texts were longer than an Excel cell, 32,767 characters, and cut to it.",
        "3 bytes that are not valid text became the character \ufffd.",
    ]
    assert notes.write_notes(machine, long, 0, 0) == []
    fits = FileStats(
        rows=1_048_575, totals={"a": {"sum": None, "min": Decimal("-99999999999999.9"), "max": None}}
    )
    assert notes.write_notes(excel, fits, 0, 0) == []


def one_group_alone(contract: Contract) -> WindowResult:
    """Return a window whose only group has 7 lines of 4 orders, too few people to show, and 3 duplicates."""
    counted = PartitionReport(
        events={"kept": 4, "duplicates": 3},
        items=7,
        lines={"suppressed": 7},
        rows={"suppressed": 1},
    )
    read = ReadCounts(
        in_table=7, inside=7, invalid_time=0, invalid_time_received=0, null_key=0, whole_table=False
    )
    empty = samples.delivered(contract, [])
    return attrs.evolve(
        empty,
        counts=reconcile(read, counted, empty.stats, aggregated=True),
        offsets={"0": [41, 47]},
        previous_window=None,
    )


def numbers(document: object) -> set[int]:
    """Return every integer in a document but those of versions and generations."""
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
        "withheld": delivered.counts["withheld"],
    }
    assert "withheld" in document["rows"]["withheld"]
    assert document["source"]["offsets"] == {}
    assert numbers({name: document[name] for name in ("rows", "totals", "notes", "headline")}) <= {0, 1}
    page = report.render_html(delivered)
    assert "they are withheld" in page
    assert "Events that" not in page
    assert "Lines that" not in page


def test_suppressed_groups_are_counted():
    document = made(samples.sales_by_region())
    assert document["rows"]["withheld"] is None
    assert document["rows"]["lines"]["suppressed"] == 38
    assert document["source"]["offsets"] != {}


def test_the_digest_is_of_the_bytes():
    assert manifest.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_window_is_reported_in_utc_whatever_its_zone():
    document = made(samples.daily_trades())
    start, end = (datetime.fromisoformat(document["window"][name]) for name in ("start", "end"))
    assert end - start == timedelta(days=1)
    assert start.utcoffset() == timedelta(0)


def published(offsets: dict[str, list[int]], **changes) -> Manifest:
    """Return a generation of 400 kept events, 61 duplicates and 23 filtered ones."""
    return made(samples.weekly_sales(offsets=offsets, **changes))


@pytest.mark.parametrize(
    ("offsets", "changes", "lost"),
    [
        ({"0": [100, 400], "1": [7, 90]}, {}, False),
        ({"0": [100, 450], "1": [5, 99], "2": [0, 3]}, {"kept": 410}, False),
        ({"0": [101, 400], "1": [7, 90]}, {"kept": 410}, True),
        ({"0": [100, 400]}, {}, True),
        ({"0": [100, 400], "1": [7, 90]}, {"kept": 399}, True),
        ({"0": [100, 400], "1": [7, 90]}, {"kept": 390, "duplicates": 71}, False),
        ({}, {"kept": 0, "duplicates": 0, "filtered": 0}, True),
    ],
)
def test_published_events_that_the_table_no_longer_has_are_found(offsets, changes, lost):
    current = published({"0": [100, 400], "1": [7, 90]})
    delivered = samples.weekly_sales(offsets=offsets)
    events = delivered.counts["events"] | changes
    delivered = attrs.evolve(delivered, events=sum(events[name] for name in manifest.OF_WINDOW))
    assert (losses.find_loss(current, delivered) is not None) == lost
    withheld = attrs.evolve(delivered, counts=delivered.counts | {"events": None, "withheld": "why"})
    hidden = losses.find_loss(current, withheld)
    # The number would reveal the size of the group.
    assert hidden == ("Some events of generation 1 are no longer in the table." if lost else None)


def test_events_are_not_compared_if_they_may_decrease():
    current = published({"0": [100, 400]})
    fewer = samples.weekly_sales(offsets={"0": [200, 400]})
    assert losses.find_loss(current, fewer)
    upserts = attrs.evolve(fewer, table=attrs.evolve(fewer.table, upserts=True))
    rule = attrs.evolve(fewer.contract.window, filter_stage="after_deduplication")
    whole_table = attrs.evolve(fewer, contract=attrs.evolve(fewer.contract, window=rule))
    assert [losses.find_loss(current, result) for result in (upserts, whole_table)] == [None, None]
    hidden = current | {"rows": current["rows"] | {"events": None}}
    assert losses.find_loss(hidden, fewer) is None


def test_events_are_compared_whatever_the_version_and_offsets_with_the_same_key_only():
    """Another key leaves other events without one, so the first offset with a key may be later."""
    current = published({"0": [100, 400]})
    fewer = samples.weekly_sales(offsets={"0": [100, 400]})
    fewer = attrs.evolve(
        fewer, events=fewer.events - 3, contract=attrs.evolve(fewer.contract, version=2, title="Another.")
    )
    assert losses.find_loss(current, fewer) == "3 events of generation 1 are no longer in the table."
    later = samples.weekly_sales(offsets={"0": [200, 400]})
    another = attrs.evolve(
        later, contract=attrs.evolve(later.contract, version=2, deduplicate=Deduplicate(key=["store_id"]))
    )
    assert losses.find_loss(current, another) is None


def test_what_was_accepted_is_noted_and_kept_while_the_same_events_belong_to_the_window():
    accepted = (
        Accepted().with_loss("3 events are lost.").with_neighbours(["2026-W45"], ["It is beside 2026-W45."])
    )
    document = made(attrs.evolve(samples.weekly_sales(), accepted=accepted))
    assert document["accepted"] == {
        "sentences": ["3 events are lost.", "It is beside 2026-W45."],
        "neighbours": ["2026-W45"],
    }
    contract = samples.weekly_sales().contract
    assert manifest.read_accepted(document, contract) == accepted
    moved = attrs.evolve(contract, window=attrs.evolve(contract.window, zone="UTC"))
    assert manifest.read_accepted(document, moved) == manifest.read_accepted(None, contract) == Accepted()


def test_a_window_stays_complete_while_the_same_table_has_all_that_it_had():
    delivered = samples.weekly_sales()
    current = made(delivered)
    table, window = delivered.table, delivered.window
    hour = timedelta(hours=1)
    newer = attrs.evolve(table, committed_at=table.committed_at + hour)
    assert all(manifest.was_complete(current, window, present) for present in (table, newer))
    rolled_back = attrs.evolve(table, committed_at=table.committed_at - hour)
    assert not manifest.was_complete(current, window, rolled_back)
    assert not manifest.was_complete(current, window, attrs.evolve(table, uuid="of another table"))
    assert not manifest.was_complete(current, attrs.evolve(window, end=window.end + hour), table)
    assert not manifest.was_complete(made(attrs.evolve(delivered, status="incomplete")), window, table)
