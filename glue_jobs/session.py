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

#: PySpark 4 writes each error of Spark's to these, with the values that an expression failed on. The job names causes itself.
_ERROR_LOGS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def start(warehouse: str) -> SparkSession:
    """Start the session, or return the one that runs. What a JVM reads when it starts must come through `--conf`."""
    for log in _ERROR_LOGS:
        logging.getLogger(log).disabled = True
    builder = SparkSession.builder.appName("lakeferry-export")
    for name, value in spark_settings(warehouse).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Spark's 200 is for large clusters: here each of those tasks would be empty. What needs another number says so.
    session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    return session


def start_in_background(warehouse: str) -> Callable[[], SparkSession]:
    """Start the session while the run reads what it needs to plan. The function waits for it, and raises what went wrong."""
    started: Future[SparkSession] = Future()

    def run() -> None:
        try:
            started.set_result(start(warehouse))
        except BaseException as error:  # raised again where the session is asked for
            started.set_exception(error)

    # A daemon, so that a run which fails before it needs Spark does not wait for it.
    threading.Thread(target=run, daemon=True).start()
    return started.result
