"""Rules for the checks of a contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from config.exports.contract import Contract

Finding = tuple[str, str]

#: What a check with `compare` compares instead of a column's total.
ROWS: Final = "rows"


def checks_are_complete(contract: Contract) -> Iterator[Finding]:
    """Each check has an id of its own, and exactly one of `each_row`, `overall` and `compare`."""
    counts = Counter(check.id for check in contract.check)
    for index, check in enumerate(contract.check):
        if counts[check.id] > 1:
            yield (
                f"check[{index}].id",
                f"{check.id} appears {counts[check.id]} times. Give each check its own id",
            )
        conditions = (check.each_row, check.overall, check.compare)
        if sum(condition is not None for condition in conditions) != 1:
            yield f"check[{index}]", "needs exactly one of each_row, overall and compare"


def checks_compare_headlines(contract: Contract) -> Iterator[Finding]:
    """`compare` is `rows` or a column of `report.headline`, whose totals manifests have, and needs
    `at_most_percent`. Only it has `with_windows` and `average`. Of `each_row`, at most 100 percent may fail.
    """
    for index, check in enumerate(contract.check):
        key = f"check[{index}]"
        if check.compare is None:
            for name in ("with_windows", "average"):
                if getattr(check, name) is not None:
                    yield f"{key}.{name}", "only a check with compare has it. Remove it"
            if check.overall is not None and check.at_most_percent is not None:
                yield f"{key}.at_most_percent", "a check with overall is about the whole file. Remove it"
            if check.each_row is not None and (check.at_most_percent or 0) > 100:
                yield f"{key}.at_most_percent", "not more than 100 percent of the rows can fail. Correct it"
            continue
        if check.at_most_percent is None:
            yield f"{key}.at_most_percent", "missing. By how many percent may the number differ?"
        if check.compare != ROWS and check.compare not in contract.report.headline:
            yield (
                f"{key}.compare",
                f"{check.compare} is neither rows nor a column of report.headline, whose totals manifests "
                "have. Add it there, or name another one",
            )


def unique_key_is_delivered(contract: Contract) -> Iterator[Finding]:
    """`unique` names delivered columns, each once."""
    delivered = {column.name for column in contract.columns}
    for index, name in enumerate(contract.unique):
        if name not in delivered:
            yield f"unique[{index}]", f"{name} is not a delivered column"
        elif name in contract.unique[:index]:
            yield f"unique[{index}]", f"{name} is named twice. Remove one of them"
