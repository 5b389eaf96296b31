"""The tree is what docs/explanation/architecture.md says, and each rule is seen to catch what breaks it."""

from __future__ import annotations

from pathlib import Path

import house_rules
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
#: The page's words for packages whose import name is another, or that it names by their sort.
WORDS = {
    "jwt": "PyJWT",
    "starlette": "web server",
    "uvicorn": "web server",
    "hypercorn": "web server",
}
#: Packages that the page doesn't name: how models are written, CDK's own base, and what a function of Arrow's needs.
UNNAMED = {"attrs", "cattrs", "constructs", "pandas", "*"}


def plant(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_nobody_imports_what_the_table_forbids():
    assert house_rules.wrong_imports(ROOT) == []


def test_what_decides_rows_knows_no_clock_and_no_environment():
    assert house_rules.clock_and_environment(ROOT) == []


def test_functions_and_files_are_short():
    assert house_rules.too_long(ROOT) == []


def test_no_file_names_a_place_of_one_machine():
    assert house_rules.places_of_a_machine(ROOT) == []


def test_no_two_modules_of_the_tests_share_a_name():
    assert house_rules.shared_names(ROOT) == []


def test_a_shared_name_is_found(tmp_path):
    for path in ("unit/test_topic.py", "vendors/test_topic.py", "unit/conftest.py", "vendors/conftest.py"):
        plant(tmp_path, f"tests/{path}", "")
    assert house_rules.shared_names(tmp_path) == ["tests/vendors/test_topic.py: named as tests/unit/test_topic.py"]


def test_the_table_of_the_page_is_the_one_that_is_enforced():
    rows = house_rules.table_of(PAGE)
    assert set(rows) == {room.named for room in house_rules.ROOMS.values()}


@pytest.mark.parametrize("place", sorted(set(house_rules.ROOMS) - {"app", "lambdas.handlers"}))
def test_the_page_names_every_package_that_a_room_may_import(place):
    room = house_rules.ROOMS[place]
    row = house_rules.table_of(PAGE)[room.named]
    assert [name for name in room.others - UNNAMED if WORDS.get(name, name) not in row] == []


def test_forbidden_imports_are_found_wherever_they_hide(tmp_path):
    forbidden = {
        "app.py": "import lakeferry.local.demo",
        "stacks/lake.py": "def run():\n    import boto3",
        "stacks/constructs/bucket.py": "import importlib\nimportlib.import_module('glue_jobs.session')",
        "exports/windows.py": "from glue_jobs.errors import BadInput",
        "lambdas/snowflake/client.py": "try:\n    import boto3\nexcept ImportError:\n    pass",
        "lambdas/unheard_of.py": "import json",
        "glue_jobs/delivery/csv.py": "from ..store import connect\nimport stacks.assets",
        "simulators/tableflow.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lambdas.shared import http",
        "attic/old.py": "import json",
    }
    for path, text in forbidden.items():
        plant(tmp_path, path, text + "\n")
    plant(tmp_path, "stacks/network.py", "from glue_jobs import contract\nfrom .constructs import bucket\n")
    plant(tmp_path, "out/made.py", "import aws_cdk\n")
    assert sorted(one.partition(":")[0] for one in house_rules.wrong_imports(tmp_path)) == sorted(forbidden)


def test_a_clock_and_an_environment_where_rows_are_decided_are_found(tmp_path):
    plant(tmp_path, "glue_jobs/rows.py", "from datetime import datetime; datetime.now()")
    plant(tmp_path, "glue_jobs/delivery/csv.py", "import os; key = os.environ['KEY']")
    assert len(house_rules.clock_and_environment(tmp_path)) == 2


def test_a_long_function_and_a_long_file_are_found(tmp_path):
    body = "".join(f"    x{number} = {number}\n" for number in range(house_rules.FUNCTION_LINES))
    plant(tmp_path, "glue_jobs/long.py", f"class C:\n  async def f():\n{body}")
    plant(tmp_path, "glue_jobs/short.py", f"def f():\n{body}".rpartition("    x")[0])
    plant(tmp_path, "glue_jobs/wide.py", "x = 1\n" * (house_rules.FILE_LINES + 1))
    assert house_rules.too_long(tmp_path) == [
        "glue_jobs/long.py:2: f has 51 lines",
        f"glue_jobs/wide.py: {house_rules.FILE_LINES + 1} lines",
    ]


@pytest.mark.parametrize(
    "parts",
    [
        ["see /wor", "k/main/README"],
        ["PYTHON=/ro", "ot/.pyenv/bin/python"],
        ["--index-", "url https://example.test/simple"],
        ['"resolved": "https://registry.npm', 'js.org/aws-cdk"'],
    ],
)
def test_a_place_of_one_machine_is_found(tmp_path, parts):
    plant(tmp_path, "README.md", "https://example.com/work/item\n" + "".join(parts) + "\n")
    found = house_rules.places_of_a_machine(tmp_path)
    assert [place.split(":")[:2] for place in found] == [["README.md", "2"]]
