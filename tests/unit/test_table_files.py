"""Which files of a snapshot may have events of a window, how many, and when they have changed."""

from __future__ import annotations

from datetime import UTC, date, datetime

import attrs
import pytest

from config.exports.windows import find_window
from glue_jobs.files import DataFile, PartitionFile, TableFiles, _read_data_file
from glue_jobs.table_fields import Field
from tests.support import samples

HOUR = 3_600_000_000
#: The window's start and end, in microseconds.
START = int(datetime(2024, 3, 4, tzinfo=UTC).timestamp()) * 1_000_000
END = START + 24 * HOUR
#: Its day since 1970.
DAY = (date(2024, 3, 4) - date(1970, 1, 1)).days
#: Before source.min_event_date, and a moment after the last valid time: a day after the commit.
TOO_EARLY = int(datetime(2019, 12, 31, 23, tzinfo=UTC).timestamp()) * 1_000_000
TOO_LATE = END + 30 * HOUR
CONTRACT = samples.things(("id", "text"))
CONTRACT = attrs.evolve(
    CONTRACT, source=attrs.evolve(CONTRACT.source, event_time="at", min_event_date=date(2020, 1, 1))
)
WINDOW = find_window(date(2024, 3, 4), CONTRACT.window)


def data(name="a", times=(START, END - 1), received=(START, END - 1), rows=100, **changes) -> DataFile:
    return DataFile(name, 10, rows, times, received, **({"has_nulls": False} | changes))


def files(*listed: DataFile, type_="timestamptz", stage="before_deduplication", **changes) -> TableFiles:
    window = attrs.evolve(CONTRACT.window, filter_stage=stage)
    table = samples.pinned(WINDOW, "things")
    table = attrs.evolve(table, fields={"at": Field(2, "at", type_)}, **changes)
    return TableFiles(attrs.evolve(CONTRACT, window=window), table, list(listed))


def in_window(*times: int | None, **changes) -> float:
    """Return how many of a hundred rows with these bounds are estimated in the window."""
    return sum(file.rows for file in files(data(times=times), **changes).of_window(WINDOW))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((START, END - 1), 100),
        ((START, START), 100),
        ((END - 1, END - 1), 100),
        ((START - 1, START - 1), 0),
        ((END, END), 0),
        ((START - 1, START), 50),
        ((END - 1, END), 50),
        ((START - 24 * HOUR, END - 1), 50),
        ((START, END + 24 * HOUR - 1), 50),
        ((START - 24 * HOUR, END + 48 * HOUR - 1), 25),
        ((None, None), 100),
        ((None, START), 100),
        ((None, START - 1), 0),
        ((END - 1, None), 100),
        ((END, None), 0),
    ],
)
def test_rows_of_a_window_are_estimated_from_a_files_times(times, expected):
    assert in_window(*times) == expected


def test_dates_are_days():
    assert files(type_="date").bounds(WINDOW) == (DAY, DAY + 1)
    assert files().bounds(WINDOW) == (START, END)
    assert in_window(DAY, DAY, type_="date") == 100
    assert in_window(DAY, DAY + 1, type_="date") == 50
    assert in_window(DAY + 1, DAY + 1, type_="date") == 0
    assert in_window(DAY - 1, DAY - 1, type_="date") == 0


def test_a_window_that_is_applied_after_deduplication_needs_all_files():
    listed = [data(times=(END, END)), data("b")]
    assert files(*listed, stage="after_deduplication").of_window(WINDOW) == listed
    assert [file.location for file in files(*listed).of_window(WINDOW)] == ["b"]


def digest(*listed: DataFile, **changes) -> str:
    return files(*listed, **changes).digest(WINDOW)


def test_the_digest_changes_with_each_file_of_the_window_and_with_its_deletes():
    one = digest(data())
    assert digest(data("b")) != one
    assert digest(data(), data("b")) != one
    assert digest(data(deletes=("d",))) != one
    assert digest(data(), data("d", times=(END, END))) == one
    assert digest(data("b"), data()) == digest(data(), data("b"))
    assert digest(data(rows=7)) == one


def test_the_digest_changes_with_the_schema_and_the_first_valid_day():
    listed = files(data())
    other_table = attrs.evolve(listed, table=attrs.evolve(listed.table, schema_id=1))
    source = attrs.evolve(CONTRACT.source, min_event_date=date(2020, 1, 2))
    other_contract = attrs.evolve(listed, contract=attrs.evolve(listed.contract, source=source))
    assert len({table_files.digest(WINDOW) for table_files in (listed, other_table, other_contract)}) == 3


