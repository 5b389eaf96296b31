"""What works in AWS: functions with their roles and logs, jobs, schedules, topics, queues, alarms, a dashboard, a budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import aws_kinds
from lakeferry.inventory.aws_kinds import AwsKind, Found, Rule, Tags, cut, generated, of_list, pages
from lambdas import contract

_ROLES = "^(Confluent's Tableflow writes tables and shows them in Glue|Snowflake reads the tables that Tableflow writes)$"
_WAITER = "[A-Za-z]+ProviderFrameworkwaiterstatemachine[0-9A-F]{8}-.{12,13}"
_ALARMS = "|".join([*contract.METRIC_DIMENSIONS, contract.UNMEASURED, "DeadLetters", "[A-Za-z]+Errors"])
_ALARM_SAYS = r" of {prefix} is above |^A start of an export or a notice|^A recipient of {prefix} |^Function \w+ failed \("


def kinds(deployment: Deployment) -> list[AwsKind]:
    prefix, made, long = re.escape(deployment.prefix), generated(deployment), cut(deployment)
    return [
        AwsKind("function", "AWS::Lambda::Function", _functions, Rule(made=made, cut=long)),
        AwsKind("state_machine", "AWS::StepFunctions::StateMachine", _machines, Rule(made=made, cut=long, ours=_WAITER)),
        AwsKind(
            "log_group",
            "AWS::Logs::LogGroup",
            _log_groups,
            Rule(made=rf"(/aws/lambda/)?({made})|/aws-glue/{prefix}/(output|error)", cut=rf"(/aws/lambda/)?({long})"),
        ),
        AwsKind(
            "role",
            "AWS::IAM::Role",
            _roles,
            Rule(cut=long, ours=rf"{made}|{re.escape(deployment.regional_prefix)}-(tableflow|snowflake)", says=_ROLES),
        ),
        AwsKind(
            "glue_job",
            "AWS::Glue::Job",
            _jobs,
            Rule(ours=rf"{prefix}-[a-z][a-z0-9_]*", says=rf"^/aws-glue/{prefix}$"),
        ),
        AwsKind(
            "glue_security_configuration",
            "AWS::Glue::SecurityConfiguration",
            _security_configurations,
            Rule(ours=rf"{prefix}-exports", says=r'"JobBookmarksEncryptionMode": "CSE-KMS"'),
        ),
        AwsKind("schedule_group", "AWS::Scheduler::ScheduleGroup", _groups, Rule(ours=prefix)),
        AwsKind("schedule", "AWS::Scheduler::Schedule", _schedules, Rule(made=made, cut=long)),
        AwsKind("event_rule", "AWS::Events::Rule", _rules, Rule(made=made, cut=long)),
        AwsKind("topic", "AWS::SNS::Topic", _topics, Rule(made=made, ours=rf"{prefix}_[a-z][a-z0-9_]*|{prefix}-alarms")),
        AwsKind("queue", "AWS::SQS::Queue", _queues, Rule(made=made, cut=long)),
        AwsKind(
            "alarm",
            "AWS::CloudWatch::Alarm",
            _alarms,
            Rule(ours=rf"{prefix}-({_ALARMS})", says=_ALARM_SAYS.format(prefix=prefix)),
        ),
        AwsKind(
            "dashboard",
            "AWS::CloudWatch::Dashboard",
            _dashboards,
            Rule(ours=re.escape(deployment.regional_prefix), says=rf"\b{prefix}\b"),
        ),
        AwsKind("budget", "AWS::Budgets::Budget", _budgets, _of_budget(deployment)),
    ]


def _of_budget(deployment: Deployment) -> Rule:
    told = deployment.deployment
    return Rule(ours=re.escape(deployment.regional_prefix), says=re.escape(f"user:project${told.name}"))


def _functions(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "lambda", "list_functions"):
        for one in page["Functions"]:
            yield Found(one["FunctionName"], one["FunctionName"], tags=_of_function(ctx, one["FunctionArn"]))


def _machines(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "stepfunctions", "list_state_machines"):
        for one in page["stateMachines"]:
            arn = one["stateMachineArn"]
            yield Found(one["name"], arn, tags=_listed(ctx, "stepfunctions", "key", "value", resourceArn=arn))


def _log_groups(ctx: DeploymentContext) -> Iterator[Found]:
    """An account may have thousands."""
    prefix = ctx.deployment.prefix
    for beginning in (f"{prefix}-", f"/aws/lambda/{prefix}-", f"/aws-glue/{prefix}/"):
        for page in pages(ctx, "logs", "describe_log_groups", logGroupNamePrefix=beginning):
            for one in page["logGroups"]:
                arn = one["arn"].removesuffix(":*")
                tags = _mapped(ctx, "logs", "list_tags_for_resource", "tags", resourceArn=arn)
                yield Found(one["logGroupName"], one["logGroupName"], tags=tags)


def _roles(ctx: DeploymentContext) -> Iterator[Found]:
    """Of all regions: the tags of ours say in which one their stack is."""
    for page in pages(ctx, "iam", "list_roles"):
        for one in page["Roles"]:
            tags = _listed(ctx, "iam", operation="list_role_tags", RoleName=one["RoleName"])
            yield Found(one["RoleName"], one["RoleName"], one.get("Description", ""), tags)


def _jobs(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "glue", "get_jobs"):
        for one in page["Jobs"]:
            arn = f"arn:aws:glue:{ctx.region}:{ctx.account}:job/{one['Name']}"
            said = one.get("DefaultArguments", {}).get("--custom-logGroup-prefix", "")
            yield Found(one["Name"], one["Name"], said, _mapped(ctx, "glue", "get_tags", "Tags", ResourceArn=arn))


def _security_configurations(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "glue", "get_security_configurations"):
        for one in page["SecurityConfigurations"]:
            yield Found(one["Name"], one["Name"], json.dumps(one.get("EncryptionConfiguration", {})))


def _groups(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "scheduler", "list_schedule_groups", NamePrefix=ctx.deployment.prefix):
        for one in page["ScheduleGroups"]:
            yield Found(one["Name"], one["Name"], tags=_listed(ctx, "scheduler", ResourceArn=one["Arn"]))


def _schedules(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "scheduler", "list_schedules", NamePrefix=f"{ctx.deployment.prefix}-"):
        for one in page["Schedules"]:
            yield Found(one["Name"], one["Name"], tags=_of_group(ctx, one["GroupName"]), where=(one["GroupName"],))


def _rules(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "events", "list_rules", NamePrefix=f"{ctx.deployment.prefix}-"):
        for one in page["Rules"]:
            yield Found(one["Name"], one["Name"], tags=_listed(ctx, "events", ResourceARN=one["Arn"]))


def _topics(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "sns", "list_topics"):
        for one in page["Topics"]:
            arn = one["TopicArn"]
            yield Found(arn.rpartition(":")[2], arn, tags=_listed(ctx, "sns", ResourceArn=arn))


def _queues(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "sqs", "list_queues", QueueNamePrefix=f"{ctx.deployment.prefix}-"):
        for url in page.get("QueueUrls", []):
            yield Found(url.rpartition("/")[2], url, tags=_mapped(ctx, "sqs", "list_queue_tags", "Tags", QueueUrl=url))


def _alarms(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{ctx.deployment.prefix}-"):
        for one in page["MetricAlarms"]:
            tags = _listed(ctx, "cloudwatch", ResourceARN=one["AlarmArn"])
            yield Found(one["AlarmName"], one["AlarmName"], one.get("AlarmDescription", ""), tags)


def _dashboards(ctx: DeploymentContext) -> Iterator[Found]:
    client = ctx.client("cloudwatch")
    for page in pages(ctx, "cloudwatch", "list_dashboards", DashboardNamePrefix=ctx.deployment.regional_prefix):
        for one in page["DashboardEntries"]:
            body = client.get_dashboard(DashboardName=one["DashboardName"])["DashboardBody"]
            yield Found(one["DashboardName"], one["DashboardName"], body)


def _budgets(ctx: DeploymentContext) -> Iterator[Found]:
    for page in pages(ctx, "budgets", "describe_budgets", AccountId=ctx.account):
        for one in page.get("Budgets", []):
            yield Found(one["BudgetName"], one["BudgetName"], json.dumps(one.get("CostFilters", {})))


def _listed(
    ctx: DeploymentContext,
    service: str,
    key: str = "Key",
    value: str = "Value",
    operation: str = "list_tags_for_resource",
    **asked: Any,
) -> Callable[[], Tags]:
    def ask() -> Tags:
        found = aws_kinds.tags_of(ctx, service, operation, **asked)
        return of_list(found.get("Tags") or found.get("tags"), key, value)

    return ask


def _mapped(ctx: DeploymentContext, service: str, operation: str, answer: str, **asked: Any) -> Callable[[], Tags]:
    """Of the services that answer with a map."""
    return lambda: dict(aws_kinds.tags_of(ctx, service, operation, **asked).get(answer) or {})


def _of_group(ctx: DeploymentContext, group: str) -> Callable[[], Tags]:
    """A schedule has no tags of its own: EventBridge Scheduler tags groups only."""
    arn = f"arn:aws:scheduler:{ctx.region}:{ctx.account}:schedule-group/{group}"
    return _listed(ctx, "scheduler", ResourceArn=arn)


def _of_function(ctx: DeploymentContext, arn: str) -> Callable[[], Tags]:
    return lambda: dict(ctx.client("lambda").list_tags(Resource=arn).get("Tags") or {})
