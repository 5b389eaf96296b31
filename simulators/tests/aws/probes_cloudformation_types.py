"""Probes: how AWS differs from stock MiniStack in the resource types of CloudFormation, and in their
properties.
"""

import itertools
import json

from botocore.exceptions import ClientError

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack, status_of
from tests.support.assembly_kit import dev_templates
from tests.support.aws_clients import error_of
from tests.support.rotation_kit import echo
from tests.support.runtime_kit import numbered, service_role, starter
from tests.support.waiting import until

_numbers = itertools.count(1)


def known(aws, resource_type, **properties):
    """Return None if the type is unknown, which CreateStack refuses."""
    try:
        return Stack(aws, resource_type, **properties)
    except ClientError:
        return None


def secret(aws, **properties):
    return Stack(aws, "AWS::SecretsManager::Secret", Name=f"of-a-stack-{next(_numbers)}", **properties)


@probe("cfn_secrets")
def a_secrets_ref_is_its_arn(aws):
    return secret(aws, SecretString="value").resource.startswith("arn:")


@probe("cfn_secrets")
def a_secret_without_a_value_has_none(aws):
    created = secret(aws)
    return error_of(aws.secrets.get_secret_value, SecretId=created.resource) == "ResourceNotFoundException"


@probe("cfn_secrets")
def a_generated_value_keeps_to_its_rules(aws):
    wanted = {
        "PasswordLength": 64,
        "ExcludePunctuation": True,
        "SecretStringTemplate": "{}",
        "GenerateStringKey": "key",
    }
    created = secret(aws, GenerateSecretString=wanted)
    key = json.loads(aws.secrets.get_secret_value(SecretId=created.resource)["SecretString"])["key"]
    return len(key) == 64 and key.isalnum()


@probe("cfn_secrets")
def a_stack_may_not_take_a_name_twice(aws):
    first = secret(aws, SecretString="value")
    name = aws.secrets.describe_secret(SecretId=first.resource)["Name"]
    return (
        status_of(aws, "AWS::SecretsManager::Secret", Name=name, SecretString="other") == "ROLLBACK_COMPLETE"
    )


@probe("cfn_secrets")
def a_schedule_turns_rotation_on_and_off(aws):
    created = aws.secrets.create_secret(
        Name=f"scheduled-{next(_numbers)}", SecretString="old", Tags=[{"Key": "told", "Value": ""}]
    )
    rules = {"ScheduleExpression": "rate(30 days)"}
    given = {"SecretId": created["ARN"], "RotationLambdaARN": echo(aws), "RotationRules": rules}
    schedule = known(aws, "AWS::SecretsManager::RotationSchedule", RotateImmediatelyOnUpdate=False, **given)
    if schedule is None:
        return False
    on = aws.secrets.describe_secret(SecretId=created["ARN"])
    schedule.delete()
    off = aws.secrets.describe_secret(SecretId=created["ARN"])
    return (on["RotationEnabled"], on["RotationRules"], off["RotationEnabled"]) == (True, rules, False)


@probe("cfn_secrets")
def a_secret_has_not_drifted(aws):
    created = Stack(aws, "AWS::SecretsManager::Secret", Name=f"drifts-{next(_numbers)}", SecretString="value")
    return _drift(aws, created) == ("IN_SYNC", created.resource) and created.resource.startswith("arn:")


def _drift(aws, created):
    """Return the drift status of the stack's resource, and its physical id."""
    stacks = aws.client("cloudformation")
    request = stacks.detect_stack_drift(StackName=created.name)["StackDriftDetectionId"]

    def detected():
        status = stacks.describe_stack_drift_detection_status(StackDriftDetectionId=request)[
            "DetectionStatus"
        ]
        return status != "DETECTION_IN_PROGRESS"

    until(detected)
    (drift,) = stacks.describe_stack_resource_drifts(StackName=created.name)["StackResourceDrifts"]
    return drift["StackResourceDriftStatus"], drift["PhysicalResourceId"]


