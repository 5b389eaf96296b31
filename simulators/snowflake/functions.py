"""Functions that tell of the session and of the account: CURRENT_… and SYSTEM$…."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from simulators.snowflake import refreshing, trust
from simulators.snowflake.errors import COMPILATION, SqlError, missing, not_simulated
from simulators.snowflake.kinds import linked_databases
from simulators.snowflake.kinds.references import by_literal
from simulators.snowflake.lake import AwsRefused
from simulators.snowflake.model import Database, Domain, IcebergTable, Integration, Volume
from simulators.snowflake.session import Session, inherited

_VERSION: Final = "9.37.1"

#: Each takes the session and the arguments, and returns text.
Function = Callable[[Session, list[str]], str | None]


def call(session: Session, name: str, arguments: list[str]) -> str | None:
    """Raises SqlError where there is no such function, or it isn't simulated."""
    found = _FUNCTIONS.get(name)
    if found is None:
        raise not_simulated(f"function {name}")
    return found(session, arguments)


def knows(name: str) -> bool:
    return name in _FUNCTIONS


def _one(arguments: list[str], name: str) -> str:
    if not arguments:
        raise SqlError("000938", "22023", f"{COMPILATION}not enough arguments for function [{name}], expected 1, got 0")
    return arguments[0]


def _verify_volume(session: Session, arguments: list[str]) -> str:
    volume: Volume = by_literal(session, Domain.VOLUME, _one(arguments, "SYSTEM$VERIFY_EXTERNAL_VOLUME"))
    session.require("USAGE", volume)
    return json.dumps(trust.verify_volume(session.account, volume))


def _integration(session: Session, arguments: list[str]) -> Integration:
    found: Integration = by_literal(session, Domain.INTEGRATION, _one(arguments, "SYSTEM$…CATALOG…"))
    session.require("USAGE", found)
    return found


def _verify_integration(session: Session, arguments: list[str]) -> str:
    return json.dumps(trust.verify_integration(session.account, _integration(session, arguments)))


def _namespaces(session: Session, arguments: list[str]) -> str:
    integration = _integration(session, arguments)
    if session.account.lake is None:
        return json.dumps([integration.namespace] if integration.namespace else [])
    return json.dumps(_asked(integration, lambda: trust.namespaces(session.account, integration)))


def _tables(session: Session, arguments: list[str]) -> str:
    integration = _integration(session, arguments)
    if session.account.lake is None:
        return "[]"
    wanted = arguments[1:2] or _asked(integration, lambda: trust.namespaces(session.account, integration))
    return json.dumps(
        [
            {"namespace": namespace, "name": name}
            for namespace in wanted
            for name in _asked(integration, lambda of=namespace: trust.iceberg_tables(session.account, integration, of))  # type: ignore[misc]
        ]
    )


def _asked(integration: Integration, question: Callable[[], list[str]]) -> list[str]:
    try:
        return question()
    except AwsRefused as error:
        raise SqlError("004155", "22000", trust.failed_access(integration, error)) from None


def _auto_refresh(session: Session, arguments: list[str]) -> str | None:
    table: IcebergTable = by_literal(session, Domain.ICEBERG_TABLE, _one(arguments, "SYSTEM$AUTO_REFRESH_STATUS"))
    told = refreshing.status(table)
    return json.dumps(told) if told else None


def _linked(session: Session, arguments: list[str]) -> Database:
    database: Database = by_literal(session, Domain.DATABASE, _one(arguments, "SYSTEM$…CATALOG_LINK…"))
    if database.link is None:
        raise SqlError("091351", "22000", f"{COMPILATION}Database {database.label} is not a catalog-linked database.")
    return database


def _login_failure(session: Session, arguments: list[str]) -> str:
    session.require("MONITOR", session.account.itself)
    found = session.account.failed_logins.get(_one(arguments, "SYSTEM$GET_LOGIN_FAILURE_DETAILS"))
    if found is None:
        raise missing("LOGIN FAILURE", arguments[0])
    return json.dumps(found)


def _fixed(tell: Callable[[Session], Any]) -> Function:
    return lambda session, arguments: tell(session)


_FUNCTIONS: Final[dict[str, Function]] = {
    "CURRENT_USER": _fixed(lambda session: session.user.label),
    "CURRENT_ROLE": _fixed(lambda session: session.role),
    "CURRENT_ACCOUNT": _fixed(lambda session: session.account.name),
    "CURRENT_ACCOUNT_NAME": _fixed(lambda session: session.account.name),
    "CURRENT_ORGANIZATION_NAME": _fixed(lambda session: session.account.organization),
    "CURRENT_REGION": _fixed(lambda session: f"AWS_{session.account.region.upper().replace('-', '_')}"),
    "CURRENT_VERSION": _fixed(lambda session: _VERSION),
    "CURRENT_WAREHOUSE": _fixed(lambda session: session.warehouse or None),
    "CURRENT_DATABASE": _fixed(lambda session: session.database or None),
    "CURRENT_SCHEMA": _fixed(lambda session: session.schema or None),
    "CURRENT_AVAILABLE_ROLES": _fixed(lambda session: json.dumps(sorted(session.roles | inherited(session.account, [])))),
    "SYSTEM$VERIFY_EXTERNAL_VOLUME": _verify_volume,
    "SYSTEM$VERIFY_CATALOG_INTEGRATION": _verify_integration,
    "SYSTEM$LIST_NAMESPACES_FROM_CATALOG": _namespaces,
    "SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG": _tables,
    "SYSTEM$AUTO_REFRESH_STATUS": _auto_refresh,
    "SYSTEM$CATALOG_LINK_STATUS": lambda session, arguments: json.dumps(
        linked_databases.link_status(_linked(session, arguments))
    ),
    "SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG": lambda session, arguments: json.dumps(
        linked_databases.configuration(_linked(session, arguments))
    ),
    "SYSTEM$GET_LOGIN_FAILURE_DETAILS": _login_failure,
}
