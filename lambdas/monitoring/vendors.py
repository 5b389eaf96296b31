"""The hops at the vendors: when topics last got records, and which snapshot Snowflake shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import attrs

from lambdas.confluent import telemetry
from lambdas.confluent.plane import Plane
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.remembered import HOUR, remembered
from lambdas.shared.errors import LakeferryError
from lambdas.snowflake import sql
from lambdas.snowflake.client import Snowflake

_STATUS: Final = "SELECT SYSTEM$AUTO_REFRESH_STATUS({table}) AS RESULT"
_RUNNING: Final = "RUNNING"


class Topics:
    """One cluster's. What the Metrics API says is asked for once."""

    def __init__(self, connect: Callable[[], Plane], cluster_id: str, now: Callable[[], float]) -> None:
        self._now = now
        plane = remembered(connect)
        self._received = remembered(lambda: telemetry.last_received(plane(), cluster_id, now()))
        self._skipped = remembered(lambda: telemetry.recently_skipped(plane(), cluster_id, now()))
        self._logged = remembered(lambda: telemetry.recently_received(plane(), cluster_id, now()))

    def age(self, topic: str) -> float:
        """In hours; a topic without records in the last week is as old as that."""
        now = self._now()
        return (now - self._received().get(topic, now - telemetry.LOOKS_BACK.total_seconds())) / HOUR

    def skipped(self) -> float:
        """Records that Tableflow left out of tables, in this hour and the one before."""
        return self._skipped()

    def logged(self, error_log: str) -> float:
        """Records that Tableflow wrote to this topic in place of a table, in this hour and the one before."""
        return self._logged().get(error_log, 0.0)


@attrs.frozen
class Shown:
    """Tables in Snowflake, seen as their readers see them. No warehouse works for this."""

    connect: Callable[[], Snowflake]
    now: Callable[[], float]

    def age(self, table: str) -> float:
        """In hours, of the snapshot that is shown."""
        reference = sql.reference(*sql.split(table))
        status = self.connect().document(sql.statement(_STATUS, table=reference))
        told: Mapping[str, Any] = status if isinstance(status, dict) else {}
        if told.get("executionState") != _RUNNING:
            reason = told.get("invalidExecutionStateReason") or "it gives no reason"
            raise LakeferryError(
                monitoring_errors.NOT_REFRESHING, f"{table} is {told.get('executionState') or 'frozen'}: {reason}"
            )
        instant = _seconds(told.get("lastSnapshotTime"))
        if instant is None:
            raise LakeferryError(monitoring_errors.NO_COMMIT, f"{table} in Snowflake")
        return (self.now() - instant) / HOUR


def _seconds(told: object) -> float | None:
    """Snowflake's documentation doesn't say how it writes times there: as milliseconds since 1970, or as a date."""
    try:
        return float(str(told)) / 1000 or None
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(str(told)).timestamp()
    except ValueError:
        return None
