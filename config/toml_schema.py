"""JSON Schema of a TOML model, for editors that check a file while it is written."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs

from config.toml_model import find_default, is_map, is_optional, list_settings, read_setting_name


def build_json_schema(model: type, *, title: str, description: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a model of `setting` fields."""
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
    }
    return head | _build_class_schema(model)


def _build_class_schema(model: type) -> dict[str, Any]:
    hints = get_type_hints(model)
    fields = list_settings(model)
    properties = {read_setting_name(field): _build_field_schema(field, hints[field.name]) for field in fields}
    required = [read_setting_name(field) for field in fields if field.default is attrs.NOTHING]
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": required}


def _build_field_schema(field: attrs.Attribute[Any], kind: Any) -> dict[str, Any]:
    schema = _build_type_schema(kind)
    target = schema.get("items") or schema.get("additionalProperties") or schema
    if form := field.metadata["form"]:
        target["pattern"] = f"^(?:{form.pattern})$"
    for bound in ("minimum", "maximum"):
        if field.metadata[bound] is not None:
            target[bound] = field.metadata[bound]
    if field.default is not attrs.NOTHING and isinstance(default := find_default(field), str | int | date):
        schema["default"] = default.isoformat() if isinstance(default, date) else default
    return {"description": field.metadata["doc"]} | schema


def _build_type_schema(kind: Any) -> dict[str, Any]:
    if is_optional(kind):
        return _build_type_schema(next(argument for argument in get_args(kind) if argument is not type(None)))
    if get_origin(kind) is list:
        return {"type": "array", "items": _build_type_schema(get_args(kind)[0])}
    if is_map(kind):
        return {"type": "object", "additionalProperties": _build_type_schema(get_args(kind)[1])}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if attrs.has(kind):
        return _build_class_schema(kind)
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return {"type": names[kind]} if kind in names else {"type": "string", "format": "date"}
