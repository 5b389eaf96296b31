"""CSV files: readers read what was written (every text, number, time and null), and spreadsheets run none of
it.
"""

from __future__ import annotations

import csv
import io
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as configured
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from config.exports.contract import Column, Personal, decimal_type
from config.exports.file_model import Delivery
from glue_jobs.delivery import csv as csv_line
from tests.support import csv_readers

ROOT = Path(__file__).resolve().parents[2]
#: Characters with a meaning for readers, spreadsheets or encodings.
NASTY = [
    *",\"'=+-@\r\n\t \x00\x01\x1a\x1f\\#;|NUL0aé\u00a0\u3000\u2028\x85\ufeff\ufffd＝＋－＠🚀\U0010ffff",
    "\r\n",
    '""',
    "=1+1",
]
PIECES = st.one_of(st.sampled_from(NASTY), st.characters(exclude_categories=["Cs"]))
TEXTS = st.lists(PIECES, max_size=6).map("".join)
NULLS = ["", "NULL", "-", "n/a", "\\N"]
DIALECTS = ["excel", "machine"]
DELIMITERS = [",", ";", "\t"]


def column(name: str, type_: str = "text", **more) -> Column:
    return Column(name=name, type=type_, title=name, description=name, **more)


def delivery(dialect: str = "machine", null_text: str = "", delimiter: str = ",") -> Delivery:
    return Delivery(order_by=["a"], dialect=dialect, null_text=null_text, delimiter=delimiter)


def written(columns: list[Column], table: pa.Table, form: Delivery) -> bytes:
    return csv_line.build_header(columns, form) + bytes(csv_line.lines(table, columns, form).data)


def texts_table(rows: list[list[str | None]]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate("ab")}
    )


def by_all(folder) -> dict:
    """Return the readers, and whether each distinguishes null from a text."""
    return {
        "csv": (csv_readers.by_python, False),
        "pandas": (csv_readers.by_pandas, False),
        "arrow": (csv_readers.by_arrow, True),
        "duckdb": (csv_readers.by_duckdb(folder), True),
    }


def read_back(cells: list[list], null_text: str, tells_nulls: bool) -> list[list]:
    """Return what a reader should read, from what it read: without the guards."""
    back = csv_line.unguarded
    return [
        [None if cell is None or (not tells_nulls and cell == null_text) else back(cell) for cell in row]
        for row in cells
    ]


def expected(rows: list[list], null_text: str, tells_nulls: bool) -> list[list]:
    """Return the expected rows.

    A reader that ignores quotation marks reads a text that looks like null as null.
    """
    if tells_nulls:
        return rows
    return [
        [None if cell is None or csv_line.guarded(cell) == null_text else cell for cell in row]
        for row in rows
    ]


def assert_reads_back(
    folder, rows: list[list[str | None]], dialect: str, null_text: str, delimiter: str = ","
) -> None:
    columns = [column("a", nullable=True), column("b", nullable=True)]
    form = delivery(dialect, null_text, delimiter)
    data = written(columns, texts_table(rows), form)
    for name, (read, tells_nulls) in by_all(folder).items():
        found = read_back(read(data, ["a", "b"], null_text, delimiter), null_text, tells_nulls)
        assert found == expected(rows, null_text, tells_nulls), name


@configured(max_examples=30)
@given(
    rows=st.lists(st.lists(st.none() | TEXTS | st.sampled_from(NULLS), min_size=2, max_size=2)),
    dialect=st.sampled_from(DIALECTS),
    null_text=st.sampled_from(NULLS),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_every_text_is_read_back_by_every_reader(tmp_path_factory, rows, dialect, null_text, delimiter):
    assert_reads_back(tmp_path_factory.getbasetemp(), rows, dialect, null_text, delimiter)


@pytest.mark.slow
def test_a_hundred_thousand_texts_are_read_back_by_every_reader(tmp_path):
    dice = random.Random(21)
    made = [
        "".join(dice.choices(NASTY, k=dice.randrange(5))) if dice.random() > 0.05 else None
        for _ in range(100_000)
    ]
    assert_reads_back(tmp_path, [list(pair) for pair in zip(made[::2], made[1::2], strict=True)], "excel", "")


@configured(max_examples=50)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20), st.data())
def test_lines_do_not_depend_on_batches(rows, data):
    columns = [column("a"), column("b")]
    form = delivery()
    whole = texts_table([list(row) for row in rows])
    cut = data.draw(st.integers(0, len(rows)))
    parts = [whole.slice(0, cut), whole.slice(cut)]
    together = b"".join(bytes(csv_line.lines(part, columns, form).data) for part in parts)
    assert together == bytes(csv_line.lines(whole, columns, form).data)
    assert together == bytes(csv_line.lines(pa.concat_tables(parts), columns, form).data)


