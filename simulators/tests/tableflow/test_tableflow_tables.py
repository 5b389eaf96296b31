"""Tables over their life: made, appended to, compacted, expired, evolved, upserted, dropped."""

import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import DoubleType, LongType

from simulators.data.generators import SalesMix, generate_sales_orders, generate_stock_trades
from simulators.tableflow.arrow import RecordError
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.kafka import Log, Sent
from simulators.tableflow.writer import Tableflow, TableLocation
from tests.support.tableflow_kit import SALES, TRADES, files_below, numbered, sent, topic_of, writer

START = datetime(2026, 10, 5, tzinfo=UTC)
END = datetime(2026, 11, 9, tzinfo=UTC)
THINGS = topic_of(("n", "int"))
ACCOUNTS = topic_of(
    ("owner", "string"), ("balance", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})
)


@pytest.fixture
def flow(tmp_path):
    return writer(tmp_path)


def operations(table):
    return [snapshot.summary.operation for snapshot in table.metadata.snapshots]


def values(table, column="n"):
    return sorted(table.scan().to_arrow()[column].to_pylist())


def test_the_layout_is_that_of_a_tableflow_bucket(tmp_path):
    place = TableLocation(
        str(tmp_path), cluster_id="lkc-7x0z1q", environment_id="env-9", organization_id="org", scheme="file"
    )
    path = Tableflow(writer(tmp_path).catalog, place).materialise(THINGS, numbered(10)).location()
    assert re.fullmatch(
        rf"file://{tmp_path}/[01]{{7}}/[01]{{8}}/org/env-9/lkc-7x0z1q/v1/[0-9a-f-]{{36}}", path
    )
    folders = {entry.name: entry for entry in Path(path.removeprefix("file://")).iterdir()}
    assert folders.keys() == {"data", "metadata"}
    assert all(re.fullmatch(r"[0-9a-f-]{36}\.parquet", name) for name in files_below(folders["data"]))
    kinds = Counter(
        re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "#", name) for name in files_below(folders["metadata"])
    )
    assert kinds == {"#-#.metadata.json": 2, "snap-#-#-#.avro": 1, "#-m#.avro": 1}


@pytest.mark.parametrize("wrong", [{"cluster_id": "my cluster"}, {"cluster_id": "lkc-"}, {"naming": "SNAKE"}])
def test_a_place_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong.values()))):
        TableLocation("lake", **wrong)


def test_the_database_is_named_like_the_cluster_and_the_table_like_the_topic(flow):
    table = flow.create_table(topic_of(("n", "int"), name="orders.clean-v2"))
    assert table.name() == ("lkc-00demo", "orders.clean-v2")
    assert flow.catalog.namespaces == {"lkc-00demo"}
    assert table.metadata.format_version == 2
    assert table.properties["write.parquet.compression-codec"] == "zstd"
    assert table.current_snapshot() is None


def test_creating_a_table_twice_leaves_the_first(tmp_path, flow):
    flow.materialise(THINGS, numbered(5))
    assert values(flow.create_table(THINGS)) == [0, 1, 2, 3, 4]
    again = Tableflow(flow.catalog, TableLocation(str(tmp_path), scheme="file"))
    assert values(again.materialise(THINGS, numbered(5))) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_table_of_another_schema_is_not_written_to(flow):
    flow.create_table(THINGS)
    with pytest.raises(SchemaError, match=r"its table lacks the fields more, most\. Evolve it"):
        flow.create_table(topic_of(("n", "int"), ("more", "int"), ("most", "int")))


def test_field_ids_are_the_same_for_the_same_schema(tmp_path):
    schemas = [writer(tmp_path).create_table(SALES).schema() for _ in range(2)]
    assert schemas[0] == schemas[1]
    assert [field.field_id for field in schemas[0].fields] == list(range(1, len(schemas[0].fields) + 1))


