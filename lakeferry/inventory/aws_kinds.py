"""The kinds of AWS resources that a deployment has: how each is listed, recognised outside of stacks, and
deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import attrs

from config.deployments.model import Deployment
from lakeferry.deployment.context import PARTS, DeploymentContext
from lakeferry.inventory import aws_listing
from lakeferry.inventory.aws_deletion import call, delete_bucket, delete_event_rule, delete_role
from lakeferry.inventory.aws_listing import (
    PSEUDONYM_KMS_KEY,
    PSEUDONYM_SECRET,
    AwsResource,
    list_by,
    read_description,
)
from lakeferry.inventory.model import Item
from lakeferry.inventory.recognition import Recognition
from lambdas import contract
from lambdas.custom_resources.cleanup import Cleaner

#: Days for which AWS keeps a deleted KMS key or pseudonymisation key: the fewest that it allows.
_RECOVERY_DAYS: Final = 7
_ROLE_TAGS: Final = ("list_role_tags", "RoleName", "{RoleName}")


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


def list_aws_kinds(deployment: Deployment) -> list[AwsKind]:
    """Return all kinds with this deployment's patterns. A test compares them with the templates."""
    return [attrs.evolve(kind, recognition=kind.recognition.resolve(deployment)) for kind in KINDS]


_NAMED: Final = Recognition(generated="<generated>", truncated="<truncated>")
_TAGGED: Final = Recognition(custom=".*", needs_tags=True)
#: The job argument with the prefix of its log groups' names.
_LOG_PREFIX: Final = "--custom-logGroup-prefix"
_ALARMS: Final = "|".join(
    [
        *contract.METRIC_DIMENSIONS,
        contract.UNMEASURED,
        "DeadLetters",
        contract.LINKS_REFUSED,
        f"(?:{'|'.join(PARTS)})-[A-Za-z]+Errors",
    ]
)

