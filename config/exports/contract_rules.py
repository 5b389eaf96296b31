"""Rules for a contract as a whole, beyond the form of each key.

Each rule yields (key, what is wrong and what to do).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final

from config.exports.check_rules import checks_are_complete, checks_compare_headlines, unique_key_is_delivered
from config.exports.contract import Column, Contract, decimal_type
from config.exports.personal_rules import personal_is_complete, reasons_are_needed, scanned_kinds_are_known
from config.toml_model import Rule

Finding = tuple[str, str]

#: Columns that a table of aggregates has in addition to those of the contract.
KEPT_WITH: Final = ("window", "window_start", "window_end", "run_id")


def columns_are_named_once(contract: Contract) -> Iterator[Finding]:
    """Each column has a name of its own, none is called `rows`, and at least one is delivered."""
    counts = Counter(column.name for column in contract.column)
    for index, column in enumerate(contract.column):
        if counts[column.name] > 1:
            yield (
                f"column[{index}].name",
                f"{column.name} appears {counts[column.name]} times. Give each column its own name",
            )
    for index, column in enumerate(contract.column):
        if column.name == "rows":
            yield (
                f"column[{index}].name",
                "charts and checks use this name for the number of rows. Give the column another one",
            )
    if not any(column.delivered for column in contract.column):
        yield "column", "no column is delivered. Name at least one that is not dropped"


def columns_have_one_origin(contract: Contract) -> Iterator[Finding]:
    """A column has at most one of `from`, `expression` and `measure`. With none of them it takes the source
    field of its own name.
    """
    for index, column in enumerate(contract.column):
        origins = {"from": column.source, "expression": column.expression, "measure": column.measure}
        named_origins = [name for name, value in origins.items() if value is not None]
        if len(named_origins) > 1:
            yield (
                f"column[{index}].{named_origins[1]}",
                f"{' and '.join(named_origins)} exclude one another. Keep one",
            )


def decimals_fit(contract: Contract) -> Iterator[Finding]:
    """`decimal(p,s)`: p is 1 to 38, s at most p."""
    for index, column in enumerate(contract.column):
        if (size := decimal_type(column.type)) and not (1 <= size[0] <= 38 and size[1] <= size[0]):
            yield (
                f"column[{index}].type",
                f"{column.type}: the precision is 1 to 38, the scale at most the precision",
            )


def allowed_values_fit(contract: Contract) -> Iterator[Finding]:
    """Each value in `allowed` is written as the column's type is in the file."""
    for index, column in enumerate(contract.column):
        for number, value in enumerate(column.allowed):
            if not fits(column.type, value):
                yield (
                    f"column[{index}].allowed[{number}]",
                    f"{value[:40]!r} is not how {column.type} values are written in the file. Correct it",
                )


def null_text_is_unambiguous(contract: Contract) -> Iterator[Finding]:
    """`delivery.null_text` isn't a valid value of any column whose type isn't text. A file whose only column
    is nullable needs a `null_text` that isn't empty.
    """
    null_text = contract.delivery.null_text
    for column in contract.columns:
        if column.type != "text" and fits(column.type, null_text):
            yield (
                "delivery.null_text",
                f"{null_text!r} is also a value of {column.name} ({column.type}). Take another text",
            )
    if len(contract.columns) == 1 and contract.columns[0].nullable and not null_text:
        yield (
            "delivery.null_text",
            "a row without a value would be an empty line, which many readers skip. Give a text",
        )


def formats_are_possible(contract: Contract) -> Iterator[Finding]:
    """`delivery.also` names each format once, and `xlsx` needs `dialect = "excel"`, whose texts fit into the
    cells of a workbook.
    """
    also = contract.delivery.also
    for index, form in enumerate(also):
        if form in also[:index]:
            yield f"delivery.also[{index}]", f"{form} is named twice. Remove one of them"
        elif form == "xlsx" and contract.delivery.dialect != "excel":
            yield (
                f"delivery.also[{index}]",
                "a cell of a workbook holds 32,767 characters, and all files have the same texts. Set "
                'dialect = "excel"',
            )


def attached_files_have_nothing_personal(contract: Contract) -> Iterator[Finding]:
    """With `delivery.attach_up_to_kb`, `delivery.attach_keeps` names each column with the treatment `keep`,
    and no other. A mail can be forwarded, and can't be revoked.
    """
    delivery = contract.delivery
    kept = [column.name for column in contract.column if column.keeps_personal]
    unnamed = [name for name in kept if name not in delivery.attach_keeps]
    if delivery.attach_up_to_kb and unnamed:
        yield (
            "delivery.attach_up_to_kb",
            f"the file keeps personal data in {', '.join(unnamed)}, and everybody to whom a mail is "
            "forwarded can read it. If they may, name the columns as attach_keeps. Otherwise leave "
            "attach_up_to_kb out, or give the columns another treatment",
        )
    for index, name in enumerate(delivery.attach_keeps):
        if name not in kept:
            yield (
                f"delivery.attach_keeps[{index}]",
                f"{name} is no column that keeps its values. Remove it",
            )