@pytest.mark.parametrize(
    "invalid",
    [
        {"has_nulls": True},
        {"times": (TOO_EARLY, TOO_EARLY)},
        {"times": (END, TOO_LATE)},
        {"times": (None, START - 1)},
        {"times": (END, None)},
    ],
    ids=["nulls", "too early", "too late", "unknown first", "unknown last"],
)
def test_invalid_times_count_in_the_window_in_which_kafka_received_the_events(invalid):
    outside = {"times": (END, END)} | invalid
    one = digest(data())
    assert digest(data(), data("b", received=(START, START), **outside)) != one
    assert digest(data(), data("b", received=(END - 1, END - 1), **outside)) != one
    assert digest(data(), data("b", received=(END, END), **outside)) == one
    assert digest(data(), data("b", received=(START - 1, START - 1), **outside)) == one


def test_all_files_count_once_if_the_window_is_applied_after_deduplication():
    after = {"stage": "after_deduplication"}
    assert digest(data(), data("b", times=(END, END)), **after) != digest(data(), **after)


def test_the_limits_of_valid_times_are_those_of_the_contract_and_the_commit():
    first_valid = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    committed = samples.pinned(WINDOW, "things").committed_at
    end_of_valid = int(committed.timestamp()) * 1_000_000 + 24 * HOUR
    before = (first_valid - 1, first_valid - 1), (first_valid, first_valid)
    after = (end_of_valid, end_of_valid), (end_of_valid - 1, end_of_valid - 1)
    one = digest(data())
    for invalid, valid in (before, after):
        assert digest(data(), data("b", times=invalid)) != one
        assert digest(data(), data("b", times=valid)) == one


@pytest.mark.parametrize(
    ("bounds", "only", "among"),
    [
        ((3, 3), 3, [3]),
        ((2, 4), None, [2, 3, 4]),
        ((None, None), None, [1, 2, 3, 4, 5]),
        ((None, 2), None, [1, 2]),
        ((4, None), None, [4, 5]),
    ],
)
def test_a_file_may_have_events_of_the_partitions_between_its_bounds(bounds, only, among):
    file = PartitionFile(bounds, (0, 9), (START, END))
    assert file.only_partition == only
    assert [partition for partition in range(1, 6) if file.may_have(partition)] == among


def bound(number: int, size: int = 8) -> str:
    return number.to_bytes(size, "little", signed=True).hex()


def scanned(**changes) -> dict:
    file = {
        "file-path": "s3://lake/a.parquet",
        "file-size-in-bytes": 1_234,
        "record-count": 56,
        "lower-bounds": {"keys": [2, 9], "values": [bound(START), bound(-5)]},
        "upper-bounds": {"keys": [2, 9], "values": [bound(END), bound(7)]},
        "null-value-counts": {"keys": [9, 2], "values": [3, 0]},
    }
    return {"data-file": file | changes}


def read(task: dict, type_: str = "timestamptz") -> DataFile:
    return _read_data_file(task, Field(2, "at", type_), Field(9, "$kafka_timestamp", "timestamptz"))


def test_a_file_is_read_from_icebergs_scan_task():
    expected = DataFile("s3://lake/a.parquet", 1_234, 56, (START, END), (-5, 7), has_nulls=False)
    assert read(scanned()) == expected
    deletes = [{"file-path": "s3://lake/d1"}, {"file-path": "s3://lake/d2"}]
    with_deletes = read(scanned() | {"delete-files": deletes})
    assert with_deletes == attrs.evolve(expected, deletes=("s3://lake/d1", "s3://lake/d2"))


def test_a_file_without_statistics_may_have_anything():
    bare = scanned()
    for name in ("lower-bounds", "upper-bounds", "null-value-counts"):
        del bare["data-file"][name]
    found = read(bare)
    assert (found.times, found.received, found.has_nulls) == ((None, None), (None, None), True)
    of_others = scanned(**{"null-value-counts": {"keys": [9], "values": [0]}})
    assert read(of_others).has_nulls is True
    assert read(scanned(**{"null-value-counts": {"keys": [2], "values": [1]}})).has_nulls is True


def test_bounds_of_dates_have_four_bytes_and_those_of_other_types_are_unknown():
    days = {name: {"keys": [2], "values": [bound(DAY, 4)]} for name in ("lower-bounds", "upper-bounds")}
    assert read(scanned(**days), "date").times == (DAY, DAY)
    assert read(scanned(), "string").times == (None, None)
    assert {read(scanned(), type_).times for type_ in ("int", "long", "timestamp")} == {(START, END)}
