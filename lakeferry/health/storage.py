"""Buckets and Glue tables: the buckets that the deployment file names, and the bucket and tables that
Tableflow writes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import read_error_code

GROUP: Final = Group("storage")
BUCKET: Final = "bucket"
#: Error codes of HeadBucket. Its answer has no body, so there are no more specific codes.
FOREIGN: Final = ("403", "Forbidden", "AccessDenied")
ABSENT: Final = ("404", "NoSuchBucket", "NotFound")
#: S3 returns no LocationConstraint for this region, and refuses it as one.
_FIRST_REGION: Final = "us-east-1"
#: The error code of S3 for a bucket without settings of encryption.
_NO_ENCRYPTION: Final = "ServerSideEncryptionConfigurationNotFoundError"
#: The key that KMS keeps for S3 in each account.
_S3_KEY: Final = "alias/aws/s3"
_LISTED: Final = 1000
_SHOWN: Final = 3
_CREATE_AGAIN: Final = (
    "What was in it is lost. Create it again: `aws s3api create-bucket --bucket {name} --region "
    "{region}{constraint}`; `lakeferry status --drift` then names the settings that it lacks"
)


def check_chosen_buckets(ctx: DeploymentContext) -> list[Check]:
    """Check that the bucket names in the file are free before the first deployment, and the deployment's own
    after it.
    """
    chosen = {"lake bucket": ctx.deployment.aws.lake_bucket}
    if ctx.deployment.source is None:
        chosen = {"Tableflow's bucket": ctx.deployment.aws.tableflow_bucket, **chosen}
    data = stacks.describe(ctx, f"{ctx.deployment.prefix}-data", with_resources=True)
    resources = data.resources if data else ()
    own_buckets = {resource.physical_id for resource in resources if resource.type == "AWS::S3::Bucket"}
    aws = ctx.deployment.aws
    existing = {"lake bucket": aws.existing_lake_bucket, "Tableflow's bucket": aws.existing_tableflow_bucket}
    checks = []
    for name, bucket in chosen.items():
        if named := existing[name]:
            check = partial(_check_existing_bucket, ctx, name, named)
        else:
            check = partial(_check_chosen_bucket, ctx, name, bucket, own_buckets)
        checks.append(runner.attempt(GROUP, name, check))
    return checks


def _check_existing_bucket(ctx: DeploymentContext, name: str, bucket: str) -> Check:
    """Check a bucket that the deployment uses and didn't create. Raises ClientError."""
    key = "existing_tableflow_bucket" if name.startswith("Tableflow") else "existing_lake_bucket"
    state = _read_bucket_state(ctx, bucket)
    if state == "absent":
        fix = f"Create it, or set `aws.{key.removeprefix('existing_')}`: Lakeferry then creates one"
        return GROUP.fail(name, f"there is no bucket {bucket}", fix)
    if state == "foreign":
        foreign = f"{bucket} can't be checked: it belongs to another account, or you may not see it"
        return GROUP.warn_unseen(name, foreign, "Check as somebody who may")
    region = find_region(ctx, bucket)
    if region != ctx.region:
        fix = f"Name a bucket in {ctx.region}: Tableflow writes, and the exports read, in one region"
        return GROUP.fail(name, f"{bucket} is in {region}", fix, ctx.region)
    wanted = find_wanted_key(ctx, name)
    used = find_kms_key(ctx, bucket)
    # Every role of the account may use S3's own key of KMS.
    if used not in ("", _S3_KEY, wanted):
        purpose = "tables" if name.startswith("Tableflow") else "data"
        return GROUP.fail(
            name,
            f"{bucket} encrypts new objects with {used}, and the deployment's roles may not use that",
            f'Set `encryption.{purpose} = "{used}"` in the deployment file',
            wanted or "",
        )
    usable = GROUP.ok(name, f"{bucket} in {region}; it is never emptied")
    return _check_content(ctx, name, bucket, usable) if name.startswith("Tableflow") else usable


