"""Lists each kind of AWS resources, with what identifies a resource (description, tags) and its pending
deletion.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from config.aws_denials import DENIED
from config.deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lambdas.shared.aws import read_error_code

Tags = Mapping[str, str]
#: Parts of the error codes for a resource that doesn't exist.
GONE: Final = ("NotFound", "NonExistent", "DoesNotExist", "NoSuch")
PSEUDONYM_SECRET = "Pseudonymisation key of "  # noqa: S105 - the beginning of a description
PSEUDONYM_KMS_KEY: Final = "pseudonymisation_kms_key"
_PSEUDONYM_KEY: Final = "Encrypts the pseudonymisation key"


@attrs.frozen
class AwsResource:
    """`id` is its physical id in CloudFormation. `tags` reads the tags when they are needed. `pending`
    describes its pending deletion, "" if there is none.

    `kind` is "" unless it differs from the kind that was listed.
    """

    name: str
    id: str
    description: str = ""
    tags: Callable[[], Tags] = dict
    pending: str = ""
    parents: tuple[str, ...] = ()
    kind: str = ""


def list_kms_descriptions(deployment: Deployment) -> tuple[str, ...]:
    """Return the descriptions of a deployment's KMS keys.

    Those of keys for secrets don't name the deployment.
    """
    return (
        _PSEUDONYM_KEY,
        "Encrypts the keys of Confluent Cloud",
        "Encrypts the keys of Snowflake's users",
        f"Encrypts alarms of {deployment.prefix}",
        f"Encrypts logs and bookmarks of exports of {deployment.prefix}",
    )


def list_pages(
    ctx: DeploymentContext, service: str, operation: str, **query: Any
) -> Iterator[dict[str, Any]]:
    client = ctx.client(service)
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**query)
        return
    page: dict[str, Any] = getattr(client, operation)(**query)  # such as Athena's list_work_groups
    yield page
    while token := page.get("NextToken"):
        page = getattr(client, operation)(**query, NextToken=token)
        yield page


def parse_tags(answer: Mapping[str, Any]) -> Tags:
    """Return the tags of an answer as a map, whatever field names the service uses."""
    tags = answer.get("Tags") or answer.get("tags") or answer.get("TagSet") or {}
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = (sorted(tag.items(), key=lambda item: not item[0].lower().endswith("key")) for tag in tags)
    return {key: value for (_, key), (_, value) in pairs}


def _list_rows(ctx: DeploymentContext, service: str, operation: str, key: str, **query: Any) -> Iterator[Any]:
    for page in list_pages(ctx, service, operation, **query):
        yield from page.get(key, [])


def _tag_reader(ctx: DeploymentContext, service: str, operation: str, **query: Any) -> Callable[[], Tags]:
    """Return a function that reads a resource's tags; none if the resource no longer exists.

    It raises ClientError.
    """

    def read() -> Tags:
        try:
            return parse_tags(getattr(ctx.client(service), operation)(**query))
        except ClientError as error:
            if any(sign in read_error_code(error) for sign in GONE):
                return {}
            raise

    return read


def list_by(
    service: str, operation: str, key: str, name: str = "Name", *, id: str = "", prefix: str = "",
    description: Callable[[dict[str, Any]], str] = lambda _: "", tags: tuple[str, str, str] | None = None,
) -> Callable[[DeploymentContext], Iterator[AwsResource]]:  # fmt: skip
    """Return a function that lists a kind by one operation. `key` is the field with the rows; `name` and `id`
    are a row's.

    `prefix` is the operation's parameter for a prefix of names. `tags` has the operation that reads tags, its
    parameter, and the parameter's value.
    """

    def find(ctx: DeploymentContext) -> Iterator[AwsResource]:
        query = {prefix: ctx.deployment.prefix} if prefix else {}
        for row in _list_rows(ctx, service, operation, key, **query):
            reader: Callable[[], Tags] = dict
            if tags:
                argument = tags[2].format(**row, region=ctx.region, account=ctx.account)
                reader = _tag_reader(ctx, service, tags[0], **{tags[1]: argument})
            yield AwsResource(row[name], row[id or name], description(row), reader)

    return find


def list_configuration_sets(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """List those of SES, if it sends the deployment's mails. Others may not ask SES."""
    if ctx.deployment.mail:
        for name in _list_rows(ctx, "sesv2", "list_configuration_sets", "ConfigurationSets"):
            yield AwsResource(name, name, "", dict)


