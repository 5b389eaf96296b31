"""Virtual warehouses, which run SELECT. They are suspended and resumed automatically."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from simulators.snowflake.errors import SqlError, invalid_value
from simulators.snowflake.model import Warehouse
from simulators.snowflake.objects.object_type import (
    COMMENT,
    ObjectType,
    Properties,
    Property,
    build_boolean_property,
    build_integer_property,
)
from simulators.snowflake.parser import Cursor, Options
from simulators.snowflake.session import Session

_SIZES: Final = {
    **dict.fromkeys(("XSMALL", "X-SMALL"), "X-Small"),
    **{size.upper(): size for size in ("Small", "Medium", "Large")},
    **dict.fromkeys(("XLARGE", "X-LARGE"), "X-Large"),
    **dict.fromkeys(("XXLARGE", "X2LARGE", "2X-LARGE"), "2X-Large"),
    **dict.fromkeys(("XXXLARGE", "X3LARGE", "3X-LARGE"), "3X-Large"),
    **dict.fromkeys(("X4LARGE", "4X-LARGE"), "4X-Large"),
    **dict.fromkeys(("X5LARGE", "5X-LARGE"), "5X-Large"),
    **dict.fromkeys(("X6LARGE", "6X-LARGE"), "6X-Large"),
}


def _read_size(options: Options, name: str) -> str:
    size = options.read_text(name).upper()
    if size not in _SIZES:
        raise invalid_value(size, name)
    return _SIZES[size]


class Warehouses(ObjectType[Warehouse]):
    model = Warehouse
    words = "WAREHOUSE"
    title = "Warehouse"
    create_privilege = "CREATE WAREHOUSE"
    alter_privilege = "MODIFY"
    properties: ClassVar[Properties] = {
        "WAREHOUSE_SIZE": Property("size", _read_size),
        "AUTO_SUSPEND": build_integer_property("auto_suspend", 0, 2**31),
        "AUTO_RESUME": build_boolean_property("auto_resume"),
        "COMMENT": COMMENT,
    }
    create_only = "INITIALLY_SUSPENDED"
    unset = "WAREHOUSE_SIZE AUTO_SUSPEND AUTO_RESUME COMMENT"
    not_simulated = (
        "WAREHOUSE_TYPE MAX_CLUSTER_COUNT MIN_CLUSTER_COUNT SCALING_POLICY RESOURCE_MONITOR "
        "ENABLE_QUERY_ACCELERATION QUERY_ACCELERATION_MAX_SCALE_FACTOR MAX_CONCURRENCY_LEVEL "
        "STATEMENT_QUEUED_TIMEOUT_IN_SECONDS STATEMENT_TIMEOUT_IN_SECONDS RESOURCE_CONSTRAINT GENERATION "
        "WAIT_FOR_COMPLETION"
    )
    renamable = True
    columns = (
        "name state type size min_cluster_count max_cluster_count started_clusters running queued "
        "is_default is_current auto_suspend auto_resume available provisioning quiescing other created_on "
        "resumed_on updated_on owner comment enable_query_acceleration query_acceleration_max_scale_factor "
        "resource_monitor scaling_policy owner_role_type"
    )

    def read_clauses(self, cursor: Cursor) -> dict[str, Any]:
        cursor.take("WITH")
        return {}

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        started = None if options.read_boolean("INITIALLY_SUSPENDED") else session.account.clock.now()
        return self.read(session, options) | {"last_used": started}

    def alter_otherwise(self, session: Session, cursor: Cursor, warehouse: Warehouse) -> bool:
        now = session.account.clock.now()
        if not warehouse.is_running(now):
            warehouse.last_used = None  # it was auto-suspended, and a longer AUTO_SUSPEND must not resume it
        resuming = cursor.take("RESUME")
        if not resuming and not cursor.take("SUSPEND"):
            return False
        if_suspended = resuming and cursor.take("IF", "SUSPENDED")
        cursor.end()
        session.require("OPERATE", warehouse)
        if warehouse.is_running(now) is resuming and not if_suspended:
            participle = "resumed" if resuming else "suspended"
            raise SqlError(
                "090063", "22000", f"Invalid state. Warehouse '{warehouse.label}' cannot be {participle}."
            )
        warehouse.last_used = now if resuming else None
        return True

    def build_row(self, session: Session, warehouse: Warehouse) -> dict[str, Any]:
        return {
            "state": "STARTED" if warehouse.is_running(session.account.clock.now()) else "SUSPENDED",
            "type": "STANDARD",
            "size": warehouse.size,
            "min_cluster_count": 1,
            "max_cluster_count": 1,
            "is_default": "Y" if warehouse.label == session.user.default_warehouse else "N",
            "is_current": "Y" if warehouse.label == session.warehouse else "N",
            "auto_suspend": warehouse.auto_suspend,
            "auto_resume": warehouse.auto_resume,
            "resumed_on": warehouse.last_used or warehouse.created,
            "updated_on": warehouse.created,
            "resource_monitor": "null",
        }
