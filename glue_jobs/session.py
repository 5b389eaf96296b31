"""The Spark session: the same under Glue and on a laptop.

What differs between the two (master, jars, memory, endpoints) comes from the environment that starts the process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from pyspark.sql import SparkSession

from glue_jobs.contract import spark_settings

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
