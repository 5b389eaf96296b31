"""Checks for authors of contracts: expressions parse, functions are allowed, fields exist, and personal data has a treatment.

The command line and the checks of deployment files use this module. The job uses Spark's own parser and analyser instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from exports import contracts
from exports import expression_types as types
from exports.contract import Column, Contract, Expression
from exports.expressions import CLOCK_WORDS, KAFKA_FIELDS, WINDOW_FIELDS, forbidden, why_forbidden
from exports.toml_model import Rule, read_text
from exports.topic_schema import TopicSchema

Finding = tuple[str, str]

_TIMES = {"timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"}
_TEXTS = {"string", "enum", "text"}
#: Text that Spark replaces with the current time wherever it expects a date or a timestamp. A time zone may follow it.
_CLOCK_TEXT = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.IGNORECASE)
#: Keywords that may come before a parenthesis and are not function names.
_GRAMMAR = {
    TokenType[name]
    for name in "IN DECIMAL AND OR NOT WHEN THEN ELSE CASE BETWEEN FROM DIV LIKE RLIKE OVER DISTINCT STRUCT ARRAY".split()
}


def check_file(path: Path, schema: TopicSchema) -> Contract:
    """Read a contract and check it against its topic's schema. Raises BadFile with all mistakes of both checks."""
    return contracts.parse(read_text(path, str(path)), name=str(path), more_rules=(*contracts.name_rules(path), *rules(schema)))


def rules(schema: TopicSchema) -> tuple[Rule[Contract], ...]:
    return (
        lambda contract: _fields_exist(contract, schema),
        lambda contract: _event_time_is_a_time(contract, schema),
        lambda contract: _expressions_are_sound(contract, schema),
        lambda contract: _doubles_are_exact(contract, schema),
        lambda contract: _types_fit(contract, schema),
        lambda contract: _table_can_be_read(contract, schema),
        lambda contract: _personal_fields_are_treated(contract, schema),
    )


