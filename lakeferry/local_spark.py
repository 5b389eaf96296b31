"""The environment in which a laptop runs the job that Glue runs: master, jars and memory. The job itself knows none of it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from glue_jobs.contract import JARS
from lakeferry.bootstrap import JAR_DIR
from lakeferry.java import use_java

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
}
_JAVA_OPTIONS = f"-XX:+UseParallelGC -Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"


class NotSetUp(Exception):
    """Something that `make setup` brings is missing."""


def prepare(*, cores: int = 2, memory: str = "1g") -> None:
    """Sets what pyspark reads when it starts its JVM. Raises NotSetUp."""
    jars = [JAR_DIR / jar.file_name for jar in JARS]
    if missing := [jar.name for jar in jars if not jar.exists()]:
        raise NotSetUp(f"{', '.join(missing)} not found in {JAR_DIR.name}. Run `make setup`")
    try:
        use_java()
    except RuntimeError as error:
        raise NotSetUp(str(error)) from None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(_arguments(jars, cores, memory))


def _arguments(jars: list[Path], cores: int, memory: str) -> list[str]:
    options = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    return [
        *("--master", f"local[{cores}]"),
        *("--driver-memory", memory),
        *("--jars", ",".join(map(str, jars))),
        *("--driver-java-options", _JAVA_OPTIONS),
        *options,
        "pyspark-shell",
    ]
