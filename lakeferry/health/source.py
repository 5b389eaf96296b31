"""The tables and the bucket that `[source]` names: whether the exports can read them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from botocore.exceptions import ClientError

from config.deployments.source_model import CatalogSource, GlueSource
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import keys, runner, storage
from lakeferry.health.model import Check
from lakeferry.topics import catalog_tables, tables
from lakeferry.topics.tables import GlueTable
from lambdas.confluent.iceberg_catalog import IcebergCatalog
from lambdas.shared.aws import read_error_code

GROUP: Final = storage.GROUP
BUCKET: Final = "source bucket"
KEY: Final = "source bucket's KMS key"
DATABASE: Final = "source database"
CATALOG_KEY: Final = "Tableflow key"
_FILE: Final = "the deployment file"


def look(ctx: DeploymentContext) -> list[Check]:
    """Return no checks for a deployment that creates its tables."""
    source = ctx.deployment.source
    if source is None:
        return []
    if source.glue:
        return [*_check_bucket(ctx, source.glue), *_check_tables(ctx, source.glue)]
    return _check_catalog(ctx, source.catalog) if source.catalog else []


def _check_catalog(ctx: DeploymentContext, source: CatalogSource) -> list[Check]:
    """Read each table's metadata in Tableflow's catalog with the key of the exports."""
    try:
        catalog = catalog_tables.open_catalog(ctx, source)
    except CommandFailed as failure:
        return [runner.report_failed(GROUP, CATALOG_KEY, failure)]
    checks = [GROUP.ok(CATALOG_KEY, f"in {source.key_secret}")]
    for topic in ctx.deployment.tables:
        name = f"table of {topic.name} in Confluent's storage"
        check = partial(_check_managed_table, catalog, source, name, topic.name)
        checks.append(runner.attempt(GROUP, name, check))
    return checks


def _check_managed_table(catalog: IcebergCatalog, source: CatalogSource, name: str, topic: str) -> Check:
    metadata = catalog_tables.load_metadata(catalog, source, topic)
    if metadata.get("current-snapshot-id") is None:
        return GROUP.warn_unseen(name, "has no snapshot yet", "Wait; a table takes some ten minutes")
    return GROUP.ok(name, "is readable; it is only read")


def _check_bucket(ctx: DeploymentContext, source: GlueSource) -> Iterator[Check]:
    bucket = source.bucket
    try:
        answer = ctx.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        yield _explain_unseen_bucket(bucket, error)
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
    if source.kms_key:
        check = partial(keys.check_key, ctx, GROUP, KEY, "source.kms_key", source.kms_key)
        yield runner.attempt(GROUP, KEY, check)


def _explain_unseen_bucket(bucket: str, error: ClientError) -> Check:
    if read_error_code(error) in storage.ABSENT:
        fix = f"Correct `source.tableflow_bucket` in {_FILE}: the location of each table has the name"
        return GROUP.fail(BUCKET, f"there is no bucket {bucket}", fix)
    if read_error_code(error) in storage.FOREIGN:
        # The job has a role of its own, which may see what this login doesn't.
        return GROUP.warn_unseen(
            BUCKET,
            f"{bucket} can't be checked: it belongs to another account, or you may not see it",
            "Check as somebody who may. If it is another account's, its policy must let this account read it",
        )
    return runner.report_failed(GROUP, BUCKET, error)


def _check_tables(ctx: DeploymentContext, source: GlueSource) -> list[Check]:
    try:
        listed = tables.list_tables(ctx, source.database)
    except CommandFailed as failure:
        return [runner.report_failed(GROUP, DATABASE, failure)]
    readable = [table.name for table in listed if table.metadata]
    if not readable:
        return [
            GROUP.fail(
                DATABASE,
                f"Glue shows you no Iceberg tables in {source.database}",
                f"Correct `source.glue_database` in {_FILE}, or connect Tableflow's Glue integration: it "
                "creates the tables. If Lake Formation governs the database, ask for DESCRIBE on its tables",
            )
        ]
    shown = GROUP.ok(DATABASE, f"{source.database} with {len(readable)} Iceberg tables; it is only read")
    checks = [
        runner.attempt(
            GROUP, f"Glue table {topic.table}", partial(_check_table, ctx, source, topic.table, readable)
        )
        for topic in ctx.deployment.tables
    ]
    return [shown, *checks]


def _check_table(ctx: DeploymentContext, source: GlueSource, table_name: str, readable: list[str]) -> Check:
    """Raises CommandFailed if Glue doesn't let the login see the table, ClientError if S3 doesn't answer."""
    name = f"Glue table {table_name}"
    full_name = f"{source.database}.{table_name}"
    table = tables.find_table(ctx, source.database, table_name)
    if table is None or not table.metadata:
        why = "is not an Iceberg table" if table else "does not exist"
        fix = f"Correct the topic's name in {_FILE}. Iceberg tables: {', '.join(readable)}"
        return GROUP.fail(name, f"{full_name} {why}", fix)
    if table.bucket != source.bucket:
        return GROUP.fail(
            name,
            f"{full_name} is in bucket {table.bucket}",
            f"Set `source.tableflow_bucket` in {_FILE} to that bucket. Tables of two buckets need two "
            "deployments",
            source.bucket,
        )
    return _check_metadata(ctx, source, name, table)


def _check_metadata(ctx: DeploymentContext, source: GlueSource, name: str, table: GlueTable) -> Check:
    """Look at the table's metadata file. It shows the key that encrypts it: that of the bucket is the one for
    new objects only.
    """
    try:
        metadata = ctx.client("s3").head_object(Bucket=table.bucket, Key=table.key)
    except ClientError as error:
        if read_error_code(error) not in storage.ABSENT:
            raise
        fix = "Look at the table in Tableflow: it was moved, or somebody deleted its files"
        return GROUP.fail(name, f"there is no {table.metadata}, to which Glue leads", fix)
    key = metadata.get("SSEKMSKeyId", "")
    if key and key != source.kms_key and not _is_managed_by_aws(ctx, key):
        return GROUP.fail(
            name,
            f"{table.metadata} is encrypted with {key}, and the exports may not use that",
            f'Set `source.kms_key = "{key}"` in {_FILE}',
            source.kms_key or "",
        )
    return GROUP.ok(name, f"{source.database}.{table.name}")


def _is_managed_by_aws(ctx: DeploymentContext, key: str) -> bool:
    """Return whether the key is one whose own policy lets every role of the account decrypt through S3.

    Raises ClientError.
    """
    return bool(ctx.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyManager"] == "AWS")
