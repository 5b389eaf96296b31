"""The whole report: its content and order, and nothing that could harm, hide or load anything."""

from __future__ import annotations

from datetime import date, timedelta

import attrs
import pytest

from config.exports.file_model import Check
from glue_jobs.delivery import report
from glue_jobs.delivery.manifest import CheckResult
from tests.support import page_reader, samples
from tests.support.sample_rows import region_rows, sales_rows


def page(delivered) -> page_reader.Node:
    return page_reader.read(report.render_html(delivered))


def test_the_report_starts_with_what_readers_need_first():
    found = page(samples.weekly_sales())
    assert found.one("h1").text == "Weekly sales"
    assert (
        found.one("p", class_="window").text
        == "Week 46 of 2026: Monday 9 November to Sunday 15 November 2026, Europe/Berlin"
    )
    assert (
        found.one("p", class_="status complete").text
        == "Complete. All 798 rows of this window are in the file. Every check passed."
    )
    assert [heading.text for heading in found.all("h2")] == [
        "In numbers",
        "Charts",
        "Checks",
        "First rows",
        "What the columns mean",
        "What was left out on purpose",
        "How to open the file",
        "How this was made",
        "Contact",
    ]


def test_headline_numbers_have_unit_and_change():
    cards = [card.text for card in page(samples.weekly_sales()).one("dl", class_="cards").all("div")]
    assert cards == [
        "Rows (one row per order line) 798 −356 (−30.8 %) against week 45 of 2026",
        "Line total (EUR) 60,071.66 −1,202.54 (−2.0 %) against week 45 of 2026",
        "Quantity (pieces) 2,133 −1,278 (−37.5 %) against week 45 of 2026",
    ]


def test_amounts_in_several_currencies_are_never_added_up():
    """Neither in headlines nor in charts.

    The page shows the sums by currency, calculated here from the rows.
    """
    found = page(samples.sales_by_region())
    by_currency = {
        unit: sum(row["sales"] for row in region_rows() if row["currency"] == unit) for unit in ("EUR", "USD")
    }
    cards = [
        card.text for card in found.one("dl", class_="cards").all("div") if card.text.startswith("Sales")
    ]
    assert [card.split(" ")[:3] for card in cards] == [
        ["Sales", f"({unit})", f"{by_currency[unit]:,}"] for unit in ("EUR", "USD")
    ]
    assert "unchanged from week 45" in cards[0]
    assert "no figure for week 45" in cards[1]
    west = sum(row["sales"] for row in region_rows() if (row["region"], row["currency"]) == ("West", "EUR"))
    chart = found.all("figure")[0].text
    assert f"West {west:,}" in chart
    assert f"{by_currency['EUR'] + by_currency['USD']:,}" not in found.text


def test_headline_numbers_without_anything_to_compare_with():
    cards = page(samples.sales_by_region()).one("dl", class_="cards").text
    assert "unchanged from week 45" in cards
    assert "+9,756 against week 45 of 2026, which had 0" in cards
    assert "no figure for week 45 of 2026" in cards
    assert (
        "3,252 no earlier window had been published"
        in page(samples.sales_by_region(previous_window=None)).one("dl", class_="cards").text
    )


def test_numbers_of_another_version_of_the_contract_are_not_compared():
    week = samples.sales_by_region()
    changed = attrs.evolve(week, contract=attrs.evolve(week.contract, version=2))
    cards = [card.text for card in page(changed).one("dl", class_="cards").all("div")]
    said = "not compared with week 45 of 2026, which has version 1 of the contract"
    assert [card for card in cards if not card.endswith(said)] == []


def test_an_empty_window_is_reported_without_charts():
    full = samples.weekly_sales()
    found = page(samples.delivered(full.contract, [], previous_window=full.previous_window))
    assert found.one("p", class_="status empty").text == (
        "Empty. There are no rows in this window; the file has only its header. "
        "The window before it, week 45 of 2026, had 1,154 rows."
    )
    assert "No rows, so there is nothing to draw." in found.text
    assert "The file has no rows." in found.text
    assert not found.all("svg")


def test_an_incomplete_window_has_the_end_of_its_data_and_of_its_changes():
    made = samples.weekly_sales()
    incomplete = attrs.evolve(
        made,
        status="incomplete",
        table=attrs.evolve(made.table, appended_at=made.window.end - timedelta(hours=3)),
    )
    status = page(incomplete).one("p", class_="status incomplete").text
    assert status.startswith(
        "Incomplete. Not final: data until Sunday 15 November 2026, 21:00 (Europe/Berlin)."
    )
    assert "made again when more data arrives, until Monday 30 November 2026, 00:00" in status
    settled = attrs.evolve(made.contract, window=attrs.evolve(made.contract.window, restate_for_days=0))
    assert "made again" not in page(attrs.evolve(incomplete, contract=settled)).text