def managed_policies(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Yield the account's own policies. Names are those of all regions."""
    for row in _list_rows(ctx, "iam", "list_policies", "Policies", Scope="Local"):
        tags = _tag_reader(ctx, "iam", "list_policy_tags", PolicyArn=row["Arn"])
        yield AwsResource(row["PolicyName"], row["Arn"], "", tags)


def read_description(row: dict[str, Any]) -> str:
    return str(row.get("Description", ""))


workgroups: Final = list_by(
    "athena", "list_work_groups", "WorkGroups", description=read_description,
    tags=("list_tags_for_resource", "ResourceARN", "arn:aws:athena:{region}:{account}:workgroup/{Name}"),
)  # fmt: skip


def log_groups(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Yield log groups by prefix, because an account may have thousands."""
    prefix = ctx.deployment.prefix
    for beginning in (f"{prefix}-", f"/aws/lambda/{prefix}-", f"/aws-glue/{prefix}/"):
        for row in _list_rows(ctx, "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=beginning):
            name = row["logGroupName"]
            arn = row["arn"].removesuffix(":*")
            yield AwsResource(
                name, name, tags=_tag_reader(ctx, "logs", "list_tags_for_resource", resourceArn=arn)
            )


def list_schedules(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Yield schedules with the tags of their groups: EventBridge Scheduler tags only groups."""
    for row in _list_rows(
        ctx, "scheduler", "list_schedules", "Schedules", NamePrefix=f"{ctx.deployment.prefix}-"
    ):
        group = f"arn:aws:scheduler:{ctx.region}:{ctx.account}:schedule-group/{row['GroupName']}"
        tags = _tag_reader(ctx, "scheduler", "list_tags_for_resource", ResourceArn=group)
        yield AwsResource(row["Name"], row["Name"], tags=tags, parents=(row["GroupName"],))


def list_topics(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _list_rows(ctx, "sns", "list_topics", "Topics"):
        arn = row["TopicArn"]
        yield AwsResource(
            arn.rpartition(":")[2],
            arn,
            tags=_tag_reader(ctx, "sns", "list_tags_for_resource", ResourceArn=arn),
        )


def list_queues(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for url in _list_rows(
        ctx, "sqs", "list_queues", "QueueUrls", QueueNamePrefix=f"{ctx.deployment.prefix}-"
    ):
        yield AwsResource(
            url.rpartition("/")[2], url, tags=_tag_reader(ctx, "sqs", "list_queue_tags", QueueUrl=url)
        )


def list_dashboards(ctx: DeploymentContext) -> Iterator[AwsResource]:
    query = {"DashboardNamePrefix": ctx.deployment.regional_prefix}
    for row in _list_rows(ctx, "cloudwatch", "list_dashboards", "DashboardEntries", **query):
        name = row["DashboardName"]
        yield AwsResource(
            name, name, ctx.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"]
        )


def list_budgets(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _list_rows(ctx, "budgets", "describe_budgets", "Budgets", AccountId=ctx.account):
        yield AwsResource(row["BudgetName"], row["BudgetName"], json.dumps(row.get("CostFilters", {})))


def list_named_queries(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Yield the named queries of the deployment's workgroup."""
    prefix = ctx.deployment.prefix
    if any(workgroup.name == prefix for workgroup in workgroups(ctx)):
        for id in _list_rows(ctx, "athena", "list_named_queries", "NamedQueryIds", WorkGroup=prefix):
            yield AwsResource(ctx.client("athena").get_named_query(NamedQueryId=id)["NamedQuery"]["Name"], id)


def list_dynamodb_tables(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for name in _list_rows(ctx, "dynamodb", "list_tables", "TableNames"):
        arn = f"arn:aws:dynamodb:{ctx.region}:{ctx.account}:table/{name}"
        yield AwsResource(
            name, name, tags=_tag_reader(ctx, "dynamodb", "list_tags_of_resource", ResourceArn=arn)
        )


def list_secrets(ctx: DeploymentContext, *, of_pseudonyms: bool) -> Iterator[AwsResource]:
    for row in _list_rows(ctx, "secretsmanager", "list_secrets", "SecretList", IncludePlannedDeletion=True):
        description = row.get("Description", "")
        if of_pseudonyms:
            is_listed = description == f"{PSEUDONYM_SECRET}{ctx.deployment.prefix}"
        else:
            is_listed = not description.startswith(PSEUDONYM_SECRET)
        if not is_listed:
            continue
        deletion = ""
        if at := row.get("DeletedDate"):
            # ListSecrets gives the time of the request, and not the recovery window, which is 7 to 30 days.
            deletion = f"requested on {_format_day(at)}; AWS deletes it when its recovery window ends"
        yield AwsResource(row["Name"], row["ARN"], description, partial(parse_tags, row), deletion)


def list_kms_keys(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Yield the keys with a description that a deployment gives its keys, because keys have no names.

    A key's policy may not let anybody read its description. If a stack has such a key, it counts as a key of
    data.
    """
    client = ctx.client("kms")
    descriptions = list_kms_descriptions(ctx.deployment)
    refused = None
    is_any_described = False
    for row in _list_rows(ctx, "kms", "list_keys", "Keys"):
        id = row["KeyId"]
        try:
            key = client.describe_key(KeyId=id)["KeyMetadata"]
        except ClientError as error:
            if read_error_code(error) not in DENIED:
                raise
            refused = error
            yield AwsResource(id, id, kind=PSEUDONYM_KMS_KEY)
            continue
        is_any_described = True
        description = key.get("Description", "")
        is_given = key["Arn"] in ctx.deployment.encryption.keys.values()
        if key.get("KeyManager") == "CUSTOMER" and description in descriptions and not is_given:
            pending = (
                f"AWS deletes it on {_format_day(key['DeletionDate'])}"
                if key["KeyState"] == "PendingDeletion"
                else ""
            )
            tags = _tag_reader(ctx, "kms", "list_resource_tags", KeyId=id)
            kind = PSEUDONYM_KMS_KEY if description == _PSEUDONYM_KEY else ""
            yield AwsResource(description, id, description, tags, pending, kind=kind)
    if refused and not is_any_described:
        raise refused


def _format_day(at: datetime) -> str:
    return at.date().isoformat()
