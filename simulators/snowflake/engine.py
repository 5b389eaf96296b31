"""One statement: which kind it is about, and who reads on."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake import grants, selecting, show_grants
from simulators.snowflake.errors import COMPILATION, SqlError, not_simulated, syntax, unsupported
from simulators.snowflake.grammar import Cursor, statements_in
from simulators.snowflake.kinds import (
    catalog_integrations,
    databases,
    external_volumes,
    iceberg_tables,
    roles,
    schemas,
    users,
    warehouses,
)
from simulators.snowflake.kinds.common import Kind, Making
from simulators.snowflake.results import Result
from simulators.snowflake.session import Session

KINDS: Final[tuple[Kind, ...]] = (
    warehouses.KIND,
    databases.KIND,
    schemas.KIND,
    roles.KIND,
    users.KIND,
    external_volumes.KIND,
    catalog_integrations.KIND,
    iceberg_tables.KIND,
)
#: The SQL API takes none of these, because each call is a session of its own.
_NOT_HERE: Final = ("USE", "PUT", "GET", "BEGIN", "START", "COMMIT", "ROLLBACK", "SET", "UNSET")
_ELSEWHERE: Final = (
    "INSERT UPDATE DELETE MERGE TRUNCATE CALL EXECUTE COPY COMMENT UNDROP LIST LS REMOVE RM EXPLAIN DECLARE VALUES".split()
)
_OTHER_KINDS: Final = (
    "TABLE VIEW STAGE STREAM TASK PIPE FUNCTION PROCEDURE SEQUENCE TAG ALERT SHARE ACCOUNT SECRET SERVICE TRANSIENT TEMPORARY "
    "TEMP SECURE DYNAMIC EVENT HYBRID EXTERNAL CATALOG STORAGE API NOTIFICATION SECURITY NETWORK RESOURCE MASKING ROW SESSION "
    "PASSWORD AUTHENTICATION MATERIALIZED FILE APPLICATION INTEGRATION INTEGRATIONS TABLES VIEWS STAGES STREAMS TASKS PIPES "
    "FUNCTIONS PROCEDURES SEQUENCES TAGS ALERTS SHARES PARAMETERS OBJECTS COLUMNS VARIABLES TRANSACTIONS LOCKS REGIONS "
    "ORGANIZATION PRIMARY TERSE".split()
)


def execute(session: Session, text: str, bindings: dict[str, Any], wanted: int = 1) -> Result:
    """Raises SqlError. `wanted` is MULTI_STATEMENT_COUNT."""
    count = statements_in(text)
    if count == 0:
        raise SqlError("000900", "42601", f"{COMPILATION}Empty SQL statement.")
    if wanted not in (0, count):
        raise SqlError("000008", "0A000", f"Actual statement count {count} did not match the desired statement count {wanted}.")
    if count > 1:
        raise not_simulated("several statements in one call")
    cursor = Cursor(text)
    if cursor.at("SELECT") or cursor.at("WITH") or cursor.at_sign("("):
        return selecting.run(session, text, bindings)
    if bindings:
        raise not_simulated("bindings outside SELECT")
    return _other(session, cursor)


def _other(session: Session, cursor: Cursor) -> Result:  # noqa: PLR0911  (one line a verb)
    if cursor.take("CREATE"):
        return _create(session, cursor)
    if cursor.take("ALTER"):
        return _kind(cursor).alter(session, cursor)
    if cursor.take("DROP"):
        return _kind(cursor).drop(session, cursor)
    if cursor.take("DESC") or cursor.take("DESCRIBE"):
        return _describe(session, cursor)
    if cursor.take("SHOW"):
        return _show(session, cursor)
    if cursor.take("GRANT"):
        return grants.change(session, cursor, revoking=False)
    if cursor.take("REVOKE"):
        return grants.change(session, cursor, revoking=True)
    word = cursor.next.value
    if word in _NOT_HERE:
        raise unsupported(word)
    if word in _ELSEWHERE:
        raise not_simulated(word)
    raise cursor.unexpected()


def _create(session: Session, cursor: Cursor) -> Result:
    or_replace = cursor.take("OR", "REPLACE")
    if cursor.take("OR"):
        raise not_simulated("CREATE OR ALTER") if cursor.at("ALTER") else syntax("syntax error unexpected 'OR'.")
    kind = _kind(cursor)
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise syntax("options IF NOT EXISTS and OR REPLACE are incompatible.")
    return kind.create(session, cursor, Making(or_replace, if_not_exists))


def _describe(session: Session, cursor: Cursor) -> Result:
    kind = _kind(cursor)
    if kind.describe is None:
        cursor.refuse()
    return kind.describe(session, cursor)


def _show(session: Session, cursor: Cursor) -> Result:
    if cursor.take("GRANTS"):
        return show_grants.show(session, cursor)
    if cursor.take("FUTURE", "GRANTS"):
        return show_grants.show_future(session, cursor)
    return _kind(cursor, plural=True).show(session, cursor)


def _kind(cursor: Cursor, *, plural: bool = False) -> Kind:
    for kind in KINDS:
        if cursor.take(*(kind.plural if plural else kind.words).split()):
            return kind
    if cursor.next.value in _OTHER_KINDS:
        raise not_simulated(cursor.next.value)
    raise cursor.unexpected()