def test_failed_checks_come_first_and_are_in_the_notes():
    made = samples.weekly_sales(notes=["3 texts were cut."])
    checks = [attrs.evolve(check, failed=12 if check.id == "returns_are_few" else 0) for check in made.checks]
    found = page(attrs.evolve(made, checks=checks))
    assert "1 check failed, see below" in found.one("p", class_="status complete").text
    notes = [note.text for note in found.all("section", **{"aria-labelledby": "notes"})[0].all("li")]
    assert notes == ["3 texts were cut.", f"{checks[-1].message} Found in 12 rows."]
    rows = found.one("div", id="results").rows()
    assert rows[0] == [checks[-1].message, "failed", "in 12 rows", "a warning; the file is delivered"]
    assert {row[1] for row in rows[1:]} == {"passed"}
    assert "more checks of columns passed: never empty, only allowed values" in found.text


def test_a_check_that_could_not_be_made_says_why():
    made = samples.weekly_sales()
    unknown = CheckResult(
        "volume", "block", "The volume is odd.", 0, "file", unknown="there is no other week"
    )
    contract = attrs.evolve(
        made.contract, check=[Check(id="volume", severity="block", message="", compare="rows")]
    )
    found = page(attrs.evolve(made, contract=contract, checks=[*made.checks, unknown]))
    assert f"{len(made.checks)} checks passed. 1 check could not be made." in found.text
    assert "1 check could not be made, see below." in found.one("p", class_="status complete").text
    (row,) = found.one("div", id="results").rows()
    assert row[:3] == ["The volume is odd.", "unknown", "not checked: there is no other week"]


def test_the_files_of_other_formats_are_listed():
    made = samples.weekly_sales()
    (data,) = [file for file in made.files if file.role == "data"]
    others = [
        attrs.evolve(data, role=form, key=data.key.replace(".csv", f".{form}"))
        for form in ("parquet", "xlsx")
    ]
    delivery = attrs.evolve(made.contract.delivery, also=["parquet", "xlsx"])
    contract = attrs.evolve(made.contract, delivery=delivery)
    found = page(attrs.evolve(made, contract=contract, files=[*made.files, *others]))
    assert "are also in a Parquet file and a workbook for Excel." in found.text
    names = [row[0] for row in found.one("div", id="files").rows()]
    assert {"weekly_sales_2026-W46.parquet", "weekly_sales_2026-W46.xlsx"} <= set(names)
    assert "are also in" not in page(made).text


def test_a_check_shows_what_it_found():
    made = samples.weekly_sales()
    found = "900 is 10 % less than the median of 2026-W44 to 2026-W45, 1,000; the limit is 5 %"
    failed = CheckResult("volume", "warn", "The volume is odd.", 1, "file", found=found)
    shown = page(attrs.evolve(made, checks=[*made.checks, failed]))
    notes = [note.text for note in shown.all("section", **{"aria-labelledby": "notes"})[0].all("li")]
    assert notes == [f"The volume is odd. {found}."]
    assert shown.one("div", id="results").rows()[0][:3] == ["The volume is odd.", "failed", found]


def test_a_contract_without_checks_of_its_own_shows_those_of_its_columns():
    made = samples.trades()
    found = page(made)
    assert f"All {len(made.checks)} checks passed." in found.text
    assert f"Show the {len(made.checks)} checks: never empty, only allowed values" in found.text
    assert "more check" not in found.text


