"""Runs the queries that come on stdin in Spark, on the Glue catalog that the environment names; answers on
stdout.

{"jars": [path, …], "queries": {name: SQL}} gives {name: [row, …]}, or the error's text in place of the rows.
"""

import json
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "spark.sql.catalog.lake.warehouse": "s3://unused/",
    "spark.sql.catalog.lake.glue.skip-name-validation": "true",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}


def main():
    asked = json.load(sys.stdin)
    builder = SparkSession.builder.config("spark.jars", ",".join(asked["jars"]))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    json.dump(
        {name: answer(spark, query) for name, query in asked["queries"].items()}, sys.stdout, default=str
    )


def answer(spark, query):
    try:
        return [row.asDict(recursive=True) for row in spark.sql(query).collect()]
    except Exception as error:
        return str(error)


if __name__ == "__main__":
    main()
