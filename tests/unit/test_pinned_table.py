"""What a table's metadata file says about its current snapshot, and whether a contract's fields are in it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import attrs
import boto3
import pytest

from config.exports.contract import Contract
from glue_jobs import source
from glue_jobs.errors import SourceProblem
from glue_jobs.source import NEVER, Snapshot, pin, pin_metadata, require_fields, require_same_fields
from glue_jobs.store import connect
from glue_jobs.table_fields import Field
from tests.support import samples

BASE = 1_710_000_000_000
#: The metadata columns of both naming schemes of Tableflow that each contract needs.
NEEDED = ("partition", "offset", "timestamp")


def add_hours(hours: float) -> datetime:
    return datetime.fromtimestamp(BASE / 1000 + hours * 3600, UTC)


def column(id_: int, name: str, type_: Any = "string") -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": False}


def schema(*columns: dict[str, Any], schema_id: int = 0, prefix: str = "$$") -> dict[str, Any]:
    metadata = [column(900 + place, f"{prefix}{name}", "long") for place, name in enumerate(NEEDED)]
    return {"schema-id": schema_id, "type": "struct", "fields": [*columns, *metadata]}


def snapshot(id_: int, hours: float, parent: int | None = None, operation: str = "append", **summary: int):
    found = {
        "snapshot-id": id_,
        "timestamp-ms": int(BASE + hours * 3_600_000),
        "schema-id": 0,
        "summary": {"operation": operation, "total-records": "10"}
        | {name.replace("_", "-"): str(count) for name, count in summary.items()},
    }
    return found if parent is None else found | {"parent-snapshot-id": parent}


def metadata(*snapshots: dict[str, Any], schemas: list[dict[str, Any]] | None = None, **more: Any) -> str:
    known = [schema(column(1, "id"), column(2, "at", "timestamptz"))] if schemas is None else schemas
    document = {
        "table-uuid": "f0d4",
        "current-snapshot-id": snapshots[-1]["snapshot-id"] if snapshots else -1,
        "current-schema-id": known[-1]["schema-id"],
        "snapshots": list(snapshots),
        "schemas": known,
    }
    names = {name.replace("_", "-"): value for name, value in more.items()}
    return json.dumps(document | names)


def pinned(*snapshots: dict[str, Any], **more: Any) -> source.PinnedTable:
    return pin_metadata(metadata(*snapshots, **more), "lake", "things")


def table(*columns: dict[str, Any], former: tuple[dict[str, Any], ...] = (), prefix: str = "$$"):
    """Return a table with these columns, which had the columns `former` before."""
    schemas = [schema(*columns, schema_id=1, prefix=prefix)]
    if former:
        schemas.insert(0, schema(*former, prefix=prefix))
    return pinned(snapshot(1, 0) | {"schema-id": 1}, schemas=schemas)


AT = column(2, "at", "timestamptz")
WORDS = samples.things(("word", "text"), ("n", "integer"))


def refusal(contract: Contract, found: source.PinnedTable, code: str = "EXP-SCHEMA-CHANGED") -> str:
    with pytest.raises(SourceProblem) as caught:
        require_fields(contract, found)
    assert caught.value.code == code
    return caught.value.what


def test_everything_about_the_current_snapshot_is_read():
    found = pinned(snapshot(7, 1), snapshot(8, 2, parent=7, total_records=12))
    assert attrs.asdict(found, recurse=False) == {
        "database": "lake",
        "name": "things",
        "uuid": "f0d4",
        "snapshot_id": 8,
        "schema_id": 0,
        "committed_at": add_hours(2),
        "current_since": add_hours(2),
        "appended_at": add_hours(2),
        "events": 12,
        "upserts": False,
        "fields": {
            "id": Field(1, "id", "string"),
            "at": Field(2, "at", "timestamptz"),
            **{
                f"{start}kafka_{name}": Field(900 + place, f"$kafka_{name}", "long")
                for place, name in enumerate(NEEDED)
                for start in ("", "$")
            },
        },
        "former": {
            "id": frozenset({1}),
            "at": frozenset({2}),
            **{f"$kafka_{name}": frozenset({900 + place}) for place, name in enumerate(NEEDED)},
        },
        "history": (
            Snapshot(8, add_hours(2), has_deletes=False),
            Snapshot(7, add_hours(1), has_deletes=False),
        ),
    }
    assert found.has_deletes is False


@pytest.mark.parametrize(
    "document",
    [metadata(), metadata(snapshot(1, 0), current_snapshot_id=2), metadata(current_snapshot_id=None)],
)
def test_a_table_without_a_snapshot_is_not_ready(document):
    with pytest.raises(SourceProblem) as caught:
        pin_metadata(document, "lake", "things")
    assert caught.value.code == "EXP-TABLE-NOT-READY"
    assert "table lake.things exists but has no snapshot" in caught.value.what


def test_a_snapshot_is_read_with_its_own_schema():
    schemas = [schema(column(1, "id")), schema(column(1, "id"), column(3, "more"), schema_id=1)]
    assert "more" not in pinned(snapshot(1, 0), schemas=schemas).fields
    later = pinned(snapshot(1, 0) | {"schema-id": 1}, schemas=schemas)
    assert (later.schema_id, "more" in later.fields) == (1, True)
    silent = snapshot(1, 0)
    del silent["schema-id"]
    assert pinned(silent, schemas=schemas).schema_id == 1


def test_after_a_rollback_the_snapshot_is_current_since_then():
    log = [
        {"snapshot-id": id_, "timestamp-ms": BASE + hours * 3_600_000}
        for hours, id_ in enumerate([1, 2, 1, 2, 1])
    ]
    for entries, since in ((5, 4), (4, 2), (3, 2), (1, 0), (0, 0)):
        found = pinned(snapshot(2, 1, parent=1), snapshot(1, 0), snapshot_log=log[:entries])
        assert (found.committed_at, found.current_since) == (add_hours(0), add_hours(since))
    assert pinned(snapshot(1, 0), snapshot_log=log[1:2]).current_since == add_hours(0)


def test_events_were_added_by_the_newest_snapshot_that_is_no_compaction_and_no_retention():
    added = snapshot(1, 0)
    compacted = snapshot(2, 1, parent=1, operation="replace")
    removed = snapshot(3, 2, parent=2, operation="delete")
    assert pinned(added, compacted, removed).appended_at == add_hours(0)
    assert pinned(added, snapshot(2, 1, parent=1, operation="overwrite")).appended_at == add_hours(1)
    assert pinned(compacted, removed).appended_at == NEVER
    assert pinned(compacted).appended_at == NEVER == datetime(1970, 1, 1, tzinfo=UTC)


def test_the_history_is_that_of_the_current_snapshot_as_far_as_it_has_not_expired():
    others = snapshot(1, 0), snapshot(5, 4, parent=1)
    found = pinned(*others, snapshot(3, 2, parent=2), snapshot(4, 3, parent=3, total_position_deletes=1))
    assert found.history == (
        Snapshot(4, add_hours(3), has_deletes=True),
        Snapshot(3, add_hours(2), has_deletes=False),
    )


@pytest.mark.parametrize(
    ("summary", "events", "upserts"),
    [
        ({}, 10, False),
        ({"total_position_deletes": 0, "total_equality_deletes": 0}, 10, False),
        ({"total_position_deletes": 1}, None, False),
        ({"total_equality_deletes": 1}, None, True),
    ],
)
def test_deletes_make_the_number_of_events_unknown_and_those_by_key_replace_rows(summary, events, upserts):
    found = pinned(snapshot(1, 0, **summary))
    assert (found.events, found.has_deletes, found.upserts) == (events, events is None, upserts)


def test_rows_were_replaced_by_key_if_any_known_snapshot_did():
    """A compaction removes the files with the deletes from the current snapshot."""
    found = pinned(snapshot(1, 0, total_equality_deletes=3), snapshot(2, 1, parent=1, operation="replace"))
    assert (found.upserts, found.events) == (True, 10)


def test_a_snapshot_without_a_summary_has_an_unknown_number_of_events():
    bare = snapshot(1, 0)
    del bare["summary"]
    found = pinned(bare)
    assert (found.events, found.upserts, found.appended_at) == (None, False, add_hours(0))


def test_top_level_columns_have_kafkas_metadata_without_a_dollar_sign():
    record = {"type": "struct", "fields": [column(5, "zip")]}
    items = {"type": "list", "element-id": 6, "element": "string"}
    found = table(column(1, "word"), AT, column(3, "address", record), column(4, "tags", items))
    assert sorted(found.columns) == [
        "address",
        "at",
        "kafka_offset",
        "kafka_partition",
        "kafka_timestamp",
        "tags",
        "word",
    ]
    assert {"address.zip", "tags[]"} < set(found.fields)


@pytest.mark.parametrize("prefix", ["$$", "cflt_metadata_"])
def test_fields_of_the_topic_with_names_of_metadata_are_ambiguous(prefix):
    assert table(AT, prefix=prefix).ambiguous == []
    found = table(AT, column(3, "kafka_offset"), column(4, "_file"), prefix=prefix)
    assert found.ambiguous == ["kafka_offset", "_file"]


def test_a_contract_with_all_its_fields_is_accepted():
    require_fields(WORDS, table(column(1, "word"), AT, column(3, "n", "long")))
    require_fields(WORDS, table(column(1, "word"), column(2, "at", "date"), column(3, "n", "long")))
    require_fields(WORDS, table(column(1, "word"), column(2, "at", "timestamp"), column(3, "n", "long")))


def test_a_table_that_tableflow_did_not_write_is_refused_with_what_it_lacks():
    bare = [{"schema-id": 0, "fields": [column(1, "word"), AT, column(3, "$$partition", "long")]}]
    what = refusal(WORDS, pinned(snapshot(1, 0), schemas=bare), "EXP-NOT-TABLEFLOW")
    assert what == "table lake.things has no columns kafka_offset, kafka_timestamp"


def test_every_field_that_is_missing_was_renamed_or_was_replaced_is_named_in_one_message():
    contract = samples.things(("word", "text"), ("n", "integer"), ("gone", "text"), ("tiem", "text"))
    former = (column(1, "word"), AT, column(3, "n", "long"), column(4, "gone"))
    found = table(column(1, "title"), AT, column(9, "n", "long"), column(5, "time"), former=former)
    assert refusal(contract, found) == (
        "table lake.things no longer has what the contract reads: word was renamed to title; "
        "n was dropped and added again, so older events would read as null "
        "(list n in source.replaced_fields if that is intended); gone is gone; "
        "tiem does not exist (time?)"
    )


def test_a_field_like_no_other_has_no_suggestion():
    what = refusal(WORDS, table(column(1, "word"), AT))
    assert what.endswith("reads: n does not exist")
    named = samples.things(("kafka_offsets", "integer"))
    assert "$" not in refusal(named, table(AT))


@pytest.mark.parametrize("type_", ["string", "long"])
def test_an_event_time_is_a_time_or_a_date(type_):
    what = refusal(WORDS, table(column(1, "word"), column(2, "at", type_), column(3, "n", "long")))
    assert what.endswith(f"reads: at, the event time, is {type_}, not a timestamp or a date")


@pytest.mark.parametrize("name", ["export_window_start", "export_window_end"])
def test_a_field_with_the_name_of_a_windows_bound_is_refused(name):
    what = refusal(WORDS, table(column(1, "word"), AT, column(3, "n", "long"), column(4, name)))
    assert what.endswith(f"reads: {name} is the name of the export's own column")


def exploded(alias: str = "line") -> Contract:
    more = f'[explode]\narray = "lines"\nas = "{alias}"\n'
    return samples.things(("word", "text"), ("sku", "text", f'from = "{alias}.sku"'), more=more)


def lines(id_: int = 12) -> dict[str, Any]:
    record = {"type": "struct", "fields": [column(id_, "sku")]}
    return column(10, "lines", {"type": "list", "element-id": 11, "element": record})


@pytest.mark.parametrize("alias", ["word", "kafka_offset", "export_window_end"])
def test_an_item_of_an_array_may_not_have_the_name_of_a_column(alias):
    found = table(column(1, "word"), AT, lines())
    require_fields(exploded(), found)
    assert refusal(exploded(alias), found).endswith(
        f"a field {alias} has the name that explode.as gives to an item"
    )


def test_fields_of_an_item_are_looked_up_in_the_array():
    assert "lines[].sku" in refusal(exploded(), table(column(1, "word"), AT, lines(), former=(lines(99),)))
    assert source.table_path("line.sku", exploded()) == "lines[].sku"
    assert source.table_path("line", exploded()) == "lines[]"
    assert source.table_path("liner.sku", exploded()) == "liner.sku"
    assert source.table_path("line.sku", WORDS) == "line.sku"


def accept_replaced(*fields: str) -> Contract:
    return attrs.evolve(WORDS, source=attrs.evolve(WORDS.source, replaced_fields=list(fields)))


def test_a_field_that_was_replaced_is_read_if_the_contract_says_so():
    found = table(column(1, "word"), AT, column(9, "n", "long"), former=(column(3, "n", "long"),))
    require_fields(accept_replaced("n"), found)
    assert "n was dropped" in refusal(accept_replaced("word"), found)


def test_what_is_inside_a_replaced_field_was_replaced_too():
    record = {"type": "struct", "fields": [column(8, "zip"), column(9, "city")]}
    found = table(column(1, "word"), AT, column(7, "address", record), former=(column(3, "address"),))
    with pytest.raises(SourceProblem, match="address was dropped and added again") as caught:
        require_same_fields(["address.zip"], WORDS, found)
    assert caught.value.code == "EXP-SCHEMA-CHANGED"
    require_same_fields(["address.zip"], accept_replaced("address"), found)
    require_same_fields(["address"], accept_replaced("address"), found)
    require_same_fields(["word"], WORDS, found)


def test_a_field_inside_of_what_an_expression_reads_was_replaced():
    record = {"type": "struct", "fields": [column(8, "zip")]}
    before = {"type": "struct", "fields": [column(6, "zip")]}
    found = table(column(1, "word"), AT, column(7, "address", record), former=(column(7, "address", before),))
    with pytest.raises(SourceProblem, match=r"address\.zip was dropped and added again"):
        require_same_fields(["address"], WORDS, found)


def test_of_fields_inside_of_each_other_that_were_replaced_the_outer_one_is_to_be_listed():
    record = {"type": "struct", "fields": [column(8, "zip")]}
    before = {"type": "struct", "fields": [column(6, "zip")]}
    found = table(column(1, "word"), AT, column(7, "address", record), former=(column(3, "address", before),))
    again = (
        "address was dropped and added again, so older events would read as null "
        "(list address in source.replaced_fields if that is intended)"
    )
    for paths in (["address.zip"], ["address", "address.zip"]):
        with pytest.raises(SourceProblem) as refused:
            require_same_fields(paths, WORDS, found)
        assert refused.value.what == f"table lake.things no longer has what the contract reads: {again}"


def test_a_name_with_two_meanings_is_refused_where_it_is_read():
    found = table(column(1, "word"), AT, column(3, "n", "long"), column(4, "kafka_offset"))
    require_fields(WORDS, found)
    require_same_fields(["n"], WORDS, found)
    own = samples.things(("word", "text"), ("kafka_offset", "text"))
    assert "(kafka_offset), and the contract names them" in refusal(own, found, "EXP-AMBIGUOUS-FIELD")
    with pytest.raises(SourceProblem, match="kafka_offset"):
        require_same_fields(["kafka_offset"], WORDS, found)


def test_names_are_quoted_for_spark():
    assert source.quoted("a`b") == "`a``b`"
    assert source.quote_table("lake", "a`b", "c") == "`lake`.`a``b`.`c`"


@pytest.fixture
def glue(bucket):
    """Return a client of Glue, which has a database with the bucket's name."""
    client = boto3.client("glue")
    client.create_database(DatabaseInput={"Name": bucket.name})
    return client


