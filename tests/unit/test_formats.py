"""The rows of the CSV file in other formats: the same cells, read back, with the same bytes each time."""

from __future__ import annotations

import gc
import gzip
import io
import json
import re
import zipfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as configured
from hypothesis import strategies as st

from glue_jobs.delivery import csv, excel_limits, notes
from glue_jobs.delivery.counts import PartitionReport
from glue_jobs.delivery.formats import jsonl, parquet, write, xlsx_reader
from glue_jobs.delivery.formats.tables import Fingerprint, build_schema, divide
from glue_jobs.delivery.formats.upload import ObjectWriter
from glue_jobs.delivery.formats.write import Delivery, write_formats
from glue_jobs.delivery.formats.xlsx import XlsxWriter
from glue_jobs.delivery.multipart import StoredFile
from glue_jobs.delivery.verify import verify_file
from glue_jobs.errors import Blocked, Inconsistent
from tests.support import samples

FORMS = ("parquet", "jsonl", "xlsx")
COLUMNS = {
    "t": "text",
    "n": "integer",
    "d": "decimal(12,2)",
    "e": "decimal(38,18)",
    "day": "date",
    "at": "timestamp",
    "b": "boolean",
}
NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
#: Texts that a format could change.
AWKWARD = [
    "", "plain", " leading and trailing ", "=1+1", "+1", "@x", "a,=1", 'say "hi"', "back\\slash", "\\n", "two\r\nlines",
    "tab\tinside", "\x01control", "_x0041_", "_x005F_", "<r>bold</r>", "<r><t>x</t></r>", "a & b < c", "emoji \U0001f600",
    "\ufffe\uffff", "\u2028", "null", "https://example.com", "{=1}", "1", "2026-11-01", "true", "\x7f", "e\u0301",
]  # fmt: skip
ROW = {
    "t": "plain",
    "n": 42,
    "d": Decimal("9.95"),
    "e": Decimal("0.000000000000000001"),
    "day": date(2026, 11, 9),
    "at": datetime(2026, 11, 9, 13, 5, 0, 250_000, tzinfo=UTC),
    "b": True,
}


def contract(**delivery):
    made = samples.things(*((name, kind, "nullable = true") for name, kind in COLUMNS.items()))
    return attrs.evolve(made, delivery=attrs.evolve(made.delivery, **{"also": list(FORMS)} | delivery))


def table_of(rows, of=None):
    return pa.Table.from_pylist(rows, build_schema(of or contract()))


def csv_of(of, rows):
    """Return the CSV file as the job writes it."""
    table = table_of(rows, of)
    for name, type_ in COLUMNS.items():
        if type_ == "decimal(38,18)":  # Spark writes it
            texts = [None if row[name] is None else f"{row[name]:.18f}" for row in rows]
            table = table.set_column(table.column_names.index(name), name, pa.array(texts, pa.string()))
    lines = bytes(csv.lines(table, of.columns, of.delivery).data) if rows else b""
    whole = csv.build_header(of.columns, of.delivery) + lines
    return gzip.compress(whole, mtime=0) if of.delivery.gzip else whole


@attrs.define
class Made:
    bucket: object
    files: list
    stats: object
    contract: object

    def read(self, form):
        (file,) = [file for file in self.files if file.role == form]
        return self.bucket.read(self.bucket.relative(file.key))[0]


def deliver(bucket, rows, of=None):
    of = of or contract()
    content = csv_of(of, rows)
    ending = ".csv.gz" if of.delivery.gzip else ".csv"
    target = ObjectWriter(bucket, f"things/data/w/run/things_w{ending}", "text/csv")
    target.write(content)
    parts = target.finish()
    stored = StoredFile(bucket.key(f"things/data/w/run/things_w{ending}"), parts, PartitionReport())
    header = csv.build_header(of.columns, of.delivery)
    stats = verify_file(stored.key, io.BytesIO(content), parts, of, header)
    return Made(bucket, write_formats(bucket, of, stored, stats.rows, frozenset(stats.inexact)), stats, of)


