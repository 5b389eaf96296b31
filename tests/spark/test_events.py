"""Which events count: duplicates, order, keys, dates, and whether the window comes before or after the
deduplication.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from functools import partial

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from config.exports import contracts
from config.exports.allowed_functions import ICEBERG_FIELDS
from config.exports.windows import find_window
from glue_jobs import ranges
from glue_jobs.catalogs import GlueCatalog
from glue_jobs.errors import SourceProblem
from glue_jobs.rows import ExportQuery
from glue_jobs.source import NEVER, pin, read_events, with_appended_at
from glue_jobs.store import connect
from tests.support.lake import AS_OF, MONDAY, column, contract, topic_of

THINGS = topic_of(("n", "int"))
TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}
SUNDAY = MONDAY + timedelta(days=6, hours=23)
LINES = [column("id", nullable=True), column("n", "integer")]
#: Allows any number of events without a valid time or key.
ANY = {"max_invalid_percent": 100}
#: A time at which both weeks with events of the tests have ended.
LATER = AS_OF + timedelta(days=7)


def thing(id_, n, at=MONDAY):
    return {"id": id_, "at": at, "n": n}


def pairs(run, label=None):
    return [(row["id"], int(row["n"])) for row in run.cells(label)]


@pytest.fixture(scope="module")
def mixed(lakes):
    """Duplicates across files and snapshots, keys and dates that are null or invalid, and events of
    neighbouring weeks.
    """
    lake = lakes()
    ahead = datetime.now(UTC) + timedelta(days=3)
    lake.commit(THINGS, thing("a", 1), thing("b", 10), thing("b", 10), files=3)
    lake.commit(THINGS, thing("a", 3), thing("c", 5), at=MONDAY + timedelta(hours=2))
    lake.commit(THINGS, thing("a", 2), at=MONDAY + timedelta(hours=1))
    lake.commit(THINGS, thing("tie", 1), at=SUNDAY, keys=[b"same"])
    lake.commit(THINGS, thing("tie", 2), at=SUNDAY, keys=[b"same"])
    lake.commit(THINGS, thing(None, 1), thing("", 2), thing(" ", 3))
    undatable = (
        None,
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, tzinfo=UTC),
        ahead,
        datetime(9999, 12, 31, tzinfo=UTC),
    )
    lake.commit(THINGS, *(thing(f"invalid_event_time{n}", n, at) for n, at in enumerate(undatable)))
    outside = (MONDAY - timedelta(microseconds=1), MONDAY + timedelta(days=7))
    lake.commit(THINGS, *(thing(f"outside{n}", n, at) for n, at in enumerate(outside)))
    return lake


@pytest.mark.sampled(1)
@pytest.mark.cluster
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_each_event_has_one_outcome_and_the_latest_of_a_key_counts(mixed, stage):
    run = mixed.export(contract(*LINES, name=stage, window={"filter_stage": stage}, source=ANY))
    # The last event of `a` in Kafka has an earlier timestamp than the one before it: its producer's clock is
    # behind.
    assert pairs(run) == [("a", 2), ("b", 10), ("c", 5), ("tie", 2)]
    assert run.manifest()["rows"]["events"] == {
        "in_table": 18,
        "duplicates": 4,
        "outside_window": 2,
        "filtered": 0,
        "kept": 4,
        "invalid_event_time": 5,
        "null_key": 3,
    }


def test_order_and_keep_decide_which_event_counts(mixed):
    chosen = {"key": ["id"], "order": ["n"], "keep": "first"}
    assert pairs(mixed.export(contract(*LINES, name="chosen", deduplicate=chosen, source=ANY))) == [
        ("a", 1),
        ("b", 10),
        ("c", 5),
        ("tie", 1),
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("keep", "n"), [("first", "1"), ("latest", "2")])
def test_an_event_without_a_value_to_order_by_never_counts(lake, keep, n):
    things = topic_of(("n", ["null", "int"], None))
    lake.commit(things, thing("a", None), thing("a", 2), thing("a", 1), thing("a", None))
    assert lake.export(contract(*LINES, deduplicate={"order": ["n"], "keep": keep})).column("n") == [n]


META = {
    "type": "record",
    "name": "Meta",
    "fields": [{"name": "code", "type": "string"}, {"name": "ts", "type": TIMESTAMP}],
}


@pytest.mark.slow
def test_time_and_order_may_be_fields_of_a_record(lake):
    """A top-level field has the same name, and times of another week."""
    week = timedelta(days=7)
    lake.commit(
        topic_of(("ts", TIMESTAMP), ("meta", META)),
        {"id": "a", "at": MONDAY, "ts": MONDAY - week, "meta": {"code": "y", "ts": MONDAY}},
        {"id": "b", "at": MONDAY, "ts": MONDAY, "meta": {"code": "z", "ts": MONDAY - week}},
        {"id": "c", "at": MONDAY, "ts": MONDAY - week, "meta": {"code": "x", "ts": SUNDAY}},
    )
    nested = {"source": {"event_time": "meta.ts"}, "deduplicate": {"key": ["meta.code"]}}
    run = lake.export(contract(column("code", **{"from": "meta.code"}), column("id"), **nested))
    assert [list(row.values()) for row in run.cells()] == [["x", "c"], ["y", "a"]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_a_time_without_a_zone_is_in_the_windows_zone(lake, stage):
    """Sunday evening in Berlin belongs to this week, although it is Monday an hour later by UTC's clock."""
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    berlin = {"zone": "Europe/Berlin", "filter_stage": stage}
    clock = MONDAY.replace(tzinfo=None)
    times = {"last week": -1, "midnight": 0, "Sunday": 167, "next week": 168}
    things = [
        {"id": id_, "at": MONDAY, "wall": clock + timedelta(hours=hours, minutes=30)}
        for id_, hours in times.items()
    ]
    lake.commit(topic_of(("wall", local)), *things)
    run = lake.export(contract(column("id"), source={"event_time": "wall"}, window=berlin))
    assert run.column("id") == ["Sunday", "midnight"]
    assert run.manifest()["rows"]["events"]["outside_window"] == 2


