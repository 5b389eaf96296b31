"""What works in AWS: functions with their roles and logs, jobs, schedules, topics, queues, alarms, a dashboard, a budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from deployments.model import Deployment
from lakeferry.deployment.context import Ground
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


def _functions(here: Ground) -> Iterator[Found]:
    for page in pages(here, "lambda", "list_functions"):
        for one in page["Functions"]:
            yield Found(one["FunctionName"], one["FunctionName"], tags=_of_function(here, one["FunctionArn"]))


def _machines(here: Ground) -> Iterator[Found]:
    for page in pages(here, "stepfunctions", "list_state_machines"):
        for one in page["stateMachines"]:
            arn = one["stateMachineArn"]
            yield Found(one["name"], arn, tags=_listed(here, "stepfunctions", "key", "value", resourceArn=arn))


def _log_groups(here: Ground) -> Iterator[Found]:
    """An account may have thousands."""
    prefix = here.deployment.prefix
    for beginning in (f"{prefix}-", f"/aws/lambda/{prefix}-", f"/aws-glue/{prefix}/"):
        for page in pages(here, "logs", "describe_log_groups", logGroupNamePrefix=beginning):
            for one in page["logGroups"]:
                arn = one["arn"].removesuffix(":*")
                tags = _mapped(here, "logs", "list_tags_for_resource", "tags", resourceArn=arn)
                yield Found(one["logGroupName"], one["logGroupName"], tags=tags)


def _roles(here: Ground) -> Iterator[Found]:
    """Of all regions: the tags of ours say in which one their stack is."""
    for page in pages(here, "iam", "list_roles"):
        for one in page["Roles"]:
            tags = _listed(here, "iam", operation="list_role_tags", RoleName=one["RoleName"])
            yield Found(one["RoleName"], one["RoleName"], one.get("Description", ""), tags)


def _jobs(here: Ground) -> Iterator[Found]:
    for page in pages(here, "glue", "get_jobs"):
        for one in page["Jobs"]:
            arn = f"arn:aws:glue:{here.region}:{here.account}:job/{one['Name']}"
            said = one.get("DefaultArguments", {}).get("--custom-logGroup-prefix", "")
            yield Found(one["Name"], one["Name"], said, _mapped(here, "glue", "get_tags", "Tags", ResourceArn=arn))


def _security_configurations(here: Ground) -> Iterator[Found]:
    for page in pages(here, "glue", "get_security_configurations"):
        for one in page["SecurityConfigurations"]:
            yield Found(one["Name"], one["Name"], json.dumps(one.get("EncryptionConfiguration", {})))


def _groups(here: Ground) -> Iterator[Found]:
    for page in pages(here, "scheduler", "list_schedule_groups", NamePrefix=here.deployment.prefix):
        for one in page["ScheduleGroups"]:
            yield Found(one["Name"], one["Name"], tags=_listed(here, "scheduler", ResourceArn=one["Arn"]))


def _schedules(here: Ground) -> Iterator[Found]:
    for page in pages(here, "scheduler", "list_schedules", NamePrefix=f"{here.deployment.prefix}-"):
        for one in page["Schedules"]:
            yield Found(one["Name"], one["Name"], tags=_of_group(here, one["GroupName"]), where=(one["GroupName"],))


def _rules(here: Ground) -> Iterator[Found]:
    for page in pages(here, "events", "list_rules", NamePrefix=f"{here.deployment.prefix}-"):
        for one in page["Rules"]:
            yield Found(one["Name"], one["Name"], tags=_listed(here, "events", ResourceARN=one["Arn"]))


def _topics(here: Ground) -> Iterator[Found]:
    for page in pages(here, "sns", "list_topics"):
        for one in page["Topics"]:
            arn = one["TopicArn"]
            yield Found(arn.rpartition(":")[2], arn, tags=_listed(here, "sns", ResourceArn=arn))


def _queues(here: Ground) -> Iterator[Found]:
    for page in pages(here, "sqs", "list_queues", QueueNamePrefix=f"{here.deployment.prefix}-"):
        for url in page.get("QueueUrls", []):
            yield Found(url.rpartition("/")[2], url, tags=_mapped(here, "sqs", "list_queue_tags", "Tags", QueueUrl=url))


def _alarms(here: Ground) -> Iterator[Found]:
    for page in pages(here, "cloudwatch", "describe_alarms", AlarmNamePrefix=f"{here.deployment.prefix}-"):
        for one in page["MetricAlarms"]:
            tags = _listed(here, "cloudwatch", ResourceARN=one["AlarmArn"])
            yield Found(one["AlarmName"], one["AlarmName"], one.get("AlarmDescription", ""), tags)


def _dashboards(here: Ground) -> Iterator[Found]:
    client = here.client("cloudwatch")
    for page in pages(here, "cloudwatch", "list_dashboards", DashboardNamePrefix=here.deployment.regional_prefix):
        for one in page["DashboardEntries"]:
            body = client.get_dashboard(DashboardName=one["DashboardName"])["DashboardBody"]
            yield Found(one["DashboardName"], one["DashboardName"], body)


def _budgets(here: Ground) -> Iterator[Found]:
    for page in pages(here, "budgets", "describe_budgets", AccountId=here.account):
        for one in page.get("Budgets", []):
            yield Found(one["BudgetName"], one["BudgetName"], json.dumps(one.get("CostFilters", {})))


def _listed(
    here: Ground, service: str, key: str = "Key", value: str = "Value", operation: str = "list_tags_for_resource", **asked: Any
) -> Callable[[], Tags]:
    def ask() -> Tags:
        found = aws_kinds.tags_of(here, service, operation, **asked)
        return of_list(found.get("Tags") or found.get("tags"), key, value)

    return ask


def _mapped(here: Ground, service: str, operation: str, answer: str, **asked: Any) -> Callable[[], Tags]:
    """Of the services that answer with a map."""
    return lambda: dict(aws_kinds.tags_of(here, service, operation, **asked).get(answer) or {})


def _of_group(here: Ground, group: str) -> Callable[[], Tags]:
    """A schedule has no tags of its own: EventBridge Scheduler tags groups only."""
    arn = f"arn:aws:scheduler:{here.region}:{here.account}:schedule-group/{group}"
    return _listed(here, "scheduler", ResourceArn=arn)


def _of_function(here: Ground, arn: str) -> Callable[[], Tags]:
    return lambda: dict(here.client("lambda").list_tags(Resource=arn).get("Tags") or {})
