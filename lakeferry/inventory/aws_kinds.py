"""The kinds of AWS resources that a deployment has: how each is listed, recognised outside of stacks, and
deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import attrs

from config.deployments.model import Deployment
from lakeferry.deployment.context import PARTS, DeploymentContext
from lakeferry.inventory import aws_listing
from lakeferry.inventory.aws_listing import (
    PSEUDONYM_KMS_KEY,
    PSEUDONYM_SECRET,
    AwsResource,
    list_by,
    read_description,
)
from lakeferry.inventory.model import Item
from lambdas import contract
from lambdas.custom_resources.cleanup import Cleaner

#: Days for which AWS keeps a deleted KMS key or pseudonymisation key: the fewest that it allows.
_RECOVERY_DAYS: Final = 7


@attrs.frozen
class Recognition:
    """Patterns by which resources that no stack has are recognised as the deployment's.

    A name that matches `generated` can only come from CloudFormation. One that matches `truncated` does, too,
    but may belong to another deployment: tags or a former stack decide. Anybody could have given a name that
    matches `custom`: the `description` or tags decide; with `needs_tags`, only tags.
    """

    generated: str = ""
    truncated: str = ""
    custom: str = ""
    description: str = ""
    needs_tags: bool = False

    def resolve(self, deployment: Deployment) -> Recognition:
        """Return the patterns, with <prefix> and the other placeholders replaced by their values."""
        prefix = re.escape(deployment.prefix)
        stack = rf"{prefix}-(data|confluent|snowflake|exports|operations)"
        chosen_buckets = [
            name for name in (deployment.aws.tableflow_bucket, deployment.aws.lake_bucket) if name
        ]
        values = {
            "<prefix>": prefix,
            "<regional>": re.escape(deployment.regional_prefix),
            "<project>": re.escape(deployment.identity.name),
            "<buckets>": "|".join(map(re.escape, chosen_buckets)),
            # It ends in digits of its stack's id, unless an earlier version created it. Earlier deployments
            # may have kept theirs.
            "<aggregates>": deployment.prefix.replace("-", "_") + "_aggregates(_[0-9a-f]{8})?",
            # A name that CloudFormation generates: stack, logical id, 12 or 13 characters. No other stack's
            # names match.
            "<generated>": rf"{stack}-[A-Za-z0-9]+-[A-Za-z0-9]{{12,13}}",
            # The same, cut to the most characters that a service allows. What begins with
            # `lake-dev-data-confluent-` may be of the stack `lake-dev-data` or of the stack
            # `lake-dev-data-confluent`.
            "<truncated>": rf"(?=.{{64}}$|.{{80}}$){stack}-[A-Za-z0-9-]{{30,}}",
        }

        def fill(pattern: str) -> str:
            return re.sub("|".join(values), lambda match: values[match[0]], pattern)

        generated, truncated, custom, description = map(
            fill, (self.generated, self.truncated, self.custom, self.description)
        )
        return Recognition(generated, truncated, custom, description, self.needs_tags)


@attrs.frozen
class AwsKind:
    """`delete` returns False if it has to be called again; it raises ClientError, BotoCoreError,
    LakeferryError.

    on_destroy = "keep" keeps resources of a kind with `is_data`. With `deletes_itself`, a pending deletion
    needs no attention.
    """

    name: str
    type: str
    find: Callable[[DeploymentContext], Iterator[AwsResource]]
    delete: Callable[[DeploymentContext, Item], Any]
    recognition: Recognition = Recognition()
    is_data: bool = False
    deletes_itself: bool = False


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern of a Recognition matches the whole name. An empty pattern matches nothing."""
    return bool(pattern) and re.fullmatch(pattern, name) is not None


def aws_kinds(deployment: Deployment) -> list[AwsKind]:
    """Return all kinds with this deployment's patterns. A test compares them with the templates."""
    return [attrs.evolve(kind, recognition=kind.recognition.resolve(deployment)) for kind in KINDS]


def _call(service: str, operation: str, **parameters: Any) -> Callable[[DeploymentContext, Item], Any]:
    """Return a function that deletes an item by one call.

    It fills in {id}, {name}, {parent} and {account} in the parameters.
    """

    def delete(ctx: DeploymentContext, item: Item) -> None:
        values = {
            "id": item.id,
            "name": item.name,
            "parent": "".join(item.parents[:1]),
            "account": ctx.account,
        }
        given = {
            name: value.format(**values) if isinstance(value, str) else value
            for name, value in parameters.items()
        }
        getattr(ctx.client(service), operation)(**given)

    return delete


def _delete_event_rule(ctx: DeploymentContext, item: Item) -> None:
    events = ctx.client("events")
    if ids := [rule_target["Id"] for rule_target in events.list_targets_by_rule(Rule=item.name)["Targets"]]:
        events.remove_targets(Rule=item.name, Ids=ids)
    events.delete_rule(Name=item.name)


def _delete_bucket(ctx: DeploymentContext, item: Item) -> bool:
    if not Cleaner(ctx.client, ctx.account, ctx.deadline).bucket(item.name):
        return False
    ctx.client("s3").delete_bucket(Bucket=item.name, ExpectedBucketOwner=ctx.account)
    return True


