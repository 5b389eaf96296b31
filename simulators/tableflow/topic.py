"""A topic: its name, its Avro schema, and which fields are the record's key and its event time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from simulators.tableflow.avro import Scalar, SchemaError, Struct, resolve

#: Properties of a topic's schema that name the field whose value is the record's key, and the event-time
#: field.
KEY_PROPERTY: Final = "lakeferry:key"
TIME_PROPERTY: Final = "lakeferry:time"

_KAFKA_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True)
class Topic:
    """`schema` is the Avro schema as given, `root` the resolved one. Raises SchemaError."""

    name: str
    schema: Mapping[str, Any]
    key_field: str | None = None
    time_field: str | None = None
    root: Struct = field(init=False)

    def __post_init__(self) -> None:
        if not _KAFKA_NAME.fullmatch(self.name) or self.name in (".", ".."):
            raise SchemaError(
                f"topic name {self.name!r}: Kafka takes 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'"
            )
        object.__setattr__(self, "root", resolve(self.schema))
        for role, name in ((KEY_PROPERTY, self.key_field), (TIME_PROPERTY, self.time_field)):
            if name is not None and name not in {field.name for field in self.root.fields}:
                raise SchemaError(
                    f"topic {self.name}: {role} names the field {name!r}, which the schema doesn't have"
                )
        if self.time_field:
            node = self.root[self.time_field]
            if not isinstance(node, Scalar) or node.kind not in ("timestamp-millis", "timestamp-micros"):
                raise SchemaError(
                    f"topic {self.name}: {TIME_PROPERTY} needs a timestamp field, "
                    f"{self.time_field!r} is not one"
                )


def load_topic(file: Path, name: str | None = None) -> Topic:
    """Return the topic of an .avsc file, by default with the file's name. Raises SchemaError."""
    try:
        schema = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SchemaError(f"{file} can't be read: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SchemaError(f"{file.name}: not a readable JSON file ({error})") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"{file.name}: a topic's schema is one record, found {type(schema).__name__}")
    try:
        return Topic(name or file.stem, schema, schema.get(KEY_PROPERTY), schema.get(TIME_PROPERTY))
    except SchemaError as refusal:
        raise SchemaError(f"{file.name}: {refusal}") from refusal
