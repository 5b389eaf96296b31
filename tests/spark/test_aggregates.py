"""Aggregates: groups that are too small, groups that hide them, counts, and the table that keeps aggregates."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from lake import MONDAY, column, contract, topic_of

VISITS = topic_of(("who", ["null", "string"], None), ("region", ["null", "string"], None), ("spent", "int"))
COLUMNS = [
    column("region", nullable=True),
    column("visits", "integer", measure="count(*)"),
    column("spent", "integer", measure="sum(spent)"),
]
PEOPLE = {"person_id": "who", "min_group_size": 5}
#: People per region in three weeks: with one small group, with two, and with only a small one. Everybody comes twice.
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
            yield {"id": f"{label}{region}{n}", "at": monday, "who": f"p{n % people}", "region": region, "spent": n}


@pytest.fixture(scope="module")
def run(lakes):
    lake = lakes()
    lake.commit(VISITS, *(event for label, regions in WEEKS.items() for event in visits(label, regions)))
    return lake.export(contract(*COLUMNS, window=FROM, aggregate=PEOPLE))


def groups(run, label):
    return {row["region"]: (int(row["visits"]), int(row["spent"])) for row in run.cells(label)}


def test_one_small_group_hides_the_next_smallest_too(run):
    """Otherwise the total minus the visible rows would be the small group."""
    assert groups(run, "2024-W08") == {"": (14, 91), "east": (18, 153)}
    rows = run.manifest("2024-W08")["rows"]
    assert rows["groups"] == {"shown": 2, "suppressed": 2}
    assert rows["lines"] == {"of_kept_events": 52, "filtered": 0, "suppressed": 20, "delivered": 32}


def test_two_small_groups_are_hidden(run):
    assert groups(run, "2024-W09") == {"east": (18, 153)}
    assert run.manifest("2024-W09")["rows"]["groups"] == {"shown": 1, "suppressed": 2}


def test_a_single_small_group_hides_all_counts(run):
    assert run.csv("2024-W10") == b"region,visits,spent\r\n"
    manifest = run.manifest("2024-W10")
    assert (manifest["rows"]["events"], manifest["rows"]["lines"], manifest["source"]["offsets"]) == (None, None, {})
    assert "too small" in manifest["rows"]["withheld"]


def test_people_are_counted_once_and_null_is_not_a_person(lake):
    """Twenty visits of four people are four people; visits without a person count as none."""
    lake.commit(
        VISITS,
        *({"id": f"a{n}", "at": MONDAY, "who": f"p{n % 4}", "region": "few", "spent": 1} for n in range(20)),
        *({"id": f"b{n}", "at": MONDAY, "who": None, "region": "nobody", "spent": 1} for n in range(20)),
        *({"id": f"c{n}", "at": MONDAY, "who": f"p{n}", "region": "many", "spent": 1} for n in range(5)),
    )
    assert groups(lake.export(contract(*COLUMNS, aggregate=PEOPLE)), None) == {"many": (5, 5)}


def kept(lake):
    table = f"lake.`{lake.target.aggregates_database}`.things"
    rows = lake.spark.sql(f"SELECT window, region, visits, spent, run_id FROM {table} ORDER BY 1, 2").collect()
    return [tuple(row) for row in rows]


@pytest.mark.cluster
def test_an_aggregate_is_kept_as_a_table_a_window_at_a_time(lake):
    keeping = PEOPLE | {"keep_as_table": True, "min_group_size": 2}
    text = contract(*COLUMNS, window={"from": date(2024, 2, 26)}, aggregate=keeping)
    lake.commit(VISITS, *visits("2024-W09", {"north": 4}), *visits("2024-W10", {"south": 3}))
    first = lake.export(text)
    assert kept(lake) == [("2024-W09", "north", 8, 28, first.record.id), ("2024-W10", "south", 6, 15, first.record.id)]
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
    lake.export(text)
    assert kept(lake) == expected


def test_a_kept_table_that_somebody_dropped_is_written_again(lake):
    text = contract(*COLUMNS, aggregate={"no_persons_because": "Counts only.", "keep_as_table": True})
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))
    first = lake.export(text)
    lake.spark.sql(f"DROP TABLE lake.`{lake.target.aggregates_database}`.things")
    assert lake.export(text).state() == "unchanged"
    assert kept(lake) == [("2024-W10", "north", 4, 6, first.record.id)]


@pytest.mark.slow
def test_a_kept_table_keeps_columns_that_the_contract_no_longer_has(lake):
    keeping = {"no_persons_because": "Counts only.", "keep_as_table": True}
    lake.commit(VISITS, *visits("2024-W10", {"north": 2}))
    assert lake.export(contract(*COLUMNS, aggregate=keeping)).state() == "published"
    fewer = lake.export(contract(*COLUMNS[:2], aggregate=keeping, version=2))
    assert (fewer.state(), fewer.csv()) == ("published", b"region,visits\r\nnorth,4\r\n")
    assert kept(lake) == [("2024-W10", "north", 4, None, fewer.record.id)]