def _delete_role(ctx: DeploymentContext, item: Item) -> None:
    iam = ctx.client("iam")
    for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=item.name):
        for policy in page["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=item.name, PolicyArn=policy["PolicyArn"])
    for page in iam.get_paginator("list_role_policies").paginate(RoleName=item.name):
        for name in page["PolicyNames"]:
            iam.delete_role_policy(RoleName=item.name, PolicyName=name)
    iam.delete_role(RoleName=item.name)


_NAMED: Final = Recognition("<generated>", "<truncated>")
_TAGGED: Final = Recognition(custom=".*", needs_tags=True)
#: The job argument with the prefix of its log groups' names.
_LOG_PREFIX: Final = "--custom-logGroup-prefix"
_ALARMS: Final = "|".join(
    [
        *contract.METRIC_DIMENSIONS,
        contract.UNMEASURED,
        "DeadLetters",
        f"(?:{'|'.join(PARTS)})-[A-Za-z]+Errors",
    ]
)

#: In the order of their removal. A resource type that isn't listed is deleted with the resource that it is
#: attached to.
KINDS: Final = (
    AwsKind(
        "schedule", "AWS::Scheduler::Schedule", aws_listing.schedules,
        _call("scheduler", "delete_schedule", Name="{name}", GroupName="{parent}"), _NAMED,
    ),
    AwsKind(
        "schedule_group", "AWS::Scheduler::ScheduleGroup",
        list_by("scheduler", "list_schedule_groups", "ScheduleGroups", prefix="NamePrefix",
                tags=("list_tags_for_resource", "ResourceArn", "{Arn}")),
        _call("scheduler", "delete_schedule_group", Name="{id}"), Recognition(custom="<prefix>"),
    ),
    AwsKind(
        "event_rule", "AWS::Events::Rule",
        list_by("events", "list_rules", "Rules", prefix="NamePrefix", tags=("list_tags_for_resource", "ResourceARN", "{Arn}")),
        _delete_event_rule, _NAMED,
    ),
    AwsKind(
        "glue_job", "AWS::Glue::Job",
        list_by("glue", "get_jobs", "Jobs", description=lambda row: row.get("DefaultArguments", {}).get(_LOG_PREFIX, ""),
                tags=("get_tags", "ResourceArn", "arn:aws:glue:{region}:{account}:job/{Name}")),
        _call("glue", "delete_job", JobName="{id}"),
        Recognition(custom="<prefix>-[a-z][a-z0-9_]*", description="^/aws-glue/<prefix>$"),
    ),
    AwsKind(
        "glue_security_configuration", "AWS::Glue::SecurityConfiguration",
        list_by("glue", "get_security_configurations", "SecurityConfigurations",
                description=lambda row: json.dumps(row.get("EncryptionConfiguration", {}))),
        _call("glue", "delete_security_configuration", Name="{id}"),
        Recognition(custom="<prefix>-exports", description='"JobBookmarksEncryptionMode": "CSE-KMS"'),
    ),
    AwsKind(
        "state_machine", "AWS::StepFunctions::StateMachine",
        list_by("stepfunctions", "list_state_machines", "stateMachines", "name", id="stateMachineArn",
                tags=("list_tags_for_resource", "resourceArn", "{stateMachineArn}")),
        _call("stepfunctions", "delete_state_machine", stateMachineArn="{id}"),
        Recognition("<generated>", "<truncated>", "[A-Za-z]+ProviderFrameworkwaiterstatemachine[0-9A-F]{8}-.{12,13}"),
    ),
    AwsKind(
        "function", "AWS::Lambda::Function",
        list_by("lambda", "list_functions", "Functions", "FunctionName", tags=("list_tags", "Resource", "{FunctionArn}")),
        _call("lambda", "delete_function", FunctionName="{id}"), _NAMED,
    ),
    AwsKind(
        "alarm", "AWS::CloudWatch::Alarm",
        list_by("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName", prefix="AlarmNamePrefix",
                description=lambda row: row.get("AlarmDescription", ""),
                tags=("list_tags_for_resource", "ResourceARN", "{AlarmArn}")),
        lambda ctx, item: ctx.client("cloudwatch").delete_alarms(AlarmNames=[item.name]),
        Recognition(
            custom=f"<prefix>-({_ALARMS})",
            description=r" of <prefix> is above |^A start of an export or a notice|^A recipient of <prefix> "
            r"|^Function \w+ failed \(",
        ),
    ),
    AwsKind(
        "dashboard", "AWS::CloudWatch::Dashboard", aws_listing.dashboards,
        lambda ctx, item: ctx.client("cloudwatch").delete_dashboards(DashboardNames=[item.name]),
        Recognition(custom="<regional>", description=r"\b<prefix>\b"),
    ),
    AwsKind(
        "budget", "AWS::Budgets::Budget", aws_listing.budgets,
        _call("budgets", "delete_budget", AccountId="{account}", BudgetName="{name}"),
        # It ends in a hash of its notifications, or has none if an earlier version created it.
        Recognition(custom="<regional>(-[0-9a-f]{8})?", description=r"user:project\$<project>"),
    ),
    AwsKind(
        "topic", "AWS::SNS::Topic", aws_listing.topics, _call("sns", "delete_topic", TopicArn="{id}"),
        Recognition("<generated>", custom="<prefix>_[a-z][a-z0-9_]*|<prefix>-alarms"),
    ),
    AwsKind("queue", "AWS::SQS::Queue", aws_listing.queues, _call("sqs", "delete_queue", QueueUrl="{id}"), _NAMED),
    AwsKind(
        "athena_named_query", "AWS::Athena::NamedQuery", aws_listing.named_queries,
        _call("athena", "delete_named_query", NamedQueryId="{id}"), Recognition(r"<prefix> \S+: .+"),
    ),
    AwsKind(
        "athena_workgroup", "AWS::Athena::WorkGroup", aws_listing.workgroups,
        _call("athena", "delete_work_group", WorkGroup="{id}", RecursiveDeleteOption=True),
        Recognition(custom="<prefix>", description="^Queries on the tables of <prefix>$"),
    ),
    # Listed with their databases.
    AwsKind(
        "glue_table", "AWS::Glue::Table", lambda _: iter(()),
        _call("glue", "delete_table", DatabaseName="{parent}", Name="{name}"), is_data=True,
    ),
    AwsKind(
        "glue_database", "AWS::Glue::Database",
        list_by("glue", "get_databases", "DatabaseList", description=read_description), lambda ctx,
        item: Cleaner(ctx.client, ctx.account, ctx.deadline).glue_database(item.name, ""),
        Recognition(custom="<aggregates>", description="^Aggregates that exports keep as tables$"),
        is_data=True,
    ),
    AwsKind(
        "bucket", "AWS::S3::Bucket",
        list_by("s3", "list_buckets", "Buckets", tags=("get_bucket_tagging", "Bucket", "{Name}")),
        _delete_bucket,
        Recognition("<prefix>-data-(tableflowbucket|lakebucket)[0-9a-f]{0,8}-[a-z0-9]{12,13}", custom="<buckets>"),
        is_data=True,
    ),
    AwsKind(
        "dynamodb_table", "AWS::DynamoDB::Table", aws_listing.dynamodb_tables,
        _call("dynamodb", "delete_table", TableName="{id}"), Recognition("<generated>"),
    ),
    # Deleted as CloudFormation does it, without a recovery window, in which the name could not be used again.
    AwsKind(
        "secret", "AWS::SecretsManager::Secret", partial(aws_listing.secrets, of_pseudonyms=False),
        _call("secretsmanager", "delete_secret", SecretId="{id}", ForceDeleteWithoutRecovery=True),
        Recognition(
            custom="<prefix>/(confluent|snowflake)/.+", description="^(API key of .+ for .+|Key pair of Snowflake's reader)$"
        ),
    ),
    # It can be restored for a week, because without it pseudonyms can't be resolved.
    AwsKind(
        "pseudonymisation_secret", "AWS::SecretsManager::Secret",
        partial(aws_listing.secrets, of_pseudonyms=True),
        _call("secretsmanager", "delete_secret", SecretId="{id}", RecoveryWindowInDays=_RECOVERY_DAYS),
        Recognition(custom=".*", description=f"^{PSEUDONYM_SECRET}<prefix>$"), is_data=True,
        deletes_itself=True,
    ),
    # IAM lists the roles of all regions. The tags of a deployment's roles say in which region their stack is.
    AwsKind(
        "role", "AWS::IAM::Role",
        list_by("iam", "list_roles", "Roles", "RoleName", description=read_description,
                tags=("list_role_tags", "RoleName", "{RoleName}")),
        _delete_role,
        Recognition(
            truncated="<truncated>", custom="<generated>|<regional>-(tableflow|snowflake)",
            description="^(Confluent's Tableflow writes tables and shows them in Glue|"
            "Snowflake reads the tables that Tableflow writes)$",
        ),
    ),
    AwsKind(
        "log_group", "AWS::Logs::LogGroup", aws_listing.log_groups,
        _call("logs", "delete_log_group", logGroupName="{id}"),
        Recognition("(/aws/lambda/)?(<generated>)|/aws-glue/<prefix>/(output|error)", "(/aws/lambda/)?(<truncated>)"),
    ),
    AwsKind(
        "kms_key", "AWS::KMS::Key", aws_listing.kms_keys,
        _call("kms", "schedule_key_deletion", KeyId="{id}", PendingWindowInDays=_RECOVERY_DAYS), _TAGGED,
        deletes_itself=True,
    ),
    # Listed with the other KMS keys.
    AwsKind(
        PSEUDONYM_KMS_KEY, "AWS::KMS::Key", lambda _: iter(()),
        _call("kms", "schedule_key_deletion", KeyId="{id}", PendingWindowInDays=_RECOVERY_DAYS), _TAGGED,
        is_data=True, deletes_itself=True,
    ),
)  # fmt: skip
