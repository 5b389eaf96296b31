"""Whether a Flink statement can be edited in place, read from its SQL.

Confluent starts a new statement where an old one stopped (`sql.tables.initial-offset-from`) if the statement
is stateless: if it processes each record by itself, and in any order. Aggregates, windows, LAG, pattern
matching, deduplication, joins and upsert sinks are not (docs.confluent.io, "Carry-over Offsets"). Confluent
decides it for itself, but only when the statement starts; here it is decided before anything is stopped. What
is not proved to be stateless counts as stateful.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from config.deployments.lineage import DIALECT, PLAIN_FUNCTIONS, find_start_of_query
from config.deployments.sources import StatementText

#: The parts of a query that need no record but their own, and what each may have.
_PARTS: Final[dict[type[exp.Expr], frozenset[str]]] = {
    exp.Select: frozenset({"expressions", "from_", "joins", "where", "with_"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.Union: frozenset({"this", "expression", "with_"}),
    exp.Unnest: frozenset({"expressions", "alias"}),
    exp.With: frozenset({"expressions"}),
}
#: Where such a part may be.
_PLACES: Final[dict[type[exp.Expr], type[exp.Expr]]] = {exp.Subquery: exp.From, exp.Unnest: exp.Join}
#: sqlglot's names for Flink's scalar functions that aren't in PLAIN_FUNCTIONS.
_KNOWN_FUNCTIONS: Final = frozenset(
    """
    abs acos array_to_string asin atan atan2 case cast cos cosh cot current_date current_time
    current_timestamp day_of_month day_of_week day_of_year decode_case degrees ends_with exp extract hour
    j_s_o_n_object ln localtime localtimestamp log map minute month pad pi radians regexp_split second sha
    sign sin sinh sqrt starts_with str_position str_to_time str_to_unix tan tanh time_str_to_time time_to_str
    timestamp_add trunc try_cast ts_or_ds_add ts_or_ds_to_date unix_to_str uuid var_map week year
    """.split()
)
#: Other expressions besides functions.
_PLAIN: Final = (
    exp.Alias, exp.Between, exp.Binary, exp.Boolean, exp.Bracket, exp.Column, exp.CTE, exp.DataType,
    exp.DataTypeParam, exp.From, exp.Identifier, exp.Interval, exp.Literal, exp.Null, exp.Star,
    exp.TableAlias, exp.Tuple, exp.Unary, exp.Var, exp.Where,
)  # fmt: skip
#: Session properties that decide where a statement begins to read, or whether it ends.
_OF_READING: Final = ("sql.tables.scan.", "sql.tables.initial-offset-from", "sql.snapshot.")


class Stateful(Exception):
    """The statement can't be edited in place. The message is the reason, as part of a sentence."""


@attrs.frozen
class InPlaceEdit:
    """What the next version of a statement, and the check before it, need.

    `insert` fills the same table with the statement's query. An edit in place keeps `columns` (apart from
    their order), `reads` (the topics that the query reads) and `head` (the text before the query).
    """

    insert: str
    columns: tuple[str, ...]
    reads: tuple[str, ...]
    head: str


def find_in_place_edit(text: StatementText) -> InPlaceEdit | None:
    """Return what an edit in place needs, None unless the statement is proved to be stateless."""
    try:
        return read_in_place_edit(text)
    except Stateful:
        return None


