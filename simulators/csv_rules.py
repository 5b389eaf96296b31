"""The rules of a CSV mapping: each takes a field's value from the rows of one event. csv_mapping.py explains them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from simulators.avro_json import decoder, shown
from simulators.avro_schema import Array, Map, Node, Scalar, Struct, Union

_SOURCES: Final[dict[str, set[str]]] = {
    "column": {"format", "zone", "translate", "cut_suffix"},
    "value": set(),
    "hash": set(),
    "when": {"otherwise"},
    "row_number": set(),
}
_TESTS: Final = ("equals", "starts_with", "below")
_WHOLE: Final = re.compile(r"[+-]?\d{1,30}")


class UnreadableError(Exception):
    """A text that a rule can't turn into a value."""


class Row(NamedTuple):
    """`line` is the one in the file where the row begins."""

    line: int
    cells: Mapping[str, str]


#: Takes the rows of one event, and the number of the row that is meant.
Rule = Callable[[Sequence[Row], int], Any]
#: Told what is wrong with a rule.
Refuse = Callable[[str], None]


def build(table: Mapping[str, Any], node: Node, refuse: Refuse) -> Rule:
    """The rule that a table of the mapping file means, for a field of this type. What it returns after a refusal, no one uses."""
    sources = [name for name in _SOURCES if name in table]
    if isinstance(node, Struct | Array | Map | Union):
        refuse("is no plain value. Give a rule to each of its fields")
    elif len(sources) != 1:
        refuse(f"needs exactly one of {', '.join(_SOURCES)}, found {', '.join(table) or 'nothing'}")
    elif unknown := table.keys() - {sources[0]} - _SOURCES[sources[0]]:
        refuse(f"{', '.join(sorted(unknown))}: not known beside {sources[0]}")
    else:
        return _BUILDERS[sources[0]](table, node, refuse)
    return _nothing


def columns_of(table: Mapping[str, Any]) -> Iterator[str]:
    """The columns that a well-formed rule reads."""
    if "column" in table:
        yield table["column"]
    yield from table.get("hash", ())
    for condition in table.get("when", ()):
        yield condition["column"]


def _column(table: Mapping[str, Any], node: Node, refuse: Refuse) -> Rule:
    for name in ("column", "format", "zone", "cut_suffix"):
        if not isinstance(table.get(name, ""), str):
            refuse(f"{name} is a text, found {shown(table[name])}")
            return _nothing
    translate = table.get("translate")
    if translate is not None and not (isinstance(translate, dict) and all(isinstance(each, str) for each in translate.values())):
        refuse('translate is a table of texts, such as { "Deutschland" = "DE" }')
    return partial(_read_column, table, node, _zone(table.get("zone"), refuse))


def _zone(name: str | None, refuse: Refuse) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, KeyError):
        refuse(f"zone {shown(name)} is not in the time zone database. Use a name such as Europe/Berlin")
    return None


def _read_column(table: Mapping[str, Any], node: Node, zone: ZoneInfo | None, rows: Sequence[Row], number: int) -> Any:
    text = rows[number].cells[table["column"]].removesuffix(table.get("cut_suffix", ""))
    if not text and node.nullable:
        return None
    if "translate" in table:
        if text not in table["translate"]:
            raise UnreadableError(f"{shown(text)} is not among the texts that the mapping translates. Add it there")
        text = table["translate"][text]
    return _time(text, table["format"], zone) if "format" in table else _typed(text, node)


def _time(text: str, form: str, zone: ZoneInfo | None) -> str:
    """Where clocks are put back and show a time twice, the first of the two is meant."""
    try:
        found = datetime.strptime(text, form)
    except ValueError:
        raise UnreadableError(f"expected a time as in {form}, found {shown(text)}") from None
    return (found.replace(tzinfo=zone) if zone else found).isoformat()


def _typed(text: str, node: Node) -> Any:
    """What JSON would have; a text that is no such value stays one, and the type's own check tells."""
    if not isinstance(node, Scalar):
        return text
    if node.kind in ("int", "long") and _WHOLE.fullmatch(text):
        return int(text)
    if node.kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if node.kind in ("float", "double"):
        return _number(text) or text
    return text


def _value(table: Mapping[str, Any], node: Node, refuse: Refuse) -> Rule:
    return _constant(_checked(table["value"], node, refuse))


def _hash(table: Mapping[str, Any], _: Node, refuse: Refuse) -> Rule:
    names = table["hash"]
    if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
        refuse("hash is a list of columns")
        return _nothing
    return lambda rows, number: _digest(rows[number].cells[each] for each in names)


def _digest(texts: Iterator[str]) -> str:
    # The length goes in with each text, so that ("ab", "c") and ("a", "bc") differ.
    return sha256("".join(f"{len(each)}:{each}" for each in texts).encode()).hexdigest()[:32]


def _when(table: Mapping[str, Any], node: Node, refuse: Refuse) -> Rule:
    conditions = table["when"]
    if not isinstance(conditions, list) or not all(isinstance(each, dict) for each in conditions) or "otherwise" not in table:
        refuse("when is a list of conditions, and `otherwise` says what holds if none is met")
        return _nothing
    tests = [(_test(each, refuse), _checked(each.get("value"), node, refuse)) for each in conditions]
    otherwise = _checked(table["otherwise"], node, refuse)
    return lambda rows, _: next((value for test, value in tests if any(map(test, rows))), otherwise)


def _test(condition: Mapping[str, Any], refuse: Refuse) -> Callable[[Row], bool]:
    found = [name for name in _TESTS if name in condition]
    if len(found) != 1 or not isinstance(condition.get("column"), str):
        refuse(f"a condition names a column and one of {', '.join(_TESTS)}, found {', '.join(condition)}")
        return lambda _: False
    test, wanted = found[0], condition[found[0]]
    if not isinstance(wanted, int | Decimal if test == "below" else str):
        refuse(f"{test} takes a {'number' if test == 'below' else 'text'}, found {shown(wanted)}")
    return partial(_meets, condition["column"], test, wanted)


def _meets(column: str, test: str, wanted: Any, row: Row) -> bool:
    text = row.cells[column]
    if test == "below":
        number = _number(text)
        return number is not None and number < wanted
    return text == wanted if test == "equals" else text.startswith(wanted)


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _row_number(*_: Any) -> Rule:
    return lambda _, number: number + 1


def _checked(value: Any, node: Node, refuse: Refuse) -> Any:
    """A constant of the mapping file, which must fit the field's type."""
    if isinstance(value, datetime):
        value = value.isoformat()
    decoder(node)(value, "", lambda _, problem: refuse(problem))
    return value


def _constant(value: Any) -> Rule:
    return lambda rows, number: value


def _nothing(rows: Sequence[Row], number: int) -> Any:
    return None


_BUILDERS: Final[dict[str, Callable[[Mapping[str, Any], Node, Refuse], Rule]]] = {
    "column": _column,
    "value": _value,
    "hash": _hash,
    "when": _when,
    "row_number": _row_number,
}
