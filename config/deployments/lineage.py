"""Where the columns of a table that a Flink statement creates come from, read from the statement's SQL.

Flink derives the schema of such a topic, and the derived schema has no tags. sqlglot has no dialect for
Flink SQL, so the query is cut out of the statement, and Flink's windowing functions are replaced by their
input. What can't be followed is unknown, and unknown columns count as personal.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema
from sqlglot.tokenizer_core import Token, TokenType

from config.exports.personal import Finding, add_findings
from config.exports.topic_schema import TopicSchema, is_inside

#: The dialect whose quotation marks and functions are closest to Flink's. Flink's names differ in capitals.
DIALECT: Final = "spark, normalization_strategy = case_sensitive"
_WINDOW_FUNCTIONS: Final = frozenset({"TUMBLE", "HOP", "CUMULATE", "SESSION"})
_WINDOW_COLUMNS: Final = ("window_start", "window_end", "window_time")
#: Words that come after the list of columns, if there is one, and before other parentheses.
_AFTER_COLUMNS: Final = frozenset({"WITH", "DISTRIBUTED", "PARTITIONED", "AS"})
#: A column that every table has: the time of the record.
_ROWTIME: Final = "$rowtime"
#: Functions whose result shows none of their arguments' values.
_COUNTS: Final = (exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank)
#: What is followed as a whole, or not at all.
_FOLLOWED: Final = (exp.Column, exp.Dot, exp.Query, exp.Window, *_COUNTS)
#: Flink's functions of their arguments alone that sqlglot doesn't know. All others that it doesn't know may
#: read anything.
PLAIN_FUNCTIONS: Final = frozenset(
    """
    row map array array_append array_contains array_distinct array_except array_intersect array_join
    array_max array_min array_position array_prepend array_remove array_reverse array_slice array_sort
    array_union btrim cardinality ceil char_length character_length chr coalesce concat concat_ws convert_tz
    date_format dayofmonth dayofweek dayofyear decode element elt encode floor from_base64 from_unixtime
    greatest grouping grouping_id hex if ifnull initcap instr is_alpha is_decimal is_digit json_array
    json_exists json_object json_query json_quote json_string json_unquote json_value least left length
    locate lower lpad ltrim map_entries map_from_arrays map_keys map_union map_values md5 nullif overlay
    parse_url position quarter regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_replace regexp_substr repeat replace reverse right round rpad rtrim sha1 sha2 sha224 sha256
    sha384 sha512 split split_index startswith endswith str_to_map substr substring timestampadd
    timestampdiff to_base64 to_date to_timestamp to_timestamp_ltz translate trim truncate try_cast unhex
    unix_timestamp upper url_decode url_encode
    """.split()
)


class Unknown(Exception):
    """The columns can't be followed. The message is the reason, as part of a sentence."""


@attrs.frozen
class Origin:
    """The fields, as (topic, path), that a column is computed from.

    `copies` is the field that the column has unchanged, with everything inside it. `unknown` is why the
    column can't be followed, "" if it can.
    """

    fields: frozenset[tuple[str, str]] = frozenset()
    copies: tuple[str, str] | None = None
    unknown: str = ""


def find_origins(create: str, columns: Callable[[str], list[str] | None]) -> dict[str, Origin]:
    """Return the origin of each column of the table that a statement fills.

    `columns` returns the columns of a source topic, None if they aren't known. Raises Unknown.
    """
    query, names = cut_query(create)
    try:
        outputs = _trace_outputs(build_query_scope(query, columns), frozenset())
    except SqlglotError as error:
        raise Unknown(f"its query can't be read ({type(error).__name__})") from None
    if names is None:
        return outputs
    if len(names) != len(outputs) or (is_create_table(create) and set(names) != set(outputs)):
        raise Unknown("its list of columns doesn't match its query")
    # In Flink, the list of a CREATE TABLE only changes the order of the query's columns.
    return outputs if is_create_table(create) else dict(zip(names, outputs.values(), strict=True))