@probe("cfn_types")
def makes_named_queries(aws):
    given = {"Name": "first", "Database": "default", "QueryString": "SELECT 1"}
    stack = known(aws, "AWS::Athena::NamedQuery", **given)
    athena = aws.client("athena")
    if stack is None:
        return False
    first = athena.get_named_query(NamedQueryId=stack.resource)["NamedQuery"]["QueryString"]
    stack.update(**given | {"QueryString": "SELECT 2"})
    ids = athena.list_named_queries()["NamedQueryIds"]
    return first == "SELECT 1" and stack.resource not in ids and stack.delete() == "DELETE_COMPLETE"


def budget(address, name=None, amount=100):
    """Return the properties of a budget; CloudFormation chooses its name without one."""
    above = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80}
    subscriber = {"SubscriptionType": "EMAIL", "Address": address}
    limit = {"Amount": amount, "Unit": "USD"}
    named = {"BudgetName": name} if name else {}
    return {
        "Budget": {"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": limit, **named},
        "NotificationsWithSubscribers": [{"Notification": above, "Subscribers": [subscriber]}],
    }


def amounts(aws):
    """Return the limit of each budget by its name."""
    found = aws.client("budgets").describe_budgets(AccountId="000000000000").get("Budgets", [])
    return {row["BudgetName"]: float(row["BudgetLimit"]["Amount"]) for row in found}


@probe("cfn_types")
def makes_budgets(aws):
    stack = known(aws, "AWS::Budgets::Budget", **budget("engineers@example.com"))
    return bool(stack) and amounts(aws)[stack.resource] == 100 and stack.delete() == "DELETE_COMPLETE"


@probe("cfn_types")
def a_budgets_limit_changes_in_place(aws):
    stack = known(aws, "AWS::Budgets::Budget", **budget("a@example.com", "limited"))
    if stack is None:
        return False
    changed = stack.update(**budget("a@example.com", "limited", amount=200))
    return (changed, amounts(aws)["limited"], stack.delete()) == ("UPDATE_COMPLETE", 200, "DELETE_COMPLETE")


@probe("cfn_types")
def a_budget_with_other_notifications_is_another_budget(aws):
    """Both exist for a while, so it can't have the name of the first."""
    stack = known(aws, "AWS::Budgets::Budget", **budget("a@example.com", "first"))
    if stack is None:
        return False
    refused = stack.update(**budget("b@example.com", "first", amount=200)), amounts(aws).get("first")
    replaced = stack.update(**budget("b@example.com", "second", amount=200)), amounts(aws)
    expected = ("UPDATE_ROLLBACK_COMPLETE", 100), ("UPDATE_COMPLETE", {"second": 200}), "DELETE_COMPLETE"
    return (refused, replaced, stack.delete()) == expected


@probe("cfn_types")
def creates_no_second_alarm_of_a_name(aws):
    about = {
        "Namespace": "N",
        "MetricName": "M",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "Statistic": "Sum",
    }
    about |= {"AlarmName": f"alarm-{next(_numbers)}", "ComparisonOperator": "GreaterThanThreshold"}
    one, other = (Stack(aws, "AWS::CloudWatch::Alarm", **about) for _ in range(2))
    changed = one.update(**about | {"Threshold": 2})
    alarms = aws.client("cloudwatch").describe_alarms(AlarmNames=[one.resource])["MetricAlarms"]
    found = other.status, changed, [alarm["Threshold"] for alarm in alarms]
    return found == ("ROLLBACK_COMPLETE", "UPDATE_COMPLETE", [2.0])


