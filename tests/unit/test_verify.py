"""The verification reports what a file's bytes contain: counts, totals, charts, and every difference from
what was written.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from decimal import Decimal

import attrs
import pytest
from hypothesis import given
from hypothesis import settings as configured
from hypothesis import strategies as st

from config.exports.contract import Contract
from glue_jobs.delivery import csv, manifest
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import FileStats, verify_file
from glue_jobs.errors import DataProblem, Inconsistent
from tests.support import samples

CHART = '[[report.chart]]\ntitle = "t"\nx = "{0}"\ny = "{1}"\n'


def contract(*columns: tuple, charts: tuple = (), **delivery) -> Contract:
    """Return a contract. Columns are (name, type) or (name, type, more); charts are (x, y)."""
    nullable = [(*column, "nullable = true") for column in columns]
    chart_text = "".join(CHART.format(*chart) for chart in charts)
    result = samples.things(*nullable, delivery='dialect = "machine"\nnull_text = "NULL"', more=chart_text)
    return attrs.evolve(result, delivery=attrs.evolve(result.delivery, **delivery))


class Trickle(io.BytesIO):
    """Returns at most some bytes per read, like a slow connection."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, amount: int = -1) -> bytes:
        return super().read(self._most)


def stored(of: Contract, body: bytes) -> bytes:
    whole = csv.build_header(of.columns, of.delivery) + body
    return gzip.compress(whole, mtime=0) if of.delivery.gzip else whole


def parts_of(data: bytes, size: int) -> list[Part]:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [
        Part(number, "etag", len(piece), hashlib.sha256(piece).hexdigest())
        for number, piece in enumerate(pieces, 1)
    ]


def inspected(of: Contract, body: bytes, *, part: int = 1 << 20, at_once: int = 1 << 20) -> FileStats:
    """Inspect a file with the header of `of` and this body, written in parts of one size and read in pieces
    of another.
    """
    data = stored(of, body)
    return verify_file(
        "a.csv", Trickle(data, at_once), parts_of(data, part), of, csv.build_header(of.columns, of.delivery)
    )


def scaled(value: int, scale: int) -> Decimal:
    return Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -scale))


SIZES = [("a", 38, 0), ("b", 38, 38), ("c", 30, 2), ("d", 31, 2), ("e", 1, 0)]


def test_sums_of_any_length_are_exact():
    of = contract(*[(name, f"decimal({digits},{scale})") for name, digits, scale in SIZES], ("n", "integer"))
    most = [10**digits - 1 for _, digits, _ in SIZES]
    row = (
        ",".join(f"{scaled(value, scale):f}" for value, (_, _, scale) in zip(most, SIZES, strict=True))
        + f",{2**63 - 1}\r\n"
    )
    totals = inspected(of, row.encode() * 1000).totals
    for value, (name, _, scale) in zip(most, SIZES, strict=True):
        one = scaled(value, scale)
        assert totals[name] == {"sum": scaled(value * 1000, scale), "min": one, "max": one}
    assert totals["n"] == {"sum": 1000 * (2**63 - 1), "min": 2**63 - 1, "max": 2**63 - 1}


@configured(max_examples=50)
@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 38))
def test_totals_are_those_of_whole_numbers(values, scale):
    of = contract(("a", f"decimal(38,{scale})"), ("b", "integer"))
    body = "".join(
        f"{'NULL' if value is None else format(scaled(value, scale), 'f')},1\r\n" for value in values
    )
    found = inspected(of, body.encode())
    known = [value for value in values if value is not None]
    extremes = (
        {"min": scaled(min(known), scale), "max": scaled(max(known), scale)}
        if known
        else {"min": None, "max": None}
    )
    assert found.totals["a"] == {"sum": scaled(sum(known), scale), **extremes}
    assert (found.rows, found.nulls) == (
        len(values),
        {"a": len(values) - len(known), "b": 0} if values else {},
    )


@pytest.mark.parametrize("body", ["", "NULL,NULL,x\r\n", "0.00,0,x\r\n", "-1.50,3,x\r\n1.50,-3,x\r\n"])
def test_zero_has_the_decimal_places_of_its_column(body):
    of = contract(("a", "decimal(9,2)"), ("n", "integer"), ("t", "text"), charts=[("t", "a"), ("t", "n")])
    found = inspected(of, body.encode())
    assert [str(found.totals[name]["sum"]) for name in "an"] == ["0.00", "0"]
    if body:
        assert [str(series["x"]) for series in found.series] == ["0.00", "0"]


def test_charts_add_up_exactly_and_in_plain_notation():
    of = contract(
        ("d", "decimal(38,8)"),
        ("n", "integer"),
        ("m", "decimal(38,8)"),
        charts=[("d", "n"), ("d", "m"), ("n", "m"), ("d", "rows")],
    )
    most = f"{10**30 - 1}.99999999"
    big = 2**63 - 1
    body = f"0.00000001,{big},{most}\r\n" * 100 + f"0.00000000,{-big},-{most}\r\nNULL,NULL,NULL\r\n"
    by_d, by_m, by_n, rows = inspected(of, body.encode()).series
    assert by_d == {"0.00000001": Decimal(big * 100), "0.00000000": Decimal(-big), None: Decimal(0)}
    whole = scaled((10**38 - 1) * 100, 8)
    assert by_m == {"0.00000001": whole, "0.00000000": scaled(-(10**38 - 1), 8), None: Decimal(0)}
    assert str(by_m[None]) == "0E-8"
    assert by_n == {str(big): whole, str(-big): scaled(-(10**38 - 1), 8), None: Decimal(0)}
    assert rows == {"0.00000001": Decimal(100), "0.00000000": Decimal(1), None: Decimal(1)}


