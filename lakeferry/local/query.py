"""`lakeferry query`: query Iceberg tables with DuckDB, read only. DuckDB's extensions are PyPI packages, so
it downloads nothing.

The tables are those of the Glue catalog, or those of Tableflow's Iceberg REST catalog, which needs an API key
from a secret. Tables in the customer's bucket are read with the caller's AWS credentials, those in
Confluent's storage with the catalog's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import boto3
import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
from botocore.exceptions import BotoCoreError, ClientError

from config.aws_denials import format_aws_answer
from glue_jobs.errors import ExportError
from glue_jobs.store import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local.target import ExportTarget
from lakeferry.output import Output, format_answer

#: The variable with the name of a secret that an api_key resource for Tableflow has filled.
TABLEFLOW_SECRET: Final = "LAKEFERRY_TABLEFLOW_SECRET"  # noqa: S105 - a name
_KEY_FIELDS: Final = ("apiKey", "apiSecret", "catalog.uri", "kafka.cluster.id")
_SESSION_ENDED: Final = ("unauthorized", "401", "notauthorized")
_EXTENSIONS: Final = {
    "avro": duckdb_extension_avro,
    "httpfs": duckdb_extension_httpfs,
    "iceberg": duckdb_extension_iceberg,
}


@attrs.frozen
class Answer:
    """`unread` has the tables that can't be read, each with the reason, if the query names no table, such as
    SHOW TABLES.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    unread: list[str] = attrs.field(factory=list)


@attrs.frozen
class TableflowKey:
    id: str
    secret: str = attrs.field(repr=False)
    catalog_uri: str
    cluster_id: str

    def without_secret(self, text: str) -> str:
        return text.replace(self.secret, "‹secret›")


#: The columns to show of each table of the target's database, by its name in lower case.
ShownColumns: TypeAlias = Mapping[str, Sequence[str]]


def query(target: ExportTarget, sql: str, shown: ShownColumns | None = None) -> Answer:
    """Query the tables of the Glue catalog. If `shown` is given, others than its columns don't exist.

    Raises CommandFailed for anything but one SELECT, and for errors of DuckDB.
    """
    with _connect() as connection:
        require_select(connection, sql)
        load(connection)
        tables = _list_tables(target)
        if shown is not None:
            tables = [table for table in tables if table[0] != target.database or table[1].lower() in shown]
        selected_tables = {name.lower() for name in connection.get_table_names(sql)}
        selected = [table for table in tables if table[1].lower() in selected_tables]
        unread = _create_views(connection, tables, selected or tables, target.database, shown)
        try:
            answer = connection.execute(sql)
            return Answer(
                [column[0] for column in answer.description or []],
                answer.fetchall(),
                [] if selected else unread,
            )
        except duckdb.Error as error:
            names = ", ".join(f'"{database}"."{name}"' for database, name, _ in tables) or "none"
            problems = [str(error).strip()]
            if selected:
                problems += unread
            message = "; ".join(problems)
            hint = f"Known tables: {names}"
            if target.embedded_url:
                hint += (
                    ". Each demo replaces the tables of the one before: run the demo of the table that you "
                    "want again"
                )
            raise CommandFailed("QUERY", message, hint) from None


def query_tableflow(sql: str, key: TableflowKey) -> Answer:
    """Query the tables of Tableflow's catalog.

    Tries again once if the catalog's session has ended. Raises CommandFailed.
    """
    try:
        try:
            return _ask_tableflow(sql, key)
        except duckdb.Error as error:
            if not any(sign in str(error).lower() for sign in _SESSION_ENDED):
                raise
            return _ask_tableflow(sql, key)
    except duckdb.Error as error:
        message = key.without_secret(str(error).strip())
        hint = (
            f"Tables are those of {key.cluster_id} that the key's owner may read; topics appear when "
            "Tableflow writes them"
        )
        raise CommandFailed("QUERY", message, hint) from None


def _ask_tableflow(sql: str, key: TableflowKey) -> Answer:
    with _connect() as connection:
        require_select(connection, sql)
        load(connection)
        _attach_tableflow(connection, key)
        answer = connection.execute(sql)
        return Answer([column[0] for column in answer.description or []], answer.fetchall())


