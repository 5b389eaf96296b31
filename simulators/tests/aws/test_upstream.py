"""The patches that are offered to MiniStack apply to the pinned version, alone and together, and do as AWS
does.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from simulators.aws.patches import PATCHES
from simulators.aws.server import AWS_PYTHON, EmbeddedAws
from simulators.core.processes import ROOT
from simulators.tests.aws.probe_kit import all_probes
from tests.support.aws_clients import Clients

FOLDER = ROOT / "simulators" / "aws" / "upstream"
OFFERED = {
    "s3-limits": "s3_limits",
    "s3-multipart": "s3_multipart",
    "s3-missing-key": "s3_missing_key",
    "glue-catalog": "glue_catalog",
    "glue-permissions": "glue_permissions",
    "cloudwatch-namespace": "metric_namespace",
    "secretsmanager-versions": "secrets_versions",
    "stepfunctions-start": "step_functions",
    "cloudformation-properties": "cfn_properties",
    "cloudformation-in-progress": "cfn_in_progress",
    "athena-workgroups": "athena_workgroups",
}
#: Probes that need another patch too: Scheduler's look at the role, and permission on an execution's
#: workgroup.
NOT_OFFERED = {"a_schedule_that_is_refused_fails_its_stack", "wants_permission_on_the_workgroup_of_a_query"}
CASES = [
    pytest.param(probe, id=f"{file}-{probe.__name__}")
    for file, patch in OFFERED.items()
    for probe in all_probes()[patch]
    if probe.__name__ not in NOT_OFFERED
]


def patch_file(name: str) -> Path:
    return FOLDER / f"{name}.patch"


def copy_source(folder: Path) -> Path:
    (source,) = (AWS_PYTHON.parents[1] / "lib").glob("python3*/site-packages/ministack")
    shutil.copytree(source, folder / "ministack", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def apply_patch(folder: Path, name: str) -> None:
    command = ["git", "apply", "--whitespace=error-all", str(patch_file(name))]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{name}.patch does not apply to the pinned MiniStack: {done.stderr}"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a folder with the pinned MiniStack."""
    return copy_source(tmp_path_factory.mktemp("pinned"))


@pytest.fixture(scope="module")
def patched(tmp_path_factory):
    """Return a folder with the pinned MiniStack and all patches."""
    folder = copy_source(tmp_path_factory.mktemp("patched"))
    for name in OFFERED:
        apply_patch(folder, name)
    return folder


@pytest.fixture(scope="module")
def patched_aws(patched):
    """Run stock MiniStack with all patches, and without those of this repository."""
    python = patched / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={patched} exec {AWS_PYTHON} "$@"\n')
    python.chmod(0o755)
    with EmbeddedAws(iam=True, stock=True, python=python) as server:
        yield Clients(server)


@pytest.mark.parametrize("name", OFFERED)
def test_each_applies_alone_and_compiles(source, tmp_path, name):
    touched = re.findall(r"^\+\+\+ b/(\S+)$", patch_file(name).read_text(), re.MULTILINE)
    for path in touched:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / path, tmp_path / path)
    apply_patch(tmp_path, name)
    assert touched
    assert compileall.compile_dir(tmp_path, quiet=1, force=True)


@pytest.mark.parametrize("name", OFFERED)
def test_each_says_why_where_and_how_to_reproduce_it(name):
    head = patch_file(name).read_text().partition("\n---\n")[0]
    assert "AWS documents it in" in head
    assert "To reproduce" in head


@pytest.mark.parametrize("probe", CASES)
def test_stock_with_the_patches_does_as_aws(patched_aws, probe):
    assert probe(patched_aws)


def test_the_table_has_every_patch():
    rows = re.findall(
        r"^\| (\w+) \| (?:\[([\w-]+)\.patch\]\(\S+\))? ?\| (.*)\|$",
        (FOLDER / "README.md").read_text(),
        re.MULTILINE,
    )
    rows = [row for row in rows if row[0] != "patch"]
    assert sorted(row[0] for row in rows) == sorted(patch.name for patch in PATCHES)
    assert {file: patch for patch, file, _ in rows if file} == OFFERED
    assert {file.stem for file in FOLDER.glob("*.patch")} == OFFERED.keys()
    assert all(reason.strip() for _, file, reason in rows if not file)
