"""`lakeferry query`: DuckDB over the Iceberg tables, read only. Its extensions come from PyPI, so nothing is downloaded.

The tables are those of the Glue catalog, or those that Tableflow's own Iceberg REST catalog shows to an API key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import boto3
import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg

from glue_jobs.errors import ExportError
from glue_jobs.store import aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local import iceberg_catalog
from lakeferry.local.iceberg_catalog import TableflowKey
from lakeferry.local.target import ExportTarget
from lakeferry.output import Output, format_answer

_EXTENSIONS = {
    "avro": duckdb_extension_avro,
    "httpfs": duckdb_extension_httpfs,
    "iceberg": duckdb_extension_iceberg,
}


@attrs.frozen
class Answer:
    columns: list[str]
    rows: list[tuple[Any, ...]]


def query(target: ExportTarget, sql: str) -> Answer:
    """Raises CommandFailed for anything but one SELECT, and for what DuckDB refuses."""
    with _connection() as connection:
        require_select(connection, sql)
        load(connection)
        tables = _listed(target)
        try:
            for database, name, location in tables:
                _view(connection, database, name, location, bare=[t[1] for t in tables].count(name) == 1)
            answer = connection.execute(sql)
            return Answer([column[0] for column in answer.description or []], answer.fetchall())
        except duckdb.Error as error:
            known = ", ".join(f'"{database}"."{name}"' for database, name, _ in tables) or "none"
            raise CommandFailed("QUERY", str(error).strip(), f"Tables here: {known}") from None


def query_tableflow(sql: str, key: TableflowKey) -> Answer:
    """The same over Tableflow's catalog. Raises CommandFailed."""

    def ask() -> Answer:
        with _connection() as connection:
            require_select(connection, sql)
            load(connection)
            iceberg_catalog.attach(connection, key)
            answer = connection.execute(sql)
            return Answer([column[0] for column in answer.description or []], answer.fetchall())

    try:
        return iceberg_catalog.asked(ask)
    except duckdb.Error as error:
        message = key.without_secret(str(error).strip())
        hint = (
            f"Tables are those of {key.cluster_id} that the key's owner may read; a topic shows up once Tableflow has written it"
        )
        raise CommandFailed("QUERY", message, hint) from None


def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})


def require_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise CommandFailed("QUERY", str(error).strip()) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise CommandFailed("QUERY-READ-ONLY", "only one SELECT is allowed")


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Gives a connection what it needs to read Iceberg tables of the AWS that the environment names."""
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
    listed = ", ".join(f"{name} '{_quoted(value)}'" for name, value in options.items() if value)
    plain = ", USE_SSL false" if endpoint.startswith("http://") else ""
    try:
        connection.execute(f"CREATE SECRET (TYPE s3, {listed}{plain})")
    except duckdb.Error as error:  # its message may quote the statement, and with it the secret key
        message = f"DuckDB refuses the AWS credentials ({type(error).__name__})"
        hint = "Check AWS_REGION and AWS_ENDPOINT_URL, and log in again"
        raise CommandFailed("QUERY-CREDENTIALS", message, hint) from None


def _listed(target: ExportTarget) -> list[tuple[str, str, str]]:
    try:
        with aws_errors("asking Glue for the tables"):
            return list(_tables(target))
    except ExportError as error:
        raise CommandFailed(error.code, error.what, error.remedy) from None


def _tables(target: ExportTarget) -> Iterator[tuple[str, str, str]]:
    """(database, table, metadata file) of the Iceberg tables that an export reads or keeps."""
    glue = boto3.client("glue")
    for database in (target.database, target.aggregates_database):
        try:
            pages = list(glue.get_paginator("get_tables").paginate(DatabaseName=database))
        except glue.exceptions.EntityNotFoundException:
            continue
        for table in (table for page in pages for table in page["TableList"]):
            if location := table.get("Parameters", {}).get("metadata_location"):
                yield database, table["Name"], location


def _view(connection: duckdb.DuckDBPyConnection, database: str, name: str, location: str, *, bare: bool) -> None:
    schema = database.replace('"', '""')
    table = name.replace('"', '""')
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    names = [f'"{schema}"."{table}"'] + ([f'"{table}"'] if bare else [])
    for one in names:
        connection.execute(f"CREATE VIEW {one} AS SELECT * FROM iceberg_scan('{_quoted(location)}')")  # noqa: S608


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def show(output: Output, answer: Answer) -> None:
    for line in format_answer(answer.columns, answer.rows, output.width):
        output.print(line)
