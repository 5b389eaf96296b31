"""Reads a snapshot of an Iceberg table with the volume's role, refreshes tables, and syncs catalog-linked
databases.
"""

from __future__ import annotations

from typing import Any, Final

from pyiceberg import types
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table import StaticTable

from simulators.core.aws_access import AwsRefused
from simulators.snowflake import trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import COMPILATION, SqlError
from simulators.snowflake.model import (
    CatalogLink,
    Database,
    Domain,
    IcebergTable,
    Integration,
    Schema,
    TableColumn,
    Volume,
)

RUNNING: Final = "RUNNING"
STALLED: Final = "STALLED"
STOPPED: Final = "STOPPED"
NOT_INITIALIZED: Final = "ICEBERG_TABLE_NOT_INITIALIZED"
_EQUALITY_DELETES: Final = "091968"
_NOT_FOUND: Final = ("EntityNotFoundException",)
_SQL_TYPES: Final[dict[type[types.IcebergType], str]] = {
    types.BooleanType: "BOOLEAN",
    types.IntegerType: "NUMBER(10,0)",
    types.LongType: "NUMBER(19,0)",
    types.FloatType: "FLOAT",
    types.DoubleType: "FLOAT",
    types.DateType: "DATE",
    types.TimeType: "TIME(6)",
    types.TimestampType: "TIMESTAMP_NTZ(6)",
    types.TimestamptzType: "TIMESTAMP_LTZ(6)",
    types.StringType: "VARCHAR(134217728)",
    types.UUIDType: "BINARY(16)",
    types.BinaryType: "BINARY(67108864)",
}


# --- one snapshot


def list_columns(table: IcebergTable) -> list[TableColumn]:
    """Return the columns. Their names are in upper case, except in a catalog-linked database."""
    if table.linked:
        return list(table.columns)
    return [TableColumn(column.name.upper(), column.sql_type) for column in table.columns]


def _to_sql_type(iceberg: types.IcebergType) -> str:
    match iceberg:
        case types.DecimalType():
            return f"NUMBER({iceberg.precision},{iceberg.scale})"
        case types.FixedType():
            return f"BINARY({len(iceberg)})"
        case types.ListType():
            return f"ARRAY({_to_sql_type(iceberg.element_type)})"
        case types.MapType():
            return f"MAP({_to_sql_type(iceberg.key_type)}, {_to_sql_type(iceberg.value_type)})"
        case types.StructType():
            fields = [f"{field.name} {_to_sql_type(field.field_type)}" for field in iceberg.fields]
            return f"OBJECT({', '.join(fields)})"
    return _SQL_TYPES.get(type(iceberg), "VARIANT")


def refresh(account: Account, table: IcebergTable) -> None:
    """Refresh the table to the current snapshot in the catalog.

    If this raises SqlError, the table is unchanged.
    """
    if account.lake is None:
        return
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    location = _find_current_metadata(account, integration, table)
    if location != table.metadata:
        iceberg_table = _open_readable(account, table, location)
        table.columns = tuple(
            TableColumn(field.name, _to_sql_type(field.field_type)) for field in iceberg_table.schema().fields
        )
        if snapshot := iceberg_table.current_snapshot():
            table.snapshot_id = snapshot.snapshot_id
            table.snapshot_ms = snapshot.timestamp_ms
    table.metadata = location
    table.fault = ""


def _find_current_metadata(account: Account, integration: Integration, table: IcebergTable) -> str:
    try:
        return trust.find_metadata_location(account, integration, table.namespace, table.catalog_table)
    except AwsRefused as error:
        if error.code in _NOT_FOUND:
            raise SqlError(
                "094120",
                "42S02",
                f"{COMPILATION}Table '{table.catalog_table}' in namespace '{table.namespace}' is not found "
                f"in catalog integration {integration.label}: {error}",
            ) from None
        raise SqlError("004155", "22000", trust.describe_failed_access(integration, error)) from None


def _open_readable(account: Account, table: IcebergTable, location: str) -> StaticTable:
    volume: Volume = account.find(Domain.VOLUME, table.volume)
    base = volume.locations[0].base_url.rstrip("/") + "/"
    if not location.startswith(base):
        raise SqlError(
            "091347",
            "22000",
            f"{COMPILATION}The metadata file location {location} is not under the base URL {base} "
            f"of external volume {volume.label}.",
        )
    iceberg_table = _open(account, table, location)
    if _has_equality_deletes(iceberg_table):
        raise SqlError(_EQUALITY_DELETES, "0A000", "Equality deletes on Iceberg tables are not supported.")
    return iceberg_table


def _open(account: Account, table: IcebergTable, location: str) -> StaticTable:
    """Open the table with the volume's role. Raises SqlError if the role can't read the metadata."""
    volume: Volume = account.find(Domain.VOLUME, table.volume)
    try:
        access = trust.assume_for_location(account, volume.locations[0])
    except AwsRefused as error:
        raise _build_unreadable_error(volume, f"Error assuming AWS_ROLE:\n{error}") from None
    try:
        return StaticTable.from_metadata(location, access.build_properties())
    except (OSError, ValueError, NoSuchNamespaceError) as error:
        raise _build_unreadable_error(volume, str(error)) from None


def _build_unreadable_error(volume: Volume, reason: str) -> SqlError:
    return SqlError(
        "091301",
        "22000",
        f"{COMPILATION}A test file read on the external volume {volume.label} failed with the message "
        f"'{reason}'.",
    )


