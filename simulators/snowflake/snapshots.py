"""An Iceberg table as Snowflake reads it: metadata and files with the volume's session, at one snapshot."""

from __future__ import annotations

from typing import Any, Final

from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table import StaticTable

from simulators.snowflake import iceberg_types, trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import COMPILATION, SqlError
from simulators.snowflake.lake import AwsRefused
from simulators.snowflake.model import Domain, IcebergTable, Integration, Volume

_NOT_FOUND: Final = ("EntityNotFoundException",)
EQUALITY_DELETES: Final = "091968"


def refresh(account: Account, table: IcebergTable) -> None:
    """Show what the catalog has now. Raises SqlError, and shows what it showed before."""
    if account.lake is None:
        table.refreshed = account.clock.now()
        return
    integration: Integration = account.find(Domain.INTEGRATION, table.catalog)
    location = _current(account, integration, table)
    if location != table.metadata:
        opened = _readable(account, table, location)
        table.columns = iceberg_types.columns(opened.schema())
        if newest := opened.current_snapshot():
            table.snapshot_id, table.snapshot_ms = newest.snapshot_id, newest.timestamp_ms
    table.metadata, table.refreshed, table.fault = location, account.clock.now(), ""


def _current(account: Account, integration: Integration, table: IcebergTable) -> str:
    try:
        return trust.metadata_location(account, integration, table.namespace, table.catalog_table)
    except AwsRefused as error:
        if error.code in _NOT_FOUND:
            raise SqlError(
                "094120",
                "42S02",
                f"{COMPILATION}Table '{table.catalog_table}' in namespace '{table.namespace}' is not found "
                f"in catalog integration {integration.label}: {error}",
            ) from None
        raise SqlError("004155", "22000", trust.failed_access(integration, error)) from None


def _readable(account: Account, table: IcebergTable, location: str) -> StaticTable:
    volume: Volume = account.find(Domain.VOLUME, table.volume)
    place = volume.locations[0]
    base = place.base_url.rstrip("/") + "/"
    if not location.startswith(base):
        raise SqlError(
            "091347",
            "22000",
            f"{COMPILATION}The metadata file location {location} is not under the base URL {base} "
            f"of external volume {volume.label}.",
        )
    opened = load(account, table, location)
    if _has_equality_deletes(opened):
        raise SqlError(EQUALITY_DELETES, "0A000", "Equality deletes on Iceberg tables are not supported.")
    return opened


def load(account: Account, table: IcebergTable, location: str = "") -> StaticTable:
    """Raises SqlError where the volume's role can't read it."""
    volume: Volume = account.find(Domain.VOLUME, table.volume)
    try:
        access = trust.of_location(account, volume.locations[0])
    except AwsRefused as error:
        raise _unreadable(volume, f"Error assuming AWS_ROLE:\n{error}") from None
    try:
        return StaticTable.from_metadata(location or table.metadata, access.properties())
    except (OSError, ValueError, NoSuchNamespaceError) as error:
        raise _unreadable(volume, str(error)) from None


def _unreadable(volume: Volume, why: str) -> SqlError:
    return SqlError(
        "091301", "22000", f"{COMPILATION}A test file read on the external volume {volume.label} failed with the message '{why}'."
    )


def rows(table: StaticTable, volume_name: str) -> Any:
    """All of them, as Arrow. Raises SqlError."""
    try:
        return table.scan().to_arrow()
    except OSError as error:
        raise SqlError("091301", "22000", f"Data files can't be read by external volume {volume_name}: {error}") from None


def _has_equality_deletes(table: StaticTable) -> bool:
    snapshot = table.current_snapshot()
    if snapshot is None:
        return False
    if snapshot.summary is not None and snapshot.summary.get("total-equality-deletes") == "0":
        return False
    return any(
        entry.data_file.content is DataFileContent.EQUALITY_DELETES
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(table.io)
    )