@pytest.mark.slow
def test_a_key_without_a_visible_character_is_no_key(lake):
    """Spark's trim() knows only spaces. A key may begin with any letter."""
    blank = ["\u00a0", "\u3000", "\t\n", "\u200b", "\ufeff", "\x00\x7f", "\u00ad \u2028"]
    real = ["\u00e4", "\u4e2d", "\U0001f600", " a", "\u00a0b", "~", "!"]
    lake.commit(
        THINGS,
        *(thing(id_, n) for n, id_ in enumerate(blank)),
        *(thing(id_, n) for n, id_ in enumerate(real)),
    )
    run = lake.export(contract(column("n", "integer"), source=ANY))
    assert sorted(map(int, run.column("n"))) == list(range(len(real)))
    assert run.manifest()["rows"]["events"]["null_key"] == len(blank)


def test_a_text_is_no_event_time(lake):
    """Spark would read it as a time of the session's zone, or as null."""
    lake.commit(topic_of(("day", "string")), {"id": "a", "at": MONDAY, "day": "2024-03-04"})
    with pytest.raises(SourceProblem, match="day, the event time, is string, not a timestamp or a date"):
        lake.export(contract(column("id"), source={"event_time": "day"}))


@pytest.mark.slow
def test_a_key_with_bytes_that_are_not_utf_8_is_delivered(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 2))
    table = f"lake.`{lake.target.database}`.things"
    broken = lake.spark.table(table).withColumn(
        "id", F.concat("id", F.lit(bytearray(b"\xed\xa0\x80")).cast("string"))
    )
    broken.writeTo(table).append()
    found = [(key.replace("\ufffd", "?"), n) for key, n in pairs(lake.export(contract(*LINES)))]
    assert found == [("a", 1), ("a???", 1), ("b", 2), ("b???", 2)]


