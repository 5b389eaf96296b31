"""A contract is edited after windows were published: no event may be in no file or in two, or be lost,
without a word.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from simulators.tableflow.kafka import partition_of
from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

THINGS = topic_of(
    ("n", "int"),
    ("other", {"type": "long", "logicalType": "timestamp-micros"}),
    ("day", {"type": "int", "logicalType": "date"}),
)
LINES = [column("id"), column("n", "integer")]
WEEKS = timedelta(days=7)
NEXT = "2024-W11"
LATER = AS_OF + WEEKS
#: The next week's Monday, 02:00 UTC: in New York, it is still Sunday.
BORDER = MONDAY + WEEKS + timedelta(hours=2)
ACCEPT = ("--accept-window-change", "true")


def thing(id_, at, n=1):
    return {"id": id_, "at": at, "n": n, "other": at + timedelta(hours=12), "day": at.date()}


@pytest.fixture
def published(lake):
    """A lake in which the first week is published in UTC, and will not be restated when the next one ends."""
    lake.commit(
        THINGS, thing("monday", MONDAY), thing("border", BORDER), thing("friday", BORDER + timedelta(days=4))
    )
    assert lake.export(edited()).state() == "published"
    return lake


def edited(**changes):
    window = {"restate_for_days": 0} | changes.pop("window", {})
    return contract(*LINES, window=window, **changes)


EDITS = {
    "zone": {"window": {"zone": "America/New_York"}},
    "zone to the east": {"window": {"zone": "Asia/Tokyo"}},
    "event time": {"source": {"event_time": "other"}},
    "a date instead of a time": {"source": {"event_time": "day"}},
    "stage": {"window": {"filter_stage": "after_deduplication"}},
    "length": {"window": {"every": "day", "from": MONDAY.date() + timedelta(days=6)}},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_moves_events_blocks_windows_beside_one_that_stays(published, edit):
    before = published.read(published.keys(f"exports/things/manifests/{WEEK}")[0])
    text = edited(**EDITS[edit], version=2)
    run = published.export(text, as_of=LATER)
    blocked = [window for window in run.record.windows if window["state"] == "blocked"]
    assert {window["code"] for window in blocked} == {"EXP-WINDOW-CHANGED"}
    reasons = " ".join(window["reason"] for window in blocked)
    assert (WEEK in reasons, "restate_for_days" in blocked[0]["remedy"]) == (True, True)
    assert any(
        key in reasons for key in ("window.zone", "source.event_time", "window.filter_stage", "window.every")
    )
    if edit != "length":
        assert published.published() == [WEEK]
    assert published.read(published.keys(f"exports/things/manifests/{WEEK}")[0]) == before


@pytest.mark.slow
def test_a_gap_and_an_overlap_are_named(published):
    west = published.export(edited(window={"zone": "America/New_York"}), as_of=LATER).window(NEXT)["reason"]
    east = published.export(edited(window={"zone": "Asia/Tokyo"}), as_of=LATER).window(NEXT)["reason"]
    assert "events from 2024-03-11T00:00:00+00:00 to 2024-03-11T04:00:00+00:00 are in neither file" in west
    assert "events from 2024-03-10T15:00:00+00:00 to 2024-03-11T00:00:00+00:00 are in both files" in east


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_another_zone_moves_no_date(lake, zone):
    dated = {"event_time": "day"}
    lake.commit(
        THINGS, thing("monday", MONDAY), thing("border", BORDER), thing("friday", BORDER + timedelta(days=4))
    )
    first = lake.export(edited(source=dated))
    assert first.column("id", WEEK) == ["monday"]
    second = lake.export(edited(source=dated, window={"zone": zone}), as_of=LATER)
    assert second.column("id", NEXT) == ["border", "friday"]


@pytest.mark.slow
def test_dates_that_another_length_of_windows_puts_into_two_files_are_named(lake):
    dated = {"event_time": "day"}
    lake.commit(THINGS, thing("sunday", BORDER), thing("friday", BORDER + timedelta(days=4)))
    assert lake.export(edited(source=dated)).state() == "published"
    monthly = {"zone": "Asia/Tokyo", "every": "month", "from": MONDAY.date().replace(day=1)}
    window = lake.export(edited(source=dated, window=monthly), as_of=LATER + 4 * WEEKS).window("2024-03")
    assert window["code"] == "EXP-WINDOW-CHANGED"
    assert "events from 2024-03-04 to 2024-03-11 are in both files" in window["reason"]


@pytest.mark.slow
def test_older_windows_that_are_published_again_fit(published):
    """The event of the border is in exactly one file afterwards."""
    text = edited(window={"zone": "America/New_York", "restate_for_days": 30})
    run = published.export(text, as_of=LATER)
    assert {window["state"] for window in run.record.windows} == {"published"}
    assert (run.column("id", WEEK), run.column("id", NEXT)) == (["border"], ["friday"])
    lasting = published.export(edited(window={"zone": "America/New_York"}), as_of=LATER + WEEKS)
    assert lasting.state("2024-W12") == "published"


@pytest.mark.slow
def test_a_change_can_be_accepted_and_stays_accepted(published):
    text = edited(window={"zone": "America/New_York", "restate_for_days": 5})
    run = published.export(text, *ACCEPT, as_of=LATER)
    assert run.column("id") == ["friday"], "the event of the border is in no file, which was accepted"
    (note,) = run.manifest()["notes"]
    assert (WEEK in note, "in neither file" in note, note in run.window()["notes"]) == (True, True, True)
    assert WEEK.encode() in run.files("report")[0]
    published.commit(THINGS, thing("late", BORDER + timedelta(days=5)))
    again = published.export(text, as_of=LATER + timedelta(hours=1))
    assert (again.state(), again.manifest()["notes"], again.column("id")) == (
        "published",
        [note],
        ["friday", "late"],
    )


@pytest.mark.slow
def test_other_edits_do_not_block(published):
    changes = {"title": "Another", "window": {"zone": "Etc/UTC"}, "deduplicate": {"key": ["n"]}}
    run = published.export(edited(version=2, **changes), as_of=LATER)
    assert run.state() == "published"


@pytest.mark.slow
def test_windows_that_are_blocked_keep_their_neighbours_from_being_published(published):
    """The second week is published too, may be restated, and is beside the first one, which may not."""
    published.export(edited(), as_of=LATER)
    text = edited(window={"zone": "America/New_York", "restate_for_days": 10})
    run = published.export(text, as_of=LATER + WEEKS)
    states = {window["window"]: (window["state"], window["code"]) for window in run.record.windows}
    assert states == {
        "2024-W12": ("blocked", "EXP-WINDOW-CHANGED"),
        NEXT: ("blocked", "EXP-WINDOW-CHANGED"),
    }


@pytest.mark.slow
def test_a_window_that_is_up_to_date_blocks_if_its_neighbour_failed_and_is_no_longer_published(published):
    """An edit moves events, and only the second week could be published with it.

    A week later, the first one is too old.
    """
    check = {
        "id": "no_border",
        "severity": "block",
        "each_row": "id <> 'border'",
        "message": "The event of the border.",
    }
    text = edited(window={"zone": "America/New_York", "restate_for_days": 10}, check=[check])
    run = published.export(text, as_of=LATER)
    assert (run.state(WEEK), run.state(NEXT)) == ("blocked", "published")
    run = published.export(text, as_of=LATER + WEEKS)
    assert (run.window(NEXT)["code"], run.state("2024-W12")) == ("EXP-WINDOW-CHANGED", "published")
    accepted = published.export(text, *ACCEPT, as_of=LATER + WEEKS)
    assert (accepted.state(NEXT), len(accepted.manifest(NEXT)["notes"])) == ("published", 1)
    assert published.export(text, as_of=LATER + WEEKS).state(NEXT) == "unchanged"


def test_an_older_contract_ends_the_run_before_anything_is_computed(lake):
    lake.commit(THINGS, thing("a", MONDAY))
    new = edited(version=2, window={"restate_for_days": 9})
    old = edited(window={"restate_for_days": 9})
    manifest = lake.export(new).manifest()
    lake.commit(THINGS, thing("b", MONDAY))
    run = lake.export(old)
    assert (run.window()["code"], run.window()["exit_code"], run.record.state) == (
        "EXP-CONTRACT-OLDER",
        2,
        "failed",
    )
    assert ("compute" in run.record.phases, run.manifest()) == (False, manifest)


@pytest.mark.slow
def test_an_older_contract_changes_no_kept_aggregate(lake):
    lake.commit(THINGS, thing("a", MONDAY))
    kept = {"no_persons_because": "Counts only.", "keep_as_table": True}
    groups = [column("n", "integer"), column("things", "integer", measure="count(*)")]
    assert lake.export(contract(*groups, aggregate=kept, version=2)).state() == "published"
    table = f"lake.`{lake.target.aggregates_database}`.things"
    before = lake.spark.table(table).collect()
    lake.commit(THINGS, thing("b", MONDAY))
    assert lake.export(contract(*groups, aggregate=kept)).window()["code"] == "EXP-CONTRACT-OLDER"
    assert lake.spark.table(table).collect() == before


@pytest.mark.slow
def test_lost_events_are_found_after_another_version_and_an_accepted_loss_is_told(lake):
    lake.commit(THINGS, *(thing(f"{n}", MONDAY, n) for n in range(10)))
    lake.export(contract(*LINES))
    lake.spark.sql(f"DELETE FROM lake.`{lake.target.database}`.things WHERE n >= 5")
    second = contract(*LINES, version=2, title="Only the title is another.")
    assert lake.export(second).window()["code"] == "EXP-EVENTS-LOST"
    run = lake.export(second, "--accept-fewer-events", "true")
    sentence = "5 events of generation 1 are no longer in the table. That was accepted."
    assert (run.manifest()["notes"], run.window()["notes"]) == ([sentence], [sentence])
    assert b"5 events of generation 1 are no longer in the table." in run.files("report")[0]
    lake.commit(THINGS, thing("late", MONDAY))
    assert lake.export(second).manifest()["notes"] == [sentence]


@pytest.mark.slow
def test_lost_events_are_found_although_late_ones_replace_their_number(lake):
    """The newest events of one partition are gone, and as many late ones of another have come."""
    one, other = (
        b"%d" % next(n for n in range(20) if partition_of(b"%d" % n, 3) == partition) for partition in (0, 1)
    )
    lake.commit(THINGS, *(thing(f"{n}", MONDAY, n) for n in range(6)), keys=[one] * 6)
    lake.export(contract(*LINES))
    lake.spark.sql(f"DELETE FROM lake.`{lake.target.database}`.things WHERE n >= 3")
    lake.commit(THINGS, *(thing(f"late {n}", MONDAY, n) for n in range(3)), keys=[other] * 3)
    assert lake.export(contract(*LINES)).window()["code"] == "EXP-EVENTS-LOST"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "edit", [{"window": {"zone": "Etc/UTC"}}, {"source": {"min_event_date": MONDAY.date()}}], ids=str
)
def test_lost_events_are_found_after_an_edit_that_moves_none(lake, edit):
    lake.commit(THINGS, *(thing(f"{n}", MONDAY, n) for n in range(10)))
    lake.export(contract(*LINES))
    lake.spark.sql(f"DELETE FROM lake.`{lake.target.database}`.things WHERE n >= 5")
    assert lake.export(contract(*LINES, version=2, **edit)).window()["code"] == "EXP-EVENTS-LOST"


@pytest.mark.slow
def test_an_edit_that_takes_events_from_the_window_loses_none(lake):
    lake.commit(THINGS, thing("a", MONDAY), thing("b", MONDAY + timedelta(days=1)))
    lake.export(contract(*LINES))
    later = {"min_event_date": MONDAY.date() + timedelta(days=1)}
    run = lake.export(contract(*LINES, version=2, source=later | {"max_invalid_percent": 50}))
    assert run.column("id") == ["b"]


@pytest.mark.slow
def test_another_deduplication_key_loses_no_events(lake):
    """The first event of a partition has no value in the new key."""
    nullable = topic_of(("code", ["null", "string"], None))
    events = [{"id": f"{n}", "at": MONDAY, "code": None if n < 3 else f"c{n}"} for n in range(9)]
    lake.commit(nullable, *events)
    lines = [column("id")]
    lenient = {"max_invalid_percent": 100}
    lake.export(contract(*lines, source=lenient))
    run = lake.export(contract(*lines, version=2, source=lenient, deduplicate={"key": ["code"]}))
    assert (run.state(), run.manifest()["notes"]) == ("published", [])
