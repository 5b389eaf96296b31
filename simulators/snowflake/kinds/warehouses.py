"""Warehouses: what runs SELECT. They suspend themselves, and resume when they are needed."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake.errors import SqlError, invalid_property, invalid_value
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
    renamed,
    set_options,
    unset_names,
)
from simulators.snowflake.model import Domain, Warehouse
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, records, status, table
from simulators.snowflake.session import Session, running

_LABEL: Final = "WAREHOUSE"
_KNOWN: Final = "WAREHOUSE_SIZE AUTO_SUSPEND AUTO_RESUME INITIALLY_SUSPENDED COMMENT"
_OTHERS: Final = (
    "WAREHOUSE_TYPE MAX_CLUSTER_COUNT MIN_CLUSTER_COUNT SCALING_POLICY RESOURCE_MONITOR ENABLE_QUERY_ACCELERATION "
    "QUERY_ACCELERATION_MAX_SCALE_FACTOR MAX_CONCURRENCY_LEVEL STATEMENT_QUEUED_TIMEOUT_IN_SECONDS STATEMENT_TIMEOUT_IN_SECONDS "
    "RESOURCE_CONSTRAINT GENERATION WAIT_FOR_COMPLETION"
)
_SIZES: Final = {
    **dict.fromkeys(("XSMALL", "X-SMALL"), "X-Small"),
    **{size.upper(): size for size in ("Small", "Medium", "Large")},
    **dict.fromkeys(("XLARGE", "X-LARGE"), "X-Large"),
    **dict.fromkeys(("XXLARGE", "X2LARGE", "2X-LARGE"), "2X-Large"),
    **dict.fromkeys(("XXXLARGE", "X3LARGE", "3X-LARGE"), "3X-Large"),
    **{name: f"{n}X-Large" for n in (4, 5, 6) for name in (f"X{n}LARGE", f"{n}X-LARGE")},
}
_DEFAULTS: Final[dict[str, Any]] = {"size": "X-Small", "auto_suspend": 600, "auto_resume": True, "comment": ""}
_UNSET: Final = {"WAREHOUSE_SIZE": "size", "AUTO_SUSPEND": "auto_suspend", "AUTO_RESUME": "auto_resume", "COMMENT": "comment"}
_SHOWN: Final = (
    "name state type size min_cluster_count max_cluster_count started_clusters running queued is_default is_current "
    "auto_suspend auto_resume available provisioning quiescing other created_on resumed_on updated_on owner comment "
    "enable_query_acceleration query_acceleration_max_scale_factor resource_monitor scaling_policy owner_role_type"
)


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    cursor.take("WITH")
    options = Options(_LABEL, cursor.options(), _KNOWN, _OTHERS)
    cursor.end()
    if there := free(session, Domain.WAREHOUSE, name, "CREATE WAREHOUSE", making, freely):
        return there
    now = session.account.clock.now()
    warehouse = Warehouse(name=name, owner=session.role, created=now)
    _apply(warehouse, options)
    warehouse.last_used = None if options.boolean("INITIALLY_SUSPENDED", default=False) else now
    return created(session, warehouse, "Warehouse")


def _apply(warehouse: Warehouse, options: Options) -> None:
    if "WAREHOUSE_SIZE" in options:
        size = options.text("WAREHOUSE_SIZE").upper()
        if size not in _SIZES:
            raise invalid_value(size, "WAREHOUSE_SIZE")
        warehouse.size = _SIZES[size]
    if "AUTO_SUSPEND" in options:
        warehouse.auto_suspend = options.integer("AUTO_SUSPEND", 600, 0, 2**31)
    warehouse.auto_resume = options.boolean("AUTO_RESUME", default=warehouse.auto_resume)
    warehouse.comment = options.string("COMMENT", warehouse.comment)


def alter(session: Session, cursor: Cursor) -> Result:
    warehouse: Any = altering(session, cursor, Domain.WAREHOUSE)
    if warehouse is None:
        return status()
    if cursor.at("SUSPEND") or cursor.at("RESUME"):
        return _switched(session, cursor, warehouse)
    if cursor.take("RENAME", "TO"):
        return renamed(session, cursor, warehouse)
    if cursor.take("UNSET"):
        names = unset_names(cursor)
        session.require("MODIFY", warehouse)
        for name in names:
            if name not in _UNSET:
                raise invalid_property(name, _LABEL)
            setattr(warehouse, _UNSET[name], _DEFAULTS[_UNSET[name]])
        return status()
    cursor.expect("SET")
    options = set_options(cursor, _LABEL, _KNOWN.replace("INITIALLY_SUSPENDED ", ""), _OTHERS)
    session.require("MODIFY", warehouse)
    _apply(warehouse, options)
    return status()


def _switched(session: Session, cursor: Cursor, warehouse: Warehouse) -> Result:
    resuming = cursor.word() == "RESUME"
    lenient = resuming and cursor.take("IF", "SUSPENDED")
    cursor.end()
    session.require("OPERATE", warehouse)
    now = session.account.clock.now()
    if running(warehouse, now) is resuming and not lenient:
        word = "suspended" if not resuming else "resumed"
        raise SqlError("090063", "22000", f"Invalid state. Warehouse '{warehouse.label}' cannot be {word}.")
    warehouse.last_used = now if resuming else None
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.WAREHOUSE)
    return dropped(session, found.thing) if found.thing else found.absent


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.WAREHOUSE)
    return records(_SHOWN, (_row(session, each) for each in wanted.of(session, Warehouse)))


def _row(session: Session, warehouse: Warehouse) -> dict[str, Any]:
    return {
        "name": warehouse.label,
        "state": "STARTED" if running(warehouse, session.account.clock.now()) else "SUSPENDED",
        "type": "STANDARD",
        "size": warehouse.size,
        "is_default": "Y" if warehouse.label == session.user.default_warehouse else "N",
        "is_current": "Y" if warehouse.label == session.warehouse else "N",
        "auto_suspend": warehouse.auto_suspend,
        "auto_resume": warehouse.auto_resume,
        "created_on": warehouse.created,
        "resumed_on": warehouse.last_used or warehouse.created,
        "updated_on": warehouse.created,
        "owner": warehouse.owner,
        "comment": warehouse.comment,
        "resource_monitor": "null",
        "owner_role_type": "ROLE",
    } | dict.fromkeys(("min_cluster_count", "max_cluster_count"), 1)


def describe(session: Session, cursor: Cursor) -> Result:
    warehouse = session.resolve(Domain.WAREHOUSE, cursor.name())
    cursor.end()
    return table("created_on name kind", [(warehouse.created, warehouse.label, _LABEL)])


KIND: Final = Kind(_LABEL, "WAREHOUSES", create, alter, drop, show, describe)
