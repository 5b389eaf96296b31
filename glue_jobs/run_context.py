"""What the windows of a run share: session, contract, pinned table, and what earlier runs left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from functools import cache, cached_property
from typing import Any

import attrs
from pyspark.sql import SparkSession

from config.exports.contract import Contract
from config.exports.windows import Window
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.borders import Border, Borders
from glue_jobs.catalogs import SourceCatalog
from glue_jobs.completeness import Completeness
from glue_jobs.delivery.manifest import Manifest
from glue_jobs.delivery.publish import (
    Listing,
    WindowLocation,
)
from glue_jobs.event_time import EventTime
from glue_jobs.pseudonyms import PseudonymKey
from glue_jobs.replacement import Replacement
from glue_jobs.rows import ExportQuery
from glue_jobs.runs import Clock, OnPhase, RunRecord
from glue_jobs.source import PinnedTable
from glue_jobs.store import Bucket


@attrs.frozen(slots=False)  # for `cached_property`
class RunContext:
    """What the windows of a run share. `spark` returns the session, and waits for it if it is still starting;
    a run without windows never calls it. `computed` has, by window, the document of the last run that
    computed it or found it up to date.
    """

    spark: Callable[[], SparkSession]
    catalog: SourceCatalog
    contract: Contract
    table: PinnedTable
    key: PseudonymKey | None
    bucket: Bucket
    record: RunRecord
    listing: Listing
    #: The windows that the run processes, in this order.
    windows: list[Window]
    #: A day of the first window that is exported.
    first_day: date
    computed: dict[str, dict[str, Any]]
    clock: Clock
    on_phase: OnPhase
    aggregates: AggregateTable | None
    dry_run: bool
    #: Whether a window may be published again without events that its published generation counted.
    accept_fewer_events: bool
    #: Whether a window may be published although it doesn't fit an older window that the run doesn't publish
    #: again.
    accept_window_change: bool
    #: How many partitions the topic has, or 0 if that isn't known.
    partitions: int
    #: Somebody states that the table has all events that Kafka received before this instant.
    complete_until: datetime | None

    @property
    def key_version(self) -> str | None:
        return self.key.version if self.key else None

    def reopen(self) -> RunContext:
        """Return the run without what it has loaded so far, so that the table is loaded again, with new
        credentials. The snapshot stays the same.
        """
        return attrs.evolve(self)

    def location(self, window: Window) -> WindowLocation:
        return WindowLocation(self.bucket, self.contract.name, window.label)

    @cached_property
    def query(self) -> ExportQuery:
        key = self.key.value if self.key else b""
        return ExportQuery(self.spark(), self.contract, self.table, self.windows, key, self.catalog)

    @cached_property
    def completeness(self) -> Completeness:
        return Completeness(self.query, self.partitions, self.complete_until)

    @cached_property
    def replacement(self) -> Replacement:
        published = self.listing.labels("manifests")
        return Replacement(self.completeness, self.first_day, published, self._read_manifest)

    @cached_property
    def _read_manifest(self) -> Callable[[str], Manifest | None]:
        """Return a function that reads the manifest of a label once."""

        @cache
        def read(label: str) -> Manifest | None:
            stored = WindowLocation(self.bucket, self.contract.name, label).current()
            return stored[0] if stored else None

        return read

    @cached_property
    def borders(self) -> dict[str, list[Border]]:
        """Return the borders to published windows that don't fit, by the label of a window of the run."""
        published = self.listing.labels("manifests")
        has_zone = EventTime(self.contract, self.table).has_zone
        borders = Borders(self.contract, self.windows, published, self._read_manifest, has_zone)
        return borders.find(accept=self.accept_window_change)

    @cached_property
    def aggregated(self) -> dict[str, str] | None:
        """The id of the run whose rows the table of aggregates has, by computed window."""
        return self.aggregates.published_runs(sorted(self.computed)) if self.aggregates else None

    @contextmanager
    def phase(self, window: Window, name: str) -> Iterator[None]:
        self.on_phase(window.label, name)
        with self.record.phase(name):
            yield
