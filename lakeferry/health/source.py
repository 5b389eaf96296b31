"""The tables and the bucket that `[source]` names: whether the exports can read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from botocore.exceptions import ClientError

from config.deployments.model import Source
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import runner, storage
from lakeferry.health.model import Check
from lakeferry.topics import tables
from lakeferry.topics.tables import GlueTable
from lambdas.shared.aws import read_error_code

GROUP: Final = storage.GROUP
BUCKET: Final = "source bucket"
KEY: Final = "source bucket's KMS key"
DATABASE: Final = "source database"
_FILE: Final = "the deployment file"
_ENABLED: Final = "Enabled"
#: The key that AWS manages for S3: its own policy lets every role of the account decrypt through S3.
_AWS_KEY: Final = "aws/s3"


def look(ctx: DeploymentContext) -> list[Check]:
    """Return no checks for a deployment that creates its tables."""
    source = ctx.deployment.source
    if source is None:
        return []
    return [*_check_bucket(ctx, source), *_check_tables(ctx, source)]


def _check_bucket(ctx: DeploymentContext, source: Source) -> Iterator[Check]:
    bucket = source.tableflow_bucket
    fix = f"Correct `source.tableflow_bucket` in {_FILE}: the location of each table has the name"
    try:
        answer = ctx.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        if read_error_code(error) in storage.ABSENT:
            yield GROUP.fail(BUCKET, f"there is no bucket {bucket}", fix)
        elif read_error_code(error) in storage.FOREIGN:
            yield GROUP.fail(
                BUCKET,
                f"{bucket} belongs to another account, or its policy denies you access",
                "Ask its owner to let this account read it, or deploy in the account that has it",
            )
        else:
            yield runner.report_failed(GROUP, BUCKET, error)
        return
    region = answer.get("BucketRegion") or storage.find_region(ctx, bucket)
    if region != ctx.region:
        yield GROUP.fail(
            BUCKET,
            f"{bucket} is in {region}",
            f'Set `aws.region = "{region}"` in {_FILE}: Glue, the tables and the exports are in one region',
            ctx.region,
        )
        return
    yield GROUP.ok(BUCKET, f"{bucket} in {ctx.region}; it is only read")
    yield from _check_key(ctx, source)


def _check_key(ctx: DeploymentContext, source: Source) -> Iterator[Check]:
    """Compare the key of new objects with that of the file, and look whether it can decrypt."""
    key = storage.find_kms_key(ctx, source.tableflow_bucket)
    if not source.kms_key:
        if key and not key.endswith(_AWS_KEY):
            yield GROUP.fail(
                KEY,
                f"{source.tableflow_bucket} is encrypted with {key}, and the exports may not use it",
                f"Set `source.kms_key` in {_FILE} to the key's ARN",
            )
        return
    try:
        described = ctx.client("kms").describe_key(KeyId=source.kms_key)["KeyMetadata"]
    except ClientError as error:
        if read_error_code(error) != "NotFoundException":
            yield runner.report_failed(GROUP, KEY, error)
            return
        yield GROUP.fail(KEY, f"there is no key {source.kms_key}", f"Correct `source.kms_key` in {_FILE}")
        return
    if described["KeyState"] != _ENABLED:
        yield GROUP.fail(
            KEY,
            f"{source.kms_key} is {described['KeyState']}, so nothing in the bucket can be read",
            "Enable it, or cancel its deletion: `aws kms enable-key`, `aws kms cancel-key-deletion`",
            _ENABLED,
        )
        return
    yield GROUP.ok(KEY, source.kms_key)


def _check_tables(ctx: DeploymentContext, source: Source) -> Iterator[Check]:
    try:
        existing = {table.name: table for table in tables.list_tables(ctx, source.glue_database)}
    except CommandFailed as failure:
        yield runner.report_failed(GROUP, DATABASE, failure)
        return
    readable = [name for name, table in existing.items() if table.metadata]
    if not readable:
        yield GROUP.fail(
            DATABASE,
            f"{source.glue_database} has no Iceberg tables",
            f"Correct `source.glue_database` in {_FILE}, or connect Tableflow's Glue integration: it creates "
            "the tables",
        )
        return
    yield GROUP.ok(DATABASE, f"{source.glue_database} with {len(readable)} Iceberg tables; it is only read")
    for topic in ctx.deployment.tables:
        yield _check_table(source, topic.name, existing, readable)


def _check_table(source: Source, topic: str, existing: Mapping[str, GlueTable], readable: list[str]) -> Check:
    name = f"Glue table {topic}"
    table = existing.get(topic)
    if table is None or not table.metadata:
        why = "is not an Iceberg table" if table else "does not exist"
        return GROUP.fail(
            name,
            f"{source.glue_database}.{topic} {why}",
            f"Correct the topic's name in {_FILE}. Iceberg tables: {', '.join(readable)}",
        )
    if table.bucket != source.tableflow_bucket:
        return GROUP.fail(
            name,
            f"{source.glue_database}.{topic} is in bucket {table.bucket}",
            f"Set `source.tableflow_bucket` in {_FILE} to that bucket. Tables of two buckets need two "
            "deployments",
            source.tableflow_bucket,
        )
    return GROUP.ok(name, f"{source.glue_database}.{topic}")
