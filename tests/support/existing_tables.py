"""Another team that has a cluster, whose tables Tableflow writes into its bucket and shows in Glue."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime

import attrs
import boto3
from pyiceberg.catalog.glue import GlueCatalog

from config.project import PROJECT
from simulators.aws.server import EmbeddedAws
from simulators.data import generators
from simulators.tableflow.topic import load_topic
from simulators.tableflow.writer import Tableflow, TableLocation

DATABASE = "lkc-abc123"
BUCKET = "acme-tableflow"
_WEEKS = {"start": datetime(2026, 11, 9, tzinfo=UTC), "end": datetime(2026, 11, 23, tzinfo=UTC)}


@attrs.frozen
class Owner:
    """The team that has the cluster: its tables, and what else is in its bucket and database."""

    aws: EmbeddedAws

    def write_tables(self):
        s3 = boto3.client("s3")
        s3.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": os.environ["AWS_REGION"]}
        )
        options = {"s3.endpoint": self.aws.url, "s3.region": os.environ["AWS_REGION"]}
        catalog = GlueCatalog("lake", client=None, **{"glue.skip-name-validation": "true"}, **options)
        flow = Tableflow(catalog, TableLocation(BUCKET, cluster_id=DATABASE))
        mix = generators.SalesMix(orders=2_000)
        orders = generators.generate_sales_orders(mix, seed=7, **_WEEKS)
        trades = generators.generate_stock_trades(500, seed=7, **_WEEKS)
        for name, records in (("sales_orders", orders), ("stock_trades", trades)):
            flow.materialise(load_topic(PROJECT / "topics" / f"{name}.avsc"), records, commits=4)
        s3.put_object(Bucket=BUCKET, Key="notes/keep.txt", Body=b"another team's")
        glue = boto3.client("glue")
        glue.create_table(DatabaseName=DATABASE, TableInput={"Name": "plain", "Parameters": {}})

    def fingerprint(self):
        """Return everything that the team has, with the content of each object."""
        s3 = boto3.client("s3")
        glue = boto3.client("glue")
        keys = [
            item["Key"]
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
            for item in page["Contents"]
        ]
        objects = {
            key: hashlib.sha256(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()).hexdigest()
            for key in keys
        }
        tables = glue.get_tables(DatabaseName=DATABASE)["TableList"]
        return {
            "objects": objects,
            "bucket": _read_bucket_settings(s3),
            "tables": json.loads(json.dumps(tables, default=str)),
            "database": json.loads(json.dumps(glue.get_database(Name=DATABASE)["Database"], default=str)),
        }


def _read_bucket_settings(s3):
    settings = {}
    for name in ("policy", "lifecycle_configuration", "encryption", "versioning", "tagging"):
        try:
            answer = getattr(s3, f"get_bucket_{name}")(Bucket=BUCKET)
        except s3.exceptions.ClientError as error:
            settings[name] = error.response["Error"]["Code"]
        else:
            answer.pop("ResponseMetadata")
            settings[name] = answer
    return settings
