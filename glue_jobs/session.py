"""The Spark session: the same under Glue and on a laptop.

What differs between the two (master, jars, memory, endpoints) comes from the environment that starts the
process.

Spark reads the settings with which it builds an expression, ANSI mode among them, from the session that is
active in the current thread; in a thread without one, it uses its own defaults. So a thread that builds
expressions must `activate` the session first.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final
from zipimport import zipimporter

from pyspark.sql import SparkSession

from glue_jobs.errors import Inconsistent
from glue_jobs.platform import SPARK_SETTINGS, spark_settings

#: Loggers of PySpark 4 for Spark's errors, with the values on which an expression failed. The job logs the
#: cause itself.
_ERROR_LOGS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Log4j's root logger, and loggers with the errors of tasks.
_TASK_LOGS: Final = (
    "",
    "org.apache.spark",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.util.Utils",
)


def start(warehouse: str, region: str = "") -> SparkSession:
    """Start the session, or return the running one. Settings that a JVM reads when it starts must be passed
    by `--conf`.

    Without `region`, Iceberg takes the region of the environment.
    """
    for log in _ERROR_LOGS:
        logging.getLogger(log).disabled = True
    builder = SparkSession.builder.appName("lakeferry-export")
    for name, value in spark_settings(warehouse, region).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    _set_up_driver(session)
    _set_up_executors(session)
    # Spark's default, 200, is for large clusters: here, these tasks would be nearly empty. Code with other
    # needs sets it.
    session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    return session


def _set_up_driver(session: SparkSession) -> None:
    """Set language, time zone and log levels of the driver's JVM.

    AWS does not document that Java options reach it.
    """
    jvm: Any = session._jvm
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.ENGLISH)
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    fatal = jvm.org.apache.logging.log4j.Level.FATAL
    for logger in _log4j_loggers(session):
        if logger.getLevel().isLessSpecificThan(fatal):
            logger.setLevel(fatal)
    jvm.org.apache.logging.log4j.LogManager.getContext(False).updateLoggers()


def _set_up_executors(session: SparkSession) -> None:
    """Send the job's zip to executors that are processes of their own, and set the log levels of those that
    are running.

    AWS documents `--extra-py-files` for the driver only. Executors that start later have the levels of their
    Java options.
    """
    context = session.sparkContext
    loader = sys.modules[__name__].__loader__
    if isinstance(loader, zipimporter):  # otherwise the job runs from a checkout
        context.addPyFile(loader.archive)
    if context._jsc.isLocal():
        return
    names = {*_TASK_LOGS, *(logger.getName() for logger in _log4j_loggers(session))}
    configurator = "org.apache.logging.log4j.core.config.Configurator"
    set_levels = [f"java_method('{configurator}', 'setLevel', '{name}', 'FATAL')" for name in sorted(names)]
    tasks = 4 * context.defaultParallelism
    session.range(0, tasks, 1, tasks).selectExpr(*set_levels).collect()


def _log4j_loggers(session: SparkSession) -> list[Any]:
    """Return the loggers of the driver that have a level of their own."""
    jvm: Any = session._jvm
    return list(
        jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration().getLoggers().values()
    )


def start_in_background(warehouse: str, region: str = "") -> Callable[[], SparkSession]:
    """Start the session in a thread while the run plans.

    The returned function waits for the session, and raises its error.
    """
    started: Future[SparkSession] = Future()

    def run() -> None:
        try:
            started.set_result(start(warehouse, region))
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
    active = jvm.org.apache.spark.sql.internal.SQLConf.get()
    settings = {name: value for name, value in SPARK_SETTINGS.items() if name.startswith("spark.sql.")}
    differing = [name for name, value in settings.items() if active.getConfString(name, "") != value]
    if differing:
        raise Inconsistent(
            "EXP-SETTINGS",
            f"Spark has other values for {', '.join(differing)} than the job needs, so results could be "
            "wrong",
        )
    return session
