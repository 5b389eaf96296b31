"""Checks that compare a number of the file with those of earlier published windows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Final

from config.exports.check_rules import ROWS
from config.exports.contract import Contract
from config.exports.file_model import Check
from glue_jobs.delivery.manifest import INCOMPLETE, CheckResult, Manifest
from glue_jobs.delivery.verify import FileStats

_WINDOWS: Final = 4
#: The most units in the text of what was found.
_SHOWN: Final = 3
_NOTHING: Final = Decimal(0)
_AVERAGES: Final[Mapping[str, Callable[[Sequence[Fraction]], Fraction]]] = {
    "median": statistics.median,
    "mean": statistics.mean,
}
#: Numbers by unit. The unit is None for rows and for columns whose unit doesn't vary.
Numbers = Mapping[str | None, Decimal]


def count_windows(contract: Contract) -> int:
    """Return how many earlier windows the contract's checks compare with."""
    return max((_count_windows_of(check) for check in contract.check if check.compare), default=0)


def compare(
    check: Check, contract: Contract, stats: FileStats, earlier: list[Manifest], *, is_complete: bool
) -> CheckResult:
    """Return the result of a check with `compare`. `earlier` are the manifests of published windows before
    this one, the latest first. It is unknown if they can't be compared with, or if this window may still
    get more rows.
    """
    wanted = _count_windows_of(check)
    windows = earlier[:wanted]
    numbers = [_read_earlier_numbers(check, contract, manifest) for manifest in windows]
    comparable = [of_window for of_window in numbers if of_window is not None]
    if not is_complete:
        return _describe_unknown(check, "this window is incomplete")
    if len(comparable) < wanted:
        only = "only " if comparable else ""
        return _describe_unknown(
            check, f"{only}{len(comparable)} of the {wanted} windows before it can be compared with"
        )
    average = check.average or "median"
    labels = [manifest["window"]["label"] for manifest in windows]
    of = f"the {average} of {labels[-1]} to {labels[0]}" if wanted > 1 else f"the number of {labels[0]}"
    now = _read_numbers(check, contract, stats)
    differences = []
    are_known = True
    for unit in sorted({*now, *chain.from_iterable(comparable)}, key=lambda unit: unit or ""):
        value = now.get(unit, _NOTHING)
        usual = _AVERAGES[average]([Fraction(of_window.get(unit, _NOTHING)) for of_window in comparable])
        if not usual:
            are_known = are_known and not value
        elif _is_far(value, usual, check):
            differences.append(_describe_difference(unit, value, usual, of))
    if differences:
        more = f" and {len(differences) - _SHOWN} more units" if len(differences) > _SHOWN else ""
        found = f"{'; '.join(differences[:_SHOWN])}{more}; the limit is {check.at_most_percent:g} %"
        return CheckResult(check.id, check.severity, check.message, 1, "file", found=found)
    if not are_known:
        return _describe_unknown(check, f"{of} is 0, of which there is no percentage")
    return CheckResult(check.id, check.severity, check.message, 0, "file")


def _is_far(value: Decimal, usual: Fraction, check: Check) -> bool:
    limit = Fraction(str(check.at_most_percent))
    return 100 * abs(Fraction(value) - usual) > limit * abs(usual)


def _count_windows_of(check: Check) -> int:
    return check.with_windows or _WINDOWS


def _describe_unknown(check: Check, why: str) -> CheckResult:
    return CheckResult(check.id, check.severity, check.message, 0, "file", unknown=why)


def _read_numbers(check: Check, contract: Contract, stats: FileStats) -> Numbers:
    if check.compare == ROWS:
        return {None: Decimal(stats.rows)}
    column = next(column for column in contract.columns if column.name == check.compare)
    return stats.units[column.name] if column.per else {None: stats.totals[column.name]["sum"] or Decimal(0)}


def _read_earlier_numbers(check: Check, contract: Contract, manifest: Manifest) -> Numbers | None:
    """Return the numbers of an earlier window, None if they are incomplete or may mean something else."""
    if manifest["status"] == INCOMPLETE or manifest["contract"]["version"] != contract.version:
        return None
    if check.compare == ROWS:
        return {None: Decimal(manifest["rows"]["rows"])}
    column = next(column for column in contract.columns if column.name == check.compare)
    entries = [entry for entry in manifest["headline"] if entry["column"] == column.name]
    if column.per:
        is_same = all(entry["per"] == column.per for entry in entries)
        # A window without rows has no unit, and no total.
        is_known = bool(entries) or not manifest["rows"]["rows"]
    else:
        is_same = all(entry["per"] is None and entry["unit"] == column.unit for entry in entries)
        is_known = bool(entries)
    if not (is_same and is_known):
        return None
    return {entry["unit"] if column.per else None: Decimal(entry["total"]) for entry in entries}


def _describe_difference(unit: str | None, value: Decimal, usual: Fraction, of: str) -> str:
    percent = 100 * (Fraction(value) - usual) / abs(usual)
    direction = "more" if percent > 0 else "less"
    number = f"{value:,f}" + (f" {unit}" if unit else "")
    return f"{number} is {_format_number(abs(percent))} % {direction} than {of}, {_format_number(usual)}"


def _format_number(number: Fraction) -> str:
    """Return the number with two decimal places at most."""
    rounded = Decimal(round(number * 100)) / 100
    return f"{rounded.normalize():,f}"
