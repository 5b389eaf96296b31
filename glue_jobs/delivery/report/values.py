"""The report's texts about a window, as plain text, which the template escapes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import assert_never

from config.exports.contract import Column, Contract, Personal
from config.exports.file_model import Format
from glue_jobs.delivery import manifest
from glue_jobs.delivery.manifest import CheckResult, WindowResult
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.wording import count, instant, number, prose


def status(result: WindowResult) -> tuple[str, str]:
    """Return the status in a word and in a sentence."""
    groups = result.counts["groups"]
    few = groups["suppressed"] if groups else 0
    hidden = count(few, "group is", "groups are")
    suppressed = f" {hidden} not shown, to protect the people in small groups." if few else ""
    if result.status == "incomplete":
        return "Incomplete", _describe_incomplete(result)
    if result.status == "empty":
        before = result.previous_window
        earlier = (
            f" The window before it, {wording.label(before['window'])}, had {count(before['rows'], 'row')}."
            if before
            else ""
        )
        return (
            "Empty",
            f"There are no rows in this window; the file has only its header.{suppressed}{earlier}",
        )
    checked = _describe_checks(result)
    rows = count(result.stats.rows, "row")
    delivered = f"The file has {rows}."
    if not few:
        every = "The only row" if result.stats.rows == 1 else f"All {rows}"
        delivered = f"{every} of this window {'is' if result.stats.rows == 1 else 'are'} in the file."
    return result.status.capitalize(), f"{delivered}{suppressed} {checked}"


def _describe_checks(result: WindowResult) -> str:
    failed = sum(check.has_failed for check in result.checks)
    unknown = sum(check.passed is None for check in result.checks)
    if failed:
        return f"{count(failed, 'check')} failed, see below."
    return f"{count(unknown, 'check')} could not be made, see below." if unknown else "Every check passed."


def _describe_incomplete(result: WindowResult) -> str:
    limit = until(result)
    again = f" The file is made again when more data arrives, until {limit}." if limit else ""
    return (
        f"Not final: data until {instant(result.table.appended_at, result.contract.window.zone)}. "
        f"Not everything up to the window's end has reached the source, so rows may be missing.{again}"
    )


def until(result: WindowResult) -> str | None:
    """Return the time until which late data may change the window, or None if it never does."""
    days = result.contract.window.restate_for_days
    return instant(result.window.end + timedelta(days=days), result.contract.window.zone) if days else None


def cards(result: WindowResult, items: int) -> list[tuple[str, str, str]]:
    """Return (title, value, difference from the window before) of the number of rows and of each number of
    the headline.
    """
    before = result.previous_window
    rows = result.stats.rows
    rows_before = before["rows"] if before else None
    shown = [
        (
            f"Rows ({prose(result.contract.grain, 80)})",
            number(rows),
            _describe_change(result, rows, rows_before),
        )
    ]
    for entry in manifest.build_headline(result)[:items]:
        total = Decimal(entry["total"])
        then = before["totals"].get(manifest.find_headline_total(entry)) if before else None
        title = wording.named(entry["title"], entry["unit"])
        shown.append((title, number(total), _describe_change(result, total, then)))
    return shown


def _describe_change(result: WindowResult, now: Decimal | int, then: str | int | None) -> str:
    before = result.previous_window
    version = result.contract.version
    if before is None:
        return "no earlier window had been published"
    label = wording.label(before["window"])
    if before["contract_version"] != version:
        return f"not compared with {label}, which has version {before['contract_version']} of the contract"
    return wording.change(now, None if then is None else Decimal(then), label)


def notes(result: WindowResult, text: int) -> list[str]:
    failed = [check for check in result.checks if check.has_failed]
    return [
        *[prose(note, text) for note in result.notes],
        *[f"{prose(check.message, text)} {_describe_found(check)}" for check in failed],
    ]


def _describe_found(check: CheckResult) -> str:
    return f"{check.found}." if check.found else f"Found {where_failed(check)}."


def where_failed(check: CheckResult) -> str:
    """Return how often a check failed, as part of a sentence."""
    return "in the file as a whole" if check.of == "file" else f"in {count(check.failed, 'row')}"


def outcome(check: CheckResult) -> str:
    if check.passed is None:
        return "unknown"
    return "passed" if check.passed else "failed"


def found(check: CheckResult) -> str:
    """Return what a check found, for the table of checks."""
    if check.unknown:
        return f"not checked: {check.unknown}"
    if check.failed:
        return check.found or where_failed(check)
    return "not found"


def checks(result: WindowResult) -> tuple[str, list[CheckResult], list[CheckResult]]:
    """Return a summary, the checks that failed or that the contract lists, and those that follow from its
    columns.
    """
    results = sorted(result.checks, key=lambda check: (not check.has_failed, check.severity != "block"))
    failed = sum(check.has_failed for check in results)
    unknown = sum(check.passed is None for check in results)
    listed = {check.id for check in result.contract.check}
    main = [check for check in results if check.has_failed or check.id in listed]
    every = "The only check" if len(results) == 1 else f"All {count(len(results), 'check')}"
    summary = f"{every} passed." if results else "There are no checks for this file."
    if failed:
        summary = f"{failed:,} of {count(len(results), 'check')} failed."
    elif unknown:
        summary = f"{count(len(results) - unknown, 'check')} passed."
    if unknown:
        summary += f" {count(unknown, 'check')} could not be made."
    return summary, main, [check for check in results if check not in main]


def cell(value: str | None, column: Column, limit: int) -> str:
    if column.numeric and value is not None:
        return wording.cut(f"{Decimal(value):f}", 60)
    return wording.cut(value or "“”", limit)


def numeric(columns: list[Column]) -> set[int]:
    """Return the indexes of cells with numbers in the table of first rows.

    The first cell is the row's number.
    """
    return {0, *(index for index, column in enumerate(columns, 1) if column.numeric)}


def column_type(column: Column) -> str:
    kind = {"timestamp": "time (UTC)", "boolean": "true or false", "integer": "whole number"}.get(
        column.type, column.type
    )
    if column.type.startswith("decimal"):
        kind = f"number, {count(int(column.type.removesuffix(')').partition(',')[2]), 'decimal place')}"
    return f"{kind}; sums have no meaning" if column.adds_up is False else kind


def treatment(personal: Personal | None, text: int) -> str:
    if personal is None:
        return "none"
    match personal.treatment:
        case "keep":
            return f"left as it is: {prose(personal.reason or '', text)}"
        case "mask":
            visible = f"masked, the last {count(personal.visible or 0, 'character')} can be read"
            return visible if personal.visible else "masked altogether"
        case "hash":
            return "replaced by a pseudonym; equal values stay equal"
        case "generalise":
            return _describe_generalised(personal)
        case "drop":
            raise ValueError("a dropped column is not in the file")
    assert_never(personal.treatment)


def _describe_generalised(personal: Personal) -> str:
    match personal.to:
        case "year":
            return "only the year is left"
        case "month":
            return "only year and month are left"
        case "prefix":
            size = personal.size or 1
            return (
                "only the first character is left"
                if size == 1
                else f"only the first {size} characters are left"
            )
        case "bucket":
            return f"rounded down to steps of {number(personal.size or 1)}"
        case None:
            raise ValueError("generalise needs `to`")
    assert_never(personal.to)


def events(result: WindowResult, text: int) -> list[tuple[str, int]]:
    """Return what became of the events in the source table."""
    contract = result.contract
    counted = result.counts["events"]
    outcomes = {"outside_window": "happened outside this window"}
    if rule := contract.deduplicate:
        key = prose(", ".join(rule.key), text)
        outcomes["duplicates"] = (
            f"gave way to {'a later' if rule.keep == 'latest' else 'an earlier'} event of the same {key}"
        )
        outcomes["null_key"] = f"had no value for {key}"
    outcomes["invalid_event_time"] = (
        f"had no credible time (none, before {contract.min_event_date}, or in the future)"
    )
    outcomes |= {"filtered": "were left out by a filter", "kept": "were kept for this file"}
    return [(outcome, counted[name]) for name, outcome in outcomes.items()]


def lines(result: WindowResult) -> list[tuple[str, int]]:
    """Return what became of the lines of these events."""
    aggregate = result.contract.aggregate
    counted = result.counts["lines"]
    outcomes = {"filtered": "were left out by a filter"}
    if aggregate and aggregate.person_id:
        outcomes["suppressed"] = "belong to groups that are too small to be shown"
    outcomes["delivered"] = "count in the groups of the file" if aggregate else "are rows of the file"
    return [(outcome, counted[name]) for name, outcome in outcomes.items()]


def groups(counted: dict[str, int], contract: Contract, text: int) -> str:
    rule = contract.aggregate
    if rule is None or rule.person_id is None:
        reason = prose((rule and rule.no_persons_because) or "", text)
        return f"No group had to be left out. By the contract, the rows are not about people: {reason}"
    left = (
        f"{count(counted['suppressed'], 'group')} {'was' if counted['suppressed'] == 1 else 'were'} left out"
    )
    reason = (
        f"Groups of fewer than {rule.min_group_size} people are left out, and another one where there is "
        "only one such group"
    )
    earlier = ""
    if contract.window.restate_for_days:
        earlier = (
            " If late events change this window, a new file replaces this one. Don't compare the two: the "
            "difference can be the value of one person who was added."
        )
    return f"{left}. {reason}, so that nobody can be recognised. Totals are of the groups shown.{earlier}"


def describe_formats(forms: list[Format]) -> str:
    names = {"parquet": "a Parquet file", "jsonl": "a JSON Lines file", "xlsx": "a workbook for Excel"}
    listed = [names[form] for form in forms]
    return " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))


def bounds(result: WindowResult) -> str:
    window = result.window
    hours = (window.end - window.start).total_seconds() / 3600
    # If the hours are not whole days, clocks changed in the window.
    length = f"{hours:g} hours" if hours % 24 else count(int(hours / 24), "day")
    return f"from {window.start:%Y-%m-%d %H:%M} UTC to before {window.end:%Y-%m-%d %H:%M} UTC, {length}"
