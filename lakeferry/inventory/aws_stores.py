"""Where data and keys lie in AWS: buckets, Glue, Athena, tables of DynamoDB, secrets, keys of KMS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.aws_kinds import AwsKind, Found, Rule, Tags, generated, of_list, pages, tags_of


def kinds(deployment: Deployment) -> list[AwsKind]:
    prefix, made = re.escape(deployment.prefix), generated(deployment)
    told, chosen = deployment.deployment, filter(None, (deployment.aws.tableflow_bucket, deployment.aws.lake_bucket))
    return [
        AwsKind(
            "bucket",
            "AWS::S3::Bucket",
            _buckets,
            Rule(
                made=rf"{prefix}-data-(tableflowbucket|lakebucket)[0-9a-f]{{0,8}}-[a-z0-9]{{12,13}}",
                ours="|".join(map(re.escape, chosen)),
                is_data=True,
            ),
        ),
        AwsKind(
            "glue_database",
            "AWS::Glue::Database",
            _databases,
            Rule(ours=aggregates(deployment), says="^Aggregates that exports keep as tables$", is_data=True),
        ),
        AwsKind(
            "athena_workgroup",
            "AWS::Athena::WorkGroup",
            _workgroups,
            Rule(ours=prefix, says=rf"^Queries on the tables of {prefix}$"),
        ),
        AwsKind("athena_named_query", "AWS::Athena::NamedQuery", _queries, Rule(made=rf"{prefix} \S+: .+")),
        AwsKind("dynamodb_table", "AWS::DynamoDB::Table", _tables, Rule(made=made)),
        AwsKind(
            "secret",
            "AWS::SecretsManager::Secret",
            _secrets,
            Rule(ours=rf"{prefix}/(confluent|snowflake)/.+", says="^(API key of .+ for .+|Key pair of Snowflake's reader)$"),
        ),
        AwsKind(
            "pseudonymisation_secret",
            "AWS::SecretsManager::Secret",
            _pseudonyms,
            Rule(
                ours=".*",
                says=rf"^Pseudonymisation key of {re.escape(told.name)}-{told.stage}$",
                is_data=True,
                ends_by_itself=True,
            ),
        ),
        AwsKind("kms_key", "AWS::KMS::Key", _keys, Rule(ours=".*", needs_tags=True, ends_by_itself=True)),
        AwsKind("pseudonymisation_kms_key", "AWS::KMS::Key", _pseudonym_keys, _OF_PSEUDONYMS),
    ]


_OF_PSEUDONYMS = Rule(ours=".*", needs_tags=True, is_data=True, ends_by_itself=True)
_PSEUDONYM_SECRET = "Pseudonymisation key of "  # noqa: S105 - the beginning of a description
_PSEUDONYM_KEY = "Encrypts the pseudonymisation key"


def aggregates(deployment: Deployment) -> str:
    return f"{deployment.prefix}_aggregates".replace("-", "_")


def _buckets(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "s3", "list_buckets"):
        for one in page["Buckets"]:
            yield Found(one["Name"], one["Name"], tags=_of_bucket(ctx, one["Name"]))


def _of_bucket(ctx: DeploymentContext, name: str) -> Callable[[], Tags]:
    def ask() -> Tags:
        try:
            return of_list(ctx.client("s3").get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchTagSet", "NoSuchBucket"):
                return {}
            raise

    return ask


def _databases(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "glue", "get_databases"):
        for one in page["DatabaseList"]:
            yield Found(one["Name"], one["Name"], one.get("Description", ""))


def _workgroups(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "athena", "list_work_groups"):
        for one in page["WorkGroups"]:
            arn = f"arn:aws:athena:{ctx.region}:{ctx.account}:workgroup/{one['Name']}"
            tags = partial(_of_workgroup, ctx, arn)
            yield Found(one["Name"], one["Name"], one.get("Description", ""), tags)


def _of_workgroup(ctx: DeploymentContext, arn: str) -> Tags:
    return of_list(tags_of(ctx, "athena", "list_tags_for_resource", ResourceARN=arn).get("Tags"))


def _queries(ctx: DeploymentContext) -> Iterator[Found]:
    """Those of a workgroup of our name; where there is none, there are none."""
    prefix = ctx.deployment.prefix
    if not any(one.name == prefix for one in _workgroups(ctx)):
        return
    for page in pages(ctx, "athena", "list_named_queries", WorkGroup=prefix):
        for id in page.get("NamedQueryIds", []):
            yield Found(ctx.client("athena").get_named_query(NamedQueryId=id)["NamedQuery"]["Name"], id)


def _tables(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "dynamodb", "list_tables"):
        for name in page["TableNames"]:
            arn = f"arn:aws:dynamodb:{ctx.region}:{ctx.account}:table/{name}"
            yield Found(name, name, tags=partial(_of_table, ctx, arn))


def _of_table(ctx: DeploymentContext, arn: str) -> Tags:
    return of_list(tags_of(ctx, "dynamodb", "list_tags_of_resource", ResourceArn=arn).get("Tags"))


def _all_secrets(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "secretsmanager", "list_secrets", IncludePlannedDeletion=True):
        for one in page["SecretList"]:
            tags = partial(of_list, one.get("Tags"))
            yield Found(one["Name"], one["ARN"], one.get("Description", ""), tags, _day(one.get("DeletedDate")))


def _secrets(ctx: DeploymentContext) -> Iterator[Found]:
    return (one for one in _all_secrets(ctx) if not one.said.startswith(_PSEUDONYM_SECRET))


def _pseudonyms(ctx: DeploymentContext) -> Iterator[Found]:
    return (one for one in _all_secrets(ctx) if one.said == f"{_PSEUDONYM_SECRET}{ctx.deployment.prefix}")


def purposes_of_keys(deployment: Deployment) -> tuple[str, ...]:
    """Descriptions of a deployment's keys of KMS. Those of stacks with secrets name no deployment."""
    return (
        _PSEUDONYM_KEY,
        "Encrypts the keys of Confluent Cloud",
        "Encrypts the keys of Snowflake's users",
        f"Encrypts alarms of {deployment.prefix}",
        f"Encrypts logs and bookmarks of exports of {deployment.prefix}",
    )


def _all_keys(ctx: DeploymentContext) -> Iterator[Found]:
    """Keys have no names: only those that describe themselves as ours do come into question."""
    client, told = ctx.client("kms"), purposes_of_keys(ctx.deployment)
    for page in pages(ctx, "kms", "list_keys"):
        for one in page["Keys"]:
            key = client.describe_key(KeyId=one["KeyId"])["KeyMetadata"]
            said = key.get("Description", "")
            if key.get("KeyManager") == "CUSTOMER" and said in told:
                pending = _day(key.get("DeletionDate")) if key["KeyState"] == "PendingDeletion" else ""
                yield Found(said, key["KeyId"], said, _of_key(client, key["KeyId"]), pending)


def _of_key(client: Any, id: str) -> Callable[[], Tags]:
    return lambda: of_list(client.list_resource_tags(KeyId=id)["Tags"], "TagKey", "TagValue")


def _keys(ctx: DeploymentContext) -> Iterator[Found]:
    return (one for one in _all_keys(ctx) if one.said != _PSEUDONYM_KEY)


def _pseudonym_keys(ctx: DeploymentContext) -> Iterator[Found]:
    return (one for one in _all_keys(ctx) if one.said == _PSEUDONYM_KEY)


def _day(at: Any) -> str:
    return at.date().isoformat() if at else ""
