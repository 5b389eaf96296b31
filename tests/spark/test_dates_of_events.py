"""Events that have only a date: the calendar days of windows decide, whatever the zone, the files of the
table and the time at which Kafka received the events.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs
import pytest

from config.exports import contracts
from config.exports.windows import find_window
from glue_jobs.catalogs import GlueCatalog
from glue_jobs.rows import ExportQuery
from glue_jobs.source import pin, read_events
from glue_jobs.store import connect
from lakeferry.verification.oracle_sql import Query, quote, write_raw
from simulators.tableflow.kafka import partition_of
from tests.support.lake import MONDAY, WEEK, column, contract, topic_of

DATE = {"type": "int", "logicalType": "date"}
THINGS = topic_of(("day", ["null", DATE], None), ("n", "int"))
LINES = [column("id"), column("n", "integer")]
ON_DAY = {"event_time": "day"}
#: Allows any number of events without a valid date.
ANY = ON_DAY | {"max_invalid_percent": 100}
DAY = timedelta(days=1)
FIRST = MONDAY.date()
LAST = FIRST + 6 * DAY

#: zone, kind of window, first day, label, and the first day of the window after it.
WINDOWS = {
    "New York, day": ("America/New_York", "day", date(2024, 3, 10), "2024-03-10", date(2024, 3, 11)),
    "New York, week": ("America/New_York", "iso_week", date(2024, 10, 28), "2024-W44", date(2024, 11, 4)),
    "New York, quarter": ("America/New_York", "quarter", date(2023, 10, 1), "2023-Q4", date(2024, 1, 1)),
    "Kiritimati, day": ("Pacific/Kiritimati", "day", date(2024, 12, 31), "2024-12-31", date(2025, 1, 1)),
    "Kiritimati, month": ("Pacific/Kiritimati", "month", date(2024, 2, 1), "2024-02", date(2024, 3, 1)),
    "Apia skips a day": ("Pacific/Apia", "day", date(2011, 12, 29), "2011-12-29", date(2011, 12, 31)),
}


def thing(id_, day, n=1):
    return {"id": id_, "at": MONDAY, "day": day, "n": n}


def events_of(run):
    return run.manifest()["rows"]["events"]


@pytest.fixture(scope="module")
def edges(lakes):
    """For each window, the events of the days around its first and its last day."""
    lake = lakes()
    for name, (*_, first, _label, following) in WINDOWS.items():
        around = zip("<[])", (first - DAY, first, following - DAY, following), strict=True)
        lake.commit(THINGS, *(thing(f"{name} {side}", day) for side, day in around))
    return lake


def query_again(lake, text):
    """Return the rows of the contract's first window as the second computation has them: with SQL, and none of
    the job's code.
    """
    mine = contracts.load(lake.write_contract(text))
    window = find_window(mine.window.first, mine.window)
    table = pin(connect(), lake.target.database, "things")
    events = read_events(lake.spark, table)
    events.createOrReplaceTempView("events")
    texts = [quote(mine.source.event_time), *map(write_raw, mine.columns)]
    types = {text: events.selectExpr(text).schema[0].dataType.simpleString() for text in texts}
    rows = lake.spark.sql(Query(mine, window, types).select_rows()).collect()
    lake.spark.catalog.dropTempView("events")
    return [{column.name: str(row[column.name]) for column in mine.columns} for row in rows]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_has_the_events_of_its_days(edges, name, stage):
    zone, every, first, label, following = WINDOWS[name]
    own = [f"'{name} {side}'" for side in "<[])"]
    text = contract(
        *LINES,
        name=f"edges_{list(WINDOWS).index(name)}_{stage[0]}",
        source=ON_DAY | {"min_event_date": date(2000, 1, 1)},
        window={"every": every, "zone": zone, "from": first, "filter_stage": stage, "restate_for_days": 0},
        filter=[{"where": f"id in ({', '.join(own)})", "reason": "the case at hand"}],
    )
    end = datetime(following.year, following.month, following.day, 12, tzinfo=ZoneInfo(zone))
    run = edges.export(text, as_of=end.astimezone(UTC))
    assert [window["window"] for window in run.record.windows] == [label]
    assert run.column("id") == [f"{name} [", f"{name} ]"]
    assert run.cells() == query_again(edges, text)


@pytest.fixture(scope="module")
def mixed(lakes):
    """Dates of the week and around it, one of 1900, and dates that are missing, unset or in the future."""
    lake = lakes()
    lake.commit(THINGS, thing("monday", FIRST), thing("sunday", LAST))
    lake.commit(THINGS, thing("before", FIRST - DAY), thing("after", LAST + DAY))
    invalid = (None, date(1, 1, 1), date(1970, 1, 1), datetime.now(UTC).date() + 4 * DAY, date(9999, 12, 31))
    lake.commit(THINGS, *(thing(f"invalid{n}", day) for n, day in enumerate(invalid)))
    lake.commit(THINGS, thing("1900", date(1900, 3, 1)))
    return lake


@pytest.mark.sampled(1)
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_each_event_with_a_date_has_one_outcome(mixed, stage, zone):
    rule = {"zone": zone, "filter_stage": stage}
    run = mixed.export(contract(*LINES, name=f"{stage}_{zone[0].lower()}", window=rule, source=ANY))
    assert run.column("id") == ["monday", "sunday"]
    assert events_of(run) == {
        "in_table": 10,
        "duplicates": 0,
        "outside_window": 2,
        "filtered": 0,
        "kept": 2,
        "invalid_event_time": 6,
        "null_key": 0,
    }


@pytest.mark.slow
def test_a_date_of_1900_can_be_valid(mixed):
    source = ANY | {"min_event_date": date(1900, 3, 1)}
    events = events_of(mixed.export(contract(*LINES, name="valid", source=source)))
    assert (events["invalid_event_time"], events["outside_window"]) == (4, 4)
    later = ANY | {"min_event_date": date(1900, 3, 2)}
    events = events_of(mixed.export(contract(*LINES, name="invalid", source=later)))
    assert (events["invalid_event_time"], events["outside_window"]) == (5, 3)


def test_events_without_a_valid_date_block_the_file(mixed):
    """Kafka received them during the week, so that they may be missing in it."""
    run = mixed.export(contract(*LINES, name="blocked", source=ON_DAY))
    assert (run.state(), run.window()["code"]) == ("blocked", "EXP-INVALID-EVENTS")
    assert mixed.published("blocked") == []


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "day", "type": ["null", DATE], "default": None}, {"name": "code", "type": "string"}],
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_the_date_may_be_a_field_of_a_record(lake, stage):
    """A top-level field has the same name, and dates of another week."""
    week = 7 * DAY
    events = {"x": (FIRST, LAST), "y": (FIRST - week, LAST), "z": (FIRST, LAST + DAY), "none": (FIRST, None)}
    lake.commit(
        topic_of(("day", DATE), ("order", ORDER)),
        *(
            {"id": code, "at": MONDAY, "day": day, "order": {"day": ordered, "code": code}}
            for code, (day, ordered) in events.items()
        ),
    )
    text = contract(
        column("code", **{"from": "order.code"}),
        source=ANY | {"event_time": "order.day"},
        window={"filter_stage": stage, "zone": "America/New_York"},
        deduplicate={"key": ["order.code"]},
    )
    run = lake.export(text)
    assert run.column("code") == ["x", "y"]
    assert (events_of(run)["outside_window"], events_of(run)["invalid_event_time"]) == (1, 1)
    assert run.cells() == query_again(lake, text)


LAYOUTS = {
    "plain": ("SET TBLPROPERTIES ('write.format.default'='parquet')",),
    "without statistics": ("SET TBLPROPERTIES ('write.metadata.metrics.default'='none')",),
    "partitioned": ("ADD PARTITION FIELD day",),
    "partitioned by month, without statistics": (
        "ADD PARTITION FIELD months(day)",
        "SET TBLPROPERTIES ('write.metadata.metrics.default'='none')",
    ),
}
#: How many of the table's eight files may have events of the week. Four have, and one has no date at all. A file
#: without statistics may too, unless its partition is another month.
FILES = {
    "plain": 5,
    "without statistics": 8,
    "partitioned": 5,
    "partitioned by month, without statistics": 7,
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_other_days_are_left_out_if_that_is_known(lake, layout):
    """The table has one file for each event. The first one is there before the table's layout is changed."""
    lake.commit(THINGS, thing("tuesday", FIRST + DAY))
    table = f"lake.`{lake.target.database}`.things"
    for change in LAYOUTS[layout]:
        lake.spark.sql(f"ALTER TABLE {table} {change}")
    days = {
        "early": FIRST - 60 * DAY,
        "before": FIRST - DAY,
        "monday": FIRST,
        "friday": FIRST + 4 * DAY,
        "sunday": LAST,
    }
    days |= {"after": LAST + DAY, "null": None}
    (template,) = lake.spark.table(table).collect()
    schema = lake.spark.table(table).schema
    for number, (id_, day) in enumerate(days.items(), start=1):
        row = template.asDict() | {"id": id_, "day": day}
        offset = next(name for name in row if name.endswith("offset"))
        row[offset] = 100 + number
        lake.spark.createDataFrame([row], schema).writeTo(table).append()
    text = contract(*LINES, source=ANY, window={"zone": "Pacific/Kiritimati"})
    run = lake.export(text)
    assert run.column("id") == ["friday", "monday", "sunday", "tuesday"]
    events = events_of(run)
    assert (events["in_table"], events["outside_window"], events["invalid_event_time"]) == (8, 3, 1)
    mine = contracts.load(lake.write_contract(text))
    services = connect()
    pinned = pin(services, lake.target.database, "things")
    window = find_window(FIRST, mine.window)
    catalog = GlueCatalog(services, lambda: lake.spark)
    query = ExportQuery(lake.spark, mine, pinned, [window], b"", catalog)
    files = query.files.of_window(window)
    assert len(files) == FILES[layout]
    assert sum(file.rows for file in files) == pytest.approx(FILES[layout])