def read_in_place_edit(text: StatementText) -> InPlaceEdit:
    """Return what an edit in place needs. Raises Stateful unless the statement is proved to be stateless."""
    for name in text.properties:
        if name.startswith(_OF_READING):
            raise Stateful(f"its property {name} decides where it begins to read")
    head, query = _cut(text)
    try:
        tree = sqlglot.parse_one(query, read=DIALECT)
    except SqlglotError:
        raise Stateful("its query can't be read") from None
    _require_stateless(tree)
    if not isinstance(tree, exp.Select | exp.Union):
        raise Stateful("its query can't be read")
    columns = tuple(selected.alias_or_name for selected in tree.selects)
    if {"*", ""} & {*columns} or len(set(columns)) != len(columns):
        raise Stateful("its query doesn't name each column. Write the columns instead of *, each with a name")
    common = {expression.alias for expression in tree.find_all(exp.CTE)}
    tables = (".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table))
    reads = set(tables) - common
    listed = ", ".join(f"`{column}`" for column in columns)
    return InPlaceEdit(
        f"INSERT INTO `{text.table}` ({listed})\n{query}", columns, tuple(sorted(reads)), head.strip()
    )


def _cut(text: StatementText) -> tuple[str, str]:
    """Return a CREATE TABLE … AS up to AS, and its query. Raises Stateful."""
    try:
        tokens = sqlglot.tokenize(text.create, read=DIALECT)
    except SqlglotError:
        raise Stateful("its text can't be read as SQL") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    start = find_start_of_query(tokens)
    is_one = all(token.token_type is not TokenType.SEMICOLON for token in tokens)
    if not text.table or start is None or start >= len(tokens) or not is_one:
        raise Stateful("it isn't a CREATE TABLE … AS with a query")
    if "/*+" in text.create:
        raise Stateful("it has a hint")
    _require_append_table(tokens[: start - 1], text)
    query = text.create[tokens[start].start : tokens[-1].end + 1]
    return text.create[: tokens[start - 1].start], query


def _require_append_table(head: list[Token], text: StatementText) -> None:
    """Raise Stateful if the table may be filled by upserts or retractions, or is in another database."""
    words = [token.text.upper() for token in head]
    if any(word.startswith("PRIMARY") for word in words):
        raise Stateful("its table has a primary key, so that rows replace others")
    if text.options.get("changelog.mode") != "append":
        raise Stateful("its table doesn't say 'changelog.mode' = 'append'")
    name = words.index(text.table.upper())
    if any(token.token_type is TokenType.DOT for token in head[: name + 1]):
        raise Stateful("the name of its table has a database")


def _require_stateless(tree: exp.Expr) -> None:
    """Raise Stateful unless each part of the query needs no record but its own."""
    for node in tree.walk():
        for problem in _find_problems(node):
            raise Stateful(problem)


def _find_problems(node: exp.Expr) -> Iterator[str]:
    if type(node) in _PARTS:
        yield from _find_part_problems(node)
    elif isinstance(node, exp.Join):
        yield from _find_join_problems(node)
    elif isinstance(node, exp.Func):
        yield from _find_function_problems(node)
    elif isinstance(node, exp.In):
        if node.args.get("query"):
            yield "its query has a subquery in an expression"
    elif not isinstance(node, _PLAIN):
        yield f"its query has {type(node).__name__.upper()}"


def _find_part_problems(node: exp.Expr) -> Iterator[str]:
    parts = {name for name, value in node.args.items() if value}
    for part in sorted(parts - _PARTS[type(node)]):
        yield f"its query has {part.strip('_').upper()}"
    if isinstance(node, exp.Select) and "from_" not in parts:
        yield "its query has a SELECT without FROM, whose row would be written again"
    place = _PLACES.get(type(node), exp.Expr)
    if not isinstance(node.parent, place | None):
        yield f"its query has {type(node).__name__.upper()} in another place than {place.__name__.upper()}"


def _find_join_problems(node: exp.Join) -> Iterator[str]:
    """Yield a problem unless the join only flattens an array of its own row."""
    condition = node.args.get("on")
    always = condition is None or (isinstance(condition, exp.Boolean) and condition.this is True)
    is_known = not {name for name, value in node.args.items() if value} - {"this", "kind", "side", "on"}
    if not (isinstance(node.this, exp.Unnest) and always and is_known):
        yield "its query has a join"


def _find_function_problems(node: exp.Func) -> Iterator[str]:
    if isinstance(node, exp.AggFunc):
        yield f"its query has the aggregate {node.sql_name()}"
        return
    if isinstance(node, exp.Connector | exp.Binary | exp.If):
        return
    names = {node.name.lower()} if isinstance(node, exp.Anonymous) else {*map(str.lower, node.sql_names())}
    if not names & (PLAIN_FUNCTIONS | _KNOWN_FUNCTIONS):
        shown = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        yield f"its query has the function {shown}, which may need state"
