"""export-contract.md: every key of a contract, from the model that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs

from deployments import validation
from exports import contract
from exports.contract import Contract
from exports.contract_rules import RULES
from exports.toml_model import default_of, is_map, is_optional, setting_name, settings
from exports.toml_schema import json_schema
from tools.docs import markdown
from tools.docs.markdown import code

TITLE = "Export contract"
_KINDS = {str: "text", int: "whole number", bool: "true or false", date: "date"}
#: What the named patterns mean; a pattern without a name is shown.
_PATTERNS = {
    contract.NAME: "a name: lower case, digits and underscores",
    contract.PATH: "a field, inside records with dots",
    contract.TYPE: "see meaning",
    validation.NAME: "2 to 20 small letters, digits and hyphens",
    validation.STAGE: "2 to 12 small letters and digits",
    validation.SECRET_NAME: "a secret's name",
    validation.SNOWFLAKE_NAME: "a name in Snowflake",
}
#: What each rule beyond single keys asks for.
_RULES = {
    "columns_are_named_once": "Each column has a name of its own, none is called `rows`, and at least one is delivered.",
    "columns_have_one_origin": "A column has at most one of `from`, `expression` and `measure`. "
    "With none of them it takes the source field of its own name.",
    "decimals_fit": "`decimal(p,s)`: p is 1 to 38, s at most p.",
    "allowed_values_fit": "Each value in `allowed` is written as the column's type is in the file.",
    "gaps_can_be_told": "`delivery.null_text` is no value of a column that isn't text. A file of one nullable column needs one.",
    "personal_is_complete": "`personal` has the keys that its treatment needs, no others, and the column's type is what the "
    "treatment leaves (see [Treatments of personal data](#treatments-of-personal-data)). A measure has no `personal`.",
    "aggregate_is_whole": "A measure needs `[aggregate]`, and `[aggregate]` needs at least one measure and one other column. "
    "It has exactly one of `people` and `without_people`. A table that is kept has columns `window`, `window_start`, "
    "`window_end` and `run_id` of its own, so no other column has these names.",
    "references_exist": "`delivery.order_by`, `report.headline` and the charts name delivered columns; "
    "headlines and `y` name numeric ones, or `rows`.",
    "units_are_not_mixed": "A headline or chart over amounts in several currencies needs `per` on its column, "
    "and the chart `only`.",
    "order_is_given": "`delivery.order_by` names at least one column.",
    "checks_are_whole": "Each check has an id of its own, and exactly one of `each_row` and `overall`.",
    "window_matches_deduplication": '`applies = "after_deduplication"` needs `[deduplicate]`, and `[deduplicate]` a `key`.',
    "lines_need_an_array": '`on = "lines"` needs `[explode]`.',
}
#: Treatment, its other keys, the type it leaves, and what is left.
_TREATMENTS = [
    ("keep", "`reason`", "any", "The value leaves as it is. The reason stands in the data dictionary."),
    ("drop", "", "any", "The column is not delivered. It is listed in the data dictionary and the report as left out."),
    ("mask", "`visible`", "`text`", "`***` and the last `visible` characters, where the value is longer than that."),
    (
        "hash",
        "`kind`",
        "`text`",
        "A pseudonym: 64 hexadecimal digits of HMAC-SHA-256 under the key of the environment. Empty and blank values stay empty.",
    ),
    ("generalise", '`to = "year"`', "`integer`", "The year of a date or timestamp."),
    ("generalise", '`to = "month"`', "`text`", "Year and month, like 2026-11."),
    ("generalise", '`to = "prefix"`, `size`', "`text`", "The first `size` characters, without blanks around the value."),
    ("generalise", '`to = "bucket"`, `size`', "`integer`", "The number rounded down to a multiple of `size`."),
]
_SPELLINGS = [
    ("email", "blanks around it removed, lower case"),
    ("phone", "everything but digits and + removed"),
    ("name, text", "blanks around it removed, runs of blanks made one, lower case"),
    ("id", "blanks around it removed"),
]
_INTRO = """\
A contract is one TOML file. What it doesn't name never leaves. `lakeferry export check FILE` tells every mistake at once, by
key and line. Editors that know [Taplo](https://taplo.tamasfe.dev) check while one types: the first line of a contract may name
the schema, `#:schema ../docs/reference/export.schema.json`.

How to write one: [Write an export contract](../how-to/write-an-export-contract.md). What expressions may use:
[Expressions](expressions.md)."""


def text() -> str:
    undescribed = {rule.__name__ for rule in RULES} ^ _RULES.keys()
    if undescribed:
        raise LookupError(f"rules of the contract and rules described here differ: {', '.join(sorted(undescribed))}")
    rules = "\n".join(f"- {_RULES[rule.__name__]}" for rule in RULES)
    treatments = markdown.table(
        ["`treatment`", "other keys", "column's `type`", "what is left"], [(code(one[0]), *one[1:]) for one in _TREATMENTS]
    )
    spellings = markdown.table(["`kind`", "how spellings of one value are made equal before hashing"], _SPELLINGS)
    return markdown.page(
        TITLE,
        _INTRO,
        *sections(Contract, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## Treatments of personal data\n\n{treatments}\n\nText that isn't ASCII is brought to Unicode's NFKC form first.\n\n"
        f"{spellings}",
    )


def schema() -> dict[str, Any]:
    return json_schema(Contract, title="Lakeferry export contract", description="What an export delivers, from which events.")


def sections(model: type, path: str, title: str) -> Iterator[str]:
    """A section for the model, then one for each model inside it, in the order of the keys."""
    hints = get_type_hints(model)
    rows = [_row(field, hints[field.name], path) for field in settings(model)]
    yield f"## {title}\n\n" + markdown.table(["key", "kind", "default", "meaning"], rows)
    for field in settings(model):
        inner, many = _inner(hints[field.name])
        if inner is not None:
            below = f"{path}.{setting_name(field)}" if path else setting_name(field)
            heading = _heading(below, many)
            yield from sections(inner, below, heading)


def _heading(path: str, many: bool) -> str:
    return f"[[{path}]]" if many else f"[{path}]"


def _row(field: attrs.Attribute[Any], kind: Any, path: str) -> tuple[str, str, str, str]:
    return code(setting_name(field)), _kind(field, kind, path), _default(field), field.metadata["doc"]


def _kind(field: attrs.Attribute[Any], kind: Any, path: str) -> str:
    inner, many = _inner(kind)
    if inner is not None:
        below = f"{path}.{setting_name(field)}" if path else setting_name(field)
        return f"[{'tables' if many else 'table'}](#{slug(_heading(below, many))})"
    bare = next(one for one in get_args(kind) if one is not type(None)) if is_optional(kind) else kind
    if is_map(bare):
        return f"table of {_KINDS[get_args(bare)[1]]}s"
    many = get_origin(bare) is list
    bare = get_args(bare)[0] if many else bare
    if get_origin(bare) is Literal:
        choices = ", ".join(code(str(choice).replace("\t", "\\t")) for choice in get_args(bare))
        return f"list of {choices}" if many else choices
    return ("list of " if many else "") + _KINDS[bare] + _limits(field)


def _limits(field: attrs.Attribute[Any]) -> str:
    least, most, pattern = (field.metadata[name] for name in ("minimum", "maximum", "pattern"))
    told = []
    if least is not None or most is not None:
        told.append(f"from {least}" + (f" to {most}" if most is not None else ""))
    if pattern and _PATTERNS.get(pattern) != "see meaning":
        told.append(_PATTERNS.get(pattern) or code(pattern))
    return f" ({', '.join(told)})" if told else ""


def _default(field: attrs.Attribute[Any]) -> str:
    if field.default is attrs.NOTHING:
        return "**required**"
    default = default_of(field)
    if isinstance(default, bool):
        return code(str(default).lower())
    if isinstance(default, date):
        return code(default.isoformat())
    if isinstance(default, str):
        return code(f'"{default}"')
    return code(str(default)) if isinstance(default, int) else ""


def _inner(kind: Any) -> tuple[type | None, bool]:
    """The model that a key holds, and whether it holds many."""
    bare = next(one for one in get_args(kind) if one is not type(None)) if is_optional(kind) else kind
    many = get_origin(bare) is list
    bare = get_args(bare)[0] if many else bare
    return (bare, many) if attrs.has(bare) else (None, False)


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")
