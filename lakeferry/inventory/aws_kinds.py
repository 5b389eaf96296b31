"""The kinds of AWS resources that a deployment has: how each is listed, and how its own are recognised outside of stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs
from botocore.exceptions import ClientError

from deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lambdas import contract
from lambdas.shared.aws import error_code

Tags = Mapping[str, str]
_GONE = ("NotFound", "NonExistent", "DoesNotExist", "NoSuch")
_PSEUDONYM_SECRET = "Pseudonymisation key of "  # noqa: S105 - the beginning of a description
_PSEUDONYM_KEY = "Encrypts the pseudonymisation key"


@attrs.frozen
class AwsResource:
    """`id` is what CloudFormation calls it by. `tags` are read when they are needed, `pending` is the day of its deletion."""

    name: str
    id: str
    description: str = ""
    tags: Callable[[], Tags] = dict
    pending: str = ""
    parents: tuple[str, ...] = ()


@attrs.frozen
class Recognition:
    """How resources of the deployment that no stack has are recognised, by patterns of their names.

    `generated` names can only come from CloudFormation. `truncated` ones do, too, but may belong to another deployment: tags or
    a former stack decide. `custom` names anybody could have given: the `description` or tags decide, with `needs_tags` only tags.
    """

    generated: str = ""
    truncated: str = ""
    custom: str = ""
    description: str = ""
    needs_tags: bool = False


@attrs.frozen
class AwsKind:
    """`is_data` are kinds that on_destroy = "keep" keeps; with `deletes_itself`, a pending deletion needs no attention."""

    name: str
    type: str
    find: Callable[[DeploymentContext], Iterator[AwsResource]]
    recognition: Recognition
    is_data: bool = False
    deletes_itself: bool = False

    def name_matches_generated(self, name: str) -> bool:
        return _matches(self.recognition.generated, name)

    def name_matches_truncated(self, name: str) -> bool:
        return _matches(self.recognition.truncated, name)

    def name_matches_custom(self, name: str) -> bool:
        return _matches(self.recognition.custom, name)

    def description_matches(self, resource: AwsResource) -> bool:
        pattern = self.recognition.description
        return bool(pattern) and re.search(pattern, resource.description) is not None


def _matches(pattern: str, name: str) -> bool:
    return bool(pattern) and re.fullmatch(pattern, name) is not None


@attrs.frozen
class _Patterns:
    """Patterns of names: `prefix` and `regional` begin the names that the product chooses, the others match generated names."""

    prefix: str
    regional: str
    #: As CloudFormation generates names: stack, logical id, a dozen characters. Another stack's name never looks so.
    generated: str
    #: The same, cut to the most characters that a service allows. What begins with `lake-dev-data-confluent-` may be of the stack
    #: `lake-dev-data` or of the stack `lake-dev-data-confluent`.
    truncated: str

    @classmethod
    def of(cls, deployment: Deployment) -> _Patterns:
        prefix = re.escape(deployment.prefix)
        stack = rf"{prefix}-(data|confluent|snowflake|exports|operations)"
        generated = rf"{stack}-[A-Za-z0-9]+-[A-Za-z0-9]{{12,13}}"
        truncated = rf"(?=.{{64}}$|.{{80}}$){stack}-[A-Za-z0-9-]{{30,}}"
        return cls(prefix, re.escape(deployment.regional_prefix), generated, truncated)


def aws_kinds(deployment: Deployment) -> list[AwsKind]:
    """Return all kinds; a test compares them with the templates. A type that isn't listed goes with what it is attached to."""
    patterns = _Patterns.of(deployment)
    return [*_services(deployment, patterns), *_stores(deployment, patterns)]


