"""Tables whose schema or format changed since the contract was written, and missing tables."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.types import DecimalType, IntegerType, LongType, MapType, NestedField, StringType, StructType
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from glue_jobs.errors import SourceProblem
from tests.support.lake import MONDAY, column, contract, topic_of

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
THINGS = topic_of(("n", "int"), ("share", "float"), ("price", DECIMAL), ("name", ["null", "string"], None))
SHOWN = [
    column("id"),
    column("n", "integer"),
    column("share", "decimal(9,4)"),
    column("price", "decimal(18,2)"),
    column("name"),
]
CSV = b"id,n,share,price,name\r\na,1,0.2500,9.90,x\r\nb,2,0.5000,0.10,y\r\n"


def thing(id_, n, share, price, name):
    return {"id": id_, "at": MONDAY, "n": n, "share": share, "price": Decimal(price), "name": name}


def filled(lake):
    lake.commit(THINGS, thing("b", 2, 0.5, "0.10", "y"), thing("a", 1, 0.25, "9.90", "x"))
    return lake


def evolve(lake, *steps):
    """Take each step on the table's schema in a commit of its own, then append its rows again with the new
    schema.
    """
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    for step in steps:
        with table.update_schema(allow_incompatible_changes=True) as update:
            step(update)
    table.append(table.scan().to_arrow())


def sql(lake, statement):
    lake.spark.sql(
        statement.format(table=f"lake.`{lake.target.database}`.things", db=f"lake.`{lake.target.database}`")
    )


def refusal(lake, text):
    """Return the message of a run that could not start.

    Nothing is published, and its record has the message.
    """
    with pytest.raises(SourceProblem) as caught:
        lake.export(text)
    assert lake.keys("exports/things/data/") == lake.published() == []
    (record,) = lake.keys("exports/things/runs/")
    assert caught.value.what in lake.read(record).decode()
    return caught.value


def test_added_moved_and_widened_columns_change_no_byte(lake):
    first = filled(lake).export(contract(*SHOWN))
    assert first.csv() == CSV
    evolve(
        lake,
        lambda schema: schema.add_column("secret", StringType()).move_first("name").move_after("id", "price"),
        lambda schema: schema.update_column("n", LongType()).update_column("price", DecimalType(14, 2)),
        lambda schema: schema.update_column("share", "double"),
    )
    again = lake.export(contract(*SHOWN))
    assert (again.state(), again.manifest()) == ("unchanged", first.manifest())
    assert len([key for key in lake.keys("exports/things/data/") if key.endswith(".csv")]) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("expected_message", "steps"),
    [
        ("name was renamed to title", [lambda schema: schema.rename_column("name", "title")]),
        ("name is gone", [lambda schema: schema.delete_column("name")]),
        (
            "name was dropped and added again",
            [
                lambda schema: schema.delete_column("name"),
                lambda schema: schema.add_column("name", StringType()),
            ],
        ),
        (
            "n was dropped and added again",
            [
                lambda schema: schema.rename_column("n", "m"),
                lambda schema: schema.add_column("n", LongType()),
            ],
        ),
    ],
)
def test_missing_and_replaced_columns_stop_the_run(lake, expected_message, steps):
    evolve(filled(lake), *steps)
    error = refusal(lake, contract(*SHOWN))
    assert error.code == "EXP-SCHEMA-CHANGED"
    assert expected_message in error.what


def replaced(lake, *names):
    """Replace fields by new ones of the same names."""
    evolve(
        filled(lake),
        *[lambda schema, name=name: schema.delete_column(name) for name in names],
        *[lambda schema, name=name: schema.add_column(name, StringType()) for name in names],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "reading",
    [
        {"filter": [{"where": "coalesce(name, '') <> 'cancelled'", "reason": "r"}]},
        {"column": [*SHOWN[:1], column("x", expression="upper(name)", nullable=True)]},
        {
            "column": [*SHOWN[:1], column("x", measure="max(name)", nullable=True)],
            "aggregate": {"no_persons_because": "Numbers only."},
        },
    ],
    ids=["filter", "expression", "measure"],
)
def test_a_replaced_field_inside_an_expression_stops_the_run(lake, reading):
    replaced(lake, "name")
    text = contract(*SHOWN[:1], **reading)
    error = refusal(lake, text)
    assert error.code == "EXP-SCHEMA-CHANGED"
    assert "name was dropped and added again" in error.what
    meant = contract(*SHOWN[:1], **reading, source={"replaced_fields": ["name"]})
    assert lake.export(meant, "--dry-run", "true").state() == "dry_run"


@pytest.mark.slow
def test_a_check_of_a_column_does_not_read_the_field(lake):
    replaced(lake, "name")
    check = [{"id": "filled", "severity": "warn", "message": "m", "each_row": "name <> ''"}]
    text = contract(column("id"), column("name", expression="upper(id)"), check=check)
    assert lake.export(text, "--dry-run", "true").state() == "dry_run"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "label", "name"),
    [
        ({"each_row": "length(nmae) > 0"}, "check good", "nmae"),
        ({"overall": "rows > 0 and sum_m > 0"}, "check good", "sum_m"),
    ],
)
def test_a_check_that_names_no_column_of_the_file_is_a_mistake_of_the_contract(lake, check, label, name):
    text = contract(
        column("id"),
        column("n", "integer"),
        check=[{"id": "good", "severity": "warn", "message": "m"} | check],
    )
    (window,) = filled(lake).export(text).record.windows
    assert (window["code"], window["exit_code"], window["stops"]) == ("EXP-EXPRESSION", 2, True)
    assert (name in window["reason"], "table" in window["reason"] + window["remedy"]) == (True, False)


@pytest.mark.slow
def test_a_field_that_was_renamed_since_the_last_commit_has_its_former_name_unless_it_is_the_event_time(lake):
    """Iceberg finds no files by a name that the table no longer has, even in a snapshot that has it."""
    table = filled(lake).flow.catalog.load_table((lake.target.database, "things"))
    with table.update_schema() as update:
        update.rename_column("name", "title").rename_column("n", "number")
    positive = [{"where": "n > 0", "reason": "the others are no things"}]
    assert lake.export(contract(*SHOWN, filter=positive)).csv() == CSV
    with table.update_schema() as update:
        update.rename_column("at", "happened_at")
    window = lake.export(contract(*SHOWN, name="more")).window()
    assert (window["state"], window["code"]) == ("failed", "EXP-SCHEMA-CHANGED")
    assert window["reason"].endswith("since its last commit: at")


@pytest.mark.slow
def test_a_column_that_was_replaced_on_purpose_is_read(lake):
    filled(lake)
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    for step in (
        lambda schema: schema.delete_column("name"),
        lambda schema: schema.add_column("name", StringType()),
    ):
        with table.update_schema(allow_incompatible_changes=True) as update:
            step(update)
    row = table.scan(limit=1).to_arrow()
    place = row.schema.get_field_index("name")
    table.append(
        row.set_column(place, row.schema.field(place), pa.array(["new"], row.schema.field(place).type))
    )
    shown = [*SHOWN[:-1], column("name", nullable=True)]
    run = lake.export(contract(*shown, source={"replaced_fields": ["name"]}, deduplicate=None))
    assert sorted(run.column("name")) == ["", "", "new"]


def test_all_wrong_types_are_reported_and_stop_the_run(lake):
    filled(lake)
    evolve(
        lake,
        lambda schema: schema.delete_column("n").delete_column("share").delete_column("name"),
        lambda schema: (
            schema.add_column("n", StringType())
            .add_column("share", MapType(1, StringType(), 2, StringType()))
            .add_column("name", StructType(NestedField(3, "first", StringType(), required=False)))
        ),
    )
    replaced = {"replaced_fields": ["n", "share", "name"]}
    (window,) = lake.export(contract(*SHOWN, source=replaced)).record.windows
    assert (window["state"], window["code"]) == ("failed", "EXP-TYPE-CHANGED")
    assert "column n: the field is text, and the column's type is integer" in window["reason"]
    assert "column share: the field is a map" in window["reason"]
    assert "column name: the field is a record or a union; name a field inside it" in window["reason"]
    assert lake.published() == lake.keys("exports/things/data/") == []


@pytest.mark.slow
def test_an_expression_over_a_missing_field_names_it(lake):
    (window,) = (
        filled(lake)
        .export(contract(column("id"), column("x", "integer", expression="n + gone_field")))
        .record.windows
    )
    assert window["code"] == "EXP-SCHEMA-CHANGED"
    assert "gone_field" in window["reason"]


def test_a_field_that_would_lose_digits_is_refused(lake):
    (window,) = filled(lake).export(contract(column("id"), column("price", "decimal(18,1)"))).record.windows
    assert (
        "column price: the field is decimal(10,2), and the column's type is decimal(18,1)" in window["reason"]
    )


@pytest.mark.slow
def test_partitioning_and_format_versions_change_no_byte(lake):
    """The same events are appended to a table of format 1, of format 2 with new partitioning, and of format
    3.
    """
    filled(lake)
    sql(
        lake,
        "CREATE TABLE {db}.old USING iceberg TBLPROPERTIES ('format-version'='1') AS SELECT * FROM {table}",
    )
    versions = []
    for steps in (
        (),
        ("SET TBLPROPERTIES ('format-version'='2')", "ADD PARTITION FIELD days(at)"),
        ("SET TBLPROPERTIES ('format-version'='3')", "REPLACE PARTITION FIELD days(at) WITH bucket(4, id)"),
    ):
        for step in steps:
            sql(lake, f"ALTER TABLE {{db}}.old {step}")
        if steps:
            sql(lake, "INSERT INTO {db}.old SELECT * FROM {table}")
        table = lake.flow.catalog.load_table((lake.target.database, "old"))
        versions.append((table.metadata.format_version, len(table.spec().fields)))
        run = lake.export(contract(*SHOWN), "--table", "old")
        assert run.csv() == CSV
    assert versions == [(1, 0), (2, 1), (3, 1)]
    assert run.manifest()["generation"] == 1


@pytest.mark.slow
def test_a_table_that_another_writer_made_is_refused(lake):
    filled(lake)
    sql(lake, "CREATE TABLE {db}.copy USING iceberg AS SELECT id, at, n FROM {table}")
    with pytest.raises(SourceProblem) as refused:
        lake.export(contract(*SHOWN[:2]), "--table", "copy")
    assert refused.value.code == "EXP-NOT-TABLEFLOW"
    assert "has no columns kafka_offset, kafka_partition, kafka_timestamp" in refused.value.what


def test_a_missing_table_one_without_a_snapshot_and_no_iceberg_differ(lakes):
    missing = lakes()
    waiting = lakes()
    plain = lakes()
    waiting.commit(THINGS)
    waiting_glue = waiting.flow.catalog.glue
    waiting_glue.create_database(DatabaseInput={"Name": plain.target.database})
    waiting_glue.create_table(DatabaseName=plain.target.database, TableInput={"Name": "things"})
    codes = [refusal(lake, contract(*SHOWN)).code for lake in (missing, waiting, plain)]
    assert codes == ["EXP-TABLE-MISSING", "EXP-TABLE-NOT-READY", "EXP-NOT-ICEBERG"]


MAP_VALUE = {
    "type": "record",
    "name": "V",
    "fields": [
        {"name": "amount", "type": ["null", "int"], "default": None},
        {"name": "k", "type": ["null", "int"], "default": None},
    ],
}
ONLY = MAP_VALUE | {"fields": MAP_VALUE["fields"][:1]}
NESTED = {
    "m{}": {"type": "map", "values": MAP_VALUE},
    "m[]": {"type": "array", "items": MAP_VALUE},
    "m": MAP_VALUE,
    "m{}[]": {"type": "map", "values": {"type": "array", "items": MAP_VALUE}},
    "m[]{}": {"type": "array", "items": {"type": "map", "values": MAP_VALUE}},
}
READING = {
    "m{}": "m['x'].amount",
    "m[]": "m[0].amount",
    "m": "m.amount",
    "m{}[]": "m['x'][0].amount",
    "m[]{}": "m[0]['x'].amount",
}


def nested(place, record):
    """Return an event's value of a field that has the record at this place."""
    value = record
    for part in reversed(place.removeprefix("m").replace("[]", "a").replace("{}", "o")):
        value = [value] if part == "a" else {"x": value}
    return value


