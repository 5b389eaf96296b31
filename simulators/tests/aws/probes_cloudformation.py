"""Probes: how AWS differs from stock MiniStack in how CloudFormation creates, rolls back and deletes
stacks.
"""

import json

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import begin_stack, settled_events, status_of
from tests.support.rotation_kit import new_function

#: The answer of a custom resource's function to CloudFormation.
_REPLY = """
import json, urllib.request

def reply(event, status, physical_id):
    result = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    result |= {"Status": status, "Reason": "as it is wanted", "PhysicalResourceId": physical_id}
    call = urllib.request.Request(event["ResponseURL"], json.dumps(result).encode(), method="PUT")
    urllib.request.urlopen(call, timeout=10)
"""
#: Fails after it has created a thing; fails at the first Delete too. Invocations may be in different
#: processes.
_FAILING = """
import pathlib, tempfile
from reply import reply

def handler(event, context):
    kept = pathlib.Path(tempfile.gettempdir(), event["StackId"].rpartition("/")[2])
    requests = [*(kept.read_text().split() if kept.exists() else []), event["RequestType"]]
    kept.write_text(" ".join(requests))
    deletes = event["RequestType"] == "Delete"
    done = (not STUBBORN or requests.count("Delete") > 1) if deletes else MAKES
    reply(event, "SUCCESS" if done else "FAILED", "thing-1")
"""


@probe("cfn_delete_order")
def keeps_what_a_stuck_resource_needs(aws):
    """The topic stays until the thing that names it could be deleted."""
    thing = {"ServiceToken": _failing(aws, stubborn=True, makes=True), "of": {"Ref": "Topic"}}
    topic = {"Topic": {"Type": "AWS::SNS::Topic"}}
    stacks = aws.client("cloudformation")
    name = begin_stack(aws, "Custom::Thing", topic, **thing)
    settled_events(aws, name)
    topic = stacks.describe_stack_resource(StackName=name, LogicalResourceId="Topic")["StackResourceDetail"][
        "PhysicalResourceId"
    ]
    stacks.delete_stack(StackName=name)
    first = settled_events(aws, name)
    is_kept = topic in {
        listed_topic["TopicArn"] for listed_topic in aws.client("sns").list_topics()["Topics"]
    }
    stacks.delete_stack(StackName=name)
    then = settled_events(aws, name)
    return ("DELETE_FAILED", name) in first and ("DELETE_COMPLETE", name) in then and is_kept


@probe("cfn_delete_order")
def keeps_in_a_rollback_what_a_stuck_resource_needs(aws):
    """Another resource fails, and the thing can't be deleted at first. CDK deploys with change sets."""
    thing = {"ServiceToken": _failing(aws, stubborn=True, makes=True), "of": {"Ref": "Topic"}}
    others = {
        "Topic": {"Type": "AWS::SNS::Topic"},
        "Broken": {
            "Type": "Custom::Thing",
            "DependsOn": "It",
            "Properties": {"ServiceToken": "arn:aws:lambda:eu-west-1:000000000000:function:missing"},
        },
    }
    stacks = aws.client("cloudformation")
    name = begin_stack(aws, "Custom::Thing", others, change_set=True, **thing)
    first = settled_events(aws, name)
    topics = [topic["TopicArn"] for topic in aws.client("sns").list_topics()["Topics"]]
    is_kept = any(f":{name}-" in topic for topic in topics)
    stacks.delete_stack(StackName=name)
    then = settled_events(aws, name)
    return ("ROLLBACK_FAILED", name) in first and ("DELETE_COMPLETE", name) in then and is_kept


def custom(aws, source, **options):
    """Return the ARN of a custom resource's function."""
    return new_function(aws, {"it.py": source, "reply.py": _REPLY}, "it.handler", **options)


def _failing(aws, *, stubborn, makes=False):
    source = _FAILING.replace("STUBBORN", str(stubborn)).replace("MAKES", str(makes))
    return custom(aws, source)