def read_sheet(content):
    """Return the cells of a workbook as (type, text), by another parser than the job's."""
    root = ElementTree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml"))
    rows = []
    for row in root.iter(f"{NAMESPACE}row"):
        cells = {}
        for cell in row.iter(f"{NAMESPACE}c"):
            text = next(
                (part.text or "" for part in cell.iter() if part.tag[len(NAMESPACE) :] in ("v", "t")), None
            )
            cells[re.sub("[0-9]", "", cell.get("r"))] = (cell.get("t"), text)
        rows.append(cells)
    return rows


def unescaped(text):
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), text)


NOTHING = dict.fromkeys(COLUMNS)
ROWS = [ROW | {"t": text} for text in AWKWARD] + [
    NOTHING,
    ROW | {"n": -(2**40), "d": Decimal("-0.01"), "b": False},
    NOTHING,
]


@pytest.mark.parametrize("gzipped", [False, True])
def test_json_lines_has_the_cells_of_the_csv_file(bucket, gzipped):
    made = deliver(bucket, ROWS, contract(gzip=gzipped))
    content = made.read("jsonl")
    assert made.files[1].key.endswith(".jsonl.gz" if gzipped else ".jsonl")
    lines = (gzip.decompress(content) if gzipped else content).decode().split("\n")
    assert lines.pop() == ""
    found = [json.loads(line) for line in lines]
    assert [row["t"] for row in found] == [
        None if row["t"] is None else csv.guarded(row["t"]) for row in ROWS
    ]
    assert list(found[0]) == list(COLUMNS)
    assert found[1] == {
        "t": "plain",
        "n": 42,
        "d": "9.95",
        "e": "0.000000000000000001",
        "day": "2026-11-09",
        "at": "2026-11-09T13:05:00.250000Z",
        "b": True,
    }
    assert found[-1] == NOTHING


def test_parquet_has_types_and_the_cells_of_the_csv_file(bucket, tmp_path):
    made = deliver(bucket, ROWS)
    file = tmp_path / "rows.parquet"
    file.write_bytes(made.read("parquet"))
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        described = database.execute(f"DESCRIBE SELECT * FROM '{file}'").fetchall()
        rows = database.execute(f"""SELECT t, n, d, e, day, epoch_us("at"), b FROM '{file}'""").fetchall()
    assert [row[1] for row in described] == [
        "VARCHAR", "BIGINT", "DECIMAL(12,2)", "DECIMAL(38,18)", "DATE", "TIMESTAMP WITH TIME ZONE", "BOOLEAN",
    ]  # fmt: skip
    guarded = [None if row["t"] is None else csv.guarded(row["t"]) for row in ROWS]
    assert [row[0] for row in rows] == guarded
    assert rows[1][1:] == (42, ROW["d"], ROW["e"], ROW["day"], int(ROW["at"].timestamp() * 1_000_000), True)
    assert rows[-1] == (None,) * 7


def test_a_workbook_has_typed_cells_and_no_formula(bucket):
    made = deliver(bucket, [row | {"e": None} for row in ROWS])
    content = made.read("xlsx")
    header, *rows = read_sheet(content)
    assert [unescaped(text) for _, text in header.values()] == list(COLUMNS)
    texts = [unescaped(row["A"][1]) if "A" in row and row["A"][1] is not None else None for row in rows]
    assert texts == [None if row["t"] is None else csv.guarded(row["t"]) for row in ROWS]
    assert {row["A"][0] for row in rows[: len(AWKWARD)]} == {"inlineStr"}
    plain = rows[1]
    assert (plain["B"], plain["C"], plain["G"]) == ((None, "42"), (None, "9.95"), ("b", "1"))
    assert date(1899, 12, 30) + timedelta(days=int(plain["E"][1])) == ROW["day"]
    moment = datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=float(plain["F"][1]))
    assert abs(moment - ROW["at"]) < timedelta(microseconds=10)
    sheet = zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet
    assert 'state="frozen"' in sheet
    assert f'<autoFilter ref="A1:G{len(ROWS) + 1}"/>' in sheet
    assert sheet.count("<col ") >= 1
    assert made.stats.inexact == set()


