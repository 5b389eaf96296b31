"""SELECT: names resolved as Athena's engine does, the rows computed by DuckDB."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from simulators.aws.athena import metadata, scanning, types
from simulators.aws.athena.catalog import Lake
from simulators.aws.athena.outcomes import (
    COLUMN_NOT_FOUND,
    NOT_SIMULATED,
    TABLE_NOT_FOUND,
    Asked,
    Cancelled,
    Failed,
    Rows,
)
from simulators.aws.athena.parsing import DIALECT

_CATALOG: Final = "awsdatacatalog"
_UNKNOWN: Final = re.compile(r"Column '(?:[^']*\.)?\"?([^'\"]+)\"?' could not be resolved|Unknown column: \"?([^\".]+)")
_SCAN_LIMIT: Final = "Bytes scanned limit was exceeded"


@attrs.frozen
class Source:
    """A table in the statement; `kind` is what follows the $ in its name."""

    table: StaticTable
    kind: str
    snapshot: int | None

    def columns(self) -> dict[str, str]:
        """Types by name, in the engine's words."""
        if self.kind:
            return {each.name: "unknown" for each in metadata.schema_of(self.kind) or []}
        return {name.lower(): types.engine_type(kind) for name, kind in self._fields()}

    def actual(self, wanted: set[str]) -> list[str]:
        """The table's own names of these columns: at least one, because a scan of none has no rows."""
        named = [name for name, _ in self._fields() if name.lower() in wanted]
        return named or [name for name, _ in self._fields()][:1]

    def _fields(self) -> list[tuple[str, Any]]:
        return [(field.name, field.field_type) for field in self.table.schema().fields]


def run(asked: Asked, tree: exp.Query, lake: Lake) -> Rows:
    """Raises Failed and Cancelled."""
    sources = _sources(asked, tree, lake)
    _name_columns(tree)
    resolved = _resolved(tree, {short: source.columns() for short, source in sources.items()})
    wanted = {column.name for column in resolved.find_all(exp.Column)}
    tables, scanned = _read(sources, wanted, asked.cutoff)
    with duckdb.connect(config={"threads": 1, "enable_external_access": False}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for short, table in tables.items():
            engine.register(short, table)
        fraction = 3 if sources and all(source.kind for source in sources.values()) else 6
        return _computed(engine, resolved.sql(dialect="duckdb"), scanned, fraction)


def _sources(asked: Asked, tree: exp.Query, lake: Lake) -> dict[str, Source]:
    """By the short names that they have in the statement from now on."""
    found: dict[str, Source] = {}
    common = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        if not isinstance(node.this, exp.Identifier):
            raise Failed(f"{NOT_SIMULATED}: reading from {node.sql(dialect=DIALECT)}")
        name = [part.name.lower() for part in node.parts]
        if len(name) == 1 and name[0] in common:
            continue
        short = f"table {len(found)}"
        found[short] = _source(asked, node, name, lake)
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name[-1], quoted=True))
        node.set("alias", alias)
        node.set("this", exp.to_identifier(short, quoted=True))
        for part in ("db", "catalog", "version"):
            node.set(part, None)
    return found


def _source(asked: Asked, node: exp.Table, name: list[str], lake: Lake) -> Source:
    place = node.parts[0].meta
    where = f"line {place.get('line', 1)}:{place.get('col', 1) - (place.get('end', 0) - place.get('start', 0))}: "
    *given, base = name
    of_catalog = given[-2] if len(given) > 1 else asked.catalog.lower()
    database = given[-1] if given else asked.database.lower()
    if of_catalog != _CATALOG:
        raise Failed(f"CATALOG_NOT_FOUND: {where}Catalog '{of_catalog}' does not exist")
    if not database:
        raise Failed(f"MISSING_SCHEMA_NAME: {where}Schema must be specified when session schema is not set")
    if database == "information_schema":
        raise Failed(f"{NOT_SIMULATED}: views of information_schema")
    base, _, kind = base.partition("$")
    table = lake.table(database, base, where)
    if kind and metadata.schema_of(kind) is None:
        raise Failed(f"{TABLE_NOT_FOUND}: {where}Table '{_CATALOG}.{database}.{name[-1]}' does not exist (or is not simulated)")
    return Source(table, kind, _snapshot(table, node.args.get("version")))