def test_a_commit_adds_one_file_for_each_kafka_partition_with_news(flow):
    records = generate_stock_trades(600, seed=1, start=START, end=END)
    flow.create_table(TRADES)
    table = flow.append("stock_trades", records)
    files = [task.file for task in table.scan().plan_files()]
    assert len(files) == len({record.partition for record in records}) > 1
    summary = table.current_snapshot().summary
    assert summary.operation is Operation.APPEND
    assert (summary["total-records"], summary["added-records"], summary["total-data-files"]) == (
        "600",
        "600",
        str(len(files)),
    )


@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_commit_can_be_asked_for_a_number_of_files(flow, count):
    flow.create_table(THINGS)
    table = flow.append("things", numbered(70), files=count)
    assert sorted(task.file.record_count for task in table.scan().plan_files()) == [
        len(item) for item in _cut(range(70), count)
    ]
    assert values(table) == list(range(70))


def _cut(items, count):
    size = -(-len(items) // count)
    return sorted((items[start : start + size] for start in range(0, len(items), size)), key=len)


def test_nothing_to_append_makes_no_commit(flow):
    flow.create_table(THINGS)
    assert flow.append("things", []).current_snapshot() is None


def test_column_statistics_allow_pruning_by_time(flow):
    table = flow.materialise(THINGS, numbered(100), commits=10, files=1)
    assert len(list(table.scan().plan_files())) == 10
    assert len(list(table.scan(row_filter="n >= 95").plan_files())) == 1


def test_records_are_cut_into_commits_by_time_of_arrival(flow):
    times = [0, 10, 20, 5, 90, 99]
    records = Log("things").append(sent("k", {"n": n}, time) for n, time in enumerate(times))
    table = flow.materialise(THINGS, records, commits=10, files=1)
    by_commit = [
        sorted(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["n"].to_pylist())
        for snapshot in table.metadata.snapshots
    ]
    # n=3 is late: it arrives after n=2 and is committed with it.
    assert by_commit == [[0], [0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]


def test_a_tombstone_can_not_be_appended(tmp_path, flow):
    flow.create_table(THINGS)
    with pytest.raises(RecordError, match="partition 0, offset 1: an append table"):
        flow.append("things", Log("things", 1).append([sent("a", {"n": 1}), sent("a", None)]))
    assert not [name for name in files_below(tmp_path) if name.endswith(".parquet")]


def test_two_writers_at_once_lose_nothing(tmp_path, flow):
    flow.materialise(THINGS, numbered(5))
    stale = Tableflow(flow.catalog, TableLocation(str(tmp_path), scheme="file"))
    stale.create_table(THINGS)
    flow.append("things", numbered(1, start=5))
    with pytest.raises(CommitFailedException):
        stale.append("things", numbered(1, start=6))
    assert values(flow.create_table(THINGS)) == [0, 1, 2, 3, 4, 5]


def test_compaction_replaces_small_files_and_keeps_every_row(flow):
    mix = SalesMix(orders=200, customers=50, awkward=0.2)
    before = flow.materialise(SALES, generate_sales_orders(mix, seed=3, start=START, end=END), commits=8)
    after = flow.compact("sales_orders", files=2)
    assert len(list(before.scan().plan_files())) > len(list(after.scan().plan_files())) == 2
    summary = after.current_snapshot().summary
    assert summary.operation is Operation.REPLACE
    assert summary["total-records"] == before.current_snapshot().summary["total-records"]
    assert summary["total-data-files"] == "2"
    assert summary["deleted-data-files"] == before.current_snapshot().summary["total-data-files"]

    def rows(table):
        return sorted(
            table.scan().to_arrow().to_pylist(), key=lambda row: (row["$$partition"], row["$$offset"])
        )

    assert rows(before) == rows(after)


def test_a_snapshot_from_before_the_compaction_stays_readable(flow):
    pinned = flow.materialise(THINGS, numbered(20), commits=4).current_snapshot().snapshot_id
    flow.compact("things")
    table = flow.append("things", numbered(1, start=20))
    assert table.scan(snapshot_id=pinned).count() == 20
    assert table.scan().count() == 21


def test_an_empty_table_can_be_compacted(flow):
    flow.create_table(THINGS)
    assert flow.compact("things").scan().count() == 0


def test_expiry_forgets_snapshots_and_removes_what_only_they_need(tmp_path, flow):
    before = flow.materialise(THINGS, numbered(100), commits=10)
    expired = [snapshot.snapshot_id for snapshot in before.metadata.snapshots]
    replaced = {Path(task.file.file_path).name for task in before.scan().plan_files()}
    flow.compact("things")
    table = flow.expire("things", keep=1)
    assert operations(table) == [Operation.REPLACE]
    left = files_below(tmp_path)
    assert not replaced & left
    assert len([name for name in left if name.endswith(".parquet")]) == 1
    assert len([name for name in left if name.startswith("snap-")]) == 1
    assert values(table) == list(range(100))
    for each in expired:
        with pytest.raises(ValueError, match=f"Snapshot not found: {each}"):
            table.scan(snapshot_id=each).to_arrow()


def test_expiry_keeps_files_that_newer_snapshots_share(flow):
    table = flow.materialise(THINGS, numbered(100), commits=10, keep=3)
    assert len(table.metadata.snapshots) == 3
    assert values(table) == list(range(100))
    assert [
        table.scan(snapshot_id=snapshot.snapshot_id).count() for snapshot in table.metadata.snapshots
    ] == [
        80,
        90,
        100,
    ]
    assert flow.expire("things", keep=3) == table


def test_numbers_below_one_are_refused_and_change_nothing(flow):
    table = flow.materialise(THINGS, numbered(1))
    with pytest.raises(ValueError, match="topic things: 0 snapshots to keep"):
        flow.expire("things", keep=0)
    with pytest.raises(ValueError, match="topic things: 0 files to a commit"):
        flow.append("things", numbered(1), files=0)
    with pytest.raises(ValueError, match="topic things: 0 files after compaction"):
        flow.compact("things", files=0)
    with pytest.raises(ValueError, match="topic things: 0 commits"):
        flow.materialise(THINGS, numbered(1), commits=0)
    assert flow.create_table(THINGS) == table


def test_materialise_compacts_as_it_goes(flow):
    table = flow.materialise(THINGS, numbered(60), commits=6, compact_every=3)
    append = Operation.APPEND
    replace = Operation.REPLACE
    assert operations(table) == [append, append, append, replace] * 2
    assert values(table) == list(range(60))


def test_a_topic_without_a_table_is_reported(flow):
    with pytest.raises(LookupError, match="topic things: it has no table here"):
        flow.append("things", numbered(1))


def test_more_than_a_hundred_snapshots_are_not_kept(tmp_path, flow):
    table = flow.materialise(THINGS, numbered(103), commits=103, files=1)
    assert len(table.metadata.snapshots) == 100
    assert len([name for name in files_below(tmp_path) if name.endswith(".metadata.json")]) == 101
    assert values(table) == list(range(103))


def test_a_dropped_table_is_gone_and_a_new_one_gets_a_path_of_its_own(flow):
    old = flow.materialise(THINGS, numbered(5))
    flow.drop("things")
    with pytest.raises(NoSuchTableError):
        flow.catalog.load_table(old.name())
    new = flow.create_table(THINGS)
    assert new.location() != old.location()
    assert new.scan().count() == 0


NESTED = topic_of(
    ("n", "int"),
    ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    (
        "lines",
        {
            "type": "array",
            "items": {"type": "record", "name": "Line", "fields": [{"name": "q", "type": "float"}]},
        },
    ),
)


def test_a_schema_evolves_with_old_rows_and_ids_kept(flow):
    log = Log("things")
    flow.create_table(NESTED)
    before = flow.append(
        "things", log.append([sent("k", {"n": 1, "price": Decimal("1.50"), "lines": [{"q": 1.5}]})])
    )
    line = {
        "type": "record",
        "name": "Line",
        "fields": [{"name": "q", "type": "double"}, {"name": "note", "type": ["null", "string"]}],
    }
    newer = topic_of(
        ("n", "long"),
        ("inserted", ["null", "string"], None),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}),
        ("lines", {"type": "array", "items": line}),
        ("tags", {"type": "array", "items": "string"}, []),
    )
    flow.evolve(newer)
    new = {
        "n": 1 << 40,
        "inserted": "i",
        "price": Decimal("1234567890.12"),
        "lines": [{"q": 2.5, "note": "x"}],
        "tags": ["t"],
    }
    after = flow.append("things", log.append([sent("k", new)]))
    assert [field.name for field in after.schema().fields][:7] == [
        "key",
        "n",
        "inserted",
        "price",
        "lines",
        "tags",
        "$$topic",
    ]
    assert isinstance(after.schema().find_type("n"), LongType)
    assert isinstance(after.schema().find_type("lines.element.q"), DoubleType)
    for name in ("key", "n", "price", "lines", "lines.element.q", "$$offset", "$$raw-value"):
        assert after.schema().find_field(name).field_id == before.schema().find_field(name).field_id, name
    rows = after.scan().to_arrow().select(["n", "inserted", "price", "lines", "tags"]).to_pylist()
    old = {
        "n": 1,
        "inserted": None,
        "price": Decimal("1.50"),
        "lines": [{"q": 1.5, "note": None}],
        "tags": None,
    }
    assert sorted(rows, key=lambda row: row["n"]) == [old, new]
    raw = after.scan().to_arrow()["$$raw-value"].to_pylist()
    assert {message[:5] for message in raw} == {
        b"\x00" + number.to_bytes(4, "big") for number in (100001, 100002)
    }


