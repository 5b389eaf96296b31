"""The table of an export's aggregates at a deployment: one run of the job for each request, and its reason if
it fails.
"""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest

from lambdas.handlers import aggregate_table
from lambdas.handlers.runtime import Failed
from tests.support.aws_clients import policy
from tests.support.waiting import until

PATIENCE = 60
_numbers = itertools.count(1)
#: A job that fails for one export, and waits for an object for another.
SCRIPT = """
import sys, time, boto3
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["--as-of"]
if given["--export"] == "broken":
    sys.exit("EXP-AGGREGATE-TYPE  the table has columns of other types")
until = time.monotonic() + 120
while given["--export"] == "slow" and time.monotonic() < until:
    if boto3.client("s3").list_objects_v2(Bucket=given["--bucket"], Prefix="go").get("Contents"):
        break
    time.sleep(0.05)
"""


QUEUE = {"Type": "AWS::SQS::Queue"}
#: A resource whose creation fails after a second.
FAILS = {
    "Type": "AWS::CloudFormation::WaitCondition",
    "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "1"},
}


@attrs.frozen
class Context:
    """What Lambda says of an invocation in the account of a stack."""

    stack: str

    @property
    def invoked_function_arn(self):
        _, _, _, region, account, _ = self.stack.split(":", 5)
        return f"arn:aws:lambda:{region}:{account}:function:aggregate-table"

    def get_remaining_time_in_millis(self):
        return 120_000


def make_stack(name, **resources):
    """Create a stack, and return its id once it is settled."""
    client = boto3.client("cloudformation")
    stack = client.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))["StackId"]
    assert until(
        lambda: client.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"].endswith("_COMPLETE"),
        PATIENCE,
    )
    return stack


class Job:
    """The job, and the stack that asks for its runs."""

    def __init__(self, region):
        number = next(_numbers)
        self.stack = make_stack(f"aggregate-tables-{number}", Queue=QUEUE)
        self.name = f"aggregate-tables-{number}"
        self.bucket = f"aggregate-tables-{number}"
        self.glue = boto3.client("glue")
        self.s3 = boto3.client("s3")
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": region})
        self.s3.put_object(Bucket=self.bucket, Key="script.py", Body=SCRIPT.encode())
        trust = {
            "Effect": "Allow",
            "Principal": {"Service": "glue.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        iam = boto3.client("iam")
        role = iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=policy(trust))["Role"]
        everything = policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*"})
        iam.put_role_policy(RoleName=self.name, PolicyName="own", PolicyDocument=everything)
        self.glue.create_job(
            Name=self.name,
            Role=role["Arn"],
            Command={"Name": "glueetl", "ScriptLocation": f"s3://{self.bucket}/script.py"},
            DefaultArguments={"--bucket": self.bucket},
            ExecutionProperty={"MaxConcurrentRuns": 1},
            GlueVersion="5.1",
        )

    def runs(self):
        return self.glue.get_job_runs(JobName=self.name)["JobRuns"]

    def request(self, export, request_id="1", verb="Create", **changed):
        """Return the event of the framework's later calls."""
        event = {
            "RequestType": verb,
            "StackId": self.stack,
            "LogicalResourceId": "Table",
            "RequestId": request_id,
            "ResourceProperties": {"job": self.name, "export": export, "columns": ["day text"]},
        }
        return event | self.call(event) | changed

    def call(self, event):
        return aggregate_table.handle(event, Context(self.stack))

    def wait_for(self, event):
        assert until(lambda: self.call(event)["IsComplete"], PATIENCE)


@pytest.fixture
def job(lake_aws):
    return Job(lake_aws.region)


def test_one_run_serves_one_request(job):
    created = job.request("daily_trades")
    assert created["PhysicalResourceId"] == "aggregates:daily_trades"
    assert job.runs() == [], "the first call only names the resource"
    job.wait_for(created)
    job.wait_for(created)
    assert [run["Arguments"]["--export"] for run in job.runs()] == ["daily_trades"]
    job.wait_for(job.request("daily_trades", "2", "Update"))
    assert len(job.runs()) == 2, "another request may have other columns"


def test_a_request_waits_while_the_job_is_busy(job):
    slow = job.request("slow")
    assert job.call(slow) == {"IsComplete": False}
    quick = job.request("quick", "2")
    assert job.call(quick) == {"IsComplete": False}
    assert [run["Arguments"]["--export"] for run in job.runs()] == ["slow"]
    job.s3.put_object(Bucket=job.bucket, Key="go", Body=b"")
    job.wait_for(slow)
    job.wait_for(quick)


def test_a_failed_run_fails_the_deployment_with_its_reason(job):
    broken = job.request("broken")
    with pytest.raises(Failed, match=r"AWS-AGGREGATE-TABLE .*EXP-AGGREGATE-TYPE  the table has columns"):
        job.wait_for(broken)
    again = job.request("quick", "2")
    job.wait_for(again)


def test_a_second_run_of_one_request_that_fails_proves_nothing(job):
    """Its start was repeated, because Glue didn't list the first one yet."""
    created = job.request("daily_trades")
    job.wait_for(created)
    again = {"--export": "broken", "--as-of": "2026-11-29T08:00:00Z", "--request": "1"}
    run_id = job.glue.start_job_run(JobName=job.name, Arguments=again)["JobRunId"]
    assert until(
        lambda: job.glue.get_job_run(JobName=job.name, RunId=run_id)["JobRun"]["JobRunState"] == "FAILED",
        PATIENCE,
    )
    assert job.call(created) == {"IsComplete": True}


def test_a_run_that_does_not_end_fails_the_deployment(job):
    slow = job.request("slow", StartedAt=0.0)
    with pytest.raises(Failed, match=r"AWS-AGGREGATE-TABLE .*not within 45 minutes: its run has not ended"):
        job.call(slow)


def test_a_job_that_does_not_exist_is_named(job):
    job.glue.delete_job(JobName=job.name)
    with pytest.raises(Failed, match=f"AWS-AGGREGATE-TABLE .*{job.name}: EntityNotFoundException"):
        job.call(job.request("quick", StartedAt=0.0))


def test_a_rollback_starts_nothing(job):
    """The run would fail as that of the update did, and CloudFormation could not roll back."""
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    stack = make_stack(f"{job.name}-fails", Handle=handle, Wait=FAILS)
    assert job.call(job.request("broken", StackId=stack)) == {"IsComplete": True}
    assert job.runs() == []


def test_a_delete_starts_nothing(job):
    removed = job.request("daily_trades", verb="Delete", PhysicalResourceId="aggregates:daily_trades")
    assert job.call(removed) == {"IsComplete": True}
    assert job.runs() == []


def test_an_event_of_another_account_starts_nothing(job):
    foreign = job.request("daily_trades", StackId=job.stack.replace("000000000000", "999999999999"))
    with pytest.raises(Failed, match="LF-FOREIGN-EVENT"):
        job.call(foreign)
    assert job.runs() == []