def is_create_table(create: str) -> bool:
    return sqlglot.tokenize(create, read=DIALECT)[0].token_type is TokenType.CREATE


def has_query(create: str) -> bool:
    """Return whether the statement has a query, and doesn't only create a table."""
    try:
        return find_start_of_query(sqlglot.tokenize(create, read=DIALECT)) is not None
    except SqlglotError:
        return True


def find_copied_fields(
    schema: TopicSchema,
    columns: Mapping[str, Origin],
    sources: Callable[[str], TopicSchema | None],
    file: str,
) -> dict[str, Finding]:
    """Return the fields of a topic that are personal because of what a statement, in `file`, computes them
    from.
    """
    copied: dict[str, Finding] = {}
    names = [path for path in schema.fields if not re.search(r"[.\[{]", path)]
    for name in names:
        origin = columns.get(name, Origin(unknown="it is not among the columns of the query"))
        if origin.unknown:
            copied[name] = Finding(f"{file} doesn't show which fields it comes from: {origin.unknown}")
        else:
            copied = add_findings(copied, _find_inherited(name, origin, sources, file))
    return copied


def _find_inherited(
    name: str,
    origin: Origin,
    sources: Callable[[str], TopicSchema | None],
    file: str,
) -> Iterator[tuple[str, Finding]]:
    for topic, path in sorted(origin.fields):
        source = sources(topic)
        if source is None:
            yield name, Finding(f"{file} computes it from {topic}, whose schema isn't known")
            continue
        if path not in source.fields:
            yield (
                name,
                Finding(f"{file} computes it from {topic}.{path}, which isn't in the schema of {topic}"),
            )
        for personal in source.personal_inside_or_around(path):
            is_inside_copy = origin.copies == (topic, path) and is_inside(personal, path)
            inherited = name + personal.removeprefix(path) if is_inside_copy else name
            why = f"{file} computes it from {topic}.{personal}, which is personal"
            yield inherited, Finding(why, only_as_text=source.personal[personal].only_as_text)


def cut_query(create: str) -> tuple[str, list[str] | None]:
    """Return the query of a CREATE TABLE … AS or an INSERT INTO, and the names that it gives to the columns,
    if it does.

    Raises Unknown.
    """
    try:
        tokens = sqlglot.tokenize(create, read=DIALECT)
    except SqlglotError:
        raise Unknown("its text can't be read as SQL") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    start = find_start_of_query(tokens)
    if start is None or any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise Unknown("it isn't one CREATE TABLE … AS or INSERT INTO with a query")
    return _replace_window_functions(tokens[start:]), _read_listed_columns(tokens[:start])


def find_start_of_query(tokens: list[Token]) -> int | None:
    """Return where the query begins: after AS in a CREATE TABLE, else at the first SELECT or WITH outside
    parentheses.
    """
    creates = bool(tokens) and tokens[0].token_type is TokenType.CREATE
    depth = 0
    for index, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0 and creates and token.token_type is TokenType.ALIAS:
            return index + 1
        begins = token.token_type in (TokenType.SELECT, TokenType.WITH)
        if depth == 0 and not creates and begins and tokens[0].token_type is TokenType.INSERT:
            return index
    return None


def _read_listed_columns(head: list[Token]) -> list[str] | None:
    """Return the columns in the list after the table's name. Raises Unknown if an INSERT has none."""
    is_insert = head[0].token_type is TokenType.INSERT
    opening = next((index for index, token in enumerate(head) if token.token_type is TokenType.L_PAREN), None)
    if opening is None or any(token.text.upper() in _AFTER_COLUMNS for token in head[:opening]):
        if is_insert:
            raise Unknown("it inserts by position, without a list of columns")
        return None
    listed = itertools.takewhile(lambda token: token.token_type is not TokenType.R_PAREN, head[opening + 1 :])
    return [token.text for token in listed if token.token_type is not TokenType.COMMA]


