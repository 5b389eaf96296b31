"""deployment-file.md, export-contract.md and expressions.md: what users write, from the models that read
it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import attrs

from config.deployments import rules as deployment_rules
from config.deployments.model import Deployment
from config.exports import contract_rules, personal_words
from config.exports.allowed_functions import (
    AGGREGATE,
    CLOCK_WORDS,
    KAFKA_FIELDS,
    SCALAR,
    SHOWS_ONE_PERSON,
    WINDOW_FIELDS,
)
from config.exports.contract import Contract
from config.toml_model import default_of, is_map, is_optional, setting_name, settings
from config.toml_schema import json_schema
from dev.docs import markdown
from dev.docs.markdown import code

_KINDS = {str: "text", int: "whole number", bool: "true or false", date: "date"}
#: What each rule of a contract requires beyond single keys.
_CONTRACT_RULES: Final = {
    "columns_are_named_once": "Each column has a name of its own, none is called `rows`, and at least one is delivered.",
    "columns_have_one_origin": "A column has at most one of `from`, `expression` and `measure`. "
    "With none of them it takes the source field of its own name.",
    "decimals_fit": "`decimal(p,s)`: p is 1 to 38, s at most p.",
    "allowed_values_fit": "Each value in `allowed` is written as the column's type is in the file.",
    "gaps_can_be_told": "`delivery.null_text` isn't a valid value of any column whose type isn't text. "
    "A file whose only column is nullable needs a `null_text` that isn't empty.",
    "personal_is_complete": (
        "`personal` has the keys that its treatment needs, no others, and the column's type is what the "
        "treatment leaves (see [Treatments of personal data](#treatments-of-personal-data)). The only "
        "treatment of a measure is `keep`."
    ),
    "scanned_kinds_are_known": "Each `[[personal_pattern]]` has a name of its own, and `may_contain` names "
    "kinds that the scan knows.",
    "aggregate_is_whole": (
        "A measure needs `[aggregate]`, and `[aggregate]` needs at least one measure and one other column. "
        "It has exactly one of `person_id` and `no_persons_because`. A table that is kept has columns "
        "`window`, `window_start`, `window_end` and `run_id` of its own, so no other column has these "
        "names."
    ),
    "reasons_are_needed": "Only a measure in an aggregate with `person_id` has `shows_one_person_because`.",
    "references_exist": "`delivery.order_by`, `report.headline` and the charts name delivered columns; "
    "headlines and `y` name numeric ones, or `rows`.",
    "units_are_not_mixed": (
        "A headline or chart over amounts in several currencies needs `per` on its column, and the chart "
        "`only`."
    ),
    "numbers_add_up": (
        "Headlines, `y` and `sum_x` name columns that add up (see `adds_up`): not those by which rows are "
        "grouped. Of expressions and measures, the job finds out."
    ),
    "order_is_given": "`delivery.order_by` names at least one column.",
    "checks_are_whole": "Each check has an id of its own, and exactly one of `each_row` and `overall`.",
    "window_matches_deduplication": '`filter_stage = "after_deduplication"` needs `[deduplicate]`, and `[deduplicate]` a `key`.',
    "lines_need_an_array": '`on = "lines"` needs `[explode]`.',
}
#: Treatment, its other keys, the type it leaves, and what is left.
_TREATMENTS = [
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
- if it stands in a record about a person or an address, and its name is a part of one, like `customer.name`
  or `ship_to.city`. The nearest record counts whose name, or whose type's name, says what it describes; for
  fields of the topic's own record, the topic and the record's type. `customer.product.name` isn't personal
- if a Flink statement of the project copies it from a personal field ([Export a topic that Flink
  creates](../how-to/add-a-topic.md#export-a-topic-that-flink-creates))

Besides, **a text in or below a record that has a personal field** is personal where a column delivers it as
text. In the topic's own record, only comments and exact places (postal codes, coordinates) are meant, unless
the topic is about people, like `customers`: otherwise each flat topic with one personal field would need a
decision for each state, code and unit."""
_NOT_PERSONAL: Final = """\
All fields of a personal record are personal. A boolean, an enum (except of the traits above) or a name that ends in `address_id`
is not, unless it has the tag. If a field only seems to be personal, or if its values identify nobody, give its column `personal =
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
#: What each rule of a deployment file requires beyond single keys.
_DEPLOYMENT_RULES: Final = {
    "names_are_unique": (
        "The names of topics, statements, exports and Snowflake tables are unique, and the two buckets "
        "differ. No two topics, statements or exports become one id in the templates, as `trades_2` and "
        "`trades2` both become `Trades2`."
    ),
    "tags_are_allowed": (
        "No tag is called `project`, `stage` or `owner`, which Lakeferry sets, or begins with `aws:`. "
        "Names of tags have letters, digits, blanks and . : / = + @ _ -, and differ in more than capitals."
    ),
    "environment_has_id_and_name": "`environment_id` and `environment_name` are both set, or neither.",
    "topics_have_one_writer": (
        "A topic is written by a statement, by Datagen or by your own producers. A statement creates one "
        "topic, with the name and the settings in its create.sql."
    ),
    "statements_exist": "`project/flink/<name>/` has create.sql and undo.sql, and `after` names statements above this one.",
    "statements_undo_only_their_table": (
        "undo.sql drops only the table that create.sql creates. In an existing environment, that table is "
        "a topic of the file."
    ),
    "adopted_objects_are_declared": (
        "`adopt` names only what the deployment itself would create: no table of a topic without "
        "`[topics.tableflow]`, and no subject that a connector or a statement registers."
    ),
    "schemas_exist": (
        "The schema file exists and holds an Avro record. A topic with `[topics.tableflow]` has a schema, "
        "or Datagen or a statement that registers one."
    ),
    "write_modes_match_cleanup_policies": (
        "`write_mode` is APPEND for cleanup.policy `delete`, UPSERT for `compact`. A statement's changelog "
        "has no retractions."
    ),
    "storage_is_readable": (
        "Tables in managed storage aren't in Glue; of those in your bucket, all are, or none. `formats` "
        "has no DELTA."
    ),
    "snowflake_can_read_tables": "A table in Snowflake needs `[snowflake]`, Glue and write mode APPEND.",
    "snowflake_names_differ_from_the_deployers": "User and warehouse of the readers aren't the deployer's.",
    "exports_match_topics": "The export's topic is in the file and a table in Glue, and the contract fits the topic's schema.",
    "exports_fit_into_policies": "There are 50 exports at most, because policies grow with each export, and AWS limits them.",
    "mails_reach_somebody_once": "`engineers` has an address, and no list has an address twice.",
    "budget_exists_in_region": "`budget` isn't true in a region in which CloudFormation has no budgets.",
    "boundary_is_in_account": "`permissions_boundary` is a policy of the account that `account` names, or AWS's own.",
    "zones_have_units": "`max_ecku` is 2 at least where `availability` is MULTI_ZONE.",
    "grace_is_shorter_than_rotation": "`grace_days` is less than `every_days`.",
    "rows_outlive_windows": (
        "For each export of the topic, `rows_days` is at least the length of a window in days, plus the "
        "days for which it is published again, plus one."
    ),
    "exports_run_again_for_each_window": (
        "`cron` starts an export at least twice before its next window ends, so that a window that failed "
        "or had to wait is tried again."
    ),
}
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
| buckets with tables, exports and aggregates | stay | emptied and removed |
| Glue database of aggregates | stays | removed |
| Glue database of Tableflow's tables | stays, with its tables as they were | removed |
| pseudonymisation key | stays | removed |
| keys of Confluent Cloud and Snowflake, with their secrets | removed | removed |
| Kafka cluster, topics, Flink, Tableflow, objects in Snowflake | removed | removed |
| stacks | protected against deletion until you lift that | - |

Changing `delete` to `keep` deletes nothing: only a stack that is deleted as a whole removes leftovers. A new
deployment has new buckets, a new Glue database of aggregates and a new pseudonymisation key; to use the key
that was kept, name its secret in `pseudonym_secret`."""
_NAMES: Final = {
    "kafka_topic": "the topic's name",
    "kafka_partition": "the partition",
    "kafka_headers": "the record's headers, a map of text to bytes",
    "kafka_leader_epoch": "the leader epoch",
    "kafka_offset": "the offset within the partition",
    "kafka_timestamp": "the record's time: when it was created or when Kafka received it, by the topic's settings",
    "kafka_timestamp_type": "which of the two that is",
    "kafka_raw_key": "the record's key as bytes",
    "kafka_raw_value": "the record's value as bytes",
    "export_window_start": "the window's first instant",
    "export_window_end": "the first instant after the window",
}
_EXPRESSIONS_INTRO: Final = """\
Expressions are Spark SQL under ANSI rules: what overflows, divides by zero or can't be cast is an error, not a null. The
session's zone is UTC. Spark's operators, CASE, CAST, IN, BETWEEN, LIKE, lambda functions and the functions below are allowed. A
text such as 'now' or 'today' that becomes a date or a timestamp is refused: it is the time of the run. An expression is one
condition or value; subqueries, window functions, `*`, user-defined functions and anything that isn't listed are refused, by
`lakeferry export check` when you write and by the job before it runs.

## Decimals

A decimal has at most 38 digits. Arithmetic keeps all digits of its operands, or the run stops and names the
column:

| operation | result |
| --- | --- |
| `+`, `-`, `%`, `sum`, `coalesce`, CASE | exact, with the decimal places of the operand that has more |
| `*` | exact, with the decimal places of both factors. More than 38 places are refused |
| `/`, `avg` | rounded half up to Spark's decimal places. Fewer than 6, or than the column has, are refused |
| `div` | exact. A quotient that may have more than 18 digits is refused |
| CAST to a decimal, `round`, a column's type | rounded half up to the decimal places that you write |
| a float or double as a decimal column | Java's decimal text of the number, rounded half up: 0.1 is 0.1 |

A result of more than 38 digits is EXP-OVERFLOW. If a product has too many places, cast its factors to
decimals with fewer: `cast(price as decimal(20,6)) * quantity`."""
_EXPRESSION_KEYS: Final = [
    (
        "filter.where",
        "source fields, Kafka's and the window's; with `on = \"lines\"` also the item's, by its alias",
        "no",
    ),
    (
        "column.expression",
        "source fields, Kafka's and the window's; after `[explode]` also the item's, by its alias",
        "no",
    ),
    ("column.measure", "the same", "yes, it must be one"),
    ("check.each_row", "the file's columns", "no"),
    (
        "check.overall",
        "`rows`, and `min_x`, `max_x` of each numeric column `x`, `sum_x` if it adds up and has one unit",
        "no",
    ),
]