@pytest.mark.parametrize("partitions", [2, 7, 100])
def test_each_range_of_the_first_ordering_column_is_in_the_partition_of_its_rank(spark, partitions):
    """Lines are written partition by partition, so they would be out of order otherwise."""
    layout = ranges.plan(partitions * 1_000_000, list(range(10 * partitions)), 1)
    numbers = (
        spark.range(10 * partitions)
        .select(F.col("id").alias("n"))
        .union(spark.sql("SELECT CAST(NULL AS BIGINT)"))
    )
    rows = layout.spread(numbers, F.col("n")).select("n", F.spark_partition_id().alias("partition")).collect()
    assert [row for row in rows if row.partition != (row.n or 0) // 10] == []
    assert len(rows) == 10 * partitions + 1


#: Names that resemble those of the job's own columns.
ODD_NAMES = (
    "_fate",
    "_bucket",
    "_counts",
    "_line_state",
    "_events",
    "_is_event",
    "_people",
    "_foreign",
    "_key_id",
    "_offset_min",
)


@pytest.mark.slow
def test_fields_may_have_any_name_that_avro_allows(lake):
    odd = topic_of(*[(name, "int") for name in ODD_NAMES])
    kept = [{"where": "_fate > 0", "reason": "the others have none"}]
    for number, name in enumerate(("a", "b")):
        lake.commit(
            odd,
            {"id": name, "at": MONDAY}
            | {field: number * (place + 1) for place, field in enumerate(ODD_NAMES)},
        )
    taken = [column(name.lstrip("_"), "integer", **{"from": name}) for name in ODD_NAMES]
    wanted = [["b", *map(str, range(1, len(ODD_NAMES) + 1))]]
    run = lake.export(contract(column("id"), *taken, name="lines", filter=kept))
    assert [list(row.values()) for row in run.cells()] == wanted
    summed = [column(name.lstrip("_"), "integer", measure=f"sum(10 div {name})") for name in ODD_NAMES]
    groups = lake.export(
        contract(
            column("id"), *summed, name="groups", filter=kept, aggregate={"no_persons_because": "Numbers."}
        )
    )
    assert [list(row.values()) for row in groups.cells()] == [
        ["b", *[str(10 // (n + 1)) for n in range(len(ODD_NAMES))]]
    ]


#: Fields of a topic with names of Kafka's metadata, under both of Tableflow's naming schemes and in
#: expressions.
LIKE_KAFKA = (
    "kafka_offset",
    "kafka_partition",
    "kafka_timestamp",
    "kafka_topic",
    "cflt_metadata_offset",
    "cflt_metadata_timestamp",
)
OWN = topic_of(("page", "string"), *((name, "string") for name in (*LIKE_KAFKA, *ICEBERG_FIELDS)))


@pytest.fixture(scope="module")
def own_names(lakes):
    lake = lakes()
    own = dict.fromkeys((*LIKE_KAFKA, *ICEBERG_FIELDS), "own")
    lake.commit(
        OWN, {"id": "a", "at": MONDAY, "page": "p1"} | own, {"id": "a", "at": MONDAY, "page": "p2"} | own
    )
    return lake


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_a_topic_may_have_fields_with_the_names_of_kafkas_metadata(own_names, stage):
    text = contract(column("id"), column("page"), name=f"own_{stage[0]}", window={"filter_stage": stage})
    assert [list(row.values()) for row in own_names.export(text).cells()] == [["a", "p2"]]
    shown = column("page"), column("own", **{"from": "cflt_metadata_offset"})
    more = own_names.export(contract(*shown, name=f"more_{stage[0]}", window={"filter_stage": stage}))
    assert [list(row.values()) for row in more.cells()] == [["p2", "own"]]


@pytest.mark.slow
def test_an_aggregate_of_a_topic_with_the_names_of_kafkas_metadata(own_names):
    measures = column("page"), column("n", "integer", measure="count(*)")
    run = own_names.export(contract(*measures, name="groups", aggregate={"no_persons_because": "Pages."}))
    assert [list(row.values()) for row in run.cells()] == [["p2", "1"]]


@pytest.mark.parametrize(
    "sections",
    [
        {"column": [column("id"), column("kafka_offset")]},
        {"column": [column("id"), column("x", "integer", expression="1 + kafka_offset")]},
        {"filter": [{"where": "kafka_topic = 'things'", "reason": "r"}]},
        {"deduplicate": {"order": ["kafka_timestamp"]}},
        {"source": {"event_time": "kafka_timestamp"}},
        *({"column": [column("id"), column("own", **{"from": name})]} for name in ICEBERG_FIELDS),
        {"column": [column("id"), column("x", expression="upper(_file)")]},
        {"deduplicate": {"key": ["_pos"]}},
    ],
    ids=[
        "field",
        "expression",
        "filter",
        "order",
        "event time",
        *ICEBERG_FIELDS,
        "expression of Iceberg",
        "key of Iceberg",
    ],
)
def test_a_name_that_may_mean_a_field_or_metadata_is_refused(own_names, sections):
    with pytest.raises(SourceProblem, match=r"names of Kafka's or Iceberg's metadata \([\w, ]+\)") as refused:
        own_names.export(contract(*[column("id")], name="unclear", **sections))
    assert refused.value.code == "EXP-AMBIGUOUS-FIELD"


@pytest.mark.slow
def test_a_column_that_begins_with_a_dollar_sign_does_not_matter_and_cannot_be_read(lake):
    """Avro has no such names, but other writers may."""
    lake.commit(THINGS, thing("a", 1), thing("b", 2))
    names = (
        "$outcome",
        "$line_state",
        "$is_latest",
        "$partition",
        "$offset_min",
        "$kafka_offset",
        "$bucket",
        "$position",
    )
    where = f"lake.`{lake.target.database}`.things"
    lake.spark.sql(f"ALTER TABLE {where} ADD COLUMNS ({', '.join(f'`{name}` string' for name in names)})")
    filled = lake.spark.table(where).withColumns({name: F.lit("x") for name in names})
    filled.writeTo(where).append()
    assert pairs(lake.export(contract(*LINES))) == [("a", 1), ("b", 2)]
    window = lake.export(contract(column("id"), column("x", expression="`$outcome`"), name="reads")).window()
    assert (window["code"], "$outcome" in window["reason"]) == ("EXP-SCHEMA-CHANGED", True)


@pytest.mark.parametrize("alias", ["n", "kafka_offset", "export_window_start"])
def test_an_item_of_an_array_has_no_name_that_expressions_know(lake, alias):
    items = {"type": "array", "items": "int"}
    lake.commit(topic_of(("n", "int"), ("lines", items)), {"id": "a", "at": MONDAY, "n": 1, "lines": [2]})
    with pytest.raises(SourceProblem, match=f"a field {alias} has the name that"):
        lake.export(
            contract(
                column("id"),
                column("x", "integer", **{"from": alias}),
                explode={"array": "lines", "as": alias},
            )
        )


def test_an_item_of_an_array_has_no_name_of_a_field(lake):
    lines = {
        "type": "array",
        "items": {"type": "record", "name": "L", "fields": [{"name": "n", "type": "int"}]},
    }
    lake.commit(
        topic_of(("line", "int"), ("lines", lines)), {"id": "a", "at": MONDAY, "line": 1, "lines": [{"n": 2}]}
    )
    with pytest.raises(SourceProblem, match="a field line has the name that"):
        lake.export(
            contract(
                column("id"),
                column("n", "integer", **{"from": "line.n"}),
                explode={"array": "lines", "as": "line"},
            )
        )


@pytest.mark.slow
def test_without_deduplication_no_event_has_a_null_key_and_none_is_a_duplicate(mixed):
    run = mixed.export(contract(*LINES, name="all", deduplicate=None, source=ANY))
    assert [int(n) for n in run.column("n")] == [1, 2, 3, 1, 2, 3, 10, 10, 5, 1, 2]
    assert run.column("id")[:3] == ["", "", " "]
    assert run.manifest()["rows"]["events"]["null_key"] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_too_many_events_without_a_time_or_a_key_block_the_file(mixed, stage):
    run = mixed.export(contract(*LINES, name=f"strict_{stage[0]}", window={"filter_stage": stage}))
    assert (run.state(), run.window()["code"], run.window()["exit_code"]) == (
        "blocked",
        "EXP-INVALID-EVENTS",
        7,
    )
    assert (
        "5 events that Kafka received during the window have no valid time, and 3 of its events"
        in run.window()["reason"]
    )
    assert mixed.published(f"strict_{stage[0]}") == mixed.keys(f"exports/strict_{stage[0]}/data/") == []


@pytest.mark.slow
def test_a_week_without_times_is_noticed_in_a_long_history(lake):
    """Three events in a thousand are a third of the events received during the week."""
    lake.commit(
        THINGS,
        *(thing(f"old{n}", n, MONDAY - timedelta(days=30)) for n in range(900)),
        at=MONDAY - timedelta(days=30),
    )
    lake.commit(
        THINGS, *(thing(f"new{n}", n) for n in range(6)), *(thing(f"bad{n}", n, None) for n in range(3))
    )
    assert lake.export(contract(*LINES)).window()["code"] == "EXP-INVALID-EVENTS"
    lenient = lake.export(contract(*LINES, name="lenient", source={"max_invalid_percent": 34}))
    assert (lenient.state(), lenient.manifest()["rows"]["events"]["invalid_event_time"]) == ("published", 3)


#: Times that a producer never set, or wrote in another unit than the field's, each as microseconds of the
#: event time.
MEANINGLESS = {
    "unset": 0,
    "seconds in milliseconds": 1_709_632_800 * 1_000,
    "milliseconds in microseconds": 1_709_632_800_000,
    "seconds in microseconds": 1_709_632_800,
    "year 1900": -2_208_988_800_000_000,
    "year 2001": 978_307_200_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_a_time_that_means_nothing_is_invalid_and_not_early(lake, stage):
    early = {
        id_: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
        for id_, micros in MEANINGLESS.items()
    }
    lake.commit(
        THINGS, *(thing(f"ok{n}", n) for n in range(4)), *(thing(id_, 0, at) for id_, at in early.items())
    )
    text = contract(*LINES, name=f"now_{stage[0]}", window={"filter_stage": stage})
    run = lake.export(text)
    assert (run.state(), run.window()["code"]) == ("blocked", "EXP-INVALID-EVENTS")
    lenient = lake.export(
        contract(*LINES, name=f"lenient_{stage[0]}", window={"filter_stage": stage}, source=ANY)
    )
    assert lenient.column("id") == ["ok0", "ok1", "ok2", "ok3"]
    counted = lenient.manifest()["rows"]["events"]
    assert (counted["invalid_event_time"], counted["outside_window"]) == (len(MEANINGLESS), 0)
    set_ = {"min_event_date": datetime(1900, 1, 1, tzinfo=UTC).date()}
    assert (
        lake.export(
            contract(*LINES, name=f"set_{stage[0]}", window={"filter_stage": stage}, source=set_)
        ).state()
        == "published"
    )


@pytest.mark.slow
def test_the_first_valid_day_follows_an_earlier_first_window(lake):
    earlier = MONDAY - timedelta(days=14)
    lake.commit(THINGS, thing("now", 1), thing("early", 2, MONDAY - timedelta(days=2 * 365 + 8)))
    plain = lake.export(contract(*LINES, name="plain", source=ANY))
    assert plain.manifest()["rows"]["events"]["invalid_event_time"] == 1
    run = lake.export(contract(*LINES, name="earlier", source=ANY), "--first-day", earlier.date().isoformat())
    assert run.manifest("2024-W10")["rows"]["events"]["invalid_event_time"] == 0


@pytest.mark.parametrize("micros", [-(2**63) + 1, 2**63 - 1])
def test_a_time_of_kafka_beyond_the_calendar_is_no_time_of_a_commit(lake, micros):
    """Without a snapshot that added events, the newest of Kafka's times tells how current the table is."""
    lake.commit(THINGS, thing("a", 1))
    name = f"lake.`{lake.target.database}`.things"
    lake.spark.table(name).withColumn("$$timestamp", F.timestamp_micros(F.lit(micros))).writeTo(name).append()
    table = attrs.evolve(pin(connect(), lake.target.database, "things"), appended_at=NEVER)
    expected = table.committed_at if micros > 0 else MONDAY
    read = partial(read_events, lake.spark, table)
    assert with_appended_at(table, read).appended_at == expected


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["before_deduplication", "after_deduplication"])
def test_events_of_other_weeks_do_not_decide_on_a_window(lake, stage):
    """A third of an old week's events have no time.

    One of this week's three events has no key, among many of a later week.
    """
    month_ago = MONDAY - timedelta(days=30)
    later = MONDAY + timedelta(days=8)
    lake.commit(
        THINGS,
        *(thing(f"bad{n}", n, None) for n in range(3)),
        *(thing(f"old{n}", n) for n in range(3)),
        at=month_ago,
    )
    rule = {"filter_stage": stage}
    assert lake.export(contract(*LINES, name="clean", window=rule)).state() == "published"
    lake.commit(THINGS, thing("", 1), *(thing(f"new{n}", n, later) for n in range(400)), at=later)
    assert lake.export(contract(*LINES, name="clean", window=rule)).window()["code"] == "EXP-INVALID-EVENTS"


@pytest.mark.slow
def test_events_of_the_last_century_are_exported(lake):
    then = datetime(1996, 7, 8, tzinfo=UTC)
    lake.commit(THINGS, thing("a", 1, then))
    run = lake.export(contract(*LINES, window={"from": then.date()}), as_of=then + timedelta(days=7))
    assert (run.window()["window"], pairs(run)) == ("1996-W28", [("a", 1)])


@pytest.mark.slow
def test_a_duplicate_that_arrives_a_week_later_counts_in_the_week_of_its_event_time(lake):
    lake.commit(THINGS, thing("a", 1, SUNDAY), at=SUNDAY)
    lake.commit(
        THINGS, thing("a", 1, SUNDAY), thing("b", 2, LATER - timedelta(days=6)), at=LATER - timedelta(days=6)
    )
    run = lake.export(contract(*LINES), as_of=LATER)
    assert (pairs(run, "2024-W10"), pairs(run, "2024-W11")) == ([("a", 1)], [("b", 2)])


def test_a_key_whose_event_time_moves_counts_once_where_its_latest_event_lies(lake):
    moved = SUNDAY + timedelta(days=2)
    lake.commit(THINGS, thing("a", 1, SUNDAY), thing("b", 7, SUNDAY))
    lake.commit(THINGS, thing("a", 2, moved), at=moved)
    after = lake.export(contract(*LINES, window={"filter_stage": "after_deduplication"}), as_of=LATER)
    assert (pairs(after, "2024-W10"), pairs(after, "2024-W11")) == ([("b", 7)], [("a", 2)])
    assert after.manifest("2024-W10")["rows"]["events"]["duplicates"] == 1


def test_neither_order_nor_files_nor_commits_change_a_byte(lakes):
    things = [thing(f"k{n % 40}", n, MONDAY + timedelta(minutes=n)) for n in range(200)]
    shuffled = random.Random(5).sample(things, len(things))
    one = lakes()
    many = lakes()
    one.commit(THINGS, *things, files=1)
    for start in range(0, 200, 50):
        many.commit(THINGS, *shuffled[start : start + 50], files=5)
    made = [lake.export(contract(*LINES, deduplicate={"order": ["n"]})).csv() for lake in (one, many)]
    assert made[0] == made[1]
    assert made[0].count(b"\r\n") == 41


@pytest.mark.slow
@pytest.mark.cluster
def test_many_keys_and_one_that_has_most_rows_over_several_partitions(lake):
    """Enough rows for two partitions, in an order unlike the file's. Nine of ten have one key."""
    lake.commit(THINGS, thing("seed", -1, MONDAY - timedelta(days=1)))
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    seed = table.scan().to_arrow()
    count = 220_000
    numbers = [n * 7919 % count for n in range(count)]
    columns = {
        "id": pa.array([f"k{n:06}" if n % 10 == 0 else "most" for n in numbers]),
        "n": pa.array(numbers, pa.int32()),
        "at": pa.array([MONDAY] * count, seed.schema.field("at").type),
        "$$offset": pa.array(numbers, pa.int64()),
        "$$partition": pa.array([0] * count, pa.int32()),
    }
    filled = [columns.get(field.name, pa.nulls(count, field.type)) for field in seed.schema]
    table.append(
        pa.Table.from_arrays(
            [a.cast(f.type) for a, f in zip(filled, seed.schema, strict=True)], schema=seed.schema
        )
    )
    assert ranges.count_partitions(count, lake.spark.sparkContext.defaultParallelism) == 2
    run = lake.export(contract(*LINES))
    expected = [(f"k{n:06}", n) for n in range(0, count, 10)] + [("most", count - 1)]
    assert pairs(run) == expected
    assert run.manifest()["rows"]["events"]["duplicates"] == count - len(expected)
    # The file is ordered by the column that `order_by` names first, also where another one precedes it.
    other = [column("a_number", "integer", expression="-n"), column("id")]
    run = lake.export(
        contract(*other, name="other", deduplicate={"key": ["n"]}, delivery={"order_by": ["id"]})
    )
    assert run.column("id") == sorted(f"k{n:06}" if n % 10 == 0 else "most" for n in range(count))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order_by", [["id", "m"], ["id"]])
def test_events_of_a_composite_key_are_in_the_order_of_the_file(lake, order_by):
    schema = topic_of(("n", "int"), ("m", "int"))
    lake.commit(schema, *({"id": "a", "at": MONDAY, "n": n, "m": -n} for n in range(4)))
    columns = column("id"), column("m", "integer"), column("n", "integer")
    run = lake.export(contract(*columns, deduplicate={"key": ["id", "n"]}, delivery={"order_by": order_by}))
    assert run.column("m") == ["-3", "-2", "-1", "0"]


def test_items_of_an_event_are_in_the_order_of_the_file_and_not_of_the_array(lake):
    item = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    schema = topic_of(("lines", {"type": "array", "items": item}))
    lake.commit(schema, {"id": "a", "at": MONDAY, "lines": [{"sku": sku} for sku in ("c", "a", "b")]})
    columns = column("id"), column("sku", **{"from": "line.sku"})
    run = lake.export(contract(*columns, explode={"array": "lines", "as": "line"}))
    assert run.column("sku") == ["a", "b", "c"]


def count_shuffles(lake, text):
    mine = contracts.load(lake.write_contract(text))
    services = connect()
    table = pin(services, lake.target.database, "things")
    window = find_window(MONDAY.date(), mine.window)
    frame = (
        ExportQuery(lake.spark, mine, table, [window], b"", GlueCatalog(services, lambda: lake.spark))
        .window(window)
        .rows()
        .frame
    )
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return len(re.findall(r"\bExchange\b", plan))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("key", "type_"), [("id", "text"), ("n", "integer"), ("day", "date"), ("at", "timestamp")]
)
def test_one_shuffle_both_deduplicates_and_orders_a_file_in_the_order_of_its_key(lake, key, type_):
    schema = topic_of(("n", "int"), ("day", {"type": "int", "logicalType": "date"}))
    lake.commit(schema, {"id": "a", "at": MONDAY, "n": 1, "day": MONDAY.date()})
    text = contract(column(key, type_), column("id2", **{"from": "id"}), deduplicate={"key": [key]})
    assert count_shuffles(lake, text) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"deduplicate": {"key": ["id"]}},
        {"deduplicate": {"key": ["n"]}, "window": {"filter_stage": "after_deduplication"}},
    ],
    ids=["another field", "a window that is applied later"],
)
def test_a_file_in_another_order_than_that_of_its_key_needs_two_shuffles(lake, changes):
    """Events of one key could be in several ranges of the file's order, and all would be delivered."""
    lake.commit(THINGS, thing("a", 1))
    assert count_shuffles(lake, contract(column("n", "integer"), column("id"), **changes)) == 2


@pytest.mark.slow
def test_a_filter_that_is_neither_true_nor_false_keeps_nothing(lake):
    nullable = topic_of(("n", ["null", "int"], None))
    lake.commit(nullable, thing("a", 1), thing("b", None), thing("c", 3))
    run = lake.export(contract(*LINES, filter=[{"where": "n > 1", "reason": "small ones do not count"}]))
    assert pairs(run) == [("c", 3)]
