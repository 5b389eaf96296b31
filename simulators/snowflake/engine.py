"""Runs one statement: dispatches it by its verb and its object type."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from simulators.snowflake import privileges, readable, select, show_grants
from simulators.snowflake.errors import COMPILATION, SqlError, not_simulated, syntax, unsupported
from simulators.snowflake.model import Domain
from simulators.snowflake.objects.catalog_integrations import CatalogIntegrations
from simulators.snowflake.objects.databases import Databases, Schemas
from simulators.snowflake.objects.external_volumes import ExternalVolumes
from simulators.snowflake.objects.iceberg_tables import IcebergTables
from simulators.snowflake.objects.object_type import CreateOptions, ObjectType
from simulators.snowflake.objects.users import Roles, Users
from simulators.snowflake.objects.warehouses import Warehouses
from simulators.snowflake.parser import Cursor, count_statements
from simulators.snowflake.results import Result
from simulators.snowflake.session import Session
from simulators.snowflake.views import Views

_VIEWS: Final = Views()
OBJECT_TYPES: Final[tuple[ObjectType[Any], ...]] = (
    Warehouses(),
    Databases(),
    Schemas(),
    Roles(),
    Users(),
    ExternalVolumes(),
    CatalogIntegrations(),
    IcebergTables(),
    _VIEWS,
)
#: The SQL API supports none of these, because each call has a session of its own.
_UNSUPPORTED: Final = ("USE", "PUT", "GET", "BEGIN", "START", "COMMIT", "ROLLBACK", "SET", "UNSET")
_OTHER_VERBS: Final = (
    "INSERT UPDATE DELETE MERGE TRUNCATE CALL EXECUTE COPY COMMENT UNDROP LIST LS REMOVE RM EXPLAIN "
    "DECLARE VALUES"
).split()
_OTHER_TYPES: Final = (
    "TABLE STAGE STREAM TASK PIPE FUNCTION PROCEDURE SEQUENCE TAG ALERT SHARE ACCOUNT SECRET SERVICE "
    "TRANSIENT TEMPORARY TEMP SECURE DYNAMIC EVENT HYBRID EXTERNAL CATALOG STORAGE API NOTIFICATION "
    "SECURITY NETWORK RESOURCE MASKING ROW SESSION PASSWORD AUTHENTICATION MATERIALIZED FILE APPLICATION "
    "INTEGRATION INTEGRATIONS TABLES STAGES STREAMS TASKS PIPES FUNCTIONS PROCEDURES SEQUENCES TAGS "
    "ALERTS SHARES PARAMETERS OBJECTS COLUMNS VARIABLES TRANSACTIONS LOCKS REGIONS ORGANIZATION PRIMARY "
    "TERSE".split()
)


def execute(session: Session, text: str, bindings: dict[str, Any], expected_count: int = 1) -> Result:
    """Run the statement and return its result.

    Raises SqlError. `expected_count` is MULTI_STATEMENT_COUNT; 0 means any number.
    """
    count = count_statements(text)
    if count == 0:
        raise SqlError("000900", "42601", f"{COMPILATION}Empty SQL statement.")
    if expected_count not in (0, count):
        raise SqlError(
            "000008",
            "0A000",
            f"Actual statement count {count} did not match the desired statement count {expected_count}.",
        )
    if count > 1:
        raise not_simulated("several statements in one call")
    cursor = Cursor(text)
    if cursor.is_at("SELECT") or cursor.is_at("WITH") or cursor.is_at_sign("("):
        return select.run(session, text, bindings)
    if bindings:
        raise not_simulated("bindings outside SELECT")
    return _run_verb(session, cursor)


def _run_verb(session: Session, cursor: Cursor) -> Result:  # noqa: PLR0911  (one line per verb)
    if cursor.take("CREATE"):
        return _create_object(session, cursor)
    if cursor.take("ALTER"):
        return _read_object_type(cursor).alter(session, cursor)
    if cursor.take("DROP"):
        return _read_object_type(cursor).drop(session, cursor)
    if cursor.take("DESC") or cursor.take("DESCRIBE"):
        return _read_object_type(cursor).describe(session, cursor)
    if cursor.take("SHOW"):
        return _show_objects(session, cursor)
    if cursor.take("GRANT"):
        return privileges.change_grants(session, cursor, revoking=False)
    if cursor.take("REVOKE"):
        return privileges.change_grants(session, cursor, revoking=True)
    word = cursor.next.value
    if word in _UNSUPPORTED:
        raise unsupported(word)
    if word in _OTHER_VERBS:
        raise not_simulated(word)
    raise cursor.build_unexpected_error()


def _create_object(session: Session, cursor: Cursor) -> Result:
    or_replace = cursor.take("OR", "REPLACE")
    if cursor.take("OR"):
        if cursor.is_at("ALTER"):
            raise not_simulated("CREATE OR ALTER")
        raise syntax("syntax error unexpected 'OR'.")
    if cursor.take("TABLE") or cursor.take("TRANSIENT", "TABLE"):
        return _refuse_table(session, cursor)
    secure = cursor.take("SECURE")
    object_type = _VIEWS if secure and cursor.take("VIEW") else _read_object_type(cursor)
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise syntax("options IF NOT EXISTS and OR REPLACE are incompatible.")
    options = CreateOptions(or_replace, if_not_exists)
    if object_type is _VIEWS:
        return _VIEWS.create_view(session, cursor, options, secure=secure)
    return object_type.create(session, cursor, options)


def _refuse_table(session: Session, cursor: Cursor) -> NoReturn:
    """Refuse a copy of what the session may not read, as Snowflake does. Other tables are not simulated."""
    cursor.take("IF", "NOT", "EXISTS")
    cursor.read_name()
    if cursor.take("CLONE"):
        readable.find(session, session.qualify_name(Domain.ICEBERG_TABLE, cursor.read_name()))
        raise not_simulated("CREATE TABLE … CLONE")
    if cursor.take("AS"):
        select.list_view_columns(session, cursor.text[cursor.next.start :])
        raise not_simulated("CREATE TABLE … AS")
    raise not_simulated("TABLE")


def _show_objects(session: Session, cursor: Cursor) -> Result:
    if cursor.take("GRANTS"):
        return show_grants.show_grants(session, cursor)
    if cursor.take("FUTURE", "GRANTS"):
        return show_grants.show_future_grants(session, cursor)
    return _read_object_type(cursor, plural=True).show(session, cursor)


def _read_object_type(cursor: Cursor, *, plural: bool = False) -> ObjectType[Any]:
    for object_type in OBJECT_TYPES:
        if cursor.take(*(object_type.plural if plural else object_type.words).split()):
            return object_type
    if cursor.next.value in _OTHER_TYPES:
        raise not_simulated(cursor.next.value)
    raise cursor.build_unexpected_error()
