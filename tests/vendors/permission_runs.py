"""Runs exports with the permissions of docs/reference/iam.md, and again without one action at a time.

This is a program because Spark's JVM keeps the credentials that it started with. It prints a JSON document:
the result of each export by the number of the missing grant, or `none`. Arguments: the numbers to try.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from datetime import UTC, datetime

import boto3
from pyiceberg.catalog.glue import GlueCatalog

from dev.docs import permissions
from glue_jobs import arguments, export, runs, session
from glue_jobs.errors import ExportError
from lakeferry.local import spark as local_spark
from lakeferry.local.bootstrap import ROOT
from simulators.aws.server import EmbeddedAws
from simulators.data import generators
from simulators.tableflow.topic import load_topic
from simulators.tableflow.writer import Tableflow, TableLocation

_START, _DAY, _END = (datetime(2026, 11, day, 5, tzinfo=UTC) for day in (9, 15, 16))
#: The export that needs the grants of a purpose. Both exports need all other grants.
_EXPORTS = {"weekly_sales": "2026-11-09", "daily_trades": "2026-11-15"}
#: The tables have all events until then.
_NOW = "2026-11-16T06:00:00Z"
_ONLY = {"ReadKey": {"weekly_sales"}, "KeepAggregates": {"daily_trades"}}


def main(numbers: list[int]) -> None:
    found = {}
    with EmbeddedAws(iam=True) as aws:
        os.environ.update(aws.environment({}))
        iam = boto3.client("iam")
        _fill(aws)
        _become(iam)
        spark = session.start("s3://files/warehouse")
        for missing in (None, *numbers):
            prefix = f"exports{len(found)}"
            _allow(iam, aws, prefix, missing)
            wanted = (
                _EXPORTS if missing is None else _ONLY.get(permissions.GRANTS[missing].purpose, set(_EXPORTS))
            )
            found["none" if missing is None else str(missing)] = {
                name: _outcome(name, prefix, spark) for name in sorted(wanted)
            }
    sys.stdout.write(json.dumps(found))


def _fill(aws: EmbeddedAws) -> None:
    for bucket in ("tableflow", "files"):
        boto3.client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": aws.region}
        )
    key = json.dumps({"key": base64.b64encode(secrets.token_bytes(32)).decode()})
    boto3.client("secretsmanager").create_secret(Name="lakeferry/pseudonyms", SecretString=key)
    where = {"glue.skip-name-validation": "true", "s3.endpoint": aws.url, "s3.region": aws.region}
    flow = Tableflow(
        GlueCatalog("lake", client=None, **where), TableLocation("tableflow", cluster_id="lkc-00demo")
    )
    sales, trades = (
        load_topic(ROOT / "project" / "topics" / f"{name}.avsc") for name in ("sales_orders", "stock_trades")
    )
    orders = generators.generate_sales_orders(generators.SalesMix(orders=200), seed=1, start=_START, end=_END)
    flow.materialise(sales, orders, commits=1)
    flow.materialise(trades, generators.generate_stock_trades(200, seed=1, start=_DAY, end=_END), commits=1)


def _become(iam) -> None:
    """Use the credentials of a new user without permissions."""
    iam.create_user(UserName="job")
    made = iam.create_access_key(UserName="job")["AccessKey"]
    os.environ |= {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]}


def _allow(iam, aws: EmbeddedAws, prefix: str, missing: int | None) -> None:
    names = {
        "region": aws.region,
        "account": aws.account,
        "cluster id": "lkc-00demo",
        "aggregates database": prefix,
    }
    names |= {
        "Tableflow bucket": "tableflow",
        "bucket": "files",
        "prefix": prefix,
        "pseudonym secret": "lakeferry/pseudonyms",
    }
    statements = []
    for number, grant in enumerate(permissions.GRANTS):
        resources = list(grant.resources)
        for name, value in names.items():
            resources = [resource.replace(f"<{name}>", value) for resource in resources]
        if number != missing:
            statements.append({"Effect": "Allow", "Action": grant.action, "Resource": resources})
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_user_policy(UserName="job", PolicyName="own", PolicyDocument=policy)


def _outcome(name: str, prefix: str, spark) -> str:
    """Return `published`, or the error code."""
    words = ["--export", name, "--as-of", _NOW, "--complete-until", _NOW]
    words += ["--first-day", _EXPORTS[name], "--database", "lkc-00demo"]
    words += ["--bucket", "files", "--prefix", prefix, "--aggregates-database", prefix]
    words += ["--pseudonym-secret", "lakeferry/pseudonyms"]
    try:
        (window,) = export.run(
            arguments.parse(words, now=runs.utc_now()), spark=spark, on_phase=lambda *_: None
        ).windows
    except ExportError as error:
        return error.code
    return window.get("code") or window["state"]


if __name__ == "__main__":
    home = local_spark.prepare()
    try:
        main([int(word) for word in sys.argv[1:]])
    finally:
        local_spark.end(home)
