"""The checks of a file: those that follow from the contract's columns and its unique key, those of rows and
those that compare with earlier windows. And what to do about checks that failed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from config.exports.contract import Contract
from config.exports.file_model import Check
from glue_jobs.delivery.manifest import CheckResult
from glue_jobs.delivery.verify import FileStats

#: The id of the check that `unique` implies.
UNIQUE: Final = "rows_are_unique"


def list_implied_checks(contract: Contract, stats: FileStats) -> list[CheckResult]:
    """Return the checks that follow from the columns and the key: no empty cells, only the allowed values,
    and no two rows with the same key.
    """
    results = []
    for column in contract.columns:
        name = column.name
        empty = stats.nulls.get(column.name, 0)
        other = stats.disallowed.get(column.name, 0)
        if not column.nullable:
            message = f"{name} is empty in some rows."
            if empty:
                message = f"{name} is empty in {_describe_rows(empty, stats)}, and the column isn't nullable."
            results.append(CheckResult(f"{name}_not_empty", "block", message, empty))
        if column.allowed:
            values = f"has values other than {', '.join(column.allowed)}"
            message = f"{name} {values} in {_describe_rows(other, stats)}." if other else f"{name} {values}."
            results.append(CheckResult(f"{name}_allowed", "block", message, other))
    if contract.unique:
        results.append(_check_unique_key(contract, stats))
    return results


def _check_unique_key(contract: Contract, stats: FileStats) -> CheckResult:
    key = ", ".join(contract.unique)
    message = f"Rows have the same {key}."
    if stats.repeated_rows:
        values = "value" if stats.repeated_keys == 1 else "values"
        message = (
            f"{_describe_rows(stats.repeated_rows, stats)} have the same {key} as another row "
            f"({stats.repeated_keys:,} different {values}), and `unique` says that it identifies a row."
        )
    return CheckResult(UNIQUE, "block", message, stats.repeated_rows)


def check_rows(check: Check, failed: int, rows: int) -> CheckResult:
    """Return the result of a check with `each_row` that is false for `failed` of the file's rows."""
    if check.at_most_percent is None:
        return CheckResult(check.id, check.severity, check.message, failed)
    limit = Decimal(str(check.at_most_percent))
    tolerated = int(limit * rows / 100)
    found = None
    if failed:
        percent = Decimal(f"{100 * failed / rows:.3g}")
        found = f"{failed:,} of {rows:,} rows, {percent:f} %; the limit is {check.at_most_percent:g} %"
    return CheckResult(check.id, check.severity, check.message, failed, tolerated=tolerated, found=found)


def _describe_rows(failed: int, stats: FileStats) -> str:
    return f"{failed:,} of {stats.rows:,} {'row' if stats.rows == 1 else 'rows'}"


def explain_failures(failed: list[CheckResult], contract: Contract, stats: FileStats) -> tuple[str, str]:
    """Return what the failed checks found, and what to do about it."""
    implied = list_implied_checks(contract, stats)
    explicit = [check for check in failed if check not in implied]
    messages = [check.message.removesuffix(".") for check in failed if check in implied]
    messages += [f"{check.message} ({check.id}: {check.found or f'{check.failed:,}'})" for check in explicit]
    ids = {check.id for check in failed if check in implied}
    empty = [column.name for column in contract.columns if f"{column.name}_not_empty" in ids]
    other = [column.name for column in contract.columns if f"{column.name}_allowed" in ids]
    ways = ["Correct the source"]
    if explicit:
        ways.append("the check")
    if empty:
        ways.append(f"set nullable = true for {', '.join(empty)}")
    if other:
        ways.append(f"add the values to `allowed` of {', '.join(other)}")
    if UNIQUE in ids:
        ways.append("name all columns that identify a row in `unique`, or deduplicate by them")
    return "; ".join(messages), ", or ".join(ways)
