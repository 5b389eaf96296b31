"""What happens by itself: tables that follow their catalog, and linked databases that follow its namespaces."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake import snapshots, trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import SqlError
from simulators.snowflake.future import apply_to
from simulators.snowflake.lake import AwsRefused
from simulators.snowflake.model import Database, Domain, IcebergTable, Integration, Schema

RUNNING: Final = "RUNNING"
STALLED: Final = "STALLED"
STOPPED: Final = "STOPPED"
NOT_INITIALIZED: Final = "ICEBERG_TABLE_NOT_INITIALIZED"


def follow(account: Account, table: IcebergTable) -> None:
    """From now on, look each interval."""
    table.follows += 1
    turn = table.follows
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    account.clock.after(integration.refresh_seconds, lambda: _look(account, table, turn))


def _look(account: Account, table: IcebergTable, turn: int) -> None:
    """Looks missed meanwhile are one look."""
    if account.find(*table.key) is not table or not table.auto_refresh or table.follows != turn:
        return
    account.clock.catch_up()
    look(account, table)
    if not table.fault.startswith(snapshots.EQUALITY_DELETES):
        follow(account, table)


def look(account: Account, table: IcebergTable) -> None:
    """What goes wrong is kept, with its number, and told by SYSTEM$AUTO_REFRESH_STATUS only."""
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    if not integration.enabled:
        table.fault = "004155 The catalog integration is disabled"
        return
    try:
        snapshots.refresh(account, table)
    except SqlError as error:
        table.fault = f"{error.code} {error.message}"


def state(table: IcebergTable) -> str:
    """One that can't be read recovers by itself, one with equality deletes doesn't."""
    if not table.fault:
        return RUNNING
    if table.linked and not table.metadata:
        return NOT_INITIALIZED
    return STOPPED if table.fault.startswith(snapshots.EQUALITY_DELETES) else STALLED


def status(table: IcebergTable) -> dict[str, Any] | None:
    """As SYSTEM$AUTO_REFRESH_STATUS says it; None where the table is frozen."""
    if not table.auto_refresh:
        return None
    told: dict[str, Any] = {"executionState": state(table), "pendingSnapshotCount": 0, "oldestSnapshotTime": 0}
    if table.snapshot_id:
        told |= {"currentSnapshotId": str(table.snapshot_id), "lastSnapshotTime": table.snapshot_ms}
    return told | ({"invalidExecutionStateReason": table.fault} if table.fault else {})


def follow_catalog(account: Account, database: Database) -> None:
    """From now on, each interval: schemas and tables come and go with the catalog's."""
    account.clock.after(database.link.seconds, lambda: _sync(account, database))


def _sync(account: Account, database: Database) -> None:
    if account.find(*database.key) is not database:
        return
    account.clock.catch_up()
    sync(account, database)
    follow_catalog(account, database)


def sync(account: Account, database: Database) -> None:
    link = database.link
    link.attempted = account.clock.now()
    link.failures = []
    integration: Integration = account.find(Domain.INTEGRATION, link.catalog)
    try:
        there = trust.namespaces(account, integration) if account.lake else link.allowed or [integration.namespace]
    except AwsRefused as error:
        link.failures = [trust.failed_access(integration, error)]
        return
    wanted = [each for each in there if not link.allowed or each in link.allowed]
    for schema in list(account.below(database.name, Domain.SCHEMA)):
        if schema.label not in wanted:
            account.remove(schema)
    for namespace in wanted:
        _sync_namespace(account, database, integration, namespace)


def _sync_namespace(account: Account, database: Database, integration: Integration, namespace: str) -> None:
    name, now = (*database.name, namespace), account.clock.now()
    if account.find(Domain.SCHEMA, name) is None:
        _add(account, Schema(name=name, owner=database.owner, created=now))
    try:
        tables = trust.iceberg_tables(account, integration, namespace) if account.lake else []
    except AwsRefused as error:
        database.link.failures.append(trust.failed_access(integration, error))
        return
    for thing in list(account.below(name, Domain.ICEBERG_TABLE)):
        if thing.label not in tables:
            account.remove(thing)
    for each in tables:
        if account.find(Domain.ICEBERG_TABLE, (*name, each)) is None:
            _add_table(account, database, namespace, each)


def _add_table(account: Account, database: Database, namespace: str, catalog_table: str) -> None:
    link = database.link
    table = IcebergTable(
        name=(*database.name, namespace, catalog_table),
        owner=database.owner,
        created=account.clock.now(),
        volume=link.volume,
        catalog=link.catalog,
        catalog_table=catalog_table,
        namespace=namespace,
        auto_refresh=True,
        linked=True,
    )
    _add(account, table)
    look(account, table)
    follow(account, table)


def _add(account: Account, thing: Schema | IcebergTable) -> None:
    account.add(thing)
    apply_to(account, thing)
