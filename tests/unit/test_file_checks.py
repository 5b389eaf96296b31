"""The checks that follow from columns and key, what a check of rows finds, and what to do about failures."""

from __future__ import annotations

import attrs
import pytest

from config.exports.contract import Contract
from config.exports.file_model import Check
from glue_jobs.delivery.checks import check_rows, explain_failures, list_implied_checks
from glue_jobs.delivery.manifest import CheckResult
from glue_jobs.delivery.verify import FileStats
from tests.support import samples

FAILED = {
    "nulls": {"id": 1, "note": 7},
    "disallowed": {"side": 2_000},
    "repeated_rows": 3_000,
    "repeated_keys": 1_500,
}


def contract(*, unique: bool = True) -> Contract:
    """Return a contract in which each column but `note` has a check, `side` has two, and the key has one."""
    made = samples.things(
        ("id", "integer"),
        ("note", "text", "nullable = true"),
        ("side", "text", 'allowed = ["BUY", "SELL"]'),
        ("flag", "boolean", "nullable = true", 'allowed = ["true"]'),
    )
    return attrs.evolve(made, unique=["id", "side"] if unique else [])


def implied(**found) -> dict[str, CheckResult]:
    return {check.id: check for check in list_implied_checks(contract(), FileStats(**found))}


def test_columns_and_key_imply_checks_that_block_the_file():
    assert list_implied_checks(contract(), FileStats(rows=10)) == [
        CheckResult("id_not_empty", "block", "id is empty in some rows.", 0),
        CheckResult("side_not_empty", "block", "side is empty in some rows.", 0),
        CheckResult("side_allowed", "block", "side has values other than BUY, SELL.", 0),
        CheckResult("flag_allowed", "block", "flag has values other than true.", 0),
        CheckResult("rows_are_unique", "block", "Rows have the same id, side.", 0),
    ]
    without_key = list_implied_checks(contract(unique=False), FileStats(rows=10))
    assert [check.id for check in without_key] == [
        "id_not_empty",
        "side_not_empty",
        "side_allowed",
        "flag_allowed",
    ]


def test_an_implied_check_that_failed_says_how_often():
    checks = implied(rows=50_000, **FAILED)
    assert list(checks.values()) == [
        CheckResult(
            "id_not_empty", "block", "id is empty in 1 of 50,000 rows, and the column isn't nullable.", 1
        ),
        CheckResult("side_not_empty", "block", "side is empty in some rows.", 0),
        CheckResult(
            "side_allowed", "block", "side has values other than BUY, SELL in 2,000 of 50,000 rows.", 2_000
        ),
        CheckResult("flag_allowed", "block", "flag has values other than true.", 0),
        CheckResult(
            "rows_are_unique",
            "block",
            "3,000 of 50,000 rows have the same id, side as another row (1,500 different values), and "
            "`unique` says that it identifies a row.",
            3_000,
        ),
    ]


def test_a_single_row_and_a_single_key_are_singular():
    assert implied(rows=1, nulls={"id": 1})["id_not_empty"].message == (
        "id is empty in 1 of 1 row, and the column isn't nullable."
    )
    assert implied(rows=2, disallowed={"flag": 1})["flag_allowed"].message == (
        "flag has values other than true in 1 of 2 rows."
    )
    assert (
        "(1 different value)" in implied(rows=2, repeated_rows=2, repeated_keys=1)["rows_are_unique"].message
    )


def check(severity: str = "warn", limit: float | None = None) -> Check:
    return Check(id="odd", severity=severity, message="Odd rows.", each_row="id > 0", at_most_percent=limit)


@pytest.mark.parametrize("severity", ["warn", "block"])
@pytest.mark.parametrize("failed", [0, 1])
def test_a_check_of_rows_without_a_limit_tolerates_none(severity, failed):
    result = check_rows(check(severity), failed, 100)
    assert result == CheckResult("odd", severity, "Odd rows.", failed)
    assert result.has_failed == bool(failed)