def contract_page() -> str:
    rules = _rules(contract_rules.RULES, _CONTRACT_RULES)
    treatments = markdown.table(
        ["`treatment`", "other keys", "column's `type`", "what is left"],
        [(code(row[0]), *row[1:]) for row in _TREATMENTS],
    )
    spellings = markdown.table(
        ["`kind`", "how spellings of a value are normalised before hashing"], _SPELLINGS
    )
    words = markdown.table(["words", ""], [(kind, ", ".join(sorted(set(listed)))) for kind, listed in _WORDS])
    return markdown.page(
        "Export contract",
        _CONTRACT_INTRO,
        *_sections(Contract, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## Fields with personal data\n\n{_PERSONAL_FIELDS}\n\n{_NOT_PERSONAL}\n\n{words}",
        f"## Treatments of personal data\n\n{treatments}\n\nText that isn't ASCII is brought to Unicode's "
        f"NFKC form first.\n\n{spellings}",
    )


def deployment_page() -> str:
    rules = _rules(deployment_rules.RULES, _DEPLOYMENT_RULES)
    return markdown.page(
        "Deployment file",
        _DEPLOYMENT_INTRO,
        *_sections(Deployment, "", "The file"),
        f"## Rules beyond single keys\n\n{rules}",
        f"## What stays on destroy\n\n{_ON_DESTROY}",
    )


def expressions_page() -> str:
    where = markdown.table(
        ["key", "available names", "aggregate functions"],
        [(code(key), *rest) for key, *rest in _EXPRESSION_KEYS],
    )
    kafka = markdown.table(
        ["name", "meaning"], [(code(name), _NAMES[name]) for name in (*KAFKA_FIELDS, *WINDOW_FIELDS)]
    )
    return markdown.page(
        "Expressions",
        _EXPRESSIONS_INTRO,
        f"## Keys with expressions\n\n{where}",
        f"## Names beside the topic's fields\n\nThe same whether Tableflow names them `$$offset` or "
        f"`cflt_metadata_offset`. Fields inside records are reached with dots: `customer.region`.\n\n{kafka}",
        f"## Functions of one row\n\n{_listed(SCALAR)}",
        "## Aggregate functions\n\nOnly in `measure`. Functions whose result depends on the order of rows "
        f"are left out. In an aggregate with `person_id`, {_listed(SHOWS_ONE_PERSON)} and conditions on "
        f"the person's id need `shows_one_person_because` in their column.\n\n{_listed(AGGREGATE)}",
        "## Refused words\n\nThey differ between runs or users, so the same rows would give another file. "
        "The bounds of the window are `export_window_start` and "
        f"`export_window_end`.\n\n{_listed(CLOCK_WORDS)}",
    )


def contract_schema() -> dict[str, Any]:
    return json_schema(
        Contract, title="Lakeferry export contract", description="What an export delivers, from which events."
    )


def deployment_schema() -> dict[str, Any]:
    return json_schema(
        Deployment,
        title="Lakeferry deployment",
        description="Everything that a user decides about one stage.",
    )


def _rules(rules: Iterable[Any], meanings: Mapping[str, str]) -> str:
    """Raises LookupError unless exactly the rules are described."""
    names = [rule.__name__ for rule in rules]
    if differing := set(names) ^ meanings.keys():
        raise LookupError(f"rules and rules described here differ: {', '.join(sorted(differing))}")
    return "\n".join(f"- {meanings[name]}" for name in names)


def _sections(model: type, path: str, title: str) -> Iterator[str]:
    """Yield a section for the model, then one for each model inside it, in the order of the keys."""
    hints = get_type_hints(model)
    rows = [_row(field, hints[field.name], path) for field in settings(model)]
    yield f"## {title}\n\n" + markdown.table(["key", "kind", "default", "meaning"], rows)
    for field in settings(model):
        inner, many = _inner(hints[field.name])
        if inner is not None:
            below = f"{path}.{setting_name(field)}" if path else setting_name(field)
            heading = _heading(below, many)
            yield from _sections(inner, below, heading)


def _heading(path: str, many: bool) -> str:
    return f"[[{path}]]" if many else f"[{path}]"


def _row(field: attrs.Attribute[Any], kind: Any, path: str) -> tuple[str, str, str, str]:
    return code(setting_name(field)), _kind(field, kind, path), _default(field), field.metadata["doc"]


def _kind(field: attrs.Attribute[Any], kind: Any, path: str) -> str:
    inner, many = _inner(kind)
    if inner is not None:
        below = f"{path}.{setting_name(field)}" if path else setting_name(field)
        return f"[{'tables' if many else 'table'}](#{slug(_heading(below, many))})"
    bare = (
        next(option for option in get_args(kind) if option is not type(None)) if is_optional(kind) else kind
    )
    if is_map(bare):
        return f"table of {_KINDS[get_args(bare)[1]]}s"
    many = get_origin(bare) is list
    bare = get_args(bare)[0] if many else bare
    if get_origin(bare) is Literal:
        choices = ", ".join(code(str(choice).replace("\t", "\\t")) for choice in get_args(bare))
        return f"list of {choices}" if many else choices
    return ("list of " if many else "") + _KINDS[bare] + _limits(field)


def _limits(field: attrs.Attribute[Any]) -> str:
    least, most, form = (field.metadata[name] for name in ("minimum", "maximum", "form"))
    limits = []
    if least is not None or most is not None:
        limits.append(f"from {least}" + (f" to {most}" if most is not None else ""))
    if form:
        limits.append(form.description)
    return f" ({', '.join(limits)})" if limits else ""


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
    """Return the model of a key that is a table, and whether it is a list of tables."""
    bare = (
        next(option for option in get_args(kind) if option is not type(None)) if is_optional(kind) else kind
    )
    many = get_origin(bare) is list
    bare = get_args(bare)[0] if many else bare
    return (bare, many) if attrs.has(bare) else (None, False)


def slug(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")


def _listed(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(code(name) for name in sorted(names)), 120, break_on_hyphens=False)