@pytest.mark.parametrize("at_once", [1 << 20, 200])
def test_first_rows_are_as_in_the_file(at_once):
    of = contract(("d", "decimal(38,10)"), ("n", "integer"), ("t", "text"), ("y", "date"), ("f", "boolean"))
    body = (
        '0.0000000001,-7,\'=1,2026-01-05,true\r\n0.0000000000,NULL,"NULL",NULL,false\r\n'
        + "1.0000000000,1,x,NULL,NULL\r\n" * 30
    )
    rows = inspected(of, body.encode(), at_once=at_once).first_rows
    assert rows[:2] == [
        ["0.0000000001", "-7", "'=1", "2026-01-05", "true"],
        ["0.0000000000", None, "NULL", None, "false"],
    ]
    assert len(rows) == 20


ORDER = [f"k{number:05}" for number in range(9_000)]


def test_a_series_of_many_labels_keeps_the_first_ones_of_the_file():
    """The choice must not depend on threads or block sizes, or the same rows would give another report."""
    of = contract(("t", "text"), ("n", "integer"), charts=[("t", "n"), ("t", "rows")])
    body = "".join(f"{label},{index}\r\n" for index, label in enumerate(reversed(ORDER))).encode()
    whole = inspected(of, body)
    assert list(whole.series[0]) == list(whole.series[1]) == list(reversed(ORDER))[:5_000]
    assert inspected(of, body, at_once=1_000).series == whole.series
    twice = inspected(of, body + body, at_once=1_000).series
    assert list(twice[0]) == list(whole.series[0])
    assert twice[0]["k08999"] == 0
    assert twice[1]["k08999"] == 2
    assert whole.cut_series == [True, True]
    in_full = "".join(f"{label},1\r\n" for label in ORDER[:5_000]).encode()
    assert inspected(of, in_full * 2, at_once=1_000).cut_series == [False, False]


def test_a_total_for_each_of_too_many_units_is_refused_with_the_columns_name():
    of = contract(("n", "integer", 'per = "t"'), ("t", "text"))
    body = "".join(f"{number},u{number:03}\r\n" for number in range(200)).encode()
    assert len(inspected(of, body * 2, at_once=1_000).units["n"]) == 200
    for at_once in (1_000, 1 << 20):
        with pytest.raises(DataProblem) as refused:
            inspected(of, body + b"1,u200\r\n", at_once=at_once)
        assert refused.value.code == "EXP-TOO-MANY-UNITS"
        assert (
            "column n has a total for each unit, and t has more than 200 different values"
            in refused.value.what
        )
        assert "u200" not in str(refused.value)


def test_numbers_that_do_not_add_up_may_have_any_number_of_units():
    of = contract(("n", "integer", 'per = "t"\nadds_up = false'), ("t", "text"))
    body = "".join(f"{number},u{number}\r\n" for number in range(300)).encode()
    found = inspected(of, body)
    assert found.units == {"n": {}}
    assert manifest.describe_totals(found) == {}


def test_numbers_that_do_not_add_up_have_no_sum():
    of = contract(("n", "integer", "adds_up = false"), ("m", "decimal(9,2)", "adds_up = false"))
    found = inspected(of, b"1,1.50\r\n3,NULL\r\n")
    assert found.totals == {"n": {"min": 1, "max": 3}, "m": {"min": Decimal("1.50"), "max": Decimal("1.50")}}


CELLS = st.text(st.sampled_from([*'",\r\n= x', "é"]), max_size=6) | st.none()