@pytest.mark.slow
def test_a_commit_of_other_dates_leaves_a_window_as_it_is(lake):
    """The run has another window, of which the commit has an event."""
    rule = {"zone": "America/New_York", "from": FIRST - 7 * DAY}
    text = contract(*LINES, source=ANY, window=rule)
    lake.commit(THINGS, thing("a", LAST))
    first = lake.export(text)
    assert (first.state("2024-W09"), first.state(WEEK)) == ("published", "published")
    inputs = first.window(WEEK)["inputs_sha256"]
    lake.commit(THINGS, thing("b", FIRST - DAY))
    lake.commit(THINGS, thing("c", LAST + DAY))
    second = lake.export(text)
    assert second.column("id", "2024-W09") == ["b"]
    assert second.manifest(WEEK)["run_id"] == first.record.id
    kept = [window["inputs_sha256"] for window in second.record.windows if window["window"] == WEEK]
    assert kept in ([], [inputs]), "nothing was computed again"
    lake.commit(THINGS, thing("none", None))
    lake.commit(THINGS, thing("d", LAST))
    third = lake.export(text)
    assert third.window(WEEK)["inputs_sha256"] != inputs
    assert (third.column("id", WEEK), third.manifest(WEEK)["generation"]) == (["a", "d"], 2)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "expected"), [("latest", "3"), ("first", "1")])
