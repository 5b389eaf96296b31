"""The environment in which a command runs the job that Glue runs: master, jars and memory. The job itself knows none of it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkContext

from glue_jobs.contract import JARS, SPARK_SETTINGS
from lakeferry.local import class_archive
from lakeferry.local.bootstrap import JAR_DIR
from lakeferry.local.java import use_java

LOCAL: Final = "local[2]"
_MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|spark://.+|k8s://.+|yarn"
)
_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_JAVA_OPTIONS: Final = (
    "-XX:+UseParallelGC",
    # A run is short, so compiling is most of it: less inlining halves that, and costs a long run nothing measurable.
    *("-XX:MaxInlineLevel=9", "-XX:FreqInlineSize=150", "-XX:InlineSmallCode=1000"),
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
)
_HOME_PREFIX: Final = "lakeferry-spark-"


class NotSetUp(Exception):
    """Something that `make setup` brings is missing."""


class BadMaster(Exception):
    """Not a master that Spark knows."""


def prepare(*, master: str = LOCAL, memory: str = "1g", code: Callable[[], Path] | None = None) -> Path:
    """Sets what pyspark reads when it starts its JVM, and returns the Java's home. Raises NotSetUp or BadMaster.

    `code` builds the zip that ships with the Glue job. Executors outside of this process import the job from it and from
    nowhere else; a master without such executors needs none.
    """
    if not _MASTER.fullmatch(master):
        raise BadMaster(f"{master} is not a Spark master")
    jars = [JAR_DIR / jar.file_name for jar in JARS]
    if missing := [jar.name for jar in jars if not jar.exists()]:
        raise NotSetUp(f"{', '.join(missing)} not found in {JAR_DIR.name}. Run `make setup`")
    try:
        java_home = use_java()
    except RuntimeError as error:
        raise NotSetUp(str(error)) from None
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    arguments = ["--master", master, "--driver-memory", memory]
    settings = {**SPARK_SETTINGS, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    java_options = [*_JAVA_OPTIONS]
    if not is_cluster(master):
        java_options += class_archive.options(java_home)
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= _LOOPBACK
        # Not --jars, which makes every class load through a class loader of Spark's own, and no archive covers those; and
        # behind Spark's jars, not before them as --driver-class-path would have it.
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, jars))
    else:
        arguments += ["--jars", ",".join(map(str, jars))]
    if is_cluster(master) and code is not None:
        arguments += ["--py-files", str(code())]
    if master.startswith("local-cluster"):
        settings |= _use_own_home()
    arguments += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    os.environ["SPARK_SUBMIT_OPTS"] = shlex.join(java_options)
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*arguments, "pyspark-shell"])
    return java_home


def is_cluster(master: str) -> bool:
    """Whether executors are processes of their own."""
    return re.fullmatch(r"local(\[.*\])?", master) is None


def executor_logs() -> list[Path]:
    """What executors of a local cluster wrote to their standard output and error, until `end`."""
    return [file for name in ("stdout", "stderr") for file in Path(os.environ["SPARK_HOME"], "work").glob(f"*/*/{name}")]


def _use_own_home() -> dict[str, str]:
    """Settings for a local cluster, and a SPARK_HOME of links, because its workers write below it and .venv is shared.

    Python on executors starts without `site`, which would make this project importable from the tree.
    """
    home = Path(tempfile.mkdtemp(prefix=_HOME_PREFIX))
    package = Path(pyspark.__file__).parent
    for part in ("bin", "jars", "python"):
        (home / part).symlink_to(package / part)
    python = home / "worker-python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    python.chmod(0o700)
    os.environ["SPARK_HOME"] = str(home)
    os.environ["SPARK_SCALA_VERSION"] = "2.12"  # else Spark looks for it in a source tree
    os.environ["PYSPARK_PYTHON"] = str(python)
    return {"spark.executorEnv.PYTHONPATH": sysconfig.get_path("purelib")}


def end(java_home: Path) -> None:
    """Ends the JVM, if one was started. The first one on a machine takes some seconds, in which it writes its archive."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    gateway.shutdown()
    jvm: Any = gateway.proc
    jvm.stdin.close()  # what tells it to end
    try:
        jvm.wait()
        class_archive.keep(java_home)
    finally:
        jvm.kill()
        class_archive.drop(java_home)
        SparkContext._gateway = SparkContext._jvm = None
        home = Path(os.environ["SPARK_HOME"])
        if home.name.startswith(_HOME_PREFIX):
            shutil.rmtree(home, ignore_errors=True)
