"""Iceberg tables in a database that is named like a Kafka cluster: PyIceberg writes them, Spark reads them, IAM watches."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

from glue_jobs.contract import JARS
from lakeferry.local.java import use_java
from simulators.core.processes import ROOT

READS_TABLES = """
import json, os, sys
from pyspark.sql import SparkSession

settings = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]")
for name, value in settings["spark"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
answers = {}
for table in settings["tables"]:
    try:
        answers[table] = [row.asDict() for row in spark.sql(f"SELECT * FROM lake.{table} ORDER BY id").collect()]
    except Exception as error:
        answers[table] = str(error)
print("ANSWERS " + json.dumps(answers))
"""


def catalog_of(clients, warehouse):
    """PyIceberg's Glue catalog with the credentials of `clients`; its S3 client ignores AWS_ENDPOINT_URL."""
    credentials = clients._credentials
    properties = {"type": "glue", "warehouse": warehouse, "glue.skip-name-validation": "true"}
    for service in ("glue", "s3"):
        properties |= {
            f"{service}.endpoint": clients.server.url,
            f"{service}.region": clients.server.region,
            f"{service}.access-key-id": credentials["AccessKeyId"],
            f"{service}.secret-access-key": credentials["SecretAccessKey"],
        }
        if credentials["SessionToken"]:
            properties[f"{service}.session-token"] = credentials["SessionToken"]
    return load_catalog("lake", **properties)


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"row {each}" for each in ids], pa.string())})


@pytest.fixture(scope="module")
def lake(aws):
    """A bucket, a database, and a table in it with three rows."""
    bucket, database = aws.new_bucket(), aws.new_database()
    catalog = catalog_of(aws, f"s3://{bucket}")
    table = catalog.create_table((database, "orders"), rows().schema, location=f"s3://{bucket}/{database}/orders")
    table.append(rows(1, 2, 3))
    return bucket, database


def job_role(aws, bucket, database, table):
    """A role that may read one table and nothing else."""
    return aws.new_role(
        ("s3:GetObject", f"arn:aws:s3:::{bucket}/{database}/{table}/*"),
        (
            ["glue:GetTable", "glue:GetDatabase"],
            [aws.arn("glue", each) for each in ("catalog", f"database/{database}", f"table/{database}/{table}")],
        ),
    )


def test_two_writers_at_once_lose_nothing(aws, lake):
    bucket, database = lake
    catalog_of(aws, f"s3://{bucket}").create_table(
        (database, "shared"), rows().schema, location=f"s3://{bucket}/{database}/shared"
    )
    start = threading.Barrier(2, timeout=60)

    def write(first):
        """What was acknowledged, of what was tried; each refusal makes the writer read the table anew."""
        table, kept = catalog_of(aws, f"s3://{bucket}").load_table((database, "shared")), []
        start.wait()
        for number in range(first, first + 8):
            try:
                table.append(rows(number))
                kept.append(number)
            except CommitFailedException:
                table.refresh()
        return kept

    with ThreadPoolExecutor(2) as pool:
        acknowledged = sorted(itertools.chain.from_iterable(pool.map(write, (0, 100))))
    result = catalog_of(aws, f"s3://{bucket}").load_table((database, "shared")).scan().to_arrow()
    assert sorted(result["id"].to_pylist()) == acknowledged


def test_a_role_reads_its_table_and_writes_nothing(aws, lake):
    bucket, database = lake
    reader = catalog_of(aws.assuming(job_role(aws, bucket, database, "orders")), f"s3://{bucket}")
    table = reader.load_table((database, "orders"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        table.append(rows(4))


def test_spark_reads_the_table_as_the_role_that_may(aws, lake):
    bucket, database = lake
    catalog_of(aws, f"s3://{bucket}").create_table(
        (database, "hidden"), rows().schema, location=f"s3://{bucket}/{database}/hidden"
    )
    job = aws.assuming(job_role(aws, bucket, database, "orders"))
    spark = {
        "spark.jars": ",".join(str(ROOT / ".jars" / jar.file_name) for jar in JARS),
        "spark.ui.enabled": "false",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.lake.warehouse": f"s3://{bucket}",
        "spark.sql.catalog.lake.glue.skip-name-validation": "true",
    }
    tables = [f"`{database}`.orders", f"`{database}`.hidden"]
    environment = aws.server.environment(os.environ) | {
        "AWS_ACCESS_KEY_ID": job._credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": job._credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": job._credentials["SessionToken"],
        "JAVA_HOME": str(use_java()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", READS_TABLES, json.dumps({"spark": spark, "tables": tables})]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    result = [line for line in answer.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert result, answer.stderr
    seen, hidden = json.loads(result[0].removeprefix("ANSWERS ")).values()
    assert seen == [{"id": each, "name": f"row {each}"} for each in (1, 2, 3)]
    assert "AccessDenied" in hidden
