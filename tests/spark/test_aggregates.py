"""Aggregates: groups that are too small, groups that hide them, counts, and the table that keeps
aggregates.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from config.exports import contracts
from glue_jobs import arguments, prepare, runs
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.errors import BadInput, StorageProblem
from tests.support.lake import AS_OF, MONDAY, column, contract, topic_of

VISITS = topic_of(("who", ["null", "string"], None), ("region", ["null", "string"], None), ("spent", "int"))
COLUMNS = [
    column("region", nullable=True),
    column("visits", "integer", measure="count(*)"),
    column("spent", "integer", measure="sum(spent)"),
]
PEOPLE = {"person_id": "who", "min_group_size": 5}
#: People per region in three weeks: with one small group, with two, and with only a small one. Everybody
#: comes twice.
WEEKS = {
    "2024-W08": {"north": 4, "south": 6, "east": 9, None: 7},
    "2024-W09": {"north": 4, "south": 3, "east": 9},
    "2024-W10": {"north": 2},
}
FROM = {"from": date(2024, 2, 19)}


def visits(label, regions):
    monday = MONDAY + timedelta(weeks=int(label[-2:]) - 10)
    for region, people in regions.items():
        for n in range(2 * people):
            yield {
                "id": f"{label}{region}{n}",
                "at": monday,
                "who": f"p{n % people}",
                "region": region,
                "spent": n,
            }


@pytest.fixture(scope="module")
def run(lakes):
    lake = lakes()
    lake.commit(VISITS, *(event for label, regions in WEEKS.items() for event in visits(label, regions)))
    return lake.export(contract(*COLUMNS, window=FROM, aggregate=PEOPLE))


def groups(run, label):
    return {row["region"]: (int(row["visits"]), int(row["spent"])) for row in run.cells(label)}


@pytest.mark.slow
def test_one_small_group_hides_the_next_smallest_too(run):
    """Otherwise the total minus the visible rows would be the small group."""
    assert groups(run, "2024-W08") == {"": (14, 91), "east": (18, 153)}
    rows = run.manifest("2024-W08")["rows"]
    assert rows["groups"] == {"shown": 2, "suppressed": 2}
    assert rows["lines"] == {"of_kept_events": 52, "filtered": 0, "suppressed": 20, "delivered": 32}


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"west\xff", None], ids=["bytes that are no text", "null"])
def test_the_next_smallest_group_may_have_any_name(lake, name):
    """Python would read the bytes as another name, and find no such group."""
    lake.commit(VISITS, *visits("2024-W10", {"north": 4, "south": 6, "east": 9}))
    table = f"lake.`{lake.target.database}`.things"
    others = {"region": F.lit(name and bytearray(name)).cast("string"), "id": F.concat("id", F.lit("other"))}
    lake.spark.table(table).filter("region = 'south' AND who <> 'p5'").withColumns(others).writeTo(
        table
    ).append()
    run = lake.export(contract(*COLUMNS, aggregate=PEOPLE))
    assert groups(run, None) == {"south": (12, 66), "east": (18, 153)}
    assert run.manifest()["rows"]["groups"] == {"shown": 2, "suppressed": 2}


def test_two_small_groups_are_hidden(run):
    assert groups(run, "2024-W09") == {"east": (18, 153)}
    assert run.manifest("2024-W09")["rows"]["groups"] == {"shown": 1, "suppressed": 2}


def test_a_single_small_group_hides_all_counts(run):
    assert run.csv("2024-W10") == b"region,visits,spent\r\n"
    manifest = run.manifest("2024-W10")
    assert (manifest["rows"]["events"], manifest["rows"]["lines"], manifest["source"]["offsets"]) == (
        None,
        None,
        {},
    )
    assert "too small" in manifest["rows"]["withheld"]


def test_people_are_counted_once_and_null_is_not_a_person(lake):
    """Twenty visits of four people are four people; spellings of an id are one person, and a null or blank
    one is nobody.
    """
    lake.commit(
        VISITS,
        *({"id": f"a{n}", "at": MONDAY, "who": f"p{n % 4}", "region": "few", "spent": 1} for n in range(20)),
        *(
            {"id": f"s{n}", "at": MONDAY, "who": who, "region": "few", "spent": 1}
            for n, who in enumerate(["", " ", " P1\t"])
        ),
        *({"id": f"b{n}", "at": MONDAY, "who": None, "region": "nobody", "spent": 1} for n in range(20)),
        *({"id": f"c{n}", "at": MONDAY, "who": f"p{n}", "region": "many", "spent": 1} for n in range(5)),
    )
    assert groups(lake.export(contract(*COLUMNS, aggregate=PEOPLE)), None) == {"many": (5, 5)}


#: Spellings of one id: white space, case, full-width signs, ligatures, and characters that nobody sees.
SPELLINGS = {
    "p1": [
        "p1",
        "p1\u00a0",
        "\u2003P1",
        "\uff50\uff11",
        "p\u200b1",
        "\ufeffp1",
        "p1\u00ad",
        "P 1",
        "p1\x00",
        "\u202ep1\u202c",
        "p1\u3164",
        "p\ufe0f1",
    ],
    "stra\u00dfe": ["stra\u00dfe", "STRASSE", "Stra\u00dfe\u3000", "\ufb06ra\u00dfe"],
    "jos\u00e9": ["jos\u00e9", "jose\u0301", "JOSE\u0301"],
    "office": ["office", "o\ufb03ce"],
}
BLANK = ["\u00a0", "\u2003\t", "\u200b", "\ufeff", "\x00", "\u3000 \u00ad", "\u2800\u034f"]


@pytest.mark.slow
@pytest.mark.parametrize("id_", SPELLINGS)
def test_all_spellings_of_an_id_are_one_person(lake, id_):
    """Four other people make a group of five, which is shown at a minimum of five, and not at one of six."""
    ids = [*SPELLINGS[id_], *BLANK, "a", "b", "c", "d"]
    lake.commit(
        VISITS,
        *(
            {"id": f"{n}", "at": MONDAY, "who": who, "region": "north", "spent": 1}
            for n, who in enumerate(ids)
        ),
    )
    shown = lake.export(contract(*COLUMNS, name="five", aggregate=PEOPLE))
    assert groups(shown, None) == {"north": (len(ids), len(ids))}
    assert (
        groups(lake.export(contract(*COLUMNS, name="six", aggregate=PEOPLE | {"min_group_size": 6})), None)
        == {}
    )


@pytest.mark.slow
def test_telephone_numbers_that_have_one_pseudonym_are_one_person(lake):
    numbers = ["+49 151 23-45", "+49151 2345", "(+49) 1512345", "\uff0b491512345", "+49151 9999"]
    lake.commit(
        VISITS, *({"id": who, "at": MONDAY, "who": who, "region": "north", "spent": 1} for who in numbers)
    )
    hidden = column(
        "number", **{"from": "who"}, nullable=True, personal={"treatment": "hash", "kind": "phone"}
    )
    two, three = (PEOPLE | {"min_group_size": size} for size in (2, 3))
    by_number = lake.export(contract(COLUMNS[0], COLUMNS[1], name="two", aggregate=two))
    assert groups_of(by_number) == [("north", "5")]
    run = lake.export(contract(column("region"), hidden, COLUMNS[1], name="phones", aggregate=three))
    assert run.cells() == []


def groups_of(run):
    return [(row["region"], row["visits"]) for row in run.cells()]


@pytest.mark.slow
def test_keys_and_measures_are_computed_for_delivered_lines_only(lake):
    """Events are counted in groups too.

    These have no value that one could divide by, and more rows than the type allows.
    """
    visit = {"id": "a", "at": MONDAY, "who": "p", "region": "north", "spent": 5}
    lake.commit(VISITS, *[visit] * 12, visit | {"id": "b", "spent": 0}, keys=[b"same partition"] * 13)
    columns = [
        column("region"),
        column("tens", "integer", expression="10 div coalesce(length(region), 0)"),
        column("share", "decimal(18,4)", measure="cast(count_if(spent > 0) as decimal(18,4)) / count(spent)"),
        column("visits", "decimal(1,0)", measure="count(*)"),
    ]
    run = lake.export(contract(*columns, aggregate={"no_persons_because": "A test."}))
    assert run.csv() == b"region,tens,share,visits\r\nnorth,2,0.5000,2\r\n"
    assert run.manifest()["rows"]["events"]["duplicates"] == 11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("sum(10 div coalesce(spent, 0))", "5"),
        ("sum(10 div coalesce(spent, 0)) + max(10 div coalesce(spent, 0))", "10"),
        ("count(distinct 10 div coalesce(spent, 0))", "1"),
        ("count_if(10 div coalesce(spent, 0) between 1 and 9)", "1"),
        ("count(*) filter (where 10 div coalesce(spent, 0) > 0)", "1"),
        ("sum(2) + count(*)", "3"),
    ],
)
def test_an_argument_of_an_aggregate_is_not_computed_for_lines_that_are_left_out(lake, measure, expected):
    """A filter leaves out the line whose value is 0.

    An event that is counted has no value, which coalesce() makes 0.
    """
    visit = {"at": MONDAY, "who": "p", "region": "north"}
    lake.commit(
        VISITS, *(visit | {"id": id_, "spent": spent} for id_, spent in (("a", 2), ("b", 0), ("b", 0)))
    )
    kept = [{"where": "spent <> 0", "reason": "nothing was spent"}]
    columns = column("region"), column("n", "integer", measure=measure)
    run = lake.export(contract(*columns, filter=kept, aggregate={"no_persons_because": "A test."}))
    assert run.column("n") == [expected]
    assert run.manifest()["rows"]["lines"]["of_kept_events"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["as it is computed", "as it is written"])
def test_a_window_that_fails_leaves_no_groups_in_memory(lake, fails):
    lake.commit(VISITS, *visits("2024-W10", {"north": 4}))
    measure = {"as it is computed": "1 div sum(spent - spent)", "as it is written": "sum(spent - spent)"}[
        fails
    ]
    check = {"id": "divides", "severity": "warn", "message": "Divides.", "each_row": "1 / zero > 0"}
    columns = column("region"), column("zero", "integer", measure=measure)
    run = lake.export(contract(*columns, check=[check], aggregate={"no_persons_because": "A test."}))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-DIVISION")
    assert len(lake.spark.sparkContext._jsc.getPersistentRDDs()) == 0


def kept(lake):
    table = f"lake.`{lake.target.aggregates_database}`.things"
    rows = lake.spark.sql(
        f"SELECT window, region, visits, spent, run_id FROM {table} ORDER BY 1, 2"
    ).collect()
    return [tuple(row) for row in rows]


@pytest.mark.slow
@pytest.mark.cluster
def test_an_aggregate_is_kept_as_a_table_a_window_at_a_time(lake):
    keeping = PEOPLE | {"keep_as_table": True, "min_group_size": 2}
    text = contract(*COLUMNS, window={"from": date(2024, 2, 26)}, aggregate=keeping)
    lake.commit(VISITS, *visits("2024-W09", {"north": 4}), *visits("2024-W10", {"south": 3}))
    first = lake.export(text)
    assert kept(lake) == [
        ("2024-W09", "north", 8, 28, first.record.id),
        ("2024-W10", "south", 6, 15, first.record.id),
    ]
    lake.commit(VISITS, *visits("2024-W10", {"east": 2}))
    second = lake.export(text)
    assert (second.state("2024-W09"), second.state("2024-W10")) == ("unchanged", "published")
    expected = [
        ("2024-W09", "north", 8, 28, first.record.id),
        ("2024-W10", "east", 4, 6, second.record.id),
        ("2024-W10", "south", 6, 15, second.record.id),
    ]
    assert kept(lake) == expected
    assert groups(second, "2024-W10") == {"east": (4, 6), "south": (6, 15)}
    assert "compute" not in lake.export(text).record.phases, "nothing has changed"
    assert kept(lake) == expected


@pytest.mark.slow
def test_a_kept_table_that_somebody_dropped_is_written_again(lake):
    text = contract(*COLUMNS, aggregate={"no_persons_because": "Counts only.", "keep_as_table": True})
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))
    first = lake.export(text)
    lake.spark.sql(f"DROP TABLE lake.`{lake.target.aggregates_database}`.things")
    assert lake.export(text).state() == "unchanged"
    assert kept(lake) == [("2024-W10", "north", 4, 6, first.record.id)]


def prepare_table(lake, text):
    words = ["--export", lake.write_contract(text), "--as-of", AS_OF.isoformat(), *lake.target.arguments()]
    args = arguments.parse([*words, "--prepare-table", "true"], now=runs.utc_now())
    return prepare.run(args, contracts.load(args.export), spark=lake.spark)


@pytest.mark.slow
def test_a_table_that_was_prepared_before_the_first_run_gets_its_rows(lake):
    keeping = {"no_persons_because": "Counts only.", "keep_as_table": True}
    assert prepare_table(lake, contract(*COLUMNS[:2], aggregate=keeping)) == 0
    name = f"lake.`{lake.target.aggregates_database}`.things"
    assert lake.spark.table(name).count() == 0
    assert snapshots(lake, name) == 1, "Snowflake may not show a table without a snapshot"
    text = contract(*COLUMNS, aggregate=keeping)
    assert prepare_table(lake, text) == prepare_table(lake, text) == 0
    assert kept(lake) == [], "the second contract's column was added"
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))
    first = lake.export(text)
    assert kept(lake) == [("2024-W10", "north", 4, 6, first.record.id)]


def test_a_contract_that_keeps_no_table_is_refused(lake):
    with pytest.raises(BadInput, match="things keeps no table of its aggregates"):
        prepare_table(lake, contract(*COLUMNS, aggregate=PEOPLE))


@pytest.mark.slow
def test_a_kept_table_is_completed_however_old_its_window_is(lake):
    keeping = {"no_persons_because": "Counts only.", "keep_as_table": True}
    text = contract(*COLUMNS, window={"restate_for_days": 0}, aggregate=keeping)
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))

    def stop(window, phase):
        if phase == "keep aggregate":
            raise StorageProblem("EXP-AGGREGATE-BUSY", "The table is busy", "Run again")

    first = lake.export(text, on_phase=stop)
    assert (first.state(), lake.published()) == ("failed", ["2024-W10"])
    assert lake.export(text).state() == "unchanged"
    assert kept(lake) == [("2024-W10", "north", 4, 6, first.record.id)]
    assert lake.export(text).record.windows == []


@pytest.mark.slow
def test_a_kept_table_keeps_columns_that_the_contract_no_longer_has(lake):
    keeping = {"no_persons_because": "Counts only.", "keep_as_table": True}
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))
    assert lake.export(contract(*COLUMNS, aggregate=keeping)).state() == "published"
    fewer = lake.export(contract(*COLUMNS[:2], aggregate=keeping, version=2))
    assert (fewer.state(), fewer.csv()) == ("published", b"region,visits\r\nnorth,4\r\n")
    assert kept(lake) == [("2024-W10", "north", 4, None, fewer.record.id)]


@pytest.mark.slow
def test_old_snapshots_of_the_table_expire_with_their_files(lake):
    """The newest 20 stay, however old they are. The rows of each window stay too."""
    keeping = PEOPLE | {"keep_as_table": True, "min_group_size": 2}
    text = contract(*COLUMNS, aggregate=keeping)
    lake.commit(VISITS, *visits("2024-W10", {"south": 3}))
    lake.export(text)
    name = f"lake.`{lake.target.aggregates_database}`.things"
    rows = kept(lake)
    for _ in range(21):
        lake.spark.table(name).writeTo(name).overwritePartitions()
    table = AggregateTable(
        None, lambda: lake.spark, contracts.load(lake.write_contract(text)), lake.target.aggregates_database
    )
    before = set(files(lake, name))
    table.expire_snapshots(datetime.now(UTC) - timedelta(days=30))
    assert snapshots(lake, name) == 22, "none is that old"
    table.expire_snapshots(datetime.now(UTC) + timedelta(days=1))
    lake.spark.catalog.refreshTable(name)
    assert snapshots(lake, name) == 20
    assert len(before - set(files(lake, name))) == 2
    assert kept(lake) == rows


def snapshots(lake, name):
    return lake.spark.table(f"{name}.snapshots").count()


def files(lake, name):
    """Return the data files that any snapshot of the table has."""
    return [row["file_path"] for row in lake.spark.table(f"{name}.all_data_files").collect()]