@pytest.mark.parametrize(
    ("limit", "failed", "rows", "tolerated", "found"),
    [
        (0, 0, 100, 0, None),
        (0, 1, 100, 0, "1 of 100 rows, 1 %; the limit is 0 %"),
        (5, 5, 100, 5, "5 of 100 rows, 5 %; the limit is 5 %"),
        (5, 6, 100, 5, "6 of 100 rows, 6 %; the limit is 5 %"),
        (5, 1, 19, 0, "1 of 19 rows, 5.26 %; the limit is 5 %"),
        (0.1, 3, 3_000, 3, "3 of 3,000 rows, 0.1 %; the limit is 0.1 %"),
        (0.57, 57, 10_000, 57, "57 of 10,000 rows, 0.57 %; the limit is 0.57 %"),
        (0.001, 1, 2_000_000, 20, "1 of 2,000,000 rows, 0.00005 %; the limit is 0.001 %"),
        (100, 2_000, 2_000, 2_000, "2,000 of 2,000 rows, 100 %; the limit is 100 %"),
        (5, 0, 0, 0, None),
    ],
)
def test_a_check_of_rows_tolerates_as_many_as_its_limit_says(limit, failed, rows, tolerated, found):
    """Exactly: a limit of 0.57 % of 10,000 rows is 57, which a float would make 56."""
    result = check_rows(check(limit=limit), failed, rows)
    assert result == CheckResult("odd", "warn", "Odd rows.", failed, tolerated=tolerated, found=found)
    assert result.has_failed == (failed > tolerated)


ODD = CheckResult("odd", "block", "Odd rows.", 1_234)
FOUND = CheckResult("volume", "block", "The volume is odd.", 1, "file", found="900 is less than 1,000")


def explained(*failed: CheckResult, **found) -> tuple[str, str]:
    """Return the explanation of these checks, and of those that `found` makes fail."""
    stats = FileStats(rows=50_000, **found)
    of_columns = [result for result in list_implied_checks(contract(), stats) if result.has_failed]
    return explain_failures([*failed, *of_columns], contract(), stats)


def test_failures_say_what_was_found_and_every_way_out():
    what, ways = explained(ODD, FOUND, **FAILED)
    assert what == (
        "id is empty in 1 of 50,000 rows, and the column isn't nullable; "
        "side has values other than BUY, SELL in 2,000 of 50,000 rows; "
        "3,000 of 50,000 rows have the same id, side as another row (1,500 different values), and `unique` "
        "says that it identifies a row; "
        "Odd rows. (odd: 1,234); The volume is odd. (volume: 900 is less than 1,000)"
    )
    assert ways == (
        "Correct the source, or the check, or set nullable = true for id, or add the values to `allowed` of "
        "side, or name all columns that identify a row in `unique`, or deduplicate by them"
    )


@pytest.mark.parametrize(
    ("failed", "found", "ways"),
    [
        ([ODD], {}, "Correct the source, or the check"),
        (
            [],
            {"nulls": {"id": 1, "side": 1}},
            "Correct the source, or set nullable = true for id, side",
        ),
        (
            [],
            {"disallowed": {"side": 1, "flag": 1}},
            "Correct the source, or add the values to `allowed` of side, flag",
        ),
        (
            [],
            {"repeated_rows": 2, "repeated_keys": 1},
            "Correct the source, or name all columns that identify a row in `unique`, or deduplicate by them",
        ),
    ],
)
def test_only_ways_out_of_what_failed_are_named(failed, found, ways):
    assert explained(*failed, **found)[1] == ways


def test_a_check_of_the_contract_is_none_of_the_columns_although_it_has_the_name():
    named_alike = CheckResult("id_not_empty", "block", "Another check.", 5)
    assert explained(named_alike) == ("Another check. (id_not_empty: 5)", "Correct the source, or the check")
