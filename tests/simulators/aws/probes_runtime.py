"""What tells AWS from stock MiniStack while a deployment runs: Glue runs, events, functions that nobody waits for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import runtime_kit as kit
from aws_clients import error_of
from rotation_kit import new_function
from runtime_kit import busy_job, control, letter, new_job, new_queue, noting_function, patience
from waiting import until

#: One that keeps what it was started with.
_TELLING = """
import importlib.util, json, os, sys, boto3, mine
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
told = {"given": given, "module": mine.value, "submit": os.environ["PYSPARK_SUBMIT_ARGS"]}
told["sees"] = importlib.util.find_spec("glue_jobs") is not None
boto3.client("s3").put_object(Bucket=given["--bucket"], Key="told", Body=json.dumps(told))
"""


def runs_the_script_with_its_zip(aws):
    """And with nothing of this project; a run's argument stands before the job's."""
    bucket = aws.new_bucket()
    writes = ("s3:PutObject", f"arn:aws:s3:::{bucket}/*")
    given = {"--bucket": bucket, "--a": "job's", "--b": "job's", "--conf": "spark.c=1 --conf spark.d=2"}
    job = new_job(aws, _TELLING, writes, modules={"mine.py": "value = 'from the zip'"}, arguments=given)
    record = kit.run(aws, job, a="run's")
    if aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0:
        return False
    result = json.load(aws.s3.get_object(Bucket=bucket, Key="told")["Body"])
    same = {"--a": "run's", "--b": "job's", "--JOB_NAME": job, "--JOB_RUN_ID": record["Id"]}
    result["conf"] = [pair in result["submit"] for pair in ("--conf spark.c=1 ", "--conf spark.d=2 ")]
    found = tuple(result[name] for name in ("module", "sees", "conf", "given"))
    return found == ("from the zip", False, [True, True], result["given"] | same)


def tells_why_a_run_failed(aws):
    scripts = ("raise ValueError('no such table')", "import sys\nsys.exit(3)", "import sys\nsys.exit(0)")
    records = [kit.run(aws, new_job(aws, script)) for script in scripts]
    result = [(record["JobRunState"], record.get("ErrorMessage")) for record in records]
    return result == [("FAILED", "ValueError: no such table"), ("FAILED", "SystemExit: 3"), ("SUCCEEDED", None)]


def runs_only_so_many_at_once(aws):
    job, bucket, run = busy_job(aws)
    refused = error_of(aws.glue.start_job_run, JobName=job)
    aws.s3.put_object(Bucket=bucket, Key="go")
    kit.ended(aws, job, run)
    return (refused, error_of(aws.glue.start_job_run, JobName=job)) == ("ConcurrentRunsExceededException", None)


def stops_a_run(aws):
    job, _, run = busy_job(aws)
    if not kit.goes_on(aws, job, run):
        return False
    aws.glue.batch_stop_job_run(JobName=job, JobRunIds=[run])
    record = kit.ended(aws, job, run)
    return (record["JobRunState"], error_of(aws.glue.start_job_run, JobName=job)) == ("STOPPED", None)


def ends_a_run_that_takes_too_long(aws):
    job, _, run = busy_job(aws)
    control(aws, "job-runs/expire", job=job, run=run)
    record = kit.ended(aws, job, run)
    return (record["JobRunState"], record.get("ErrorMessage")) == ("TIMEOUT", "Job run timed out")


def runs_only_under_a_role_that_trusts_glue(aws):
    record = kit.run(aws, new_job(aws, "", role=kit.service_role(aws, "glue", SourceAccount="111111111111")))
    return record["JobRunState"] == "FAILED" and "assume role permissions" in record["ErrorMessage"]


def runs_only_code_that_the_role_may_read(aws):
    record = kit.run(aws, new_job(aws, "", role=kit.service_role(aws, "glue")))
    return record["JobRunState"] == "FAILED" and "script.py" in record["ErrorMessage"]


def keeps_what_a_run_writes(aws):
    logs, prefix = aws.client("logs"), f"/aws-glue/{kit.numbered('probe')}"
    for part in ("output", "error"):
        logs.create_log_group(logGroupName=f"{prefix}/{part}")
    writes = (["logs:CreateLogStream", "logs:PutLogEvents"], aws.arn("logs", f"log-group:{prefix}/*"))
    script = "import sys\nprint('one')\nprint('two')\nprint('three', file=sys.stderr)"
    job = new_job(aws, script, writes, arguments={"--custom-logGroup-prefix": prefix})
    stream = kit.run(aws, job)["Id"]
    if not logs.describe_log_streams(logGroupName=f"{prefix}/output")["logStreams"]:
        return False
    kept = [logs.get_log_events(logGroupName=f"{prefix}/{part}", logStreamName=stream)["events"] for part in ("output", "error")]
    return [[each["message"] for each in events] for events in kept] == [["one", "two"], ["three"]]


def tells_the_end_of_a_run(aws):
    function, calls = noting_function(aws)
    job = new_job(aws, "import sys\nsys.exit(3)")
    kit.aim(aws, kit.new_rule(aws, {"source": ["aws.glue"], "detail": {"jobName": [job]}}), function)
    run = kit.run(aws, job)["Id"]
    events = [each["event"] for each in until(calls, patience(aws)) or []]
    detail = {"jobName": job, "severity": "ERROR", "state": "FAILED", "jobRunId": run, "message": "SystemExit: 3"}
    result = [(each["detail-type"], each["account"], each["region"], each["detail"]) for each in events]
    return result == [("Glue Job State Change", aws.server.account, aws.server.region, detail)]


def put(aws, source, **detail):
    aws.client("events").put_events(Entries=[{"Source": source, "DetailType": "probe", "Detail": json.dumps(detail)}])


def buries_an_event_that_a_function_does_not_let_in(aws):
    source, (function, calls) = kit.numbered("probe"), noting_function(aws)
    rule = kit.new_rule(aws, {"source": [source]})
    dead, arn = new_queue(aws, lets_in=rule[1])
    kit.aim(aws, rule, function, permitted=False, DeadLetterConfig={"Arn": arn})
    put(aws, source, number=1)
    body, attributes = letter(aws, dead, patience(aws))
    result = {name: attributes.get(name) for name in ("RULE_ARN", "TARGET_ARN", "ERROR_CODE", "RETRY_ATTEMPTS")}
    wanted = {"RULE_ARN": rule[1], "TARGET_ARN": function, "ERROR_CODE": "NO_PERMISSIONS", "RETRY_ATTEMPTS": "0"}
    return body != "" and (result, json.loads(body)["detail"], calls()) == (wanted, {"number": 1}, [])


def tries_a_function_of_a_rule_three_times(aws):
    source, (function, calls) = kit.numbered("probe"), noting_function(aws, fails="yes")
    kit.aim(aws, kit.new_rule(aws, {"source": [source]}), function)
    put(aws, source)
    called = until(lambda: len(called := calls()) == 3 and called, patience(aws))
    return bool(called) and len({each["request"] for each in called}) == 1


def buries_the_event_of_a_function_that_fails(aws):
    dead, arn = new_queue(aws)
    function, calls = noting_function(aws, ("sqs:SendMessage", arn), fails="yes", DeadLetterConfig={"TargetArn": arn})
    aws.functions.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps({"number": 1}))
    body, attributes = letter(aws, dead, patience(aws))
    called = calls()
    if body == "":
        return False
    result = {"RequestID": called[-1]["request"], "ErrorCode": "200", "ErrorMessage": "as it should"}
    return (json.loads(body), attributes, len(called)) == ({"number": 1}, result, 3)


def counts_each_try_that_fails(aws):
    function, calls = noting_function(aws, fails="yes")
    aws.functions.invoke(FunctionName=function, InvocationType="Event", Payload=b"{}")

    def errors():
        given = {"Dimensions": [{"Name": "FunctionName", "Value": function.rpartition(":")[2]}], "Statistics": ["Sum"]}
        window = {"StartTime": datetime.now(UTC) - timedelta(hours=1), "EndTime": datetime.now(UTC) + timedelta(hours=1)}
        found = aws.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/Lambda", MetricName="Errors", Period=7200, **given, **window
        )
        return sum(point["Sum"] for point in found["Datapoints"])

    return until(lambda: errors() == 3, patience(aws)) is True and len(calls()) == 3


def refuses_a_queue_to_which_a_function_may_not_send(aws):
    _, arn = new_queue(aws)
    return error_of(noting_function, aws, DeadLetterConfig={"TargetArn": arn}) == "InvalidParameterValueException"


def groups(aws, prefix):
    return [each["logGroupName"] for each in aws.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]]


def invoke(aws, function):
    aws.functions.invoke(FunctionName=function)
    return function.rpartition(":")[2]


def makes_no_log_group_of_its_own_accord(aws):
    makes = (["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], "*")
    names = [f"/aws/lambda/{invoke(aws, noting_function(aws, *statements)[0])}" for statements in ([], [makes])]
    return [groups(aws, name) for name in names] == [[], [names[1]]]


def writes_to_its_log_only_where_its_role_may(aws):
    logs, lines = aws.client("logs"), []
    for writes in (False, True):
        group = kit.numbered("/probe/function")
        logs.create_log_group(logGroupName=group)
        actions = ["logs:CreateLogStream", *(["logs:PutLogEvents"] if writes else [])]
        may = (actions, aws.arn("logs", f"log-group:{group}:*"))
        invoke(aws, noting_function(aws, may, LoggingConfig={"LogGroup": group})[0])
        lines.append(any("kept" in each["message"] for each in logs.filter_log_events(logGroupName=group)["events"]))
    return lines == [False, True]


def starts_what_a_function_calls_along_with_it(aws):
    """It says so while its module is imported, and nobody calls it."""
    bucket = aws.new_bucket()
    says = "import boto3, os\nboto3.client('s3').put_object(Bucket=os.environ['BUCKET'], Key='started')\n"
    quiet, role = "def handler(event, context): pass\n", aws.new_role(("s3:PutObject", f"arn:aws:s3:::{bucket}/*"))
    called = new_function(aws, {"it.py": says + quiet}, "it.handler", role=role, environment={"BUCKET": bucket})
    calling = new_function(aws, {"it.py": quiet}, "it.handler", environment={"CALLS": called})
    aws.functions.invoke(FunctionName=calling)
    return bool(until(lambda: aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"], patience(aws)))


PROBES = {
    "lambda_ahead": [starts_what_a_function_calls_along_with_it],
    "glue_runs": [
        runs_the_script_with_its_zip,
        tells_why_a_run_failed,
        runs_only_so_many_at_once,
        stops_a_run,
        ends_a_run_that_takes_too_long,
        runs_only_under_a_role_that_trusts_glue,
        runs_only_code_that_the_role_may_read,
        keeps_what_a_run_writes,
        tells_the_end_of_a_run,
    ],
    "event_targets": [buries_an_event_that_a_function_does_not_let_in, tries_a_function_of_a_rule_three_times],
    "lambda_async": [
        buries_the_event_of_a_function_that_fails,
        refuses_a_queue_to_which_a_function_may_not_send,
        counts_each_try_that_fails,
    ],
    "lambda_logs": [makes_no_log_group_of_its_own_accord, writes_to_its_log_only_where_its_role_may],
}
