"""The Spark session: one function, the same under Glue and on a laptop.

What differs between the two (master, jars, memory, endpoints) comes from the environment that starts the process.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from glue_jobs.contract import spark_settings


def start(warehouse: str) -> SparkSession:
    """Starts the session, or returns the one that runs. What a JVM reads when it starts must come through `--conf`."""
    builder = SparkSession.builder.appName("lakeferry-export")
    for name, value in spark_settings(warehouse).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
