"""Assets are built from locked wheels, are the same whenever and wherever they are built, and work without
other packages.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args, get_type_hints

import attrs
import boto3
import pytest

from config.deployments.model import Aws
from dev import audit, sbom
from glue_jobs.platform import NOT_SHIPPED
from lambdas import contract
from stacks import assets
from tests.support.assembly_kit import ROOT

HANDLERS = [contract.CUSTOM_RESOURCE, contract.CLEANUP, contract.ROTATE, contract.NOTIFY, contract.WATCH]
#: Lambda's limit is 250 MB, and a cold start reads all of it.
MEGABYTES = 40


def files(folder):
    return sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())


#: Platforms and versions of Python that a deployment file may choose.
PYTHONS = get_args(get_type_hints(Aws)["lambda_python"])


@pytest.mark.parametrize("platform", [assets.aws(PYTHONS[0]), assets.LOCAL], ids=["aws", "here"])
def test_two_builds_are_the_same_bytes(platform, tmp_path):
    one, other = (assets.build_lambda_folder(platform, tmp_path / name) for name in ("one", "other"))
    assert one.name == other.name
    assert files(one) == files(other)
    assert filecmp.cmpfiles(one, other, files(one), shallow=False)[1:] == ([], [])


def test_two_zips_are_the_same_bytes(tmp_path):
    one, other = (assets.build_glue_zip(tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_an_asset_that_is_already_built_needs_no_network_and_no_uv(tmp_path, monkeypatch):
    first = assets.build_lambda_folder(assets.LOCAL, tmp_path)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert assets.build_lambda_folder(assets.LOCAL, tmp_path) == first


def test_a_build_without_uv_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(assets.BuildFailed, match="make setup"):
        assets.build_glue_zip(tmp_path / "build")


@pytest.mark.parametrize("python", PYTHONS)
def test_only_wheels_for_the_platform_and_no_bytecode_ship(python):
    names = [file.as_posix() for file in files(assets.build_lambda_folder(assets.aws(python)))]
    native = [name for name in names if name.endswith(".so")]
    assert native
    assert all("aarch64" in name or "abi3" in name for name in native)
    assert not [name for name in names if name.endswith(".pyc") or name.startswith(("bin/", "tests/"))]
    assert not [name for name in names if "boto" in name.partition("/")[0]], "AWS's runtime has it"


def test_functions_ship_for_the_python_that_these_tests_run_on():
    assert attrs.fields(Aws).lambda_python.default == f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize("file", [".github/workflows/check.yml", "docs/ci/gitlab-ci.yml"])
def test_ci_runs_the_tests_of_the_functions_on_every_other_python_that_a_deployment_may_choose(file):
    """They run on the default version anyway."""
    (listed,) = re.findall(r"(?:LAMBDA_PYTHON|python): (\[[^]]*\])", (ROOT / file).read_text())
    assert json.loads(listed) == list(PYTHONS[1:])


def test_the_folder_is_small():
    folder = assets.build_lambda_folder(assets.aws(PYTHONS[0]))
    assert sum((folder / file).stat().st_size for file in files(folder)) < MEGABYTES * 2**20


def test_versions_are_those_that_the_tests_run_with():
    lock = (ROOT / "requirements.txt").read_text()
    for name in ("lambdas", "glue_jobs"):
        for line in (ROOT / name / "requirements.txt").read_text().splitlines():
            if "==" in line and not line.startswith(" "):
                assert line.partition(" ")[0] in lock, line


@pytest.fixture(scope="module")
def clean():
    """The asset for this machine, and an interpreter without other packages than boto3."""
    folder = assets.build_lambda_folder(assets.LOCAL)
    packages = Path(boto3.__file__).parents[1]
    boto = [packages / name for name in ("boto3", "botocore", "jmespath", "s3transfer", "dateutil", "six.py")]
    return folder, boto


def run(clean, tmp_path, code):
    folder, boto = clean
    runtime = tmp_path / "runtime"
    runtime.mkdir(exist_ok=True)
    for item in boto:
        if not (runtime / item.name).exists():
            (runtime / item.name).symlink_to(item)
    script = (
        f"import sys; sys.path[:0] = [{str(folder)!r}]; sys.path.append({str(runtime)!r}); "
        f"sys.dont_write_bytecode = True; {code}"
    )
    environment = {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1", "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys._base_executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=120,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("handler", HANDLERS)
def test_each_handler_is_imported_by_a_clean_interpreter(handler, clean, tmp_path):
    module, _, function = handler.rpartition(".")
    done = run(
        clean,
        tmp_path,
        f"import importlib; print(callable(getattr(importlib.import_module({module!r}), {function!r})))",
    )
    assert (done.stdout.strip(), done.returncode) == ("True", 0), done.stderr


def test_a_missing_dependency_is_found(clean, tmp_path):
    done = run(clean, tmp_path, "import pyspark")
    assert "No module named 'pyspark'" in done.stderr


def test_the_zip_has_the_imports_of_the_script_and_fixed_timestamps():
    with zipfile.ZipFile(assets.build_glue_zip()) as archive:
        assert archive.testzip() is None
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        names = archive.namelist()
    assert names == sorted(names)
    assert {
        "glue_jobs/export.py",
        "config/exports/contract.py",
        "project/exports/daily_trades.toml",
        "attrs/__init__.py",
        "cattrs/__init__.py",
    } <= set(names)
    assert not [name for name in names if name.startswith(("lambdas/", "tests/")) or name.endswith(".pyc")]


def test_pure_python_only_in_the_zip():
    with zipfile.ZipFile(assets.build_glue_zip()) as archive:
        assert not [name for name in archive.namelist() if Path(name).suffix in (".so", ".pyd")]


def test_the_zip_is_the_same_whatever_machine_built_it():
    """It has no compiled code, and no file that names the platform of a wheel."""
    with zipfile.ZipFile(assets.build_glue_zip()) as archive:
        names = archive.namelist()
    assert "markupsafe/_native.py" in names
    assert not [
        name for name in names if Path(name).name.startswith("_speedups") or Path(name).name == "WHEEL"
    ]


@pytest.mark.parametrize(
    "names", [lambda: zipfile.ZipFile(assets.build_glue_zip()).namelist(), lambda: shipped(assets.LOCAL)]
)
def test_checks_for_authors_ship_nowhere(names):
    assert "config/exports/contract.py" in names()
    assert not set(NOT_SHIPPED) & set(names())


def shipped(platform):
    return [file.as_posix() for file in files(assets.build_lambda_folder(platform))]


def installed(folder):
    """Return names and versions of the packages in an asset, from their own metadata."""
    found = set()
    for metadata in folder.glob("*.dist-info/METADATA"):
        lines = metadata.read_text(encoding="utf-8").splitlines()
        fields = dict(
            line.split(": ", 1)
            for line in lines[: lines.index("")]
            if ": " in line and not line.startswith(" ")
        )
        found.add((fields["Name"].lower().replace("_", "-"), fields["Version"]))
    return found


def test_each_bill_of_materials_lists_what_is_in_its_asset(tmp_path):
    with zipfile.ZipFile(assets.build_glue_zip()) as archive:
        archive.extractall(tmp_path)
    python = PYTHONS[0]
    for asset, folder in (
        (sbom.functions(python), assets.build_lambda_folder(assets.aws(python))),
        (sbom.GLUE, tmp_path),
    ):
        bill = json.loads(sbom.document(asset))
        assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["name"]) == (
            "CycloneDX",
            "1.6",
            asset.name,
        )
        listed = {(part["name"].lower().replace("_", "-"), part["version"]) for part in bill["components"]}
        assert listed == installed(folder)
        assert {part["purl"] for part in bill["components"]} == {
            f"pkg:pypi/{name}@{version}" for name, version in listed
        }


def test_a_package_that_is_locked_for_another_system_is_not_in_the_bill(tmp_path):
    lock = tmp_path / "requirements.txt"
    lock.write_text(
        "a==1 \\\n    --hash=sha256:00\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n# c==3\n"
    )
    found = sbom.requirements(sbom.Asset("x", lock, sbom.GLUE.environment))
    assert [requirement.name for requirement in found] == ["a"]


@pytest.mark.parametrize(
    ("dependencies", "wrong"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], []),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}],
            ["a 1: PYSEC-1 (fixed in 2)"],
        ),
        ([{"name": "a", "skip_reason": "unreachable"}], ["a: not looked up: unreachable"]),
        ([], ["no package was looked up"]),
    ],
)
def test_an_audit_fails_for_vulnerable_and_for_unknown_packages(dependencies, wrong):
    assert list(audit.findings(json.dumps({"dependencies": dependencies, "fixes": []}))) == wrong


def test_every_lock_is_audited():
    own = (lock.relative_to(ROOT) for lock in ROOT.glob("**/requirements*.txt"))
    made = ("build", "out", "node_modules", ".venv")
    assert {str(lock) for lock in own if not lock.parts[0].startswith(made)} == set(audit.LOCKS)
