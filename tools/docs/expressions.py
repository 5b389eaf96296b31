"""expressions.md: which Spark SQL a contract may use, from the list that the check and the job ask."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from exports.expressions import AGGREGATE, CLOCK_WORDS, KAFKA_FIELDS, SCALAR, WINDOW_FIELDS
from tools.docs import markdown
from tools.docs.markdown import code

TITLE = "Expressions"
_MEANINGS = {
    "kafka_topic": "the topic's name",
    "kafka_partition": "the partition",
    "kafka_headers": "the record's headers, a map of text to bytes",
    "kafka_leader_epoch": "the leader epoch",
    "kafka_offset": "the offset within the partition",
    "kafka_timestamp": "the record's time: when it was made or when Kafka received it, as the topic is set up",
    "kafka_timestamp_type": "which of the two that is",
    "kafka_raw_key": "the record's key as bytes",
    "kafka_raw_value": "the record's value as bytes",
    "export_window_start": "the window's first instant",
    "export_window_end": "the first instant after the window",
}
_INTRO = """\
Expressions are Spark SQL under ANSI rules: what overflows, divides by zero or can't be cast is an error, not a null. The
session's zone is UTC. Spark's operators, CASE, CAST, IN, BETWEEN, LIKE, lambda functions and the functions below are allowed. A
text such as 'now' or 'today' that becomes a date or a timestamp is refused: it is the time of the run. An expression is one
condition or value; subqueries, window functions, `*`, user-defined functions and anything that isn't listed are refused, by
`lakeferry export check` when you write and by the job before it runs."""
_WHERE = [
    ("filter.where", "source fields, Kafka's and the window's; with `on = \"lines\"` also the item's, by its alias", "no"),
    ("column.expression", "source fields, Kafka's and the window's; after `[explode]` also the item's, by its alias", "no"),
    ("column.measure", "the same", "yes, it must be one"),
    ("check.each_row", "the file's columns", "no"),
    ("check.overall", "`rows`, and `sum_x`, `min_x`, `max_x` of each numeric column `x`", "no"),
]


def text() -> str:
    where = markdown.table(["key", "names it sees", "aggregate functions"], [(code(key), *rest) for key, *rest in _WHERE])
    kafka = markdown.table(["name", "meaning"], [(code(name), _MEANINGS[name]) for name in (*KAFKA_FIELDS, *WINDOW_FIELDS)])
    return markdown.page(
        TITLE,
        _INTRO,
        f"## Where expressions stand\n\n{where}",
        f"## Names beside the topic's fields\n\nThe same whether Tableflow names them `$$offset` or "
        f"`cflt_metadata_offset`. Fields inside records are reached with dots: `customer.region`.\n\n{kafka}",
        f"## Functions of one row\n\n{_listed(SCALAR)}",
        f"## Aggregate functions\n\nOnly in `measure`. Functions whose answer depends on the order of rows are left out.\n\n"
        f"{_listed(AGGREGATE)}",
        f"## Words that are refused\n\nThey answer differently on each run or for each user, so the same rows would give "
        f"another file. The bounds of the window are `export_window_start` and `export_window_end`.\n\n{_listed(CLOCK_WORDS)}",
    )


def _listed(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(code(name) for name in sorted(names)), 120, break_on_hyphens=False)
