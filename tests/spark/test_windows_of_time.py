"""Windows in the real job: their start and end, empty and late windows, catching up, and publishing again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs
import pytest

from glue_jobs.source import pin
from glue_jobs.store import connect
from simulators.tableflow.kafka import partition_of
from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
TICK = timedelta(microseconds=1)
#: For windows long after the table's events.
SINCE_2000 = {"min_event_date": date(2000, 1, 1)}
WEEK_LENGTH = timedelta(days=7)

#: window, zone, first day, label, start, end, hours. The ends are derived by hand from the rules of the tz
#: database.
WINDOWS = {
    "iso week 53": (
        "iso_week",
        "UTC",
        date(2020, 12, 28),
        "2020-W53",
        "2020-12-28T00:00",
        "2021-01-04T00:00",
        168,
    ),
    "New York springs forward": (
        "iso_week",
        "America/New_York",
        date(2024, 3, 4),
        WEEK,
        "2024-03-04T05:00",
        "2024-03-11T04:00",
        167,
    ),
    "New York falls back": (
        "iso_week",
        "America/New_York",
        date(2024, 10, 28),
        "2024-W44",
        "2024-10-28T04:00",
        "2024-11-04T05:00",
        169,
    ),
    "shortest day of Berlin": (
        "day",
        "Europe/Berlin",
        date(2024, 3, 31),
        "2024-03-31",
        "2024-03-30T23:00",
        "2024-03-31T22:00",
        23,
    ),
    "leap month of Kathmandu": (
        "month",
        "Asia/Kathmandu",
        date(2024, 2, 1),
        "2024-02",
        "2024-01-31T18:15",
        "2024-02-29T18:15",
        696,
    ),
    "quarter of Berlin in which clocks change": (
        "quarter",
        "Europe/Berlin",
        date(2025, 10, 1),
        "2025-Q4",
        "2025-09-30T22:00",
        "2025-12-31T23:00",
        2209,
    ),
}


def thing(id_, n, at=MONDAY):
    return {"id": id_, "at": at, "n": n}


def instant(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture(scope="module")
def edges(lakes):
    """For each window, events on both sides of both ends."""
    lake = lakes()
    for name, (*_, start, end, _hours) in WINDOWS.items():
        around = (instant(start) - TICK, instant(start), instant(end) - TICK, instant(end))
        lake.commit(
            THINGS,
            *(
                thing(f"{name} {side}", n, at)
                for n, (side, at) in enumerate(zip("<[])", around, strict=True))
            ),
        )
    return lake


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_runs_from_local_midnight_to_local_midnight(edges, name):
    every, zone, first, label, start, end, hours = WINDOWS[name]
    rule = {"every": every, "zone": zone, "from": first, "restate_for_days": 0}
    run = edges.export(
        contract(*LINES, name=f"edges_{first:%m%d}", window=rule, source=SINCE_2000), as_of=instant(end)
    )
    assert [window["window"] for window in run.record.windows] == [label]
    assert run.column("id") == [f"{name} [", f"{name} ]"]
    assert instant(end) - instant(start) == timedelta(hours=hours)


LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
#: zone, kind of window, first day of a window, and first day of the one after it. Clocks skip or repeat one
#: of these midnights, or the whole day before it.
LOCAL_WINDOWS = {
    "Cairo skips the first midnight": ("Africa/Cairo", "day", date(2024, 4, 26), date(2024, 4, 27)),
    "Cairo skips the last midnight": ("Africa/Cairo", "day", date(2024, 4, 25), date(2024, 4, 26)),
    "Santiago on a Sunday": ("America/Santiago", "day", date(2024, 9, 8), date(2024, 9, 9)),
    "Asuncion": ("America/Asuncion", "day", date(2023, 10, 1), date(2023, 10, 2)),
    "Asuncion in a month": ("America/Asuncion", "month", date(2023, 10, 1), date(2023, 11, 1)),
    "Havana": ("America/Havana", "day", date(2024, 3, 10), date(2024, 3, 11)),
    "Havana repeats a midnight": ("America/Havana", "day", date(2023, 11, 5), date(2023, 11, 6)),
    "Beirut": ("Asia/Beirut", "day", date(2024, 3, 31), date(2024, 4, 1)),
    "Tehran on a Monday, in a week": ("Asia/Tehran", "iso_week", date(2021, 3, 22), date(2021, 3, 29)),
    "Tehran, the week before": ("Asia/Tehran", "iso_week", date(2021, 3, 15), date(2021, 3, 22)),
    "Santiago in a quarter": ("America/Santiago", "quarter", date(2024, 7, 1), date(2024, 10, 1)),
    "Apia before the day that it skipped": ("Pacific/Apia", "day", date(2011, 12, 29), date(2011, 12, 31)),
    "Berlin": ("Europe/Berlin", "day", date(2024, 3, 31), date(2024, 4, 1)),
}


@pytest.fixture(scope="module")
def clocks(lakes):
    """For each window, events on both sides of the midnights of its first day and of the next window's first
    day.
    """
    lake = lakes()
    things = topic_of(("wall", LOCAL))
    for name, (*_, first, following) in LOCAL_WINDOWS.items():
        start, end = (datetime(day.year, day.month, day.day) for day in (first, following))
        around = zip("<[])", (start - TICK, start, end - TICK, end), strict=True)
        lake.commit(
            things, *({"id": f"{name} {side}", "at": MONDAY, "wall": moment} for side, moment in around)
        )
    return lake


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
@pytest.mark.parametrize("name", LOCAL_WINDOWS)
def test_a_time_without_a_zone_belongs_to_the_day_that_it_shows(clocks, name, stage):
    zone, every, first, following = LOCAL_WINDOWS[name]
    rule = {"every": every, "zone": zone, "from": first, "filter_stage": stage, "restate_for_days": 0}
    own = [
        {
            "where": f"id in ({', '.join(repr(f'{name} {side}') for side in '<[])')})",
            "reason": "the case at hand",
        }
    ]
    source = {"event_time": "wall"} | SINCE_2000
    end = datetime(following.year, following.month, following.day, 12, tzinfo=ZoneInfo(zone))
    text = contract(
        column("id"),
        name=f"wall_{list(LOCAL_WINDOWS).index(name)}_{stage[0]}",
        window=rule,
        source=source,
        filter=own,
    )
    run = clocks.export(text, as_of=end.astimezone(UTC))
    assert [window["state"] for window in run.record.windows] == ["published"]
    assert run.column("id", run.record.windows[0]["window"]) == [f"{name} [", f"{name} ]"]


@pytest.fixture(scope="module")
def next_week(lakes):
    """A table whose only event is after the exported week."""
    lake = lakes()
    lake.commit(THINGS, thing("a", 1, MONDAY + WEEK_LENGTH))
    return lake


@pytest.mark.cluster
def test_an_empty_window_has_a_header_and_a_manifest(next_week):
    run = next_week.export(contract(*LINES, name="empty"))
    assert run.csv() == b"id,n\r\n"
    manifest = run.manifest()
    assert (manifest["status"], manifest["rows"]["rows"], manifest["totals"]["n"]["sum"]) == ("empty", 0, "0")
    assert manifest["rows"]["events"]["outside_window"] == 1


def test_an_empty_window_can_be_a_failure(next_week):
    run = next_week.export(contract(*LINES, name="fails", window={"on_empty": "fail"}))
    assert (run.state(), run.window()["code"], run.record.state) == ("failed", "EXP-EMPTY", "failed")
    assert next_week.keys("exports/fails/data/") == next_week.published("fails") == []


@pytest.mark.slow
def test_an_empty_window_that_is_skipped_is_published_when_an_event_arrives(lake):
    skipping = contract(*LINES, window={"on_empty": "skip"})
    lake.commit(THINGS, thing("a", 1, MONDAY + WEEK_LENGTH))
    assert lake.export(skipping).state() == "skipped"
    assert lake.published() == lake.keys("exports/things/data/") == []
    lake.commit(THINGS, thing("b", 2))
    assert lake.export(skipping).column("id") == ["b"]


@pytest.mark.slow
def test_the_record_names_glues_job_run_and_nothing_outside_glue(next_week):
    """The notification of a job run finds its record by this id."""
    text = contract(*LINES, name="named")
    named = [next_week.export(text, *words).record for words in (("--JOB_RUN_ID", "jr_1"), ())]
    written = [json.loads(next_week.read(f"exports/{record.key}"))["job_run_id"] for record in named]
    assert written == ["jr_1", None]


@pytest.mark.slow
def test_a_published_window_that_becomes_empty_is_published_as_empty(lake):
    """If it were skipped, its previous rows would stay visible."""
    skipping = contract(
        *LINES, window={"on_empty": "skip"}, filter=[{"where": "n > 0", "reason": "cancelled"}]
    )
    lake.commit(THINGS, thing("a", 1))
    assert lake.export(skipping).column("id") == ["a"]
    lake.commit(THINGS, thing("a", 0), at=MONDAY + timedelta(hours=1))
    again = lake.export(skipping)
    assert (again.state(), again.manifest()["generation"], again.manifest()["status"]) == (
        "published",
        2,
        "empty",
    )
    assert again.csv() == b"id,n\r\n"
    assert lake.keys("exports/things/skipped/") == []


@pytest.mark.slow
def test_an_empty_window_of_a_table_that_lags_is_not_skipped_for_good(lake):
    """No record has arrived since the window started, so its events may still come."""
    lake.commit(THINGS, thing("a", 1))
    rule = {
        "on_empty": "skip",
        "on_incomplete_source": "publish",
        "restate_for_days": 0,
        "from": date(2099, 12, 21),
    }
    waiting = lake.export(contract(*LINES, window=rule, source=SINCE_2000), as_of=FAR)
    assert (waiting.state(), lake.keys("exports/things/skipped/"), lake.published()) == ("incomplete", [], [])
    assert "last new data" in waiting.window()["reason"]


@pytest.mark.slow
def test_a_topic_may_have_fields_window_start_and_window_end(lake):
    """Flink's tumbling windows create these columns.

    As event time, they decide which window of the export a row is in.
    """
    timestamp = {"type": "long", "logicalType": "timestamp-micros"}
    minutes = topic_of(("window_start", timestamp), ("window_end", timestamp), time=None)
    rows = [{"id": id_, "window_start": at, "window_end": at + timedelta(minutes=1)} for id_, at in MINUTES]
    lake.commit(minutes, *rows)
    own = contract(
        column("id"),
        column("window_start", "timestamp"),
        column("week", "date", expression="to_date(export_window_start)"),
        source={"event_time": "window_start"},
        window={"from": MONDAY.date() - WEEK_LENGTH},
    )
    run = lake.export(own)
    assert run.cells("2024-W09") == [
        {"id": "before", "window_start": "2024-03-03T23:59:00.000000Z", "week": "2024-02-26"}
    ]
    assert run.cells(WEEK) == [
        {"id": "in", "window_start": "2024-03-04T00:00:00.000000Z", "week": "2024-03-04"}
    ]


MINUTES = (("before", MONDAY - timedelta(minutes=1)), ("in", MONDAY))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("time", "zone"), [("at", "UTC"), ("wall", "America/New_York"), ("wall", "Asia/Tokyo")]
)
def test_events_of_any_year_can_be_valid(lake, time, zone):
    """Years before 1000 have fewer than four digits, and west of Greenwich the first one begins in a year
    that Python lacks.
    """
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    moments = {"a": datetime(1, 1, 2), "b": datetime(999, 12, 31), "c": datetime(2024, 3, 6)}
    events = [
        {"id": id_, "at": moment.replace(tzinfo=UTC), "wall": moment} for id_, moment in moments.items()
    ]
    lake.commit(topic_of(("wall", local)), *events)
    for first, invalid in ((date(1, 1, 1), 0), (date(999, 1, 1), 1)):
        source = {"event_time": time, "min_event_date": first, "max_invalid_percent": 50}
        run = lake.export(
            contract(column("id"), name=f"from_{first.year}", source=source, window={"zone": zone})
        )
        events = run.manifest()["rows"]["events"]
        assert (run.column("id"), events["invalid_event_time"], events["outside_window"]) == (
            ["c"],
            invalid,
            2 - invalid,
        )


LAST_WEEK = {"from": date(2099, 12, 21)}
FAR = datetime(2099, 12, 28, 6, tzinfo=UTC)


def test_a_window_that_ends_after_the_last_commit_waits(next_week):
    run = next_week.export(contract(*LINES, name="waits", window=LAST_WEEK, source=SINCE_2000), as_of=FAR)
    assert (run.state(), run.record.state, next_week.published("waits")) == ("incomplete", "done", [])
    assert "last new data" in run.window()["reason"]


def test_a_window_that_ends_after_the_last_commit_can_fail_or_be_published_as_late(next_week):
    failing = next_week.export(
        contract(
            *LINES,
            name="incomplete_fails",
            window=LAST_WEEK | {"on_incomplete_source": "fail"},
            source=SINCE_2000,
        ),
        as_of=FAR,
    )
    assert failing.window()["code"] == "EXP-SOURCE-INCOMPLETE"
    shown = next_week.export(
        contract(
            *LINES,
            name="incomplete_shown",
            window=LAST_WEEK | {"on_incomplete_source": "publish"},
            source=SINCE_2000,
        ),
        as_of=FAR,
    )
    assert shown.manifest()["status"] == "incomplete"


@pytest.mark.slow
def test_a_commit_soon_after_the_windows_end_has_to_hold_newer_events_of_every_partition(lake):
    one_of = {partition_of(key, 3): key for key in (b"%d" % n for n in range(20))}
    lake.target = attrs.evolve(lake.target, complete_until=None)
    lake.commit(THINGS, *(thing(f"{n}", n) for n in one_of), keys=list(one_of.values()))
    end = committed(lake).replace(minute=0, second=0, microsecond=0)
    behind = lake.export(day_that_ends(end, "soon"), as_of=end)
    assert (behind.state(), behind.record.state) == ("incomplete", "done")
    assert "Kafka partitions 0, 1, 2 received" in behind.window()["reason"]
    newer = {"at": end}
    lake.commit(THINGS, thing("newer", 1), keys=[one_of[1]], **newer)
    assert (
        "Kafka partitions 0, 2 received"
        in lake.export(day_that_ends(end, "soon"), as_of=end).window()["reason"]
    )
    shown = lake.export(day_that_ends(end, "shown", on_incomplete_source="publish"), as_of=end)
    assert shown.manifest()["status"] == "incomplete"
    lake.commit(THINGS, thing("0", 0), thing("2", 2), keys=[one_of[0], one_of[2]], **newer)
    assert lake.export(day_that_ends(end, "soon"), as_of=end).manifest()["status"] == "empty"


def day_that_ends(end, name, **rule):
    """Return a window of the zone in which the full hour `end` is midnight.

    Zones of tz's Etc area count westwards.
    """
    zone = f"Etc/GMT{end.hour if end.hour <= 12 else end.hour - 24:+d}"
    first = (end - timedelta(hours=12)).astimezone(ZoneInfo(zone)).date()
    return contract(
        *LINES, name=name, window={"every": "day", "zone": zone, "from": first} | rule, source=SINCE_2000
    )


def committed(lake):
    return pin(connect(), lake.target.database, "things").appended_at


def test_the_last_two_windows_are_published_first_then_missed_ones_oldest_first(lake):
    lake.commit(THINGS, *(thing(f"w{n}", n, MONDAY + n * WEEK_LENGTH) for n in (-3, -2, -1, 0)))
    rule = {"from": MONDAY.date() - 3 * WEEK_LENGTH, "restate_for_days": 0}
    run = lake.export(contract(*LINES, window=rule))
    assert [window["window"] for window in run.record.windows] == ["2024-W09", WEEK, "2024-W07", "2024-W08"]
    assert (run.record.windows_left, run.manifest("2024-W08")["previous_window"]["window"]) == (0, "2024-W07")
    shown = [cell for label in ("2024-W07", "2024-W08", "2024-W09", WEEK) for cell in run.column("id", label)]
    assert shown == ["w-3", "w-2", "w-1", "w0"]


@pytest.mark.slow
def test_the_first_run_compares_the_last_window_with_the_one_before(lake):
    lake.commit(THINGS, *(thing(f"w{n}", 5 + n, MONDAY + n * WEEK_LENGTH) for n in (-2, -1, 0)))
    rule = {"from": MONDAY.date() - 2 * WEEK_LENGTH}
    run = lake.export(contract(*LINES, window=rule, report={"headline": ["n"]}))
    assert [window["window"] for window in run.record.windows] == ["2024-W09", WEEK, "2024-W08"]
    assert run.manifest(WEEK)["previous_window"]["window"] == "2024-W09"
    (page,) = run.files("report", WEEK)
    assert "+1 (+25.0 %) against week 9 of 2024" in page.decode()
    (first,) = run.files("report", "2024-W08")
    assert "no earlier window had been published" in first.decode()


@pytest.mark.slow
def test_numbers_are_not_compared_across_versions_and_units_of_the_contract(lake):
    lake.commit(THINGS, *(thing(f"w{n}", 5, MONDAY + n * WEEK_LENGTH) for n in (-1, 0)))
    head = {"report": {"headline": ["n"]}, "window": {"from": MONDAY.date() - WEEK_LENGTH}}
    lake.export(contract(*LINES, **head), as_of=AS_OF - WEEK_LENGTH)
    changed = [made | {"unit": "kg"} if made["name"] == "n" else made for made in LINES]
    for text, said in (
        (contract(*LINES, **head), "unchanged from week 9 of 2024"),
        (contract(*LINES, title="Another title", **head), "unchanged from week 9 of 2024"),
        (contract(*changed, **head), "no figure for week 9 of 2024"),
        (contract(*changed, version=2, **head), "not compared with week 9 of 2024, which has version 1"),
    ):
        run = lake.export(text, "--first-day", MONDAY.date().isoformat())
        (page,) = run.files("report", WEEK)
        assert said in page.decode()


@pytest.mark.slow
def test_a_run_begins_no_window_for_which_its_time_is_not_enough(lake):
    """Each window takes 25 minutes, and a run has an hour.

    A window that was never published counts as long as the longest.
    """
    lake.commit(THINGS, *(thing(f"w{n}", n, MONDAY + n * WEEK_LENGTH) for n in (-3, -2, -1, 0)))
    weeks = contract(*LINES, window={"from": MONDAY.date() - 3 * WEEK_LENGTH, "restate_for_days": 0})
    now = [AS_OF]

    def work(_window, phase):
        now[0] += timedelta(minutes=25) * (phase == "compute")

    first = lake.export(weeks, on_phase=work, clock=lambda: now[0])
    assert [window["window"] for window in first.record.windows] == ["2024-W09", WEEK]
    assert (first.record.state, first.record.windows_left) == ("done", 2)
    assert [window["seconds"] for window in first.record.windows] == [1500, 1500]
    short = lake.export(weeks, "--time-limit-minutes", "26", on_phase=work, clock=lambda: now[0])
    assert [window["window"] for window in short.record.windows] == ["2024-W07"], (
        "a run begins its first window in any case"
    )
    assert short.record.windows_left == 1
    last = lake.export(weeks, on_phase=work, clock=lambda: now[0])
    assert ([window["window"] for window in last.record.windows], last.record.windows_left) == (
        ["2024-W08"],
        0,
    )


@pytest.mark.slow
def test_a_window_is_compared_with_windows_of_its_length_only(lake):
    lake.commit(THINGS, thing("a", 1))
    lake.export(contract(*LINES, window={"every": "day", "from": date(2024, 3, 9)}))
    assert lake.published() == ["2024-03-09", "2024-03-10"]
    weeks = lake.export(contract(*LINES, version=2), "--accept-window-change", "true")
    assert weeks.manifest(WEEK)["previous_window"] is None


@pytest.mark.slow
def test_a_check_that_follows_from_a_column_says_how_to_change_the_column(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 2), thing("c", 3))
    lines = column("id"), column("n", "integer", expression="nullif(n, 2)", allowed=["1"])
    own = {"id": "small", "severity": "block", "message": "n is large.", "each_row": "n < 3"}
    window = lake.export(contract(*lines)).window()
    found = (
        "n is empty in 1 of 3 rows, and the column isn't nullable; n has values other than 1 in 1 of 3 rows"
    )
    assert (window["code"], window["reason"]) == ("EXP-CHECK-BLOCKED", f"window {WEEK}: {found}")
    columns = "set nullable = true for n, or add the values to `allowed` of n"
    assert window["remedy"] == f"Correct the source, or {columns}"
    both = lake.export(contract(*lines, check=[own])).window()
    assert both["reason"] == f"window {WEEK}: {found}; n is large. (small: 1)"
    assert both["remedy"] == f"Correct the source, or the check, or {columns}"


@pytest.mark.slow
def test_blocked_windows_delay_no_other_window(lake):
    """The two oldest windows fail in every run."""
    lake.commit(THINGS, *(thing(f"w{n}", n, MONDAY + n * WEEK_LENGTH) for n in range(-3, 1)))
    check = {"id": "good", "severity": "block", "message": "Bad.", "each_row": "n > -2"}
    text = contract(
        *LINES, window={"from": MONDAY.date() - 3 * WEEK_LENGTH, "restate_for_days": 0}, check=[check]
    )
    first = lake.export(text)
    second = lake.export(text)
    blocked = [("2024-W07", "blocked"), ("2024-W08", "blocked")]
    states = [(window["window"], window["state"]) for window in first.record.windows]
    assert states == [("2024-W09", "published"), (WEEK, "published"), *blocked]
    assert [(window["window"], window["state"]) for window in second.record.windows] == blocked
    assert (second.record.windows_left, second.record.state) == (0, "blocked")


@pytest.mark.slow
def test_checks_of_the_whole_file_see_its_rows_and_totals(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 2))
    overall = {
        "rows": "rows = 2",
        "totals": "sum_n = 3 and min_n = 1 and max_n = 2",
        "unknown": "nullif(rows, 2) > 0",  # null counts as holding, as in SQL's CHECK
        "more": "sum_n > 3",
    }
    warnings = [
        {"id": id_, "severity": "warn", "message": id_, "overall": text} for id_, text in overall.items()
    ]
    run = lake.export(contract(*LINES, check=warnings))
    assert {check["id"]: check["failed"] for check in run.manifest()["checks"] if check["id"] in overall} == {
        "rows": 0,
        "totals": 0,
        "unknown": 0,
        "more": 1,
    }
    lake.commit(THINGS, thing("c", 3))
    blocked = lake.export(contract(*LINES, check=[{**warnings[0], "severity": "block"}]))
    assert blocked.state() == "blocked"
    assert run.column("id") == ["a", "b"]


@pytest.mark.slow
@pytest.mark.cluster
def test_a_late_event_gives_a_new_generation_until_the_window_is_too_old(lake):
    lake.commit(THINGS, thing("a", 1))
    old = lake.export(contract(*LINES))
    lake.commit(THINGS, thing("b", 2))
    new = lake.export(contract(*LINES))
    manifest = new.manifest()
    assert (new.column("id"), manifest["generation"]) == (["a", "b"], 2)
    assert [generation["run_id"] for generation in manifest["generations"]] == [old.record.id, new.record.id]
    former = [
        key for key in lake.keys("exports/things/data/") if old.record.id in key and key.endswith(".csv")
    ]
    assert [lake.read(key) for key in former] == [b"id,n\r\na,1\r\n"]
    lake.commit(THINGS, thing("c", 3))
    assert lake.export(contract(*LINES), as_of=AS_OF + timedelta(days=14)).record.windows[0]["window"] > WEEK
    assert new.manifest() == manifest


@pytest.mark.slow
def test_a_run_publishes_nothing_after_its_time_limit(lake):
    """Its machine slept between computing and publishing, and another run may have removed its files."""
    lake.commit(THINGS, *(thing(f"w{n}", n, MONDAY + n * WEEK_LENGTH) for n in (-1, 0)))
    now = [AS_OF]

    def sleep(_window, phase):
        now[0] += timedelta(hours=1) * (phase == "publish")

    weeks = contract(*LINES, window={"from": MONDAY.date() - WEEK_LENGTH})
    run = lake.export(weeks, on_phase=sleep, clock=lambda: now[0])
    (tried,) = run.record.windows  # not the last week, for which there is no time left either
    assert (tried["window"], tried["code"], tried["stops"]) == ("2024-W09", "EXP-TIME-LIMIT", True)
    assert run.record.state == "failed"
    assert lake.published() == lake.keys("exports/things/data/") == []
    assert lake.export(weeks).state(WEEK) == "published"


ZONES = ("UTC", "Pacific/Apia", "America/New_York", "Asia/Kathmandu", "Europe/Berlin")


@pytest.mark.slow
def test_the_time_zone_of_the_machine_has_no_effect(lake):
    texts = topic_of(("text", "string"), ("price", "double"))
    values = [
        {"id": f"{n}", "at": MONDAY + n * timedelta(hours=29), "text": text, "price": n + 0.5}
        for n, text in enumerate(("IJ", "\u0130\u0131", "\u00df"))
    ]
    lake.commit(texts, *values)
    shown = [
        column("id"),
        column("at", "timestamp"),
        column("day", "date", expression="to_date(at)"),
        column("lower", expression="lower(text)"),
        column("words", expression="date_format(at, 'EEEE d MMMM y')"),
        column("price", "decimal(12,2)"),
        column("money", expression="format_number(price, 2)"),
    ]
    zones = lake.spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    files = set()
    try:
        for zone in ZONES:
            zones.setDefault(zones.getTimeZone(zone))
            files.add(lake.export(contract(*shown, name=zone.lower().replace("/", "_"))).csv())
    finally:
        zones.setDefault(before)
    assert len(files) == 1
    assert b"Monday 4 March 2024" in files.pop()
