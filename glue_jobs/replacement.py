"""Whether a new table may begin too late for a window.

Tableflow begins a new table with the oldest record that Kafka still has: after it was off, after a change of
the storage, or for a topic that was created again. So does the table of another topic, to which the
contract's source was changed, such as that of the next version of a Flink statement. The manifests of earlier
windows show that there was another table. Then the new one is known to have the window's events from the
beginning only if it was already written before the window, or if in each Kafka partition the first record
that it has is from before the window. A later record proves nothing: unless a topic sets
`message.timestamp.type`, producers set the time of a record, and one that was held back has an old time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from functools import cached_property

import attrs
from pyspark.sql import functions as F

from config.exports.windows import Window, find_window, parse_label
from glue_jobs.completeness import Completeness
from glue_jobs.delivery.losses import can_compare
from glue_jobs.delivery.manifest import INCOMPLETE, Manifest, list_table_uuids
from glue_jobs.event_time import AHEAD, EventTime, to_micros
from glue_jobs.table_fields import OFFSET, PARTITION, TIMESTAMP


@attrs.frozen(slots=False)  # for `cached_property`
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
        doubtful = self._list_doubtful_partitions(limit, former)
        if not doubtful:
            return ""
        return (
            f"the table is another one than that of window {former['window']['label']}, and begins with the "
            f"oldest record that Kafka had: its first record is not known to be from before "
            f"{limit:%Y-%m-%d %H:%M} UTC in Kafka partitions {', '.join(map(str, doubtful))}"
        )

    def _find_former(self, window: Window, current: Manifest | None) -> Manifest | None:
        """Return a manifest that another table made, unless a complete window between it and
        this one shows that the present table begins early enough. Windows before the run's first one say
        nothing: `first_day` states that the table has all events from then on.
        """
        if current is not None and self._is_of_other_table(current):
            return current
        rule = self.completeness.query.contract.window
        first = find_window(self.first_day, rule)
        published_windows = sorted(
            parse_label(label, rule) for label in self.published if label != window.label
        )
        later_windows = []
        for published_window in reversed(published_windows):
            if published_window.end <= first.start:
                continue
            if published_window.start >= window.start:
                later_windows.append(published_window)
                continue
            manifest = self.read(published_window.label)
            if manifest and self._is_of_other_table(manifest):
                return manifest
            if manifest and self._proves_beginning(manifest):
                return None
        for later_window in reversed(later_windows):
            manifest = self.read(later_window.label)
            if manifest and self._is_of_other_table(manifest):
                return manifest
        return None

    def _is_of_other_table(self, manifest: Manifest) -> bool:
        return bool(list_table_uuids(manifest) - {self.completeness.query.table.uuid})

    def _proves_beginning(self, manifest: Manifest) -> bool:
        """Return whether the present table had all events of a published window."""
        is_of_table = manifest["source"]["table_uuid"] == self.completeness.query.table.uuid
        is_complete = manifest["status"] != INCOMPLETE
        return is_of_table and is_complete and not manifest["accepted"]["sentences"]

    def _list_doubtful_partitions(self, limit: datetime, former: Manifest) -> list[int]:
        """Return the Kafka partitions whose first record is not known to be from before then.

        A time before the first valid event time is of a clock that is wrong, and doesn't count.
        """
        query = self.completeness.query
        valid_since, _ = EventTime(query.contract, query.table).valid_bounds()
        is_of_topic = former["source"]["topic"] == query.contract.source.topic
        known = [int(partition) + 1 for partition in former["source"]["offsets"]] if is_of_topic else []
        count = max(self.completeness.partition_count, *known, 0)
        doubtful = []
        for partition in range(count):
            first = self._first_times.get(partition)
            if first is None or not to_micros(valid_since) <= first < to_micros(limit):
                doubtful.append(partition)
        return doubtful

    @cached_property
    def _first_times(self) -> dict[int, int]:
        """Return the time of the record with the lowest offset, by Kafka partition, in microseconds since
        1970 UTC.
        """
        first = F.unix_micros(F.min_by(TIMESTAMP, OFFSET)).alias("first")
        rows = self.completeness.query.events.groupBy(PARTITION).agg(first).collect()
        return {row[PARTITION]: row["first"] for row in rows}