def test_no_rows_write_no_bytes():
    assert bytes(csv_line.lines(texts_table([]), [column("a"), column("b")], delivery()).data) == b""


def test_the_header_depends_on_the_dialect():
    columns = [column("a"), column("b")]
    assert csv_line.build_header(columns, delivery("machine")) == b"a,b\r\n"
    assert csv_line.build_header(columns, delivery("excel")) == b"\xef\xbb\xbfa,b\r\n"


def would_run(text: str) -> bool:
    """Return whether a spreadsheet runs a text, by OWASP's rules of CSV injection: its first character after
    ignored ones.
    """
    seen = text.lstrip(" '\"\u00a0\u3000")
    return bool(seen) and (seen[0] in "=+-@＝＋－＠" or ord(seen[0]) < 32)


def runs(cell: str) -> bool:
    """Return whether a spreadsheet evaluates the cell. An apostrophe in front makes it a text."""
    seen = cell.lstrip(' "\u00a0\u3000' + "".join(map(chr, range(32))))
    return seen.startswith(tuple("=+-@＝＋－＠"))


@given(TEXTS)
def test_a_text_that_a_spreadsheet_would_run_has_an_apostrophe(text):
    cell = csv_line.guarded(text)
    assert cell.startswith("'") == (would_run(text) or text.startswith("'"))
    assert csv_line.unguarded(cell) == text
    if not any(sign in text for sign in "=+-@＝＋－＠"):
        assert cell.removeprefix("'" * would_run(text)) == text


SPLITTING = [
    *NASTY,
    *("=", "+", "-", "@"),
    *(",", ";", "\t", "\r", "\n", '"', "'", " "),
    "x;=1+1",
    "x\t@SUM(A1)",
    "a,-1",
]


@configured(max_examples=300)
@given(
    rows=st.lists(
        st.lists(
            st.none() | st.lists(st.sampled_from(SPLITTING), max_size=6).map("".join), min_size=2, max_size=2
        )
    ),
    delimiter=st.sampled_from(DELIMITERS),
    null_text=st.sampled_from(["", "NULL"]),
)
def test_no_cell_runs_wherever_a_spreadsheet_splits(rows, delimiter, null_text):
    form = delivery("excel", null_text, delimiter)
    data = written([column("a", nullable=True), column("b", nullable=True)], texts_table(rows), form)
    for split in DELIMITERS:
        assert [
            cell for row in csv_readers.by_spreadsheet(data, split) for cell in row if runs(cell)
        ] == [], split


def test_a_formula_without_its_guard_runs_wherever_a_spreadsheet_splits():
    """Otherwise the test above would prove nothing: a plain writer writes the same texts."""
    for delimiter in DELIMITERS:
        for split in DELIMITERS:
            data = (
                delimiter.join(["a", f'"x{split}=1+1"', "b"]).encode()
                if split != delimiter
                else f"a{split}=1+1".encode()
            )
            assert any(runs(cell) for row in csv_readers.by_spreadsheet(data, split) for cell in row)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_negative_number_and_the_text_after_it_are_no_formula(delimiter):
    """A spreadsheet with decimal commas that splits at semicolons would read -5,1+SUM(A1) as one cell."""
    form = delivery(null_text="-", delimiter=delimiter)
    columns = [column("n", "integer", nullable=True), column("t", nullable=True)]
    table = pa.table({"n": [-5, 5, None], "t": ["1+SUM(A1)", "1+SUM(A1)", "1+SUM(A1)"]})
    lines = bytes(csv_line.lines(table, columns, form).data).decode().replace(delimiter, "|")
    assert lines == '-5|"1+SUM(A1)"\r\n5|1+SUM(A1)\r\n-|"1+SUM(A1)"\r\n'
    table = pa.table({"t": [None, "x"], "u": ["1+SUM(A1)", "y"]})
    columns = [column("t", nullable=True), column("u")]
    assert (
        bytes(csv_line.lines(table, columns, form).data).decode().replace(delimiter, "|")
        == '-|"1+SUM(A1)"\r\nx|y\r\n'
    )


