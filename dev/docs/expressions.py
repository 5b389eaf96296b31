"""expressions.md: what the Spark SQL of a contract may use."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from config.exports.allowed_functions import (
    AGGREGATE,
    CLOCK_WORDS,
    KAFKA_FIELDS,
    SCALAR,
    SHOWS_ONE_PERSON,
    WINDOW_FIELDS,
)
from dev.docs import markdown
from dev.docs.markdown import format_code

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


def build_expressions_page() -> str:
    keys_table = markdown.format_table(
        ["key", "available names", "aggregate functions"],
        [(format_code(key), *rest) for key, *rest in _EXPRESSION_KEYS],
    )
    names_table = markdown.format_table(
        ["name", "meaning"], [(format_code(name), _NAMES[name]) for name in (*KAFKA_FIELDS, *WINDOW_FIELDS)]
    )
    return markdown.format_page(
        "Expressions",
        _EXPRESSIONS_INTRO,
        f"## Keys with expressions\n\n{keys_table}",
        f"## Names beside the topic's fields\n\nThe same whether Tableflow names them `$$offset` or "
        f"`cflt_metadata_offset`. Fields inside records are reached with dots: `customer.region`.\n\n{names_table}",
        f"## Functions of one row\n\n{_list_codes(SCALAR)}",
        "## Aggregate functions\n\nOnly in `measure`. Functions whose result depends on the order of rows "
        f"are left out. In an aggregate with `person_id`, {_list_codes(SHOWS_ONE_PERSON)} and conditions on "
        f"the person's id need `shows_one_person_because` in their column.\n\n{_list_codes(AGGREGATE)}",
        "## Refused words\n\nThey differ between runs or users, so the same rows would give another file. "
        "The bounds of the window are `export_window_start` and "
        f"`export_window_end`.\n\n{_list_codes(CLOCK_WORDS)}",
    )


def _list_codes(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(format_code(name) for name in sorted(names)), 120, break_on_hyphens=False)