def _services(deployment: Deployment, patterns: _Patterns) -> list[AwsKind]:
    """Return the kinds that run, schedule, notify or measure."""
    prefix, regional, made, cut = patterns.prefix, patterns.regional, patterns.generated, patterns.truncated
    named = Recognition(generated=made, truncated=cut)
    alarms = "|".join([*contract.METRIC_DIMENSIONS, contract.UNMEASURED, "DeadLetters", "[A-Za-z]+Errors"])
    return [
        AwsKind("function", "AWS::Lambda::Function", _functions, named),
        AwsKind(
            "state_machine", "AWS::StepFunctions::StateMachine", _state_machines,
            Recognition(made, cut, custom="[A-Za-z]+ProviderFrameworkwaiterstatemachine[0-9A-F]{8}-.{12,13}"),
        ),
        AwsKind(
            "log_group", "AWS::Logs::LogGroup", _log_groups,
            Recognition(rf"(/aws/lambda/)?({made})|/aws-glue/{prefix}/(output|error)", rf"(/aws/lambda/)?({cut})"),
        ),
        AwsKind(
            "role", "AWS::IAM::Role", _roles,
            Recognition(
                truncated=cut, custom=rf"{made}|{regional}-(tableflow|snowflake)",
                description="^(Confluent's Tableflow writes tables and shows them in Glue|"
                "Snowflake reads the tables that Tableflow writes)$",
            ),
        ),
        AwsKind(
            "glue_job", "AWS::Glue::Job", _glue_jobs,
            Recognition(custom=rf"{prefix}-[a-z][a-z0-9_]*", description=rf"^/aws-glue/{prefix}$"),
        ),
        AwsKind(
            "glue_security_configuration", "AWS::Glue::SecurityConfiguration", _security_configurations,
            Recognition(custom=rf"{prefix}-exports", description=r'"JobBookmarksEncryptionMode": "CSE-KMS"'),
        ),
        AwsKind("schedule_group", "AWS::Scheduler::ScheduleGroup", _schedule_groups, Recognition(custom=prefix)),
        AwsKind("schedule", "AWS::Scheduler::Schedule", _schedules, named),
        AwsKind("event_rule", "AWS::Events::Rule", _event_rules, named),
        AwsKind("topic", "AWS::SNS::Topic", _topics, Recognition(made, custom=rf"{prefix}_[a-z][a-z0-9_]*|{prefix}-alarms")),
        AwsKind("queue", "AWS::SQS::Queue", _queues, named),
        AwsKind(
            "alarm", "AWS::CloudWatch::Alarm", _alarms,
            Recognition(
                custom=rf"{prefix}-({alarms})",
                description=rf" of {prefix} is above |^A start of an export or a notice|^A recipient of {prefix} "
                r"|^Function \w+ failed \(",
            ),
        ),
        AwsKind(
            "dashboard", "AWS::CloudWatch::Dashboard", _dashboards, Recognition(custom=regional, description=rf"\b{prefix}\b"),
        ),
        AwsKind(
            "budget", "AWS::Budgets::Budget", _budgets,
            Recognition(custom=regional, description=re.escape(f"user:project${deployment.identity.name}")),
        ),
    ]  # fmt: skip


def _stores(deployment: Deployment, patterns: _Patterns) -> list[AwsKind]:
    """Return the kinds that hold data, keys or queries."""
    prefix, made = patterns.prefix, patterns.generated
    chosen_buckets = [re.escape(name) for name in (deployment.aws.tableflow_bucket, deployment.aws.lake_bucket) if name]
    tagged_keys = Recognition(custom=".*", needs_tags=True)
    return [
        AwsKind(
            "bucket", "AWS::S3::Bucket", _buckets,
            Recognition(
                rf"{prefix}-data-(tableflowbucket|lakebucket)[0-9a-f]{{0,8}}-[a-z0-9]{{12,13}}", custom="|".join(chosen_buckets)
            ),
            is_data=True,
        ),
        AwsKind(
            "glue_database", "AWS::Glue::Database", _glue_databases,
            Recognition(custom=aggregates(deployment), description="^Aggregates that exports keep as tables$"), is_data=True,
        ),
        AwsKind(
            "athena_workgroup", "AWS::Athena::WorkGroup", _workgroups,
            Recognition(custom=prefix, description=rf"^Queries on the tables of {prefix}$"),
        ),
        AwsKind("athena_named_query", "AWS::Athena::NamedQuery", _named_queries, Recognition(rf"{prefix} \S+: .+")),
        AwsKind("dynamodb_table", "AWS::DynamoDB::Table", _dynamodb_tables, Recognition(made)),
        AwsKind(
            "secret", "AWS::SecretsManager::Secret", partial(_secrets, of_pseudonyms=False),
            Recognition(
                custom=rf"{prefix}/(confluent|snowflake)/.+",
                description="^(API key of .+ for .+|Key pair of Snowflake's reader)$",
            ),
        ),
        AwsKind(
            "pseudonymisation_secret", "AWS::SecretsManager::Secret", partial(_secrets, of_pseudonyms=True),
            Recognition(custom=".*", description=rf"^{_PSEUDONYM_SECRET}{prefix}$"), is_data=True, deletes_itself=True,
        ),
        AwsKind("kms_key", "AWS::KMS::Key", partial(_kms_keys, of_pseudonyms=False), tagged_keys, deletes_itself=True),
        AwsKind(
            "pseudonymisation_kms_key", "AWS::KMS::Key", partial(_kms_keys, of_pseudonyms=True), tagged_keys,
            is_data=True, deletes_itself=True,
        ),
    ]  # fmt: skip


def aggregates(deployment: Deployment) -> str:
    """Return the name of the Glue database of aggregates."""
    return f"{deployment.prefix}_aggregates".replace("-", "_")