def test_the_same_rows_give_the_same_bytes(bucket):
    first, second = (deliver(bucket, ROWS).files for _ in range(2))
    assert [file.sha256 for file in first] == [file.sha256 for file in second]
    assert [(file.role, file.rows) for file in first] == [(form, len(ROWS)) for form in FORMS]


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_file_without_rows_is_a_file_of_each_format(bucket, gzipped):
    made = deliver(bucket, [], contract(gzip=gzipped))
    assert [file.rows for file in made.files] == [0, 0, 0]
    content = made.read("jsonl")
    assert (gzip.decompress(content) if gzipped else content) == b""
    assert len(read_sheet(made.read("xlsx"))) == 1


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("n", 1234567890123456, "1234567890123456"),
        ("e", Decimal("0.1234567890123456"), "0.123456789012345600"),
        ("day", date(1900, 2, 28), "1900-02-28"),
        ("day", date(1, 1, 1), "0001-01-01"),
        ("at", datetime(2026, 11, 9, 13, 5, 0, 250, tzinfo=UTC), "2026-11-09T13:05:00.000250Z"),
        ("at", datetime(1899, 12, 31, tzinfo=UTC), "1899-12-31T00:00:00.000000Z"),
    ],
)
def test_a_column_that_excel_would_change_is_text_as_a_whole(bucket, column, value, text):
    row = ROW | {"e": None}
    made = deliver(bucket, [row | {column: value}, row])
    assert made.stats.inexact == {column}
    letter = "ABCDEFG"[list(COLUMNS).index(column)]
    _, first, second = read_sheet(made.read("xlsx"))
    assert first[letter] == ("inlineStr", text)
    assert letter not in second or second[letter][0] == "inlineStr"
    (note,) = [note for note in notes.write_notes(made.contract, made.stats, 0, 0) if "workbook" in note]
    assert note.startswith(f"In the workbook, {column} is text: Excel would change some of the values.")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n", 123456789012345),
        ("n", 10**18),
        ("e", Decimal("0.123456789012345")),
        ("day", date(1900, 3, 1)),
        ("day", date(9999, 12, 31)),
        ("at", datetime(2100, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("at", datetime(1900, 3, 1, tzinfo=UTC)),
    ],
)
def test_what_excel_can_hold_is_a_number(bucket, column, value):
    made = deliver(bucket, [ROW | {"e": None} | {column: value}])
    assert made.stats.inexact == set()
    letter = "ABCDEFG"[list(COLUMNS).index(column)]
    assert read_sheet(made.read("xlsx"))[1][letter][0] is None


def test_more_rows_than_a_sheet_holds_are_refused():
    excel_limits.require_rows(contract(), 1_048_575, "2026-W46")
    excel_limits.require_rows(contract(also=["parquet"]), 2_000_000, "2026-W46")
    with pytest.raises(Blocked) as refused:
        excel_limits.require_rows(contract(), 1_048_576, "2026-W46")
    assert refused.value.code == "EXP-XLSX-ROWS"
    assert "window 2026-W46 has 1,048,576 rows" in refused.value.what


def upload(bucket, form, of, rows, tmp_path, as_text=frozenset()):
    """Upload a format's file with these rows, and return its parts."""
    made = Delivery(
        bucket, of, StoredFile("things/w.csv", [], PartitionReport()), len(rows), as_text, tmp_path
    )
    output = write._open_output(form, made)
    output.writer.add(table_of(rows, of))
    return made, output.finish(made)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "change",
    [{"t": "other"}, {"t": None}, {"t": ""}, {"n": 43}, {"d": Decimal("9.96")}, {"b": False}, {"at": None}],
)
def test_a_cell_that_differs_from_the_csv_file_is_found(bucket, form, change, tmp_path):
    of = contract()
    expected = Fingerprint(of)
    expected.add(table_of([ROW, ROW], of))
    delivery, parts = upload(bucket, form, of, [ROW, ROW | change], tmp_path)
    with pytest.raises(Inconsistent) as found:
        write._verify(form, delivery, parts, expected.digest())
    assert found.value.code == "EXP-FORMAT-DIFFERS"
    assert "has other rows than the CSV file" in found.value.what
    same, parts = upload(bucket, form, of, [ROW, ROW], tmp_path)
    assert write._verify(form, same, parts, expected.digest()).rows == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_row_and_rows_in_another_order_are_found(bucket, form, tmp_path):
    of = contract()
    rows = [ROW, ROW | {"n": 43}]
    expected = Fingerprint(of)
    expected.add(table_of(rows, of))
    for others in (rows[:1], rows[::-1]):
        delivery, parts = upload(bucket, form, of, others, tmp_path)
        with pytest.raises(Inconsistent):
            write._verify(form, attrs.evolve(delivery, rows=2), parts, expected.digest())