def changed_inside(lake, place, schema, *steps, again="true"):
    """Change the schema inside the field, then append the rows for which `again` holds, so that a snapshot
    has the new schema.
    """
    lake.commit(topic_of(("m", schema)), {"id": "a", "at": MONDAY, "m": nested(place, {"amount": 5, "k": 1})})
    table = lake.flow.catalog.load_table((lake.target.database, "things"))
    for step in steps:
        with table.update_schema(allow_incompatible_changes=True) as update:
            step(update)
    where = f"lake.`{lake.target.database}`.things"
    lake.spark.table(where).filter(again).withColumn("id", F.lit("b")).writeTo(where).append()


def path_of(place):
    """Return the place as PyIceberg names it in a schema."""
    return place.replace("{}", ".value").replace("[]", ".element")


def replace_amount(place):
    return (
        lambda schema: schema.delete_column(f"{path_of(place)}.amount"),
        lambda schema: schema.add_column((*path_of(place).split("."), "amount"), IntegerType()),
    )


@pytest.mark.slow
@pytest.mark.parametrize("place", NESTED)
def test_a_field_replaced_inside_a_nested_field_stops_the_run(lake, place):
    changed_inside(lake, place, NESTED[place], *replace_amount(place))
    shown = column("id"), column("x", "integer", expression=READING[place], nullable=True)
    error = refusal(lake, contract(*shown))
    assert f"{place}.amount was dropped and added again" in error.what
    assert "(list m" in error.what
    listed = {"replaced_fields": ["m"]}
    meant = lake.export(contract(*shown, source=listed))
    assert meant.column("x") == ["", ""]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["m{}", "m"])