def _replace_window_functions(tokens: list[Token]) -> str:
    """Return the query's text, with `TABLE(TUMBLE(TABLE x, …))` replaced by x with the columns that the
    function adds.
    """
    parts: list[str] = []
    index = 0
    while index < len(tokens):
        if end := _find_end_of_window_function(tokens, index):
            added = ", ".join(f"CAST(NULL AS TIMESTAMP) AS {name}" for name in _WINDOW_COLUMNS)
            table = _read_input_table(tokens[index + 3 : end])
            parts.append(f"(SELECT *, {added} FROM {table})")  # noqa: S608 - it is parsed, and never run
            index = end
        else:
            parts.append(_write_token(tokens[index]))
            index += 1
    return " ".join(parts)


def is_window_column(name: str, expression: exp.Expr) -> bool:
    """Return whether the column stands for one that a windowing function adds."""
    return (
        name in _WINDOW_COLUMNS and isinstance(expression, exp.Cast) and isinstance(expression.this, exp.Null)
    )


def _find_end_of_window_function(tokens: list[Token], start: int) -> int | None:
    names = [token.text.upper() for token in tokens[start : start + 3]]
    if names[:2] != ["TABLE", "("] or names[-1] not in _WINDOW_FUNCTIONS:
        return None
    depth = 0
    for index in range(start + 1, len(tokens)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[index].token_type, 0)
        if depth == 0:
            return index + 1
    return None


def _read_input_table(tokens: list[Token]) -> str:
    """Return the name after TABLE among the arguments of a windowing function. Raises Unknown."""
    start = next(
        (index for index, token in enumerate(tokens, 1) if token.token_type is TokenType.TABLE), None
    )
    if start is None:
        raise Unknown("the input of its windowing function can't be read")
    name = [tokens[start]]
    while start + 2 < len(tokens) and tokens[start + 1].token_type is TokenType.DOT:
        start += 2
        name.append(tokens[start])
    return ".".join(f"`{part.text}`" for part in name)


def _write_token(token: Token) -> str:
    if token.token_type is TokenType.STRING:
        return "'" + token.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"`{token.text}`" if token.token_type is TokenType.IDENTIFIER else token.text


def build_query_scope(query: str, columns: Callable[[str], list[str] | None]) -> Scope:
    """Return the query with every column qualified and every star expanded, as far as that can be known.

    Raises Unknown.
    """
    tree = sqlglot.parse_one(query, read=DIALECT)
    if not isinstance(tree, exp.Query) or tree.find(exp.MatchRecognize):
        raise Unknown("its query can't be followed")
    for table in tree.find_all(exp.Table):
        if table.db:
            # A table of another database may have the name of a topic, and other fields.
            raise Unknown(
                f"the name of {table.name} has a database. If it is that of the deployment, leave it out"
            )
    names = {table.name for table in tree.find_all(exp.Table)}
    columns_by_table: dict[str, object] = {
        name: dict.fromkeys(table_columns, "unknown")
        for name in names
        if (table_columns := columns(name)) is not None
    }
    schema = MappingSchema(columns_by_table, dialect=DIALECT)
    qualified = qualify(
        tree,
        schema=schema,
        dialect=DIALECT,
        validate_qualify_columns=False,
        quote_identifiers=False,
    )
    scope = build_scope(qualified)
    if scope is None:
        raise Unknown("its query can't be followed")
    return scope


def _trace_outputs(scope: Scope, within: frozenset[int]) -> dict[str, Origin]:
    """Return the origins of a query's columns.

    `within` are the queries around it: a recursive one is unknown.
    """
    if id(scope) in within:
        raise Unknown("its query is recursive")
    within |= {id(scope)}
    if branches := scope.set_operation_scopes:
        left, right = (_trace_outputs(branch, within) for branch in branches)
        if len(left) != len(right):
            raise Unknown("the branches of a UNION differ")
        return {
            name: _merge_origins(first, second)
            for (name, first), second in zip(left.items(), right.values(), strict=True)
        }
    if not isinstance(scope.expression, exp.Select) or scope.expression.is_star:
        raise Unknown("the columns of a * in its query can't be known")
    outputs: dict[str, Origin] = {}
    for selected in scope.expression.selects:
        name = selected.alias_or_name
        origin = _trace_expression(selected.unalias(), scope, within)
        # Of several columns with one name, any may be meant.
        outputs[name] = _merge_origins(outputs[name], origin) if name in outputs else origin
    return outputs


