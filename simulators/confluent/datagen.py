"""The Datagen source connector: it writes records of a quickstart or of the user's own Avro schema to a topic
as time passes.

As in the connector's own schemas, `arg.properties` controls the values of a type: options, range (min
included, max excluded), iteration (start, step, restart), regex and length. A type without `arg.properties`
gets random values.
"""

from __future__ import annotations

import io
import json
import random
import re._parser as patterns  # type: ignore[import-not-found]
import string
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import fastavro

from simulators.confluent.kafka_log import KafkaTopic, frame_value

#: The vendor's default of max.interval, in milliseconds.
DEFAULT_INTERVAL: Final = 500
QUICKSTARTS: Final = {"STOCK_TRADES": (Path(__file__).with_name("stock_trades.avsc"), "symbol")}
#: The approximate upper bound of the records that are produced after the clock jumps ahead.
MOST_AT_ONCE: Final = 20_000
_LETTERS: Final = string.ascii_letters + string.digits
_LONG: Final = 1 << 31
Make = Callable[[], Any]


def remove_arg_properties(schema: Any) -> Any:
    """Return the schema as the connector registers it: without `arg.properties`."""
    if isinstance(schema, dict):
        return {
            name: remove_arg_properties(value) for name, value in schema.items() if name != "arg.properties"
        }
    if isinstance(schema, list):
        return [remove_arg_properties(branch) for branch in schema]
    return schema


def read_named_schema(config: dict[str, str]) -> tuple[dict[str, Any], str]:
    """Return the schema with its `arg.properties`, and the name of the key field, which may be empty.

    Raises KeyError or ValueError, among others, for an invalid schema.
    """
    if quickstart := config.get("quickstart"):
        file, key = QUICKSTARTS[quickstart.upper()]
        return json.loads(file.read_text()), key
    schema = json.loads(config["schema.string"])
    fastavro.parse_schema(remove_arg_properties(schema))
    key = config.get("schema.keyfield", "")
    if key and key not in {field["name"] for field in schema["fields"]}:
        raise ValueError(f"schema.keyfield {key!r} is not a field of the schema")
    return schema, key


class Generator:
    """`time` is the timestamp of the last record, in seconds since 1970 UTC."""

    def __init__(self, config: dict[str, str], schema_id: int, rng: random.Random, time: float) -> None:
        schema, self._key = read_named_schema(config)
        self._values = Values(schema, rng)
        self._rng = rng
        self._schema_id = schema_id
        self.time = time
        self._parsed = fastavro.parse_schema(remove_arg_properties(schema))
        self._interval = int(config.get("max.interval", DEFAULT_INTERVAL)) / 1000
        self._count = 0

    def fill(self, topic: KafkaTopic, end: float) -> None:
        """Write the records that are due between the last record and `end`, in seconds since 1970 UTC."""
        earliest = end - MOST_AT_ONCE * self._interval / 2
        self.time = max(self.time, earliest)
        while (moment := self.time + self._rng.uniform(0.001, max(self._interval, 0.002))) <= end:
            self.time = moment
            self._write(topic, moment)

    def _write(self, topic: KafkaTopic, moment: float) -> None:
        value = self._values.next()
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, self._parsed, value)
        key = str(value[self._key]).encode() if self._key else None
        headers = (("task.generation", b"0"), ("task.id", b"0"), ("current.iteration", b"%d" % self._count))
        topic.append(int(moment * 1000), key, frame_value(self._schema_id, encoded.getvalue()), headers)
        self._count += 1


