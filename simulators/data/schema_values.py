"""Values of an Avro schema that an application could send: as the Datagen connector makes them from
`arg.properties`, and where the schema has none, of a kind that its logical types can have.

Values without `arg.properties` are few on purpose, so that groups have several events: small numbers, and
words in which nobody recognises a person, an address or a number.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from simulators.confluent.datagen import Make, Values

_WORDS: Final = ("amber", "birch", "cedar")
#: Of so many values of a field that may be null, one is.
_NULLS: Final = 20
_NOON_MS: Final = 43_200_000
#: 2026-01-01, in days since 1970.
_DAY: Final = 20_454
_MAX_LENGTH: Final = 3


class SchemaValues(Values):
    """Generates values of a schema. Those of a timestamp are milliseconds or microseconds, decimals bytes."""

    def __init__(self, schema: dict[str, Any], rng: random.Random) -> None:
        self._random = rng
        super().__init__(schema, rng)

    def _build_maker(self, schema: Any) -> Make:
        if not isinstance(schema, list):
            return super()._build_maker(schema)
        has_null = any(branch in ("null", {"type": "null"}) for branch in schema)
        others = [branch for branch in schema if branch not in ("null", {"type": "null"})]
        if not others:
            return lambda: None
        make = super()._build_maker(others[0])
        return partial(self._make_or_null, make) if has_null else make

    def _make_or_null(self, make: Make) -> Any:
        return None if self._random.randrange(_NULLS) == 0 else make()

    def _build_plain_maker(self, schema: dict[str, Any]) -> Make:
        makers: dict[str, Make] = {
            "decimal": partial(self._make_decimal, schema),
            "date": lambda: _DAY + self._random.randrange(300),
            "time-millis": lambda: self._random.randrange(_NOON_MS),
            "time-micros": lambda: self._random.randrange(_NOON_MS) * 1000,
            "timestamp-millis": partial(self._make_time, 1000),
            "timestamp-micros": partial(self._make_time, 1_000_000),
            "local-timestamp-millis": partial(self._make_time, 1000),
            "local-timestamp-micros": partial(self._make_time, 1_000_000),
            "uuid": self._make_uuid,
        }
        return makers.get(schema.get("logicalType", "")) or super()._build_plain_maker(schema)

    def _build_scalar_maker(self, schema: dict[str, Any]) -> Make:
        makers: dict[str, Callable[[], Any]] = {
            "int": lambda: self._random.randrange(1, 10),
            "long": lambda: self._random.randrange(1, 10),
            "float": lambda: self._random.randrange(1, 8) / 4,
            "double": lambda: self._random.randrange(1, 8) / 4,
            "string": lambda: self._random.choice(_WORDS),
        }
        return makers.get(schema["type"]) or super()._build_scalar_maker(schema)

    def _draw_length(self, schema: dict[str, Any]) -> int:
        if "length" in schema.get("arg.properties", {}):
            return super()._draw_length(schema)
        return self._random.randint(1, _MAX_LENGTH)

    def _make_time(self, per_second: int) -> int:
        return (_DAY * 86_400 + self._random.randrange(86_400)) * per_second

    def _make_uuid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:]))

    def _make_decimal(self, schema: dict[str, Any]) -> bytes:
        """Return a decimal from 0 to 1 in quarters, or a small whole number if it has too few digits."""
        scale = int(schema.get("scale", 0))
        unscaled = self._random.randrange(1, 10)
        if scale > 1:
            unscaled = self._random.randrange(5) * 25 * 10 ** (scale - 2)
            unscaled = min(unscaled, 10 ** int(schema["precision"]) - 1)
        size = schema["size"] if schema["type"] == "fixed" else (unscaled.bit_length() + 8) // 8
        return unscaled.to_bytes(size, "big", signed=True)