def test_rows_of_both_schemas_survive_a_compaction(flow):
    flow.materialise(THINGS, numbered(3))
    newer = topic_of(("n", "long"), ("more", ["null", "int"], None))
    flow.evolve(newer)
    flow.append("things", Log("things").append([sent("k", {"n": 1 << 40, "more": 7})]))
    table = flow.compact("things")
    assert values(table) == [0, 1, 2, 1 << 40]
    assert Counter(table.scan().to_arrow()["more"].to_pylist()) == {None: 3, 7: 1}


@pytest.mark.parametrize(
    ("fields", "expected_message"),
    [
        ([("n", "int")], "m: removed or renamed"),
        ([("n", "int"), ("renamed", "string")], "m: removed or renamed; renamed: added, and not nullable"),
        ([("m", "string"), ("n", "int")], r"\(top\): reordered to m, n"),
        ([("n", "string"), ("m", "string")], "n: int can't become string"),
        ([("n", "int"), ("m", "bytes")], "m: string can't become binary"),
        ([("n", "int"), ("m", "string"), ("new", "int", 5)], "new: added, and not nullable"),
        (
            [("n", "int"), ("m", "string"), ("key", ["null", "int"])],
            "key: Tableflow has a column of this name",
        ),
        ([("n", {"type": "array", "items": "int"}), ("m", "string")], r"n: int can't become list<int>"),
    ],
)
def test_a_change_that_tableflow_refuses_is_refused_by_field(flow, fields, expected_message):
    table = flow.create_table(topic_of(("n", "int"), ("m", "string")))
    with pytest.raises(SchemaError, match=expected_message):
        flow.evolve(topic_of(*fields))
    assert flow.catalog.load_table(table.name()).schema() == table.schema()