def _check_content(ctx: DeploymentContext, name: str, bucket: str, usable: Check) -> Check:
    """Return `usable` unless Tableflow would refuse what the bucket holds. Raises ClientError."""
    listing = ctx.client("s3").list_objects_v2(Bucket=bucket, MaxKeys=_LISTED)
    keys = [item["Key"] for item in listing.get("Contents", [])]
    if not keys or any(is_of_table(key) for key in keys):
        return usable
    more = " …" if keys[_SHOWN:] else ""
    held = f"{bucket} holds {', '.join(keys[:_SHOWN])}{more}"
    if listing.get("IsTruncated"):
        unknown = f"{held}; whether it has a table of Tableflow is not known: there are too many objects"
        return GROUP.warn_unseen(
            name, unknown, "If Tableflow has not written into it yet, name an empty bucket"
        )
    fix = "Name an empty bucket: Tableflow refuses one that is not empty when it writes its first table"
    return GROUP.fail(name, f"{held}, and no table of Tableflow", fix)


def find_wanted_key(ctx: DeploymentContext, name: str) -> str | None:
    """Return the ARN of the KMS key that the deployment file names for a bucket."""
    encryption = ctx.deployment.encryption
    return encryption.tables if name.startswith("Tableflow") else encryption.data


def _check_chosen_bucket(ctx: DeploymentContext, name: str, bucket: str | None, own: set[str]) -> Check:
    if bucket is None:
        return GROUP.ok(name, "CloudFormation chooses its name")
    if bucket in own:
        return GROUP.ok(name, f"{bucket}, the deployment's own")
    key = "tableflow_bucket" if name.startswith("Tableflow") else "lake_bucket"
    fix = f"Choose another `aws.{key}`, or none: the deployment then creates one"
    state = _read_bucket_state(ctx, bucket)
    if state == "absent":
        return GROUP.ok(name, f"{bucket} is free")
    if state == "foreign":
        return GROUP.fail(
            name,
            f"{bucket} belongs to another account, or you lack access to it",
            fix,
            "a name that nobody has",
        )
    count = ctx.client("s3").list_objects_v2(Bucket=bucket, MaxKeys=1).get("KeyCount", 0)
    content = "with objects in it" if count else "empty"
    exists = f"{bucket} exists already, {content}, and no stack of this deployment has it"
    or_else = "" if count else f"; or delete it: `aws s3api delete-bucket --bucket {bucket}`"
    return GROUP.fail(name, exists, fix + or_else, "a name that nobody has")


def _read_bucket_state(ctx: DeploymentContext, bucket: str) -> str:
    """Return `own`, `foreign` or `absent`. Raises ClientError."""
    try:
        ctx.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=ctx.account)
    except ClientError as error:
        if read_error_code(error) in ABSENT:
            return "absent"
        if read_error_code(error) in FOREIGN:
            return "foreign"
        raise
    return "own"


def check_bucket(ctx: DeploymentContext, group: Group, name: str) -> Check:
    """Check the bucket that Tableflow writes tables into."""
    state = _read_bucket_state(ctx, name)
    if state == "absent":
        constraint = ""
        if ctx.region != _FIRST_REGION:
            constraint = f" --create-bucket-configuration LocationConstraint={ctx.region}"
        fix = _CREATE_AGAIN.format(name=name, region=ctx.region, constraint=constraint)
        return group.fail(BUCKET, f"there is no bucket {name}", fix)
    if state == "foreign":
        foreign = f"{name} belongs to another account, or its policy denies you access"
        return group.fail(
            BUCKET, foreign, "Look at its owner and its policy", f"a bucket of account {ctx.account}"
        )
    region = find_region(ctx, name)
    if region != ctx.region:
        fix = (
            "Tableflow writes in the cluster's region only: move its objects away, delete it and create it "
            "again there"
        )
        return group.fail(BUCKET, f"{name} is in {region}", fix, ctx.region)
    wanted = ctx.deployment.encryption.tables
    key = find_kms_key(ctx, name)
    if key and key != wanted:
        fix = "Set its encryption back to what was deployed: no role of the deployment may use the key"
        if key != _S3_KEY:
            fix += f'. To use it, set `encryption.tables = "{key}"` in the deployment file, and deploy'
        return group.fail(BUCKET, f"{name} encrypts new objects with KMS key {key}", fix, wanted or "SSE-S3")
    listed = ctx.client("s3").list_objects_v2(Bucket=name, MaxKeys=_LISTED).get("Contents", [])
    strange = [item["Key"] for item in listed if not is_of_table(item["Key"])]
    if not strange:
        return group.ok(BUCKET, f"{name} in {ctx.region}")
    summary = f"{name} holds what Tableflow didn't write: {', '.join(strange[:_SHOWN])}"
    if strange[_SHOWN:]:
        summary += " …"
    return group.warn(
        BUCKET, summary, "Move it elsewhere: Tableflow wants the bucket for itself, empty at first"
    )


