"""Creates jobs, schedules, rules and queues in the embedded AWS, and waits for what they do."""

from __future__ import annotations

import io
import itertools
import json
import urllib.error
import urllib.request
import zipfile

from tests.support.aws_clients import policy
from tests.support.rotation_kit import new_function
from tests.support.waiting import until

_numbers = itertools.count(1)
#: A function that writes its event to an object named by the time. A test reads the object.
_NOTING = """
import json, os, time, boto3

def handler(event, context):
    found = {"event": event, "request": context.aws_request_id}
    key = f"{os.environ['PREFIX']}/{time.time_ns()}"
    boto3.client("s3").put_object(Bucket=os.environ["BUCKET"], Key=key, Body=json.dumps(found))
    print("kept", key)
    if os.environ["FAILS"]:
        raise RuntimeError("as it should")
"""

#: A job's script that runs until an object exists.
_WAITING = """
import sys, time, boto3
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
until = time.monotonic() + 120
while not boto3.client("s3").list_objects_v2(Bucket=given["--bucket"], Prefix="go").get("Contents"):
    if time.monotonic() > until:
        sys.exit("nobody let it go on")
    time.sleep(0.05)
"""


def numbered(prefix):
    return f"{prefix}-{next(_numbers)}"


def service_role(aws, service, *statements, **conditions):
    """Create a role that trusts a service, and return its ARN.

    Statements are (actions, resources); condition keys are global.
    """
    name = numbered("service-role")
    keys = {f"aws:{key}": value for key, value in conditions.items()}
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    trust["Condition"] = {"StringEquals": {"aws:SourceAccount": aws.server.account} | keys}
    allowed = [
        {"Effect": "Allow", "Action": actions, "Resource": resources} for actions, resources in statements
    ]
    role = aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]
    if allowed:
        aws.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(*allowed))
    return role["Arn"]


def new_queue(aws, *, lets_in=None):
    """Create a queue and return its URL and ARN. `lets_in` is the ARN of a rule that may send to it."""
    url = aws.client("sqs").create_queue(QueueName=numbered("queue"))["QueueUrl"]
    arn = aws.arn("sqs", url.rpartition("/")[2])
    if lets_in:
        allow = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
        }
        allow |= {"Resource": arn, "Condition": {"ArnEquals": {"aws:SourceArn": lets_in}}}
        aws.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy(allow)})
    return url, arn


def letter(aws, url, patience=20.0):
    """Return the body of the message in a queue, and its attributes as texts.

    Both are empty without a message.
    """
    sqs = aws.client("sqs")
    result = until(
        lambda: sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"]).get("Messages"), patience
    )
    if not result:
        return "", {}
    attributes = result[0].get("MessageAttributes", {})
    return result[0]["Body"], {name: value["StringValue"] for name, value in attributes.items()}


def new_job(aws, script, *statements, modules=None, arguments=None, role=None, **given):
    """Create a job and return its name.

    `modules` has the texts of a zip by path. The role may read script and zip, and has `statements`.
    """
    bucket = aws.new_bucket()
    name = numbered("job")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        for path, text in (modules or {}).items():
            archive.writestr(path, text)
    aws.s3.put_object(Bucket=bucket, Key="code/script.py", Body=script.encode())
    aws.s3.put_object(Bucket=bucket, Key="code/modules.zip", Body=code.getvalue())
    reads = ("s3:GetObject", f"arn:aws:s3:::{bucket}/code/*")
    aws.glue.create_job(
        Name=name,
        Role=role or service_role(aws, "glue", reads, *statements),
        Command={"Name": "glueetl", "ScriptLocation": f"s3://{bucket}/code/script.py", "PythonVersion": "3"},
        DefaultArguments={"--extra-py-files": f"s3://{bucket}/code/modules.zip"} | (arguments or {}),
        ExecutionProperty={"MaxConcurrentRuns": 1},
        **{"GlueVersion": "5.1"} | given,
    )
    return name


