"""Set up Spark for the job on this machine: master, jars, memory, and an archive of the JVM's classes.

The first run writes the archive of loaded classes and later runs map it, which saves seconds at each start. A
JVM that can't use it loads classes as usual. (JDK 17, "Dynamic AppCDS archive", JEP 350.)
"""

from __future__ import annotations

import hashlib
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

from glue_jobs.platform import RELEASES, SPARK_SETTINGS
from lakeferry.local.bootstrap import ROOT, locate_jar
from lakeferry.local.java import locate_base_archive, use_java

LOCAL: Final = "local[2]"
#: The version of Glue with the Spark of this environment, which is .venv or .venv-glue6.
GLUE_VERSION: Final = next(
    version for version, release in RELEASES.items() if release.spark == pyspark.__version__
)
_RELEASE: Final = RELEASES[GLUE_VERSION]
_JARS: Final = [locate_jar(_RELEASE, jar) for jar in _RELEASE.jars]
_MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|spark://.+|k8s://.+|yarn"
)
_DRIVER_MEMORY: Final = "640m"
_LOOPBACK: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_JAVA_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    # A run is short, so compiling takes most of its time. Less inlining halves that, at no measurable cost
    # for long runs.
    *("-XX:MaxInlineLevel=9", "-XX:FreqInlineSize=150", "-XX:InlineSmallCode=1000"),
    # Java's optimising compiler (C2) starts ten times later than by default: a short run ends before it pays
    # off.
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
)
# Otherwise a JVM that can't use the archive says so on every start.
_QUIET: Final = ("-Xlog:disable", "-Xlog:all=off")
_HOME_PREFIX: Final = "lakeferry-spark-"


class NotSetUp(Exception):
    """Something that `make setup` installs is missing."""


class BadMaster(Exception):
    """The text is not a master URL of Spark."""


def prepare(
    *, master: str = LOCAL, code: Callable[[], Path] | None = None, write_archive: bool = True
) -> Path:
    """Set what pyspark reads when it starts its JVM, and return the Java home. Raises NotSetUp or BadMaster.

    `code` builds the zip that ships with the Glue job, from which executors outside of this process import
    the job. Without `write_archive`, the archive of classes is used if it exists, and not written.
    """
    if not _MASTER.fullmatch(master):
        raise BadMaster(f"{master} is not a Spark master")
    if missing := [jar.name for jar in _JARS if not jar.exists()]:
        raise NotSetUp(
            f"{', '.join(missing)} not found in {_JARS[0].parent.relative_to(ROOT)}. Run `make setup`"
        )
    try:
        java_home = use_java()
    except RuntimeError as error:
        raise NotSetUp(str(error)) from None
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    arguments = ["--master", master, "--driver-memory", _DRIVER_MEMORY]
    settings = {**SPARK_SETTINGS, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    java_options = [*_JAVA_OPTIONS]
    if not is_cluster(master) and (write_archive or _archive(java_home).exists()):
        java_options += _choose_archive_options(java_home)
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= _LOOPBACK
        # Not --jars: every class would be loaded by Spark's own class loader, whose classes can't be
        # archived. Not --driver-class-path: the jars would come before Spark's own.
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, _JARS))
    else:
        arguments += ["--jars", ",".join(map(str, _JARS))]
    if is_cluster(master) and code is not None:
        arguments += ["--py-files", str(code())]
    if master.startswith("local-cluster"):
        settings |= _use_own_home()
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    os.environ["SPARK_SUBMIT_OPTS"] = shlex.join(java_options)
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*arguments, "pyspark-shell"])
    return java_home


def is_cluster(master: str) -> bool:
    """Return whether executors are separate processes."""
    return re.fullmatch(r"local(\[.*\])?", master) is None


def _use_own_home() -> dict[str, str]:
    """Return settings for a local cluster, and set SPARK_HOME to a folder of links: workers write below it,
    and .venv is shared.

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
    os.environ["SPARK_SCALA_VERSION"] = _RELEASE.scala  # otherwise Spark looks for it in a source tree
    os.environ["PYSPARK_PYTHON"] = str(python)
    return {"spark.executorEnv.PYTHONPATH": sysconfig.get_path("purelib")}


def end(java_home: Path) -> None:
    """End the JVM, if one was started.

    The first one on a machine takes some seconds longer to write its archive.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    gateway.shutdown()
    jvm: Any = gateway.proc
    unfinished = _name_unfinished(_archive(java_home))
    jvm.stdin.close()  # makes it exit
    try:
        jvm.wait()
        if unfinished.exists():
            unfinished.replace(_archive(java_home))
    finally:
        jvm.kill()
        unfinished.unlink(missing_ok=True)  # left by a JVM that was killed while it wrote
        SparkContext._gateway = SparkContext._jvm = None
        home = Path(os.environ["SPARK_HOME"])
        if home.name.startswith(_HOME_PREFIX):
            shutil.rmtree(home, ignore_errors=True)


def _choose_archive_options(java_home: Path) -> list[str]:
    """Return the options that make the JVM use the archive, or write it when it exits."""
    archive = _archive(java_home)
    if archive.exists():
        return [*_QUIET, f"-XX:SharedArchiveFile={archive}"]
    if can_write_archive(java_home):
        return [*_QUIET, f"-XX:ArchiveClassesAtExit={_name_unfinished(archive)}"]
    return []


def can_write_archive(java_home: Path) -> bool:
    """Return whether the next JVM to end writes the archive.

    Without the archive of Java's own classes, it would not start.
    """
    archive = _archive(java_home)
    return (
        not archive.exists()
        and locate_base_archive(java_home).exists()
        and os.access(archive.parent, os.W_OK)
    )


def _archive(java_home: Path) -> Path:
    """Return the archive of this Java and these jars."""
    release = java_home / "release"
    java = release.read_text() if release.exists() else str(java_home)
    marks = [java, _RELEASE.spark, *(jar.sha512 for jar in _RELEASE.jars)]
    digest = hashlib.sha256("".join(marks).encode()).hexdigest()
    return _JARS[0].with_name(f"classes-{digest[:12]}.jsa")


def _name_unfinished(archive: Path) -> Path:
    return archive.with_suffix(f".{os.getpid()}.unfinished")
