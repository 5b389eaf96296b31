"""Nothing of a Glue job's run is left in the embedded AWS, however it ends."""

import os
import signal

import psutil

from simulators.aws.server import EmbeddedAws
from simulators.aws.settings import JOBS_AT_ONCE
from tests.support.aws_clients import Clients
from tests.support.runtime_kit import ended, new_job
from tests.support.waiting import until

#: Writes its process id and a child's into the bucket, and goes on.
ENDLESS = """
import os, subprocess, sys, boto3
child = subprocess.Popen(["sleep", "600"])
bucket = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--bucket"]
for key, process in {"process": os.getpid(), "child": child.pid}.items():
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=str(process))
child.wait(600)
"""


def test_nothing_of_a_run_is_left_when_the_server_stops():
    with EmbeddedAws() as server:
        process = _process_of_a_run(Clients(server))
        assert psutil.pid_exists(process)
    assert until(lambda: not psutil.pid_exists(process))


def test_nothing_of_a_run_is_left_when_the_server_is_killed():
    with EmbeddedAws() as server:
        process = _process_of_a_run(Clients(server))
        os.kill(server.pid, signal.SIGKILL)
        assert until(lambda: not psutil.pid_exists(process))


def test_nothing_of_a_run_is_left_when_it_is_stopped(aws):
    bucket = aws.new_bucket()
    job, run, process = _run_that_goes_on(aws, bucket)
    child = int(aws.s3.get_object(Bucket=bucket, Key="child")["Body"].read())
    aws.glue.batch_stop_job_run(JobName=job, JobRunIds=[run])
    assert ended(aws, job, run)["JobRunState"] == "STOPPED"
    assert not psutil.pid_exists(process)
    assert until(lambda: not psutil.pid_exists(child))


def test_a_run_that_waits_for_a_slot_ends_when_it_is_stopped(aws):
    bucket = aws.new_bucket()
    active = [_run_that_goes_on(aws, aws.new_bucket())[:2] for _ in range(JOBS_AT_ONCE)]
    job = new_job(aws, ENDLESS, ("s3:PutObject", f"arn:aws:s3:::{bucket}/*"), arguments={"--bucket": bucket})
    waiting = aws.glue.start_job_run(JobName=job)["JobRunId"]
    aws.glue.batch_stop_job_run(JobName=job, JobRunIds=[waiting])
    assert ended(aws, job, waiting)["JobRunState"] == "STOPPED"
    for stack, run in active:
        assert aws.glue.get_job_run(JobName=stack, RunId=run)["JobRun"]["JobRunState"] == "RUNNING"
        aws.glue.batch_stop_job_run(JobName=stack, JobRunIds=[run])
        ended(aws, stack, run)


def _process_of_a_run(aws):
    return _run_that_goes_on(aws, aws.new_bucket())[2]


def _run_that_goes_on(aws, bucket):
    """Job, run and process, which has a child."""
    job = new_job(aws, ENDLESS, ("s3:PutObject", f"arn:aws:s3:::{bucket}/*"), arguments={"--bucket": bucket})
    run = aws.glue.start_job_run(JobName=job)["JobRunId"]
    assert until(lambda: aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2)
    return job, run, int(aws.s3.get_object(Bucket=bucket, Key="process")["Body"].read())
