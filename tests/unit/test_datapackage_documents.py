"""Every field of datapackage.json, for one contract with everything and one with as little as possible."""

from __future__ import annotations

import attrs
import pytest

from config.exports.contract import Column, Filter, Personal
from glue_jobs.delivery.datapackage import build_data_package
from glue_jobs.delivery.manifest import File, WindowResult
from tests.support import samples


def column(name: str, type_: str = "text", **more) -> Column:
    return Column(name=name, type=type_, title=name.capitalize(), description="D.", **more)


def make_result() -> WindowResult:
    """Return a window with a column of each kind, in all formats, of which those of text are compressed."""
    made = samples.things(("id", "integer"))
    contract = attrs.evolve(
        made,
        name="all_things",
        version=12,
        column=[
            column("id", "integer", source="head.id", example="7", adds_up=False),
            column("street", personal=Personal(treatment="drop")),
            column("price", "decimal(12,4)", unit="EUR", expression="a * b"),
            column("pieces", "decimal(12,0)", per="kind", measure="sum(n)", nullable=True, adds_up=True),
            column("kind", personal=Personal(treatment="keep", reason="Known.", may_contain=["phone"])),
            column("who", personal=Personal(treatment="hash", kind="email")),
        ],
        filter=[Filter(where="id > 0", reason="Others are tests."), Filter(where="a", reason="B.")],
        delivery=attrs.evolve(
            made.delivery,
            order_by=["who", "id"],
            delimiter=";",
            null_text="NULL",
            gzip=True,
            also=["parquet", "jsonl", "xlsx"],
        ),
        sha256="c" * 64,
    )
    stem = "exports/all_things/data/2026-11-09/run/All_Things_2026-11-09"
    empty = samples.delivered(made, [])
    table = attrs.evolve(empty.table, database="shop", name="things_table", snapshot_id=42)
    files = [
        File("data", f"{stem}.csv.gz", 11, "1" * 64, 3),
        File("report", f"{stem}.html", 12, "2" * 64),
        File("parquet", f"{stem}.parquet", 13, "3" * 64, 3),
        File("jsonl", f"{stem}.jsonl.gz", 14, "4" * 64, 3),
        File("xlsx", f"{stem}.xlsx", 15, "5" * 64, 3),
    ]
    return attrs.evolve(
        empty,
        contract=contract,
        table=table,
        run_id="run",
        files=files,
        status="incomplete",
        key_version="v1",
    )


def test_the_document_has_the_export_its_window_and_what_was_left_out():
    document = build_data_package(make_result())
    document.pop("resources")
    assert document == {
        "profile": "data-package",
        "name": "all-things",
        "title": "Things",
        "description": "Things.",
        "version": "12",
        "contributors": [{"title": "somebody", "role": "publisher"}],
        "sources": [{"title": "topic things, table shop.things_table"}],
        "lakeferry": {
            "grain": "one row per thing",
            "status": "incomplete",
            "window": {
                "label": "2026-11-09",
                "every": "day",
                "zone": "UTC",
                "start": "2026-11-09T00:00:00+00:00",
                "end": "2026-11-10T00:00:00+00:00",
            },
            "run_id": "run",
            "snapshot_id": 42,
            "contract_sha256": "c" * 64,
            "key_version": "v1",
            "order_by": ["who", "id"],
            "filters": [
                {"where": "id > 0", "reason": "Others are tests."},
                {"where": "a", "reason": "B."},
            ],
            "not_delivered": [{"name": "street", "title": "Street", "description": "D."}],
        },
    }


NUMBER = {"type": "number", "decimalChar": ".", "bareNumber": True}
FIELDS = [
    {
        "name": "id",
        "title": "Id",
        "description": "D.",
        "type": "integer",
        "bareNumber": True,
        "constraints": {"required": True},
        "example": "7",
        "source": "head.id",
        "storage": "integer",
        "nullable": False,
        "adds_up": False,
    },
    {
        "name": "price",
        "title": "Price",
        "description": "D.",
        **NUMBER,
        "constraints": {"required": True},
        "unit": "EUR",
        "formula": "a * b",
        "storage": "decimal(12,4)",
        "nullable": False,
    },
    {
        "name": "pieces",
        "title": "Pieces",
        "description": "D.",
        **NUMBER,
        "per": "kind",
        "formula": "sum(n)",
        "storage": "decimal(12,0)",
        "nullable": True,
        "adds_up": True,
    },
    {
        "name": "kind",
        "title": "Kind",
        "description": "D.",
        "type": "string",
        "source": "kind",
        "storage": "text",
        "nullable": False,
        "personal": {"treatment": "keep", "reason": "Known.", "may_contain": ["phone"]},
    },
    {
        "name": "who",
        "title": "Who",
        "description": "D.",
        "type": "string",
        # A pseudonym never looks like a missing value.
        "constraints": {"required": True},
        "source": "who",
        "storage": "text",
        "nullable": False,
        "personal": {"treatment": "hash", "kind": "email"},
    },
]


