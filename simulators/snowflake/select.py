"""SELECT: resolves names and checks privileges as Snowflake does; DuckDB computes the rows.

A view runs with the rights of its owner: whoever may select from it needs no privilege on its tables
(docs.snowflake.com, "Overview of Views").
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError, TokenError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from simulators.snowflake import functions, readable
from simulators.snowflake.errors import COMPILATION, SqlError, not_simulated, syntax
from simulators.snowflake.model import TableColumn, View
from simulators.snowflake.readable import Source
from simulators.snowflake.results import Column, Result, from_arrow
from simulators.snowflake.session import Session

_DIALECT: Final = "snowflake"
_SESSION_FUNCTION: Final = re.compile(
    r"(SYSTEM\$\w+|CURRENT_\w+|GET_DDL)(\(.*\))?", re.DOTALL | re.IGNORECASE
)


def run(session: Session, text: str, bindings: dict[str, Any]) -> Result:
    tree = _parse(text)
    _bind(tree, bindings)
    _name_columns(tree)
    _replace_session_functions(session, tree)
    sources: dict[str, Source] = {}
    _replace_tables(session, tree, sources)
    if sources:
        session.get_running_warehouse()
    elif literals := _select_literals(tree):
        return literals
    _qualify_columns(tree, sources)
    return _execute(tree, sources)


def list_view_columns(session: Session, query: str) -> tuple[TableColumn, ...]:
    """Return the columns of a query that a view is to have. Raises SqlError if the session may not run it."""
    tree = _parse(query)
    _name_columns(tree)
    sources: dict[str, Source] = {}
    _replace_tables(session, tree, sources)
    _qualify_columns(tree, sources)
    known_types: dict[str, str] = {}
    for source in sources.values():
        known_types |= source.column_types
    names = tree.named_selects
    if len(set(names)) != len(names):
        raise SqlError("002025", "42S21", f"{COMPILATION}duplicate column name")
    return tuple(TableColumn(name, known_types.get(name, "VARIANT")) for name in names)


def _parse(text: str) -> exp.Query:
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=_DIALECT) if tree is not None]
    except (ParseError, TokenError) as error:
        raise syntax(f"syntax error: {str(error).splitlines()[0]}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise syntax("syntax error: not a query")
    return trees[0]


def _bind(tree: exp.Query, bindings: dict[str, Any]) -> None:
    """Replace each placeholder ? with the value bound to its number, which starts at 1."""
    for number, placeholder in enumerate(list(tree.find_all(exp.Placeholder)), 1):
        binding = bindings.get(str(number))
        if binding is None:
            raise SqlError("002049", "42601", f"{COMPILATION}Bind variable ? not set.")
        value = binding["value"]
        if value is None:
            placeholder.replace(exp.Null())
        elif binding["type"] in ("FIXED", "REAL"):
            placeholder.replace(exp.Literal.number(value))
        else:
            placeholder.replace(exp.Literal.string(value))


def _name_columns(tree: exp.Query) -> None:
    """Give each expression without an alias its SQL text as an alias."""
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_name_projection(projection) for projection in select.expressions])


def _name_projection(projection: exp.Expr) -> exp.Expr:
    if isinstance(projection, exp.Alias | exp.Star | exp.Column) or projection.is_star:
        return projection
    return exp.alias_(projection, projection.sql(dialect=_DIALECT).upper(), quoted=True)


def _replace_session_functions(session: Session, tree: exp.Query) -> None:
    """Replace context and system functions with their values."""
    for node in list(tree.find_all(exp.Func, exp.Column)):
        name = _SESSION_FUNCTION.fullmatch(node.sql(dialect=_DIALECT))
        if name is None or (isinstance(node, exp.Column) and name[1].upper() not in functions.FUNCTIONS):
            continue
        arguments = [
            argument.name
            for argument in node.args.get("expressions") or []
            if isinstance(argument, exp.Literal)
        ]
        value = functions.call(session, name[1].upper(), arguments)
        literal = exp.Null() if value is None else exp.Literal.string(value)
        node.replace(literal)


def _select_literals(tree: exp.Query) -> Result | None:
    """Return the result of a query that selects only literals, which DuckDB needn't run; None for other
    queries.
    """
    projections = tree.expressions if isinstance(tree, exp.Select) else []
    clauses = {name for name, value in tree.args.items() if value} - {"expressions", "kind"}
    values = [projection.unalias() for projection in projections]
    if clauses or not values or not all(isinstance(value, exp.Literal | exp.Null) for value in values):
        return None
    names = [_normalize_identifier(projection.args["alias"]) for projection in projections]
    columns = tuple(_describe_literal(name, value) for name, value in zip(names, values, strict=True))
    row = [value.name if isinstance(value, exp.Literal) else None for value in values]
    return Result(columns, [row])


def _describe_literal(name: str, value: exp.Expr) -> Column:
    if isinstance(value, exp.Literal) and not value.is_string:
        return Column(name, "fixed", len(value.name), len(value.name.partition(".")[2]))
    return Column(name)


def _replace_tables(session: Session, tree: exp.Query, sources: dict[str, Source]) -> None:
    """Replace the names of tables with short ones, and add the tables to `sources` by short name. Replace the
    name of a view with its query, whose tables are read with the rights of the view's owner.
    """
    common = {_normalize_identifier(expression.args["alias"].this) for expression in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        if not isinstance(node.this, exp.Identifier) or node.args.get("joins"):
            raise not_simulated(f"reading from {node.sql(dialect=_DIALECT)}")
        name = tuple(_normalize_identifier(part) for part in node.parts)
        if len(name) == 1 and name[0] in common:
            continue
        found = readable.find(session, name)
        if node.args.get("when"):
            raise not_simulated(f"reading from {node.sql(dialect=_DIALECT)}")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name[-1], quoted=True))
        if isinstance(found, View):
            node.replace(exp.Subquery(this=_expand_view(session, found, sources), alias=alias))
            continue
        short_name = f"table {len(sources)}"
        sources[short_name] = found
        node.replace(exp.Table(this=exp.to_identifier(short_name, quoted=True), alias=alias))


def _expand_view(session: Session, view: View, sources: dict[str, Source]) -> exp.Query:
    tree = _parse(view.query)
    _name_columns(tree)
    owner = attrs.evolve(session.user, secondary_roles=False)
    database, schema, _ = view.name
    as_owner = Session(session.account, owner, view.owner, database=database, schema=schema)
    _replace_tables(as_owner, tree, sources)
    return tree


def _normalize_identifier(identifier: Any) -> str:
    name = str(identifier.name)
    return name if identifier.args.get("quoted") else name.upper()


def _qualify_columns(tree: exp.Query, sources: dict[str, Source]) -> None:
    """Qualify the columns with their tables. Raises SqlError 000904 for a column that doesn't exist."""
    names_by_lower_case: dict[str, str] = {}
    for source in sources.values():
        if source.keeps_case:
            names_by_lower_case |= {name.lower(): name for name in source.column_types}
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
        if exact := names_by_lower_case.get(column.name.lower()):
            column.set("this", exp.to_identifier(exact, quoted=True))
    schema = MappingSchema(
        {name: dict.fromkeys(source.column_types, "VARIANT") for name, source in sources.items()},
        normalize=False,
    )
    try:
        qualify(tree, dialect=_DIALECT, schema=schema)
    except (OptimizeError, SqlglotError) as error:
        raise _build_unresolved_error(str(error)) from None


def _build_unresolved_error(message: str) -> SqlError:
    name = re.search(
        r"Column '\"?(?:[^']*\.)?\"?([^'\"]+)\"?' could not be resolved|Unknown column: (.+?)\.?$", message
    )
    if name is None:
        return syntax(f"error: {message.splitlines()[0]}")
    return SqlError(
        "000904",
        "42000",
        f"{COMPILATION}error line 1 at position 7\ninvalid identifier '{name[1] or name[2]}'",
    )


def _execute(tree: exp.Query, sources: dict[str, Source]) -> Result:
    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as engine:
        for short_name, source in sources.items():
            engine.register(short_name, source.read_rows().rename_columns(list(source.column_types)))
        try:
            answer = engine.execute(tree.sql(dialect="duckdb")).to_arrow_table()
        except duckdb.Error as error:
            raise not_simulated(f"this query (DuckDB: {str(error).splitlines()[0]})") from None
    return from_arrow(answer)