@pytest.mark.parametrize(("precision", "scale"), [(9, 3), (12, 3), (8, 2)])
def test_a_decimal_may_get_more_digits_before_the_point_only(flow, precision, scale):
    flow.create_table(
        topic_of(("d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}))
    )
    changed = topic_of(
        ("d", {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
    )
    with pytest.raises(
        SchemaError, match=rf"d: decimal\(9, 2\) can't become decimal\({precision}, {scale}\)"
    ):
        flow.evolve(changed)


def test_what_was_nullable_stays_so_and_what_was_not_can_become_so(flow):
    flow.create_table(
        topic_of(("n", ["null", "int"]), ("m", "string"), ("xs", {"type": "array", "items": ["null", "int"]}))
    )
    with pytest.raises(
        SchemaError, match=r"n: nullable until now, and no longer; xs\[\]: nullable until now, and no longer"
    ):
        flow.evolve(topic_of(("n", "int"), ("m", "string"), ("xs", {"type": "array", "items": "int"})))
    relaxed = topic_of(
        ("n", ["null", "int"]), ("m", ["null", "string"]), ("xs", {"type": "array", "items": ["null", "int"]})
    )
    assert not flow.evolve(relaxed).schema().find_field("m").required


def account(owner, balance):
    return sent(owner, None if balance is None else {"owner": owner, "balance": Decimal(balance)})


@pytest.mark.parametrize("naming", ["DEFAULT", "PORTABLE"])
def test_an_upsert_table_has_the_last_value_of_each_key(tmp_path, naming):
    flow = writer(tmp_path, naming)
    log = Log("things", 3)
    flow.create_table(ACCOUNTS, "upsert")
    first = flow.append(
        "things", log.append([account("a", 1), account("b", 2), account("c", 3), account("a", 4)])
    )
    assert operations(first) == [Operation.APPEND]
    assert first.scan().count() == 3
    flow.append("things", log.append([account("b", 20), account("c", None), account("d", 5)]))
    flow.append("things", log.append([account("a", None), account("e", 1), account("e", None)]))
    table = flow.append("things", log.append([account("a", 7), account("zz", None)]))
    assert operations(table) == [Operation.APPEND, Operation.OVERWRITE, Operation.DELETE, Operation.OVERWRITE]
    assert table.current_snapshot().summary["total-equality-deletes"] == "7"
    left = {row["owner"]: row["balance"] for row in flow.read("things").to_pylist()}
    assert left == {"a": Decimal(7), "b": Decimal(20), "d": Decimal(5)}
    with pytest.raises(ValueError, match="PyIceberg does not yet support equality deletes"):
        table.scan().to_arrow()


def test_compaction_of_an_upsert_table_does_away_with_the_deletes(tmp_path):
    flow = writer(tmp_path)
    log = Log("things", 3)
    flow.create_table(ACCOUNTS, "upsert")
    for n in range(5):
        flow.append(
            "things",
            log.append([account("a", n), account(f"b{n}", n), *([account("b0", None)] if n else [])]),
        )
    table = flow.compact("things")
    assert operations(table)[-1] is Operation.REPLACE
    assert table.current_snapshot().summary["total-delete-files"] == "0"
    rows = table.scan().to_arrow()
    assert sorted(rows["owner"].to_pylist()) == ["a", "b1", "b2", "b3", "b4"]
    table = flow.append("things", log.append([account("b1", None)]))
    assert [manifest.content.name for manifest in table.current_snapshot().manifests(table.io)] == [
        "DELETES",
        "DATA",
    ]
    assert sorted(flow.read("things")["owner"].to_pylist()) == ["a", "b2", "b3", "b4"]


def test_the_partition_is_part_of_an_upsert_tables_key(flow):
    flow.create_table(ACCOUNTS, "upsert")
    flow.append("things", Log("things", 1).append([account("a", 1)]))
    records = Log("things", 6).append([account("a", 2)])
    assert records[0].partition != 0
    flow.append("things", records)
    assert sorted(flow.read("things")["balance"].to_pylist()) == [Decimal(1), Decimal(2)]


def test_an_upsert_table_needs_keys(flow):
    with pytest.raises(SchemaError, match="upsert needs the record's key as a column"):
        flow.create_table(topic_of(("key", "string")), "upsert")
    flow.create_table(ACCOUNTS, "upsert")
    with pytest.raises(RecordError, match="a record without a key"):
        flow.append("things", Log("things").append([Sent(0, None, {"owner": "a", "balance": Decimal(1)})]))


def test_a_field_called_key_wins_over_the_records_key(flow):
    topic = topic_of(("key", "string"))
    table = flow.materialise(topic, Log("things").append([sent("raw", {"key": "mine"})]))
    rows = table.scan().to_arrow()
    assert (rows["key"].to_pylist(), rows["$$raw-key"].to_pylist()) == (["mine"], [b"raw"])
