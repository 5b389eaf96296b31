"""Tables that AWS doesn't show the login, that come in several pages, or that a key of AWS encrypts."""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest

from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import source
from lakeferry.health.model import Result
from lakeferry.topics import schemas, tables
from tests.support import shipped

_numbers = itertools.count(1)


@pytest.fixture
def ctx(lake_aws, server, monkeypatch):
    """A deployment that reads tables of others. The server stands in for Glue."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", server.url)
    return DeploymentContext(shipped.load_existing())


def iceberg(name, bucket="acme-tables"):
    location = f"s3://{bucket}/{name}/1.metadata.json"
    parameters = {"table_type": "ICEBERG", "metadata_location": location}
    return {"Name": name, "Parameters": parameters}


def test_a_table_that_the_login_may_not_see_is_not_taken_for_one_that_does_not_exist(ctx, server):
    server.answers["POST /"] = (400, {"__type": "AccessDeniedException", "message": "no right to see it"})
    with pytest.raises(CommandFailed) as refused:
        tables.find_table(ctx, "lkc-a", "orders")
    assert "reading Glue table lkc-a.orders" in refused.value.message
    with pytest.raises(CommandFailed) as refused:
        tables.list_tables(ctx, "lkc-a")
    assert "listing the tables of Glue database lkc-a" in refused.value.message
    with pytest.raises(CommandFailed, match="no right to see it"):
        schemas.import_schemas(ctx, schemas.select_topics(ctx, []), replace=False)
    database = source.look(ctx)[-1]
    assert (database.name, database.result, database.is_seen) == ("source database", Result.WARN, False)


def test_a_table_and_its_database_may_not_exist(ctx, server):
    server.answers["POST /"] = (400, {"__type": "EntityNotFoundException", "message": "none"})
    assert tables.find_table(ctx, "lkc-a", "orders") is None
    with pytest.raises(CommandFailed) as refused:
        tables.list_tables(ctx, "lkc-a")
    assert (refused.value.code, refused.value.message) == (
        "NO-DATABASE",
        f"there is no Glue database lkc-a in {ctx.region}",
    )


def test_tables_of_all_pages_are_listed_by_name(ctx, server):
    pages = [
        (200, {"TableList": [iceberg("c"), iceberg("a")], "NextToken": "more"}),
        (200, {"TableList": [iceberg("b"), {"Name": "view"}]}),
    ]
    server.answers["POST /"] = pages
    assert [table.name for table in tables.list_tables(ctx, "lkc-a")] == ["a", "b", "c", "view"]
    assert [sent.body for sent in server.sent] == [
        {"DatabaseName": "lkc-a"},
        {"DatabaseName": "lkc-a", "NextToken": "more"},
    ]


def test_one_table_that_the_login_may_not_see_stops_no_other_check(ctx, server):
    """Under Lake Formation, a list leaves the table out."""

    def answer(sent):
        asked = sent.body
        if "Name" not in asked:
            return 200, {"TableList": [iceberg("other")]}
        if asked["Name"] == "sales_orders":
            return 400, {
                "__type": "AccessDeniedException",
                "message": "Insufficient Lake Formation permission(s)",
            }
        return 200, {"Table": iceberg(asked["Name"], "elsewhere")}

    server.answers["POST /"] = answer
    checks = {check.name: check for check in source.look(ctx)}
    assert [name for name in checks if "table" in name] == [
        "Glue table sales_orders",
        "Glue table stock_trades",
    ]
    hidden = checks["Glue table sales_orders"]
    assert (hidden.result, hidden.is_seen) == (Result.WARN, False)
    assert "reading Glue table" in hidden.message
    assert "is in bucket elsewhere" in checks["Glue table stock_trades"].message


@pytest.mark.parametrize("manager", ["AWS", "CUSTOMER"])
def test_a_table_that_a_key_of_aws_encrypts_needs_no_key_in_the_file(ctx, server, manager, monkeypatch):
    key = boto3.client("kms").create_key()["KeyMetadata"]["Arn"]
    bucket = f"encrypted-{next(_numbers)}"
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": ctx.region})
    for name in ("sales_orders", "stock_trades"):
        s3.put_object(
            Bucket=bucket,
            Key=f"{name}/1.metadata.json",
            Body=json.dumps({}).encode(),
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=key,
        )

    def answer(sent):
        asked = sent.body
        if asked.get("KeyId") == key:
            return 200, {"KeyMetadata": {"KeyId": "1234", "KeyManager": manager}}
        name = asked.get("Name")
        return 200, {"Table": iceberg(name, bucket)} if name else {"TableList": [iceberg("a", bucket)]}

    server.answers["POST /"] = answer
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.url)
    deployment = ctx.deployment
    theirs = attrs.evolve(deployment.source, tableflow_bucket=bucket, kms_key=None)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(deployment, source=theirs))
    results = [check.result for check in source.look(DeploymentContext(loaded))]
    expected = Result.OK if manager == "AWS" else Result.FAIL
    assert results == [Result.OK, Result.OK, expected, expected]


def test_a_bucket_in_this_region_whose_files_the_login_may_not_see(ctx, server, monkeypatch):
    """S3 says in which region the bucket is, so nobody needs the right to ask for it."""
    bucket = ctx.deployment.source.tableflow_bucket
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
    server.answers |= {
        f"HEAD /{bucket}": (200, None, {"x-amz-bucket-region": ctx.region}),
        f"HEAD /{bucket}/sales_orders/1.metadata.json": (403,),
        f"HEAD /{bucket}/stock_trades/1.metadata.json": (200,),
    }

    def answer(sent):
        name = sent.body.get("Name")
        return 200, {"Table": iceberg(name, bucket)} if name else {"TableList": [iceberg("a", bucket)]}

    server.answers["POST /"] = answer
    deployment = ctx.deployment
    theirs = attrs.evolve(deployment.source, kms_key=None)
    loaded = attrs.evolve(ctx.loaded, deployment=attrs.evolve(deployment, source=theirs))
    assert [(check.name, check.result) for check in source.look(DeploymentContext(loaded))] == [
        ("source bucket", Result.OK),
        ("source database", Result.OK),
        ("Glue table sales_orders", Result.WARN),
        ("Glue table stock_trades", Result.OK),
    ]
    server.answers |= {
        f"HEAD /{bucket}": (200,),
        f"GET /{bucket}": (200, b"<LocationConstraint>eu-north-1</LocationConstraint>"),
    }
    (elsewhere, *_) = source.look(DeploymentContext(loaded))
    assert (elsewhere.result, elsewhere.message) == (Result.FAIL, f"{bucket} is in eu-north-1")
    server.answers[f"HEAD /{bucket}"] = (403,)
    (hidden, *_) = source.look(DeploymentContext(loaded))
    assert (hidden.name, hidden.result, hidden.is_seen) == ("source bucket", Result.WARN, False)
    assert hidden.message.startswith(f"{bucket} can't be checked")
