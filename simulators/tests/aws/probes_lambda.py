"""Probes: how AWS differs from stock MiniStack in Lambda."""

import json
from datetime import UTC, datetime, timedelta

from simulators.core.faults import FaultClient
from simulators.tests.aws.probe_kit import probe
from tests.support import runtime_kit as kit
from tests.support.aws_clients import error_of
from tests.support.rotation_kit import invoked, new_function
from tests.support.runtime_kit import letter, new_queue, noting_function, patience
from tests.support.waiting import until


@probe("lambda_interpreter")
def runs_functions_with_the_packages_that_ship(aws):
    return (
        invoked(aws, "def handler(event, context):\n    import attrs, cattrs\n    return 'well'\n") == "well"
    )


_CALLING = """
const { Lambda } = require("@aws-sdk/client-lambda");
exports.handler = async () => {
  try {
    await new Lambda().invoke({ FunctionName: process.env.CALLS });
    return "answered";
  } catch (error) {
    return "failed";
  }
};
"""


@probe("lambda_node_sdk")
def a_call_of_the_node_sdk_whose_answer_is_cut_fails(aws):
    called = new_function(aws, {"it.py": "def handler(event, context): return 'well'\n"}, "it.handler")
    variables = {"CALLS": called.rpartition(":")[2]}
    calling = new_function(
        aws, {"it.js": _CALLING}, "it.handler", environment=variables, timeout=5, runtime="nodejs20.x"
    )
    faults = FaultClient(aws.server.url)
    faults.rule(
        {"fault": "truncate", "path": f"*/functions/{variables['CALLS']}/invocations", "after_bytes": 1}
    )
    try:
        return json.loads(aws.functions.invoke(FunctionName=calling)["Payload"].read()) == "failed"
    finally:
        faults.clear()


@probe("lambda_ahead")
def starts_what_a_function_calls_along_with_it(aws):
    """It says so while its module is imported, and nobody calls it."""
    bucket = aws.new_bucket()
    says = "import boto3, os\nboto3.client('s3').put_object(Bucket=os.environ['BUCKET'], Key='started')\n"
    quiet = "def handler(event, context): pass\n"
    role = aws.new_role(("s3:PutObject", f"arn:aws:s3:::{bucket}/*"))
    called = new_function(
        aws, {"it.py": says + quiet}, "it.handler", role=role, environment={"BUCKET": bucket}
    )
    calling = new_function(aws, {"it.py": quiet}, "it.handler", environment={"CALLS": called})
    aws.functions.invoke(FunctionName=calling)
    return bool(until(lambda: aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"], patience(aws)))


@probe("lambda_async")
def buries_the_event_of_a_function_that_fails(aws):
    dead, arn = new_queue(aws)
    function, calls = noting_function(
        aws, ("sqs:SendMessage", arn), fails="yes", DeadLetterConfig={"TargetArn": arn}
    )
    aws.functions.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps({"number": 1}))
    body, attributes = letter(aws, dead, patience(aws))
    called = calls()
    if body == "":
        return False
    result = {"RequestID": called[-1]["request"], "ErrorCode": "200", "ErrorMessage": "as it should"}
    return (json.loads(body), attributes, len(called)) == ({"number": 1}, result, 3)


@probe("lambda_async")
def counts_each_try_that_fails(aws):
    function, calls = noting_function(aws, fails="yes")
    aws.functions.invoke(FunctionName=function, InvocationType="Event", Payload=b"{}")

    def errors():
        given = {
            "Dimensions": [{"Name": "FunctionName", "Value": function.rpartition(":")[2]}],
            "Statistics": ["Sum"],
        }
        window = {
            "StartTime": datetime.now(UTC) - timedelta(hours=1),
            "EndTime": datetime.now(UTC) + timedelta(hours=1),
        }
        result = aws.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda", MetricName="Errors", Period=7200, **given, **window
        )
        return sum(point["Sum"] for point in result["Datapoints"])

    return until(lambda: errors() == 3, patience(aws)) is True and len(calls()) == 3


@probe("lambda_async")
def refuses_a_queue_to_which_a_function_may_not_send(aws):
    _, arn = new_queue(aws)
    return (
        error_of(noting_function, aws, DeadLetterConfig={"TargetArn": arn})
        == "InvalidParameterValueException"
    )


def groups(aws, prefix):
    return [
        group["logGroupName"]
        for group in aws.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    ]


def invoke(aws, function):
    aws.functions.invoke(FunctionName=function)
    return function.rpartition(":")[2]


@probe("lambda_logs")
def makes_no_log_group_of_its_own_accord(aws):
    makes = (["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], "*")
    names = [
        f"/aws/lambda/{invoke(aws, noting_function(aws, *statements)[0])}" for statements in ([], [makes])
    ]
    return [groups(aws, name) for name in names] == [[], [names[1]]]


@probe("lambda_logs")
def writes_to_its_log_only_where_its_role_may(aws):
    logs = aws.client("logs")
    lines = []
    for writes in (False, True):
        group = kit.numbered("/probe/function")
        logs.create_log_group(logGroupName=group)
        actions = ["logs:CreateLogStream", *(["logs:PutLogEvents"] if writes else [])]
        may = (actions, aws.arn("logs", f"log-group:{group}:*"))
        invoke(aws, noting_function(aws, may, LoggingConfig={"LogGroup": group})[0])
        lines.append(
            any("kept" in event["message"] for event in logs.filter_log_events(logGroupName=group)["events"])
        )
    return lines == [False, True]


_COUNTING = """
import json

def handler(event, context):
    metric = {"Namespace": "Probe", "Dimensions": [["Kind"]], "Metrics": [{"Name": "Seen", "Unit": "Count"}]}
    print(json.dumps({"_aws": {"Timestamp": 1, "CloudWatchMetrics": [metric]}, "Kind": "line", "Seen": 3}))
"""


@probe("lambda_metrics")
def a_line_in_the_embedded_metric_format_is_counted(aws):
    role = aws.new_role((["logs:*"], "*"))
    invoke(aws, new_function(aws, {"it.py": _COUNTING}, "it.handler", role=role))
    found = aws.client("cloudwatch").get_metric_statistics(
        Namespace="Probe",
        MetricName="Seen",
        Dimensions=[{"Name": "Kind", "Value": "line"}],
        StartTime=datetime.now(UTC) - timedelta(hours=1),
        EndTime=datetime.now(UTC) + timedelta(hours=1),
        Period=3600,
        Statistics=["Sum"],
    )["Datapoints"]
    return sum(point["Sum"] for point in found) >= 3