@pytest.mark.parametrize("form", FORMS)
def test_bytes_that_were_changed_on_the_way_are_found(bucket, form, tmp_path):
    of = contract()
    delivery, parts = upload(bucket, form, of, [ROW], tmp_path)
    content = bytearray(bucket.read(delivery.key(form))[0])
    content[len(content) // 2] ^= 1
    bucket.write(delivery.key(form), bytes(content), "application/octet-stream")
    with pytest.raises(Inconsistent) as found:
        write._verify(form, delivery, parts, "")
    assert found.value.code == "EXP-CHECKSUM"


def changed_sheet(source: Path, old: str, new: str) -> Path:
    target = source.with_name("changed.xlsx")
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            text = archive.read(name).decode()
            if name.endswith("sheet1.xml"):
                assert old in text
                text = text.replace(old, new, 1)
            copy.writestr(name, text)
    return target


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("<v>42</v>", "<f>1+41</f><v>42</v>", "has a formula"),
        ("<v>42</v>", "<v>42.5</v>", "has a cell in column n that is not integer"),
        ("<v>9.95</v>", "<v>9.951</v>", "has a cell in column d that is not decimal"),
        ("<t>day</t>", "<t>Day</t>", "does not begin with the names of the columns"),
        ('r="G2"', 'r="H2"', "more columns than the file"),
        ("</row>", "", "can't be read"),
    ],
)
def test_a_workbook_that_was_not_written_so_is_refused(tmp_path, old, new, what):
    of = contract()
    path = tmp_path / "rows.xlsx"
    writer = XlsxWriter(path, of, 1, frozenset())
    writer.add(table_of([ROW | {"e": None}], of))
    writer.close()
    assert sum(table.num_rows for table in xlsx_reader.read(path, of, frozenset())) == 1
    with pytest.raises(Inconsistent) as refused:
        list(xlsx_reader.read(changed_sheet(path, old, new), of, frozenset()))
    assert what in refused.value.what


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":"x"',
        b'{"t":"x"}\n{"u":1}\n',
        b'{"t":"secret","n":"secret"}\n',
        b'{"d":"secret"}\n',
        b'{"t":"secret","day":"secret"}\n',
        b"not json\n",
    ],
)
def test_lines_that_are_not_rows_are_refused_without_their_values(line):
    with pytest.raises(Inconsistent) as refused:
        list(jsonl.read(io.BytesIO(line), contract()))
    assert refused.value.code == "EXP-FORMAT-DIFFERS"
    assert "secret" not in refused.value.what


def test_a_parquet_file_with_another_type_is_refused(tmp_path):
    of = contract(also=["parquet"])
    path = tmp_path / "rows.parquet"
    with path.open("wb", buffering=0) as file:
        writer = parquet.ParquetWriter(file, of)
        writer.add(table_of([ROW], of))
        writer.close()
    assert next(parquet.read(path, of)).num_rows == 1
    other = attrs.evolve(of, column=[attrs.evolve(of.column[0], type="integer"), *of.column[1:]])
    with pytest.raises(Inconsistent, match="other columns or types"):
        list(parquet.read(path, other))
    path.write_bytes(b"PAR1 no PAR1")
    with pytest.raises(Inconsistent, match="can't be read"):
        list(parquet.read(path, of))


