"""What Tableflow itself says of each table: whether it still writes it, and since when there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from lambdas.confluent.plane import Plane
from lambdas.confluent.reading import at, needed, objects, text
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.remembered import remembered
from lambdas.shared.errors import LakeferryError

ROUTE: Final = "/tableflow/v1/tableflow-topics"


class Connection(NamedTuple):
    plane: Plane
    environment_id: str
    cluster_id: str


class Tables:
    """One cluster's, listed once."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._listed = remembered(self._list)

    def stopped(self, topic: str) -> float:
        """1 where Tableflow writes the table no more until somebody acts, 0 where it runs or starts."""
        table = self._table(topic)
        failed = text(table, "status", "phase") == "FAILED" or bool(objects(table, "status", "failing_table_formats"))
        return float(failed or at(table, "spec", "suspended") is True)

    def created(self, topic: str) -> float:
        """In seconds since 1970."""
        return datetime.fromisoformat(needed(self._table(topic), "metadata", "created_at")).timestamp()

    def _table(self, topic: str) -> Mapping[str, Any]:
        found = self._listed().get(topic)
        if found is None:
            raise LakeferryError(monitoring_errors.NO_TABLEFLOW, f"topic {topic}")
        return found

    def _list(self) -> Mapping[str, Mapping[str, Any]]:
        plane, environment, cluster = self._connect()
        listed = plane.pages(ROUTE, **{"environment": environment, "spec.kafka_cluster": cluster})
        return {text(one, "spec", "display_name"): one for one in listed}
