"""Context functions CURRENT_…, system functions SYSTEM$… and GET_DDL."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from simulators.core.aws_access import AwsRefused
from simulators.snowflake import iceberg, readable, trust
from simulators.snowflake.errors import COMPILATION, SqlError, invalid_value, missing, not_simulated
from simulators.snowflake.model import (
    CatalogLink,
    Domain,
    IcebergTable,
    Integration,
    View,
    Volume,
    to_sql_name,
)
from simulators.snowflake.objects import databases
from simulators.snowflake.parser import Cursor
from simulators.snowflake.session import Session, list_inherited_roles

_VERSION: Final = "9.37.1"

#: Takes the session and the arguments; returns text, or None for NULL.
Function = Callable[[Session, list[str]], str | None]


def call(session: Session, name: str, arguments: list[str]) -> str | None:
    """Return the value of a function. Raises SqlError, also for a function that isn't simulated."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise not_simulated(f"function {name}")
    return function(session, arguments)


def _read_argument(arguments: list[str], name: str) -> str:
    if not arguments:
        raise SqlError(
            "000938", "22023", f"{COMPILATION}not enough arguments for function [{name}], expected 1, got 0"
        )
    return arguments[0]


def _verify_volume(session: Session, arguments: list[str]) -> str:
    volume: Volume = session.resolve_text(
        Domain.VOLUME, _read_argument(arguments, "SYSTEM$VERIFY_EXTERNAL_VOLUME")
    )
    session.require("USAGE", volume)
    return json.dumps(trust.verify_volume(session.account, volume))


def _find_integration(session: Session, arguments: list[str]) -> Integration:
    integration: Integration = session.resolve_text(
        Domain.INTEGRATION, _read_argument(arguments, "SYSTEM$…CATALOG…")
    )
    session.require("USAGE", integration)
    return integration


def _list_namespaces(session: Session, arguments: list[str]) -> str:
    """List the namespaces in a parent namespace, by default that of the integration, as JSON.

    If the parent is empty, which is the root, these are Glue's databases. They are never nested, so any other
    parent has none. The role must be allowed to list databases in both cases.
    """
    integration = _find_integration(session, arguments)
    _check_levels("SYSTEM$LIST_NAMESPACES_FROM_CATALOG", arguments)
    parent = arguments[1] if len(arguments) > 1 else integration.namespace
    if session.account.lake is None:
        namespaces = [integration.namespace] if integration.namespace else []
    else:
        namespaces = _list_or_fail(integration, trust.list_namespaces, session.account, integration)
    if parent:
        return "[]"
    return json.dumps(namespaces)


def _check_levels(name: str, arguments: list[str]) -> None:
    """Raise SqlError unless both or none of the optional arguments are given: the parent, and the number of
    levels (0: all).
    """
    if len(arguments) == 2:
        raise SqlError(
            "000938", "22023", f"{COMPILATION}not enough arguments for function [{name}], expected 3, got 2"
        )
    if len(arguments) > 3:
        got = len(arguments)
        raise SqlError(
            "000939", "22023", f"{COMPILATION}too many arguments for function [{name}], expected 3, got {got}"
        )
    if len(arguments) == 3 and not arguments[2].isdecimal():
        raise invalid_value(arguments[2], "levels")


def _list_tables(session: Session, arguments: list[str]) -> str:
    account = session.account
    integration = _find_integration(session, arguments)
    if account.lake is None:
        return "[]"
    namespaces = arguments[1:2] or _list_or_fail(integration, trust.list_namespaces, account, integration)
    tables = []
    for namespace in namespaces:
        names = _list_or_fail(integration, trust.list_iceberg_tables, account, integration, namespace)
        tables += [{"namespace": namespace, "name": name} for name in names]
    return json.dumps(tables)


def _list_or_fail(integration: Integration, query: Callable[..., list[str]], *arguments: Any) -> list[str]:
    try:
        return query(*arguments)
    except AwsRefused as error:
        raise SqlError("004155", "22000", trust.describe_failed_access(integration, error)) from None


def _read_auto_refresh_status(session: Session, arguments: list[str]) -> str | None:
    table: IcebergTable = session.resolve_text(
        Domain.ICEBERG_TABLE, _read_argument(arguments, "SYSTEM$AUTO_REFRESH_STATUS")
    )
    state = iceberg.describe_refresh_status(table)
    return json.dumps(state) if state else None


