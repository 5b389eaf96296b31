"""deployment-file.md and export-contract.md: what users write, from the models and rules that read it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import attrs

from config.deployments import rules as deployment_rules
from config.deployments.model import Deployment
from config.exports import contract_rules, personal_words
from config.exports.contract import Contract
from config.toml_model import find_default, is_map, is_optional, list_settings, read_setting_name
from config.toml_schema import build_json_schema
from dev.docs import markdown
from dev.docs.markdown import format_code

_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false", date: "date"}
#: Treatment, its other keys, the type it leaves, and what is left.
TREATMENTS = [
    (
        "keep",
        "`reason`, `may_contain`",
        "any",
        "The value is delivered as it is. The reason is in the data dictionary.",
    ),
    (
        "drop",
        "",
        "any",
        "The column is not delivered. It is listed in the data dictionary and the report as left out.",
    ),
    (
        "mask",
        "`visible`",
        "`text`",
        "`***` and the last `visible` characters, where the value is longer than that.",
    ),
    (
        "hash",
        "`kind`",
        "`text`",
        "A pseudonym: 64 hexadecimal digits of HMAC-SHA-256 under the key of the environment. Empty and "
        "blank values stay empty.",
    ),
    ("generalise", '`to = "year"`', "`integer`", "The year of a date or timestamp."),
    ("generalise", '`to = "month"`', "`text`", "Year and month, like 2026-11."),
    (
        "generalise",
        '`to = "prefix"`, `size`',
        "`text`",
        "The first `size` characters, without blanks around the value.",
    ),
    (
        "generalise",
        '`to = "bucket"`, `size`',
        "`integer`",
        "The number rounded down to a multiple of `size`.",
    ),
]
_SPELLINGS = [
    ("email", "blanks around it removed, lower case"),
    ("phone", "everything but digits and + removed"),
    ("name, text", "blanks around it removed, runs of blanks reduced to one, lower case"),
    ("id", "blanks around it removed"),
]
_PERSONAL_FIELDS: Final = """\
If a column is computed from a personal field, it needs `personal`: `lakeferry export check`, `lakeferry demo` and the deployment
refuse it otherwise. A field is personal

- if the topic's schema has the tag `"confluent:tags": ["PII"]` on the field or on what contains it
- if its name contains one of the words below, in snake_case or camelCase, singular or plural, with or without
  underscores. A word doesn't count if one follows that says something about the value, as in `email_status`
  or `phone_count`
- if its name joins a person with what belongs to one, like `customer_name`, `userId` or `nom_client`
- if it is in a record about a person or an address, and its name is a part of one, like `customer.name` or
  `ship_to.city`. A record's name, and the name of its type, say what it is about. If both say nothing, those
  of the record around it count, and at last the topic's name and the type of the topic's own record.
  `customer.product.name` isn't personal, because `product` says that the record is about something else
