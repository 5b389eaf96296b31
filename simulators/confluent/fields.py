"""Validates the JSON that clients send. Each error has the JSON pointer of the field."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from simulators.confluent.errors import bad_request, immutable, invalid

#: Any text of up to 4096 characters.
ANY_TEXT: Final = r"[\s\S]{0,4096}"
_TYPES: Final = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


class Fields:
    """A JSON object in the body of a call, and its JSON pointer.

    Getters raise ApiError for an invalid value.
    """

    def __init__(self, document: dict[str, Any], pointer: str = "") -> None:
        self._given = document
        self._pointer = pointer

    def __contains__(self, name: str) -> bool:
        return self._given.get(name) is not None

    def get_raw(self, name: str) -> Any:
        return self._given.get(name)

    def build_pointer(self, name: str) -> str:
        return f"{self._pointer}/{name}"

    def read_object(self, name: str, *, required: bool = True) -> Fields:
        return Fields(self._read_typed(name, "object", {}, required=required), self.build_pointer(name))

    def read_text(
        self, name: str, default: str = "", *, required: bool = False, pattern: str = ANY_TEXT
    ) -> str:
        value: str = self._read_typed(name, "string", default, required=required)
        if required and not value:
            raise invalid(self.build_pointer(name), f"{self.build_pointer(name)} must not be empty")
        if not re.fullmatch(pattern, value):
            raise invalid(self.build_pointer(name), f"{self.build_pointer(name)} does not match {pattern}")
        return value

    def read_choice(self, name: str, among: Collection[str], default: str | None = None) -> str:
        value: str = self._read_typed(name, "string", default or "", required=default is None)
        if value not in among:
            raise invalid(
                self.build_pointer(name),
                f"{self.build_pointer(name)} is {value!r}, and must be one of {', '.join(sorted(among))}",
            )
        return value

    def read_integer(
        self, name: str, default: int | None = None, *, among: Collection[int] | None = None
    ) -> int:
        value: int = self._read_typed(name, "integer", default, required=default is None)
        if among is not None and value not in among:
            raise invalid(
                self.build_pointer(name),
                f"{self.build_pointer(name)} is {value}, and must be one of {', '.join(map(str, among))}",
            )
        return value

    def read_flag(self, name: str, default: bool = False) -> bool:
        value: bool = self._read_typed(name, "boolean", default)
        return value

    def read_texts(self, name: str, default: list[str], among: Collection[str]) -> list[str]:
        value: list[str] = self._read_typed(name, "array", default)
        if not value or any(item not in among for item in value):
            raise invalid(
                self.build_pointer(name),
                f"{self.build_pointer(name)} takes one or more of {', '.join(sorted(among))}",
            )
        return value

    def read_reference(self, name: str) -> str:
        """Return the id of an object reference. As at the vendor, its other fields are ignored."""
        return self.read_object(name).read_text("id", required=True)

    def require_same(self, name: str, current: Any) -> None:
        """Raise ApiError if the body has another value than `current` for an immutable field."""
        if name in self and self._given[name] != current:
            raise immutable(self.build_pointer(name))

    def require_same_reference(self, name: str, current: str) -> None:
        if name in self and self.read_reference(name) != current:
            raise immutable(self.build_pointer(name))

    def _read_typed(self, name: str, kind: str, default: Any, *, required: bool = False) -> Any:
        value = self._given.get(name)
        if value is None:
            if required:
                raise invalid(self.build_pointer(name), f"{self.build_pointer(name)} is required")
            return default
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
            raise bad_request(f"{self.build_pointer(name)} must be of type {kind}", self.build_pointer(name))
        return value
