"""The embedded AWS of the benchmarks and its tables, kept between runs because writing them takes minutes."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.exceptions import ClientError
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.table import Table

from dev.benchmarks import sales_table
from dev.benchmarks.shapes import Shape
from lakeferry.local.target import STATE
from simulators.aws.server import EmbeddedAws

DATABASE = "lkc-bench"
SOURCE = "bench-lake"
TARGET = "bench-exports"
SECRET = "bench/pseudonyms"
FOLDER = STATE / "bench"


@contextmanager
def start_embedded() -> Iterator[EmbeddedAws]:
    """Start the embedded AWS, and set `AWS_ENDPOINT_URL` and credentials in the environment of this process
    and its children.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with EmbeddedAws(state_dir=FOLDER) as aws:
        os.environ.update(aws.environment(dict(os.environ)))
        _prepare()
        yield aws
        empty_target()


def ensure(aws: EmbeddedAws, shape: Shape) -> Table:
    """Return the table. It is written first, unless an earlier run has written it completely."""
    where = {"s3.endpoint": aws.url, "s3.region": aws.region}
    catalog = GlueCatalog("bench", client=None, **{"glue.skip-name-validation": "true"}, **where)
    if catalog.table_exists((DATABASE, shape.name)):
        table = catalog.load_table((DATABASE, shape.name))
        snapshot = table.current_snapshot()
        if snapshot and snapshot.summary and snapshot.summary["total-records"] == str(shape.rows):
            return table
        catalog.drop_table((DATABASE, shape.name))
    print(f"  writing {shape.name} …", flush=True)
    return sales_table.write(catalog, DATABASE, f"s3://{SOURCE}/lake", shape)


def empty_target() -> None:
    """Delete what was published: each run's 400 MB would fill the disk of a long comparison."""
    boto3.resource("s3").Bucket(TARGET).objects.all().delete()


def read_data_sha256(prefix: str) -> str:
    """Return the hash of the one data file that a run published below the prefix, from its manifest."""
    (file,) = [entry for entry in _read_document(prefix, "manifests")["files"] if entry["role"] == "data"]
    return str(file["sha256"])


def read_phases(prefix: str) -> dict[str, float]:
    """Return the seconds of each phase of the one run that published below the prefix, from its run
    record.
    """
    return dict(_read_document(prefix, "runs")["phases"])


def _read_document(prefix: str, kind: str) -> dict[str, Any]:
    s3 = boto3.client("s3")
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=TARGET, Prefix=f"{prefix}/")["Contents"]]
    (key,) = [key for key in keys if f"/{kind}/" in key]
    return dict(json.loads(s3.get_object(Bucket=TARGET, Key=key)["Body"].read()))


def _prepare() -> None:
    s3 = boto3.client("s3")
    for bucket in (SOURCE, TARGET):
        try:
            s3.head_bucket(Bucket=bucket)
        except ClientError:
            region: Any = os.environ["AWS_REGION"]
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
    secrets = boto3.client("secretsmanager")
    try:
        secrets.describe_secret(SecretId=SECRET)
    except secrets.exceptions.ResourceNotFoundException:
        secrets.create_secret(
            Name=SECRET, SecretString=json.dumps({"key": base64.b64encode(b"benchmark" * 4).decode()})
        )
