"""Runs one Athena query, in its own process in the project's environment: `python -m simulators.aws.athena`.

The process has the caller's AWS credentials in its environment. DuckDB reads Iceberg tables of the Glue Data
Catalog with them, so IAM decides on every Glue and S3 call of a query, as it does for Athena. Standard input
and output carry lines of JSON:

    in   the fields of Query
    out  {"type": "DML", "subtype": "SELECT"}; or {"malformed": reason}, and the process ends
    in   any line, which starts the query
    out  {"state": "SUCCEEDED", "columns": …, "rows": …, "scanned": bytes}, or another state with a "reason"

The process ends when its standard input ends. Stricter than Athena, it runs only SELECT, SHOW TABLES and
DESCRIBE, on Iceberg tables and their "$snapshots".
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import boto3
import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import sqlglot
from botocore.exceptions import ClientError
from sqlglot import exp
from sqlglot.errors import SqlglotError

from simulators.aws.athena_sql import NOT_SIMULATED, Failed, describe_position, translate
from simulators.aws.athena_values import Column, describe_column, format_value
from simulators.core import control

_EXTENSIONS: Final = {
    "avro": duckdb_extension_avro,
    "httpfs": duckdb_extension_httpfs,
    "iceberg": duckdb_extension_iceberg,
}
_NAME: Final = r"[`\"]?({}[^`\"\s.;]+)[`\"]?"
_DATABASE = _NAME.format("?P<database>")
_TABLE = _NAME.format("?P<table>")
_SHOW_TABLES: Final = re.compile(rf"\s*SHOW\s+TABLES(?:\s+IN\s+{_DATABASE})?\s*;?\s*", re.IGNORECASE)
_DESCRIBE: Final = re.compile(rf"\s*(?:DESCRIBE|DESC)\s+(?:{_DATABASE}\.)?{_TABLE}\s*;?\s*", re.IGNORECASE)
#: The columns of "table$snapshots", from the table's metadata file.
_SNAPSHOTS: Final = """
SELECT
  make_timestamptz((s->>'timestamp-ms')::BIGINT * 1000) AS committed_at,
  (s->>'snapshot-id')::BIGINT AS snapshot_id,
  (s->>'parent-snapshot-id')::BIGINT AS parent_id,
  s->'summary'->>'operation' AS operation,
  s->>'manifest-list' AS manifest_list,
  map_from_entries(
    list_filter(map_entries((s->'summary')::MAP(VARCHAR, VARCHAR)), lambda e: e.key <> 'operation')
  ) AS summary
