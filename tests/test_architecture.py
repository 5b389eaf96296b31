"""The source tree follows docs/contributing/architecture.md.

For each rule, a test plants a violation and sees it reported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import repository_rules as rules

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LINTER = Path(sys.executable).with_name("lint-imports")
#: By name, for each contract of import-linter: a module, and a line that breaks the contract.
VIOLATIONS = {
    "The product imports neither dev/ nor its simulators": (
        "glue_jobs/runs.py",
        "import simulators.data.events",
    ),
    "Simulators import nothing of what they stand in for": (
        "simulators/data/events.py",
        "from lambdas.shared import http",
    ),
    "Commands start a simulator only for the demo and for the rehearsal, and never use dev/": (
        "lakeferry/output.py",
        "import simulators.tableflow.kafka",
    ),
    "Only `lakeferry rehearse` imports the rehearsal": (
        "lakeferry/health/doctor.py",
        "import lakeferry.rehearsal.report",
    ),
    "config imports no other package of the product, no AWS and no Spark: it ships in every asset": (
        "config/exports/windows.py",
        "import boto3",
    ),
    "Only checks for authors import a parser of SQL or Avro, which doesn't ship": (
        "config/exports/contract.py",
        "import sqlglot",
    ),
    "In config, deployments import exports, and exports the TOML layer": (
        "config/exports/windows.py",
        "import config.deployments.schedules",
    ),
    "The job imports config only": ("glue_jobs/store.py", "from lambdas.shared import clock"),
    "The job's contract, which stacks import, imports nothing of ours": (
        "glue_jobs/platform.py",
        "import pyspark",
    ),
    "Stacks import no client of AWS or HTTP": ("stacks/data.py", "import boto3"),
    "Stacks import the contracts of functions and job, and the properties of resource types": (
        "stacks/data.py",
        "from lambdas.rotation import steps",
    ),
    "Constructs know neither the stacks nor how a deployment file is read: other apps import them": (
        "stacks/constructs/kafka.py",
        "import stacks.settings",
    ),
    "Examples import the construct library, and nothing else of this repository": (
        "examples/trades.py",
        "import stacks.data",
    ),
    "Functions import neither CDK nor Spark nor the job": ("lambdas/rotation/steps.py", "import aws_cdk"),
    "The two vendors' packages don't import each other": (
        "lambdas/snowflake/client.py",
        "from lambdas.confluent import crn",
    ),
    "The vendors' packages import shared code only": (
        "lambdas/confluent/client.py",
        "import config.exports.windows",
    ),
    "The vendors' packages don't import boto3": ("lambdas/confluent/client.py", "import boto3"),
    "Layers of the functions": ("lambdas/shared/clock.py", "import lambdas.handlers.runtime"),
    "No import cycles in the product": ("config/exports/windows.py", "import config.exports.contract"),
    "No import cycles in the simulators": (
        "simulators/confluent/model.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import simulators.confluent.organization",
    ),
}


def plant(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [LINTER, "--no-cache", "--config", ROOT / "pyproject.toml"]
    return subprocess.run(
        command,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        env={"COLUMNS": "300", "NO_COLOR": "1"},
    )


def test_imports_keep_their_contracts():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


def test_each_broken_contract_is_reported(tmp_path):
    for package in SETTINGS["root_packages"]:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=_not_python)
    for path, line in VIOLATIONS.values():
        file = tmp_path / path
        file.write_text(file.read_text() + f"\n{line}\n")
    result = lint_imports(tmp_path)
    broken = re.findall(r"^(.*) BROKEN(?: \(.*\))?$", result.stdout, re.MULTILINE)
    assert (result.returncode, sorted(broken)) == (1, sorted(VIOLATIONS)), result.stdout


def _not_python(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith(".py") and not (Path(folder) / name).is_dir()]


def test_modules_that_decide_rows_use_no_clock_and_no_environment():
    assert [name for name in rules.ROW_MODULES if not (ROOT / name).exists()] == []
    assert rules.clocks_in_row_modules(ROOT) == []


def test_a_clock_and_an_environment_in_a_row_module_are_reported(tmp_path):
    plant(tmp_path, "glue_jobs/rows.py", "from datetime import datetime; datetime.now()")
    plant(tmp_path, "glue_jobs/delivery/csv.py", "import os; key = os.environ['KEY']")
    assert len(rules.clocks_in_row_modules(tmp_path)) == 2


def test_no_assert_of_the_product_decides_anything():
    assert [name for name in rules.PRODUCT if not (ROOT / name).exists()] == []
    assert rules.asserts_that_decide(ROOT) == []


def test_an_assert_that_decides_is_reported(tmp_path):
    checks = (
        "assert trust is not None",
        "assert isinstance(bare, CfnResource)",
        "assert total > 0",
        "assert check(x) is not None",
    )
    plant(tmp_path, "stacks/data.py", "\n".join(checks) + "\n")
    plant(tmp_path, "tests/test_data.py", "assert total > 0\n")
    assert [problem.partition(": ")[0] for problem in rules.asserts_that_decide(tmp_path)] == [
        "stacks/data.py:3",
        "stacks/data.py:4",
    ]


def test_functions_and_files_are_short():
    assert rules.too_long(ROOT) == []


def test_a_long_function_and_a_long_file_are_reported(tmp_path):
    body = "".join(f"    x{number} = {number}\n" for number in range(rules.FUNCTION_LINES))
    plant(tmp_path, "glue_jobs/long.py", f"class C:\n  async def f():\n{body}")
    plant(tmp_path, "glue_jobs/short.py", f"def f():\n{body}".rpartition("    x")[0])
    plant(tmp_path, "glue_jobs/wide.py", "x = 1\n" * (rules.FILE_LINES + 1))
    assert rules.too_long(tmp_path) == ["glue_jobs/long.py:2: f has 61 lines", "glue_jobs/wide.py: 401 lines"]


def test_no_file_names_a_folder_of_one_machine_or_a_registry():
    assert rules.machine_specific(ROOT) == []


@pytest.mark.parametrize(
    "parts",
    [
        ["see /wor", "k/main/README"],
        ["PYTHON=/ro", "ot/.pyenv/bin/python"],
        ["--index-", "url https://example.test/simple"],
        ['"resolved": "https://registry.npm', 'js.org/aws-cdk"'],
    ],
)
def test_a_folder_of_one_machine_and_a_registry_are_reported(tmp_path, parts):
    plant(tmp_path, "README.md", "https://example.com/work/item\n" + "".join(parts) + "\n")
    assert [problem.split(":")[:2] for problem in rules.machine_specific(tmp_path)] == [["README.md", "2"]]


def test_no_two_modules_of_the_tests_share_a_name():
    assert rules.shared_names(ROOT) == []


def test_a_shared_name_is_reported(tmp_path):
    for path in ("unit/test_topic.py", "vendors/test_topic.py", "unit/conftest.py", "vendors/conftest.py"):
        plant(tmp_path, f"tests/{path}", "")
    assert rules.shared_names(tmp_path) == ["tests/vendors/test_topic.py: named as tests/unit/test_topic.py"]