def fits(type_: str, text: str) -> bool:
    """Return whether `text` is a valid cell of the type.

    A decimal may have fewer decimal places than its scale.
    """
    if size := decimal_type(type_):
        digits = re.fullmatch(r"-?([0-9]+)(?:\.([0-9]+))?", text)
        return (
            digits is not None
            and len((digits[2] or "").rstrip("0")) <= size[1]
            and abs(Decimal(text)) < 10 ** (size[0] - size[1])
        )
    if type_ == "integer":
        return re.fullmatch(r"-?[0-9]{1,19}", text) is not None and -(2**63) <= int(text) < 2**63
    if type_ == "boolean":
        return text in ("true", "false")
    return type_ == "text" or _fits_time(type_, text)


def _fits_time(type_: str, text: str) -> bool:
    form = r"\d{4}-\d{2}-\d{2}" + (r"T\d{2}:\d{2}:\d{2}\.\d{6}Z" if type_ == "timestamp" else "")
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(form, text, re.ASCII) is not None


def aggregate_is_complete(contract: Contract) -> Iterator[Finding]:
    """A measure needs `[aggregate]`, and `[aggregate]` needs at least one measure and one other column. It
    has exactly one of `person_id` and `no_persons_because`. A table that is kept has columns `window`,
    `window_start`, `window_end` and `run_id` of its own, so no other column has these names.
    """
    measures = [index for index, column in enumerate(contract.column) if column.measure]
    aggregate = contract.aggregate
    if aggregate is None:
        for index in measures:
            yield f"column[{index}].measure", "a measure needs an [aggregate] section"
        return
    if not measures:
        yield "aggregate", 'no column is a measure. Add one such as measure = "count(*)"'
    if len(measures) == len(contract.column):
        yield (
            "aggregate",
            "every column is a measure, so there is nothing to group by. Add a column to group by",
        )
    for index, column in enumerate(contract.column):
        if aggregate.keep_as_table and column.name in KEPT_WITH:
            yield (
                f"column[{index}].name",
                f"the table that is kept has a column {column.name} of its own. Give this one another name",
            )
    if (aggregate.person_id is None) == (aggregate.no_persons_because is None):
        yield (
            "aggregate",
            "give exactly one of `person_id`, the field that identifies a person, and `no_persons_because`",
        )


def references_exist(contract: Contract) -> Iterator[Finding]:
    """`delivery.order_by`, `report.headline` and the charts name delivered columns; headlines and `y` name
    numeric ones, or `rows`.
    """
    delivered = {column.name: column for column in contract.columns}
    for index, name in enumerate(contract.delivery.order_by):
        if name not in delivered:
            yield f"delivery.order_by[{index}]", f"{name} is not a delivered column"
    for index, name in enumerate(contract.report.headline):
        if name not in delivered or not delivered[name].numeric:
            yield f"report.headline[{index}]", f"{name} is not a delivered numeric column"
    for index, chart in enumerate(contract.report.chart):
        if chart.x not in delivered:
            yield f"report.chart[{index}].x", f"{chart.x} is not a delivered column"
        if chart.y != "rows" and not (chart.y in delivered and delivered[chart.y].numeric):
            yield f"report.chart[{index}].y", f"{chart.y} is neither rows nor a delivered numeric column"


def units_are_not_mixed(contract: Contract) -> Iterator[Finding]:
    """A headline or chart over amounts in several currencies needs `per` on its column, and the chart
    `only`.
    """
    delivered = {column.name: column for column in contract.columns}
    for index, column in enumerate(contract.column):
        if column.per is not None and (column.per not in delivered or delivered[column.per].type != "text"):
            yield f"column[{index}].per", f"{column.per} is not a delivered column of text"
        if column.per is not None and not column.numeric:
            yield f"column[{index}].per", f"{column.name} is not a number, so it has no unit. Remove per"
    for index, name in enumerate(contract.report.headline):
        if name in delivered and _may_mix(delivered[name], contract):
            yield f"report.headline[{index}]", _MIXED.format(name)
    for index, chart in enumerate(contract.report.chart):
        y = delivered.get(chart.y)
        if y and _may_mix(y, contract):
            yield f"report.chart[{index}].y", _MIXED.format(y.name)
        if y and y.per and chart.only is None:
            yield (
                f"report.chart[{index}]",
                f'the unit of {y.name} varies by {y.per}. Choose one, such as only = "EUR"',
            )
        if chart.only is not None and (y is None or y.per is None):
            yield f"report.chart[{index}].only", f"the unit of {chart.y} does not vary. Remove only"


