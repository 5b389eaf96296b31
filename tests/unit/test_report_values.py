"""The texts of the report, one by one: what each says about every kind of window, check and column."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import attrs
import pytest

from config.exports.contract import Aggregate, Deduplicate
from config.exports.file_model import Check
from config.exports.windows import find_window
from glue_jobs.delivery.manifest import CheckResult, WindowResult
from glue_jobs.delivery.report import values
from tests.support import samples

TRADES = samples.trades()
PASSED = CheckResult("fine", "warn", "M.", 0)
FAILED = CheckResult("odd", "warn", "Odd  rows.", 1_200)
UNKNOWN = CheckResult("volume", "block", "V.", 0, "file", unknown="there is no other window")


def shown(*, rows: int = 2, suppressed: int | None = None, **changes) -> WindowResult:
    """Return a window of a day with so many rows, of a file of groups if `suppressed` is a number."""
    groups = None if suppressed is None else {"shown": rows, "suppressed": suppressed}
    usual = {
        "counts": TRADES.counts | {"groups": groups},
        "stats": attrs.evolve(TRADES.stats, rows=rows),
        "checks": [PASSED],
        "status": "complete" if rows else "empty",
    }
    return attrs.evolve(TRADES, **usual | changes)


def change_window(result: WindowResult, **rules) -> WindowResult:
    rule = attrs.evolve(result.contract.window, **rules)
    return attrs.evolve(result, contract=attrs.evolve(result.contract, window=rule))


@pytest.mark.parametrize(
    ("rows", "checks", "sentence"),
    [
        (2, [PASSED], "All 2 rows of this window are in the file. Every check passed."),
        (1, [], "The only row of this window is in the file. Every check passed."),
        (
            1_200,
            [PASSED, UNKNOWN],
            "All 1,200 rows of this window are in the file. 1 check could not be made, see below.",
        ),
        (
            2,
            [UNKNOWN, UNKNOWN],
            "All 2 rows of this window are in the file. 2 checks could not be made, see below.",
        ),
        (
            2,
            [FAILED, UNKNOWN, PASSED],
            "All 2 rows of this window are in the file. 1 check failed, see below.",
        ),
        (2, [FAILED, FAILED], "All 2 rows of this window are in the file. 2 checks failed, see below."),
    ],
)
def test_a_complete_window_has_all_rows_and_says_how_its_checks_went(rows, checks, sentence):
    assert values.status(shown(rows=rows, checks=checks)) == ("Complete", sentence)


@pytest.mark.parametrize(
    ("suppressed", "sentence"),
    [
        (0, "All 2 rows of this window are in the file. Every check passed."),
        (
            1,
            "The file has 2 rows. 1 group is not shown, to protect the people in small groups. "
            "Every check passed.",
        ),
        (
            3,
            "The file has 2 rows. 3 groups are not shown, to protect the people in small groups. "
            "Every check passed.",
        ),
    ],
)
def test_groups_that_are_too_small_are_in_the_status(suppressed, sentence):
    assert values.status(shown(suppressed=suppressed)) == ("Complete", sentence)


HEADER_ONLY = "There are no rows in this window; the file has only its header."


@pytest.mark.parametrize(
    ("suppressed", "before", "sentence"),
    [
        (None, None, HEADER_ONLY),
        (0, None, HEADER_ONLY),
        (1, None, f"{HEADER_ONLY} 1 group is not shown, to protect the people in small groups."),
        (None, 1, f"{HEADER_ONLY} The window before it, 8 November 2026, had 1 row."),
        (
            2,
            0,
            f"{HEADER_ONLY} 2 groups are not shown, to protect the people in small groups. The window before "
            "it, 8 November 2026, had 0 rows.",
        ),
    ],
)
def test_an_empty_window_says_what_the_one_before_had(suppressed, before, sentence):
    previous = None if before is None else samples.previous("2026-11-08", before)
    empty = shown(rows=0, suppressed=suppressed, previous_window=previous)
    assert values.status(empty) == ("Empty", sentence)


@pytest.mark.parametrize("rows", [0, 2])
def test_an_incomplete_window_says_until_when_its_data_goes_whatever_its_rows(rows):
    appended = datetime(2026, 11, 9, 22, 5, tzinfo=UTC)
    table = attrs.evolve(TRADES.table, appended_at=appended)
    incomplete = shown(rows=rows, status="incomplete", table=table)
    zone = "(America/New_York)"
    word, sentence = values.status(change_window(incomplete, restate_for_days=2))
    assert word == "Incomplete"
    assert sentence == (
        f"Not final: data until Monday 9 November 2026, 17:05 {zone}. Not everything up to the window's end "
        "has reached the source, so rows may be missing. The file is made again when more data arrives, "
        f"until Thursday 12 November 2026, 00:00 {zone}."
    )
    assert values.status(change_window(incomplete, restate_for_days=0))[1] == sentence.split(" The file")[0]


def test_a_window_may_change_for_some_days_or_never():
    assert values.until(change_window(TRADES, restate_for_days=0)) is None
    assert values.until(change_window(TRADES, restate_for_days=1)) == (
        "Wednesday 11 November 2026, 00:00 (America/New_York)"
    )


def test_cards_have_the_rows_and_at_most_so_many_headlines():
    (rows, amount) = values.cards(attrs.evolve(TRADES, previous_window=None), 12)
    none = "no earlier window had been published"
    total = TRADES.stats.totals["amount"]["sum"]
    assert rows == ("Rows (one row per trade)", f"{TRADES.stats.rows}", none)
    assert amount == ("Amount (USD)", f"{total:,.2f}", none)
    assert values.cards(attrs.evolve(TRADES, previous_window=None), 0) == [rows]
    for grain, title in (("g" * 80, "g" * 80), ("g" * 81, "g" * 79 + "…")):
        contract = attrs.evolve(TRADES.contract, grain=grain)
        card, *_ = values.cards(attrs.evolve(TRADES, contract=contract), 0)
        assert card[0] == f"Rows ({title})"


def test_cards_have_the_longest_numbers_in_full():
    """38 digits, and those that a sum of many such numbers and a comparison with a tiny one add."""
    total = Decimal("9" * 48)
    stats = attrs.evolve(TRADES.stats, totals={"amount": {"sum": total}})
    before = samples.previous("2026-11-08", 1, amount="1E-38")
    _, (_, value, change) = values.cards(attrs.evolve(TRADES, stats=stats, previous_window=before), 12)
    assert value == f"{total:,}"
    assert change.endswith("%) against 8 November 2026")


def test_cards_compare_with_the_window_before():
    total = TRADES.stats.totals["amount"]["sum"]
    same = samples.previous("2026-11-08", TRADES.stats.rows, amount=f"{total}")
    assert [card[2] for card in values.cards(attrs.evolve(TRADES, previous_window=same), 12)] == [
        "unchanged from 8 November 2026"
    ] * 2
    nothing = samples.previous("2026-11-08", 0, amount="0.0000")
    assert [card[2] for card in values.cards(attrs.evolve(TRADES, previous_window=nothing), 12)] == [
        f"+{TRADES.stats.rows} against 8 November 2026, which had 0",
        f"+{total:,.2f} against 8 November 2026, which had 0",
    ]
    unknown = samples.previous("2026-11-08", 0)
    _, (_, _, change) = values.cards(attrs.evolve(TRADES, previous_window=unknown), 12)
    assert change == "no figure for 8 November 2026"
    other = same | {"contract_version": 3}
    assert {card[2] for card in values.cards(attrs.evolve(TRADES, previous_window=other), 12)} == {
        "not compared with 8 November 2026, which has version 3 of the contract"
    }


def test_notes_are_those_of_the_file_then_what_failed():
    of_file = CheckResult("total", "warn", "The total is odd.", 1, "file")
    found = CheckResult("share", "warn", "A share is odd.", 9, tolerated=5, found="9 of 10 rows, 90 %")
    tolerated = CheckResult("few", "warn", "A few are odd.", 5, tolerated=5, found="5 of 10 rows")
    result = shown(checks=[FAILED, PASSED, of_file, UNKNOWN, found, tolerated], notes=["A\n note.", "B."])
    assert values.notes(result, 500) == [
        "A note.",
        "B.",
        "Odd rows. Found in 1,200 rows.",
        "The total is odd. Found in the file as a whole.",
        "A share is odd. 9 of 10 rows, 90 %.",
    ]
    assert values.notes(shown(checks=[FAILED], notes=["A long note."]), 6) == [
        "A lon…",
        "Odd r… Found in 1,200 rows.",
    ]
    assert values.notes(shown(notes=[]), 500) == []


@pytest.mark.parametrize(
    ("check", "outcome", "found"),
    [
        (PASSED, "passed", "not found"),
        (FAILED, "failed", "in 1,200 rows"),
        (attrs.evolve(FAILED, failed=1), "failed", "in 1 row"),
        (attrs.evolve(FAILED, found="1 of 2 rows"), "failed", "1 of 2 rows"),
        (attrs.evolve(FAILED, failed=1, of="file"), "failed", "in the file as a whole"),
        (attrs.evolve(FAILED, tolerated=1_200), "passed", "in 1,200 rows"),
        (UNKNOWN, "unknown", "not checked: there is no other window"),
        (attrs.evolve(UNKNOWN, failed=1), "unknown", "not checked: there is no other window"),
    ],
)
def test_a_check_has_an_outcome_and_what_was_found(check, outcome, found):
    assert (values.outcome(check), values.found(check)) == (outcome, found)


def test_checks_that_failed_come_first_and_those_that_block_before_those_that_warn():
    warned = CheckResult("warned", "warn", "M.", 1)
    blocked = CheckResult("blocked", "block", "M.", 1)
    listed = CheckResult("listed", "warn", "M.", 0)
    unlisted = CheckResult("unlisted", "block", "M.", 0)
    contract = attrs.evolve(
        TRADES.contract, check=[Check(id="listed", severity="warn", message="M.", overall="rows > 0")]
    )
    result = shown(checks=[listed, PASSED, warned, unlisted, blocked], contract=contract)
    summary, main, rest = values.checks(result)
    assert summary == "2 of 5 checks failed."
    assert main == [blocked, warned, listed]
    assert rest == [unlisted, PASSED]


@pytest.mark.parametrize(
    ("checks", "summary"),
    [
        ([], "There are no checks for this file."),
        ([PASSED], "The only check passed."),
        ([PASSED] * 1_001, "All 1,001 checks passed."),
        ([FAILED], "1 of 1 check failed."),
        ([FAILED, PASSED], "1 of 2 checks failed."),
        ([PASSED, UNKNOWN], "1 check passed. 1 check could not be made."),
        ([UNKNOWN, UNKNOWN], "0 checks passed. 2 checks could not be made."),
        ([FAILED, PASSED, UNKNOWN], "1 of 3 checks failed. 1 check could not be made."),
    ],
)
def test_a_summary_counts_the_checks(checks, summary):
    assert values.checks(shown(checks=checks))[0] == summary


EVENTS = {
    "in_table": 99,
    "duplicates": 2,
    "outside_window": 1,
    "filtered": 5,
    "kept": 6,
    "invalid_event_time": 4,
    "null_key": 3,
}
NO_TIME = "had no credible time (none, before 2024-11-01, or in the future)"


@pytest.mark.parametrize(
    ("rule", "of_rule"),
    [
        (None, []),
        (
            Deduplicate(key=["id"]),
            [("gave way to a later event of the same id", 2), ("had no value for id", 3)],
        ),
        (
            Deduplicate(key=["id", "line"], keep="first"),
            [("gave way to an earlier event of the same id, line", 2), ("had no value for id, line", 3)],
        ),
    ],
)
def test_each_outcome_of_events_is_in_words_and_in_order(rule, of_rule):
    contract = attrs.evolve(TRADES.contract, deduplicate=rule)
    result = shown(contract=contract, counts=TRADES.counts | {"events": EVENTS})
    assert values.events(result, 500) == [
        ("happened outside this window", 1),
        *of_rule,
        (NO_TIME, 4),
        ("were left out by a filter", 5),
        ("were kept for this file", 6),
    ]


@pytest.mark.parametrize(
    ("aggregate", "named"),
    [
        (None, [("were left out by a filter", 1), ("are rows of the file", 3)]),
        (
            Aggregate(no_persons_because="Machines."),
            [("were left out by a filter", 1), ("count in the groups of the file", 3)],
        ),
        (
            Aggregate(person_id="who"),
            [
                ("were left out by a filter", 1),
                ("belong to groups that are too small to be shown", 2),
                ("count in the groups of the file", 3),
            ],
        ),
    ],
)
def test_each_outcome_of_lines_is_in_words(aggregate, named):
    counts = TRADES.counts | {"lines": {"filtered": 1, "suppressed": 2, "delivered": 3}}
    contract = attrs.evolve(TRADES.contract, aggregate=aggregate)
    assert values.lines(shown(contract=contract, counts=counts)) == named


RULE = (
    "Groups of fewer than 7 people are left out, and another one where there is only one such group, so that "
    "nobody can be recognised. Totals are of the groups shown."
)
CHANGES = (
    " If late events change this window, a new file replaces this one. Don't compare the two: the difference "
    "can be the value of one person who was added."
)


@pytest.mark.parametrize(
    ("suppressed", "days", "text"),
    [
        (0, 0, f"0 groups were left out. {RULE}"),
        (1, 0, f"1 group was left out. {RULE}"),
        (1_200, 14, f"1,200 groups were left out. {RULE}{CHANGES}"),
    ],
)
def test_groups_of_people_that_were_left_out_are_explained(suppressed, days, text):
    result = change_window(TRADES, restate_for_days=days)
    contract = attrs.evolve(result.contract, aggregate=Aggregate(person_id="who", min_group_size=7))
    assert values.groups({"shown": 1, "suppressed": suppressed}, contract, 500) == text


@pytest.mark.parametrize(
    ("aggregate", "reason"),
    [
        (None, ""),
        (Aggregate(no_persons_because="They are  sums of machines."), "They are sums of mac…"),
    ],
)
def test_groups_without_people_say_why(aggregate, reason):
    contract = attrs.evolve(TRADES.contract, aggregate=aggregate)
    assert values.groups({"shown": 1, "suppressed": 0}, contract, 21) == (
        f"No group had to be left out. By the contract, the rows are not about people: {reason}"
    )


@pytest.mark.parametrize(
    ("formats", "words"),
    [
        (["xlsx"], "a workbook for Excel"),
        (["parquet", "jsonl"], "a Parquet file and a JSON Lines file"),
        (["jsonl", "parquet", "xlsx"], "a JSON Lines file, a Parquet file and a workbook for Excel"),
    ],
)
def test_formats_are_listed_in_words(formats, words):
    assert values.describe_formats(formats) == words


@pytest.mark.parametrize(
    ("zone", "every", "day", "text"),
    [
        ("UTC", "day", date(2026, 11, 9), "from 2026-11-09 00:00 UTC to before 2026-11-10 00:00 UTC, 1 day"),
        (
            "Europe/Berlin",
            "day",
            date(2026, 3, 29),
            "from 2026-03-28 23:00 UTC to before 2026-03-29 22:00 UTC, 23 hours",
        ),
        (
            "Australia/Lord_Howe",
            "day",
            date(2026, 4, 5),
            "from 2026-04-04 13:00 UTC to before 2026-04-05 13:30 UTC, 24.5 hours",
        ),
        (
            "Europe/Berlin",
            "iso_week",
            date(2026, 10, 25),
            "from 2026-10-18 22:00 UTC to before 2026-10-25 23:00 UTC, 169 hours",
        ),
        (
            "UTC",
            "quarter",
            date(2026, 5, 1),
            "from 2026-04-01 00:00 UTC to before 2026-07-01 00:00 UTC, 91 days",
        ),
    ],
)
def test_the_bounds_of_a_window_are_in_utc_with_its_length(zone, every, day, text):
    rule = attrs.evolve(TRADES.contract.window, zone=zone, every=every)
    assert values.bounds(attrs.evolve(TRADES, window=find_window(day, rule))) == text
