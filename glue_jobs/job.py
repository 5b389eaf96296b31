"""What the steps of a run share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from pyspark.sql import SparkSession

from exports.contract import Contract
from exports.windows import Window
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.delivery.publish import Fence, Place
from glue_jobs.keys import PseudonymKey
from glue_jobs.rows import Pipeline
from glue_jobs.runs import Clock, Phases, RunRecord
from glue_jobs.store import Bucket
from glue_jobs.table_metadata import PinnedTable


@attrs.frozen
class Job:
    """One run. `spark` starts the session when it is first called; a run with nothing to do never calls it."""

    spark: Callable[[], SparkSession]
    contract: Contract
    table: PinnedTable
    key: PseudonymKey | None
    bucket: Bucket
    record: RunRecord
    phases: Phases
    clock: Clock
    aggregates: AggregateTable | None
    dry_run: bool
    #: Whether a window may be published again without events that its published generation was made of.
    accept_fewer_events: bool = False

    @property
    def key_version(self) -> str | None:
        return self.key.version if self.key else None

    @property
    def fence(self) -> Fence:
        return Fence(self.table.current_since, self.record.started_at, self.record.id)

    def place(self, window: Window) -> Place:
        return Place(self.bucket, self.contract.name, window.label)

    def pipeline(self, window: Window) -> Pipeline:
        key = self.key.value if self.key else None
        return Pipeline(self.spark(), self.contract, self.table, window, key, self.bucket.s3)

    @contextmanager
    def phase(self, window: Window, name: str) -> Iterator[None]:
        with self.phases.phase(window.label, name):
            yield
