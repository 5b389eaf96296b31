"""Tell the generator of events what the exports of a topic need: `arg.properties`, as in Datagen's schemas,
are added to the topic's Avro schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from config.exports.contract import Contract
from config.exports.windows import Window

_PROPERTIES: Final = "arg.properties"
_EPOCH: Final = date(1970, 1, 1)
_UNITS: Final = {"millis": 1000, "micros": 1_000_000}
#: What identifies an event or a person. No two events have the same, but for repeated ones.
_UNIQUE: Final[dict[str, dict[str, Any]]] = {
    "string": {"regex": "[a-z]{12}"},
    "int": {"iteration": {"start": 1000, "step": 1}},
    "long": {"iteration": {"start": 1000, "step": 1}},
}


def steer(schema: Mapping[str, Any], contracts: Sequence[Contract], window: Window) -> dict[str, Any]:
    """Return the schema with `arg.properties` for values that the contracts can use: event times inside the
    window, keys that differ, and values that columns allow.

    Those that the user has written stay, but for event times.
    """
    steered: dict[str, Any] = copy.deepcopy(dict(schema))
    types = Types(steered)
    for contract in contracts:
        for path in _list_ids(contract):
            for type_ in types.find(path, contract):
                if type_["type"] in _UNIQUE and "logicalType" not in type_:
                    type_.setdefault(_PROPERTIES, _UNIQUE[type_["type"]])
        for column in contract.columns:
            if column.allowed and column.field:
                for type_ in types.find(column.field, contract):
                    _allow(type_, column.allowed)
        for type_ in types.find(contract.source.event_time, contract):
            _set_times(type_, window, contract.window.zone)
    return steered


def _list_ids(contract: Contract) -> Iterator[str]:
    if contract.deduplicate:
        yield from contract.deduplicate.key
    if contract.aggregate and contract.aggregate.person_id:
        yield contract.aggregate.person_id


def _allow(type_: dict[str, Any], allowed: Sequence[str]) -> None:
    options: list[Any] = list(allowed)
    if type_["type"] == "enum":
        options = [symbol for symbol in type_["symbols"] if symbol in allowed]
    elif type_["type"] in ("int", "long"):
        options = [int(text) for text in allowed if text.removeprefix("-").isdecimal()]
    elif type_["type"] != "string":
        return
    if options:
        type_.setdefault(_PROPERTIES, {"options": options})


def _set_times(type_: dict[str, Any], window: Window, zone: str) -> None:
    logical = str(type_.get("logicalType", ""))
    if logical == "date":
        type_[_PROPERTIES] = {"range": _find_days(window, zone)}
        return
    per_second = _UNITS.get(logical.rpartition("-")[2])
    if per_second is None:
        return
    start, end = window.start, window.end
    if logical.startswith("local-"):
        start, end = (_read_clock(moment, zone) for moment in (start, end))
    bounds = {"min": int(start.timestamp()) * per_second, "max": int(end.timestamp()) * per_second}
    type_[_PROPERTIES] = {"range": bounds}


def _find_days(window: Window, zone: str) -> dict[str, int]:
    """Return the window's first day in the zone and the day after its last one, in days since 1970."""
    first = (_read_clock(window.start, zone).date() - _EPOCH).days
    end = (_read_clock(window.end, zone).date() - _EPOCH).days
    # A window of another zone may begin and end on the same day.
    return {"min": first, "max": max(end, first + 1)}


def _read_clock(moment: datetime, zone: str) -> datetime:
    """Return what clocks in the zone show, as if it were UTC."""
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)


class Types:
    """The types of a schema's fields, which it makes objects that can be changed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        self._root = self._open(schema)

    def find(self, path: str, contract: Contract) -> list[dict[str, Any]]:
        """Return the type of the field with this path in the contract; none if the topic has no such field,
        such as Kafka's metadata.
        """
        head, _, rest = path.partition(".")
        parts = path.split(".")
        if contract.explode and head == contract.explode.alias:
            parts = [*contract.explode.array.split("."), "[]", *filter(None, rest.split("."))]
        type_: dict[str, Any] | None = self._root
        for part in parts:
            type_ = self._step(type_, part) if type_ else None
        return [type_] if type_ else []

    def _step(self, type_: dict[str, Any], part: str) -> dict[str, Any] | None:
        if part == "[]":
            return self._choose(type_, "items") if type_["type"] == "array" else None
        for field in type_.get("fields", ()):
            if field["name"] == part:
                return self._choose(field, "type")
        return None

    def _choose(self, owner: dict[str, Any], key: str) -> dict[str, Any] | None:
        """Return the type, that of a union besides null, as an object."""
        branches = owner[key] if isinstance(owner[key], list) else [owner[key]]
        for index, branch in enumerate(branches):
            if branch in ("null", {"type": "null"}):
                continue
            opened = self._open(branch)
            if isinstance(branch, str) and branch not in self._named:
                if isinstance(owner[key], list):
                    owner[key][index] = opened
                else:
                    owner[key] = opened
            return opened
        return None

    def _open(self, type_: Any) -> dict[str, Any]:
        if isinstance(type_, str):
            return self._named.get(type_, {"type": type_})
        opened: dict[str, Any] = type_
        while isinstance(opened["type"], dict):
            opened = opened["type"]
        if "name" in opened:
            self._named[opened["name"]] = opened
        return opened
