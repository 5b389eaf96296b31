"""Whether the table has all events of a window: proved for each Kafka partition, stated by somebody, or not
known.

Tableflow writes the events of a Kafka partition in the order of their offsets. So it has written all that
Kafka received before the window's end if the table has an event of the partition that Kafka received at the
end or later. The time of a commit proves nothing: while Tableflow loads a topic's history, every commit is of
today.

A partition that receives no events never has such an event. It counts as idle if the table has received other
events, and none of this partition for an hour. That proves nothing while Tableflow loads a topic's history,
one partition after the other, so the table's newest events must be as new as its commits.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property

import attrs
from pyspark.sql import functions as F

from config.exports.windows import Window
from glue_jobs import source
from glue_jobs.event_time import to_micros
from glue_jobs.files import list_partition_files
from glue_jobs.rows import ExportQuery
from glue_jobs.source import NEVER, Snapshot
from glue_jobs.table_fields import OFFSET, PARTITION, TIMESTAMP

#: A commit of Tableflow may have new events of only some Kafka partitions, and the next one comes within
#: minutes.
_IDLE_AFTER = timedelta(hours=1)
_PROVED = "Each Kafka partition has an event from after the window's end, or is idle."


@attrs.frozen
class Verdict:
    """`evidence` is a sentence that says how it is known that the table has all events of the window, or why
    it is not known.
    """

    is_complete: bool
    evidence: str


@attrs.frozen(slots=False)  # for `cached_property`
class Completeness:
    """What is known about the Kafka partitions of the pinned table. It is looked up at most once for all
    windows of a run.

    `partitions` is how many the topic has, or 0 if that isn't known. Somebody states that the table has all
    events that Kafka received before `stated_until`.
    """

    query: ExportQuery
    partitions: int = 0
    stated_until: datetime | None = None

    def is_stated(self, window: Window) -> bool:
        return self.stated_until is not None and window.end <= self.stated_until

    def of(self, window: Window) -> Verdict:
        if self.is_stated(window):
            return Verdict(True, f"Stated with --complete-until {self.stated_until:%Y-%m-%dT%H:%M:%SZ}.")
        missing = self._explain_missing(window)
        return Verdict(not missing, missing or _PROVED)

    def _explain_missing(self, window: Window) -> str:
        """Return why events of the window may be missing, or "" if the table is proved to have all of
        them.
        """
        appended_at = self.query.table.appended_at
        if appended_at == NEVER:
            return "the table has no events"
        last = f"the table's last new data is of {appended_at:%Y-%m-%d %H:%M} UTC"
        if appended_at < window.end:
            return f"{last}, before the window's end"
        end = to_micros(window.end)
        passed = {partition for partition, newest in self._newest.items() if newest >= end}
        behind = [partition for partition in self._behind_last_window if partition not in passed]
        activity = self._explain_activity(behind, window)
        if not activity:
            return ""
        missing = (
            f"no events that Kafka partitions {_name_partitions(behind)} received after the window's end"
        )
        return f"{last}, and the table has {missing}. {activity}"

    def _explain_activity(self, behind: list[int], window: Window) -> str:
        """Return why some of these partitions are not known to be idle, or "" if all of them are."""
        if not behind:
            return ""
        if self.query.table.appended_at < window.end + _IDLE_AFTER:
            return "Whether they are idle is known one hour after the end at the earliest"
        if self._hour_before is None:
            return "No snapshot of an hour earlier shows whether they are idle"
        if active := [partition for partition in behind if partition not in self._idle]:
            return f"In the hour before, its events of Kafka partitions {_name_partitions(active)} changed"
        if not self._is_current:
            return "Kafka received none of its events in the hour before, so it may still load older ones"
        return ""

    @cached_property
    def _behind_last_window(self) -> list[int]:
        """Return the partitions without an event from after the end of the run's last window."""
        end = max(window.end for window in self.query.windows)
        passed = self._find_newest_since(end, list(range(self.partition_count)))
        return [partition for partition in range(self.partition_count) if partition not in passed]

    @cached_property
    def partition_count(self) -> int:
        """Return how many partitions the topic has, as far as it is known."""
        # Iceberg answers from its manifests, unless rows are deleted.
        highest = self.query.events.agg(F.max(PARTITION)).collect()[0][0]
        return max(self.partitions, 0 if highest is None else highest + 1)

    @cached_property
    def _newest(self) -> dict[int, int]:
        """Return the newest time, from the end of the first window on, of partitions that are behind the last
        window.
        """
        return self._find_newest_since(
            min(window.end for window in self.query.windows), self._behind_last_window
        )

    @cached_property
    def _hour_before(self) -> Snapshot | None:
        """Return the newest known snapshot that is at least an hour older than the last new data."""
        latest = self.query.table.appended_at - _IDLE_AFTER
        return next(
            (snapshot for snapshot in self.query.table.history if snapshot.committed_at <= latest), None
        )

    @cached_property
    def _idle(self) -> list[int]:
        """Return the partitions, of those behind the last window, of which the table has received no events
        for an hour.
        """
        if self._hour_before is None:
            return []
        before, now = map(self._find_highest_offsets, (self._hour_before, self._now))
        return [
            partition for partition in self._behind_last_window if before.get(partition) == now.get(partition)
        ]

    @cached_property
    def _is_current(self) -> bool:
        """Return whether the table has events that Kafka received in the hour before it last received
        events.
        """
        since = self.query.table.appended_at - _IDLE_AFTER
        partitions = list(range(self.partition_count))
        return bool(
            self._find_greatest(TIMESTAMP, self._now, partitions, since=since, enough=to_micros(since))
        )

    @property
    def _now(self) -> Snapshot:
        table = self.query.table
        return Snapshot(table.snapshot_id, table.committed_at, table.has_deletes)

    def _find_newest_since(self, since: datetime, partitions: list[int]) -> dict[int, int]:
        """Return the newest time in microseconds of each partition that has events which Kafka received since
        then.
        """
        enough = to_micros(max(window.end for window in self.query.windows))
        return self._find_greatest(TIMESTAMP, self._now, partitions, since=since, enough=enough)

    def _find_highest_offsets(self, snapshot: Snapshot) -> dict[int, int]:
        return self._find_greatest(OFFSET, snapshot, self._behind_last_window)

    def _find_greatest(
        self,
        name: str,
        snapshot: Snapshot,
        partitions: list[int],
        *,
        since: datetime | None = None,
        enough: int | None = None,
    ) -> dict[int, int]:
        """Return the greatest value of a column by partition, or any that is `enough`, of events that Kafka
        received since then.

        The statistics of files decide where a file has events of one partition and none is deleted. A query
        decides elsewhere. A time after the table's last commit is of a clock that is wrong, and doesn't
        count.
        """
        if not partitions:
            return {}
        greatest: dict[int, int] = {}
        undecided: set[int] = set()
        for file in list_partition_files(
            self.query.events, self.query.table, snapshot.id, partitions, since=since
        ):
            upper = (file.received if name == TIMESTAMP else file.offset)[1]
            is_wrong = name == TIMESTAMP and upper is not None and upper > self._last_possible
            if snapshot.has_deletes or file.only_partition is None or upper is None or is_wrong:
                undecided.update(filter(file.may_have, partitions))
            elif since is None or upper >= to_micros(since):
                greatest[file.only_partition] = max(upper, greatest.get(file.only_partition, upper))
        if enough is not None:
            undecided -= {partition for partition, value in greatest.items() if value >= enough}
        if not undecided:
            return greatest
        return greatest | self._query_greatest(name, snapshot, sorted(undecided), since)

    @property
    def _last_possible(self) -> int:
        return to_micros(self.query.table.committed_at)

    def _query_greatest(
        self, name: str, snapshot: Snapshot, partitions: list[int], since: datetime | None
    ) -> dict[int, int]:
        table = attrs.evolve(self.query.table, snapshot_id=snapshot.id)
        events = self.query.catalog.read_events(table).filter(F.col(PARTITION).isin(partitions))
        if since is not None:
            events = events.filter(F.col(TIMESTAMP) >= source.make_timestamp_literal(since))
        if name == TIMESTAMP:
            events = events.filter(
                F.col(TIMESTAMP) <= source.make_timestamp_literal(self.query.table.committed_at)
            )
        column = F.col(name)
        value = F.unix_micros(column.cast("timestamp")) if name == TIMESTAMP else column
        rows = events.groupBy(PARTITION).agg(F.max(value).alias("greatest")).collect()
        return {row[PARTITION]: row["greatest"] for row in rows}


def _name_partitions(partitions: list[int]) -> str:
    return ", ".join(map(str, partitions))
