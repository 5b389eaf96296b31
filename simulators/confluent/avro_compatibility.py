"""Whether data written with one Avro schema can be read with another: Avro's rules of schema resolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def list_incompatibilities(reader: Any, writer: Any) -> list[str]:
    """Return the reasons, each with the path of the field.

    The list is empty if the reader can read the writer's data.
    """
    return list(
        _Comparison(_collect_named_types(reader), _collect_named_types(writer)).list_problems(
            reader, writer, ""
        )
    )


class _Comparison:
    def __init__(self, readers: dict[str, Any], writers: dict[str, Any]) -> None:
        self._readers = readers
        self._writers = writers
        self._seen: set[tuple[str, str]] = set()

    def list_problems(self, reader: Any, writer: Any, path: str) -> Iterator[str]:
        reader = _resolve_type(reader, self._readers)
        writer = _resolve_type(writer, self._writers)
        if isinstance(writer, list):
            for branch in writer:
                yield from self.list_problems(reader, branch, path)
        elif isinstance(reader, list):
            comparison = _Comparison(self._readers, self._writers)
            if all(any(comparison.list_problems(branch, writer, "")) for branch in reader):
                yield f"{path or '/'}: no branch of the reader's union takes {_get_kind(writer)}"
        elif _get_kind(reader) != _get_kind(writer):
            if _get_kind(reader) not in _PROMOTED.get(_get_kind(writer), ()):
                yield f"{path or '/'}: the type {_get_kind(writer)} can't be read as {_get_kind(reader)}"
        else:
            yield from self._compare_inside(reader, writer, path)

    def _compare_inside(self, reader: Any, writer: Any, path: str) -> Iterator[str]:
        match _get_kind(reader):
            case "record" | "error":
                yield from self._compare_record(reader, writer, path)
            case "array":
                yield from self.list_problems(reader["items"], writer["items"], f"{path}/[]")
            case "map":
                yield from self.list_problems(reader["values"], writer["values"], f"{path}/{{}}")
            case "fixed" if reader["size"] != writer["size"]:
                yield (
                    f"{path or '/'}: a fixed of {writer['size']} bytes can't be read as one of "
                    f"{reader['size']}"
                )
            case "enum":
                missing_symbols = set(writer["symbols"]) - set(reader["symbols"])
                if missing_symbols and "default" not in reader:
                    yield f"{path or '/'}: the reader's enum lacks {', '.join(sorted(missing_symbols))}"

    def _compare_record(self, reader: Any, writer: Any, path: str) -> Iterator[str]:
        pair = (str(reader["name"]), str(writer["name"]))
        if pair in self._seen:
            return
        self._seen.add(pair)
        writer_fields = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *field.get("aliases", [])]
            match = next((writer_fields[name] for name in names if name in writer_fields), None)
            field_path = f"{path}/{field['name']}"
            if match is not None:
                yield from self.list_problems(field["type"], match["type"], field_path)
            elif "default" not in field:
                yield f"{field_path}: the reader's field has no default, and the writer has no such field"


def _get_kind(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema["type"])


def _resolve_type(schema: Any, names: dict[str, Any]) -> Any:
    while isinstance(schema, dict) and not isinstance(schema["type"], str):
        schema = schema["type"]
    if isinstance(schema, str) and schema not in _PRIMITIVES:
        return names.get(schema, names.get(schema.rpartition(".")[2], schema))
    return schema


def _collect_named_types(schema: Any) -> dict[str, Any]:
    """Return the named types of a schema, by name with and without namespace."""
    types_by_name: dict[str, Any] = {}
    if isinstance(schema, list):
        for branch in schema:
            types_by_name |= _collect_named_types(branch)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "error", "enum", "fixed"):
            types_by_name |= {schema["name"]: schema, schema["name"].rpartition(".")[2]: schema}
        for inner in (
            schema["type"],
            schema.get("items"),
            schema.get("values"),
            *[field["type"] for field in schema.get("fields", [])],
        ):
            types_by_name |= _collect_named_types(inner) if isinstance(inner, dict | list) else {}
    return types_by_name
