"""The job's imports are in its zip or in Glue 5.1's list of packages, tested in an environment that has
nothing else.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from stacks import assets
from tests.support import shipped
from tests.support.assembly_kit import ROOT

LOCK = Path(__file__).with_name("glue_5_1.txt")


#: The zip is built with its packages.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def glue():
    """Return the interpreter of that environment. It is created once per hash of the lock file."""
    folder = ROOT / "build" / f"env-glue-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys._base_executable, folder],
            check=True,
            timeout=300,
        )
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", LOCK],
            check=True,
            timeout=300,
        )
        (folder / "ready").touch()
    return python


def run(glue, tmp_path, code):
    """Run code as Glue does: the zip is first on the path, and the script is a file of its own."""
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(assets.build_glue_zip())!r})\n{code}")
    return subprocess.run([glue, "-I", script], capture_output=True, text=True, cwd=tmp_path, timeout=120)


EVERYTHING = """
import importlib, zipfile
with zipfile.ZipFile(sys.path[0]) as archive:
    names = [n[:-3].replace("/", ".").removesuffix(".__init__") for n in archive.namelist()
             if n.startswith(("glue_jobs/", "config/")) and n.endswith(".py")]
for name in names:
    module = importlib.import_module(name)
    assert ".zip" in module.__file__, module.__file__
print(len(names))
"""


def test_every_module_of_the_job_is_imported(glue, tmp_path):
    done = run(glue, tmp_path, EVERYTHING)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 35


def test_the_script_finds_its_contracts_and_tells_its_version(glue, tmp_path):
    code = (
        "from config.exports import contracts\nfrom glue_jobs.platform import compute_code_version\n"
        "print(*contracts.names(), contracts.load('daily_trades').version, compute_code_version())"
    )
    done = run(glue, tmp_path, code)
    from glue_jobs.platform import compute_code_version

    *names, version, code = done.stdout.split()
    assert {*shipped.EXPORTS, *shipped.FLINK_EXPORTS} <= {*names}, done.stderr
    assert (version, code) == ("1", compute_code_version())


REPORT = f"""
sys.path.append({str(ROOT)!r})
from tests.support import samples
import jinja2, markupsafe
from glue_jobs.delivery import report
for module in (report, jinja2, markupsafe):
    assert ".zip" in module.__file__, module.__file__
sys.stdout.buffer.write(report.render_html(samples.weekly_sales(20)).encode())
"""


def test_the_zip_alone_renders_the_report(glue, tmp_path):
    """The zip includes the template, its style sheet, and the packages that render it."""
    done = run(glue, tmp_path, REPORT)
    assert done.returncode == 0, done.stderr
    script = f"import sys\nsys.path.append({str(ROOT)!r})" + REPORT.replace(
        'assert ".zip" in module.__file__', "assert True"
    )
    here = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == here.stdout, here.stderr
    assert done.stdout.startswith("<!DOCTYPE html>")


def test_the_script_runs_until_it_lacks_arguments(glue, tmp_path):
    """Glue starts export.py by its path, not as a module of the zip."""
    done = run(
        glue,
        tmp_path,
        f"import runpy\nsys.argv = ['export.py']\nrunpy.run_path({str(assets.locate_glue_script())!r}, "
        "run_name='__main__')",
    )
    assert done.returncode != 0
    assert "--export is missing" in done.stdout + done.stderr


def test_the_environment_has_nothing_else(glue, tmp_path):
    for absent in ("sqlglot", "requests", "pyiceberg", "lambdas"):
        assert "No module named" in run(glue, tmp_path, f"import {absent}").stderr


def test_a_dependency_that_is_not_in_the_zip_is_found(glue, tmp_path):
    script = tmp_path / "bare.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nimport config.exports.contract\n")
    done = subprocess.run([glue, "-I", script], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert "No module named 'cattrs'" in done.stderr
