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


def test_transforms_know_no_clock_and_no_environment():
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


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("app.py", "import lakeferry.demo"),
        ("app.py", "from lambdas import contract"),
        ("stacks/lake.py", "import boto3"),
        ("stacks/lake.py", "from lambdas.handlers import watch"),
        ("stacks/lake.py", "from lambdas.confluent.kinds import topic"),
        ("stacks/constructs/bucket.py", "from glue_jobs import session"),
        ("stacks/constructs/bucket.py", "import glue_jobs"),
        ("stacks/lake.py", "import requests"),
        ("stacks/lake.py", "from pyspark.sql import SparkSession"),
        ("deployments/model.py", "import aws_cdk"),
        ("deployments/model.py", "import boto3"),
        ("deployments/model.py", "from exports import check"),
        ("exports/contract.py", "import sqlglot"),
        ("exports/windows.py", "from glue_jobs.errors import BadInput"),
        ("exports/check.py", "import pandas"),
        ("lambdas/contract.py", "import attrs"),
        ("lambdas/contract.py", "from lambdas.core import errors"),
        ("lambdas/__init__.py", "from lambdas.core import errors"),
        ("glue_jobs/__init__.py", "import pyspark"),
        ("glue_jobs/contract.py", "import attrs"),
        ("lambdas/core/http.py", "from lambdas.confluent import client"),
        ("lambdas/core/http.py", "import aws_cdk"),
        ("lambdas/confluent/client.py", "import boto3"),
        ("lambdas/confluent/client.py", "from lambdas.snowflake import client"),
        ("lambdas/confluent/kinds/topic.py", "from lambdas.resources import registry"),
        ("lambdas/snowflake/client.py", "import boto3"),
        ("lambdas/snowflake/client.py", "from lambdas.rotation import engine"),
        ("lambdas/resources/lifecycle.py", "from lambdas.handlers import custom_resource"),
        ("lambdas/rotation/engine.py", "import aws_cdk"),
        ("lambdas/notification/mail.py", "from exports import check"),
        ("lambdas/handlers/watch.py", "import pyspark"),
        ("lambdas/handlers/watch.py", "import aws_cdk"),
        ("lambdas/unheard_of.py", "import json"),
        ("glue_jobs/transforms/flatten.py", "import boto3"),
        ("glue_jobs/transforms/flatten.py", "from pyspark.ml import Pipeline"),
        ("glue_jobs/transforms/flatten.py", "from glue_jobs import store"),
        ("glue_jobs/delivery/commit.py", "from lambdas.core import clock"),
        ("glue_jobs/delivery/commit.py", "from simulators import nemesis"),
        ("glue_jobs/delivery/commit.py", "from exports import check"),
        ("glue_jobs/delivery/commit.py", "import sqlglot"),
        ("glue_jobs/delivery/commit.py", "import lakeferry.world"),
        ("lakeferry/demo.py", "from tests.unit import samples"),
        ("simulators/tableflow.py", "from glue_jobs import reading"),
        ("simulators/tableflow.py", "from lambdas.core import http"),
        ("simulators/tableflow.py", "import exports"),
        ("simulators/aws/server.py", "from stacks import lake"),
        ("simulators/aws/server.py", "import pyspark"),
        ("attic/old.py", "import json"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path, path, line):
    plant(tmp_path, path, f"import json\n\n{line}\n")
    found = house_rules.wrong_imports(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(path)


@pytest.mark.parametrize(
    "text",
    [
        "def run():\n    import boto3\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lambdas.handlers import watch\n",
        "import importlib\nimportlib.import_module('glue_jobs.session')\n",
        "import importlib\nname = 'boto' + '3'\nimportlib.import_module(name)\n",
        "__import__('boto3')\n",
        "from .. import lakeferry\n",
        "from ..glue_jobs import session\n",
        "from boto3.session import Session as Quiet\n",
        "import boto3 as quiet\n",
        "try:\n    import boto3\nexcept ImportError:\n    pass\n",
    ],
)
def test_an_import_is_found_wherever_it_hides(tmp_path, text):
    plant(tmp_path, "stacks/lake.py", text)
    assert len(house_rules.wrong_imports(tmp_path)) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("app.py", "from stacks.lake import Lake"),
        ("stacks/lake.py", "from glue_jobs.contract import JARS"),
        ("stacks/lake.py", "from glue_jobs import contract"),
        ("stacks/lake.py", "from exports import check"),
        ("stacks/lake.py", "from . import network"),
        ("stacks/constructs/bucket.py", "from ..network import Network"),
        ("lambdas/handlers/watch.py", "from lambdas.confluent.kinds import topic"),
        ("lambdas/core/aws.py", "from botocore.config import Config"),
        ("glue_jobs/transforms/flatten.py", "from pyspark.sql import functions"),
        ("glue_jobs/transforms/foreign_text.py", "import pandas"),
        ("simulators/tableflow.py", "import pyarrow"),
        ("lakeferry/demo.py", "from simulators.tableflow import Tableflow"),
        ("tests/unit/test_demo.py", "import lakeferry.demo"),
    ],
)
def test_what_the_table_allows_passes(tmp_path, path, line):
    plant(tmp_path, path, line + "\n")
    assert house_rules.wrong_imports(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        "import os; key = os.environ['KEY']",
        "import os; key = os.getenv('KEY')",
        "from datetime import datetime; datetime.now()",
        "from datetime import date; date.today()",
        "import time; time.time()",
        "import datetime; datetime.datetime.utcnow()",
    ],
)
def test_a_transform_with_a_clock_is_found(tmp_path, line):
    plant(tmp_path, "glue_jobs/transforms/flatten.py", line)
    assert len(house_rules.clock_and_environment(tmp_path)) == 1