@probe("cfn_types")
def makes_security_configurations(aws):
    name = f"security-{next(_numbers)}"
    bookmarks = {"JobBookmarksEncryptionMode": "CSE-KMS", "KmsKeyArn": aws.arn("kms", "key/1")}
    encryption = {"JobBookmarksEncryption": bookmarks, "S3Encryptions": [{"S3EncryptionMode": "SSE-S3"}]}
    stack = known(aws, "AWS::Glue::SecurityConfiguration", Name=name, EncryptionConfiguration=encryption)
    if stack is None:
        return False
    held = aws.glue.get_security_configuration(Name=name)["SecurityConfiguration"]["EncryptionConfiguration"]
    gone = (
        stack.delete() == "DELETE_COMPLETE"
        and error_of(aws.glue.get_security_configuration, Name=name) is not None
    )
    return (
        held == {"JobBookmarksEncryption": bookmarks, "S3Encryption": [{"S3EncryptionMode": "SSE-S3"}]}
        and gone
    )


@probe("cfn_types")
def a_function_keeps_its_dead_letters(aws):
    queue = aws.client("sqs").create_queue(QueueName=f"dead-letters-{next(_numbers)}")["QueueUrl"]
    arn = aws.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    role = aws.new_role((["sqs:SendMessage"], arn))
    given = {
        "Runtime": "python3.11",
        "Handler": "index.handler",
        "Role": role,
        "Code": {"ZipFile": "def handler(e, c): pass"},
    }
    stack = Stack(aws, "AWS::Lambda::Function", DeadLetterConfig={"TargetArn": arn}, **given)
    kept = aws.functions.get_function_configuration(FunctionName=stack.resource).get("DeadLetterConfig")
    return kept == {"TargetArn": arn}


SEND = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"


def schedule_of_a_stack(aws, **properties):
    """And the properties that it has beside those."""
    given = {
        "Name": numbered("schedule-of-a-stack"),
        "ScheduleExpression": "cron(15 6 * * ? *)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": SEND, "RoleArn": starter(aws), "Input": "{}"},
    }
    return Stack(aws, "AWS::Scheduler::Schedule", **given | properties), given


@probe("cfn_properties")
def a_schedule_keeps_its_zone_and_its_end(aws):
    created, given = schedule_of_a_stack(
        aws, ScheduleExpressionTimezone="Europe/Berlin", EndDate="2031-01-01T00:00:00Z"
    )
    schedules = aws.client("scheduler")
    first = schedules.get_schedule(Name=created.resource)
    created.update(**given, ScheduleExpressionTimezone="Asia/Tokyo")
    then = schedules.get_schedule(Name=created.resource)
    zones = [part["ScheduleExpressionTimezone"] for part in (first, then)]
    return (zones, "EndDate" in first, "EndDate" in then) == (["Europe/Berlin", "Asia/Tokyo"], True, False)


@probe("cfn_properties")
def a_schedule_that_is_refused_fails_its_stack(aws):
    """Its role trusts another group."""
    target = {"Arn": SEND, "RoleArn": starter(aws, group="another"), "Input": "{}"}
    created, _ = schedule_of_a_stack(aws, Target=target)
    return created.status == "ROLLBACK_COMPLETE"


@probe("cfn_properties")
def a_job_runs_as_often_at_once_as_its_template_says(aws):
    given = {
        "Name": numbered("job-of-a-stack"),
        "Role": service_role(aws, "glue"),
        "Command": {"Name": "glueetl", "ScriptLocation": "s3://bucket/script.py", "PythonVersion": "3"},
        "GlueVersion": "5.1",
    }
    created = Stack(aws, "AWS::Glue::Job", **given, ExecutionProperty={"MaxConcurrentRuns": 3})
    first = _runs(aws, created)
    created.update(**given, ExecutionProperty={"MaxConcurrentRuns": 5})
    return (first, _runs(aws, created)) == (3, 5)


def _runs(aws, created):
    return (
        aws.glue.get_job(JobName=created.resource)["Job"]
        .get("ExecutionProperty", {})
        .get("MaxConcurrentRuns")
    )


def of_bucket(aws, **properties):
    return Stack(aws, "AWS::S3::Bucket", **properties)


def of_ours():
    """The properties of the bucket of exports, as our stack has them."""
    resources = dev_templates()["data"]["Resources"]
    return next(
        value["Properties"]
        for name, value in resources.items()
        if name.startswith("LakeBucket") and "Tags" in value["Properties"]
    )


