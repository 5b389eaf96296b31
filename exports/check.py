"""The author's check: expressions parse, functions are allowed, fields exist, and no personal field leaves untreated.

For the command line and for stacks at synth; the job doesn't ship it, it asks Spark's own parser and analyser.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from exports import contract as contracts
from exports.contract import Column, Contract
from exports.expressions import CLOCK_WORDS, KAFKA_FIELDS, WINDOW_FIELDS, forbidden, why_forbidden
from exports.toml_model import BadFile, Problem, Rule
from exports.topic_schema import TopicSchema

Finding = tuple[str, str]

_TIMES = {"timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"}
#: Tokens before a parenthesis that are grammar and not a function's name.
_GRAMMAR = {
    TokenType.IN,
    TokenType.DECIMAL,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
    TokenType.WHEN,
    TokenType.THEN,
    TokenType.ELSE,
    TokenType.CASE,
    TokenType.BETWEEN,
    TokenType.LIKE,
    TokenType.RLIKE,
    TokenType.OVER,
    TokenType.DISTINCT,
    TokenType.STRUCT,
    TokenType.ARRAY,
}


def check_file(path: Path, schema: TopicSchema) -> Contract:
    """Reads a contract and checks it against its topic's schema. Raises BadFile with all mistakes of both kinds."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(str(path), [Problem(0, "", f"cannot be read: {error}")]) from None
    return contracts.parse(text, name=str(path), more_rules=rules(schema))


def rules(schema: TopicSchema) -> tuple[Rule[Contract], ...]:
    return (
        lambda contract: _fields_exist(contract, schema),
        lambda contract: _event_time_is_a_time(contract, schema),
        lambda contract: _expressions_are_sound(contract, schema),
        lambda contract: _personal_fields_are_treated(contract, schema),
    )


