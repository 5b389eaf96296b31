"""The JSON Schema of contracts, which editors use, finds the same mistakes as the model, as far as a schema
can.
"""

from __future__ import annotations

import copy
import tomllib
from datetime import date, datetime

import jsonschema
import pytest

from config.exports import contracts
from config.exports.contract import Contract
from config.project import PROJECT
from config.toml_model import BadFile
from config.toml_schema import build_json_schema
from tests.support import samples, shipped

SCHEMA = build_json_schema(Contract, title="An export", description="What an export is.")
BASE = tomllib.loads(samples.TRADES)


def as_json(value):
    """Return a document as an editor's TOML plug-in reads it: dates become text."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime) else value


def as_toml(value) -> str:
    """Return a value in TOML's syntax, with inline tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else repr(value)


def keys_from_schema(document: dict) -> set[str]:
    """Return the keys of the schema's errors. A missing or unknown key counts as its table's."""
    validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    return {_path(error.absolute_path) for error in validator.iter_errors(as_json(document))}


def keys_from_model(document: dict) -> set[str]:
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in document.items())
    try:
        contracts.parse(text, name="sample.toml")
    except BadFile as bad:
        return {problem.key for problem in bad.problems}
    return set()


def _path(parts) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def changed(path: str, value) -> dict:
    document = copy.deepcopy(BASE)
    *way, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    node = document
    for part in way:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return document


def test_the_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert (SCHEMA["title"], SCHEMA["$schema"]) == (
        "An export",
        "https://json-schema.org/draft/2020-12/schema",
    )


@pytest.mark.parametrize("name", [*shipped.EXPORTS, *shipped.FLINK_EXPORTS])
def test_shipped_contracts_are_valid_by_the_schema(name):
    text = (PROJECT / "exports" / f"{name}.toml").read_text(encoding="utf-8")
    assert keys_from_schema(tomllib.loads(text)) == set()


def test_the_sample_is_valid_by_schema_and_model():
    assert keys_from_schema(BASE) == keys_from_model(BASE) == set()


@pytest.mark.parametrize(
    ("path", "value", "expected_key"),
    [
        ("name", "Trades", "name"),
        ("name", "x" * 64, "name"),
        ("version", 0, "version"),
        ("version", "1", "version"),
        ("version", True, "version"),
        ("title", 5, "title"),
        ("source.topic", "no spaces", "source.topic"),
        ("source.event_time", "a..b", "source.event_time"),
        ("source.replaced_fields", ["a", "1b"], "source.replaced_fields"),
        ("source.replaced_fields", "a", "source.replaced_fields"),
        ("window.every", "week", "window.every"),
        ("window.from", "tomorrow", "window.from"),
        ("window.restate_for_days", 367, "window.restate_for_days"),
        ("window", [], "window"),
        ("column", {}, "column"),
        ("column.0.type", "decimal(3)", "column[0].type"),
        ("column.0.nullable", "no", "column[0].nullable"),
        ("column.1.allowed", ["BUY", 1], "column[1].allowed[1]"),
        ("delivery.null_text", 'a"b', "delivery.null_text"),
        ("delivery.null_text", "x" * 17, "delivery.null_text"),
        ("delivery.gzip", 1, "delivery.gzip"),
        ("delivery.order_by", ["Hour"], "delivery.order_by"),
        ("report.chart.0.kind", "pie", "report.chart[0].kind"),
        ("report.chart.1.y", "No", "report.chart[1].y"),
    ],
)
def test_schema_and_model_find_the_same_mistake(path, value, expected_key):
    document = changed(path, value)
    assert {_without_item(key) for key in keys_from_schema(document)} == {_without_item(expected_key)}
    assert expected_key in keys_from_model(document)


def _without_item(expected_key: str) -> str:
    """Remove an item's index: for a list of texts, the schema names the item and the model the list."""
    return (
        expected_key.removesuffix("]").rstrip("0123456789").removesuffix("[")
        if expected_key.endswith("]")
        else expected_key
    )


@pytest.mark.parametrize(
    ("path", "expected_key"),
    [
        ("title", ""),
        ("source.topic", "source"),
        ("column.0.title", "column[0]"),
        ("delivery.order_by", "delivery"),
    ],
)
def test_schema_and_model_find_a_missing_key(path, expected_key):
    document = changed(path, None)
    assert keys_from_schema(document) == {expected_key}
    assert keys_from_model(document) == {
        (f"{expected_key}." if expected_key else "") + path.rpartition(".")[2]
    }


@pytest.mark.parametrize(
    "path", ["colour", "source.partition", "column.2.colour", "report.chart.0.colour", "delivery.zip"]
)
def test_schema_and_model_find_an_unknown_key(path):
    document = changed(path, "red")
    way = path.split(".")
    assert keys_from_schema(document) == {
        _path([int(part) if part.isdecimal() else part for part in way[:-1]])
    }
    assert len(keys_from_model(document)) == 1


def test_the_schema_has_descriptions_and_defaults():
    window = SCHEMA["properties"]["window"]["properties"]
    assert window["restate_for_days"] == {
        "description": (
            "The number of days after its end in which a window is published again if late events change it."
        ),
        "type": "integer",
        "minimum": 0,
        "maximum": 366,
        "default": 14,
    }
    assert "default" not in SCHEMA["properties"]["source"]["properties"]["min_event_date"]
    assert SCHEMA["properties"]["window"]["properties"]["on_empty"]["default"] == "publish"
    assert SCHEMA["properties"]["delivery"]["properties"]["gzip"]["default"] is False
    assert "sha256" not in SCHEMA["properties"]
    assert "from" in window
    assert "first" not in window