def test_the_csv_file_is_a_table_with_a_field_for_each_delivered_column():
    resource = build_data_package(make_result())["resources"][0]
    assert resource.pop("schema") == {"fields": FIELDS, "missingValues": ["NULL"]}
    assert resource == {
        "profile": "tabular-data-resource",
        "name": "all-things-2026-11-09",
        "path": "All_Things_2026-11-09.csv.gz",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": 11,
        "hash": f"sha256:{'1' * 64}",
        "dialect": {
            "delimiter": ";",
            "quoteChar": '"',
            "doubleQuote": True,
            "lineTerminator": "\r\n",
            "header": True,
        },
        "compression": "gz",
    }


def test_files_of_other_formats_are_resources_without_a_table():
    _, *others = build_data_package(make_result())["resources"]
    same = {"profile": "data-resource", "description": "The rows of the CSV file, in the same order."}
    assert others == [
        same
        | {
            "name": "all-things-2026-11-09-parquet",
            "path": "All_Things_2026-11-09.parquet",
            "format": "parquet",
            "mediatype": "application/vnd.apache.parquet",
            "bytes": 13,
            "hash": f"sha256:{'3' * 64}",
        },
        same
        | {
            "name": "all-things-2026-11-09-jsonl-gz",
            "path": "All_Things_2026-11-09.jsonl.gz",
            "format": "jsonl",
            "mediatype": "application/x-ndjson",
            "bytes": 14,
            "hash": f"sha256:{'4' * 64}",
            "compression": "gz",
        },
        same
        | {
            "name": "all-things-2026-11-09-xlsx",
            "path": "All_Things_2026-11-09.xlsx",
            "format": "xlsx",
            "mediatype": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "bytes": 15,
            "hash": f"sha256:{'5' * 64}",
        },
    ]


def test_a_contract_with_little_has_a_package_with_little():
    document = build_data_package(samples.delivered(samples.things(("id", "integer")), []))
    assert (document["profile"], document["name"]) == ("tabular-data-package", "things")
    facts = document["lakeferry"]
    assert (facts["status"], facts["key_version"], facts["filters"], facts["not_delivered"]) == (
        "empty",
        None,
        [],
        [],
    )
    (resource,) = document["resources"]
    assert (resource["name"], resource["path"]) == ("things-2026-11-09", "things_2026-11-09.csv")
    assert "compression" not in resource


FIRST_AND_LAST = ["0001-01-01", "9999-12-31"]


@pytest.mark.parametrize(
    ("type_", "allowed", "described"),
    [
        ("text", ["-", "ok"], ["'-", "ok"]),
        ("integer", ["-9223372036854775808", "007"], [-(2**63), 7]),
        ("boolean", ["false", "true"], [False, True]),
        ("decimal(5,2)", ["0.10"], ["0.10"]),
        ("date", FIRST_AND_LAST, FIRST_AND_LAST),
    ],
)
def test_allowed_values_are_those_that_a_reader_gets(type_, allowed, described):
    contract = samples.things(("id", type_))
    contract = attrs.evolve(contract, column=[column("id", type_, allowed=allowed)])
    made = attrs.evolve(samples.delivered(samples.things(("id", type_)), []), contract=contract)
    (field,) = build_data_package(made)["resources"][0]["schema"]["fields"]
    assert field["constraints"] == {"required": True, "enum": described}


@pytest.mark.parametrize(
    ("more", "null_text", "required"),
    [
        ({}, "", False),
        ({}, "NULL", False),
        ({"allowed": ["a", "b"]}, "NULL", True),
        ({"allowed": ["a", "NULL"]}, "NULL", False),
        ({"allowed": ["a"], "nullable": True}, "NULL", False),
        ({"personal": Personal(treatment="mask", visible=2)}, "NULL", False),
        ({"personal": Personal(treatment="hash")}, "NULL", True),
        ({"personal": Personal(treatment="hash"), "nullable": True}, "NULL", False),
    ],
)
def test_a_text_is_required_only_if_none_looks_like_a_missing_value(more, null_text, required):
    """Readers of the Table Schema ignore quotation marks, so such a text would be missing to them."""
    plain = samples.things(("id", "text"))
    contract = attrs.evolve(
        plain,
        column=[column("id", **more)],
        delivery=attrs.evolve(plain.delivery, null_text=null_text),
    )
    made = attrs.evolve(samples.delivered(plain, []), contract=contract)
    (field,) = build_data_package(made)["resources"][0]["schema"]["fields"]
    assert field.get("constraints", {}).get("required", False) == required


OF_TYPES = {
    "integer": {"type": "integer", "bareNumber": True},
    "decimal(5,2)": {"type": "number", "decimalChar": ".", "bareNumber": True},
    "date": {"type": "date", "format": "%Y-%m-%d"},
    "timestamp": {"type": "datetime", "format": "%Y-%m-%dT%H:%M:%S.%fZ"},
    "boolean": {"type": "boolean", "trueValues": ["true"], "falseValues": ["false"]},
}


@pytest.mark.parametrize("type_", OF_TYPES)
def test_a_value_of_another_type_is_described_and_required_unless_it_may_be_missing(type_):
    contract = samples.things(("id", type_), ("more", type_, "nullable = true"))
    made = samples.delivered(contract, [])
    fields = build_data_package(made)["resources"][0]["schema"]["fields"]
    assert [field.get("constraints") for field in fields] == [{"required": True}, None]
    about = {"name", "title", "description", "constraints", "source", "storage", "nullable", "adds_up"}
    for field in fields:
        assert {name: value for name, value in field.items() if name not in about} == OF_TYPES[type_]