@pytest.mark.parametrize(
    "pack", [bytes, b"\n".__add__, gzip.compress], ids=["plain", "a new line", "compressed"]
)
def test_a_table_of_glue_is_read_from_its_metadata_file(bucket, glue, pack):
    document = metadata(snapshot(1, 0))
    bucket.write("1.metadata.json", pack(document.encode()), "application/json")
    parameters = {"metadata_location": f"s3://{bucket.name}/{bucket.key('1.metadata.json')}"}
    glue.create_table(DatabaseName=bucket.name, TableInput={"Name": "things", "Parameters": parameters})
    assert pin(connect(), bucket.name, "things") == pin_metadata(document, bucket.name, "things")


@pytest.mark.parametrize("more", [{}, {"Parameters": {}}, {"Parameters": {"metadata_location": ""}}])
def test_a_table_that_is_none_of_iceberg_is_refused(bucket, glue, more):
    glue.create_table(DatabaseName=bucket.name, TableInput={"Name": "things"} | more)
    with pytest.raises(SourceProblem) as refused:
        pin(connect(), bucket.name, "things")
    assert refused.value.code == "EXP-NOT-ICEBERG"
    assert refused.value.what == f"table {bucket.name}.things is not an Iceberg table"


def test_a_table_that_glue_does_not_have_is_missing(bucket, glue):
    with pytest.raises(SourceProblem) as missing:
        pin(connect(), bucket.name, "things")
    assert missing.value.code == "EXP-TABLE-MISSING"
    assert missing.value.what == f"the Glue catalog has no table {bucket.name}.things"


def test_when_events_were_added_is_not_asked_if_a_snapshot_says_it():
    found = pinned(snapshot(1, 0))
    assert source.with_appended_at(found, read=pytest.fail) is found
