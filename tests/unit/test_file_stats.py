"""Everything that is known about a file once it was read back, for one file with a bit of everything."""

from __future__ import annotations

import gzip
import hashlib
import io
from decimal import Decimal

import attrs
import pytest

from config.exports.contract import Contract
from config.exports.file_model import Chart
from glue_jobs.delivery import csv
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import FileStats, plain, verify_file, zero
from tests.support import samples

BODY = """\
1,EUR,10.50,1.00,2026-11-09,kim@example.com
1,EUR,0.25,NULL,2026-11-09,harmless
2,USD,-3.00,4.00,NULL,NULL
3,NULL,7.00,9007199254740993.00,2026-11-08,'=1
3,"NULL",1.00,2.00,2026-11-08,-
""".replace("\n", "\r\n").encode()


def contract(*, compressed: bool = False, also: tuple[str, ...] = ("xlsx",)) -> Contract:
    of = samples.things(
        ("id", "integer", "adds_up = false"),
        ("currency", "text", 'nullable = true\nallowed = ["EUR", "USD"]'),
        ("amount", "decimal(12,2)", 'per = "currency"'),
        ("weight", "decimal(20,2)", "nullable = true"),
        ("day", "date", 'nullable = true\nallowed = ["2026-11-08"]'),
        ("note", "text", "nullable = true"),
    )
    charts = [
        Chart(title="a", x="day", y="amount", only="EUR"),
        Chart(title="b", x="currency", y="weight"),
        Chart(title="c", x="id", y="rows"),
    ]
    return attrs.evolve(
        of,
        unique=["id"],
        report=attrs.evolve(of.report, chart=charts),
        delivery=attrs.evolve(
            of.delivery, dialect="excel", null_text="NULL", gzip=compressed, also=list(also), order_by=["id"]
        ),
    )


class Trickle(io.BytesIO):
    """Returns a few bytes at a time, so that the file has many blocks."""

    def read(self, amount: int = -1) -> bytes:
        return super().read(40)


def verified(of: Contract, *, is_sorted: bool = False, body: type[io.BytesIO] = io.BytesIO) -> FileStats:
    header = csv.build_header(of.columns, of.delivery)
    whole = header + BODY
    stored = gzip.compress(whole, mtime=0) if of.delivery.gzip else whole
    part = Part(1, "etag", len(stored), hashlib.sha256(stored).hexdigest())
    return verify_file("data/a.csv", body(stored), [part], of, header, is_sorted=is_sorted)


@pytest.mark.parametrize("body", [io.BytesIO, Trickle], ids=["one block", "many blocks"])
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_was_read_back_is_known_in_full(compressed, is_sorted, body):
    of = contract(compressed=compressed)
    found = verified(of, is_sorted=is_sorted, body=body)
    whole = csv.build_header(of.columns, of.delivery) + BODY
    stored = gzip.compress(whole, mtime=0) if compressed else whole
    great = Decimal("9007199254740993.00")
    assert found == FileStats(
        key="data/a.csv",
        size=len(stored),
        sha256=hashlib.sha256(stored).hexdigest(),
        content_sha256=hashlib.sha256(whole).hexdigest(),
        rows=5,
        totals={
            "id": {"min": Decimal(1), "max": Decimal(3)},
            "amount": {"sum": Decimal("15.75"), "min": Decimal("-3.00"), "max": Decimal("10.50")},
            "weight": {"sum": great + 7, "min": Decimal("1.00"), "max": great},
        },
        units={"amount": {"EUR": Decimal("10.75"), "USD": Decimal(-3), None: Decimal(7), "NULL": Decimal(1)}},
        series=[
            {"2026-11-09": Decimal("10.75")},
            {"EUR": Decimal(1), "USD": Decimal(4), None: great, "NULL": Decimal(2)},
            {"1": Decimal(2), "2": Decimal(1), "3": Decimal(2)},
        ],
        cut_series=[False, False, False],
        first_rows=[
            ["1", "EUR", "10.50", "1.00", "2026-11-09", "kim@example.com"],
            ["1", "EUR", "0.25", None, "2026-11-09", "harmless"],
            ["2", "USD", "-3.00", "4.00", None, None],
            ["3", None, "7.00", f"{great}", "2026-11-08", "'=1"],
            ["3", "NULL", "1.00", "2.00", "2026-11-08", "-"],
        ],
        personal={"note: an e-mail address": 1},
        nulls={"id": 0, "currency": 1, "amount": 0, "weight": 1, "day": 1, "note": 1},
        disallowed={"currency": 1, "day": 2},
        repeated_rows=4,
        repeated_keys=2,
        inexact={"weight"},
    )


def test_nothing_is_known_before_a_file_is_read():
    assert not any(attrs.asdict(FileStats()).values())


def test_what_a_workbook_cannot_hold_matters_only_if_there_is_one():
    assert verified(contract(also=("parquet", "jsonl"))).inexact == set()


def test_a_contract_without_charts_and_key_has_neither():
    of = contract()
    found = verified(attrs.evolve(of, unique=[], report=attrs.evolve(of.report, chart=[])))
    assert (found.series, found.cut_series, found.repeated_rows, found.repeated_keys) == ([], [], 0, 0)


def test_the_unit_of_a_chart_is_compared_as_the_file_shows_it():
    """A unit that begins like a formula has an apostrophe in front."""
    of = samples.things(("unit", "text"), ("n", "integer", 'per = "unit"'))
    of = attrs.evolve(
        of, report=attrs.evolve(of.report, chart=[Chart(title="t", x="unit", y="n", only="-x")])
    )
    header = csv.build_header(of.columns, of.delivery)
    content = header + b"'-x,5\r\n%,7\r\n'-x,1\r\n"
    part = Part(1, "etag", len(content), hashlib.sha256(content).hexdigest())
    found = verify_file("a.csv", io.BytesIO(content), [part], of, header)
    assert found.series == [{"'-x": Decimal(6)}]
    assert found.units == {"n": {"'-x": Decimal(6), "%": Decimal(7)}}


@pytest.mark.parametrize(("scale", "text"), [(0, "0"), (2, "0.00"), (8, "0E-8")])
def test_zero_has_its_decimal_places(scale, text):
    assert str(zero(scale)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1E-8"), "0.00000001"),
        (Decimal("1E+3"), "1000"),
        (7, "7"),
        ("a", "a"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_a_value_is_written_as_in_the_file(value, text):
    assert plain(value) == text
