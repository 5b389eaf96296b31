"""The data package describes the file: Frictionless reads every value back with it, and finds invalid
values.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import attrs
import frictionless
import pytest

from glue_jobs.delivery.datapackage import build_data_package
from glue_jobs.delivery.manifest import File, WindowResult
from tests.support import samples
from tests.support.sample_rows import region_rows, sales_rows, symbol_rows, trade_rows

# Frictionless doesn't close the file under a gzip stream.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

EVERY_TYPE = samples.things(
    ("word", "text"),
    ("sign", "text", 'allowed = ["-", "=x", "ok"]'),  # a spreadsheet would run some of them
    ("amount", "integer", 'allowed = ["-9223372036854775808", "7"]'),
    ("share", "decimal(38,10)", 'allowed = ["0.1", "1234567890123456789012345678.0123456789"]'),
    ("day", "date", 'allowed = ["0001-01-01", "9999-12-31"]'),
    ("at", "timestamp"),
    ("flag", "boolean", 'allowed = ["true", "false"]'),
    ("rest", "decimal(12,4)", "nullable = true"),
)
#: Texts as they are in the file: guarded ones have an apostrophe.
WORDS = ["plain", 'multi\nline, "quoted"\r\nand more', "null", " blanks ", "Ünïcode 🚀", "0001"]


def rows() -> list[dict]:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    ends = [
        ("-", 7, Decimal("0.1000000000"), date(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), True, None),
        (
            "=x",
            -(2**63),
            Decimal("1234567890123456789012345678.0123456789"),
            date(9999, 12, 31),
            last,
            False,
            Decimal("-0.5000"),
        ),
    ]
    names = ("sign", "amount", "share", "day", "at", "flag", "rest")
    return [
        {"word": word} | dict(zip(names, ends[place % 2], strict=True)) for place, word in enumerate(WORDS)
    ]


def every_type(**delivery) -> tuple[WindowResult, bytes]:
    contract = attrs.evolve(EVERY_TYPE, delivery=attrs.evolve(EVERY_TYPE.delivery, **delivery))
    return samples.delivered(contract, rows()), samples.csv_bytes(contract, rows())


def written(folder: Path, delivered: WindowResult, *contents: bytes) -> frictionless.Package:
    """Write the package to a folder, beside its files."""
    for file, content in zip(delivered.files, contents, strict=True):
        stored = gzip.compress(content, mtime=0) if delivered.contract.delivery.gzip else content
        (folder / file.key.rpartition("/")[2]).write_bytes(stored)
    (folder / "datapackage.json").write_text(json.dumps(build_data_package(delivered)))
    return frictionless.Package(str(folder / "datapackage.json"))


def problems(package: frictionless.Package) -> list[list]:
    return package.validate().flatten(["type", "rowNumber", "fieldName"])


def described(content: bytes, delivered: WindowResult) -> WindowResult:
    """Return a package for these bytes."""
    stored = gzip.compress(content, mtime=0) if delivered.contract.delivery.gzip else content
    return attrs.evolve(
        delivered,
        files=[attrs.evolve(delivered.files[0], size=len(stored), sha256=hashlib.sha256(stored).hexdigest())],
    )


@pytest.mark.parametrize(
    ("make", "make_rows"),
    [
        (partial(samples.weekly_sales, 40), partial(sales_rows, 40)),
        (samples.sales_by_region, region_rows),
        (samples.daily_trades, symbol_rows),
        (samples.trades, trade_rows),
    ],
)
def test_packages_of_shipped_exports_are_valid(tmp_path, make, make_rows):
    delivered = make()
    assert problems(written(tmp_path, delivered, samples.csv_bytes(delivered.contract, make_rows()))) == []


@pytest.mark.parametrize("dialect", ["excel", "machine"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("null_text", ["", "NULL"])
def test_every_value_is_read_back(tmp_path, dialect, compressed, null_text):
    delivered, content = every_type(dialect=dialect, gzip=compressed, null_text=null_text)
    assert content.startswith(b"\xef\xbb\xbf") == (dialect == "excel")
    package = written(tmp_path, delivered, content)
    assert problems(package) == []
    assert build_data_package(delivered)["resources"][0].get("compression") == ("gz" if compressed else None)
    read = [row.to_dict() for row in package.resources[0].read_rows()]
    assert [row["word"] for row in read] == WORDS
    for row, expected_row in zip(read, rows(), strict=True):
        assert (row["amount"], row["share"], row["day"], row["flag"]) == tuple(
            expected_row[name] for name in ("amount", "share", "day", "flag")
        )
        assert row["at"].replace(tzinfo=UTC) == expected_row["at"]
        assert row["rest"] == expected_row["rest"]
        assert isinstance(row["share"], Decimal)
        assert row["sign"] == f"'{expected_row['sign']}"


@pytest.mark.parametrize("dialect", ["excel", "machine"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_without_rows_is_valid(tmp_path, dialect, compressed):
    filled, _ = every_type(dialect=dialect, gzip=compressed)
    package = written(
        tmp_path, samples.delivered(filled.contract, []), samples.csv_bytes(filled.contract, [])
    )
    assert problems(package) == []
    assert package.resources[0].read_rows() == []


def test_only_data_is_a_resource():
    delivered, _ = every_type()
    report = File("report", "exports/report.html", 5, "0" * 64)
    document = build_data_package(attrs.evolve(delivered, files=[*delivered.files, report]))
    assert [resource["path"] for resource in document["resources"]] == ["things_2026-11-09.csv"]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_changed_file_is_found(tmp_path, compressed):
    delivered, content = every_type(gzip=compressed)
    assert ["hash-count", None, None] in problems(
        written(tmp_path, delivered, content.replace(b"plain", b"plane"))
    )


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (b",7,", b",,", ["constraint-error", 2, "amount"]),
        (b",7,", b",8,", ["constraint-error", 2, "amount"]),
        (b",7,", b',"1,000",', ["type-error", 2, "amount"]),
        (b"'-,", b"'+,", ["constraint-error", 2, "sign"]),
        (b",0.1000000000,", b",0.2000000000,", ["constraint-error", 2, "share"]),
        (b",0.1000000000,", b",0.1 EUR,", ["type-error", 2, "share"]),
        (b",0001-01-01,", b",01.01.0001,", ["type-error", 2, "day"]),
        (b"T00:00:00.000000Z", b" 00:00:00", ["type-error", 2, "at"]),
        (b",true,", b",yes,", ["type-error", 2, "flag"]),
        (b"word,sign", b"sign,word", ["incorrect-label", None, "word"]),
    ],
)
def test_a_value_that_the_contract_does_not_allow_is_found(tmp_path, before, after, problem):
    delivered, content = every_type()
    assert before in content
    wrong = content.replace(before, after, 1)
    assert problem in problems(written(tmp_path, described(wrong, delivered), wrong))


@pytest.mark.parametrize("null_text", ["", "NULL"])
def test_a_text_that_looks_like_null_is_allowed(tmp_path, null_text):
    contract = attrs.evolve(EVERY_TYPE, delivery=attrs.evolve(EVERY_TYPE.delivery, null_text=null_text))
    odd = [row | {"word": null_text} for row in rows()]
    assert (
        problems(written(tmp_path, samples.delivered(contract, odd), samples.csv_bytes(contract, odd))) == []
    )


def test_the_dictionary_has_the_descriptions_of_the_contract():
    document = build_data_package(samples.weekly_sales())
    fields = {field["name"]: field for field in document["resources"][0]["schema"]["fields"]}
    assert list(fields) == [column.name for column in samples.weekly_sales().contract.columns]
    assert fields["line_total"] == {
        "name": "line_total",
        "title": "Line total",
        "description": "Quantity times unit price less discount, rounded half up to cents.",
        "type": "number",
        "decimalChar": ".",
        "bareNumber": True,
        "constraints": {"required": True},
        "unit": "order currency",
        "per": "currency",
        "formula": "line.quantity * line.unit_price * (1 - line.discount)",
        "storage": "decimal(18,2)",
        "nullable": False,
    }
    assert fields["status"]["constraints"] == {"required": True, "enum": ["accepted", "amended", "returned"]}
    assert fields["order_id"]["example"] == "SO-100042"
    assert fields["customer_email"]["personal"] == {"treatment": "hash", "kind": "email"}
    assert fields["customer_email"]["source"] == "customer.email"
    assert [column["name"] for column in document["lakeferry"]["not_delivered"]] == [
        "customer_name",
        "street",
    ]


def test_the_package_names_its_export_and_window():
    document = build_data_package(samples.weekly_sales())
    assert document["lakeferry"]["window"]["label"] == "2026-W46"
    assert document["lakeferry"]["status"] == "complete"
    assert document["lakeferry"]["filters"] == [
        {"where": "status <> 'cancelled'", "reason": "Cancelled orders were not sold."}
    ]
    assert (document["title"], document["version"]) == ("Weekly sales", "1")
    assert document["contributors"] == [{"title": "sales-data team", "role": "publisher"}]
