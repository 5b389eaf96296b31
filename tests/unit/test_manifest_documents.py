"""Every field of a manifest, and what later windows and generations read in one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import attrs
import pytest

from config.exports.contract import Deduplicate
from config.exports.file_model import Report
from glue_jobs.delivery import manifest
from glue_jobs.delivery.manifest import Accepted, CheckResult, Fence, File, Manifest, WindowResult
from glue_jobs.platform import compute_code_version
from tests.support import samples

NOW = datetime(2026, 11, 10, 6, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
FENCE = Fence(NOW - HOUR, NOW, "run-2")


def result(**changes) -> WindowResult:
    """Return a window in which no field has its default."""
    contract = attrs.evolve(
        samples.contract(samples.TRADES),
        version=3,
        sha256="c" * 64,
        deduplicate=Deduplicate(key=["id", "line"]),
    )
    contract = attrs.evolve(contract, delivery=attrs.evolve(contract.delivery, delimiter=";"))
    made = samples.trades()
    usual = {
        "contract": contract,
        "table": attrs.evolve(made.table, database="shop", name="trades_table", uuid="t-1", snapshot_id=42),
        "run_id": "run-2",
        "status": "incomplete",
        "completeness": "Why.",
        "offsets": {"10": [7, 8], "9": [1, 2]},
        "stats": attrs.evolve(
            made.stats, totals={"amount": {"sum": Decimal("1E+1"), "min": None, "max": None}}
        ),
        "checks": [
            CheckResult("a", "warn", "M.", 3, "rows", 2, "3 of 9"),
            CheckResult("b", "block", "N.", 0),
        ],
        "notes": ["A note."],
        "files": [
            File("data", "exports/a.csv.gz", 9, "f" * 64, 5),
            File("report", "exports/a.html", 8, "e" * 64),
        ],
        "key_version": "key-1",
        "previous_window": {"window": "2026-11-08"},
        "aggregate_table": "lakeferry.trades",
        "accepted": Accepted(("It was.",), ("2026-11-08",)),
    }
    return attrs.evolve(made, **usual | changes)


def made(of: WindowResult) -> Manifest:
    return manifest.build_manifest(of, FENCE, NOW)


def test_a_manifest_says_what_was_made_and_by_whom():
    document = made(result())
    names = ("source", "membership", "files", "checks", "headline", "totals", "rows")
    assert {name: value for name, value in document.items() if name not in names} == {
        "format": 1,
        "export": "trades",
        "title": "Trades of the day",
        "status": "incomplete",
        "completeness": "Why.",
        "run_id": "run-2",
        "contract": {"version": 3, "sha256": "c" * 64},
        "code_version": compute_code_version(),
        "generation": 1,
        "generations": [
            {
                "generation": 1,
                "run_id": "run-2",
                "published_at": "2026-11-10T06:30:00+00:00",
                "table_uuid": "t-1",
            }
        ],
        "published_at": "2026-11-10T06:30:00+00:00",
        "window": {
            "label": "2026-11-09",
            "every": "day",
            "zone": "America/New_York",
            "start": "2026-11-09T05:00:00+00:00",
            "end": "2026-11-10T05:00:00+00:00",
        },
        "deduplicate_key": ["id", "line"],
        "content_sha256": result().stats.content_sha256,
        "form": {"dialect": "excel", "delimiter": ";", "gzip": True, "null_text": "NULL"},
        "notes": ["A note."],
        "accepted": {"sentences": ["It was."], "neighbours": ["2026-11-08"]},
        "pseudonyms": {"key_version": "key-1"},
        "previous_window": {"window": "2026-11-08"},
        "aggregate_table": "lakeferry.trades",
        "fence": ["2026-11-10T05:30:00+00:00", "2026-11-10T06:30:00+00:00", "run-2"],
    }
    assert set(names) < set(document)


def test_a_manifest_says_what_the_file_has_and_where_it_is_from():
    document = made(result())
    assert document["source"] == {
        "topic": "stock_trades",
        "table": "shop.trades_table",
        "table_uuid": "t-1",
        "snapshot_id": 42,
        "committed_at": "2026-11-10T05:52:00+00:00",
        "offsets": {"9": {"min": 1, "max": 2}, "10": {"min": 7, "max": 8}},
    }
    assert list(document["source"]["offsets"]) == ["9", "10"]
    assert document["files"] == [
        {"role": "data", "key": "exports/a.csv.gz", "size": 9, "sha256": "f" * 64, "rows": 5},
        {"role": "report", "key": "exports/a.html", "size": 8, "sha256": "e" * 64, "rows": None},
    ]
    first, second = document["checks"]
    assert first == {
        "id": "a",
        "severity": "warn",
        "message": "M.",
        "failed": 3,
        "of": "rows",
        "tolerated": 2,
        "found": "3 of 9",
        "unknown": None,
        "passed": False,
    }
    assert (second["tolerated"], second["found"], second["passed"]) == (0, None, True)
    assert document["headline"] == [
        {"column": "amount", "title": "Amount", "per": None, "unit": "USD", "total": "10"}
    ]
    assert document["totals"] == {"amount": {"sum": "10", "min": None, "max": None}}
    assert document["rows"] == result().counts


def test_a_manifest_of_an_export_without_keys_has_none():
    contract = samples.contract(samples.TRADES)
    document = made(result(contract=contract, key_version=None, previous_window=None, aggregate_table=None))
    assert document["deduplicate_key"] == []
    names = ("pseudonyms", "previous_window", "aggregate_table")
    assert [document[name] for name in names] == [None, None, None]


def test_offsets_are_withheld_with_the_counts():
    withheld = result(counts=result().counts | {"withheld": "Why."})
    assert made(withheld)["source"]["offsets"] == {}


def test_a_generation_follows_the_one_that_it_replaces():
    first = made(result())
    other = made(result(run_id="run-3", table=attrs.evolve(result().table, uuid="t-2")))
    second = manifest.build_next_generation(other, first, NOW + HOUR)
    third = manifest.build_next_generation(first, second, NOW + 2 * HOUR)
    assert (second["generation"], second["published_at"]) == (2, "2026-11-10T07:30:00+00:00")
    assert second["generations"] == [
        *first["generations"],
        {
            "generation": 2,
            "run_id": "run-3",
            "published_at": "2026-11-10T07:30:00+00:00",
            "table_uuid": "t-2",
        },
    ]
    assert (third["generation"], [entry["generation"] for entry in third["generations"]]) == (3, [1, 2, 3])
    assert first["generation"] == 1, "the manifests themselves are not changed"
    assert [manifest.list_table_uuids(document) for document in (first, second, third)] == [
        {"t-1"},
        {"t-1", "t-2"},
        {"t-1", "t-2"},
    ]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (Fence(NOW, NOW, "a"), Fence(NOW - HOUR, NOW + HOUR, "b")),
        (Fence(NOW, NOW, "a"), Fence(NOW, NOW - HOUR, "b")),
        (Fence(NOW, NOW, "b"), Fence(NOW, NOW, "a")),
    ],
)
def test_a_fence_is_ordered_by_its_view_then_its_start_then_its_run(newer, older):
    assert newer > older
    assert manifest.read_fence({"fence": newer.document()}) == newer


RULES = {
    "source.topic": "stock_trades",
    "source.event_time": "traded_at",
    "source.min_event_date": None,
    "window.every": "day",
    "window.zone": "America/New_York",
    "window.filter_stage": "before_deduplication",
    "deduplicate": None,
}


def test_what_decides_to_which_window_an_event_belongs():
    contract = result().contract
    assert manifest.membership(contract) == RULES
    later = attrs.evolve(contract, source=attrs.evolve(contract.source, min_event_date=date(2026, 1, 2)))
    assert manifest.membership(later) == RULES | {"source.min_event_date": "2026-01-02"}
    stage = attrs.evolve(contract.window, filter_stage="after_deduplication")
    after = attrs.evolve(contract, window=stage)
    assert manifest.membership(after) == RULES | {
        "window.filter_stage": "after_deduplication",
        "deduplicate": {"key": ["id", "line"], "order": [], "keep": "latest"},
    }
    without_key = attrs.evolve(after, deduplicate=None)
    assert manifest.membership(without_key)["deduplicate"] is None


def test_what_was_accepted_is_kept_once_and_in_order():
    accepted = Accepted().with_loss("b").with_loss("a").with_loss("b")
    assert accepted == Accepted(("b", "a"))
    beside = accepted.with_neighbours(["2", "1", "2"], ["a", "c"])
    assert beside == Accepted(("b", "a", "c"), ("2", "1"))
    assert beside.with_neighbours(["3"], []) == Accepted(("b", "a", "c"), ("2", "1", "3"))
    assert beside.with_loss("d") == Accepted(("b", "a", "c", "d"), ("2", "1"))
    assert Accepted().document() == {"sentences": [], "neighbours": []}


@pytest.mark.parametrize(
    ("changes", "complete"),
    [
        ({}, True),
        ({"status": "empty"}, True),
        ({"status": "incomplete"}, False),
        ({"end": -HOUR}, True),
        ({"end": HOUR}, False),
        ({"committed_at": HOUR}, True),
        ({"committed_at": -HOUR}, False),
        ({"uuid": "t-2"}, False),
    ],
)
def test_a_window_stays_complete_under_four_conditions(changes, complete):
    of = result(status=changes.get("status", "complete"))
    window = attrs.evolve(of.window, end=of.window.end + changes.get("end", 0 * HOUR))
    table = attrs.evolve(
        of.table,
        uuid=changes.get("uuid", of.table.uuid),
        committed_at=of.table.committed_at + changes.get("committed_at", 0 * HOUR),
    )
    assert manifest.was_complete(made(of), window, table) is complete


@pytest.mark.parametrize(
    ("failed", "tolerated", "unknown", "passed"),
    [
        (0, 0, None, True),
        (1, 0, None, False),
        (2, 2, None, True),
        (3, 2, None, False),
        (0, 0, "why", None),
        (3, 0, "why", None),
    ],
)
def test_a_check_has_passed_failed_or_was_not_made(failed, tolerated, unknown, passed):
    check = CheckResult("a", "warn", "M.", failed, tolerated=tolerated, unknown=unknown)
    assert check.passed is passed
    assert check.has_failed is (passed is False)


BEFORE = {"window": "1", "run_id": "r1", "contract_version": 1, "rows": 5, "totals": {}}


@pytest.mark.parametrize(
    ("rows", "previous", "last"),
    [
        (3, None, None),
        (3, BEFORE | {"last_with_rows": None}, None),
        (0, None, None),
        (0, BEFORE | {"last_with_rows": None}, BEFORE),
        (0, BEFORE | {"rows": 0, "last_with_rows": None}, None),
        (0, BEFORE | {"rows": 0, "last_with_rows": BEFORE}, BEFORE),
    ],
)
def test_an_empty_window_remembers_the_last_one_with_rows(rows, previous, last):
    document = made(result(counts=result().counts | {"rows": rows}, previous_window=previous))
    assert manifest.describe_previous(document) == {
        "window": "2026-11-09",
        "run_id": "run-2",
        "contract_version": 3,
        "rows": rows,
        "totals": {"amount": "10"},
        "last_with_rows": last,
    }


def test_a_total_without_a_sum_is_not_compared():
    totals = {"amount": {"sum": Decimal(10)}, "price": {"min": Decimal(1), "max": Decimal(2)}}
    document = made(result(stats=attrs.evolve(result().stats, totals=totals)))
    assert document["totals"]["price"] == {"min": "1", "max": "2"}
    assert manifest.describe_previous(document)["totals"] == {"amount": "10"}


@pytest.mark.parametrize(
    ("changes", "totals"),
    [
        ({}, {"amount": "10"}),
        ({"sha256": "d" * 64}, {"amount": "10"}),
        ({"sha256": "d" * 64, "version": 4}, {}),
        ({"version": 4}, {"amount": "10"}),
        ({"sha256": "d" * 64, "unit": "EUR"}, {}),
        ({"unit": "EUR"}, {"amount": "10"}),
    ],
)
def test_a_headline_is_compared_while_version_and_unit_are_the_same(changes, totals):
    """In the same text, a number has the same meaning, whatever else is the case."""
    contract = result().contract
    columns = [
        attrs.evolve(column, unit=changes["unit"])
        if column.name == "amount" and "unit" in changes
        else column
        for column in contract.column
    ]
    others = {name: value for name, value in changes.items() if name != "unit"}
    changed = attrs.evolve(contract, column=columns, **others)
    document = made(result())
    assert manifest.find_comparable(document, changed) == manifest.describe_previous(document) | {
        "totals": totals
    }


def test_headlines_are_in_the_order_of_the_contract_and_each_unit_in_that_of_the_alphabet():
    contract = result().contract
    per_side = [
        attrs.evolve(column, per="side", unit=None) if column.name == "amount" else column
        for column in contract.column
    ]
    count = attrs.evolve(per_side[0], name="count", type="integer", title="Count", unit="pieces")
    contract = attrs.evolve(
        contract, column=[*per_side, count], report=Report(headline=["count", "amount"], chart=[])
    )
    stats = attrs.evolve(
        result().stats,
        totals={"amount": {"sum": Decimal(9)}, "count": {"sum": Decimal("2E+3")}},
        units={"amount": {"USD": Decimal("4.00"), "": Decimal(1), "EUR": Decimal(2), None: Decimal(3)}},
    )
    numbers = manifest.build_headline(result(contract=contract, stats=stats))
    assert [
        tuple(number[name] for name in ("column", "title", "per", "unit", "total")) for number in numbers
    ] == [
        ("count", "Count", None, "pieces", "2000"),
        ("amount", "Amount", "side", "", "1"),
        ("amount", "Amount", "side", None, "3"),
        ("amount", "Amount", "side", "EUR", "2"),
        ("amount", "Amount", "side", "USD", "4.00"),
    ]
    assert [manifest.find_headline_total(number) for number in numbers] == [
        "count",
        'amount ""',
        "amount ",
        "amount EUR",
        "amount USD",
    ]
