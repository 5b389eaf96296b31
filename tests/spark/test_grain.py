"""In the real job: a key that repeats blocks the file, a share of the rows may fail a check, and a window is
compared with those before it.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

THINGS = topic_of(("n", "int"))
LINES = [column("id"), column("n", "integer")]
WEEK_LENGTH = timedelta(days=7)
VOLUME = {
    "id": "volume",
    "severity": "block",
    "message": "The number of things is unusual.",
    "compare": "rows",
    "with_windows": 2,
    "at_most_percent": 50,
}


def thing(id_, n=0, at=MONDAY):
    return {"id": id_, "n": n, "at": at}


def volume(run, label=WEEK):
    return next(check for check in run.manifest(label)["checks"] if check["id"] == "volume")


@pytest.mark.slow
def test_rows_with_the_same_key_block_the_file(lake):
    lake.commit(THINGS, thing("a", 1), thing("b", 1), thing("c", 2))
    window = lake.export(contract(*LINES, unique=["n"])).window()
    assert (window["state"], window["code"]) == ("blocked", "EXP-CHECK-BLOCKED")
    assert window["reason"] == (
        f"window {WEEK}: 2 of 3 rows have the same n as another row (1 different value), and `unique` says "
        "that it identifies a row"
    )
    run = lake.export(contract(*LINES, unique=["n", "id"]))
    assert run.state() == "published"
    assert {"id": "rows_are_unique", "severity": "block", "passed": True}.items() <= run.manifest()["checks"][
        -1
    ].items()


@pytest.mark.slow
def test_keys_that_become_equal_because_bytes_are_replaced_block_the_file(lake):
    """By their bytes, the emoji is between the two."""
    lake.commit(THINGS, thing("x\ufffd"), thing("x\U0001f600"))
    table = f"lake.`{lake.target.database}`.things"
    invalid = F.lit(bytearray(b"x\xff")).cast("string")
    lake.spark.table(table).limit(1).withColumn("id", invalid).writeTo(table).append()
    window = lake.export(contract(*LINES, unique=["id"])).window()
    assert window["code"] == "EXP-CHECK-BLOCKED"
    assert "2 of 3 rows have the same id as another row" in window["reason"]


@pytest.mark.slow
def test_a_key_of_pseudonyms_is_checked_as_it_is_delivered(lake):
    topic = topic_of(("n", "int"), ("customer", "string"))
    lake.commit(topic, *({**thing(id_, 1), "customer": name} for id_, name in (("a", "Ann"), ("b", "ann "))))
    hashed = {"treatment": "hash", "kind": "text"}
    lines = [*LINES, column("customer", personal=hashed)]
    window = lake.export(contract(*lines, unique=["customer"])).window()
    assert "2 of 2 rows have the same customer" in window["reason"]
    assert "nn" not in window["reason"].replace("another", "")


@pytest.mark.slow
def test_a_share_of_the_rows_may_fail_a_check(lake):
    lake.commit(THINGS, *(thing(f"{number}", number) for number in range(10)))
    check = {
        "id": "few",
        "severity": "block",
        "message": "N is 0.",
        "each_row": "n > 0",
        "at_most_percent": 10,
    }
    run = lake.export(contract(*LINES, check=[check]))
    assert run.manifest()["checks"][-1] == {
        "id": "few",
        "severity": "block",
        "message": "N is 0.",
        "failed": 1,
        "of": "rows",
        "tolerated": 1,
        "found": "1 of 10 rows, 10 %; the limit is 10 %",
        "unknown": None,
        "passed": True,
    }
    blocked = lake.export(contract(*LINES, check=[check | {"at_most_percent": 9.5}])).window()
    assert blocked["reason"] == f"window {WEEK}: N is 0. (few: 1 of 10 rows, 10 %; the limit is 9.5 %)"


@pytest.mark.slow
def test_a_window_is_compared_with_those_before_it_and_a_new_generation_not_with_itself(lake):
    def week(before, count):
        at = MONDAY - before * WEEK_LENGTH
        return [thing(f"{before}-{number}", number, at) for number in range(count)]

    text = contract(*LINES, window={"from": MONDAY.date() - 2 * WEEK_LENGTH}, check=[VOLUME])
    lake.commit(THINGS, *week(2, 4), *week(1, 4), *week(0, 6))
    run = lake.export(text)
    # The window that closed last is published before older ones, except the one before it.
    assert [volume(run, label)["unknown"] for label in ("2024-W09", WEEK, "2024-W08")] == [
        "0 of the 2 windows before it can be compared with",
        "only 1 of the 2 windows before it can be compared with",
        "0 of the 2 windows before it can be compared with",
    ]
    assert volume(run, WEEK)["passed"] is None
    assert "could not be made" in run.files("report", WEEK)[0].decode()
    lake.commit(THINGS, thing("late", 7))
    window = lake.export(text).window(WEEK)
    assert window["state"] == "blocked"
    assert window["reason"] == (
        f"window {WEEK}: The number of things is unusual. (volume: 7 is 75 % more than the median of "
        "2024-W08 to 2024-W09, 4; the limit is 50 %)"
    )
    assert run.column("id", WEEK) == [f"0-{number}" for number in range(6)]
    wider = lake.export(text.replace("at_most_percent = 50", "at_most_percent = 80"))
    assert (wider.manifest(WEEK)["generation"], volume(wider, WEEK)["passed"]) == (2, True)


@pytest.mark.slow
def test_an_incomplete_window_is_not_compared(lake):
    text = contract(*LINES, window={"from": MONDAY.date(), "on_incomplete_source": "publish"}, check=[VOLUME])
    lake.commit(THINGS, thing("a", 1))
    run = lake.export(text, as_of=AS_OF)
    expected = {"incomplete": "this window is incomplete"}
    why = "0 of the 2 windows before it can be compared with"
    assert volume(run)["unknown"] == expected.get(run.manifest()["status"], why)