@probe("cfn_buckets")
def expires_what_the_template_says(aws):
    """All rules of ours are there, in S3's words."""
    wanted = of_ours()["LifecycleConfiguration"]["Rules"]
    bucket = of_bucket(aws, LifecycleConfiguration={"Rules": wanted}).resource
    if error_of(aws.s3.get_bucket_lifecycle_configuration, Bucket=bucket):
        return False
    rules = aws.s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    result = [
        (rule["ID"], rule["Filter"]["Prefix"], rule.get("Expiration", {}).get("Days"), rule["Status"])
        for rule in rules
    ]
    tidy = (
        rules[0]["AbortIncompleteMultipartUpload"],
        rules[0]["NoncurrentVersionExpiration"],
        rules[0]["Expiration"],
    )
    expected = [
        (rule["Id"], rule.get("Prefix", ""), rule.get("ExpirationInDays"), rule["Status"]) for rule in wanted
    ]
    return result == expected and tidy == (
        {"DaysAfterInitiation": 7},
        {"NoncurrentDays": 7},
        {"ExpiredObjectDeleteMarker": True},
    )


@probe("cfn_buckets")
def encrypts_what_the_template_says(aws):
    bucket = of_bucket(aws, BucketEncryption=of_ours()["BucketEncryption"]).resource
    return aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1").get("ServerSideEncryption") == "AES256"


@probe("cfn_buckets")
def tags_what_the_template_says(aws):
    tags = of_ours()["Tags"]
    bucket = of_bucket(aws, Tags=tags).resource
    return (
        not error_of(aws.s3.get_bucket_tagging, Bucket=bucket)
        and aws.s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags
    )


@probe("cfn_buckets")
def owns_objects_as_the_template_says(aws):
    bucket = of_bucket(aws, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]}).resource
    controls = aws.s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
    return controls == {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}


@probe("cfn_buckets")
def takes_away_what_the_template_no_longer_says(aws):
    ours = of_ours()
    stack = of_bucket(aws, **ours)
    before = error_of(aws.s3.get_bucket_tagging, Bucket=stack.resource)
    ours["LifecycleConfiguration"] = {"Rules": ours["LifecycleConfiguration"]["Rules"][:1]}
    status = stack.update(
        **{name: value for name, value in ours.items() if name not in ("Tags", "VersioningConfiguration")}
    )
    if before or status != "UPDATE_COMPLETE":
        return False
    rules = aws.s3.get_bucket_lifecycle_configuration(Bucket=stack.resource)["Rules"]
    versioning = aws.s3.get_bucket_versioning(Bucket=stack.resource)["Status"]
    return (len(rules), versioning, error_of(aws.s3.get_bucket_tagging, Bucket=stack.resource)) == (
        1,
        "Suspended",
        "NoSuchTagSet",
    )


@probe("cfn_buckets")
def keeps_a_bucket_that_holds_an_object(aws):
    stack = of_bucket(aws)
    aws.s3.put_object(Bucket=stack.resource, Key="k", Body=b"1")
    full = stack.delete()
    error_of(aws.s3.delete_object, Bucket=stack.resource, Key="k")
    return (full, stack.delete()) == ("DELETE_FAILED", "DELETE_COMPLETE")


@probe("cfn_buckets")
def keeps_a_bucket_that_holds_an_old_version(aws):
    """And one that holds nothing but a delete marker."""
    stack = of_bucket(aws, VersioningConfiguration={"Status": "Enabled"})
    version = aws.s3.put_object(Bucket=stack.resource, Key="k", Body=b"1")["VersionId"]
    marker = aws.s3.delete_object(Bucket=stack.resource, Key="k")["VersionId"]
    result = [stack.delete()]
    for part in (version, marker):
        error_of(aws.s3.delete_object, Bucket=stack.resource, Key="k", VersionId=part)
        result.append(stack.delete())
    return result == ["DELETE_FAILED", "DELETE_FAILED", "DELETE_COMPLETE"]