def _find_link(session: Session, arguments: list[str]) -> tuple[str, CatalogLink]:
    database = session.resolve_text(Domain.DATABASE, _read_argument(arguments, "SYSTEM$…CATALOG_LINK…"))
    if database.link is None:
        raise SqlError(
            "091351", "22000", f"{COMPILATION}Database {database.label} is not a catalog-linked database."
        )
    return database.label, database.link


def _read_login_failure(session: Session, arguments: list[str]) -> str:
    session.require("MONITOR", session.account.root)
    details = session.account.failed_logins.get(_read_argument(arguments, "SYSTEM$GET_LOGIN_FAILURE_DETAILS"))
    if details is None:
        raise missing("LOGIN FAILURE", arguments[0])
    return json.dumps(details)


def _read_ddl(session: Session, arguments: list[str]) -> str:
    """Return the statement that creates a view or a table. Raises SqlError."""
    if len(arguments) < 2:
        raise SqlError("000938", "22023", f"{COMPILATION}not enough arguments for function [GET_DDL]")
    cursor = Cursor(arguments[1])
    name = cursor.read_name()
    cursor.end()
    if arguments[0].upper() == "VIEW":
        view: View = session.resolve(Domain.VIEW, name)
        # The definition of a secure view is for its owner only (docs.snowflake.com, "Working with Secure
        # Views").
        if not readable.can_read_definition(session, view):
            session.require("OWNERSHIP", view)
        return view.text
    if arguments[0].upper() == "TABLE":
        table: IcebergTable = session.resolve(Domain.ICEBERG_TABLE, name)
        session.require_any(("SELECT", "REFERENCES", "OWNERSHIP"), table)
        columns = ", ".join(f"{column.name} {column.sql_type}" for column in iceberg.list_columns(table))
        return f"create iceberg table {to_sql_name(name)} ({columns})"
    raise not_simulated(f"GET_DDL of {arguments[0]}")


def _ignore_arguments(read_session: Callable[[Session], str | None]) -> Function:
    return lambda session, arguments: read_session(session)


FUNCTIONS: Final[dict[str, Function]] = {
    "CURRENT_USER": _ignore_arguments(lambda session: session.user.label),
    "CURRENT_ROLE": _ignore_arguments(lambda session: session.role),
    "CURRENT_ACCOUNT": _ignore_arguments(lambda session: session.account.locator),
    "CURRENT_ACCOUNT_NAME": _ignore_arguments(lambda session: session.account.name),
    "CURRENT_ORGANIZATION_NAME": _ignore_arguments(lambda session: session.account.organization),
    "CURRENT_REGION": _ignore_arguments(
        lambda session: f"AWS_{session.account.region.upper().replace('-', '_')}"
    ),
    "CURRENT_VERSION": _ignore_arguments(lambda session: _VERSION),
    "CURRENT_WAREHOUSE": _ignore_arguments(lambda session: session.warehouse or None),
    "CURRENT_DATABASE": _ignore_arguments(lambda session: session.database or None),
    "CURRENT_SCHEMA": _ignore_arguments(lambda session: session.schema or None),
    "CURRENT_AVAILABLE_ROLES": _ignore_arguments(
        lambda session: json.dumps(sorted(session.roles | list_inherited_roles(session.account, [])))
    ),
    "SYSTEM$VERIFY_EXTERNAL_VOLUME": _verify_volume,
    "SYSTEM$VERIFY_CATALOG_INTEGRATION": lambda session, arguments: json.dumps(
        trust.verify_integration(session.account, _find_integration(session, arguments))
    ),
    "SYSTEM$LIST_NAMESPACES_FROM_CATALOG": _list_namespaces,
    "SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG": _list_tables,
    "SYSTEM$AUTO_REFRESH_STATUS": _read_auto_refresh_status,
    "SYSTEM$CATALOG_LINK_STATUS": lambda session, arguments: json.dumps(
        databases.describe_link_status(*_find_link(session, arguments))
    ),
    "SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG": lambda session, arguments: json.dumps(
        databases.describe_link_configuration(_find_link(session, arguments)[1])
    ),
    "SYSTEM$GET_LOGIN_FAILURE_DETAILS": _read_login_failure,
    "GET_DDL": _read_ddl,
}