def test_the_only_field_of_a_record_that_was_replaced_stops_the_run(lake, place):
    """Iceberg can't read the old files: they have no field that the record has now."""
    schema = {"m{}": {"type": "map", "values": ONLY}, "m": ONLY}[place]
    changed_inside(lake, place, schema, *replace_amount(place), again="false")
    shown = column("id"), column("x", "integer", expression=READING[place], nullable=True)
    assert f"{place}.amount was dropped and added again" in refusal(lake, contract(*shown)).what
    (window,) = lake.export(contract(*shown, source={"replaced_fields": ["m"]})).record.windows
    assert (window["state"], window.get("code")) == {
        "m": ("published", None),
        "m{}": ("failed", "EXP-SCHEMA-CHANGED"),
    }[place]


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        lambda schema: schema.delete_column("m.value.amount"),
        lambda schema: schema.rename_column("m.value.amount", "total"),
    ],
    ids=["gone", "renamed"],
)
def test_a_field_that_is_gone_from_a_map_is_named(lake, step):
    changed_inside(lake, "m{}", NESTED["m{}"], step)
    window = lake.export(contract(column("id"), column("x", "integer", expression="m['x'].amount"))).window()
    assert (window["code"], "amount" in window["reason"]) == ("EXP-SCHEMA-CHANGED", True)
