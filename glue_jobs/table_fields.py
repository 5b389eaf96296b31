"""The fields of an Iceberg schema, by their paths, with Kafka's metadata under the names that the job and
expressions use.

In a path, a dot precedes a field of a record, `[]` means the items of an array, `{}` the values of a map and
`{key}` its keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from config.exports.allowed_functions import KAFKA_FIELDS

#: The job's own names of the metadata that it reads with any contract. A contract can name no field that
#: begins with `$`.
OFFSET: Final = "$kafka_offset"
PARTITION: Final = "$kafka_partition"
TIMESTAMP: Final = "$kafka_timestamp"
REQUIRED: Final = (OFFSET, PARTITION, TIMESTAMP)

#: Tableflow's names of the metadata columns in its two naming schemes.
_SCHEMES: Final = (
    {"$$" + name.removeprefix("kafka_").replace("_", "-"): name for name in KAFKA_FIELDS},
    {name.replace("kafka_", "cflt_metadata_", 1): name for name in KAFKA_FIELDS},
)


@attrs.frozen
class Field:
    id: int
    path: str
    type: str


def metadata_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return the names in expressions of the columns with Kafka's metadata. A table has the names of one
    scheme.

    A topic may have fields with the names of the other one.
    """
    names = set(columns)
    scheme = next((scheme for scheme in _SCHEMES if names & scheme.keys()), {})
    return {column: name for column, name in scheme.items() if column in names}


def read_fields(schema: dict[str, Any]) -> Iterator[Field]:
    """Yield the fields of a table's schema. Those with Kafka's metadata have a path that begins with `$`."""
    metadata = metadata_columns(column["name"] for column in schema["fields"])
    for column in schema["fields"]:
        name = column["name"]
        if name in metadata:
            yield from _list_fields(column["id"], f"${metadata[name]}", column["type"])
        elif not name.startswith("$"):
            yield from _list_fields(column["id"], name, column["type"])


def named_in_expressions(fields: Iterable[Field]) -> dict[str, Field]:
    """Return the fields by path, with Kafka's metadata also as kafka_… where the topic has no field of this
    name.
    """
    by_path = {field.path: field for field in fields}
    aliases = {path.removeprefix("$"): field for path, field in by_path.items() if path.startswith("$")}
    top_level = {path for path in by_path if is_top_level(path)}
    return {path: field for path, field in aliases.items() if _read_head(path) not in top_level} | by_path


def is_top_level(path: str) -> bool:
    return re.search(r"[.\[{]", path) is None


def is_inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]", f"{outer}{{"))


def nameable(path: str) -> str:
    """Return the field that a contract can name: the path up to an array or a map."""
    return re.split(r"[\[{]", path)[0]


def _read_head(path: str) -> str:
    return re.split(r"[.\[{]", path)[0]


def _list_fields(id_: int, path: str, type_: Any) -> Iterator[Field]:
    kind = type_ if isinstance(type_, str) else type_["type"]
    yield Field(id_, path, kind)
    if kind == "struct":
        for field in type_["fields"]:
            yield from _list_fields(field["id"], f"{path}.{field['name']}", field["type"])
    elif kind == "list":
        yield from _list_fields(type_["element-id"], f"{path}[]", type_["element"])
    elif kind == "map":
        yield from _list_fields(type_["key-id"], f"{path}{{key}}", type_["key"])
        yield from _list_fields(type_["value-id"], f"{path}{{}}", type_["value"])