def test_a_date_can_decide_which_event_of_a_key_counts(lake, keep, expected):
    """The offset decides between events of one date, and an event without a date never counts."""
    days = [(4, None), (1, FIRST), (2, LAST), (3, LAST), (0, FIRST + DAY), (5, None)]
    lake.commit(THINGS, *(thing("a", day, n) for n, day in days))
    rule = {"order": ["day"], "keep": keep}
    text = contract(*LINES, deduplicate=rule)
    run = lake.export(text)
    assert run.column("n") == [expected]
    assert run.cells() == query_again(lake, text)


@pytest.mark.slow
def test_the_latest_date_of_a_key_decides_its_window(lake):
    lake.commit(THINGS, thing("moved", FIRST), thing("stays", LAST), thing("moved", LAST + DAY))
    late = {"filter_stage": "after_deduplication", "zone": "Pacific/Kiritimati"}
    assert lake.export(contract(*LINES, source=ON_DAY, window=late)).column("id") == ["stays"]


@pytest.mark.slow
def test_a_file_can_be_sorted_by_the_date(lake):
    """Then the ranges of the rows are of the date too."""
    days = [LAST, FIRST, FIRST + 3 * DAY, FIRST - DAY]
    lake.commit(THINGS, *(thing(f"{n}", day, n) for n, day in enumerate(days)))
    key = {"key": ["day", "id"]}
    text = contract(column("day", "date"), column("id"), source=ON_DAY, deduplicate=key)
    assert [list(row.values()) for row in lake.export(text).cells()] == [
        ["2024-03-04", "1"],
        ["2024-03-07", "2"],
        ["2024-03-10", "0"],
    ]


KEYS = {partition_of(key, 3): key for key in (b"%d" % n for n in range(20))}


def commit_to_each(lake, received, day):
    """Commit an event to each Kafka partition."""
    events = [thing(f"{partition} {day}", day) for partition in KEYS]
    lake.commit(THINGS, *events, at=received, keys=list(KEYS.values()))


@pytest.mark.slow
def test_a_later_date_does_not_prove_that_a_window_is_complete(lake):
    """Orders for next week can be sent ahead. Only Kafka's time tells what was sent before the window's end."""
    lake.target = attrs.evolve(lake.target, complete_until=None)
    text = contract(*LINES, source=ON_DAY, window={"zone": "America/New_York"}, deduplicate=None)
    commit_to_each(lake, MONDAY + 2 * DAY, FIRST)
    commit_to_each(lake, MONDAY + 3 * DAY, LAST + 2 * DAY)
    end = datetime(2024, 3, 11, 4, tzinfo=UTC)  # midnight in New York
    commit_to_each(lake, end - timedelta(seconds=1), LAST + DAY)
    waiting = lake.export(text, "--partitions", "3")
    assert (waiting.state(), lake.published()) == ("incomplete", [])
    assert "no events that Kafka partitions 0, 1, 2 received after" in waiting.window()["reason"]
    commit_to_each(lake, end, LAST)
    complete = lake.export(text, "--partitions", "3")
    assert complete.manifest()["status"] != "incomplete"
    assert len(complete.column("id")) == 6, "those of Monday, and of Sunday that Kafka received late"
