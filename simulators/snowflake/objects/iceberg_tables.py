"""Iceberg tables of an external catalog. They are read through Glue and S3."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from simulators.snowflake import iceberg
from simulators.snowflake.errors import COMPILATION, SqlError, not_simulated, syntax, unsupported
from simulators.snowflake.model import Domain, IcebergTable, Integration, Name, Volume, to_sql_name
from simulators.snowflake.objects.object_type import COMMENT, ObjectType, Properties, build_boolean_property
from simulators.snowflake.parser import Cursor, Options
from simulators.snowflake.results import Result, build_table
from simulators.snowflake.session import Session


class IcebergTables(ObjectType[IcebergTable]):
    model = IcebergTable
    words = "ICEBERG TABLE"
    title = "Table"
    create_privilege = "CREATE ICEBERG TABLE"
    properties: ClassVar[Properties] = {
        "AUTO_REFRESH": build_boolean_property("auto_refresh"),
        "COMMENT": COMMENT,
    }
    create_only = "EXTERNAL_VOLUME CATALOG CATALOG_TABLE_NAME CATALOG_NAMESPACE"
    not_simulated = (
        "BASE_LOCATION METADATA_FILE_PATH REPLACE_INVALID_CHARACTERS CATALOG_SYNC "
        "STORAGE_SERIALIZATION_POLICY DATA_RETENTION_TIME_IN_DAYS TARGET_FILE_SIZE "
        "ENABLE_ICEBERG_MERGE_ON_READ"
    )
    set_not_simulated = "CATALOG_TABLE_NAME"
    alter_not_simulated = "CONVERT ADD DROP RENAME ALTER CLUSTER"
    columns = (
        "created_on name database_name schema_name owner external_volume_name catalog_name "
        "iceberg_table_type catalog_table_name catalog_namespace base_location can_write_metadata comment "
        "owner_role_type catalog_sync_name auto_refresh_status"
    )

    def read_clauses(self, cursor: Cursor) -> dict[str, Any]:
        if cursor.is_at_sign("("):
            raise not_simulated("Iceberg tables of Snowflake's own catalog")
        return {}

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        options.require("CATALOG", "CATALOG_TABLE_NAME", "EXTERNAL_VOLUME")
        return self.read(session, options) | {
            "volume": options.read_text("EXTERNAL_VOLUME"),
            "catalog": options.read_text("CATALOG"),
            "catalog_table": options.read_string("CATALOG_TABLE_NAME"),
            "namespace": options.read_string("CATALOG_NAMESPACE"),
        }

    def build(self, session: Session, name: Name, fields: dict[str, Any]) -> IcebergTable:
        """Return a new table at the catalog's current snapshot. This needs a warehouse. Raises SqlError."""
        if session.account.find(Domain.DATABASE, name[:1]).link:
            raise unsupported(
                "CREATE ICEBERG TABLE in a catalog-linked database whose writes are not allowed"
            )
        volume: Volume = session.resolve_text(Domain.VOLUME, fields["volume"])
        catalog: Integration = session.resolve_text(Domain.INTEGRATION, fields["catalog"])
        session.require("USAGE", volume)
        session.require("USAGE", catalog)
        if not catalog.enabled:
            raise SqlError(
                "004155", "22000", f"{COMPILATION}Catalog integration {catalog.label} is disabled."
            )
        namespace = fields["namespace"] or catalog.namespace
        if not namespace:
            raise syntax(f"Neither the table nor integration {catalog.label} has a CATALOG_NAMESPACE")
        references = {"volume": volume.name, "catalog": catalog.name, "namespace": namespace}
        new = super().build(session, name, fields | references)
        session.get_running_warehouse()
        iceberg.refresh(session.account, new)
        return new

    def act_on_creation(self, session: Session, new: IcebergTable) -> None:
        if new.auto_refresh:
            iceberg.start_refreshing(session.account, new)

    def alter_otherwise(self, session: Session, cursor: Cursor, iceberg_table: IcebergTable) -> bool:
        if not cursor.take("REFRESH"):
            return False
        cursor.end()
        session.require("OWNERSHIP", iceberg_table)
        if iceberg_table.auto_refresh:
            message = (
                f"{COMPILATION}Manual REFRESH of {iceberg_table.label} is not allowed while AUTO_REFRESH is "
                "enabled."
            )
            raise SqlError("091337", "22000", message)
        session.get_running_warehouse()
        iceberg.refresh(session.account, iceberg_table)
        return True

    def apply(self, session: Session, iceberg_table: IcebergTable, fields: dict[str, Any]) -> None:
        """Change the table.

        Turning automatic refresh off and on again restarts a table whose refresh had stopped.
        """
        starts = fields.get("auto_refresh", False) and not iceberg_table.auto_refresh
        super().apply(session, iceberg_table, fields)
        if starts:
            iceberg.try_refresh(session.account, iceberg_table)
            iceberg.start_refreshing(session.account, iceberg_table)
        if not iceberg_table.auto_refresh:
            iceberg_table.fault = ""

    def prepare_drop(self, session: Session, iceberg_table: IcebergTable) -> None:
        if iceberg_table.linked:
            raise unsupported("DROP in a catalog-linked database whose writes are not allowed")

    def build_row(self, session: Session, iceberg_table: IcebergTable) -> dict[str, Any]:
        state = iceberg.describe_refresh_status(iceberg_table)
        return {
            "database_name": iceberg_table.name[0],
            "schema_name": iceberg_table.name[1],
            "external_volume_name": to_sql_name(iceberg_table.volume),
            "catalog_name": to_sql_name(iceberg_table.catalog),
            "iceberg_table_type": "UNMANAGED",
            "catalog_table_name": iceberg_table.catalog_table,
            "catalog_namespace": iceberg_table.namespace,
            "can_write_metadata": "N",
            "auto_refresh_status": json.dumps(state) if state else None,
        }

    def build_description(self, session: Session, iceberg_table: IcebergTable) -> Result:
        session.require_any(("SELECT", "REFERENCES", "OWNERSHIP"), iceberg_table)
        names = (
            "name type kind null? default primary~key unique~key check expression comment policy~name "
            "privacy~domain"
        )
        columns = iceberg.list_columns(iceberg_table)
        return build_table(
            names,
            (
                (column.name, column.sql_type, "COLUMN", "Y", None, "N", "N", *[None] * 5)
                for column in columns
            ),
        )