@pytest.mark.parametrize("compressed", [False, True])
@configured(max_examples=40)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=12), part=st.integers(1, 40), at_once=st.integers(1, 40)
)
def test_results_do_not_depend_on_parts_and_pieces(compressed, rows, part, at_once):
    of = contract(("a", "text"), ("b", "text"), gzip=compressed, charts=[("a", "rows")])
    body = samples.csv_bytes(of, [{"a": a, "b": b} for a, b in rows]).removeprefix(
        csv.build_header(of.columns, of.delivery)
    )
    found = inspected(of, body, part=part, at_once=at_once)
    assert found == inspected(of, body)
    shown = [[None if cell is None else csv.guarded(cell) for cell in row] for row in rows]
    assert (found.rows, found.first_rows) == (len(rows), shown)
    data = stored(of, body)
    assert (found.size, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (
        found.content_sha256 == hashlib.sha256(csv.build_header(of.columns, of.delivery) + body).hexdigest()
    )


def test_a_long_text_with_many_line_ends_is_read_in_the_time_of_its_length():
    """Line ends in a text look like ends of records. Parsing from each of them would take hours here."""
    of = contract(("a", "text"))
    text = '"' + "\r\n" * 400_000 + '"\r\n'
    assert inspected(of, text.encode(), at_once=1 << 18).rows == 1


def test_an_empty_line_is_a_row_of_one_missing_value():
    of = contract(("a", "text"), null_text="")
    found = inspected(of, b'x\r\n\r\n""\r\n')
    assert (found.rows, found.nulls, found.first_rows) == (3, {"a": 1}, [["x"], [None], [""]])


@pytest.mark.parametrize(
    ("type_", "allowed", "cells", "others"),
    [
        ("text", ["-", "=x", "a,b", "NULL"], ["'-", "'=x", '"a,b"', '"NULL"', "NULL"], 0),
        ("text", ["ok"], ["ok", "OK", "", "'ok", '""'], 4),
        ("text", ["'-"], ["''-", "'-"], 1),
        (
            "decimal(9,4)",
            ["0.1", "-2", "3.0000", "0.0"],
            ["0.1000", "-2.0000", "3.0000", "0.0000", "NULL"],
            0,
        ),
        ("decimal(9,4)", ["0.1"], ["0.1001", "0.1000", "1.0000"], 2),
        ("decimal(38,0)", ["9" * 38], ["9" * 38, "9" * 37], 1),
        ("integer", ["7", "-9223372036854775808", "007"], ["7", str(-(2**63)), "8"], 1),
        ("date", ["2026-01-05"], ["2026-01-05", "2026-01-06"], 1),
        ("boolean", ["true"], ["true", "false", "NULL"], 1),
        (
            "timestamp",
            ["2026-11-09T13:05:00.000000Z"],
            ["2026-11-09T13:05:00.000000Z", "2026-11-09T13:05:00.000001Z"],
            1,
        ),
    ],
)
def test_values_are_compared_with_those_allowed_as_the_file_shows_them(type_, allowed, cells, others):
    of = contract(("id", "integer"), ("c", type_))
    columns = [of.column[0], attrs.evolve(of.column[1], allowed=allowed)]
    found = inspected(attrs.evolve(of, column=columns), "".join(f"1,{cell}\r\n" for cell in cells).encode())
    assert found.disallowed == {"c": others}


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("kim@example.com", "an e-mail address"),
        ("write to Kim.Doe+x@mail.example.co.uk!", "an e-mail address"),
        ("'+49 30 901820", "a telephone number"),
        ("call +1 (555) 010-9999", "a telephone number"),
    ],
)
def test_text_that_looks_like_personal_data_is_found(cell, what):
    of = contract(("id", "integer"), ("note", "text"))
    assert inspected(of, f"1,{cell}\r\n1,harmless\r\n".encode()).personal == {f"note: {what}": 1}
    assert inspected(of, b"1,a @ b\r\n1,'+ 5\r\n1,'@home\r\n1,1+1\r\n").personal == {}


def refused(of: Contract, data: bytes, parts: list[Part]) -> str:
    with pytest.raises(Inconsistent) as wrong:
        verify_file("a.csv", io.BytesIO(data), parts, of, csv.build_header(of.columns, of.delivery))
    return f"{wrong.value.code} {wrong.value.what}"


@pytest.mark.parametrize("compressed", [False, True])
def test_changed_bytes_are_found(compressed):
    of = contract(("a", "text"), gzip=compressed)
    data = stored(of, b"one\r\ntwo\r\nthree\r\n")
    parts = parts_of(data, 8)
    for index in range(len(data)):
        changed = data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
        assert refused(of, changed, parts).startswith("EXP-")
    for end in range(len(data)):
        assert refused(of, data[:end], parts).startswith("EXP-")
    assert "EXP-CHECKSUM the file is longer than what was written" in refused(of, data + b"more\r\n", parts)
    assert "EXP-CHECKSUM the file is shorter than what was written" in refused(
        of, data, parts_of(data + b"x", 8)
    )


def test_a_file_that_does_not_match_the_contract():
    of = contract(("a", "integer"), ("b", "text"))

    def result(data: bytes) -> str:
        return refused(of, data, parts_of(data, 100))

    assert result(b"a,c\r\n1,x\r\n") == "EXP-HEADER the file does not begin with its header"
    assert result(b"") == "EXP-HEADER the file does not begin with its header"
    assert result(b"a,b\r\n1,x") == "EXP-RECORDS the file ends in the middle of a record"
    assert result(b'a,b\r\n1,"x\r\n') == "EXP-RECORDS the file ends in the middle of a record"
    assert result(b"a,b\r\n1,x,secret-value\r\n").startswith(
        "EXP-RECORDS the file is not what the contract says"
    )
    assert result(b"a,b\r\nsecret-value,x\r\n").startswith(
        "EXP-RECORDS the file is not what the contract says"
    )
    assert "secret-value" not in result(b"a,b\r\n1,x,secret-value\r\n") + result(b"a,b\r\nsecret-value,x\r\n")
    assert result(b"a,b\r\n1,\xff\r\n").startswith("EXP-RECORDS the file is not what the contract says")
