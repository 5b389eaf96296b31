"""The Spark session: one function, the same under Glue and on a laptop.

What differs between the two (master, jars, memory, endpoints) comes from the environment that starts the process.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from glue_jobs.contract import spark_settings


def start(warehouse: str) -> SparkSession:
    builder = SparkSession.builder.appName("lakeferry-export")
    for name, value in spark_settings(warehouse).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Spark logs the values that an expression failed on. We tell causes ourselves, without values.
    session.sparkContext.setLogLevel("FATAL")
    # Case beyond ASCII follows the language of the machine: in Turkish, I is not the capital of i. Glue's workers have none.
    jvm: Any = session._jvm
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.ROOT)
    return session