def ended(aws, job, run, patience=20.0):
    """Wait for the end of a run, and return its record."""

    def result():
        record = aws.glue.get_job_run(JobName=job, RunId=run)["JobRun"]
        return record if record["JobRunState"] not in ("STARTING", "RUNNING", "STOPPING") else None

    return until(result, patience) or {"JobRunState": "still going"}


def run(aws, job, **arguments):
    """Start a run, and return its record once it has ended."""
    given = {f"--{name}": value for name, value in arguments.items()}
    return ended(aws, job, aws.glue.start_job_run(JobName=job, Arguments=given)["JobRunId"])


def goes_on(aws, job, run_id):
    """Wait until a run is RUNNING. Return True, or None if it ended at once."""
    states = ("STARTING", "RUNNING")

    def state():
        return aws.glue.get_job_run(JobName=job, RunId=run_id)["JobRun"]["JobRunState"]

    return until(lambda: (now := state()) != states[0] and [now]) == [states[1]]


def group_arn(aws, group="default"):
    return aws.arn("scheduler", f"schedule-group/{group}")


def starter(aws, *statements, group="default"):
    """Create a role that schedules of a group may assume."""
    return service_role(aws, "scheduler", *statements, SourceArn=group_arn(aws, group))


def new_schedule(aws, arn, role, expression="cron(0 6 ? * MON *)", *, input=None, zone="UTC", **target):
    name = numbered("schedule")
    aws.client("scheduler").create_schedule(
        Name=name,
        ScheduleExpression=expression,
        ScheduleExpressionTimezone=zone,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": arn, "RoleArn": role, **({"Input": json.dumps(input)} if input else {}), **target},
    )
    return name


def control(aws, path, **given):
    """Return the answer of one of the embedded AWS's controls. It is empty without such a control."""
    request = urllib.request.Request(
        f"{aws.server.url}/_simulator/{path}", data=json.dumps(given).encode(), method="POST"
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)
    except (urllib.error.HTTPError, ValueError):
        return {}


def fire(aws, name, **given):
    return control(aws, "schedules/fire", name=name, **given)


def noting_function(aws, *statements, fails="", **configured):
    """Return its ARN, and a function that returns the calls that it had so far."""
    bucket = aws.new_bucket()
    prefix = numbered("calls")
    writes = ("s3:PutObject", f"arn:aws:s3:::{bucket}/*")
    role = aws.new_role(writes, *statements)
    environment = {"BUCKET": bucket, "PREFIX": prefix, "FAILS": fails}
    arn = new_function(aws, {"it.py": _NOTING}, "it.handler", role=role, environment=environment)
    if configured:
        aws.functions.update_function_configuration(FunctionName=arn, **configured)

    def calls():
        keys = [content["Key"] for content in aws.s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
        return [json.load(aws.s3.get_object(Bucket=bucket, Key=key)["Body"]) for key in sorted(keys)]

    return arn, calls


def new_rule(aws, pattern):
    """Create a rule and return its name and ARN."""
    name = numbered("rule")
    return name, aws.client("events").put_rule(Name=name, EventPattern=json.dumps(pattern))["RuleArn"]


def aim(aws, rule, function, *, permitted=True, **target):
    """Make the function a target of the rule. `permitted`: also let the rule invoke it."""
    name, arn = rule
    if permitted:
        aws.functions.add_permission(
            FunctionName=function,
            StatementId=numbered("rule"),
            Action="lambda:InvokeFunction",
            Principal="events.amazonaws.com",
            SourceArn=arn,
        )
    aws.client("events").put_targets(Rule=name, Targets=[{"Id": "1", "Arn": function, **target}])


def patience(aws):
    """Return the seconds to wait.

    Unpatched MiniStack gets less time, because nothing is expected to happen there.
    """
    return 4.0 if aws.server.stock else 30.0


def busy_job(aws):
    """Start a job's run that continues until the object `go` exists.

    Return the job, the bucket and the run's id.
    """
    bucket = aws.new_bucket()
    sees = (["s3:ListBucket"], f"arn:aws:s3:::{bucket}")
    job = new_job(aws, _WAITING, sees, arguments={"--bucket": bucket})
    return job, bucket, aws.glue.start_job_run(JobName=job)["JobRunId"]
