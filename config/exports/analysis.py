"""What Spark finds in the expressions and types of a contract.

The job analyses them with `glue_jobs.analyse`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, TypeVar

import attrs

from config.exports.contract import Column, Contract, Filter, Source, WindowRule
from config.exports.file_model import Delivery

T = TypeVar("T")


_MISSING: Final = object()
_NEUTRAL_FILTER: Final = Filter(where="true", reason="")
#: What an analysis doesn't look at.
_NEUTRAL: Final = Contract(
    name="",
    version=1,
    title="",
    description="",
    owner="",
    grain="",
    source=Source(topic="", event_time=""),
    window=WindowRule(every="day", zone="UTC", first=date(2000, 1, 1)),
    column=[],
    delivery=Delivery(order_by=[]),
)


@attrs.frozen
class AnalysisFinding:
    """`key` is the path in the contract's file, `label` its name in the job's messages, `code` the job's
    error code.
    """

    key: str
    label: str
    message: str
    code: str


@attrs.frozen
class Analysis:
    """The findings, and what the expressions of rows and groups use.

    `reads` has the source fields whose values an expression uses, by the expression's key: `customer.region`,
    `lines[].price`. `counts` has the keys of measures that only count rows.
    """

    findings: list[AnalysisFinding]
    reads: dict[str, list[str]]
    counts: list[str]

    def document(self) -> dict[str, Any]:
        """Return the analysis in a form that JSON can hold."""
        return attrs.asdict(self)

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Analysis:
        findings = [AnalysisFinding(**finding) for finding in document["findings"]]
        return cls(findings, document["reads"], document["counts"])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that begins with a full stop and names the most similar of the known names, or an
    empty text.
    """
    close = difflib.get_close_matches(name, known, n=1)
    return f". Did you mean {close[0]}?" if close else ""


def analysable(contract: Contract) -> Contract:
    """Return the contract with neutral parts in the place of those that could not be read, which are mistakes
    already.

    Checks are left out if a column could not be read, because they may need it.
    """
    columns = [_replace_unreadable_column(column, index) for index, column in enumerate(contract.column)]
    are_whole = all(map(_is_whole, contract.column))
    filters = [rule if _is_whole(rule) else _NEUTRAL_FILTER for rule in getattr(contract, "filter", [])]
    checks = [check for check in getattr(contract, "check", []) if are_whole and _is_whole(check)]
    return attrs.evolve(
        _NEUTRAL,
        source=attrs.evolve(_NEUTRAL.source, topic=getattr(getattr(contract, "source", None), "topic", "")),
        filter=filters,
        column=columns,
        explode=_drop_unless_whole(getattr(contract, "explode", None)),
        deduplicate=_drop_unless_whole(getattr(contract, "deduplicate", None)),
        aggregate=_drop_unless_whole(getattr(contract, "aggregate", None)),
        report=_drop_unless_whole(getattr(contract, "report", None)) or _NEUTRAL.report,
        check=checks,
    )


def _replace_unreadable_column(column: Column, index: int) -> Column:
    if _is_whole(column):
        return column
    name = getattr(column, "name", f"column_{index}")
    return Column(name=name, type="text", title="", description="", expression="''")


def _drop_unless_whole(part: T | None) -> T | None:
    return part if part is not None and _is_whole(part) else None


def _is_whole(part: Any) -> bool:
    """Return whether all of the part could be read. `toml_model` leaves attributes out that could not."""
    values = [getattr(part, field.name, _MISSING) for field in attrs.fields(type(part))]
    return _MISSING not in values and all(_is_whole(value) for value in values if attrs.has(type(value)))