@probe("cfn_deleted_resources")
def remembers_the_resources_of_a_deleted_stack(aws):
    """The stack has a topic, and a queue that is kept."""
    stacks = aws.client("cloudformation")
    queue = {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain"}
    name = begin_stack(aws, "AWS::SNS::Topic", {"Queue": queue})
    settled_events(aws, name)
    id = stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
    stacks.delete_stack(StackName=name)
    settled_events(aws, name)
    pages = stacks.get_paginator("list_stack_resources").paginate(StackName=id)
    listed = [resource for page in pages for resource in page["StackResourceSummaries"]]
    found = {resource["LogicalResourceId"]: resource["ResourceStatus"] for resource in listed}
    return found == {"It": "DELETE_COMPLETE", "Queue": "DELETE_SKIPPED"}


@probe("cfn_failed_create")
def deletes_the_object_of_a_failed_create(aws):
    name = begin_stack(aws, "Custom::Thing", ServiceToken=_failing(aws, stubborn=False))
    events = settled_events(aws, name)
    return ("DELETE_COMPLETE", "thing-1") in events


@probe("cfn_failed_create")
def deletes_later_what_a_rollback_could_not(aws):
    name = begin_stack(aws, "Custom::Thing", ServiceToken=_failing(aws, stubborn=True))
    if ("ROLLBACK_FAILED", name) not in settled_events(aws, name):
        return False
    aws.client("cloudformation").delete_stack(StackName=name)
    return ("DELETE_COMPLETE", "thing-1") in settled_events(aws, name)


#: Its physical id is the status that its own resource has.
_LOOKING = """
import boto3
from botocore.exceptions import ClientError
from reply import reply

def handler(event, context):
    resource = {"StackName": event["StackId"], "LogicalResourceId": event["LogicalResourceId"]}
    try:
        seen = boto3.client("cloudformation").describe_stack_resource(**resource)["StackResourceDetail"]["ResourceStatus"]
    except ClientError as error:
        seen = "nothing"
    reply(event, "SUCCESS", seen)
"""


@probe("cfn_in_progress")
def describes_a_resource_that_is_being_created(aws):
    """As the resource's own function sees it."""
    role = aws.new_role((["cloudformation:DescribeStackResource"], "*"))
    name = begin_stack(aws, "Custom::Thing", ServiceToken=custom(aws, _LOOKING, role=role))
    events = settled_events(aws, name)
    return ("CREATE_COMPLETE", "CREATE_IN_PROGRESS") in events


_LINGERING = """
import boto3, os, time
from reply import reply

def handler(event, context):
    reply(event, "SUCCESS", "thing")
    s3, bucket, until = boto3.client("s3"), os.environ["BUCKET"], time.monotonic() + 6
    while not s3.list_objects_v2(Bucket=bucket, Prefix="go")["KeyCount"]:
        if time.monotonic() > until:
            return s3.put_object(Bucket=bucket, Key="waited")
        time.sleep(0.05)
"""


@probe("cfn_custom_resources")
def waits_for_the_answer_and_not_for_the_function(aws):
    """Which goes on until it is let go, or has waited for six seconds and says so."""
    bucket = aws.new_bucket()
    role = aws.new_role(
        (["s3:ListBucket", "s3:PutObject"], [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"])
    )
    function = custom(aws, _LINGERING, role=role, environment={"BUCKET": bucket})
    status = status_of(aws, "Custom::Thing", ServiceToken=function)
    waited = "waited" in [
        content["Key"] for content in aws.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    ]
    aws.s3.put_object(Bucket=bucket, Key="go")
    return status == "CREATE_COMPLETE" and not waited


#: Fails before it answers, in its first try.
_FLAKY = """
import pathlib, tempfile
from reply import reply

def handler(event, context):
    tried = pathlib.Path(tempfile.gettempdir(), event["RequestId"])
    if not tried.exists():
        tried.touch()
        raise RuntimeError("the answer could not be sent")
    reply(event, "SUCCESS", "thing")
"""


@probe("cfn_custom_resources")
def tries_a_function_again_that_failed_before_it_answered(aws):
    return (
        status_of(aws, "Custom::Thing", ServiceToken=custom(aws, _FLAKY), ServiceTimeout=6)
        == "CREATE_COMPLETE"
    )


@probe("cfn_exports")
def refuses_to_change_an_export_in_use(aws):
    stacks = aws.client("cloudformation")
    exporting = {"It": {"Value": {"Ref": "It"}, "Export": {"Name": "the-topic"}}}
    name = begin_stack(aws, "AWS::SNS::Topic", outputs=exporting, TopicName="before")
    settled_events(aws, name)
    begin_stack(aws, "AWS::SSM::Parameter", Type="String", Value={"Fn::ImportValue": "the-topic"})
    changed = {"It": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "after"}}}
    stacks.update_stack(StackName=name, TemplateBody=json.dumps({"Resources": changed, "Outputs": exporting}))
    events = settled_events(aws, name)
    (export,) = [
        listed_export["Value"]
        for listed_export in stacks.list_exports()["Exports"]
        if listed_export["Name"] == "the-topic"
    ]
    return ("UPDATE_ROLLBACK_COMPLETE", name) in events and export.endswith(":before")