def numbers_add_up(contract: Contract) -> Iterator[Finding]:
    """Headlines, `y` and `sum_x` name columns that add up (see `adds_up`): not those by which rows are
    grouped. The job finds out which expressions and measures add up.

    See `glue_jobs.additivity` for the job's part.
    """
    for index, column in enumerate(contract.column):
        if column.adds_up is not None and not column.numeric:
            yield f"column[{index}].adds_up", f"{column.name} is not a number. Remove adds_up"
        if column.adds_up and _is_grouped_by(column, contract):
            yield (
                f"column[{index}].adds_up",
                f"{column.name} {_GROUPED}, so it does not add up. Remove adds_up",
            )
    reasons = {
        column.name: explain_not_added(column, contract) for column in contract.columns if column.numeric
    }
    for index, name in enumerate(contract.report.headline):
        if why := reasons.get(name):
            yield (
                f"report.headline[{index}]",
                f"{name} does not add up: {why}. Name another column, or remove it",
            )
    for index, chart in enumerate(contract.report.chart):
        if why := reasons.get(chart.y):
            yield (
                f"report.chart[{index}].y",
                f"{chart.y} does not add up: {why}. Name another column, or remove it",
            )


#: Units of shares, rates and temperatures.
_RATES = re.compile(r"(%|percent|per cent|share|ratio|rate|°.*|[^\s/]+ ?/ ?[^/]+|.+ per .+)", re.IGNORECASE)
_GROUPED = "is a column by which rows are grouped"


def explain_not_added(column: Column, contract: Contract) -> str | None:
    """Return why numbers of a column can't be added up by what the contract says about it, or None if it
    doesn't say so.
    """
    if column.adds_up is False:
        return "the contract says so (adds_up = false)"
    if _is_grouped_by(column, contract):
        return f"it {_GROUPED}"
    if column.adds_up or column.measure:
        return None
    if column.personal is not None and column.personal.treatment == "generalise":
        return "its values are generalised. If they may be added, write adds_up = true"
    if column.unit is not None and _RATES.fullmatch(column.unit.strip()):
        return f"its unit is {column.unit[:40]}. If its values may be added, write adds_up = true"
    return None


def _is_grouped_by(column: Column, contract: Contract) -> bool:
    return contract.aggregate is not None and column.measure is None


_MIXED = (
    '{} may add up several currencies. Name the column that holds the currency by per = "…", or give a '
    "unit such as EUR"
)


def _may_mix(column: Column, contract: Contract) -> bool:
    """Return whether the contract suggests that amounts are in several currencies, but doesn't name a column
    for the currency.
    """
    if column.per is not None:
        return False
    if column.unit is None:
        return decimal_type(column.type) is not None and any(
            "currency" in other_column.name for other_column in contract.columns
        )
    return re.search(r"\bcurrenc(y|ies)\b", column.unit, re.IGNORECASE) is not None


def order_is_given(contract: Contract) -> Iterator[Finding]:
    """`delivery.order_by` names at least one column."""
    if not contract.delivery.order_by:
        yield "delivery.order_by", "name at least one column, so that the same rows always give the same file"


def window_matches_deduplication(contract: Contract) -> Iterator[Finding]:
    """`filter_stage = "after_deduplication"` needs `[deduplicate]`, and `[deduplicate]` a `key`."""
    if contract.window.filter_stage == "after_deduplication" and contract.deduplicate is None:
        yield (
            "window.filter_stage",
            "there is no [deduplicate] section, so the window can't come after it. Remove filter_stage",
        )
    if contract.deduplicate is not None and not contract.deduplicate.key:
        yield "deduplicate.key", "name at least one field"


def lines_need_an_array(contract: Contract) -> Iterator[Finding]:
    """`on = "lines"` needs `[explode]`."""
    if contract.explode is None:
        for index, filter_ in enumerate(contract.filter):
            if filter_.on == "lines":
                yield (
                    f"filter[{index}].on",
                    "there is no [explode] section, so there are no lines. Use events",
                )


RULES: tuple[Rule[Contract], ...] = (
    columns_are_named_once,
    columns_have_one_origin,
    decimals_fit,
    allowed_values_fit,
    null_text_is_unambiguous,
    formats_are_possible,
    attached_files_have_nothing_personal,
    personal_is_complete,
    scanned_kinds_are_known,
    aggregate_is_complete,
    reasons_are_needed,
    references_exist,
    units_are_not_mixed,
    numbers_add_up,
    order_is_given,
    checks_are_complete,
    checks_compare_headlines,
    unique_key_is_delivered,
    window_matches_deduplication,
    lines_need_an_array,
)