class Values:
    """Generates values of a schema: each call of `next()` returns another one."""

    def __init__(self, schema: dict[str, Any], rng: random.Random) -> None:
        self._rng = rng
        self._named: dict[str, Any] = {}
        self.next = self._build_maker(schema)

    def _build_maker(self, schema: Any) -> Make:
        if isinstance(schema, list):
            return partial(self._make_one_of, [self._build_maker(branch) for branch in schema])
        if isinstance(schema, str):
            return self._build_maker(self._named.get(schema, {"type": schema}))
        if not isinstance(schema["type"], str):
            return self._build_maker(schema["type"])
        if "name" in schema:
            self._named[schema["name"]] = schema
        controlled_maker = self._build_controlled_maker(schema.get("arg.properties", {}), schema)
        return controlled_maker or self._build_plain_maker(schema)

    def _make_one_of(self, makers: list[Make]) -> Any:
        return self._rng.choice(makers)()

    def _build_controlled_maker(self, properties: dict[str, Any], schema: dict[str, Any]) -> Make | None:
        kind = schema["type"]
        if options := properties.get("options"):
            return lambda: self._rng.choice(options)
        if iteration := properties.get("iteration"):
            return _make_iterator(iteration)
        if regex := properties.get("regex"):
            parsed = patterns.parse(regex)
            return lambda: self._draw_matching_text(parsed)
        if (bounds := properties.get("range")) and kind in ("int", "long"):
            return lambda: self._rng.randrange(bounds.get("min", 0), bounds.get("max", _LONG))
        if bounds:
            return lambda: self._rng.uniform(bounds.get("min", 0.0), bounds.get("max", 1.0))
        return None

    def _build_plain_maker(self, schema: dict[str, Any]) -> Make:
        match schema["type"]:
            case "record":
                fields = [(field["name"], self._build_maker(field["type"])) for field in schema["fields"]]
                return lambda: {name: make() for name, make in fields}
            case "array":
                make = self._build_maker(schema["items"])
                return lambda: [make() for _ in range(self._draw_length(schema))]
            case "map":
                value = self._build_maker(schema["values"])
                return lambda: {self._draw_word(8): value() for _ in range(self._draw_length(schema))}
            case "enum":
                return lambda: self._rng.choice(schema["symbols"])
            case "fixed":
                return lambda: self._rng.randbytes(schema["size"])
        return self._build_scalar_maker(schema)

    def _build_scalar_maker(self, schema: dict[str, Any]) -> Make:
        makers: dict[str, Make] = {
            "null": lambda: None,
            "boolean": lambda: self._rng.random() < 0.5,
            "int": lambda: self._rng.randrange(_LONG),
            "long": lambda: self._rng.randrange(_LONG),
            "float": self._rng.random,
            "double": self._rng.random,
            "bytes": lambda: self._rng.randbytes(8),
            "string": lambda: self._draw_word(self._draw_length(schema)),
        }
        return makers[schema["type"]]

    def _draw_length(self, schema: dict[str, Any]) -> int:
        length = schema.get("arg.properties", {}).get("length", {"min": 1, "max": 6})
        return length if isinstance(length, int) else self._rng.randrange(length["min"], length["max"])

    def _draw_word(self, length: int) -> str:
        return "".join(self._rng.choices(_LETTERS, k=length))

    def _draw_matching_text(self, pattern: Any) -> str:
        return "".join(self._draw_part(str(operation), argument) for operation, argument in pattern)

    def _draw_part(self, operation: str, argument: Any) -> str:
        """Return text that matches one operation of Python's own regular-expression parser."""
        choices: dict[str, Callable[[], str]] = {
            "LITERAL": lambda: chr(argument),
            "IN": lambda: self._draw_matching_text([self._rng.choice(argument)]),
            "RANGE": lambda: chr(self._rng.randint(*argument)),
            "MAX_REPEAT": lambda: self._draw_repeated(*argument),
            "MIN_REPEAT": lambda: self._draw_repeated(*argument),
            "SUBPATTERN": lambda: self._draw_matching_text(argument[-1]),
            "BRANCH": lambda: self._draw_matching_text(self._rng.choice(argument[1])),
            "CATEGORY": lambda: self._rng.choice(string.digits),
        }
        return choices.get(operation, partial(self._draw_word, 1))()

    def _draw_repeated(self, least: int, most: int, inner: Any) -> str:
        count = self._rng.randint(least, min(most, least + 8))
        return "".join(self._draw_matching_text(inner) for _ in range(count))


def _make_iterator(iteration: dict[str, Any]) -> Make:
    state = {"value": iteration.get("start", 0)}

    def make() -> Any:
        value = state["value"]
        state["value"] = value + iteration.get("step", 1)
        if "restart" in iteration and state["value"] >= iteration["restart"]:
            state["value"] = iteration.get("start", 0)
        return value

    return make