@pytest.mark.parametrize("first", [None, "x;"])
def test_a_negative_number_behind_a_tab_and_the_text_after_it_are_no_formula(first):
    """Split at semicolons, a cell begins with the tab, which spreadsheets drop."""
    columns = [column("t", nullable=True), column("n", "integer"), column("u")]
    table = pa.table({"t": pa.array([first, first], pa.string()), "n": [-5, 5], "u": ["*1", "*1"]})
    data = bytes(csv_line.lines(table, columns, delivery(delimiter="\t")).data)
    assert [row.split("\t")[2] for row in data.decode().split("\r\n")[:-1]] == ['"*1"', "*1"]


@pytest.mark.parametrize(
    ("delimiter", "quoted"),
    [("\t", [True, True, True, True, True, False]), (",", [True, False, True, False, True, False])],
)
def test_a_text_is_quoted_if_any_cell_at_which_a_line_may_be_split_is_like_a_formula(delimiter, quoted):
    """Only at a tab can a line be split behind its first cell, because spreadsheets drop a leading tab."""
    columns = [column("n", "integer", nullable=True), column("m", "integer", nullable=True), column("t")]
    numbers = {"n": [-5, 5, -5, 5, None, 5], "m": [5, -5, -5, None, 5, 5]}
    table = pa.table(numbers | {"t": ["x"] * 6})
    lines = bytes(csv_line.lines(table, columns, delivery(null_text="+", delimiter=delimiter)).data).decode()
    cells = [line.split(delimiter)[2] for line in lines.split("\r\n")[:-1]]
    assert cells == ['"x"' if is_quoted else "x" for is_quoted in quoted]


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_only_texts_that_need_quotation_marks_have_some(delimiter):
    texts = [
        "a",
        "",
        " a",
        "a ",
        "a b",
        'a"b',
        "a\rb",
        "a\nb",
        "NULL",
        "NULL ",
        "null",
        *("a;b", "a,b", "a\tb"),
    ]
    table = pa.table({"a": texts})
    data = bytes(csv_line.lines(table, [column("a")], delivery(null_text="NULL", delimiter=delimiter)).data)
    plain = {"a", "a b", "null", *("a;b", "a,b", "a\tb")} - {f"a{delimiter}b"}
    written_texts = [text if text in plain else '"' + text.replace('"', '""') + '"' for text in texts]
    assert data.decode() == "".join(f"{text}\r\n" for text in written_texts)


def test_the_documented_way_to_remove_the_guard_is_correct():
    page = (ROOT / "docs" / "for-analysts.md").read_text(encoding="utf-8")
    code = page.split("## The exact text")[1].split("```python\n")[1].split("```")[0]
    exec(code, names := {})
    dice = random.Random(7)
    texts = ["".join(dice.choices(SPLITTING, k=dice.randrange(7))) for _ in range(5_000)]
    assert [text for text in texts if names["exact"](csv_line.guarded(text)) != text] == []


@given(st.lists(TEXTS, min_size=1))
def test_the_guard_is_the_same_in_the_file(texts):
    data = written([column("a")], pa.table({"a": pa.array(texts, pa.string())}), delivery())
    cells = [row[0] for row in csv_readers.by_python(data, ["a"], "")]
    assert cells == [csv_line.guarded(text) for text in texts]
    assert not any(would_run(cell) and not cell.startswith("'") for cell in cells)