def kms_descriptions(deployment: Deployment) -> tuple[str, ...]:
    """Return the descriptions of a deployment's KMS keys. Those of stacks with secrets don't name the deployment."""
    return (
        _PSEUDONYM_KEY,
        "Encrypts the keys of Confluent Cloud",
        "Encrypts the keys of Snowflake's users",
        f"Encrypts alarms of {deployment.prefix}",
        f"Encrypts logs and bookmarks of exports of {deployment.prefix}",
    )


def pages(ctx: DeploymentContext, service: str, operation: str, **query: Any) -> Iterator[dict[str, Any]]:
    client = ctx.client(service)
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**query)
    else:
        yield getattr(client, operation)(**query)


def _rows(ctx: DeploymentContext, service: str, operation: str, key: str, **query: Any) -> Iterator[Any]:
    for page in pages(ctx, service, operation, **query):
        yield from page.get(key, [])


def _tags(ctx: DeploymentContext, service: str, operation: str, **query: Any) -> Callable[[], Tags]:
    """Return a function that reads a resource's tags, none for one that is gone meanwhile. It raises ClientError."""

    def read() -> Tags:
        try:
            return parse_tags(getattr(ctx.client(service), operation)(**query))
        except ClientError as error:
            if any(sign in error_code(error) for sign in _GONE):
                return {}
            raise

    return read


def parse_tags(answer: Mapping[str, Any]) -> Tags:
    """Return the tags of an answer, as a map whatever the service calls keys and values."""
    tags = answer.get("Tags") or answer.get("tags") or answer.get("TagSet") or {}
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = (sorted(tag.items(), key=lambda item: not item[0].lower().endswith("key")) for tag in tags)
    return {key: value for (_, key), (_, value) in pairs}


def _functions(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "lambda", "list_functions", "Functions"):
        name = row["FunctionName"]
        yield AwsResource(name, name, tags=_tags(ctx, "lambda", "list_tags", Resource=row["FunctionArn"]))


def _state_machines(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "stepfunctions", "list_state_machines", "stateMachines"):
        arn = row["stateMachineArn"]
        yield AwsResource(row["name"], arn, tags=_tags(ctx, "stepfunctions", "list_tags_for_resource", resourceArn=arn))