FROM (SELECT unnest((content->'snapshots')::JSON[]) AS s FROM read_text({location}))
"""


class Query(NamedTuple):
    """One StartQueryExecution.

    `output`: S3 URL of the result without suffix; `cutoff`: bytes; `put`: encryption.
    """

    sql: str
    database: str
    catalog: str
    output: str
    cutoff: int | None
    put: dict[str, str]


class Result(NamedTuple):
    """Values as text, None for NULL.

    The result of a SELECT is CSV with a header; that of SHOW and DESCRIBE is plain text.
    """

    columns: list[Column]
    rows: list[list[str | None]]
    scanned: int = 0
    header: bool = True


class Malformed(Exception):
    """Athena refuses the statement before it runs anything."""


def main() -> None:
    query = Query(**json.loads(sys.stdin.readline()))
    try:
        statement = parse(query.sql)
    except Malformed as malformed:
        _reply(malformed=str(malformed))
        return
    utility = isinstance(statement, re.Match)
    if utility:
        _reply(type="UTILITY", subtype="SHOW")
    else:
        _reply(type="DML", subtype="SELECT")
    if sys.stdin.readline():
        threading.Thread(target=_exit_when_stdin_ends, daemon=True).start()
        _reply(**_run_statement(query, statement))


def parse(sql: str) -> exp.Query | re.Match[str]:
    """Return the syntax tree of a SELECT, or the match of SHOW TABLES or DESCRIBE. Raises Malformed."""
    if match := _SHOW_TABLES.fullmatch(sql) or _DESCRIBE.fullmatch(sql):
        return match
    try:
        statements = [statement for statement in sqlglot.parse(sql, dialect="trino") if statement is not None]
    except SqlglotError as error:
        first = next(iter(getattr(error, "errors", [])), {"highlight": str(error).splitlines()[0]})
        raise Malformed(
            f"line {first.get('line', 1)}:{first.get('col', 1)}: mismatched input '{first['highlight']}'"
        ) from None
    if len(statements) > 1:
        raise Malformed(f"Only one sql statement is allowed. Got: {sql}")
    if not statements:
        raise Malformed("line 1:1: mismatched input '<EOF>'")
    if not isinstance(statements[0], exp.Query):
        raise Malformed(
            f"{NOT_SIMULATED}: {sql.split(maxsplit=1)[0].upper()}. Athena may accept this statement"
        )
    return statements[0]


def _exit_when_stdin_ends() -> None:
    sys.stdin.read()
    os._exit(1)


def _reply(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _run_statement(query: Query, statement: exp.Query | re.Match[str]) -> dict[str, Any]:
    try:
        engine = Engine(query)
        result = engine.show(statement) if isinstance(statement, re.Match) else engine.select(statement)
        if query.cutoff is not None and result.scanned > query.cutoff:
            return {"state": "CANCELLED", "reason": "Bytes scanned limit was exceeded"}
        _write_result(query, result)
    except Failed as failure:
        return {"state": "FAILED", "reason": str(failure)}
    except Exception as error:
        traceback.print_exc()
        return {"state": "FAILED", "reason": f"GENERIC_INTERNAL_ERROR: {type(error).__name__}: {error}"}
    return {"state": "SUCCEEDED", **result._asdict()}


class Engine:
    """Runs queries on tables of the Glue Data Catalog in DuckDB, with the environment's credentials.

    Methods raise Failed.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._glue: Any = boto3.client("glue")
        self._connection = duckdb.connect(
            config={"threads": 1, "autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        self._connection.execute("SET TimeZone = 'UTC'")
        for name, package in _EXTENSIONS.items():
            folder = Path(str(package.__file__)).parent / "extensions"
            self._connection.load_extension(str(next(folder.glob(f"*/{name}.duckdb_extension"))))
        self._create_secret("own", dict(os.environ), "s3://")
        self._connection.execute("SET disabled_filesystems = 'LocalFileSystem'")

    def _create_secret(self, name: str, environment: dict[str, str], scope: str) -> None:
        """Read what is below `scope` with the credentials of this environment."""
        key_id = _quote_literal(environment.get("AWS_ACCESS_KEY_ID", ""))
        secret = _quote_literal(environment.get("AWS_SECRET_ACCESS_KEY", ""))
        token = _quote_literal(environment.get("AWS_SESSION_TOKEN", ""))
        region = _quote_literal(os.environ.get("AWS_REGION", ""))
        endpoint = _quote_literal(urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc)
        self._connection.execute(
            f"CREATE OR REPLACE SECRET {name} (TYPE s3, SCOPE {_quote_literal(scope)}, KEY_ID {key_id}, "
            f"SECRET {secret}, SESSION_TOKEN {token}, REGION {region}, ENDPOINT {endpoint}, URL_STYLE path, "
            "USE_SSL false)"
        )

    def show(self, statement: re.Match[str]) -> Result:
        names = statement.groupdict()
        database = (names.get("database") or self._query.database).lower()
        if statement.re is _SHOW_TABLES:
            with _translate_glue_errors(f"Schema '{database}' does not exist"):
                pages = list(self._glue.get_paginator("get_tables").paginate(DatabaseName=database))
            tables = []
            for page in pages:
                tables += [str(entry["Name"]) for entry in page["TableList"]]
            columns = [Column("tab_name", "string")]
            return Result(columns, [[table] for table in sorted(tables)], header=False)
        metadata_file = self._find_metadata_file(database, names["table"].lower())
        shown = self._access(database, names["table"].lower(), metadata_file)
        column_types = self._create_view("described", metadata_file, snapshots=False, shown=shown)
        lines = [
            f"{name:20}\t{describe_column(name, kind).type:20}\t{'':20}"
            for name, kind in column_types.items()
        ]
        header = [Column(name, "string") for name in ("col_name", "data_type", "comment")]
        return Result(header, [[line] for line in lines], header=False)

    def select(self, tree: exp.Query) -> Result:
        schemas, only_snapshots = self._bind_tables(tree)
        self._connection.execute("PRAGMA enable_profiling = 'no_output'")
        self._connection.execute("""SET custom_profiling_settings = '{"TOTAL_BYTES_READ": "true"}'""")
        try:
            answer = self._connection.execute(translate(tree, schemas))
            column_types = [(str(column[0]), str(column[1])) for column in answer.description or []]
            rows = answer.fetchall()
        except duckdb.Error as error:
            raise _explain_failure(error) from None
        profile = json.loads(self._connection.get_profiling_information(format="json"))
        scanned = int(profile.get("total_bytes_read", 0))
        columns = [describe_column(name.lower(), kind) for name, kind in column_types]
        digits = 3 if only_snapshots else 6
        return Result(columns, [_format_row(row, columns, digits) for row in rows], scanned)

    def _bind_tables(self, tree: exp.Query) -> tuple[dict[str, dict[str, str]], bool]:
        """Replace each table by a view. Return each view's columns, and whether all tables are $snapshots."""
        schemas: dict[str, dict[str, str]] = {}
        kinds = set()
        common = {expression.alias.lower() for expression in tree.find_all(exp.CTE)}
        for node in list(tree.find_all(exp.Table)):
            if not isinstance(node.this, exp.Identifier) or node.args.get("version"):
                raise Failed(f"{NOT_SIMULATED}: reading from {node.sql(dialect='trino')}")
            name = [part.name.lower() for part in node.parts]
            if len(name) == 1 and name[0] in common:
                continue
            defaults = [self._query.catalog.lower(), self._query.database.lower()]
            catalog, database, base = [*defaults[: 3 - len(name)], *name]
            position = describe_position(node)
            if catalog != "awsdatacatalog":
                raise Failed(f"CATALOG_NOT_FOUND: {position}Catalog '{catalog}' does not exist")
            table, _, kind = base.partition("$")
            if kind not in ("", "snapshots"):
                raise Failed(f"{NOT_SIMULATED}: metadata table {name[-1]}")
            kinds.add(kind)
            view = f"table {len(schemas)}"
            metadata_file = self._find_metadata_file(database, table, position)
            shown = self._access(database, table, metadata_file, position)
            if kind and shown is not None:
                raise Failed(f"{NOT_SIMULATED}: metadata table {name[-1]} for who may select some columns")
            schemas[view] = self._create_view(view, metadata_file, snapshots=bool(kind), shown=shown)
            alias = exp.TableAlias(this=exp.to_identifier(name[-1], quoted=True))
            node.set("alias", node.args.get("alias") or alias)
            node.set("this", exp.to_identifier(view, quoted=True))
            node.set("db", None)
            node.set("catalog", None)
        return schemas, kinds == {"snapshots"}

    def _find_metadata_file(self, database: str, name: str, position: str = "") -> str:
        with _translate_glue_errors(f"{position}Schema '{database}' does not exist"):
            try:
                table = self._glue.get_table(DatabaseName=database, Name=name)["Table"]
            except self._glue.exceptions.EntityNotFoundException:
                self._glue.get_database(Name=database)
                raise Failed(
                    f"TABLE_NOT_FOUND: {position}Table 'awsdatacatalog.{database}.{name}' does not exist"
                ) from None
        parameters = table.get("Parameters") or {}
        if parameters.get("table_type", "").lower() != "iceberg" or not parameters.get("metadata_location"):
            raise Failed(f"{NOT_SIMULATED}: {database}.{name} is not an Iceberg table")
        return str(parameters["metadata_location"])

    def _access(self, database: str, table: str, metadata_file: str, position: str = "") -> list[str] | None:
        """Return the columns that Lake Formation lets the caller select, None for all. If the files are in a
        registered location, read them with its role from now on. Raise Failed if there are no columns.
        """
        asked = {"database": database, "table": table, "url": metadata_file}
        query = urlencode({**asked, "key": os.environ["AWS_ACCESS_KEY_ID"]})
        endpoint = os.environ["AWS_ENDPOINT_URL"]
        access = control.call(endpoint, "GET", f"/lake-formation/access?{query}")
        if "refused" in access:
            raise Failed(f"Insufficient Lake Formation permission(s): {access['refused']}")
        columns: list[str] | None = access["columns"]
        if columns == []:
            raise Failed(f"COLUMN_NOT_FOUND: {position}Relation contains no accessible columns")
        if access["credentials"]:
            bucket = urlsplit(metadata_file).netloc
            name = "of_" + re.sub(r"\W", "_", bucket)
            self._create_secret(name, access["credentials"], f"s3://{bucket}/")
        return columns

    def _create_view(
        self, name: str, location: str, *, snapshots: bool, shown: list[str] | None
    ) -> dict[str, str]:
        """Create the view. Return DuckDB's types by column name, in lower case as in Athena."""
        source = _SNAPSHOTS if snapshots else "SELECT * FROM iceberg_scan({location})"
        if shown is not None:
            names = ", ".join(_quote_literal(column) for column in shown)
            source = source.replace("*", f"COLUMNS(c -> lower(c) IN ({names}))")
        try:
            self._connection.execute(
                f'CREATE VIEW "{name}" AS {source.format(location=_quote_literal(location))}'
            )
            return {
                row[0].lower(): row[1] for row in self._connection.execute(f'DESCRIBE "{name}"').fetchall()
            }
        except duckdb.Error as error:
            raise _explain_failure(error) from None


@contextmanager
def _translate_glue_errors(not_found: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        message = error.response["Error"]["Message"]
        if code == "EntityNotFoundException":
            raise Failed(f"SCHEMA_NOT_FOUND: {not_found}") from None
        if code.startswith("AccessDenied"):
            raise Failed(f"Insufficient permissions to execute the query. {message}") from None
        raise Failed(f"HIVE_METASTORE_ERROR: {code}: {message}") from None


def _explain_failure(error: duckdb.Error) -> Failed:
    message = str(error)
    url = re.search(r"'https?://[^/]+/([^'?]+)", message)
    if url and "HTTP 403" in message:
        return Failed(f"PERMISSION_DENIED: Permission denied on S3 path: s3://{url[1]}")
    if url:
        return Failed(f"ICEBERG_CANNOT_OPEN_SPLIT: Error opening Iceberg split s3://{url[1]}")
    return Failed(f"{NOT_SIMULATED}: this query (DuckDB: {message.splitlines()[0]})")


def _format_row(row: Sequence[Any], columns: list[Column], digits: int) -> list[str | None]:
    return [_format_cell(value, column, digits) for value, column in zip(row, columns, strict=True)]


def _format_cell(value: Any, column: Column, digits: int) -> str | None:
    if value is None:
        return None
    if column.type == "float":
        return format_value(_shorten_float(value), digits)
    return format_value(value, digits)


def _shorten_float(value: float) -> float:
    """Return the number with the fewest digits that equals `value` as a 32-bit float."""
    numbers = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((number for number in numbers if struct.pack("f", number) == struct.pack("f", value)), value)


def _write_result(query: Query, result: Result) -> None:
    """Write the result and its .metadata file to S3.

    That file is JSON: Athena's own format is not documented.
    """
    extension = "csv" if result.header else "txt"
    url = f"{query.output}.{extension}"
    if result.header:
        header: list[str | None] = [column.name for column in result.columns]
        lines = [",".join(map(_quote_cell, row)) for row in (header, *result.rows)]
    else:
        lines = [str(row[0]) for row in result.rows]
    metadata = json.dumps({"ColumnInfo": [column._asdict() for column in result.columns]})
    parts = urlsplit(url)
    s3: Any = boto3.client("s3")
    for suffix, body in (("", "".join(f"{line}\n" for line in lines)), (".metadata", metadata)):
        try:
            s3.put_object(
                Bucket=parts.netloc, Key=parts.path.lstrip("/") + suffix, Body=body.encode(), **query.put
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            message = error.response["Error"]["Message"]
            if code in ("AccessDenied", "403"):
                raise Failed(f"Access denied when writing output to url: {url}. {message}") from None
            raise Failed(f"Writing output to url {url} failed: {code}: {message}") from None


def _quote_cell(cell: str | None) -> str:
    return "" if cell is None else '"' + cell.replace('"', '""') + '"'


def _quote_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
