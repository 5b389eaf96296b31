"""tests/entry_points.md lists everything that ships and is started, and each test file in its table does
start it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from dev.docs.command_line import leaves
from lakeferry.__main__ import app

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_name("entry_points.md").read_text(encoding="utf-8")
#: Modules of lambdas/handlers/ that are no handler.
_SHARED = ("__init__", "runtime")


def rows(page):
    """Return the rows of the first table: the entry point, the words that start it, and the files."""
    table = page.partition("## What tests give")[0]
    for line in re.findall(r"^\| (`.+) \|$", table, re.MULTILINE):
        entry, _, by, files = line.split(" | ")
        yield entry.strip("`"), by.strip("`"), re.findall(r"`([^`]+)`", files)


def entry_points():
    handlers = [file for file in (ROOT / "lambdas" / "handlers").glob("*.py") if file.stem not in _SHARED]
    commands = [f"lakeferry {words}" for words, _ in leaves(typer.main.get_command(app))]
    return {
        "app.py",
        "glue_jobs/export.py",
        "glue_jobs/probe.py",
        *commands,
        *(str(file.relative_to(ROOT)) for file in handlers),
    }


def missing(page):
    """Return what the page says of files and the files don't have."""
    for entry, by, files in rows(page):
        for name in files:
            file = ROOT / name
            if not file.exists() or by not in file.read_text(encoding="utf-8"):
                yield f"{entry}: {name} has no {by}"


def test_every_entry_point_has_a_row():
    assert {entry for entry, _, _ in rows(PAGE)} == entry_points()


def test_the_files_of_each_row_start_it():
    assert list(missing(PAGE)) == []
    assert all(files for _, _, files in rows(PAGE))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("`run_in_glue`", "`run_in_glued`"), ("`tests/faults/test_disk.py`", "`tests/faults/test_dusk.py`")],
)
def test_a_row_that_is_out_of_date_is_reported(right, wrong):
    assert right in PAGE
    assert len(list(missing(PAGE.replace(right, wrong, 1)))) == 1


def test_files_of_fixtures_that_the_page_names_exist():
    named = re.findall(r"`((?:tests|simulators)/[\w/*.]+)`", PAGE.partition("## What tests give")[2])
    assert named
    assert [name for name in named if not list(ROOT.glob(name))] == []
