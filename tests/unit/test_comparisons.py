"""Checks compare a number with those of earlier windows, or say why they can't."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import attrs
import pytest

from config.exports.file_model import Check
from glue_jobs.delivery import comparisons, manifest
from glue_jobs.delivery.manifest import Fence
from tests.support import samples
from tests.support.sample_rows import sales_rows, trade_rows

NOW = datetime(2026, 11, 16, 6, 15, tzinfo=UTC)
TRADES = samples.contract(samples.TRADES)
SALES = samples.weekly_sales().contract


def check(**more):
    usual = {"id": "volume", "severity": "warn", "message": "The volume is odd.", "compare": "rows"}
    return Check(**usual | {"at_most_percent": 20.0, "with_windows": 3} | more)


def published(contract, rows, label="2026-11-01", **changes):
    result = samples.delivered(contract, rows, **changes)
    fence = Fence(result.table.current_since, NOW, result.run_id)
    document = manifest.build_manifest(result, fence, NOW)
    return document | {"window": document["window"] | {"label": label}}


def days(*amounts, **changes):
    """Return the manifests of days with so many rows, the latest first."""
    made = [
        published(TRADES, trade_rows()[:amount], f"2026-11-{day:02}", **changes)
        for day, amount in enumerate(amounts, 1)
    ]
    return made[::-1]


def compared(check_, earlier, rows, *, contract=TRADES, is_complete=True):
    stats = samples.delivered(contract, rows).stats
    return comparisons.compare(check_, contract, stats, earlier, is_complete=is_complete)


@pytest.mark.parametrize(("rows", "passed"), [(7, False), (8, True), (12, True), (13, False)])
def test_the_number_of_rows_may_differ_by_the_limit(rows, passed):
    result = compared(check(), days(10, 10, 10), trade_rows()[:rows])
    assert (result.passed, result.of, result.failed) == (passed, "file", int(not passed))


def test_what_was_found_names_the_windows_and_the_limit():
    result = compared(check(at_most_percent=12.5), days(8, 10, 42), trade_rows()[:15])
    assert result.found == (
        "15 is 50 % more than the median of 2026-11-01 to 2026-11-03, 10; the limit is 12.5 %"
    )
    mean = compared(check(average="mean"), days(8, 10, 42), trade_rows()[:15])
    assert mean.found == "15 is 25 % less than the mean of 2026-11-01 to 2026-11-03, 20; the limit is 20 %"


def test_only_the_latest_windows_count():
    assert compared(check(), days(100, 10, 10, 10), trade_rows()[:10]).passed
    one = compared(check(with_windows=1), days(100, 10), trade_rows()[:20])
    assert one.found == "20 is 100 % more than the number of 2026-11-02, 10; the limit is 20 %"


@pytest.mark.parametrize(
    ("earlier", "why"),
    [
        ([], "0 of the 3 windows before it can be compared with"),
        (days(10, 10), "only 2 of the 3 windows before it can be compared with"),
        (
            [*days(10), *days(10, 10, status="incomplete")],
            "only 1 of the 3 windows before it can be compared with",
        ),
        (
            [document | {"contract": document["contract"] | {"version": 2}} for document in days(9, 9, 9)],
            "0 of the 3 windows before it can be compared with",
        ),
        (days(0, 0, 0), "the median of 2026-11-01 to 2026-11-03 is 0, of which there is no percentage"),
    ],
)
def test_without_enough_windows_the_check_is_not_made(earlier, why):
    result = compared(check(severity="block"), earlier, trade_rows()[:50])
    assert (result.passed, result.has_failed, result.unknown) == (None, False, why)


def test_an_incomplete_window_is_not_compared():
    result = compared(check(), days(10, 10, 10), trade_rows()[:1], is_complete=False)
    assert result.unknown == "this window is incomplete"


def test_as_empty_as_before_is_no_difference():
    assert compared(check(), days(0, 0, 0), []).passed


def test_a_total_is_compared_for_each_unit():
    rows = sales_rows(40)
    earlier = [published(SALES, rows, f"2026-W4{number}") for number in (5, 4)]
    same = check(compare="line_total", with_windows=2)
    assert compared(same, earlier, rows, contract=SALES).passed
    twice = [row | {"line_total": row["line_total"] * 2} for row in rows]
    found = compared(same, earlier, twice, contract=SALES)
    total = sum((row["line_total"] for row in rows if row["currency"] == "EUR"), Decimal(0))
    assert f"{2 * total:,f} EUR is 100 % more than the median of 2026-W44 to 2026-W45, {total:,f}" in (
        found.found or ""
    ).replace(".00,", ",")
    gone = compared(same, earlier, [row for row in rows if row["currency"] != "EUR"], contract=SALES)
    assert gone.has_failed == any(row["currency"] == "EUR" for row in rows)


@pytest.mark.parametrize("change", [{"unit": "EUR"}, {"per": "side"}])
def test_a_total_in_another_unit_is_not_compared(change):
    earlier = days(10, 10, 10)
    headline = [entry | change for entry in earlier[1]["headline"]]
    earlier[1] = earlier[1] | {"headline": headline}
    assert compared(check(compare="amount"), days(10, 10, 10), trade_rows()[:10]).passed
    result = compared(check(compare="amount"), earlier, trade_rows()[:10])
    assert result.unknown == "only 2 of the 3 windows before it can be compared with"


def test_a_column_that_was_no_headline_is_not_compared():
    earlier = [document | {"headline": []} for document in days(10, 10, 10)]
    assert compared(check(compare="amount"), earlier, trade_rows()[:10]).unknown


def test_the_job_reads_as_many_windows_as_its_checks_need():
    assert comparisons.count_windows(TRADES) == 0
    checks = [check(with_windows=2), check(with_windows=None), Check(id="c", severity="warn", message="")]
    assert comparisons.count_windows(attrs.evolve(TRADES, check=checks)) == 4