def test_results_of_checks_name_their_heads_where_a_narrow_screen_stacks_them():
    cells = page(samples.weekly_sales()).one("div", id="results").all("td")
    heads = [cell.attributes["data-head"] for cell in cells]
    assert heads == ["Result", "Found", "If found"] * (len(heads) // 3)


def test_a_file_without_checks_says_so():
    assert "There are no checks for this file." in page(attrs.evolve(samples.weekly_sales(), checks=[])).text


def test_a_check_of_the_whole_file_counts_no_rows():
    made = samples.sales_by_region()
    checks = [attrs.evolve(check, failed=1 if check.id == "some_sales" else 0) for check in made.checks]
    assert (
        page(attrs.evolve(made, checks=checks)).one("div", id="results").rows()[0][2]
        == "in the file as a whole"
    )


def test_the_first_rows_are_those_of_the_file():
    made = samples.weekly_sales()
    grid = page(made).one("div", id="first")
    assert [head.text for head in grid.one("thead").all("th")] == [
        "Row",
        *[column.name for column in made.contract.columns],
    ]
    rows = grid.rows()
    assert len(rows) == 20
    wanted = [
        ["“”" if cell == "" else "empty" if cell is None else cell for cell in row]
        for row in made.stats.first_rows
    ]
    assert [row[1:] for row in rows] == wanted
    assert "The first 20 of 798 rows" in grid.text


def test_the_dictionary_has_the_treatment_of_personal_data():
    rows = {row[0].split()[0]: row for row in page(samples.weekly_sales()).one("div", id="dictionary").rows()}
    assert rows["customer_email"][3:5] == ["yes", "replaced by a pseudonym; equal values stay equal"]
    assert rows["customer_since"][4] == "only the year is left"
    assert rows["postal_area"][4] == "only the first 2 characters are left"
    assert rows["ordered_at"][2] == "time (UTC)"
    assert rows["line_total"][2] == "number, 2 decimal places; order currency"
    assert rows["line_total"][5] == "computed: line.quantity * line.unit_price * (1 - line.discount)"
    assert rows["status"][1].endswith("Only: accepted, amended, returned.")
    assert "customer_name" not in rows


def test_excluded_events_add_up_in_plain_words():
    found = page(samples.weekly_sales())
    rows = found.one("div", id="events").rows()
    assert sum(int(row[1].replace(",", "")) for row in rows) == 51_120
    assert ["gave way to a later event of the same order_id", "61"] in rows
    assert "What became of the 51,120 events" in found.one("div", id="events").text
    assert "Cancelled orders were not sold." in found.text
    assert "Street: Street of delivery; not delivered." in found.text


def test_an_aggregate_reports_groups_that_are_too_small():
    found = page(samples.sales_by_region())
    said = (
        "The file has 13 rows. 2 groups are not shown, to protect the people in small groups. Every check "
        "passed."
    )
    assert found.one("p", class_="status complete").text == f"Complete. {said}"
    assert "Groups of fewer than 10 people are left out" in found.text
    assert ["belong to groups that are too small to be shown", "38"] in found.one("div", id="lines").rows()
    without_people = (
        "No group had to be left out. By the contract, the rows are not about people: Rows are sums of trades"
    )
    assert without_people in page(samples.daily_trades()).text


def test_an_aggregate_that_may_change_warns_of_differences_between_generations():
    result = samples.sales_by_region()
    warning = "the difference can be the value of one person who was added"
    assert warning in page(result).text
    fixed = attrs.evolve(result.contract.window, restate_for_days=0)
    final = attrs.evolve(result, contract=attrs.evolve(result.contract, window=fixed))
    assert warning not in page(final).text
    assert warning not in page(samples.daily_trades()).text


@pytest.mark.parametrize(
    ("changes", "expected_message"),
    [
        ({"dialect": "excel"}, "tells Excel that it is UTF-8"),
        ({"dialect": "machine"}, "UTF-8 without a mark"),
        ({"gzip": True}, "compressed with gzip"),
        ({"null_text": "NULL"}, "NULL stands for a value that is missing"),
        ({"null_text": ""}, "A cell with nothing in it has no value"),
    ],
)
def test_the_report_explains_how_to_open_the_file(changes, expected_message):
    shipped = samples.weekly_sales(2).contract
    contract = attrs.evolve(shipped, delivery=attrs.evolve(shipped.delivery, **changes))
    assert expected_message in page(samples.delivered(contract, sales_rows(2))).text


def test_the_report_has_its_source_and_its_owner():
    made = samples.daily_trades()
    found = page(made).text
    for fact in (
        str(made.table.snapshot_id),
        made.contract.sha256,
        made.run_id,
        made.files[0].sha256,
        made.stats.content_sha256,
        "from 2026-11-09 05:00 UTC to before 2026-11-10 05:00 UTC, 1 day, by kafka_timestamp",
        "table lakeferry.daily_trades",
        "Ask market-data team.",
    ):
        assert fact in found
    assert samples.weekly_sales().key_version in page(samples.weekly_sales()).text


def test_a_window_with_a_clock_change_has_its_hours():
    contract = samples.contract(samples.TRADES.replace("America/New_York", "Europe/Berlin"))
    found = page(samples.delivered(contract, [], day=date(2026, 10, 25))).text
    assert "from 2026-10-24 22:00 UTC to before 2026-10-25 23:00 UTC, 25 hours" in found


def test_the_report_has_the_charts_of_the_contract():
    found = page(samples.trades())
    assert [figure.one("h3").text for figure in found.all("figure")] == ["Amount per hour", "Trades per side"]
    assert found.one("path", class_="line").attributes["d"].count("M") == 2
    assert found.one("div", id="dictionary").rows()[0][2] == "time (UTC)"


def test_a_cell_without_a_value_is_not_an_empty_text():
    made = samples.weekly_sales(1)
    row = [("" if column.name == "product" else None) for column in made.contract.columns]
    cells = (
        page(attrs.evolve(made, stats=attrs.evolve(made.stats, first_rows=[row])))
        .one("div", id="first")
        .rows()[0]
    )
    assert [cell for cell in cells[1:] if cell != "empty"] == ["“”"]