VALUES = st.fixed_dictionaries(
    {
        "t": st.none()
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        | st.sampled_from(AWKWARD),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100),
        "d": st.none() | st.decimals(-(10**9), 10**9, places=2),
        "e": st.none() | st.decimals(-(10**3), 10**3, places=18),
        "day": st.none() | st.dates(),
        "at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "b": st.none() | st.booleans(),
    }
)


@configured(max_examples=30)
@given(st.lists(VALUES, max_size=6))
def test_any_rows_are_read_back_as_they_were(tmp_path_factory, rows):
    of = contract()
    table = table_of(rows, of)
    expected = Fingerprint(of)
    expected.add(table)
    lines = jsonl.encode(table, of.columns)
    assert [json.loads(line)["t"] for line in lines.decode().split("\n")[:-1]] == [row["t"] for row in rows]
    in_texts = table_of(rows, of)
    as_text = frozenset(
        column.name
        for column in of.columns
        if not excel_limits.is_exact(_as_parsed(in_texts[column.name], column), column)
    )
    path = tmp_path_factory.mktemp("book") / "rows.xlsx"
    writer = XlsxWriter(path, of, len(rows), as_text)
    writer.add(table)
    writer.close()
    for tables in (jsonl.read(io.BytesIO(lines), of), xlsx_reader.read(path, of, as_text)):
        found = Fingerprint(of)
        for part in tables:
            found.add(part)
        assert found.digest() == expected.digest()


def _as_parsed(values, column):
    """Return values as they are read from the CSV file: days and times are texts."""
    if column.type not in ("date", "timestamp"):
        return values
    texts = [None if value is None else _write(value) for value in values.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _write(value):
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return value.isoformat()


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 7))
def test_tables_of_any_size_are_divided_into_equal_ones(sizes, rows):
    tables = [pa.table({"n": pa.array(range(size), pa.int64())}) for size in sizes]
    divided = list(divide(tables, rows))
    assert [table.num_rows for table in divided[:-1]] == [rows] * (len(divided) - 1)
    found = chain.from_iterable(table["n"].to_pylist() for table in divided)
    assert list(found) == list(chain.from_iterable(map(range, sizes)))


def test_a_fingerprint_does_not_depend_on_how_rows_are_divided():
    of = contract()
    table = table_of(ROWS, of)
    digests = set()
    for size in (1, 3, len(ROWS)):
        found = Fingerprint(of)
        for start in range(0, len(ROWS), size):
            found.add(table.slice(start, size))
        digests.add(found.digest())
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("one", "other"), [(["ab", "c"], ["a", "bc"]), (["", None], [None, ""]), ([None], [""])]
)
def test_a_fingerprint_tells_texts_apart(one, other):
    of = contract()
    digests = []
    for texts in (one, other):
        found = Fingerprint(of)
        found.add(table_of([ROW | {"t": text} for text in texts], of))
        digests.append(found.digest())
    assert digests[0] != digests[1]


def test_a_file_that_can_not_be_read_leaves_nothing_open(bucket):
    of = contract()
    target = ObjectWriter(bucket, "things/w.csv", "text/csv")
    target.write(csv_of(of, ROWS)[:-1])
    stored = StoredFile(bucket.key("things/w.csv"), target.finish(), PartitionReport())
    with pytest.raises(Inconsistent):
        write_formats(bucket, of, stored, len(ROWS), frozenset())
    gc.collect()


@pytest.mark.parametrize(
    ("name", "sheet"),
    [("things", "things"), ("history", "rows"), ("a" * 40, "a" * 31), ("history_2", "history_2")],
)
def test_a_sheet_has_the_name_of_the_export_as_far_as_excel_takes_it(tmp_path, name, sheet):
    path = tmp_path / "rows.xlsx"
    writer = XlsxWriter(path, attrs.evolve(contract(), name=name), 0, frozenset())
    writer.close()
    assert f'<sheet name="{sheet}"' in zipfile.ZipFile(path).read("xl/workbook.xml").decode()


def test_a_row_without_a_value_that_must_be_there_is_refused():
    of = samples.things(("id", "text"), ("n", "integer"))
    with pytest.raises(Inconsistent, match="doesn't have the type of its column"):
        list(jsonl.read(io.BytesIO(b'{"id":"a"}\n'), of))
