"""The table of an aggregate by itself: its columns, its rows by window, and other writers."""

from __future__ import annotations

import attrs
import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from glue_jobs import outcomes
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.errors import SourceProblem
from glue_jobs.store import connect
from tests.support import samples
from tests.support.run_kit import describe_published, window_of

pytestmark = pytest.mark.slow
DAY = "2026-11-09"
BEFORE = "2026-11-08"
COLUMNS = [("region", "text"), ("n", "integer", 'measure = "sum(n)"')]
MORE = [("total", "decimal(9,2)", 'measure = "sum(x)"'), ("day", "date", 'measure = "max(at)"')]
AGGREGATE = '[aggregate]\nno_persons_because = "Numbers."\nkeep_as_table = true\n'
WINDOW = [
    ("window", "string"),
    ("window_start", "timestamp"),
    ("window_end", "timestamp"),
    ("run_id", "string"),
]


def contract(*columns):
    return samples.things(*columns, more=AGGREGATE)


@pytest.fixture
def table(lake):
    spark = lake.spark
    return AggregateTable(connect(), lambda: spark, contract(*COLUMNS), lake.target.aggregates_database)


def full_name(table):
    return f"lake.`{table.database}`.things"


def columns_of(table):
    return table.spark().table(full_name(table)).dtypes


def rows_of(table):
    rows = table.spark().table(full_name(table)).orderBy("window", "region")
    return [(row["window"], row["run_id"], row["region"], row["n"]) for row in rows.collect()]


def count_snapshots(table):
    return table.spark().table(f"{full_name(table)}.snapshots").count()


def groups(table, *cells):
    """Return groups of (region, n), one of which is suppressed."""
    rows = [(region, n, outcomes.DELIVERED) for region, n in cells] + [("few", 1, outcomes.SUPPRESSED)]
    made = table.spark().createDataFrame(rows, f"region string, n bigint, `{outcomes.LINE_STATE}` int")
    return made.withColumn("m", F.col("n"))


@attrs.define
class Location:
    """A window whose visible manifest is one of this run. `disturb` is called each time it is looked for."""

    window: str
    run_id: str | None
    disturb: object = attrs.field(default=lambda: None)

    def current(self):
        self.disturb()
        return (describe_published(run_id=self.run_id), "etag") if self.run_id else None


def write(table, run_id, *cells, day=DAY, visible="", disturb=lambda: None):
    """Write the groups of a run, while the manifest of another one may be visible."""
    location = Location(day, run_id if visible == "" else visible, disturb)
    made = describe_published(day, run_id=run_id, rows={"rows": len(cells)})
    table.write(location, window_of(day), made, groups(table, *cells))


def test_a_table_is_made_once_and_gets_the_columns_that_are_new_in_the_contract(table):
    assert table.published_runs([DAY]) is None
    table.create()
    expected = [*WINDOW, ("region", "string"), ("n", "bigint")]
    assert columns_of(table) == expected
    assert (table.published_runs([DAY]), count_snapshots(table)) == ({}, 0)
    table.create()
    assert columns_of(table) == expected
    more = attrs.evolve(table, contract=contract(*COLUMNS, *MORE))
    more.create()
    assert sorted(columns_of(table)) == sorted([*expected, ("total", "decimal(9,2)"), ("day", "date")])
    partitions = (
        table.spark().sql(f"DESCRIBE {full_name(table)}").filter("col_name = '# Partition Information'")
    )
    assert partitions.count() == 1


def test_columns_of_other_types_are_refused_together(table):
    table.create()
    changed = attrs.evolve(table, contract=contract(("region", "text"), ("n", "decimal(9,2)"), *MORE))
    with pytest.raises(SourceProblem) as refused:
        changed.create()
    assert refused.value.code == "EXP-AGGREGATE-TYPE"
    assert refused.value.what == (
        f"the table {table.database}.things has columns of other types: n is bigint, not decimal(9,2)"
    )
    assert len(columns_of(table)) == 6, "and none is added"


def test_a_window_has_the_rows_of_the_run_whose_manifest_is_visible(table):
    write(table, "run-1", ("north", 1), ("south", 2), day=BEFORE)
    write(table, "run-2", ("north", 3))
    of_before = [(BEFORE, "run-1", "north", 1), (BEFORE, "run-1", "south", 2)]
    assert rows_of(table) == [*of_before, (DAY, "run-2", "north", 3)]
    assert table.published_runs([DAY, BEFORE, "2026-11-07"]) == {DAY: "run-2", BEFORE: "run-1"}
    assert table.published_runs([BEFORE]) == {BEFORE: "run-1"}
    times = ("unix_seconds(window_start)", "unix_seconds(window_end)")
    row = table.spark().table(full_name(table)).filter(f"window = '{DAY}'").selectExpr(*times).first()
    assert tuple(row) == tuple(int(moment.timestamp()) for moment in (window_of().start, window_of().end))
    snapshots = count_snapshots(table)
    write(table, "run-2", ("north", 9))
    assert count_snapshots(table) == snapshots, "it has the rows of this run"
    write(table, "run-3", ("north", 9), visible="run-4")
    write(table, "run-3", ("north", 9), visible=None)
    assert count_snapshots(table) == snapshots, "the manifest of another run is visible, or none"
    write(table, "run-5", ("east", 5))
    assert rows_of(table) == [*of_before, (DAY, "run-5", "east", 5)]
    write(table, "run-6")
    assert rows_of(table) == of_before
    table.commit_nothing()
    assert rows_of(table) == of_before
    assert count_snapshots(table) == snapshots + 3


def test_a_column_that_the_contract_no_longer_has_is_null_in_new_rows(table):
    write(table, "run-1", ("north", 1), day=BEFORE)
    other = attrs.evolve(table, contract=contract(COLUMNS[0], ("m", "integer", 'measure = "max(n)"')))
    write(other, "run-2", ("north", 3))
    assert rows_of(table) == [(BEFORE, "run-1", "north", 1), (DAY, "run-2", "north", None)]


def test_a_write_is_repeated_until_no_other_writer_is_faster(table):
    """Each of them changes the window after the run has looked at it, the last of them in the ninth
    attempt.
    """
    write(table, "run-1", ("north", 1))
    name = full_name(table)
    attempts = []

    def overtake():
        attempts.append(len(attempts) + 1)
        if len(attempts) < 10:
            rows = table.spark().table(name).filter(f"window = '{DAY}'").limit(1)
            rows.writeTo(name).append()

    write(table, "run-2", ("south", 2), disturb=overtake)
    assert (rows_of(table), len(attempts)) == ([(DAY, "run-2", "south", 2)], 10)

    def always():
        attempts.append(0)
        table.spark().table(name).filter(f"window = '{DAY}'").limit(1).writeTo(name).append()

    attempts.clear()
    with pytest.raises(SourceProblem) as refused:
        write(table, "run-3", ("east", 3), disturb=always)
    assert (refused.value.code, len(attempts)) == ("EXP-AGGREGATE-BUSY", 10)
    assert refused.value.what == f"other writers keep changing {table.database}.things"


def test_writers_of_other_windows_are_not_in_the_way(table):
    write(table, "run-1", ("north", 1))
    name = full_name(table)
    looked = []

    def write_another():
        looked.append(1)
        other = table.spark().table(name).limit(1).withColumn("window", F.lit(BEFORE))
        other.writeTo(name).append()

    write(table, "run-2", ("south", 2), disturb=write_another)
    assert looked == [1]
    assert (DAY, "run-2", "south", 2) in rows_of(table)