@pytest.mark.parametrize(
    "text",
    "=1+1 +1 -1 @SUM(A1) \t=1 \r=1 \n=1 \x00=1 _=1 \u00a0=1 \u3000-1 ＝1 \"=1 '=1 ''@x - +49_30_1 "
    '=HYPERLINK("a","b")'.split(" "),
)
def test_known_formulas_are_guarded_and_read_back(text):
    text = text.replace("_", " ")
    data = written([column("a")], pa.table({"a": [text]}), delivery())
    ((cell,),) = csv_readers.by_python(data, ["a"], "")
    assert cell.startswith("'")
    assert not any(
        runs(seen) for split in DELIMITERS for row in csv_readers.by_spreadsheet(data, split) for seen in row
    )
    assert csv_line.unguarded(cell) == text


def test_numbers_times_and_pseudonyms_are_never_guarded():
    hashed = column("h", personal=Personal(treatment="hash", kind="id"))
    table = pa.table({"n": [-5], "d": pa.array([Decimal("-1.5")], pa.decimal128(4, 2)), "h": ["0a" * 32]})
    assert written([column("n", "integer"), column("d", "decimal(4,2)"), hashed], table, delivery()).endswith(
        b"\r\n-5,-1.50," + b"0a" * 32 + b"\r\n"
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("null_text", NULLS)
def test_null_differs_from_its_text(tmp_path, dialect, null_text):
    rows = [[None, null_text], [null_text, None], ["", "x"], [None, None], ["'" + null_text, '"' + null_text]]
    assert_reads_back(tmp_path, rows, dialect, null_text)


@pytest.mark.parametrize("null_text", ["", "NULL"])
def test_every_type_can_be_null(null_text):
    types = {
        "i": pa.int64(),
        "d": pa.decimal128(9, 2),
        "y": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "f": pa.bool_(),
    }
    table = pa.table({name: pa.array([None], type_) for name, type_ in types.items()})
    named = {"i": "integer", "d": "decimal(9,2)", "y": "date", "t": "timestamp", "f": "boolean"}
    lines = csv_line.lines(
        table, [column(name, type_) for name, type_ in named.items()], delivery(null_text=null_text)
    )
    assert bytes(lines.data) == (",".join([null_text] * 5) + "\r\n").encode()


def as_spark_passes_it(values: list[bytes | None]) -> pa.Table:
    """Return a column of text whose bytes are not validated."""
    return pa.table({"a": pa.array(values, pa.binary()).view(pa.string())})


@pytest.mark.parametrize(
    ("raw", "text", "replaced"),
    [
        (b"ok", "ok", 0),
        (b"a\xffb", "a\ufffdb", 1),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3),  # a lone surrogate, as Java's UTF-8 writes it
        (b"x\xed\xb0\x80=1", "x\ufffd\ufffd\ufffd=1", 3),
        (b"\xf0\x9f\x9a", "\ufffd", 1),  # the first three bytes of four
        ("given \ufffd".encode(), "given \ufffd", 0),
        (b"\xff" + "\ufffd".encode(), "\ufffd\ufffd", 1),
        (b"\xff=1", "\ufffd=1", 1),
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_and_counted(raw, text, replaced):
    table = as_spark_passes_it([b"before", raw, None])
    lines = csv_line.lines(table, [column("a")], delivery())
    assert (lines.replaced, lines.cut) == (replaced, 0)
    assert bytes(lines.data).decode() == f"before\r\n{text}\r\n\r\n"


@given(st.lists(st.binary(max_size=12)))
def test_any_bytes_become_text(values):
    lines = csv_line.lines(as_spark_passes_it(values), [column("a")], delivery())
    data = csv_line.build_header([column("a")], delivery()) + bytes(lines.data)
    assert csv_readers.by_python(data, ["a"], "") == [
        [csv_line.guarded(raw.decode(errors="replace"))] for raw in values
    ]


LONGEST = csv_line.LONGEST_TEXT
FITTING = ["x" * LONGEST, "é" * LONGEST, "🚀" * 16_383 + "x", "=" * (LONGEST - 1), ",=x" * 8_191 + "yyy"]
TOO_LONG = [
    *("x" * (LONGEST + 1), "é" * 40_000, "🚀" * 16_384, "=" * LONGEST, "=" * 40_000, ",=x" * 10_000),
    # Between an apostrophe and its formula, or the blanks in front of that, no cell may end.
    *(
        "x" * (LONGEST - 2) + ",=",
        "x" * (LONGEST - 4) + ",  =1",
        "x" * (LONGEST - 3) + ",'=",
        " " * LONGEST + "=",
    ),
    "x" * (LONGEST - 2) + ",'x",  # this apostrophe is part of the text
]


def units(cell: str) -> int:
    """Return the length that Excel sees."""
    return len(cell.encode("utf-16-le")) // 2


def cut_for_excel(text: str) -> int:
    """Write the text among others.

    Assert that its cell holds what fits, and return the number of texts that were cut.
    """
    table = pa.table({"a": [text, "short", None], "b": ["1", "2", "3"]})
    columns = [column("a", nullable=True), column("b")]
    form = delivery("excel")
    (cell, _), *others = csv_readers.by_python(written(columns, table, form), ["a", "b"], "")
    kept = csv_line.unguarded(cell)
    cut = csv_line.lines(table, columns, form).cut
    assert (others, units(cell) <= LONGEST) == ([["short", "2"], ["", "3"]], True)
    assert (cell, text.startswith(kept), cut) == (csv_line.guarded(kept), True, int(kept != text))
    assert cut == 0 or units(csv_line.guarded(text[: len(kept) + 2])) > LONGEST
    return cut


@pytest.mark.parametrize("number", range(len(TOO_LONG)))
def test_a_text_that_is_too_long_for_excel_is_cut_and_counted(number):
    assert cut_for_excel(TOO_LONG[number]) == 1
    lines = csv_line.lines(pa.table({"a": TOO_LONG[number : number + 1]}), [column("a")], delivery("machine"))
    assert (lines.cut, bytes(lines.data).decode().strip('"\r\n')) == (0, csv_line.guarded(TOO_LONG[number]))


def test_a_text_that_just_fits_into_a_cell_of_excel_is_not_cut():
    assert [cut_for_excel(text) for text in FITTING] == [0] * len(FITTING)


def test_texts_around_the_limit_of_excel_are_cut_where_they_must_be():
    dice = random.Random(11)
    ends = ["".join(dice.choices([*SPLITTING, "🚀", "＝"], k=30)) for _ in range(300)]
    assert {cut_for_excel(dice.choice("x= ") * (LONGEST - dice.randrange(60)) + end) for end in ends} == {
        0,
        1,
    }


def ends(precision: int, scale: int) -> list[Decimal | None]:
    """Return the largest and smallest values, zero with both signs, and null."""
    most, least, nothing = (Decimal((0, digits, -scale)) for digits in ((9,) * precision, (1,), (0,)))
    return [most, most.copy_negate(), least, least.copy_negate(), nothing, nothing.copy_negate(), None]


@pytest.mark.parametrize("precision", [1, 2, 9, 18, 19, 28, 37, 38])
def test_decimals_of_every_scale_have_no_exponent_and_all_digits(tmp_path, precision):
    values = {f"d{scale}": ends(precision, scale) for scale in range(precision + 1)}
    columns = [column(name, f"decimal({precision},{name[1:]})", nullable=True) for name in values]
    plain = {
        name: [None if value is None else f"{value or value.copy_abs():f}" for value in decimals]
        for name, decimals in values.items()
    }
    # Spark formats small decimals, which Arrow would write with an exponent.
    arrays = [
        pa.array(plain[field.name])
        if csv_line.is_written_by_spark(field)
        else pa.array(values[field.name], pa.decimal128(*decimal_type(field.type)))
        for field in columns
    ]
    data = written(columns, pa.table(arrays, list(values)), delivery())
    texts = [[text or "" for text in row] for row in zip(*plain.values(), strict=True)]
    assert csv_readers.by_python(data, list(values), "") == texts
    rows = [list(row) for row in zip(*values.values(), strict=True)]
    as_duckdb = csv_readers.by_duckdb(tmp_path, {field.name: field.type for field in columns})
    assert as_duckdb(data, list(values), "") == rows
    exact = {field.name: pa.decimal128(*decimal_type(field.type)) for field in columns}
    options = arrow_csv.ConvertOptions(column_types=exact, null_values=[""])
    assert arrow_csv.read_csv(io.BytesIO(data), convert_options=options).to_pydict() == values
    frame = pandas.read_csv(
        io.BytesIO(data), converters=dict.fromkeys(values, lambda text: Decimal(text) if text else None)
    )
    assert frame.to_numpy().tolist() == rows


def test_decimals_that_arrow_writes_without_an_exponent_are_known():
    """This is the behaviour of the installed version of Arrow."""
    for scale in range(10):
        text = pa.array([Decimal((0, (1,), -scale))], pa.decimal128(10, scale)).cast(pa.string())[0].as_py()
        assert ("E" in text) == csv_line.is_written_by_spark(column("a", f"decimal(10,{scale})")), scale


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers(value):
    data = written([column("a", "integer")], pa.table({"a": [value]}), delivery())
    assert data == f"a\r\n{value}\r\n".encode()


@given(st.dates())
def test_days(day):
    data = written([column("a", "date")], pa.table({"a": pa.array([day], pa.date32())}), delivery())
    assert data == f"a\r\n{day.isoformat()}\r\n".encode()


@given(st.datetimes(timezones=st.just(UTC)))
def test_times(moment):
    data = written(
        [column("a", "timestamp")], pa.table({"a": pa.array([moment], pa.timestamp("us", "UTC"))}), delivery()
    )
    assert data == f"a\r\n{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z\r\n".encode()


def test_days_and_times_at_the_ends_of_the_calendar_are_read_as_such(tmp_path):
    days = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(9999, 12, 31)]
    times = [
        datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=23, microseconds=999_999)
        for day in days
    ]
    table = pa.table({"a": pa.array(days, pa.date32()), "b": pa.array(times, pa.timestamp("us", "UTC"))})
    data = written([column("a", "date"), column("b", "timestamp")], table, delivery())
    as_duckdb = csv_readers.by_duckdb(tmp_path, {"a": "DATE", "b": "TIMESTAMP"})
    assert as_duckdb(data, ["a", "b"], "") == [
        [day, time.replace(tzinfo=None)] for day, time in zip(days, times, strict=True)
    ]
    types = arrow_csv.ConvertOptions(column_types={"a": pa.date32(), "b": pa.timestamp("us", "UTC")})
    assert arrow_csv.read_csv(io.BytesIO(data), convert_options=types).to_pydict() == {"a": days, "b": times}
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))[1:]
    assert [(date.fromisoformat(day), datetime.fromisoformat(time)) for day, time in rows] == list(
        zip(days, times, strict=True)
    )


