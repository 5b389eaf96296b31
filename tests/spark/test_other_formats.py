"""In the real job: the rows in other formats beside the CSV file, published and removed with it."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import duckdb
import pytest

from glue_jobs.delivery.csv import guarded
from tests.support.lake import MONDAY, WEEK, column, contract, topic_of

pytestmark = pytest.mark.slow

THINGS = topic_of(("n", "int"), ("name", "string"))
LINES = [
    column("id"),
    column("n", "integer"),
    column("name", personal={"treatment": "hash", "kind": "name"}),
    column("note", expression="concat('=', id)"),
]
ALL = {"also": ["parquet", "jsonl", "xlsx"], "dialect": "excel"}


def thing(id_, n):
    return {"id": id_, "n": n, "name": "Zebedee", "at": MONDAY}


def roles(manifest):
    return [file["role"] for file in manifest["files"]]


def test_each_format_has_the_same_cells_in_the_same_order(lake, tmp_path):
    lake.commit(THINGS, *(thing(f"{n:02}", n) for n in range(30, 0, -1)))
    run = lake.export(contract(*LINES, delivery=ALL))
    manifest = run.manifest()
    assert roles(manifest) == ["data", "parquet", "jsonl", "xlsx", "datapackage", "report"]
    assert {file["rows"] for file in manifest["files"][:4]} == {30}
    rows = list(csv.reader(io.StringIO(run.csv().decode("utf-8-sig"), newline="")))[1:]
    lines = [json.loads(line) for line in run.files("jsonl")[0].decode().splitlines()]
    assert [[str(cell) for cell in line.values()] for line in lines] == rows
    assert rows[0][3] == guarded("=01") == "'=01"
    file = tmp_path / "rows.parquet"
    file.write_bytes(run.files("parquet")[0])
    with duckdb.connect() as database:
        found = database.execute(f"SELECT * FROM '{file}'").fetchall()
    assert [[str(cell) for cell in row] for row in found] == rows
    sheet = zipfile.ZipFile(io.BytesIO(run.files("xlsx")[0])).read("xl/worksheets/sheet1.xml").decode()
    for row in rows:
        assert all(f"<t>{cell}</t>" in sheet for cell in (row[0], row[2], row[3]))
    for content in (run.files(role)[0] for role in ("data", "parquet", "jsonl")):
        assert b"ebedee" not in content
    assert "ebedee" not in sheet
    package = json.loads(run.files("datapackage")[0])
    assert [resource["format"] for resource in package["resources"]] == ["csv", "parquet", "jsonl", "xlsx"]
    assert "a Parquet file, a JSON Lines file and a workbook for Excel" in run.files("report")[0].decode()


def test_a_new_generation_replaces_all_files(lake):
    text = contract(*LINES, delivery=ALL)
    lake.commit(THINGS, thing("01", 1))
    first = lake.export(text)
    lake.commit(THINGS, thing("02", 2))
    second = lake.export(text)
    data = [key for key in lake.keys("exports/") if "/data/" in key]
    assert second.manifest()["generation"] == 2
    # The generation before stays, as its CSV file does, and nothing else.
    named = {file["key"] for run in (first, second) for file in run.record.windows[0]["files"]}
    assert set(data) == named
    assert len(data) == 12
    assert lake.export(text).state() == "unchanged"


def test_a_run_that_publishes_nothing_leaves_no_file_of_any_format(lake):
    check = {"id": "few", "severity": "block", "message": "N is 1.", "each_row": "n > 1"}
    lake.commit(THINGS, thing("01", 1))
    assert lake.export(contract(*LINES, delivery=ALL, check=[check])).state() == "blocked"
    lake.export(contract(*LINES, delivery=ALL), "--dry-run", "true")
    assert [key for key in lake.keys("exports/") if "/data/" in key] == []


def test_a_format_that_is_added_gives_a_new_generation(lake):
    lake.commit(THINGS, thing("01", 1))
    lake.export(contract(*LINES))
    run = lake.export(contract(*LINES, delivery={"also": ["jsonl"]}))
    assert (run.state(), roles(run.manifest())[:2]) == ("published", ["data", "jsonl"])
    assert run.window()["window"] == WEEK
