"""The checks that follow from a contract's columns, and what to do about checks that failed."""

from __future__ import annotations

from config.exports.contract import Contract
from glue_jobs.delivery.manifest import CheckResult
from glue_jobs.delivery.verify import FileStats


def list_implied_checks(contract: Contract, stats: FileStats) -> list[CheckResult]:
    """Return the checks that follow from the columns: no empty cells, and only the allowed values."""
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
    return results


def _describe_rows(failed: int, stats: FileStats) -> str:
    return f"{failed:,} of {stats.rows:,} {'row' if stats.rows == 1 else 'rows'}"


def explain_failures(failed: list[CheckResult], contract: Contract, stats: FileStats) -> tuple[str, str]:
    """Return what the failed checks found, and what to do about it."""
    implied = list_implied_checks(contract, stats)
    explicit = [check for check in failed if check not in implied]
    messages = [check.message.rstrip(".") for check in failed if check in implied]
    messages += [f"{check.message} ({check.id}: {check.failed:,})" for check in explicit]
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
    return "; ".join(messages), ", or ".join(ways)