def _log_groups(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """By prefix: an account may have thousands."""
    prefix = ctx.deployment.prefix
    for beginning in (f"{prefix}-", f"/aws/lambda/{prefix}-", f"/aws-glue/{prefix}/"):
        for row in _rows(ctx, "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=beginning):
            name, arn = row["logGroupName"], row["arn"].removesuffix(":*")
            yield AwsResource(name, name, tags=_tags(ctx, "logs", "list_tags_for_resource", resourceArn=arn))


def _roles(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Of all regions: tags of a deployment's own say in which region their stack is."""
    for row in _rows(ctx, "iam", "list_roles", "Roles"):
        name = row["RoleName"]
        yield AwsResource(name, name, row.get("Description", ""), _tags(ctx, "iam", "list_role_tags", RoleName=name))


def _glue_jobs(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "glue", "get_jobs", "Jobs"):
        name, log_prefix = row["Name"], row.get("DefaultArguments", {}).get("--custom-logGroup-prefix", "")
        arn = f"arn:aws:glue:{ctx.region}:{ctx.account}:job/{name}"
        yield AwsResource(name, name, log_prefix, _tags(ctx, "glue", "get_tags", ResourceArn=arn))


def _security_configurations(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "glue", "get_security_configurations", "SecurityConfigurations"):
        yield AwsResource(row["Name"], row["Name"], json.dumps(row.get("EncryptionConfiguration", {})))


def _schedule_groups(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "scheduler", "list_schedule_groups", "ScheduleGroups", NamePrefix=ctx.deployment.prefix):
        tags = _tags(ctx, "scheduler", "list_tags_for_resource", ResourceArn=row["Arn"])
        yield AwsResource(row["Name"], row["Name"], tags=tags)


def _schedules(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """With their groups' tags: EventBridge Scheduler tags groups only."""
    for row in _rows(ctx, "scheduler", "list_schedules", "Schedules", NamePrefix=f"{ctx.deployment.prefix}-"):
        group = f"arn:aws:scheduler:{ctx.region}:{ctx.account}:schedule-group/{row['GroupName']}"
        tags = _tags(ctx, "scheduler", "list_tags_for_resource", ResourceArn=group)
        yield AwsResource(row["Name"], row["Name"], tags=tags, parents=(row["GroupName"],))


def _event_rules(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "events", "list_rules", "Rules", NamePrefix=f"{ctx.deployment.prefix}-"):
        tags = _tags(ctx, "events", "list_tags_for_resource", ResourceARN=row["Arn"])
        yield AwsResource(row["Name"], row["Name"], tags=tags)


def _topics(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "sns", "list_topics", "Topics"):
        arn = row["TopicArn"]
        yield AwsResource(arn.rpartition(":")[2], arn, tags=_tags(ctx, "sns", "list_tags_for_resource", ResourceArn=arn))


def _queues(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for url in _rows(ctx, "sqs", "list_queues", "QueueUrls", QueueNamePrefix=f"{ctx.deployment.prefix}-"):
        yield AwsResource(url.rpartition("/")[2], url, tags=_tags(ctx, "sqs", "list_queue_tags", QueueUrl=url))


def _alarms(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "cloudwatch", "describe_alarms", "MetricAlarms", AlarmNamePrefix=f"{ctx.deployment.prefix}-"):
        name, tags = row["AlarmName"], _tags(ctx, "cloudwatch", "list_tags_for_resource", ResourceARN=row["AlarmArn"])
        yield AwsResource(name, name, row.get("AlarmDescription", ""), tags)


def _dashboards(ctx: DeploymentContext) -> Iterator[AwsResource]:
    query = {"DashboardNamePrefix": ctx.deployment.regional_prefix}
    for row in _rows(ctx, "cloudwatch", "list_dashboards", "DashboardEntries", **query):
        name = row["DashboardName"]
        yield AwsResource(name, name, ctx.client("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"])


def _budgets(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "budgets", "describe_budgets", "Budgets", AccountId=ctx.account):
        yield AwsResource(row["BudgetName"], row["BudgetName"], json.dumps(row.get("CostFilters", {})))


def _buckets(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "s3", "list_buckets", "Buckets"):
        yield AwsResource(row["Name"], row["Name"], tags=_tags(ctx, "s3", "get_bucket_tagging", Bucket=row["Name"]))


def _glue_databases(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "glue", "get_databases", "DatabaseList"):
        yield AwsResource(row["Name"], row["Name"], row.get("Description", ""))


def _workgroups(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for row in _rows(ctx, "athena", "list_work_groups", "WorkGroups"):
        arn = f"arn:aws:athena:{ctx.region}:{ctx.account}:workgroup/{row['Name']}"
        tags = _tags(ctx, "athena", "list_tags_for_resource", ResourceARN=arn)
        yield AwsResource(row["Name"], row["Name"], row.get("Description", ""), tags)


def _named_queries(ctx: DeploymentContext) -> Iterator[AwsResource]:
    """Those of the workgroup of the deployment's name."""
    prefix = ctx.deployment.prefix
    if any(one.name == prefix for one in _workgroups(ctx)):
        for id in _rows(ctx, "athena", "list_named_queries", "NamedQueryIds", WorkGroup=prefix):
            yield AwsResource(ctx.client("athena").get_named_query(NamedQueryId=id)["NamedQuery"]["Name"], id)


def _dynamodb_tables(ctx: DeploymentContext) -> Iterator[AwsResource]:
    for name in _rows(ctx, "dynamodb", "list_tables", "TableNames"):
        arn = f"arn:aws:dynamodb:{ctx.region}:{ctx.account}:table/{name}"
        yield AwsResource(name, name, tags=_tags(ctx, "dynamodb", "list_tags_of_resource", ResourceArn=arn))


def _secrets(ctx: DeploymentContext, *, of_pseudonyms: bool) -> Iterator[AwsResource]:
    for row in _rows(ctx, "secretsmanager", "list_secrets", "SecretList", IncludePlannedDeletion=True):
        description = row.get("Description", "")
        own = description == f"{_PSEUDONYM_SECRET}{ctx.deployment.prefix}"
        if own if of_pseudonyms else not description.startswith(_PSEUDONYM_SECRET):
            yield AwsResource(row["Name"], row["ARN"], description, partial(parse_tags, row), _day(row.get("DeletedDate")))


def _kms_keys(ctx: DeploymentContext, *, of_pseudonyms: bool) -> Iterator[AwsResource]:
    """Keys have no names: only those that have the description of a deployment's own count."""
    client, descriptions = ctx.client("kms"), kms_descriptions(ctx.deployment)
    for row in _rows(ctx, "kms", "list_keys", "Keys"):
        key = client.describe_key(KeyId=row["KeyId"])["KeyMetadata"]
        id, description = key["KeyId"], key.get("Description", "")
        if key.get("KeyManager") != "CUSTOMER" or description not in descriptions:
            continue
        if of_pseudonyms is (description == _PSEUDONYM_KEY):
            pending = _day(key.get("DeletionDate")) if key["KeyState"] == "PendingDeletion" else ""
            tags = _tags(ctx, "kms", "list_resource_tags", KeyId=id)
            yield AwsResource(description, id, description, tags, pending)


def _day(at: Any) -> str:
    return at.date().isoformat() if at else ""