def read_tableflow_key(secret_id: str = "") -> TableflowKey:
    """Read the key from the secret, by default the one that the environment names. Raises CommandFailed."""
    name = secret_id or os.environ.get(TABLEFLOW_SECRET, "")
    if not name:
        raise CommandFailed("QUERY-TABLEFLOW-SECRET", f"{TABLEFLOW_SECRET} is not set")
    try:
        fields = json.loads(boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"])
        return TableflowKey(*(str(fields[field]) for field in _KEY_FIELDS))
    except (BotoCoreError, ClientError) as error:
        why = (
            format_aws_answer(error.response.get("Error", {}))
            if isinstance(error, ClientError)
            else type(error).__name__
        )
        raise _explain_unusable_key(name, f"can't be read ({why})") from None
    except (ValueError, KeyError, TypeError):
        raise _explain_unusable_key(name, f"lacks a field: it needs {', '.join(_KEY_FIELDS)}") from None


def _explain_unusable_key(name: str, why: str) -> CommandFailed:
    return CommandFailed("QUERY-TABLEFLOW-KEY", f"secret {name} {why}")


def _attach_tableflow(connection: duckdb.DuckDBPyConnection, key: TableflowKey) -> None:
    """Log in to the catalog, and look up bare table names in the Kafka cluster. Raises duckdb.Error."""
    tokens = f"{key.catalog_uri}/v1/oauth/tokens"
    connection.execute(
        f"CREATE SECRET tableflow (TYPE iceberg, CLIENT_ID {_quote_literal(key.id)}, CLIENT_SECRET "
        f"{_quote_literal(key.secret)}, OAUTH2_SCOPE 'catalog', OAUTH2_SERVER_URI {_quote_literal(tokens)})"
    )
    options = f"TYPE iceberg, SECRET tableflow, ENDPOINT {_quote_literal(key.catalog_uri)}"
    connection.execute(f"ATTACH 'any' AS tableflow ({options}, ACCESS_DELEGATION_MODE 'vended_credentials')")
    cluster = key.cluster_id.replace('"', '""')
    connection.execute(f'USE tableflow."{cluster}"')


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})


def require_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise CommandFailed("QUERY", str(error).strip()) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise CommandFailed("QUERY-READ-ONLY", "only one SELECT is allowed")


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extensions and the AWS credentials that reading Iceberg tables needs."""
    for name, package in _EXTENSIONS.items():
        folder = Path(str(package.__file__)).parent / "extensions"
        connection.load_extension(str(next(folder.glob(f"*/{name}.duckdb_extension"))))
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    credentials = boto3.session.Session().get_credentials()
    if credentials is None:
        raise CommandFailed("QUERY-CREDENTIALS", "no AWS credentials were found")
    frozen = credentials.get_frozen_credentials()
    options = {
        "KEY_ID": frozen.access_key,
        "SECRET": frozen.secret_key,
        "SESSION_TOKEN": frozen.token or "",
        "REGION": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", ""),
    }
    if endpoint:
        options |= {"ENDPOINT": endpoint.split("://")[1], "URL_STYLE": "path"}
    listed = ", ".join(f"{name} {_quote_literal(value)}" for name, value in options.items() if value)
    plain = ", USE_SSL false" if endpoint.startswith("http://") else ""
    try:
        connection.execute(f"CREATE SECRET (TYPE s3, {listed}{plain})")
    except duckdb.Error as error:  # its message may quote the statement, and with it the secret key
        message = f"DuckDB refuses the AWS credentials ({type(error).__name__})"
        hint = "Check AWS_REGION and AWS_ENDPOINT_URL, and log in again"
        raise CommandFailed("QUERY-CREDENTIALS", message, hint) from None


def _list_tables(target: ExportTarget) -> list[tuple[str, str, str]]:
    try:
        with translate_aws_errors("listing Glue's tables"):
            return list(_read_tables(target))
    except ExportError as error:
        raise CommandFailed(error.code, error.what, error.remedy) from None


def _read_tables(target: ExportTarget) -> Iterator[tuple[str, str, str]]:
    """Yield database, table and metadata file of the Iceberg tables that an export reads or writes."""
    glue = boto3.client("glue")
    for database in (target.database, target.aggregates_database):
        try:
            pages = list(glue.get_paginator("get_tables").paginate(DatabaseName=database))
        except glue.exceptions.EntityNotFoundException:
            continue
        tables = [table for page in pages for table in page["TableList"]]
        for table in tables:
            if location := table.get("Parameters", {}).get("metadata_location"):
                yield database, table["Name"], location


def _create_views(
    connection: duckdb.DuckDBPyConnection,
    tables: list[tuple[str, str, str]],
    wanted: list[tuple[str, str, str]],
    own_database: str,
    shown: ShownColumns | None,
) -> list[str]:
    """Create views of the `wanted` ones among `tables`.

    Return the tables whose metadata DuckDB can't read, with the reasons.
    """
    names = [name for _, name, _ in tables]
    unread = []
    for database, name, location in wanted:
        columns = shown[name.lower()] if shown is not None and database == own_database else None
        try:
            _create_view(connection, (database, name), location, columns, bare=names.count(name) == 1)
        except duckdb.Error as error:
            unread.append(f'"{database}"."{name}" can\'t be read: {str(error).strip()}')
    return unread


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    full_name: tuple[str, str],
    location: str,
    columns: Sequence[str] | None,
    *,
    bare: bool,
) -> None:
    schema, table = (part.replace('"', '""') for part in full_name)
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    names = [f'"{schema}"."{table}"']
    if bare:
        names.append(f'"{table}"')
    chosen = "*"
    if columns is not None:
        listed = ", ".join(_quote_literal(column.lower()) for column in columns)
        chosen = f"COLUMNS(column_name -> lower(column_name) IN ({listed}))"
    for view in names:
        source = f"iceberg_scan({_quote_literal(location)})"
        connection.execute(f"CREATE VIEW {view} AS SELECT {chosen} FROM {source}")  # noqa: S608


def _quote_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def show(output: Output, answer: Answer) -> None:
    for sentence in answer.unread:
        output.warn(sentence)
    for line in format_answer(answer.columns, answer.rows, output.width):
        output.print(line)