def _fields_exist(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    if contract.source.topic != schema.topic:
        yield "source.topic", f"this contract reads {contract.source.topic}, but the schema given is that of {schema.topic}"
    for name in WINDOW_FIELDS:
        if name in schema.fields:
            yield "source.topic", f"{schema.topic} has a field {name}, which is the name of the export's own column. Rename it"
    for key, path in contract.fields():
        if _resolve(path, contract, schema) is None:
            yield key, f"the schema of {schema.topic} has no field {path}"
    if contract.explode and (array := schema.fields.get(contract.explode.array)) and array.kind != "array":
        yield "explode.array", f"{contract.explode.array} is {array.kind}, not an array"


def _event_time_is_a_time(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    field = schema.fields.get(contract.source.event_time)
    if field and field.kind not in _TIMES:
        yield "source.event_time", f"{field.path} is {field.kind}, not a timestamp. Name a timestamp field or kafka_timestamp"


def _expressions_are_sound(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    for expression in contract.expressions():
        key, text, names = expression.key, expression.text, _names_in(expression, contract)
        mistakes = list(_mistakes(text, aggregate=expression.of == "group"))
        yield from ((key, mistake) for mistake in mistakes)
        if mistakes:
            continue
        kinds = {path: _kind(path, names, contract, schema) for path in _references(text)}
        for path in (path for path, kind in kinds.items() if kind is None):
            yield key, f"{path} is neither a field of {schema.topic} nor another name known here"
        for word in _clock_texts(_tree(text), kinds):
            yield key, f"Spark may read {word} as the time of the run, which differs between runs. Compare it with text only"


def _doubles_are_exact(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    for expression in contract.expressions():
        if expression.of in ("row", "group") and not any(_mistakes(expression.text, aggregate=True)):
            yield from ((expression.key, wrong) for wrong in _inexact(expression.text, contract, schema))


def _inexact(text: str, contract: Contract, schema: TopicSchema) -> list[str]:
    return types.inexact(_tree(text), lambda column: _type_of(_path(column), contract, schema))


def _type_of(path: str, contract: Contract, schema: TopicSchema) -> str | None:
    return types.OF_FIELD.get(_kind(path, None, contract, schema) or "")


def _types_fit(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    def of_column(column: exp.Column) -> str | None:
        return _type_of(_path(column), contract, schema)

    for index, column in enumerate(contract.column):
        text = column.expression or column.measure
        if text and (any(_mistakes(text, aggregate=True)) or _inexact(text, contract, schema)):
            continue
        type_ = types.type_of(_tree(text), of_column) if text else _type_of(column.field or column.name, contract, schema)
        if wrong := types.misfit(column, type_) or _shortened(column, contract, schema):
            yield f"column[{index}]", f"{column.name} {wrong}"


def _shortened(column: Column, contract: Contract, schema: TopicSchema) -> str | None:
    field = schema.fields.get(_resolve(column.field or "", contract, schema) or "")
    return types.shortened(column, field.size) if field and field.size else None


def _table_can_be_read(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    if times := [field.path for field in schema.fields.values() if field.kind.startswith("time-")]:
        yield (
            "source.topic",
            f"{', '.join(times)}: a time of day, and Spark can't read an Iceberg table that has one. Send it as text or a number",
        )
    if contract.explode and contract.explode.alias in {path.partition(".")[0] for path in schema.fields}:
        yield "explode.as", f"{schema.topic} has a field {contract.explode.alias}. Give the item another name"


def _kind(path: str, names: dict[str, str] | None, contract: Contract, schema: TopicSchema) -> str | None:
    """Return the type of the field or name `path` in an expression, or None if there is none.

    The type of Kafka's metadata and of the window's bounds is their own name (see `expression_types.OF_FIELD`).
    """
    if names is not None:
        return names.get(path)
    resolved = _resolve(path, contract, schema)
    return schema.fields[resolved].kind if resolved in schema.fields else resolved


def _names_in(expression: Expression, contract: Contract) -> dict[str, str] | None:
    """Return the names that an expression may use, with their types, or None if it uses the source's fields."""
    if expression.of == "file_row":
        return {column.name: column.type for column in contract.columns}
    if expression.of == "file":
        return dict.fromkeys(["rows", *contract.total_names], "number")
    return None


def _mistakes(text: str, *, aggregate: bool) -> Iterator[str]:
    try:
        tree, tokens = _tree(text), sqlglot.tokenize(text, read="spark")
    except SqlglotError as error:
        column = next((f" (near sign {first['col']})" for first in getattr(error, "errors", [])), "")
        yield f"not a Spark SQL expression{column}"
        return
    if isinstance(tree, exp.Block) or tree.find(exp.Placeholder, exp.Parameter):
        yield "must be one complete Spark SQL expression, without parameters"
        return
    if tree.find(exp.Query, exp.Subquery):
        yield "a subquery is not allowed: an export reads one table"
    if tree.find(exp.Window):
        yield "a window function is not allowed: use [deduplicate] or an aggregate"
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        yield "name columns one by one: a field that isn't named is never exported"
    yield from (f"{word} changes with time or user, so the result would differ between runs" for word in _clock_words(tokens))
    yield from (why_forbidden(name) for name in forbidden(_functions(tokens), aggregate=aggregate))


def _tree(text: str) -> exp.Condition:
    return sqlglot.parse_one(text, read="spark", into=exp.Condition)


def _clock_words(tokens: list[Token]) -> list[str]:
    """Return the words that Spark reads as functions without parentheses. Next to a dot, they are names of fields."""
    return [
        token.text
        for before, token, after in _neighbours(tokens)
        if token.text.lower() in CLOCK_WORDS and token.token_type is not TokenType.STRING and TokenType.DOT not in (before, after)
    ]


def _functions(tokens: list[Token]) -> list[str]:
    """Return the names before a parenthesis. A name after a dot is a user-defined function, and is returned with the dot."""
    return [
        f".{token.text}" if before is TokenType.DOT else token.text
        for before, token, after in _neighbours(tokens)
        if after is TokenType.L_PAREN and token.text.isidentifier() and token.token_type not in _GRAMMAR
    ]


def _neighbours(tokens: list[Token]) -> Iterator[tuple[TokenType | None, Token, TokenType | None]]:
    types = [None, *[token.token_type for token in tokens], None]
    return zip(types, tokens, types[2:], strict=False)


def _clock_texts(tree: exp.Condition, kinds: dict[str, str | None]) -> Iterator[str]:
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and _CLOCK_TEXT.fullmatch(literal.this) and not _is_beside_text(literal, kinds):
            yield literal.sql()


def _is_beside_text(literal: exp.Literal, kinds: dict[str, str | None]) -> bool:
    """Return whether the literal is compared only with text fields and other literals."""
    comparison = literal.parent
    if not isinstance(comparison, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.In):
        return False
    others = [node for node in comparison.iter_expressions() if not isinstance(node, exp.Literal)]
    return all(isinstance(node, exp.Column) and kinds.get(_path(node)) in _TEXTS for node in others)


def _references(text: str) -> list[str]:
    """Return the full paths of columns as written, without duplicates: customer.region, not customer and region."""
    return list(dict.fromkeys(_path(column) for column in _tree(text).find_all(exp.Column)))


def _path(column: exp.Column) -> str:
    parts, node = [part.name for part in column.parts], column.parent
    while isinstance(node, exp.Dot):  # a Column has at most four parts: catalog, database, table and column
        parts.append(node.expression.name)
        node = node.parent
    return ".".join(parts)


def _resolve(path: str, contract: Contract, schema: TopicSchema) -> str | None:
    """Return the path in the schema of the field `path` in an expression, or None if there is no such field."""
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
            reasons = "; ".join(carried)
            yield (
                f"column[{index}]",
                f"{column.name} contains personal data ({reasons}) and has no `personal` entry. "
                'Add personal = { treatment = "hash", kind = … }, or drop, mask, generalise, or keep with a reason',
            )


def _carried(column: Column, contract: Contract, schema: TopicSchema) -> list[str]:
    """Return the personal fields of the source that the column's value is computed from, with the reasons."""
    text = column.expression or column.measure
    if text and any(_mistakes(text, aggregate=True)):
        return []
    if text and column.measure and _only_counts(text):
        return []
    paths = _references(text) if text else [column.field or column.name]
    resolved = [field for path in paths if (field := _resolve(path, contract, schema))]
    if any(path in ("kafka_raw_key", "kafka_raw_value", "kafka_headers") for path in resolved):
        return ["the raw record"]
    fields = (field for path in resolved for field in schema.personal_below(path, as_text=column.type == "text"))
    return [f"{field}: {schema.personal[field].why}" for field in dict.fromkeys(fields)]


def _only_counts(text: str) -> bool:
    return isinstance(_tree(text), exp.Count | exp.CountIf)
