"""Whether a new table of the topic may begin too late for a window.

Tableflow begins a new table with the oldest record that Kafka still has: after it was off, after a change of
the storage, or for a topic that was created again. The manifests of earlier windows show that there was
another table. Then the new one is known to have the window's events from the beginning only if it was already
written before the window, or has an event from before the window in each Kafka partition.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

import attrs
from pyspark.sql import functions as F

from config.exports.windows import Window, find_window, parse_label
from glue_jobs import source
from glue_jobs.completeness import Completeness
from glue_jobs.delivery.losses import can_compare
from glue_jobs.delivery.manifest import INCOMPLETE, Manifest, list_table_uuids
from glue_jobs.event_time import AHEAD, EventTime
from glue_jobs.table_fields import PARTITION, TIMESTAMP


@attrs.frozen
class Replacement:
    """`first_day` is one of the run's first window. `published` are the labels of visible windows; `read`
    returns a window's manifest.
    """

    completeness: Completeness
    first_day: date
    published: list[str]
    read: Callable[[str], Manifest | None]

    def explain_missing(self, window: Window, current: Manifest | None) -> str:
        """Return why events from the window's beginning may be missing, or "" if the table isn't known to be
        a new one, or is proved to have them.

        A window that was complete when it was published isn't published again with fewer events (`losses`),
        so only one whose events can't be compared needs the proof.
        """
        query = self.completeness.query
        if (
            current is not None
            and current["status"] != INCOMPLETE
            and can_compare(current, query.contract, window, query.table)
        ):
            return ""
        former = self._find_former(window, current)
        if former is None:
            return ""
        limit = window.start - AHEAD
        if any(snapshot.committed_at <= limit for snapshot in query.table.history):
            return ""
        late = self._list_late_partitions(limit, former)
        if not late:
            return ""
        return (
            f"the table is another one than that of window {former['window']['label']}, and begins with the "
            f"oldest record that Kafka had: it has no event from before {limit:%Y-%m-%d %H:%M} UTC of Kafka "
            f"partitions {', '.join(map(str, late))}"
        )

    def _find_former(self, window: Window, current: Manifest | None) -> Manifest | None:
        """Return a manifest that another table of the topic made, unless a complete window between it and
        this one shows that the present table begins early enough. Windows before the run's first one say
        nothing: `first_day` states that the table has all events from then on.
        """
        rule = self.completeness.query.contract.window
        first = find_window(self.first_day, rule)
        labels = [label for label in self.published if label != window.label]
        windows = sorted(parse_label(label, rule) for label in labels)
        relevant = [other for other in windows if other.end > first.start]
        before = [other for other in relevant if other.start < window.start]
        after = [other for other in relevant if other.start >= window.start]
        if current is not None and self._is_of_other_table(current):
            return current
        for other in reversed(before):
            manifest = self.read(other.label)
            if manifest is None:
                continue
            if self._is_of_other_table(manifest):
                return manifest
            if _proves_beginning(manifest):
                return None
        manifests = map(self.read, [other.label for other in after])
        return next(
            (manifest for manifest in manifests if manifest and self._is_of_other_table(manifest)), None
        )

    def _is_of_other_table(self, manifest: Manifest) -> bool:
        query = self.completeness.query
        is_of_topic = manifest["source"]["topic"] == query.contract.source.topic
        return is_of_topic and bool(list_table_uuids(manifest) - {query.table.uuid})

    def _list_late_partitions(self, limit: datetime, former: Manifest) -> list[int]:
        """Return the Kafka partitions without an event that Kafka received before then.

        A time before the first valid event time is of a clock that is wrong, and doesn't count.
        """
        query = self.completeness.query
        valid_since, _ = EventTime(query.contract, query.table).valid_bounds()
        received = F.col(TIMESTAMP)
        early = query.events.filter(
            (received < source.make_timestamp_literal(limit))
            & (received >= source.make_timestamp_literal(valid_since))
        )
        found = {row[PARTITION] for row in early.select(PARTITION).distinct().collect()}
        known = [int(partition) + 1 for partition in former["source"]["offsets"]]
        count = max(self.completeness.partition_count, *known, 0)
        return [partition for partition in range(count) if partition not in found]


def _proves_beginning(manifest: Manifest) -> bool:
    """Return whether the table had all events of a published window."""
    accepted = manifest.get("accepted") or {}
    return manifest["status"] != INCOMPLETE and not accepted.get("sentences")
