"""Properties of a statement, held against those that a kind has."""

from __future__ import annotations

from collections.abc import Iterator

from simulators.snowflake.errors import invalid_property, invalid_value, missing_options, not_simulated
from simulators.snowflake.grammar import Value
from simulators.snowflake.tokens import Sort


class Options:
    """`known` are understood; `others` are Snowflake's too, and not simulated. Anything else isn't Snowflake's."""

    def __init__(self, kind: str, given: dict[str, Value], known: str, others: str = "") -> None:
        self._kind, self._given = kind, given
        for name in given:
            if name in known.split():
                continue
            raise not_simulated(f"{name} of {kind}") if name in others.split() else invalid_property(name, kind)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def require(self, *names: str) -> None:
        if absent := [name for name in names if name not in self._given]:
            raise missing_options(", ".join(absent))

    def string(self, name: str, default: str = "") -> str:
        """A string in quotes, and nothing else."""
        if name not in self:
            return default
        value = self._given[name]
        if not value.single or value.token.sort is not Sort.STRING:
            raise invalid_value(value.text, name)
        return value.text

    def text(self, name: str, default: str = "") -> str:
        """A string, or a name: where Snowflake takes both."""
        if name not in self:
            return default
        value = self._given[name]
        if not value.single or value.token.sort not in (Sort.STRING, Sort.WORD, Sort.QUOTED):
            raise invalid_value(value.text, name)
        return value.text

    def choice(self, name: str, choices: str, default: str = "") -> str:
        """One of the words, in upper case, with or without quotes."""
        text = self.text(name, default).upper()
        if name in self and text not in choices.split():
            raise invalid_value(self._given[name].text, name)
        return text

    def boolean(self, name: str, default: bool) -> bool:
        return self.choice(name, "TRUE FALSE", str(default).upper()) == "TRUE"

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        if name not in self:
            return default
        text = self._given[name].text
        if not text.lstrip("-").isdigit() or not low <= int(text) <= high:
            raise invalid_value(text, name)
        return int(text)

    def strings(self, name: str) -> tuple[str, ...]:
        """A list in brackets, of strings."""
        if name not in self:
            return ()
        value = self._given[name]
        if value.items is None or any(each.token.sort is not Sort.STRING for each in value.items):
            raise invalid_value(value.text, name)
        return tuple(each.text for each in value.items)

    def inside(self, name: str, known: str, others: str = "") -> Options:
        """Properties in brackets."""
        value = self._given.get(name)
        if value is None:
            return Options(name, {}, known, others)
        return Options(name, self._bracketed(name, value), known, others)

    def each_inside(self, name: str, known: str, others: str = "") -> list[Options]:
        """A list of properties in brackets."""
        value = self._given[name]
        if value.items is None:
            raise invalid_value(value.text, name)
        return [Options(name, self._bracketed(name, each), known, others) for each in value.items]

    def _bracketed(self, name: str, value: Value) -> dict[str, Value]:
        if value.options is None:
            raise invalid_value(value.text, name)
        return value.options