_DAY = 86_400_000_000


@pytest.mark.parametrize("number", [2_932_897, 2_147_483_647, -719_163, -2_147_483_648])
def test_a_day_beyond_the_calendar_is_refused(number):
    """Arrow writes a message instead of the last ones."""
    table = pa.table({"a": pa.array([0, None, number], pa.int32()).cast(pa.date32())})
    with pytest.raises(ValueError, match="column a: a date or time outside of the years 1 to 9999"):
        written([column("a", "date")], table, delivery())


@pytest.mark.parametrize("number", [2_932_897 * _DAY, 2**63 - 1, -719_162 * _DAY - 1, -(2**63) + 1])
def test_a_time_beyond_the_calendar_is_refused(number):
    table = pa.table({"a": pa.array([0, None, number], pa.int64()).cast(pa.timestamp("us", "UTC"))})
    with pytest.raises(ValueError, match="column a: a date or time outside of the years 1 to 9999"):
        written([column("a", "timestamp")], table, delivery())


@pytest.mark.parametrize("type_", ["date", "timestamp"])
def test_a_column_without_any_date_or_time_is_written(type_):
    values = pa.nulls(1, pa.date32() if type_ == "date" else pa.timestamp("us", "UTC"))
    assert written([column("a", type_)], pa.table({"a": values}), delivery(null_text="-")) == b"a\r\n-\r\n"


def test_booleans():
    table = pa.table({"a": [True, False, None]})
    assert written([column("a", "boolean")], table, delivery(null_text="-")) == b"a\r\ntrue\r\nfalse\r\n-\r\n"
