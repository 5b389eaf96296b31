"""Which Kafka partitions prove that a window is complete, from the statistics of files and from a query."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from config.exports import contracts
from config.exports.windows import parse_label
from glue_jobs.catalogs import GlueCatalog
from glue_jobs.completeness import Completeness, Verdict
from glue_jobs.rows import ExportQuery
from glue_jobs.source import pin
from glue_jobs.store import connect
from simulators.tableflow.kafka import partition_of
from tests.support.lake import MONDAY, column, contract, topic_of

pytestmark = pytest.mark.slow
THINGS = topic_of(("n", "int"))
KEYS = {partition_of(key, 3): key for key in (b"%d" % n for n in range(20))}
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
END = MONDAY + timedelta(days=7)
PROVED = Verdict(True, "Each Kafka partition has an event from after the window's end, or is idle.")


def add(lake, received, *partitions, files=None):
    """Commit an event of each of these partitions, the first of which Kafka received then."""
    events = [{"id": f"{partition}", "at": MONDAY, "n": 1} for partition in partitions]
    keys = [KEYS[partition] for partition in partitions]
    lake.commit(THINGS, *events, at=received, keys=keys, files=files)


class Proofs:
    """A table, as if it had been written at other times."""

    def __init__(self, lake):
        self.contract = contracts.load(lake.write_contract(contract(column("id"))))
        self.services = connect()
        self.spark = lake.spark
        self.table = pin(self.services, lake.target.database, "things")

    def judge(self, appended_at, *windows, partitions=0, history=(), **changes) -> list[Verdict]:
        """Judge these windows, or else 2024-W10. `history` has the hours before `appended_at` of the table's
        snapshots, newest first.
        """
        snapshots = tuple(
            attrs.evolve(snapshot, committed_at=appended_at - hours * HOUR)
            for snapshot, hours in zip(self.table.history, history, strict=False)
        )
        table = attrs.evolve(self.table, appended_at=appended_at, history=snapshots, **changes)
        asked = [parse_label(label, self.contract.window) for label in windows or ("2024-W10",)]
        catalog = GlueCatalog(self.services, lambda: self.spark)
        query = ExportQuery(self.spark, self.contract, table, asked, b"", catalog)
        completeness = Completeness(query, partitions)
        return [completeness.of(window) for window in asked]

    def behind(self, *arguments, **changes) -> list[str]:
        """Return of each window the partitions that are behind, and why they aren't idle."""
        evidence = [verdict.evidence for verdict in self.judge(*arguments, **changes)]
        return [text.partition("that Kafka partitions ")[2] for text in evidence]


@pytest.fixture(scope="module", params=["statistics", "mixed files", "a query"])
def proofs(request, lakes):
    """Partition 0 has an event from the moment at which 2024-W10 ended; 1 and 2 only have older ones, and 1
    has one more in the last snapshot.
    """
    lake = lakes()
    files = 1 if request.param == "mixed files" else None
    add(lake, MONDAY, 0, 1, 2, files=files)
    add(lake, END, 0, files=files)
    add(lake, MONDAY + HOUR, 1, 1, files=files)
    found = Proofs(lake)
    if request.param == "a query":
        found.table = attrs.evolve(
            found.table,
            events=None,
            history=tuple(attrs.evolve(snapshot, has_deletes=True) for snapshot in found.table.history),
        )
    return found


MISSING = "received after the window's end"


def test_partitions_without_a_later_event_are_named(proofs):
    (verdict,) = proofs.judge(END)
    assert verdict == Verdict(
        False,
        "the table's last new data is of 2024-03-11 00:00 UTC, and the table has no events that Kafka "
        "partitions 1, 2 received after the window's end. Whether they are idle is known one hour after the "
        "end at the earliest",
    )
    assert proofs.behind(END, partitions=5)[0].startswith(f"1, 2, 3, 4 {MISSING}")
    assert proofs.behind(END, partitions=2)[0].startswith(f"1, 2 {MISSING}")


def test_an_idle_partition_needs_a_snapshot_of_an_hour_earlier_and_newer_events(proofs):
    early = "Whether they are idle is known one hour after the end at the earliest"
    unknown = "No snapshot of an hour earlier shows whether they are idle"
    changed = "In the hour before, its events of Kafka partitions 1 changed"
    loading = "Kafka received none of its events in the hour before, so it may still load older ones"
    minute = 1 / 60
    for appended_at, history, reason in (
        (END + HOUR - TICK, (0, 2, 3), early),
        (END + HOUR, (), unknown),
        (END + HOUR, (0, minute, 59 * minute), unknown),
        (END + HOUR, (0, 1, 2), changed),
        (END + HOUR, (0, 59 * minute, 1), changed),
        (END + HOUR, (1, 2, 3), None),
        (END + HOUR + TICK, (1, 2, 3), loading),
    ):
        found = proofs.behind(appended_at, history=history)
        assert found == [f"1, 2 {MISSING}. {reason}" if reason else ""], (appended_at, history)
    assert proofs.judge(END + HOUR, history=(1, 2, 3)) == [PROVED]


def test_partitions_without_any_event_are_idle_too(proofs):
    assert proofs.judge(END + HOUR, history=(1, 2, 3), partitions=7) == [PROVED]


def test_each_window_needs_events_from_its_own_end_on(proofs):
    """Partition 1 has one from after the end of 2024-W09."""
    found = proofs.behind(END, "2024-W09", "2024-W10", "2024-W08")
    assert found[1].startswith(f"1, 2 {MISSING}")
    assert (found[0], found[2]) == ("", "")


def test_a_time_after_the_last_commit_proves_nothing(proofs):
    """The clock of its producer is ahead."""
    for committed_at, behind in ((END, "1, 2"), (END - TICK, "0, 1, 2")):
        (found,) = proofs.behind(END, committed_at=committed_at)
        assert found.startswith(f"{behind} {MISSING}")


@pytest.fixture(scope="module")
def passed(lakes):
    """All partitions have an event from after 2024-W10, one of them in the middle of the next week."""
    lake = lakes()
    add(lake, END, 0)
    add(lake, END + timedelta(days=3), 1)
    add(lake, END + MILLISECOND, 2)
    return Proofs(lake)


def test_windows_are_complete_if_all_partitions_have_a_later_event(passed):
    appended_at = END + timedelta(days=7)
    first, second = passed.judge(appended_at, "2024-W10", "2024-W11")
    assert first == PROVED
    assert "partitions 0, 1, 2 received after" in second.evidence
    assert passed.judge(END) == [PROVED]
    late = passed.behind(END + timedelta(days=7), "2024-W11", partitions=4)
    assert late[0].startswith(f"0, 1, 2, 3 {MISSING}")