def _snapshot(table: StaticTable, version: Any) -> int | None:
    """The one that FOR VERSION AS OF or FOR TIMESTAMP AS OF means; None is the current one."""
    if version is None:
        return None
    given = version.args["expression"]
    if version.name.upper() == "VERSION":
        number = table.metadata.refs[given.name].snapshot_id if given.name in table.metadata.refs else int(given.name)
        if table.snapshot_by_id(number) is None:
            raise Failed(f"INVALID_ARGUMENTS: Iceberg snapshot ID does not exists: {number}")
        return number
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        moment = engine.execute(f"SELECT epoch_ms(CAST({given.sql(dialect='duckdb')} AS TIMESTAMPTZ))").fetchall()[0][0]
    found = table.snapshot_as_of_timestamp(int(moment))
    if found is None:
        raise Failed(f"INVALID_ARGUMENTS: No version history table at or before {given.sql(dialect=DIALECT)}")
    return found.snapshot_id


def _name_columns(tree: exp.Query) -> None:
    """A column without a name is called by its place."""
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_named(each, number) for number, each in enumerate(select.expressions)])


def _named(projection: exp.Expr, number: int) -> exp.Expr:
    if isinstance(projection, exp.Alias | exp.Column | exp.Dot) or projection.is_star:
        return projection
    return exp.alias_(projection, f"_col{number}", quoted=True)


def _resolved(tree: exp.Query, columns: dict[str, dict[str, str]]) -> exp.Expr:
    """Raises Failed for a column that isn't there."""
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    schema = MappingSchema(dict(columns), dialect=DIALECT)
    try:
        return _exact(annotate_types(qualify(tree, dialect=DIALECT, schema=schema), schema=schema, dialect=DIALECT))
    except (OptimizeError, SqlglotError) as error:
        told = str(error)
    unknown = _UNKNOWN.search(told)
    if unknown is None:
        raise Failed(f"SYNTAX_ERROR: {told.splitlines()[0]}")
    place = re.search(r"Line: (\d+), Col: (\d+)", told)
    line, end = (int(place[1]), int(place[2])) if place else (1, 1)
    name = unknown[1] or unknown[2]
    raise Failed(f"{COLUMN_NOT_FOUND}: line {line}:{max(1, end - len(name) + 1)}: Column '{name}' cannot be resolved")


def _exact(tree: exp.Expr) -> exp.Expr:
    """Moments in microseconds all through: DuckDB compares those of one precision only."""
    for kind in tree.find_all(exp.DataType):
        if kind.is_type(*exp.DataType.TEMPORAL_TYPES):
            kind.set("expressions", [])
    return tree


def _read(sources: dict[str, Source], wanted: set[str], cutoff: int | None) -> tuple[dict[str, pa.Table], int]:
    """The tables' rows, and how many bytes they took."""
    read = {short: metadata.rows_of(source.kind, source.table) for short, source in sources.items() if source.kind}
    planned = {
        short: scanning.plan(source.table, source.actual(wanted), source.snapshot)
        for short, source in sources.items()
        if not source.kind
    }
    scanned = sum(scan.bytes for scan in planned.values())
    if cutoff is not None and scanned > cutoff:
        raise Cancelled(_SCAN_LIMIT)
    read |= {short: scan.rows() for short, scan in planned.items()}
    return read, scanned


def _computed(engine: duckdb.DuckDBPyConnection, sql: str, scanned: int, fraction: int) -> Rows:
    try:
        answer = engine.sql(sql)
        engine_types = [str(each) for each in answer.types]
        found = answer.to_arrow_table()
    except duckdb.Error as error:
        raise Failed(f"{NOT_SIMULATED}: this query (DuckDB: {str(error).splitlines()[0]})") from None
    columns = [types.column(field.name, field.type, own) for field, own in zip(found.schema, engine_types, strict=True)]
    texts = [[types.text(value.as_py(), value.type, fraction) for value in column] for column in found.columns]
    return Rows(columns, [list(row) for row in zip(*texts, strict=True)], scanned)
