"""The Spark session: the same under Glue and on a laptop.

What differs between the two (master, jars, memory, endpoints) comes from the environment that starts the process.

Spark reads the settings with which it builds an expression, ANSI mode among them, from the session that is active in the current
thread; in a thread without one, it uses its own defaults. So a thread that builds expressions must `activate` the session first.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from pyspark.sql import SparkSession

from glue_jobs.contract import SPARK_SETTINGS, spark_settings
from glue_jobs.errors import Inconsistent

#: Loggers of PySpark 4 for Spark's errors, with the values on which an expression failed. The job logs the cause itself.
_ERROR_LOGS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def start(warehouse: str) -> SparkSession:
    """Start the session, or return the running one. Settings that a JVM reads when it starts must be passed by `--conf`."""
    for log in _ERROR_LOGS:
        logging.getLogger(log).disabled = True
    builder = SparkSession.builder.appName("lakeferry-export")
    for name, value in spark_settings(warehouse).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Spark's default, 200, is for large clusters: here, these tasks would be nearly empty. Code with other needs sets it.
    session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    return session


def start_in_background(warehouse: str) -> Callable[[], SparkSession]:
    """Start the session in a thread while the run plans. The returned function waits for the session, and raises its error."""
    started: Future[SparkSession] = Future()

    def run() -> None:
        try:
            started.set_result(start(warehouse))
        except BaseException as error:  # the returned function raises it again
            started.set_exception(error)

    # A daemon thread, so that a run that fails before it needs Spark does not wait for it.
    threading.Thread(target=run, daemon=True).start()
    return started.result


def activate(session: SparkSession) -> SparkSession:
    """Make `session` the one whose settings Spark uses in the calling thread, and return it.

    Raises Inconsistent if an expression that is built in this thread would not have the settings of the job.
    """
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    seen = jvm.org.apache.spark.sql.internal.SQLConf.get()
    wanted = {name: value for name, value in SPARK_SETTINGS.items() if name.startswith("spark.sql.")}
    differing = [name for name, value in wanted.items() if seen.getConfString(name, "") != value]
    if differing:
        raise Inconsistent(
            "EXP-SETTINGS",
            f"Spark has other values for {', '.join(differing)} than the job needs, so results could be wrong",
            "Start the job with the settings of its deployment (the argument --conf), and don't change them for a run",
        )
    return session