#: In the order of their removal. A resource type that isn't listed is deleted with the resource that it is
#: attached to.
KINDS: Final = (
    AwsKind(
        name="schedule",
        type="AWS::Scheduler::Schedule",
        find=aws_listing.list_schedules,
        delete=call("scheduler", "delete_schedule", Name="{name}", GroupName="{parent}"),
        recognition=_NAMED,
    ),
    AwsKind(
        name="schedule_group",
        type="AWS::Scheduler::ScheduleGroup",
        find=list_by(
            "scheduler",
            "list_schedule_groups",
            "ScheduleGroups",
            prefix="NamePrefix",
            tags=("list_tags_for_resource", "ResourceArn", "{Arn}"),
        ),
        delete=call("scheduler", "delete_schedule_group", Name="{id}"),
        recognition=Recognition(custom="<prefix>"),
    ),
    AwsKind(
        name="event_rule",
        type="AWS::Events::Rule",
        find=list_by(
            "events",
            "list_rules",
            "Rules",
            prefix="NamePrefix",
            tags=("list_tags_for_resource", "ResourceARN", "{Arn}"),
        ),
        delete=delete_event_rule,
        recognition=_NAMED,
    ),
    AwsKind(
        name="glue_job",
        type="AWS::Glue::Job",
        find=list_by(
            "glue",
            "get_jobs",
            "Jobs",
            description=lambda row: row.get("DefaultArguments", {}).get(_LOG_PREFIX, ""),
            tags=("get_tags", "ResourceArn", "arn:aws:glue:{region}:{account}:job/{Name}"),
        ),
        delete=call("glue", "delete_job", JobName="{id}"),
        recognition=Recognition(
            custom="<prefix>-([a-z][a-z0-9_]*|aggregate-tables)", description="^/aws-glue/<prefix>$"
        ),
    ),
    AwsKind(
        name="glue_security_configuration",
        type="AWS::Glue::SecurityConfiguration",
        find=list_by(
            "glue",
            "get_security_configurations",
            "SecurityConfigurations",
            description=lambda row: json.dumps(row.get("EncryptionConfiguration", {})),
        ),
        delete=call("glue", "delete_security_configuration", Name="{id}"),
        recognition=Recognition(
            custom="<prefix>-exports", description='"JobBookmarksEncryptionMode": "CSE-KMS"'
        ),
    ),
    AwsKind(
        name="glue_connection",
        type="AWS::Glue::Connection",
        find=list_by("glue", "get_connections", "ConnectionList", description=read_description),
        delete=call("glue", "delete_connection", ConnectionName="{id}"),
        recognition=Recognition(
            custom="<prefix>-subnet-[0-9a-f]+", description="^Exports of <prefix> run in subnet-"
        ),
    ),
    AwsKind(
        name="state_machine",
        type="AWS::StepFunctions::StateMachine",
        find=list_by(
            "stepfunctions",
            "list_state_machines",
            "stateMachines",
            "name",
            id="stateMachineArn",
            tags=("list_tags_for_resource", "resourceArn", "{stateMachineArn}"),
        ),
        delete=call("stepfunctions", "delete_state_machine", stateMachineArn="{id}"),
        recognition=Recognition(
            generated="<generated>",
            truncated="<truncated>",
            custom="[A-Za-z]+ProviderFrameworkwaiterstatemachine[0-9A-F]{8}-.{12,13}",
        ),
    ),
    AwsKind(
        name="ses_configuration_set",
        type="AWS::SES::ConfigurationSet",
        find=aws_listing.list_configuration_sets,
        delete=call("sesv2", "delete_configuration_set", ConfigurationSetName="{id}"),
        recognition=Recognition(custom="<prefix>-mails"),
    ),
    AwsKind(
        name="http_api",
        type="AWS::ApiGatewayV2::Api",
        find=list_by("apigatewayv2", "get_apis", "Items", id="ApiId", description=read_description),
        delete=call("apigatewayv2", "delete_api", ApiId="{id}"),
        recognition=Recognition(custom="<prefix>-links", description="^Opens links in mails$"),
    ),
    AwsKind(
        name="function",
        type="AWS::Lambda::Function",
        find=list_by(
            "lambda",
            "list_functions",
            "Functions",
            "FunctionName",
            tags=("list_tags", "Resource", "{FunctionArn}"),
        ),
        delete=call("lambda", "delete_function", FunctionName="{id}"),
        recognition=_NAMED,
    ),
    AwsKind(
        name="alarm",
        type="AWS::CloudWatch::Alarm",
        find=list_by(
            "cloudwatch",
            "describe_alarms",
            "MetricAlarms",
            "AlarmName",
            prefix="AlarmNamePrefix",
            description=lambda row: row.get("AlarmDescription", ""),
            tags=("list_tags_for_resource", "ResourceARN", "{AlarmArn}"),
        ),
        delete=lambda ctx, item: ctx.client("cloudwatch").delete_alarms(AlarmNames=[item.name]),
        recognition=Recognition(
            custom=f"<prefix>-({_ALARMS})",
            description=r" of <prefix> is above |^A start of an export or a notice|^A recipient of <prefix> "
            r"|^Function \w+ failed \(|^More than \d+ links of <prefix> ",
        ),
    ),
    AwsKind(
        name="dashboard",
        type="AWS::CloudWatch::Dashboard",
        find=aws_listing.list_dashboards,
        delete=lambda ctx, item: ctx.client("cloudwatch").delete_dashboards(DashboardNames=[item.name]),
        recognition=Recognition(custom="<regional>", description=r"\b<prefix>\b"),
    ),
    AwsKind(
        name="budget",
        type="AWS::Budgets::Budget",
        find=aws_listing.list_budgets,
        delete=call("budgets", "delete_budget", AccountId="{account}", BudgetName="{name}"),
        # It ends in a hash of its notifications, or has none if an earlier version created it.
        recognition=Recognition(custom="<regional>(-[0-9a-f]{8})?", description=r"user:project\$<project>"),
    ),
    AwsKind(
        name="topic",
        type="AWS::SNS::Topic",
        find=aws_listing.list_topics,
        delete=call("sns", "delete_topic", TopicArn="{id}"),
        recognition=Recognition(generated="<generated>", custom="<prefix>_[a-z][a-z0-9_]*|<prefix>-alarms"),
    ),
    AwsKind(
        name="queue",
        type="AWS::SQS::Queue",
        find=aws_listing.list_queues,
        delete=call("sqs", "delete_queue", QueueUrl="{id}"),
        recognition=_NAMED,
    ),
    AwsKind(
        name="athena_named_query",
        type="AWS::Athena::NamedQuery",
        find=aws_listing.list_named_queries,
        delete=call("athena", "delete_named_query", NamedQueryId="{id}"),
        recognition=Recognition(generated=r"<prefix> \S+: .+"),
    ),
    AwsKind(
        name="athena_workgroup",
        type="AWS::Athena::WorkGroup",
        find=aws_listing.workgroups,
        delete=call("athena", "delete_work_group", WorkGroup="{id}", RecursiveDeleteOption=True),
        recognition=Recognition(custom="<prefix>", description="^Queries on the tables of <prefix>$"),
    ),
    # Listed with their databases.
    AwsKind(
        name="glue_table",
        type="AWS::Glue::Table",
        find=lambda _: iter(()),
        delete=call("glue", "delete_table", DatabaseName="{parent}", Name="{name}"),
        is_data=True,
    ),
    AwsKind(
        name="glue_database",
        type="AWS::Glue::Database",
        find=list_by("glue", "get_databases", "DatabaseList", description=read_description),
        delete=lambda ctx, item: Cleaner(ctx.client, ctx.account, ctx.deadline).glue_database(item.name, ""),
        recognition=Recognition(
            custom="<aggregates>", description="^Aggregates that exports keep as tables$"
        ),
        is_data=True,
    ),
    AwsKind(
        name="bucket",
        type="AWS::S3::Bucket",
        find=list_by("s3", "list_buckets", "Buckets", tags=("get_bucket_tagging", "Bucket", "{Name}")),
        delete=delete_bucket,
        recognition=Recognition(
            generated="<prefix>-data-(tableflowbucket|lakebucket)[0-9a-f]{0,8}-[a-z0-9]{12,13}",
            custom="<buckets>",
        ),
        is_data=True,
    ),
    AwsKind(
        name="dynamodb_table",
        type="AWS::DynamoDB::Table",
        find=aws_listing.list_dynamodb_tables,
        delete=call("dynamodb", "delete_table", TableName="{id}"),
        recognition=Recognition(generated="<generated>"),
    ),
    # Deleted as CloudFormation does it, without a recovery window, in which the name could not be used again.
    AwsKind(
        name="secret",
        type="AWS::SecretsManager::Secret",
        find=partial(aws_listing.list_secrets, of_pseudonyms=False),
        delete=call("secretsmanager", "delete_secret", SecretId="{id}", ForceDeleteWithoutRecovery=True),
        recognition=Recognition(
            custom="<prefix>/(confluent|snowflake|links)/.+",
            description="^(API key of .+ for .+|Key pair of Snowflake's reader|Signs links of <prefix>)$",
        ),
    ),
    # It can be restored for a week, because without it pseudonyms can't be resolved.
    AwsKind(
        name="pseudonymisation_secret",
        type="AWS::SecretsManager::Secret",
        find=partial(aws_listing.list_secrets, of_pseudonyms=True),
        delete=call("secretsmanager", "delete_secret", SecretId="{id}", RecoveryWindowInDays=_RECOVERY_DAYS),
        recognition=Recognition(custom=".*", description=f"^{PSEUDONYM_SECRET}<prefix>$"),
        is_data=True,
        deletes_itself=True,
    ),
    # IAM lists the roles of all regions. The tags of a deployment's roles say in which region their stack is.
    AwsKind(
        name="role",
        type="AWS::IAM::Role",
        find=list_by("iam", "list_roles", "Roles", "RoleName", description=read_description, tags=_ROLE_TAGS),
        delete=delete_role,
        recognition=Recognition(
            truncated="<truncated>",
            custom="<generated>|<regional>-(tableflow|snowflake)",
            description="^(Confluent's Tableflow writes tables and shows them in Glue|"
            "Snowflake reads the tables that Tableflow writes)$",
        ),
    ),
    # An update leaves a policy that somebody has attached. IAM lists those of all regions, and a name alone
    # proves nothing: tags or a former stack decide.
    AwsKind(
        name="managed_policy",
        type="AWS::IAM::ManagedPolicy",
        find=aws_listing.managed_policies,
        delete=call("iam", "delete_policy", PolicyArn="{id}"),
        recognition=Recognition(truncated="<generated>"),
    ),
    AwsKind(
        name="log_group",
        type="AWS::Logs::LogGroup",
        find=aws_listing.log_groups,
        delete=call("logs", "delete_log_group", logGroupName="{id}"),
        recognition=Recognition(
            generated="(/aws/lambda/)?(<generated>)|/aws-glue/<prefix>/(output|error)",
            truncated="(/aws/lambda/)?(<truncated>)",
        ),
    ),
    AwsKind(
        name="kms_key",
        type="AWS::KMS::Key",
        find=aws_listing.list_kms_keys,
        delete=call("kms", "schedule_key_deletion", KeyId="{id}", PendingWindowInDays=_RECOVERY_DAYS),
        recognition=_TAGGED,
        deletes_itself=True,
    ),
    # Listed with the other KMS keys.
    AwsKind(
        name=PSEUDONYM_KMS_KEY,
        type="AWS::KMS::Key",
        find=lambda _: iter(()),
        delete=call("kms", "schedule_key_deletion", KeyId="{id}", PendingWindowInDays=_RECOVERY_DAYS),
        recognition=_TAGGED,
        is_data=True,
        deletes_itself=True,
    ),
)
