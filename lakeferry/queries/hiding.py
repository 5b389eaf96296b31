"""Hide what is personal from a query: find the tables that a SELECT reads, and what people may see of each.

For Athena, each table in the text is replaced by a SELECT of the columns that people may see. This keeps
readers from seeing personal data by accident; who has the rights to the files can still read them. Snowflake
and Lake Formation refuse the columns themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from config.deployments.confluent_model import Topic
from config.deployments.shown_columns import Shown, ShownColumns, Unshown, find_shown_columns
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.output import Output

RAW: Final = "Give --raw to see all columns, if your rights allow it"
#: Iceberg's tables about a table that have no values of its columns. `$files` and `$partitions` have the
#: lowest and highest ones.
_WITHOUT_VALUES: Final = ("snapshots", "history", "refs", "manifests")
_INFORMATION_SCHEMA: Final = "information_schema"


@attrs.frozen
class Hiding:
    """What people may see of the deployment's tables, by name in lower case.

    `databases` are those whose tables are meant. Every table of `open_databases` is shown: exports write
    their aggregates there, which have no field that a contract leaves out.
    """

    tables: Mapping[str, ShownColumns]
    databases: Sequence[str] = ()
    open_databases: Sequence[str] = ()


@attrs.frozen
class Named:
    """A table that a SELECT names, with what people may see of it."""

    node: exp.Table
    name: str
    shown: Shown


def describe_tables(ctx: DeploymentContext, name: Callable[[Topic], str | None]) -> dict[str, ShownColumns]:
    """Return what people may see of each table that `name` has a name for."""
    tables: dict[str, ShownColumns] = {}
    for topic in ctx.deployment.tables:
        if table := name(topic):
            tables[table.lower()] = find_shown_columns(topic, ctx.loaded.sources, ctx.deployment)
    return tables


def find_named(sql: str, dialect: str, hiding: Hiding) -> tuple[exp.Expr, list[Named]]:
    """Return the parsed SELECT and the tables in it that have columns to hide.

    Raises CommandFailed for a table of which people may see nothing, or of which nothing is known.
    """
    tree = _parse(sql, dialect)
    tables = [_look_up(node, hiding) for node in _list_real_tables(tree)]
    return tree, [table for table in tables if table]


def restrict(sql: str, dialect: str, hiding: Hiding, list_columns: Callable[[str], Sequence[str]]) -> str:
    """Return the SELECT with each table replaced by one of its columns that people may see.

    `list_columns` returns the columns that a table has. Raises CommandFailed.
    """
    tree, named = find_named(sql, dialect, hiding)
    for table in named:
        allowed = {column.lower() for column in table.shown.columns}
        columns = [column for column in list_columns(table.name) if column.lower() in allowed]
        if not columns:
            raise CommandFailed("QUERY-HIDDEN", f"{table.name} has no column that people may see", RAW)
        alias = table.node.args.get("alias")
        plain = table.node.copy()
        plain.set("alias", None)
        chosen = exp.select(*[exp.column(column, quoted=True) for column in columns]).from_(plain)
        own_name = exp.TableAlias(this=exp.to_identifier(table.node.name, quoted=True))
        table.node.replace(exp.Subquery(this=chosen, alias=alias.copy() if alias else own_name))
    return tree.sql(dialect=dialect) if named else sql


def tell(output: Output, hidden: Mapping[str, Mapping[str, str]]) -> None:
    """Say which columns the answer leaves out."""
    for table, reasons in hidden.items():
        if reasons:
            output.info(f"hidden in {table}: {', '.join(reasons)}. {RAW}")


def list_hidden(named: Sequence[Named]) -> dict[str, dict[str, str]]:
    return {table.name: table.shown.hidden for table in named}


def _parse(sql: str, dialect: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except SqlglotError as error:
        reason = " ".join(str(error).split(".")[0].split())
        raise CommandFailed(
            "QUERY-HIDDEN", f"which tables the text reads can't be seen: {reason}", RAW
        ) from None


def _list_real_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the nodes that name tables, and not a WITH clause. Raises CommandFailed for a table function, and
    for a name of which this can't be told.
    """
    scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
    in_scopes = {id(node) for scope in scopes for node in scope.tables}
    for node in tree.find_all(exp.Table):
        if id(node) not in in_scopes or not isinstance(node.this, exp.Identifier):
            raise CommandFailed(
                "QUERY-HIDDEN", f"{node.sql()} isn't the name of a table, and may show hidden columns", RAW
            )
    for scope in scopes:
        for node in scope.tables:
            if node.db or not isinstance(scope.sources.get(node.alias_or_name), Scope):
                yield node


def _look_up(node: exp.Table, hiding: Hiding) -> Named | None:
    """Return the table if it has columns to hide, None for one that has none. Raises CommandFailed."""
    database = node.db.lower()
    if database == _INFORMATION_SCHEMA or database in hiding.open_databases:
        return None
    table, _, about = node.name.lower().partition("$")
    shown = hiding.tables.get(table)
    if (database and database not in hiding.databases) or shown is None:
        raise CommandFailed(
            "QUERY-HIDDEN",
            f"{node.sql()} is not a table of the deployment file, and nobody knows what is personal in it",
            RAW,
        )
    if isinstance(shown, Unshown):
        raise CommandFailed("QUERY-HIDDEN", f"{table} is hidden: {shown.reason}", RAW)
    if about in _WITHOUT_VALUES:
        return None
    if about:
        raise CommandFailed("QUERY-HIDDEN", f"{table}${about} has values of hidden columns", RAW)
    return Named(node, table, shown)