def test_a_long_function_is_found(tmp_path):
    body = "".join(f"    x{number} = {number}\n" for number in range(house_rules.FUNCTION_LINES))
    plant(tmp_path, "glue_jobs/long.py", f"class C:\n  async def f():\n{body}")
    plant(tmp_path, "tests/test_long.py", f"def f():\n{body}")
    plant(tmp_path, "glue_jobs/short.py", f"def f():\n{body}".rpartition("    x")[0])
    assert house_rules.too_long(tmp_path) == ["glue_jobs/long.py:2: f has 51 lines", "tests/test_long.py:1: f has 51 lines"]


def test_a_long_file_is_found(tmp_path):
    plant(tmp_path, "glue_jobs/long.py", "x = 1\n" * 301)
    plant(tmp_path, "glue_jobs/short.py", "x = 1\n" * 300)
    plant(tmp_path, "tests/test_long.py", "x = 1\n" * 301)
    assert house_rules.too_long(tmp_path) == ["glue_jobs/long.py: 301 lines"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("README.md", ["see /wor", "k/main/README"]),
        ("docs/how-to/run.md", ["`/tm", "p/scratch`"]),
        ("Makefile", ["PYTHON=/ro", "ot/.pyenv/bin/python"]),
        ("exports/a.toml", ["file:///ho", "me/kim/a"]),
        ("a.py", ["open('/Us", "ers/kim/x')"]),
        ("requirements.txt", ["--index-", "url https://example.test/simple"]),
        ("requirements.txt", ["# from https://pyp", "i.org/simple"]),
        ("requirements.txt", ["https://files.pythonhost", "ed.org/x.whl"]),
        ("package-lock.json", ['"resolved": "https://registry.npm', 'js.org/aws-cdk"']),
        ("pom.xml", ["https://repo.mav", "en.apache.org/maven2"]),
        ("settings.ini", ["host = acme.jfr", "og.io"]),
    ],
)
def test_a_place_of_one_machine_is_found(tmp_path, path, parts):
    plant(tmp_path, path, "first line\n" + "".join(parts) + "\n")
    plant(tmp_path, "image.png", "")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff" + "".join(parts).encode())
    found = house_rules.places_of_a_machine(tmp_path)
    assert [place.split(":")[:2] for place in found] == [[path, "2"]]


@pytest.mark.parametrize(
    "line",
    ["https://example.com/work/item", "s3://bucket/tmp/x", "out/tmp/a", "/proc/sys/kernel", "the PyPI package", "Maven Central"],
)
def test_words_that_look_alike_pass(tmp_path, line):
    plant(tmp_path, "README.md", line)
    assert house_rules.places_of_a_machine(tmp_path) == []


@pytest.mark.parametrize("folder", [".git", ".venv", ".jars", "out", "exports/__pycache__", "lakeferry.egg-info"])
def test_what_is_made_is_not_looked_at(tmp_path, folder):
    plant(tmp_path, f"{folder}/made.py", "import aws_cdk\n" + "x = '/tm" + "p/a'\n" * 400)
    assert house_rules.wrong_imports(tmp_path) + house_rules.too_long(tmp_path) + house_rules.places_of_a_machine(tmp_path) == []