def read_rows(account: Account, table: IcebergTable) -> Any:
    """Return all rows as an Arrow table. Raises SqlError if the volume's role can't read them."""
    iceberg_table = _open(account, table, table.metadata)
    try:
        return iceberg_table.scan().to_arrow()
    except OSError as error:
        raise SqlError(
            "091301", "22000", f"Data files can't be read by external volume {table.volume[-1]}: {error}"
        ) from None


def _has_equality_deletes(table: StaticTable) -> bool:
    snapshot = table.current_snapshot()
    if snapshot is None:
        return False
    if snapshot.summary is not None and snapshot.summary.get("total-equality-deletes") == "0":
        return False
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DELETES:
            continue
        entries = manifest.fetch_manifest_entry(table.io)
        if any(entry.data_file.content is DataFileContent.EQUALITY_DELETES for entry in entries):
            return True
    return False


# --- automatic refresh


def start_refreshing(account: Account, table: IcebergTable) -> None:
    """Start to refresh the table at the refresh interval of its integration.

    Ends an earlier series of refreshes.
    """
    table.refresh_series += 1
    series = table.refresh_series
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    account.clock.call_later(integration.refresh_seconds, lambda: _refresh_when_due(account, table, series))


def _refresh_when_due(account: Account, table: IcebergTable, series: int) -> None:
    """Refresh the table once, also if several intervals have passed, and schedule the next refresh."""
    if account.find(*table.key) is not table or not table.auto_refresh or table.refresh_series != series:
        return
    account.clock.catch_up()
    try_refresh(account, table)
    if not table.fault.startswith(_EQUALITY_DELETES):
        start_refreshing(account, table)


def try_refresh(account: Account, table: IcebergTable) -> None:
    """Refresh the table. A failure is only visible in SYSTEM$AUTO_REFRESH_STATUS."""
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    if not integration.enabled:
        table.fault = "004155 The catalog integration is disabled"
        return
    try:
        refresh(account, table)
    except SqlError as error:
        table.fault = f"{error.code} {error.message}"


def _get_execution_state(table: IcebergTable) -> str:
    """Return the execution state.

    STALLED: refreshes are still tried; STOPPED: they aren't, because of equality deletes.
    """
    if not table.fault:
        return RUNNING
    if table.linked and not table.metadata:
        return NOT_INITIALIZED
    return STOPPED if table.fault.startswith(_EQUALITY_DELETES) else STALLED


def describe_refresh_status(table: IcebergTable) -> dict[str, Any] | None:
    """Return the result of SYSTEM$AUTO_REFRESH_STATUS; None if automatic refresh is off."""
    if not table.auto_refresh:
        return None
    answer: dict[str, Any] = {
        "executionState": _get_execution_state(table),
        "pendingSnapshotCount": 0,
        "oldestSnapshotTime": 0,
    }
    if table.snapshot_id:
        answer |= {"currentSnapshotId": str(table.snapshot_id), "lastSnapshotTime": table.snapshot_ms}
    if table.fault:
        answer["invalidExecutionStateReason"] = table.fault
    return answer


# --- catalog-linked databases


def start_syncing(account: Account, database: Database, seconds: float) -> None:
    """Sync the database after `seconds`, and then at the sync interval of its link."""
    account.clock.call_later(seconds, lambda: _sync_when_due(account, database))


def _sync_when_due(account: Account, database: Database) -> None:
    link = database.link
    if account.find(*database.key) is not database or link is None:
        return
    account.clock.catch_up()
    _sync(account, database, link)
    start_syncing(account, database, link.seconds)


def _sync(account: Account, database: Database, link: CatalogLink) -> None:
    """Add and remove schemas and tables to match the catalog.

    Failures are only visible in SYSTEM$CATALOG_LINK_STATUS.
    """
    link.attempted = account.clock.now()
    link.failures = []
    integration: Integration = account.find(Domain.INTEGRATION, link.catalog)
    try:
        if account.lake:
            namespaces = trust.list_namespaces(account, integration)
        else:
            namespaces = list(link.allowed) or [integration.namespace]
    except AwsRefused as error:
        link.failures = [trust.describe_failed_access(integration, error)]
        return
    allowed_namespaces = [
        namespace for namespace in namespaces if not link.allowed or namespace in link.allowed
    ]
    for schema in list(account.list_contents(database.name, Domain.SCHEMA)):
        if schema.label not in allowed_namespaces:
            account.remove(schema)
    for namespace in allowed_namespaces:
        _sync_namespace(account, database, link, namespace)


def _sync_namespace(account: Account, database: Database, link: CatalogLink, namespace: str) -> None:
    name = (*database.name, namespace)
    now = account.clock.now()
    integration: Integration = account.find(Domain.INTEGRATION, link.catalog)
    if account.find(Domain.SCHEMA, name) is None:
        account.add(Schema(name=name, owner=database.owner, created=now))
    try:
        tables = trust.list_iceberg_tables(account, integration, namespace) if account.lake else []
    except AwsRefused as error:
        link.failures.append(trust.describe_failed_access(integration, error))
        return
    for table in list(account.list_contents(name, Domain.ICEBERG_TABLE)):
        if table.label not in tables:
            account.remove(table)
    for label in tables:
        if account.find(Domain.ICEBERG_TABLE, (*name, label)) is None:
            table = IcebergTable(
                name=(*name, label),
                owner=database.owner,
                created=now,
                volume=link.volume,
                catalog=link.catalog,
                catalog_table=label,
                namespace=namespace,
                auto_refresh=True,
                linked=True,
            )
            account.add(table)
            try_refresh(account, table)
            start_refreshing(account, table)
