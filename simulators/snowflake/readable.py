"""What a SELECT may read: Iceberg tables, views, and three views of INFORMATION_SCHEMA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import attrs
import pyarrow as pa

from simulators.snowflake.errors import SqlError, missing, not_simulated
from simulators.snowflake.iceberg import list_columns, read_rows
from simulators.snowflake.model import Domain, IcebergTable, Name, TableColumn, View
from simulators.snowflake.session import Session

_INFORMATION_SCHEMA: Final = "INFORMATION_SCHEMA"
_NAMES: Final = ("TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME")
#: The columns that are simulated, by view.
_INFORMATION: Final = {
    "TABLES": (*_NAMES, "TABLE_OWNER", "TABLE_TYPE", "COMMENT"),
    "VIEWS": (*_NAMES, "TABLE_OWNER", "VIEW_DEFINITION", "IS_SECURE", "COMMENT"),
    "COLUMNS": (*_NAMES, "COLUMN_NAME", "ORDINAL_POSITION", "DATA_TYPE"),
}
Row = dict[str, Any]


@attrs.frozen
class Source:
    """A table with its columns in their order.

    If it `keeps_case`, its columns are found whatever the case of their names in the query.
    """

    column_types: dict[str, str]
    keeps_case: bool
    read_rows: Callable[[], Any]


def find(session: Session, name: Name) -> Source | View:
    """Return the table or view of this name. Raises SqlError if the session may not select from it."""
    if len(name) > 1 and name[-2] == "ACCOUNT_USAGE":
        raise not_simulated("views of ACCOUNT_USAGE")
    if len(name) > 1 and name[-2] == _INFORMATION_SCHEMA:
        return _open_information(session, name)
    existing = _resolve(session, name)
    session.require("SELECT", existing)
    if isinstance(existing, View):
        return existing
    if not existing.metadata:
        if session.account.lake:
            raise missing("OBJECT", name)
        raise not_simulated("SELECT without AWS: start with --aws")
    columns = {column.name: column.sql_type for column in list_columns(existing)}
    return Source(columns, existing.linked, partial(read_rows, session.account, existing))


def can_read_definition(session: Session, view: View) -> bool:
    """Return whether the session sees the text of a view: that of a secure view is for its owner's role only
    (docs.snowflake.com, "Working with Secure Views").
    """
    return not view.secure or view.owner in session.roles


def _resolve(session: Session, name: Name) -> IcebergTable | View:
    """Tables and views of a schema share their names."""
    try:
        found: IcebergTable | View = session.resolve(Domain.VIEW, name)
    except SqlError as error:
        if error.code != "002003":
            raise
    else:
        return found
    try:
        table: IcebergTable = session.resolve(Domain.ICEBERG_TABLE, name)
    except SqlError as error:
        raise SqlError(error.code, error.state, error.message.replace("Iceberg table", "Object")) from None
    return table


def _open_information(session: Session, name: Name) -> Source:
    """Raises SqlError for a database that the session may not use."""
    if name[-1] not in _INFORMATION:
        raise not_simulated(f"{_INFORMATION_SCHEMA}.{name[-1]}")
    database = name[0] if len(name) > len(_NAMES) - 1 else session.database
    session.find_container(Domain.SCHEMA, (database, _INFORMATION_SCHEMA))
    columns = _INFORMATION[name[-1]]
    rows = list(_list_information(session, database, name[-1]))

    def read() -> Any:
        return pa.table({column: pa.array([row.get(column) for row in rows]) for column in columns})

    return Source(dict.fromkeys(columns, "VARCHAR"), False, read)


def _list_information(session: Session, database: str, view_name: str) -> Iterator[Row]:
    for object_ in _list_visible(session, database):
        common = dict(zip(_NAMES, object_.name, strict=True))
        common |= {"TABLE_OWNER": object_.owner, "COMMENT": object_.comment}
        is_view = isinstance(object_, View)
        match view_name:
            case "TABLES":
                yield common | {"TABLE_TYPE": "VIEW" if is_view else "BASE TABLE"}
            case "VIEWS" if isinstance(object_, View):
                shown = object_.text if can_read_definition(session, object_) else None
                yield common | {"VIEW_DEFINITION": shown, "IS_SECURE": "YES" if object_.secure else "NO"}
            case "COLUMNS":
                for number, column in enumerate(_list_columns(object_), 1):
                    described = {"COLUMN_NAME": column.name, "DATA_TYPE": column.sql_type}
                    yield common | described | {"ORDINAL_POSITION": number}


def _list_columns(object_: IcebergTable | View) -> list[TableColumn]:
    return list(object_.columns) if isinstance(object_, View) else list_columns(object_)


def _list_visible(session: Session, database: str) -> Iterator[IcebergTable | View]:
    """Yield what one of the roles owns or has a privilege on. MANAGE GRANTS doesn't count here
    (docs.snowflake.com, "VIEWS view", usage notes).
    """
    roles = session.roles
    for object_ in session.account.list_contents((database,)):
        is_granted = any(grant.on == object_.key and grant.to in roles for grant in session.account.grants)
        if isinstance(object_, IcebergTable | View) and (object_.owner in roles or is_granted):
            yield object_
