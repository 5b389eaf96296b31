"""The Datagen source: records of a quickstart or of the user's own Avro schema, written into a topic as time passes."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any, Final

import fastavro

from simulators.confluent.avro_random import Values
from simulators.confluent.kafka_log import KafkaTopic, framed

#: The vendor's default of max.interval, in milliseconds.
DEFAULT_INTERVAL: Final = 500
QUICKSTARTS: Final = {"STOCK_TRADES": (Path(__file__).with_name("stock_trades.avsc"), "symbol")}
#: After a long pause of the clock, no more than this many records are made up for it.
MOST_AT_ONCE: Final = 20_000


def without_steering(schema: Any) -> Any:
    """The schema as the connector registers it."""
    if isinstance(schema, dict):
        return {name: without_steering(value) for name, value in schema.items() if name != "arg.properties"}
    return [without_steering(each) for each in schema] if isinstance(schema, list) else schema


def named_schema(config: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The schema, with its steering, and the key's field. Raises KeyError and ValueError for what can't be one."""
    if quickstart := config.get("quickstart"):
        file, key = QUICKSTARTS[quickstart.upper()]
        return json.loads(file.read_text()), key
    schema = json.loads(config["schema.string"])
    fastavro.parse_schema(without_steering(schema))
    key = config.get("schema.keyfield", "")
    if key and key not in {each["name"] for each in schema["fields"]}:
        raise ValueError(f"schema.keyfield {key!r} is no field of the schema")
    return schema, key


class Generator:
    """`time` is that of the last record, in seconds since 1970 UTC."""

    def __init__(self, config: dict[str, str], schema_id: int, rng: random.Random, time: float) -> None:
        schema, self._key = named_schema(config)
        self._values, self._rng, self._schema_id, self.time = Values(schema, rng), rng, schema_id, time
        self._parsed = fastavro.parse_schema(without_steering(schema))
        self._interval = int(config.get("max.interval", DEFAULT_INTERVAL)) / 1000
        self._made = 0

    def fill(self, topic: KafkaTopic, until: float) -> None:
        """Write what was due between the last record and `until`."""
        earliest = until - MOST_AT_ONCE * self._interval / 2
        self.time = max(self.time, earliest)
        while (moment := self.time + self._rng.uniform(0.001, max(self._interval, 0.002))) <= until:
            self.time = moment
            self._write(topic, moment)

    def _write(self, topic: KafkaTopic, moment: float) -> None:
        value = self._values.next()
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, self._parsed, value)
        key = str(value[self._key]).encode() if self._key else None
        headers = (("task.generation", b"0"), ("task.id", b"0"), ("current.iteration", b"%d" % self._made))
        topic.append(int(moment * 1000), key, framed(self._schema_id, encoded.getvalue()), headers)
        self._made += 1