def find_region(ctx: DeploymentContext, bucket: str) -> str:
    """Raises ClientError."""
    return str(ctx.client("s3").get_bucket_location(Bucket=bucket)["LocationConstraint"] or _FIRST_REGION)


def find_kms_key(ctx: DeploymentContext, bucket: str) -> str:
    """Return the ARN of the KMS key that the bucket encrypts with, alias/aws/s3, or "" if KMS has no part in
    it. Raises ClientError.
    """
    try:
        encryption = ctx.client("s3").get_bucket_encryption(Bucket=bucket)[
            "ServerSideEncryptionConfiguration"
        ]
    except ClientError as error:
        if read_error_code(error) != _NO_ENCRYPTION:
            raise
        return ""
    rules = [rule.get("ApplyServerSideEncryptionByDefault") or {} for rule in encryption.get("Rules", [])]
    keys = [
        rule.get("KMSMasterKeyID") or _S3_KEY
        for rule in rules
        if rule.get("SSEAlgorithm", "").startswith("aws:kms")
    ]
    if not keys:
        return ""
    key = str(keys[0])
    if key.endswith(_S3_KEY):
        return _S3_KEY
    if ":key/" in key:
        return key
    # S3 keeps what was given, which may also be the key's id or an alias.
    return str(ctx.client("kms").describe_key(KeyId=key)["KeyMetadata"]["Arn"])


def is_of_table(key: str) -> bool:
    """Return whether a key is one that Tableflow writes: files of a table are below …/v1/<table>/data and
    …/metadata.
    """
    base, middle, rest = key.partition("/v1/")
    return bool(base and middle) and rest.partition("/")[2].startswith(("data/", "metadata/"))


def name_glue_table_checks(ctx: DeploymentContext) -> list[str]:
    """Return the names of the checks of check_glue_tables."""
    return [f"Glue table {topic.name}" for topic in ctx.deployment.tables_in_glue]


def check_glue_tables(ctx: DeploymentContext, group: Group, database: str, bucket: str) -> list[Check]:
    tables = zip(name_glue_table_checks(ctx), ctx.deployment.tables_in_glue, strict=True)
    return [
        runner.attempt(
            group, name, partial(_check_glue_table, ctx, group, name, f"{database}.{topic.name}", bucket)
        )
        for name, topic in tables
    ]


def _check_glue_table(ctx: DeploymentContext, group: Group, name: str, table: str, bucket: str) -> Check:
    database, _, topic = table.partition(".")
    try:
        document: dict[str, Any] = ctx.client("glue").get_table(DatabaseName=database, Name=topic)["Table"]
    except ClientError as error:
        if read_error_code(error) != "EntityNotFoundException":
            raise
        wait = "Wait some ten minutes after the first record; the catalog integration says what holds it up"
        return group.fail(name, f"Glue doesn't show {table}", wait)
    location = (document.get("Parameters") or {}).get("metadata_location", "")
    if not location.startswith(f"s3://{bucket}/"):
        fix = "It was changed outside of Tableflow: delete it in Glue, and Tableflow creates it again"
        return group.fail(name, f"{table} leads to {location or 'no metadata'}", fix, f"s3://{bucket}/…")
    return group.ok(name, table)