def _merge_origins(first_origin: Origin, second_origin: Origin) -> Origin:
    copies = first_origin.copies if first_origin.copies == second_origin.copies else None
    return Origin(
        first_origin.fields | second_origin.fields, copies, first_origin.unknown or second_origin.unknown
    )


def _trace_expression(expression: exp.Expr, scope: Scope, within: frozenset[int]) -> Origin:
    column, path = read_path(expression)
    if column is not None:
        return _trace_column(column, path, scope, within)
    result = Origin()
    for node in expression.walk(prune=lambda node: isinstance(node, _FOLLOWED)):
        if isinstance(node, exp.Query):
            result = _merge_origins(result, Origin(unknown="a subquery computes it"))
        elif isinstance(node, exp.Window):
            result = _merge_origins(result, _trace_expression(node.this, scope, within))
        elif isinstance(node, exp.Dot | exp.Column):
            result = _merge_origins(result, _trace_dotted(node, scope, within))
        elif isinstance(node, exp.Anonymous) and node.name.lower() not in PLAIN_FUNCTIONS:
            result = _merge_origins(result, Origin(unknown=f"function {node.name} computes it"))
    return result


def _trace_dotted(node: exp.Expr, scope: Scope, within: frozenset[int]) -> Origin:
    column, path = read_path(node)
    if column is not None:
        return _trace_column(column, path, scope, within)
    if not isinstance(node.expression, exp.Identifier):
        return Origin(unknown="a function of another database computes it")
    return _trace_expression(node.this, scope, within)  # a field of what an expression returns


def read_path(expression: exp.Expr) -> tuple[exp.Column | None, list[str]]:
    """Return the column and the names of the fields after it, if the expression is nothing else."""
    names: list[str] = []
    while isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        names.insert(0, expression.expression.name)
        expression = expression.this
    return (expression, names) if isinstance(expression, exp.Column) else (None, names)


def _trace_column(column: exp.Column, path: list[str], scope: Scope, within: frozenset[int]) -> Origin:
    if column.name == _ROWTIME:
        return Origin()
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table):
        field = (source.name, ".".join([column.name, *path]))
        return Origin(frozenset({field}), field)
    if not isinstance(source, Scope):
        return Origin(unknown=f"{column.name} can't be found in its sources")
    if isinstance(source.expression, exp.Select | exp.SetOperation):
        origin = _trace_outputs(source, within).get(
            column.name, Origin(unknown=f"{column.name} can't be found in its sources")
        )
        return _narrow_origin(origin, path)
    return _trace_table_function(source.expression, scope, within)


def _narrow_origin(origin: Origin, path: list[str]) -> Origin:
    """Return the origin of a field inside what has the origin."""
    if not path or origin.copies is None or len(origin.fields) != 1:
        return origin
    topic, outer = origin.copies
    field = (topic, ".".join([outer, *path]))
    return Origin(frozenset({field}), field, origin.unknown)


def _trace_table_function(expression: exp.Expr, scope: Scope, within: frozenset[int]) -> Origin:
    """Return the origin of what UNNEST makes of an array; other functions are unknown."""
    function = expression.this if isinstance(expression, exp.Lateral) else expression
    if not isinstance(function, exp.Unnest):
        return Origin(unknown="a table function computes it")
    result = Origin()
    for argument in function.expressions:
        result = _merge_origins(result, _trace_expression(argument, scope, within))
    return result
