"""The environment in which a laptop runs the job that Glue runs: master, jars and memory. The job itself knows none of it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from glue_jobs.contract import JARS
from lakeferry import class_archive
from lakeferry.bootstrap import JAR_DIR
from lakeferry.java import use_java

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
}
_JAVA_OPTIONS = (
    "-XX:+UseParallelGC",
    # A run is short, so compiling is most of it: less inlining halves that, and costs a long run nothing measurable.
    *("-XX:MaxInlineLevel=9", "-XX:FreqInlineSize=150", "-XX:InlineSmallCode=1000"),
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
)


class NotSetUp(Exception):
    """Something that `make setup` brings is missing."""


def prepare(*, cores: int = 2, memory: str = "1g") -> Path:
    """Sets what pyspark reads when it starts its JVM, and returns the Java's home. Raises NotSetUp."""
    jars = [JAR_DIR / jar.file_name for jar in JARS]
    if missing := [jar.name for jar in jars if not jar.exists()]:
        raise NotSetUp(f"{', '.join(missing)} not found in {JAR_DIR.name}. Run `make setup`")
    try:
        java_home = use_java()
    except RuntimeError as error:
        raise NotSetUp(str(error)) from None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java_options = [*_JAVA_OPTIONS, *class_archive.options(java_home)]
    # Not --jars, which makes every class load through a class loader of Spark's own, and no archive covers those; and
    # behind Spark's jars, not before them as --driver-class-path would have it.
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, jars))
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(_arguments(java_options, cores, memory))
    return java_home


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


def _arguments(java_options: list[str], cores: int, memory: str) -> list[str]:
    options = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    return [
        *("--master", f"local[{cores}]"),
        *("--driver-memory", memory),
        *("--driver-java-options", " ".join(java_options)),
        *options,
        "pyspark-shell",
    ]
