"""What is in the file: charts, checks, its first rows, and what each column means."""

from __future__ import annotations

from decimal import Decimal
from itertools import compress

from exports.contract import Column, Personal
from glue_jobs.delivery.manifest import CheckResult, WindowResult
from glue_jobs.delivery.report import charts, wording
from glue_jobs.delivery.report.markup import LINE_BREAK, Html, joined, prose, said, table, tag, verbatim
from glue_jobs.delivery.report.page import Limits, Section, more
from glue_jobs.delivery.report.summary import found

_CHARTS = 3
#: Columns of the first rows that fit on paper; the style sheet hides the others.
_ON_PAPER = 7
_DICTIONARY = "datapackage.json, beside this report,"


def drawn(result: WindowResult, limits: Limits) -> Section | None:
    contract = result.contract
    amount = len(contract.report.chart)
    figures = [charts.figure(place, contract, result.stats, limits.items) for place in range(min(amount, _CHARTS))]
    left = more(len(figures), amount, "charts", "the contract")
    return Section("charts", "Charts", [tag("div", *figures, class_="charts"), left]) if figures else None


def checks(result: WindowResult, limits: Limits) -> Section:
    results = sorted(result.checks, key=_urgency)
    failed = [check for check in results if not check.passed]
    written = {check.id for check in result.contract.check}
    matters = [not check.passed or check.id in written for check in results]
    shown = list(compress(results, matters))
    rest = [check for check, told in zip(results, matters, strict=True) if not told]
    told = f"{len(failed):,} of {wording.count(len(results), 'check')} failed." if failed else _all_passed(len(results))
    body = [tag("p", prose(told))]
    if shown:
        body.append(_results("results", "What was looked for, and whether it was found", shown, limits))
    if rest:
        summary = f"{wording.count(len(rest), 'more check')} of columns passed: never empty, only allowed values"
        body.append(
            tag(
                "details",
                tag("summary", prose(summary)),
                _results("more-results", "What follows from the columns", rest, limits),
            )
        )
    return Section("checks", "Checks", body)


def first_rows(result: WindowResult, limits: Limits) -> Section:
    columns, rows = result.contract.columns, result.stats.first_rows[: limits.rows]
    if not rows:
        return Section("rows", "First rows", [tag("p", prose("The file has no rows."))])
    shown = columns[: limits.columns]
    lines = [[prose(str(place)), *_cells(row, shown, limits)] for place, row in enumerate(rows, 1)]
    numeric = {0, *(place for place, column in enumerate(shown, 1) if column.numeric)}
    grid = table("first", prose(_first_caption(result, len(rows), limits)), ["Row", *[c.name for c in shown]], lines, numeric)
    paper = f"Paper has room for the first {_ON_PAPER} of {len(columns)} columns."
    on_paper = [tag("p", prose(paper), class_="paper aside")] if len(shown) > _ON_PAPER else []
    return Section("rows", "First rows", [grid, *on_paper, more(len(shown), len(columns), "columns", "the file")])


def dictionary(result: WindowResult, limits: Limits) -> Section:
    columns = result.contract.columns
    rows = [_entry(column, limits.text) for column in columns[: limits.items]]
    heads = ["Column", "Meaning", "Type and unit", "May be empty", "Personal data", "Comes from"]
    caption = f"The {wording.count(len(columns), 'column')} of the file, in order"
    grid = table("dictionary", prose(caption), heads, rows)
    return Section("columns", "What the columns mean", [grid, more(len(rows), len(columns), "columns", _DICTIONARY)])


def _urgency(check: CheckResult) -> tuple[bool, bool]:
    return check.passed, check.severity != "block"


def _all_passed(amount: int) -> str:
    return "There are no checks for this file." if not amount else f"All {wording.count(amount, 'check')} passed."


def _results(name: str, caption: str, results: list[CheckResult], limits: Limits) -> Html:
    rows = [_result(check, limits.text) for check in results[: limits.items]]
    heads = ["Looked for", "Result", "Found", "If found"]
    whole = table(name, prose(caption), heads, rows)
    return joined([whole, more(len(rows), len(results), "checks", "the manifest")])


def _result(check: CheckResult, text: int) -> list[Html]:
    result = tag("span", prose("passed"), class_="passed") if check.passed else tag("span", prose("failed"), class_="failed")
    where = "not found" if check.passed else found(check)
    weight = "the file is kept back" if check.severity == "block" else "a warning; the file is delivered"
    return [prose(check.message, text), result, prose(where), prose(weight)]


def _first_caption(result: WindowResult, amount: int, limits: Limits) -> str:
    all_rows = result.stats.rows
    told = f"The first {amount} of {all_rows:,} rows" if amount < all_rows else f"All {wording.count(all_rows, 'row')}"
    here = f"texts longer than {limits.cell} signs are cut here, line breaks show as {LINE_BREAK}"
    return f"{told}, as they stand in the file; {here}"


def _cells(row: list[str | None], columns: list[Column], limits: Limits) -> list[Html]:
    return [_cell(value, column, limits.cell) for value, column in zip(row, columns, strict=False)]


def _cell(value: str | None, column: Column, limit: int) -> Html:
    if value is None:
        return tag("i", prose("empty"), class_="soft")
    if column.numeric:
        return verbatim(f"{Decimal(value):f}", 60)
    return verbatim(value or "“”", limit)


def _entry(column: Column, text: int) -> list[Html]:
    name = joined([tag("code", prose(column.name)), tag("b", prose(column.title, text))], " ")
    return [
        name,
        _meaning(column, text),
        _type(column, text),
        prose("yes" if column.nullable else "no"),
        _treatment(column.personal, text),
        _origin(column, text),
    ]


def _meaning(column: Column, text: int) -> Html:
    parts = [prose(column.description, text)]
    if column.allowed:
        parts.append(said("Only: {values}.", values=prose(", ".join(column.allowed), text)))
    if column.example is not None:
        parts.append(said("Example: {value}", value=tag("code", verbatim(column.example, text))))
    return joined(parts, " ")


def _type(column: Column, text: int) -> Html:
    kind = {"timestamp": "time (UTC)", "boolean": "true or false", "integer": "whole number"}.get(column.type, column.type)
    if column.type.startswith("decimal"):
        places = int(column.type.rstrip(")").partition(",")[2])
        kind = f"number, {wording.count(places, 'decimal place')}"
    unit = None if column.type == "timestamp" else column.unit
    return said("{kind}; {unit}", kind=prose(kind), unit=prose(unit, text)) if unit else prose(kind)


def _treatment(personal: Personal | None, text: int) -> Html:
    if personal is None:
        return prose("none")
    if personal.treatment == "keep":
        return said("left as it is: {reason}", reason=prose(personal.reason or "", text))
    if personal.treatment == "mask":
        seen = wording.count(personal.visible or 0, "character")
        return prose(f"masked, the last {seen} can be read" if personal.visible else "masked altogether")
    if personal.treatment == "hash":
        return prose("replaced by a pseudonym; equal values stay equal")
    left = {
        "year": "only the year is left",
        "month": "only year and month are left",
        "prefix": f"only the first {wording.count(personal.size or 1, 'character')} left",
        "bucket": f"rounded down to steps of {wording.number(personal.size or 1)}",
    }
    return prose(left[personal.to or "year"])


def _origin(column: Column, text: int) -> Html:
    if formula := column.expression or column.measure:
        return said("computed: {formula}", formula=tag("code", verbatim(formula, text)))
    return said("field {path}", path=tag("code", prose(column.field or "", text)))
