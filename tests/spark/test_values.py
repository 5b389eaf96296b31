"""Values that break files, readers and spreadsheets: each is delivered as it is, or counted, or stops the
run.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from config.exports import contracts
from config.exports.windows import find_window
from glue_jobs.catalogs import GlueCatalog
from glue_jobs.delivery.csv import LONGEST_TEXT, unguarded
from glue_jobs.errors import BadInput
from glue_jobs.rows import ExportQuery
from glue_jobs.source import pin
from glue_jobs.store import connect
from tests.support.lake import MONDAY, column, contract, topic_of
from tests.support.oracles import pseudonym

TEXTS = [
    *(
        "plain",
        "",
        " ",
        " lead",
        "trail ",
        "\t",
        "a,b",
        'a"b',
        '"',
        '""',
        "'",
        "''",
        "a\nb",
        "a\r\nb",
        "a\rb",
        "\n",
        "\\",
        "\\N",
        "a\\",
    ),
    *(
        "NULL",
        "null",
        "\\N",
        "None",
        "nan",
        "\x00",
        "a\x00b",
        "\ufeff",
        "\ufeffid",
        "\u202eabc",
        "a\u200bb",
        "\u2028",
        "\x85",
        "\U0001f600",
    ),
    *(
        "=1+1",
        "+1",
        "-1",
        "@x",
        "\t=1",
        "\r=1",
        "\x00=1",
        " =1",
        "'=1",
        '"=1',
        "＝1",
        "＋1",
        "－1",
        "＠x",
        "\u00a0=1",
        "=cmd|' /C x'!A0",
        "x;=1+1",
        "x\t@SUM(A1)",
        "a,-1\n+1",
    ),
    *("1e5", "0123", "1/2", "#N/A", "TRUE", "é", "e\u0301", "ﬁ", "x" * LONGEST_TEXT),
]
NOTES = topic_of(("text", ["null", "string"], None))


@pytest.mark.sampled(1)
@pytest.mark.cluster
@pytest.mark.parametrize(
    ("dialect", "null_text", "delimiter"), [("machine", "", ","), ("excel", "NULL", ";")]
)
def test_every_text_is_delivered_and_none_runs_in_a_spreadsheet(lake, dialect, null_text, delimiter):
    lake.commit(
        NOTES, *({"id": f"{n:03}", "at": MONDAY, "text": text} for n, text in enumerate([*TEXTS, None]))
    )
    columns = column("id"), column("text", nullable=True)
    run = lake.export(
        contract(*columns, delivery={"dialect": dialect, "null_text": null_text, "delimiter": delimiter})
    )
    raw = run.csv()
    assert raw.startswith(b"\xef\xbb\xbfid") == (dialect == "excel")
    whole = io.StringIO(raw.decode("utf-8-sig"), newline="")
    cells = [row[1] for row in csv.reader(whole, delimiter=delimiter, strict=True)][1:]
    assert [unguarded(cell) for cell in cells] == [*TEXTS, null_text]
    for split in ",;\t":
        seen = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), delimiter=split)
        runs = [
            cell for row in seen for cell in row if re.match('[ "\u00a0\u3000\x00-\x1f]*[=+@＝＋－＠-]', cell)
        ]
        assert runs == [], split
    # Only quotation marks distinguish a text that looks like a missing value from a missing value.
    assert raw.endswith(f"{len(TEXTS):03}{delimiter}{null_text}\r\n".encode())
    assert f'{TEXTS.index(null_text):03}{delimiter}"{null_text}"\r\n'.encode() in raw
    assert run.manifest()["notes"] == []


@pytest.mark.slow
@pytest.mark.cluster
def test_huge_and_invalid_texts_are_cut_for_excel_and_counted(lake):
    """10 MB in one cell, and bytes that are not UTF-8, among them half of a surrogate pair."""
    lake.commit(NOTES, {"id": "seed", "at": MONDAY, "text": "fine"})
    table = f"lake.`{lake.target.database}`.things"
    texts = {
        "0": F.repeat(F.lit("y"), 10_000_000),
        "1": F.repeat(F.lit("\u00e9"), 40_000),
        "2": F.lit(bytearray(b"a\xed\xa0\x80b")).cast("string"),
        "3": F.lit(bytearray(b"\xff\xfe")).cast("string"),
        "4": F.lit("\ufffd"),
    }
    for id_, text in texts.items():
        lake.spark.table(table).filter("id = 'seed'").withColumns({"id": F.lit(id_), "text": text}).writeTo(
            table
        ).append()
    hashed = {"treatment": "hash", "kind": "text"}
    columns = column("id"), column("text"), column("pseudonym", **{"from": "text"}, personal=hashed)
    machine = lake.export(contract(*columns, name="machine"))
    assert [len(line.decode().split(",")[1]) for line in machine.csv().split(b"\r\n")[1:3]] == [
        10_000_000,
        40_000,
    ]
    assert "and cut" not in " ".join(machine.manifest()["notes"])
    run = lake.export(contract(*columns, delivery={"dialect": "excel"}))
    cells = run.column("text")
    assert cells[:2] == ["y" * LONGEST_TEXT, "\u00e9" * LONGEST_TEXT]
    assert [cell.replace("\ufffd", "") for cell in cells[2:]] == ["ab", "", "", "fine"]
    notes = " ".join(run.manifest()["notes"])
    assert "2 texts were longer than an Excel cell, 32,767 characters, and cut" in notes
    assert f"{sum(cell.count(chr(0xFFFD)) for cell in cells) - 1} bytes that are not valid text" in notes


@pytest.mark.slow
def test_a_text_is_cut_for_excel_before_python_sees_it(lake):
    """Batches go to Python by their number of rows: a few thousand long texts would not fit into its
    memory.
    """
    long = [
        {"id": f"{n}", "at": MONDAY, "text": letter * (LONGEST_TEXT + 2)}
        for n, letter in enumerate(("x", "\u00e9"))
    ]
    lake.commit(NOTES, *long)
    mine = contracts.load(
        lake.write_contract(contract(column("id"), column("text"), delivery={"dialect": "excel"}))
    )
    services = connect()
    table = pin(services, lake.target.database, "things")
    window = find_window(MONDAY.date(), mine.window)
    frame = (
        ExportQuery(lake.spark, mine, table, [window], b"", GlueCatalog(services, lambda: lake.spark))
        .window(window)
        .rows()
        .frame
    )
    assert [row[0] for row in frame.select(F.length("text")).collect()] == [LONGEST_TEXT + 1] * 2


NUMBERS = topic_of(
    ("wide", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18}),
    ("real", ["null", "double"], None),
    ("whole", ["null", "long"], None),
)
ODD = {
    "a": ("0.000000000000000001", -0.0, -(2**63)),
    "b": ("-99999999999999999999.999999999999999999", 0.005, 2**63 - 1),
    "c": ("-0.000000000000000000", 1e9, 0),
    "d": ("1E+3", 2.675, None),
}


def number(id_, wide="0", real=0.0, whole=0, at=MONDAY):
    return {
        "id": id_,
        "at": at,
        "wide": Decimal(wide).quantize(Decimal("1E-18")) if "9999" not in wide else Decimal(wide),
        "real": real,
        "whole": whole,
    }


def test_numbers_have_one_form_without_exponents(lake):
    lake.commit(NUMBERS, *(number(id_, *values) for id_, values in ODD.items()))
    columns = (
        column("id"),
        column("wide", "decimal(38,18)"),
        column("real", "decimal(12,2)"),
        column("whole", "integer", nullable=True),
    )
    run = lake.export(contract(*columns))
    assert [list(row.values())[1:] for row in run.cells()] == [
        ["0.000000000000000001", "0.00", "-9223372036854775808"],
        ["-99999999999999999999.999999999999999999", "0.01", "9223372036854775807"],
        ["0.000000000000000000", "1000000000.00", "0"],
        ["1000.000000000000000000", "2.68", ""],
    ]
    assert run.manifest()["totals"]["whole"] == {
        "sum": "-1",
        "min": "-9223372036854775808",
        "max": "9223372036854775807",
    }


@pytest.mark.slow
def test_a_float_has_the_digits_of_its_shortest_text_as_a_double_has(lake):
    values = [0.1, 2.675, -0.005, 16777216.0, 1e-7, 1234.5, None]
    kinds = topic_of(("short", ["null", "float"], None), ("long", ["null", "double"], None))
    lake.commit(
        kinds,
        *({"id": f"{n}", "at": MONDAY, "short": value, "long": value} for n, value in enumerate(values)),
    )
    for type_ in ("decimal(38,9)", "decimal(18,2)"):
        shown = [column(name, type_, nullable=True) for name in ("short", "long")]
        cells = lake.export(contract(column("id"), *shown, name=f"floats_{type_[-2]}")).cells()
        assert [row["short"] for row in cells] == [row["long"] for row in cells]
        assert cells[1]["short"] == ("2.675000000" if "9" in type_ else "2.68")


@pytest.fixture(scope="module")
def limits(lakes):
    lake = lakes()
    lake.commit(
        NUMBERS,
        number("big", "0", 1e300, 2**62),
        number("big too", "0", 1.0, 2**62),
        number("nan", "0", float("nan"), 1),
        number("endless", "0", float("-inf"), 1),
        number("none", "0", 1.0, 0),
    )
    return lake


def only(*ids):
    listed = ", ".join(f"'{id_}'" for id_ in ids)
    return [{"where": f"id in ({listed})", "reason": "the case at hand"}]


SUMMED = {"no_persons_because": "Numbers only."}
EXACT = "cast(cast(real as string) as decimal(12,2))"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("code", "columns", "ids", "more"),
    [
        ("EXP-NOT-A-NUMBER", [column("real", "decimal(12,2)")], ["nan"], {}),
        ("EXP-NOT-A-NUMBER", [column("real", "decimal(12,2)")], ["endless"], {}),
        ("EXP-OVERFLOW", [column("real", "decimal(12,2)")], ["big"], {}),
        ("EXP-OVERFLOW", [column("x", "integer", expression="whole * 2")], ["big"], {}),
        (
            "EXP-OVERFLOW",
            [column("x", "timestamp", expression="timestamp_seconds(whole * 1.0)")],
            ["big"],
            {},
        ),
        (
            "EXP-OVERFLOW",
            [column("x", "timestamp", expression="timestamp_seconds(0.0000001 * whole)")],
            ["big"],
            {},
        ),
        (
            "EXP-OVERFLOW",
            [column("x", "integer", measure="sum(whole)")],
            ["big", "big too"],
            {"aggregate": SUMMED},
        ),
        ("EXP-OVERFLOW", [column("x", "decimal(5,2)", measure="max(whole)")], ["big"], {"aggregate": SUMMED}),
        ("EXP-DIVISION", [column("x", "integer", expression="1 div whole")], ["none"], {}),
        ("EXP-DIVISION", [column("x", "integer", expression="1 % whole")], ["none"], {}),
        ("EXP-CAST", [column("x", "date", expression="cast(id as date)")], ["none"], {}),
        ("EXP-CAST", [column("x", "timestamp", expression="to_timestamp(id, 'yyyy')")], ["none"], {}),
        ("EXP-CAST", [column("x", "decimal(9,2)", expression="to_number(id, '99')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="date_format(at, 'YYYY-MM-dd')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="date_format(at, 'hh:mm A')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="to_number(id, 'abc')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="regexp_replace(id, '(', '')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="regexp_extract(id, '[a-z]')")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", expression="format_string('%d', id)")], ["none"], {}),
        ("EXP-FUNCTION-ARGUMENT", [column("x", "integer", expression="date_part('dayz', at)")], ["none"], {}),
        (
            "EXP-FUNCTION-ARGUMENT",
            [column("x", "timestamp", expression="from_utc_timestamp(at, 'Europe/Berlyn')")],
            ["none"],
            {},
        ),
        (
            "EXP-FUNCTION-ARGUMENT",
            [column("x", "timestamp", expression="from_utc_timestamp(at, id)")],
            ["big too"],
            {},
        ),
        (
            "EXP-FUNCTION-ARGUMENT",
            [column("x", "timestamp", expression="from_utc_timestamp(at, '+25:00')")],
            ["none"],
            {},
        ),
        ("EXP-INDEX", [column("x", expression="split(id, ' ')[1]")], ["none"], {}),
        (
            "EXP-EXPRESSION-TYPE",
            [column("x", "decimal(12,2)", measure="sum(real)")],
            ["none"],
            {"aggregate": SUMMED},
        ),
        (
            "EXP-CAST",
            [column("x", "decimal(12,2)", measure=f"max({EXACT})")],
            ["nan", "none"],
            {"aggregate": SUMMED},
        ),
    ],
    ids=[
        "NaN",
        "infinity",
        "double too large",
        "bigint",
        "seconds",
        "parts of a microsecond",
        "sum of bigint",
        "decimal too narrow",
        "zero",
        "remainder of zero",
        "no date",
        "no date of this format",
        "no number of this format",
        "week-based date format",
        "no date format",
        "no number format",
        "no regular expression",
        "no group of the regular expression",
        "no format of a text",
        "no part of a date",
        "no time zone",
        "a field that is no time zone",
        "no offset of a time zone",
        "no such item",
        "sum of doubles",
        "NaN by way of text",
    ],
)
def test_a_value_that_cannot_be_exact_stops_the_run(limits, capfd, code, columns, ids, more):
    run = limits.export(
        contract(column("id") if not more else column("at", "timestamp"), *columns, filter=only(*ids), **more)
    )
    assert (run.state(), run.window()["code"]) == ("failed", code)
    assert limits.published() == limits.keys("exports/things/data/") == []
    assert "TYPE" in code or f"column {columns[0]['name']}" in run.window()["reason"]
    assert not any(id_ in run.window()["reason"] for id_ in ids)
    assert "SQLSTATE" not in "".join(capfd.readouterr()), "Spark's own message has the value"


@pytest.mark.parametrize(
    "text", ["raise_error(id)", "if(whole = 0, raise_error('none'), id)", "assert_true(whole > 0)"]
)
def test_an_expression_cannot_raise_an_error_of_its_own(limits, text):
    with pytest.raises(
        BadInput, match=r"(raise_error|assert_true)\(\) is not among the functions a contract may use"
    ):
        limits.export(contract(column("id"), column("x", expression=text), name="raises"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sections", "names"),
    [
        (
            {"filter": [{"where": "id <> ''", "reason": "r"}, {"where": "1 div whole > 0", "reason": "r"}]},
            "filter[1].where",
        ),
        (
            {
                "column": [
                    column("id"),
                    *[column(f"c{n}", "integer", expression=f"1 div (whole - {n})") for n in range(4)],
                ]
            },
            "column c0",
        ),
        (
            {
                "column": [
                    column("id"),
                    *[column(f"c{n}", "integer", expression=f"1 div (whole * {n})") for n in range(3)],
                ]
            },
            "column c0, column c1, column c2",
        ),
        (
            {
                "column": [
                    column("id"),
                    column("n", "integer", measure="count(*)"),
                    column("m", "integer", measure="sum(1 div whole)"),
                ],
                "aggregate": SUMMED,
            },
            "column m",
        ),
        (
            {
                "check": [
                    {
                        "id": "c",
                        "severity": "warn",
                        "message": "m",
                        "each_row": "1 div (whole * length(id)) > 0",
                    }
                ]
            },
            "check c",
        ),
        (
            {
                "check": [
                    {"id": "c", "severity": "warn", "message": "m", "overall": "1 div (sum_whole * rows) > 0"}
                ]
            },
            "check c",
        ),
    ],
    ids=["filter", "column", "columns", "measure", "check of rows", "check of the file"],
)
def test_an_error_names_the_expressions_that_fail(limits, sections, names):
    columns = {"column": [column("id"), column("whole", "integer")], "filter": only("none")} | sections
    run = limits.export(contract(column("id"), **columns))
    assert (run.window()["code"], run.window()["reason"]) == (
        "EXP-DIVISION",
        f"an expression divides by zero ({names})",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cast(cast(sum(real) as string) as decimal(12,2))", "sums doubles"),
        ("cast(try_avg(real * 2) as decimal(12,2))", "sums doubles"),
        ("sum(cast(real / 2 as decimal(12,2)))", "turns NaN and infinity into null"),
        ("sum(try_cast(real as decimal(12,2)))", None),
        (f"sum({EXACT})", None),
    ],
)
def test_a_measure_of_doubles_is_exact_or_refused(limits, text, problem):
    columns = column("at", "timestamp"), column("x", "decimal(12,2)", measure=text)
    run = limits.export(contract(*columns, filter=only("none"), aggregate=SUMMED), "--dry-run", "true")
    assert run.state() == ("failed" if problem else "dry_run")
    assert problem is None or problem in run.window()["reason"]


def test_a_filter_that_would_take_infinity_for_nothing_is_refused(limits):
    rule = {"where": "cast(real as decimal(12,2)) >= 0", "reason": "the case at hand"}
    run = limits.export(contract(column("id"), filter=[rule]))
    assert (run.window()["code"], "turns NaN and infinity into null" in run.window()["reason"]) == (
        "EXP-EXPRESSION-TYPE",
        True,
    )


#: What Spark 4 would answer otherwise than Spark 3.5, by its defaults.
SAME = {
    "upper('\u0264')": "\u0264",  # a capital since Unicode 16
    "decode(kafka_raw_key, 'UTF-8')": "\ufffd",
    "decode(kafka_raw_key, 'windows-1252')": "\u20ac",
    "coalesce(cast(1.5 as decimal(38,18)), cast(0 as decimal(38,0)))": "1.500000000000000000",
    "try_to_timestamp('2024-3-4', 'yyyy-MM-dd') is null": "true",
}


@pytest.mark.slow
def test_every_version_of_glue_gives_the_same_answers(lake):
    lake.commit(NOTES, {"id": "a", "at": MONDAY, "text": ""}, keys=[b"\x80"])
    columns = [column(f"c{index}", expression=f"cast({item} as string)") for index, item in enumerate(SAME)]
    (row,) = lake.export(contract(column("id"), *columns)).cells()
    assert list(row.values()) == ["a", *SAME.values()]


@pytest.mark.slow
def test_expressions_and_measures_are_not_computed_for_filtered_rows(limits):
    kept = [{"where": "whole <> 0 and not isnan(real) and abs(real) < 1e9", "reason": "no value"}]
    hashed = {
        "expression": "cast(4611686018427387904 div whole as string)",
        "personal": {"treatment": "hash", "kind": "id"},
    }
    who = pseudonym("1", "id")
    shares = [
        column("share", "integer", expression="4611686018427387904 div whole"),
        column("real", "decimal(12,2)"),
    ]
    lines = limits.export(contract(column("id"), column("who", **hashed), *shares, name="lines", filter=kept))
    assert [list(row.values()) for row in lines.cells()] == [["big too", who, "1", "1.00"]]
    sums = [column("total", "integer", measure="sum(4611686018427387904 div whole)")]
    groups = limits.export(
        contract(column("id"), column("who", **hashed), *sums, name="groups", filter=kept, aggregate=SUMMED)
    )
    assert [list(row.values()) for row in groups.cells()] == [["big too", who, "1"]]


PEOPLE = topic_of(
    ("name", ["null", "string"], None),
    ("born", ["null", {"type": "int", "logicalType": "date"}], None),
    ("points", ["null", "long"], None),
    ("balance", ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}], None),
)


def treated(name, source, type_="text", **personal):
    return column(name, type_, **{"from": source}, nullable=True, personal=personal)


def test_personal_data_is_masked_and_generalised(lake):
    lake.commit(
        PEOPLE,
        {
            "id": "a",
            "at": MONDAY,
            "name": " Zoë Łukasz",
            "born": date(1999, 12, 31),
            "points": 29,
            "balance": Decimal("29.99"),
        },
        {
            "id": "b",
            "at": MONDAY,
            "name": "Jo",
            "born": date(2000, 1, 1),
            "points": -1,
            "balance": Decimal("-0.01"),
        },
        {"id": "c", "at": MONDAY},
    )
    run = lake.export(
        contract(
            column("id"),
            treated("hidden", "name", treatment="mask", visible=0),
            treated("end", "name", treatment="mask", visible=2),
            treated("begin", "name", treatment="generalise", to="prefix", size=3),
            treated("year", "born", "integer", treatment="generalise", to="year"),
            treated("month", "born", treatment="generalise", to="month"),
            treated("tens", "points", "integer", treatment="generalise", to="bucket", size=10),
            treated("hundreds", "balance", "integer", treatment="generalise", to="bucket", size=100),
            name="people",
            delivery={"null_text": "-"},
        )
    )
    assert [list(row.values()) for row in run.cells()] == [
        ["a", "***", "***sz", "Zoë", "1999", "1999-12", "20", "0"],
        ["b", "***", "***", "Jo", "2000", "2000-01", "-10", "-100"],
        ["c", *["-"] * 7],
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("source", "personal"),
    [
        ("points", {"treatment": "mask", "visible": 1}),
        ("points", {"treatment": "generalise", "to": "prefix", "size": 1}),
        ("points", {"treatment": "generalise", "to": "month"}),
        ("name", {"treatment": "generalise", "to": "year"}),
        ("name", {"treatment": "generalise", "to": "bucket", "size": 10}),
    ],
)
def test_a_treatment_that_does_not_fit_the_tables_type_stops_the_run(lake, source, personal):
    lake.commit(PEOPLE, {"id": "a", "at": MONDAY})
    kind = "integer" if personal.get("to") in ("year", "bucket") else "text"
    run = lake.export(contract(column("id"), treated("derived", source, kind, **personal), name="people"))
    assert run.state() == "failed"
    assert re.search("column derived: the field is (integer|text), and", run.window()["reason"])


FAR = {
    "day": "date_from_unix_date(2147483647)",
    "early day": "date_from_unix_date(-719163)",
    "time": "timestamp_micros(9223372036825200000)",
    "early time": "timestamp_micros(-62135596800000001)",
}
OPEN = topic_of(
    ("due", ["null", {"type": "int", "logicalType": "date"}], None),
    ("ends", ["null", {"type": "long", "logicalType": "timestamp-micros"}], None),
    ("open", ["null", "boolean"], None),
)


@pytest.fixture(scope="module")
def far(lakes):
    """Rows as change data capture writes a database's infinity, and one with the first and one with the last
    day and time.
    """
    lake = lakes()
    first = datetime(1, 1, 1, tzinfo=UTC)
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    for id_, moment in (("a", first), ("b", last)):
        lake.commit(OPEN, {"id": id_, "at": MONDAY, "due": moment.date(), "ends": moment, "open": False})
    table = f"lake.`{lake.target.database}`.things"
    seed = lake.spark.table(table).filter("id = 'a'").withColumn("open", F.lit(True))
    for id_, text in FAR.items():
        name = "due" if "day" in id_ else "ends"
        seed.withColumns({"id": F.lit(id_), name: F.expr(text)}).writeTo(table).append()
    return lake


MONTH = {"treatment": "generalise", "to": "month"}
YEAR = {"treatment": "generalise", "to": "year"}
LAST_DUE = column("due", "date", measure="max(due)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "ids", "more"),
    [
        ([column("id"), column("due", "date")], ["day"], {}),
        ([column("id"), column("due", "date")], ["early day"], {}),
        ([column("id"), column("ends", "timestamp")], ["time"], {}),
        ([column("id"), column("ends", "timestamp")], ["early time"], {}),
        ([column("due", "date"), column("id")], ["day"], {"deduplicate": {"key": ["due"]}}),
        ([column("ends", "timestamp"), column("id")], ["time"], {"deduplicate": {"key": ["ends", "id"]}}),
        ([column("id"), column("due", personal=MONTH)], ["early day"], {}),
        ([column("id"), column("due", "integer", personal=YEAR)], ["day"], {}),
        ([column("id"), column("due", "date", expression="date_add(due, 1)")], ["b"], {}),
        ([column("id"), LAST_DUE], ["a", "day"], {"aggregate": SUMMED}),
        (
            [column("due", "date"), column("n", "integer", measure="count(*)")],
            ["a", "day"],
            {"aggregate": SUMMED},
        ),
    ],
)
def test_a_date_that_no_calendar_prints_stops_the_run(far, columns, ids, more):
    run = far.export(contract(*columns, name="dates", filter=only(*ids), **more))
    assert (run.state(), run.window()["code"]) == ("failed", "EXP-DATE-RANGE")
    assert re.search(r"\(column (due|ends)\)$", run.window()["reason"])
    assert far.published("dates") == far.keys("exports/dates/data/") == []


@pytest.mark.slow
def test_dates_beyond_the_calendar_do_not_matter_in_rows_that_are_left_out(far):
    left_out = [{"where": "not open", "reason": "no end"}]
    run = far.export(
        contract(
            column("due", "date"),
            column("ends", "timestamp"),
            name="left",
            filter=left_out,
            deduplicate={"key": ["due", "id"]},
        )
    )
    ends = ["0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"]
    assert [list(row.values()) for row in run.cells()] == [["0001-01-01", ends[0]], ["9999-12-31", ends[1]]]
    text = "if(due between DATE '0001-01-01' and DATE '9999-12-31', due, null)"
    nulls = far.export(
        contract(column("id"), column("due", "date", expression=text, nullable=True), name="nulls")
    )
    assert [row["due"] for row in nulls.cells() if row["id"].endswith("day")] == ["", ""]


@pytest.mark.slow
def test_a_gzip_file_is_stored_as_one(lake):
    lake.commit(NOTES, {"id": "a", "at": MONDAY, "text": "Zoë"})
    lake.export(contract(column("id"), column("text"), delivery={"gzip": True}))
    (key,) = (key for key in lake.keys("exports/things/data/") if key.endswith(".csv.gz"))
    assert gzip.decompress(lake.read(key)).decode() == "id,text\r\na,Zoë\r\n"
    assert lake.s3.head_object(Bucket=lake.target.bucket, Key=key)["ContentType"] == "application/gzip"


@pytest.mark.slow
def test_personal_data_is_delivered_in_declared_columns_only(lake):
    """An address in a free text blocks the file; a field that the contract doesn't name is never
    delivered.
    """
    lake.commit(
        topic_of(("text", "string"), ("email", "string")),
        {"id": "a", "at": MONDAY, "text": "ask canary@example.org", "email": "canary2@example.org"},
    )
    run = lake.export(contract(column("id"), column("text")))
    window = run.window()
    assert (window["state"], window["code"], window["exit_code"]) == ("blocked", "EXP-PERSONAL-DATA", 7)
    assert "text: an e-mail address in 1 rows" in window["reason"]
    assert lake.published() == lake.keys("exports/things/data/") == []
    lake.export(contract(column("id"), column("text", expression="upper(id)")))
    assert lake.published() == ["2024-W10"]
    assert [key for key in lake.keys("exports/") if b"canary" in lake.read(key)] == []


@pytest.mark.slow
def test_the_null_text_distinguishes_a_gap_in_a_single_column(lake):
    lake.commit(NOTES, {"id": "a", "at": MONDAY, "text": None}, {"id": "b", "at": MONDAY, "text": "\\N"})
    run = lake.export(contract(column("text", nullable=True), delivery={"null_text": "-"}))
    assert list(csv.reader(io.StringIO(run.csv().decode(), newline=""))) == [["text"], ["-"], ["\\N"]]
