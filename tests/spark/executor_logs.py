"""Starts the job's session on executors of their own, whose class path lacks hive-beeline, and prints what
they log of a failure.

`python executor_logs.py VALUE [LOG4J_FILE]`: VALUE is a text that a cast fails on. With LOG4J_FILE, executors
ignore the job's options of Log4j and use this configuration, as a service with options of its own could make
them.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from glue_jobs import session
from lakeferry.local import spark as local_spark

MASTER = "local-cluster[2,1,1024]"
#: A `java` that replaces the options of Log4j on executors. The shell keeps all other words as they are.
_JAVA = """#!/bin/bash
words=()
for word in "$@"; do [[ $word == -Dlog4j* && "$*" == *CoarseGrainedExecutorBackend* ]] || words+=("$word"); done
exec {java} -Dlog4j2.configurationFile={file} "${{words[@]}}"
"""


def main() -> None:
    value, *log4j = sys.argv[1:]
    java_home = local_spark.prepare(master=MASTER)
    home = Path(os.environ["SPARK_HOME"])
    leave_out_beeline(home)
    for file in log4j:
        os.environ["JAVA_HOME"] = str(java_with_options(home / "java", java_home, file))
    spark = session.activate(session.start("s3://warehouse/warehouse"))
    rows = spark.createDataFrame([(value,)], "text string").repartition(4)
    failed = False
    try:
        rows.select(F.col("text").cast("bigint")).collect()
    except (PySparkException, Py4JJavaError):
        failed = True
    logs = "".join(file.read_text(errors="replace") for file in home.glob("work/*/*/std*"))
    local_spark.end(java_home)
    sys.stdout.write(f"failed: {failed}\n{logs}")


def leave_out_beeline(home: Path) -> None:
    jars = home / "jars"
    package = jars.resolve()
    jars.unlink()
    jars.mkdir()
    for jar in package.iterdir():
        if not jar.name.startswith("hive-beeline"):
            (jars / jar.name).symlink_to(jar)


def java_with_options(folder: Path, java_home: Path, file: str) -> Path:
    """Return a Java home whose `java` reads the Log4j configuration `file`."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA.format(java=shlex.quote(str(java_home / "bin" / "java")), file=shlex.quote(file)))
    java.chmod(0o700)
    return folder


if __name__ == "__main__":
    main()
