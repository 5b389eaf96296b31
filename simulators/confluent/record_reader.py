"""Decodes the messages of a topic."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import fastavro

from simulators.confluent.kafka_log import Message, unframe_value
from simulators.confluent.schemas import Schemas
from simulators.tableflow.kafka import Record


class BadRecord(NamedTuple):
    """A message that can't become a row."""

    message: Message
    problem: str


class Reader:
    """Reads each message with the schema that it was written with, and resolves it to `schema`."""

    def __init__(self, schemas: Schemas, schema: dict[str, Any], *, upserts: bool) -> None:
        self._schemas = schemas
        self._upserts = upserts
        self._reader = fastavro.parse_schema(schema)
        self._writers: dict[int, Any] = {}

    def read(self, topic: str, messages: Iterable[Message]) -> Iterator[Record | BadRecord]:
        for message in messages:
            try:
                value = self._read_value(message)
            except (ValueError, LookupError, EOFError, TypeError) as error:
                yield BadRecord(message, str(error) or type(error).__name__)
            else:
                yield Record(
                    topic,
                    message.partition,
                    message.offset,
                    message.timestamp,
                    message.key,
                    value,
                    message.headers,
                )

    def _read_value(self, message: Message) -> dict[str, Any] | None:
        """Return the row; None for a tombstone.

        Raises ValueError, among others, for a message that can't become a row.
        """
        if message.value is None:
            if not self._upserts:
                raise ValueError("a tombstone, which an append table can't hold")
            return None
        if self._upserts and message.key is None:
            raise ValueError("no key, which an upsert table needs")
        frame = unframe_value(message.value)
        if frame is None:
            raise ValueError("Unknown data format. Magic number does not match")
        schema_id, encoded = frame
        if schema_id not in self._writers:
            self._writers[schema_id] = fastavro.parse_schema(json.loads(self._schemas.by_id[schema_id].text))
        value: Any = fastavro.schemaless_reader(io.BytesIO(encoded), self._writers[schema_id], self._reader)
        return dict(value)
