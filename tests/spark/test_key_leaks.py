"""The pseudonymisation key is in nothing that Spark shows or writes: plans, generated code, event log, pages
of its UI.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.canary import Canary
from tests.support.lake import AS_OF, MONDAY, ROOT, column, contract, topic_of
from tests.support.oracles import pseudonym

pytestmark = pytest.mark.slow

#: A literal in a query, which must be found wherever a literal key would be.
MARK = bytes(range(17, 81))
LITERAL = "never a pseudonym"
PEOPLE = topic_of(("who", "string"))
NAMES = ("Ida", "ZOË")


@pytest.fixture(scope="module")
def shown(lakes, tmp_path_factory):
    """Return a folder with everything that Spark showed of a run."""
    lake = lakes()
    lake.commit(PEOPLE, *({"id": f"{n}", "at": MONDAY, "who": who} for n, who in enumerate(NAMES)))
    folder = tmp_path_factory.mktemp("shown")
    hashed = {"treatment": "hash", "kind": "name"}
    columns = (
        column("id"),
        column("who", personal=hashed),
        column("checked", **{"from": "who"}, personal=hashed),
    )
    # Executors hash `who` when they write it, and Spark `checked`, because a check names it.
    check = {
        "id": "hashed",
        "severity": "block",
        "message": "Not hashed.",
        "each_row": f"checked <> '{LITERAL}'",
    }
    path = lake.write_contract(contract(*columns, check=[check]))
    words = ["--export", path, "--as-of", AS_OF.isoformat(), *lake.target.arguments()]
    # like a machine in another country
    far = {
        "TZ": "Pacific/Apia",
        "LC_ALL": "C.UTF-8",
        "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.timezone=Pacific/Apia",
    }
    command = [
        sys.executable,
        str(Path(__file__).with_name("leak_probe.py")),
        str(folder),
        MARK.hex(),
        *words,
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | far | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    (window,) = json.loads(done.stdout.splitlines()[-1])["windows"]
    (file,) = (file["key"] for file in window["files"] if file["role"] == "data")
    (folder / "file.csv").write_bytes(lake.read(file))
    return folder


def named(folder, part):
    return [file.read_bytes().lower() for file in folder.iterdir() if part in file.name]


def test_neither_the_key_nor_a_pad_is_in_anything(shown):
    canary = Canary()
    canary.look_below(shown)
    assert canary.found == []
    assert canary.pieces > 18


def test_a_process_of_another_zone_and_language_writes_the_same(shown):
    rows = [f"{n},{pseudonym(who, 'name')},{pseudonym(who, 'name')}\r\n" for n, who in enumerate(NAMES)]
    assert (shown / "file.csv").read_bytes() == ("id,who,checked\r\n" + "".join(rows)).encode()


@pytest.mark.parametrize("where", ["local-", "SQL_execution", "api_v1_applications", "plan_"])
def test_the_searched_files_show_literals(shown, where):
    """Otherwise the search would prove nothing. The plans of the rows show the contract's own literals."""
    forms = (
        (LITERAL.encode(),) if where == "plan_" else (MARK.hex().encode(), MARK.hex().encode().hex().encode())
    )
    assert any(form in text for text in named(shown, where) for form in forms)


def test_the_searched_files_include_generated_code_and_both_ways_of_hashing(shown):
    plans = b"".join(named(shown, "plan_"))
    assert b"/* 001 */" in plans
    assert b"arrowevalpython" in plans
    for where in ("local-", "SQL_execution"):
        assert any(b"mapinarrow" in text and b"arrowevalpython" in text for text in named(shown, where)), (
            where
        )
