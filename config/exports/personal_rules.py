"""Rules about personal data in a contract: treatments, kinds that the scan knows, and reasons.

They are rules like those of contract_rules.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from config.exports.contract import Column, Contract, Generalisation, Personal, Treatment
from config.forms import CARD, EMAIL, IBAN, PHONE

Finding = tuple[str, str]

#: Which keys of `personal` a treatment needs; all others must be absent.
KEYS_OF_TREATMENTS: dict[Treatment, set[str]] = {
    "keep": {"reason"},
    "drop": set(),
    "mask": {"visible"},
    "hash": {"kind"},
    "generalise": {"to"},
}
#: The kinds of values that the scan of the finished file knows.
SCANNED = (EMAIL, PHONE, IBAN, CARD)
_SIZED = {"prefix", "bucket"}
#: The type of a column that is generalised.
TYPES_AFTER: dict[Generalisation, str] = {
    "year": "integer",
    "month": "text",
    "prefix": "text",
    "bucket": "integer",
}


def personal_is_complete(contract: Contract) -> Iterator[Finding]:
    """`personal` has the keys that its treatment needs, no others, and the column's type is what the
    treatment leaves (see [Treatments of personal data](#treatments-of-personal-data)). The only treatment of
    a measure is `keep`.
    """
    for index, column in enumerate(contract.column):
        if column.personal:
            prefix = f"column[{index}].personal"
            yield from (
                (f"{prefix}{key}", message) for key, message in _check_personal(column.personal, column)
            )


def _check_personal(personal: Personal, column: Column) -> Iterator[Finding]:
    needed_keys = set(KEYS_OF_TREATMENTS[personal.treatment])
    if personal.to in _SIZED and personal.treatment == "generalise":
        needed_keys.add("size")
    for name in ("kind", "visible", "to", "size", "reason"):
        is_set = getattr(personal, name) is not None
        if is_set and name not in needed_keys:
            yield f".{name}", f"{personal.treatment} does not use {name}. Remove it"
        if not is_set and name in needed_keys:
            yield "", f"{personal.treatment} needs {name}"
    resulting_type = _find_type_after(personal)
    if resulting_type and column.type != resulting_type:
        yield (
            "",
            f"{personal.treatment} leaves {resulting_type}, but the column's type is {column.type}. Write "
            "type = "
            f'"{resulting_type}"',
        )
    if personal.may_contain and personal.treatment != "keep":
        yield ".may_contain", f"{personal.treatment} does not use may_contain. Remove it"
    if column.measure and personal.treatment != "keep":
        yield (
            "",
            "a measure is computed from many rows, and keep is its only treatment. Keep it with a reason, "
            "or remove personal",
        )


def _find_type_after(personal: Personal) -> str | None:
    if personal.treatment in ("mask", "hash"):
        return "text"
    if personal.treatment == "generalise" and personal.to is not None:
        return TYPES_AFTER[personal.to]
    return None


def scanned_kinds_are_known(contract: Contract) -> Iterator[Finding]:
    """Each `[[personal_pattern]]` has a name of its own, and `may_contain` names kinds that the scan
    knows.
    """
    counts = Counter(pattern.name for pattern in contract.personal_pattern)
    for index, pattern in enumerate(contract.personal_pattern):
        if pattern.name in SCANNED:
            yield (
                f"personal_pattern[{index}].name",
                f"{pattern.name} is a kind of the scan itself. Give the pattern another name",
            )
        if counts[pattern.name] > 1:
            yield (
                f"personal_pattern[{index}].name",
                f"{pattern.name} appears {counts[pattern.name]} times. Give each its own name",
            )
    scanned_kinds = (*SCANNED, *counts)
    for index, column in enumerate(contract.column):
        for number, kind in enumerate(column.personal.may_contain if column.personal else []):
            if kind not in scanned_kinds:
                key = f"column[{index}].personal.may_contain[{number}]"
                yield key, f"{kind} is not a kind that the scan knows. Known are: {', '.join(scanned_kinds)}"


def reasons_are_needed(contract: Contract) -> Iterator[Finding]:
    """Only a measure in an aggregate with `person_id` has `shows_one_person_because`."""
    counts_people = contract.aggregate is not None and contract.aggregate.person_id is not None
    for index, column in enumerate(contract.column):
        if column.shows_one_person_because is not None and not (column.measure and counts_people):
            key = f"column[{index}].shows_one_person_because"
            yield key, "only a measure in an aggregate with person_id needs this reason. Remove it"
