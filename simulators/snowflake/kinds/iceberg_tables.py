"""Iceberg tables of a catalog outside: read through Glue and S3 when they are made, and each interval where asked."""

from __future__ import annotations

import json
from typing import Any, Final

from simulators.snowflake import refreshing, snapshots
from simulators.snowflake.errors import (
    COMPILATION,
    SqlError,
    invalid_property,
    not_simulated,
    syntax,
    unsupported,
)
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.kinds.common import (
    Kind,
    Making,
    altering,
    created,
    dropped,
    dropping,
    free,
    freely,
    listing,
    set_options,
    unset_names,
)
from simulators.snowflake.kinds.references import by_literal
from simulators.snowflake.model import Domain, IcebergTable, Integration, Volume
from simulators.snowflake.names import Name, shown
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, records, status, table
from simulators.snowflake.selecting import columns_of
from simulators.snowflake.session import Session

_LABEL: Final = "ICEBERG TABLE"
_KNOWN: Final = "EXTERNAL_VOLUME CATALOG CATALOG_TABLE_NAME CATALOG_NAMESPACE AUTO_REFRESH COMMENT"
_OTHERS: Final = (
    "BASE_LOCATION METADATA_FILE_PATH REPLACE_INVALID_CHARACTERS CATALOG_SYNC STORAGE_SERIALIZATION_POLICY "
    "DATA_RETENTION_TIME_IN_DAYS TARGET_FILE_SIZE ENABLE_ICEBERG_MERGE_ON_READ"
)
_SHOWN: Final = (
    "created_on name database_name schema_name owner external_volume_name catalog_name iceberg_table_type catalog_table_name "
    "catalog_namespace base_location can_write_metadata comment owner_role_type catalog_sync_name auto_refresh_status"
)
_COLUMNS: Final = "name type kind null? default primary~key unique~key check expression comment policy~name privacy~domain"


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = session.full(Domain.ICEBERG_TABLE, cursor.name())
    if cursor.at_sign("("):
        raise not_simulated("Iceberg tables of Snowflake's own catalog")
    options = Options(_LABEL, cursor.options(), _KNOWN, _OTHERS)
    cursor.end()
    options.require("CATALOG", "CATALOG_TABLE_NAME", "EXTERNAL_VOLUME")
    if there := free(session, Domain.ICEBERG_TABLE, name, "CREATE ICEBERG TABLE", making, freely):
        return there
    if session.account.find(Domain.DATABASE, name[:1]).link:
        raise unsupported("CREATE ICEBERG TABLE in a catalog-linked database whose writes are not allowed")
    new = _new(session, name, options)
    session.running_warehouse()
    snapshots.refresh(session.account, new)
    made = created(session, new, "Table")
    if new.auto_refresh:
        refreshing.follow(session.account, new)
    return made


def _new(session: Session, name: Name, options: Options) -> IcebergTable:
    volume: Volume = by_literal(session, Domain.VOLUME, options.text("EXTERNAL_VOLUME"))
    catalog: Integration = by_literal(session, Domain.INTEGRATION, options.text("CATALOG"))
    session.require("USAGE", volume)
    session.require("USAGE", catalog)
    if not catalog.enabled:
        raise SqlError("004155", "22000", f"{COMPILATION}Catalog integration {catalog.label} is disabled.")
    namespace = options.string("CATALOG_NAMESPACE") or catalog.namespace
    if not namespace:
        raise syntax(f"Neither the table nor integration {catalog.label} has a CATALOG_NAMESPACE")
    return IcebergTable(
        name=name,
        owner=session.role,
        created=session.account.clock.now(),
        comment=options.string("COMMENT"),
        volume=volume.name,
        catalog=catalog.name,
        catalog_table=options.string("CATALOG_TABLE_NAME"),
        namespace=namespace,
        auto_refresh=options.boolean("AUTO_REFRESH", default=False),
    )


def alter(session: Session, cursor: Cursor) -> Result:
    changed: Any = altering(session, cursor, Domain.ICEBERG_TABLE)
    if changed is None:
        return status()
    session.require("OWNERSHIP", changed)
    if cursor.take("REFRESH"):
        cursor.end()
        return _refreshed(session, changed)
    if cursor.take("UNSET"):
        if (names := unset_names(cursor)) != ["COMMENT"]:
            raise invalid_property(names[0], _LABEL)
        changed.comment = ""
        return status()
    for word in ("CONVERT", "ADD", "DROP", "RENAME", "ALTER", "CLUSTER"):
        if cursor.at(word):
            raise not_simulated(f"ALTER ICEBERG TABLE … {word}")
    cursor.expect("SET")
    options = set_options(cursor, _LABEL, "AUTO_REFRESH COMMENT", f"{_OTHERS} CATALOG_TABLE_NAME")
    changed.comment = options.string("COMMENT", changed.comment)
    _switch(session, changed, options.boolean("AUTO_REFRESH", default=changed.auto_refresh))
    return status()


def _switch(session: Session, changed: IcebergTable, auto_refresh: bool) -> None:
    """Switched off and on again, a table that had stopped starts anew."""
    if auto_refresh and not changed.auto_refresh:
        refreshing.look(session.account, changed)
        refreshing.follow(session.account, changed)
    if not auto_refresh:
        changed.fault = ""
    changed.auto_refresh = auto_refresh


def _refreshed(session: Session, changed: IcebergTable) -> Result:
    if changed.auto_refresh:
        raise SqlError(
            "091337", "22000", f"{COMPILATION}Manual REFRESH of {changed.label} is not allowed while AUTO_REFRESH is enabled."
        )
    session.running_warehouse()
    snapshots.refresh(session.account, changed)
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.ICEBERG_TABLE)
    if isinstance(found.thing, IcebergTable) and found.thing.linked:
        raise unsupported("DROP in a catalog-linked database whose writes are not allowed")
    return dropped(session, found.thing) if found.thing else found.absent


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.ICEBERG_TABLE)
    return records(_SHOWN, (_row(each) for each in wanted.of(session, IcebergTable)))


def _row(shown_table: IcebergTable) -> dict[str, Any]:
    told = refreshing.status(shown_table)
    return {
        "created_on": shown_table.created,
        "name": shown_table.label,
        "database_name": shown_table.name[0],
        "schema_name": shown_table.name[1],
        "owner": shown_table.owner,
        "external_volume_name": shown(shown_table.volume),
        "catalog_name": shown(shown_table.catalog),
        "iceberg_table_type": "UNMANAGED",
        "catalog_table_name": shown_table.catalog_table,
        "catalog_namespace": shown_table.namespace,
        "can_write_metadata": "N",
        "comment": shown_table.comment,
        "owner_role_type": "ROLE",
        "auto_refresh_status": json.dumps(told) if told else None,
    }


def describe(session: Session, cursor: Cursor) -> Result:
    found: Any = session.resolve(Domain.ICEBERG_TABLE, cursor.name())
    cursor.end()
    session.require_any(("SELECT", "REFERENCES", "OWNERSHIP"), found)
    columns = columns_of(session.account, found)
    return table(_COLUMNS, ((each.name, each.sql_type, "COLUMN", "Y", None, "N", "N", *[None] * 5) for each in columns))


KIND: Final = Kind(_LABEL, "ICEBERG TABLES", create, alter, drop, show, describe)
