"""Aggregates in an Iceberg table of Lakeferry: one row for each group and window, with the id of the run that
published it.

The manifest decides what is visible, and the table follows it. If a run dies between the two, the next run
updates the table. A slow run can't restore old rows: Iceberg refuses the commit if the window was changed
since the manifest was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from config.exports.contract import Contract
from config.exports.windows import Window
from glue_jobs import outcomes
from glue_jobs.delivery.manifest import Manifest
from glue_jobs.delivery.publish import WindowLocation
from glue_jobs.errors import SourceProblem
from glue_jobs.platform import CATALOG
from glue_jobs.source import make_timestamp_literal, pin, quoted
from glue_jobs.store import Services

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 10
#: Older snapshots expire, but for the newest ones.
_KEPT_FOR = timedelta(days=30)
_KEPT_SNAPSHOTS = 20
_TYPES = {"text": "string", "integer": "bigint"}


@attrs.frozen
class AggregateTable:
    services: Services
    spark: Callable[[], SparkSession]
    contract: Contract
    database: str

    @property
    def name(self) -> str:
        return f"{self.database}.{self.contract.name}"

    def create(self) -> None:
        """Create the table, or add the columns that are new in the contract.

        Raises SourceProblem if a column has another type in the table.
        """
        spark = self.spark()
        window_columns = {
            "window": "string",
            "window_start": "timestamp",
            "window_end": "timestamp",
            "run_id": "string",
        }
        wanted = window_columns | {
            column.name: _TYPES.get(column.type, column.type) for column in self.contract.columns
        }
        if not self._exists():
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(CATALOG)}.{quoted(self.database)}")
            columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in wanted.items())
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self._identifier} ({columns}) USING iceberg PARTITIONED BY "
                "(window)"
            )
            return
        self._evolve(wanted)

    def commit_nothing(self) -> None:
        """Commit a snapshot without new rows: readers may look for a new snapshot, not for new columns."""
        self.spark().table(self._identifier).limit(0).writeTo(self._identifier).append()

    def published_runs(self, windows: list[str]) -> dict[str, str] | None:
        """Return the id of the run that published each of these windows, if the table has it, by label.

        None without a table.
        """
        if not self._exists():
            return None
        rows = self.spark().table(self._identifier).filter(F.col("window").isin(windows))
        return {row["window"]: row["run_id"] for row in rows.select("window", "run_id").distinct().collect()}

    def write(self, location: WindowLocation, window: Window, visible: Manifest, groups: DataFrame) -> None:
        """Replace the window's rows with those of the manifest `visible`, unless another run's manifest is
        visible by now.

        Raises SourceProblem if other writers keep changing the table.
        """
        self.create()
        rows = self._add_window_columns(groups, window, visible["run_id"])
        for _ in range(_ATTEMPTS):
            options = self._require_current_snapshot()
            current = location.current()
            if current is None or current[0]["run_id"] != visible["run_id"]:
                return
            if is_table_current(self.published_runs([location.window]), visible):
                return
            try:
                rows.writeTo(self._identifier).options(**options).overwrite(
                    F.col("window") == location.window
                )
            except (
                PySparkException,
                Py4JJavaError,
            ) as error:  # Py4JJavaError: PySpark has no class for the error
                if "ValidationException" not in str(error) and "CommitFailedException" not in str(error):
                    raise
            else:
                self.expire_snapshots(datetime.now(UTC) - _KEPT_FOR)
                return
        raise SourceProblem("EXP-AGGREGATE-BUSY", f"other writers keep changing {self.name}")

    def expire_snapshots(self, before: datetime) -> None:
        """Expire snapshots that were committed before this moment, but for the newest 20, and delete files
        that only they have.

        The rows are published by then, so what can't be expired now is left for the next run.
        """
        jvm: Any = self.spark()._jvm
        try:
            table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
                self.spark()._jsparkSession, self._identifier
            )
            expiry = table.expireSnapshots().expireOlderThan(int(before.timestamp() * 1000))
            expiry.retainLast(_KEPT_SNAPSHOTS).commit()
        except (PySparkException, Py4JJavaError) as error:
            _LOG.warning("old snapshots of %s did not expire: %s", self.name, type(error).__name__)

    @property
    def _identifier(self) -> str:
        return ".".join(quoted(part) for part in (CATALOG, self.database, self.contract.name))

    def _exists(self) -> bool:
        return self.spark().catalog.tableExists(self._identifier)

    def _require_current_snapshot(self) -> dict[str, str]:
        """Return options with which Iceberg refuses the commit if the window changes after this moment."""
        options = {"isolation-level": "serializable"}
        with suppress(SourceProblem):  # without a snapshot, Iceberg validates against all commits
            options["validate-from-snapshot-id"] = str(
                pin(self.services, self.database, self.contract.name).snapshot_id
            )
        return options

    def _add_window_columns(self, groups: DataFrame, window: Window, run_id: str) -> DataFrame:
        delivered = groups.filter(F.col(outcomes.LINE_STATE) == outcomes.DELIVERED)
        about: dict[str, Expression] = {
            "window": F.lit(window.label),
            "window_start": make_timestamp_literal(window.start),
            "window_end": make_timestamp_literal(window.end),
            "run_id": F.lit(run_id),
        }
        columns = {column.name: F.col(column.name) for column in self.contract.columns}
        # The table keeps columns that the contract no longer has, because older windows have them.
        former = [
            field
            for field in self.spark().table(self._identifier).schema
            if field.name not in about | columns
        ]
        removed = {field.name: F.lit(None).cast(field.dataType) for field in former}
        return delivered.select(
            *[value.alias(name) for name, value in (about | columns | removed).items()]
        ).coalesce(1)

    def _evolve(self, wanted: dict[str, str]) -> None:
        """Add columns that are new in the contract.

        Raises SourceProblem if a column has another type in the table.
        """
        existing = {
            field.name: field.dataType.simpleString() for field in self.spark().table(self._identifier).schema
        }
        differing = [
            f"{name} is {existing[name]}, not {type_}"
            for name, type_ in wanted.items()
            if existing.get(name, type_) != type_
        ]
        if differing:
            raise SourceProblem(
                "EXP-AGGREGATE-TYPE",
                f"the table {self.name} has columns of other types: {', '.join(differing)}",
            )
        for name in wanted.keys() - existing.keys():
            self.spark().sql(f"ALTER TABLE {self._identifier} ADD COLUMN {quoted(name)} {wanted[name]}")


def is_table_current(published: dict[str, str] | None, manifest: Manifest) -> bool:
    """Return whether the table has the rows of the manifest's run.

    A window without rows has none in the table either.
    """
    if published is None:
        return False
    run_id = published.get(manifest["window"]["label"])
    return run_id == manifest["run_id"] if run_id else bool(manifest["rows"]["rows"] == 0)