def _fields_exist(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    if contract.source.topic != schema.topic:
        yield "source.topic", f"this contract reads {contract.source.topic}, but the schema given is that of {schema.topic}"
    for place, path in _named_fields(contract):
        if _resolve(path, contract, schema) is None:
            yield place, f"{schema.topic} has no field {path}"
    if contract.explode and (array := schema.fields.get(contract.explode.array)) and array.kind != "array":
        yield "explode.array", f"{contract.explode.array} is {array.kind}, not an array"


def _named_fields(contract: Contract) -> Iterator[tuple[str, str]]:
    yield "source.event_time", contract.source.event_time
    if contract.explode:
        yield "explode.array", contract.explode.array
    if contract.deduplicate:
        yield from ((f"deduplicate.key[{n}]", path) for n, path in enumerate(contract.deduplicate.key))
        yield from ((f"deduplicate.order[{n}]", path) for n, path in enumerate(contract.deduplicate.order))
    if contract.aggregate and contract.aggregate.people:
        yield "aggregate.people", contract.aggregate.people
    for index, column in enumerate(contract.column):
        if column.field:
            yield f"column[{index}]" + (".from" if column.source else ".name"), column.field


def _event_time_is_a_time(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    field = schema.fields.get(contract.source.event_time)
    if field and field.kind not in _TIMES:
        yield "source.event_time", f"{field.path} is {field.kind}, not a timestamp. Name a timestamp field or kafka_timestamp"


def _expressions_are_sound(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    for place, text, aggregate, names in _expressions(contract):
        mistakes = list(_mistakes(text, aggregate=aggregate))
        yield from ((place, mistake) for mistake in mistakes)
        if mistakes:
            continue
        for path in _references(text):
            known = path in names if names is not None else _resolve(path, contract, schema) is not None
            if not known:
                yield place, f"{path} is neither a field of {schema.topic} nor another name known here"


def _expressions(contract: Contract) -> Iterator[tuple[str, str, bool, set[str] | None]]:
    """(key, expression, may aggregate, the names it sees or None for the source's fields)."""
    for index, one in enumerate(contract.filter):
        yield f"filter[{index}].where", one.where, False, None
    for index, column in enumerate(contract.column):
        if column.expression:
            yield f"column[{index}].expression", column.expression, False, None
        if column.measure:
            yield f"column[{index}].measure", column.measure, True, None
    columns = {column.name for column in contract.columns}
    numeric = {c.name for c in contract.columns if c.numeric}
    totals = {"rows"} | {f"{what}_{name}" for name in numeric for what in ("sum", "min", "max")}
    for index, check in enumerate(contract.check):
        if check.each_row:
            yield f"check[{index}].each_row", check.each_row, False, columns
        if check.overall:
            yield f"check[{index}].overall", check.overall, False, totals


def _mistakes(text: str, *, aggregate: bool) -> Iterator[str]:
    try:
        trees = sqlglot.parse(text, read="spark")
        tokens = sqlglot.tokenize(text, read="spark")
    except SqlglotError as error:
        yield f"not a Spark SQL expression: {str(error).splitlines()[0]}"
        return
    tree = trees[0]
    if len(trees) != 1 or not isinstance(tree, exp.Condition):
        yield "not one Spark SQL expression"
        return
    if tree.find(exp.Query, exp.Subquery):
        yield "a subquery is not allowed: an export reads one table"
    if tree.find(exp.Window):
        yield "a window function is not allowed: use [deduplicate] or an aggregate"
    if isinstance(tree, exp.Star):
        yield "name columns one by one: what isn't named doesn't leave"
    words = [token.text for token in tokens if token.text.lower() in CLOCK_WORDS]
    yield from (f"{word} changes with time or user, so the same rows would differ" for word in words)
    yield from (why_forbidden(name) for name in forbidden(_functions(tokens), aggregate=aggregate))


def _functions(tokens: list[Token]) -> list[str]:
    return [
        here.text
        for here, following in pairwise(tokens)
        if following.token_type is TokenType.L_PAREN and here.text.isidentifier() and here.token_type not in _GRAMMAR
    ]


def _references(text: str) -> list[str]:
    """Paths of columns as written, each once: customer.region, not customer and region."""
    paths = [
        ".".join(part.name for part in column.parts) for column in sqlglot.parse_one(text, read="spark").find_all(exp.Column)
    ]
    return list(dict.fromkeys(paths))


def _resolve(path: str, contract: Contract, schema: TopicSchema) -> str | None:
    """The schema's path of what an expression calls `path`; None where there is no such thing."""
    head, _, rest = path.partition(".")
    if contract.explode and head == contract.explode.alias:
        item = f"{contract.explode.array}[]"
        path = f"{item}.{rest}" if rest else item
    if path in KAFKA_FIELDS or path in WINDOW_FIELDS:
        return path
    return path if path in schema.fields else None


def _personal_fields_are_treated(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    for index, column in enumerate(contract.column):
        if column.personal is None and (carried := _carried(column, contract, schema)):
            place = f"column[{index}]"
            yield (
                place,
                (
                    f"{column.name} carries personal data ({', '.join(carried)}) and says nothing about it. "
                    'Add personal = { treatment = "hash", kind = … }, or drop, mask, generalise, or keep with a reason'
                ),
            )


def _carried(column: Column, contract: Contract, schema: TopicSchema) -> list[str]:
    """The personal fields of the source that the column's value is made of."""
    text = column.expression or column.measure
    if text and any(_mistakes(text, aggregate=True)):
        return []
    if text and column.measure and _only_counts(text):
        return []
    paths = _references(text) if text else [column.field or column.name]
    resolved = [found for path in paths if (found := _resolve(path, contract, schema))]
    if any(path in ("kafka_raw_key", "kafka_raw_value", "kafka_headers") for path in resolved):
        return ["the raw record"]
    return list(dict.fromkeys(field for path in resolved for field in schema.personal_below(path)))


def _only_counts(text: str) -> bool:
    return isinstance(sqlglot.parse_one(text, read="spark"), exp.Count | exp.CountIf)