- if a Flink statement of the project copies it from a personal field ([Export a topic that Flink
  creates](../how-to/add-a-topic.md#export-a-topic-that-flink-creates))

Also, **a text in or below a record that has a personal field** is personal if a column delivers it as text. In
the topic's own record, this applies only to comments and exact places (postal codes, coordinates), unless the
topic is about people, like `customers`. Otherwise, each flat topic with one personal field would need a
decision for each state, code and unit."""
_NOT_PERSONAL: Final = """\
All fields of a personal record are personal. Without the tag, three kinds of fields are not: a boolean, a field whose name ends in
`address_id`, and an enum whose name has none of the words "of texts and enums" below. If a field only seems to be personal, or if its values identify nobody, give its column `personal =
{ treatment = "keep", reason = "…" }`. A measure can have no other treatment."""
_WORDS: Final = (
    ("of fields of any type", personal_words.VALUES),
    ("of texts, bytes and records", (*personal_words.TEXTS, *personal_words.ADDRESSES)),
    ("of texts and enums", personal_words.TRAITS),
    ("of people", personal_words.PERSONS),
    ("of what belongs to a person", (*personal_words.OF_PERSON_VALUES, *personal_words.OF_PERSON_TEXTS)),
    ("of records about an address", personal_words.PLACES_OF_PERSONS),
    ("of what belongs to an address", personal_words.OF_ADDRESS_TEXTS),
    ("of comments and exact places", (*personal_words.FREE_TEXTS, *personal_words.EXACT_PLACES)),
)
_CONTRACT_INTRO: Final = """\
A contract is one TOML file. Columns that it doesn't name are never delivered. `lakeferry export check FILE` reports all mistakes
at once, by key and line. Editors with [Taplo](https://taplo.tamasfe.dev) check while you type: the first line of a contract may
name the schema, `#:schema ../../docs/reference/export.schema.json`.

How to write one: [Write an export contract](../how-to/write-an-export-contract.md). What expressions may use:
[Expressions](expressions.md)."""
_DEPLOYMENT_INTRO: Final = """\
`project/deployments/<stage>.toml` contains everything that a user decides; `lakeferry deploy --stage <stage>`
deploys it. All mistakes are reported at once, by key and line, before anything is deployed. Editors with
[Taplo](https://taplo.tamasfe.dev) check while you type: the first line may name the schema,
`#:schema ../../docs/reference/deployment.schema.json`.

It never contains a secret: a text that looks like one is refused. `lakeferry secrets set` stores the two keys
that you create before the first deployment; the file has the names of their secrets."""
_ON_DESTROY: Final = """\
| | `keep` | `delete` |
| --- | --- | --- |
| created buckets with tables, exports and aggregates | stay | emptied and removed |
| buckets that existed before | stay | stay |
| Glue database of aggregates | stays | removed |
| Glue database of Tableflow's tables | stays, with its tables as they were | removed |
| pseudonymisation key | stays | removed |
| keys of Confluent Cloud and Snowflake, with their secrets | removed | removed |
| Kafka cluster, topics, Flink, Tableflow, objects in Snowflake | removed | removed |
| stacks | protected against deletion until you lift that | - |

Changing `delete` to `keep` deletes nothing: only a stack that is deleted as a whole removes leftovers. A new
deployment has new buckets, a new Glue database of aggregates and a new pseudonymisation key; to use the key
that was kept, name its secret in `pseudonym_secret`."""


def build_contract_page() -> str:
    rules = _list_rules(contract_rules.RULES)
    treatments = markdown.format_table(
        ["`treatment`", "other keys", "column's `type`", "what is left"],
        [(format_code(row[0]), *row[1:]) for row in TREATMENTS],
    )
    spellings = markdown.format_table(
        ["`kind`", "how spellings of a value are normalised before hashing"], _SPELLINGS
    )
    words = markdown.format_table(
        ["words", ""], [(kind, ", ".join(sorted(set(listed)))) for kind, listed in _WORDS]
    )
    return markdown.format_page(
        "Export contract",
        _CONTRACT_INTRO,
        *_describe_model(Contract, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## Fields with personal data\n\n{_PERSONAL_FIELDS}\n\n{_NOT_PERSONAL}\n\n{words}",
        f"## Treatments of personal data\n\n{treatments}\n\nText that isn't ASCII is brought to Unicode's "
        f"NFKC form first.\n\n{spellings}",
    )


def build_deployment_page() -> str:
    rules = _list_rules(deployment_rules.RULES)
    return markdown.format_page(
        "Deployment file",
        _DEPLOYMENT_INTRO,
        *_describe_model(Deployment, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## What stays on destroy\n\n{_ON_DESTROY}",
    )


def build_contract_schema() -> dict[str, Any]:
    return build_json_schema(
        Contract, title="Lakeferry export contract", description="What an export delivers, from which events."
    )


def build_deployment_schema() -> dict[str, Any]:
    return build_json_schema(
        Deployment,
        title="Lakeferry deployment",
        description="Everything that a user decides about one stage.",
    )


def _list_rules(rules: Iterable[Callable[..., Any]]) -> str:
    """Return a list of what each rule requires: the first paragraph of its docstring.

    Raises LookupError for a rule without one.
    """
    lines = []
    for rule in rules:
        docstring = inspect.getdoc(rule)
        if docstring is None:
            raise LookupError(f"rule {rule.__name__} has no docstring, which would be its text on the page")
        paragraph = docstring.partition("\n\n")[0]
        lines.append("- " + " ".join(paragraph.split()))
    return "\n".join(lines)


def _describe_model(model: type, path: str, title: str) -> Iterator[str]:
    """Yield a section for the model, then one for each model inside it, in the order of the keys."""
    hints = get_type_hints(model)
    rows = [_describe_machine(field, hints[field.name], path) for field in list_settings(model)]
    yield f"## {title}\n\n" + markdown.format_table(["key", "kind", "default", "meaning"], rows)
    for field in list_settings(model):
        inner, is_list = _find_inner_model(hints[field.name])
        if inner is not None:
            below = f"{path}.{read_setting_name(field)}" if path else read_setting_name(field)
            heading = _build_heading(below, is_list)
            yield from _describe_model(inner, below, heading)


def _build_heading(path: str, is_list: bool) -> str:
    return f"[[{path}]]" if is_list else f"[{path}]"


def _describe_machine(field: attrs.Attribute[Any], kind: Any, path: str) -> tuple[str, str, str, str]:
    return (
        format_code(read_setting_name(field)),
        _describe_kind(field, kind, path),
        _show_default(field),
        field.metadata["doc"],
    )


def _describe_kind(field: attrs.Attribute[Any], kind: Any, path: str) -> str:
    inner, is_list = _find_inner_model(kind)
    if inner is not None:
        below = f"{path}.{read_setting_name(field)}" if path else read_setting_name(field)
        return f"[{'tables' if is_list else 'table'}](#{slug(_build_heading(below, is_list))})"
    bare = (
        next(option for option in get_args(kind) if option is not type(None)) if is_optional(kind) else kind
    )
    if is_map(bare):
        return f"table of {_KINDS[get_args(bare)[1]]}s"
    is_list = get_origin(bare) is list
    bare = get_args(bare)[0] if is_list else bare
    if get_origin(bare) is Literal:
        choices = ", ".join(format_code(str(choice).replace("\t", "\\t")) for choice in get_args(bare))
        return f"list of {choices}" if is_list else choices
    return ("list of " if is_list else "") + _KINDS[bare] + _describe_limits(field)


def _describe_limits(field: attrs.Attribute[Any]) -> str:
    least, most, form = (field.metadata[name] for name in ("minimum", "maximum", "form"))
    limits = []
    if least is not None or most is not None:
        limits.append(f"from {least}" + (f" to {most}" if most is not None else ""))
    if form:
        limits.append(form.description)
    return f" ({', '.join(limits)})" if limits else ""


def _show_default(field: attrs.Attribute[Any]) -> str:
    if field.default is attrs.NOTHING:
        return "**required**"
    default = find_default(field)
    if isinstance(default, bool):
        return format_code(str(default).lower())
    if isinstance(default, date):
        return format_code(default.isoformat())
    if isinstance(default, str):
        return format_code(f'"{default}"')
    return format_code(str(default)) if isinstance(default, int) else ""


def _find_inner_model(kind: Any) -> tuple[type | None, bool]:
    """Return the model of a key that is a table, and whether it is a list of tables."""
    bare = (
        next(option for option in get_args(kind) if option is not type(None)) if is_optional(kind) else kind
    )
    is_list = get_origin(bare) is list
    bare = get_args(bare)[0] if is_list else bare
    return (bare, is_list) if attrs.has(bare) else (None, False)


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")
