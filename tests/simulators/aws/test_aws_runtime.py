"""A deployment's run time in the embedded AWS, under IAM: a schedule is due, its job runs on Spark, its end is announced."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from aws_clients import Clients
from pyiceberg.catalog.glue import GlueCatalog
from runtime_kit import aim, ended, fire, new_job, new_rule, new_schedule, noting_function, service_role, starter
from waiting import until

from glue_jobs.contract import spark_settings
from simulators.aws.server import EmbeddedAws
from simulators.data import generators
from simulators.tableflow.topic import load_topic
from simulators.tableflow.writer import Place, Tableflow
from stacks import assets
from tools.docs.permissions import GRANTS

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = "lkc-00runtime"
#: Says at the end of the job's own script where its modules came from.
WITNESS = "    import glue_jobs\n    print('from', glue_jobs.__file__, contracts.__file__)\n"
#: Tells its process and a child's, and goes on.
ENDLESS = """
import os, subprocess, sys, boto3
child = subprocess.Popen(["sleep", "600"])
bucket = dict(zip(sys.argv[1::2], sys.argv[2::2]))["--bucket"]
for key, process in {"process": os.getpid(), "child": child.pid}.items():
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=str(process))
child.wait(600)
"""


@pytest.fixture
def lake(aws):
    """A bucket for files, and one with a day of trades as Tableflow writes them."""
    files, tables = aws.new_bucket(), aws.new_bucket()
    where = {"glue.skip-name-validation": "true", "s3.endpoint": aws.server.url, "s3.region": aws.server.region}
    keys = {f"{part}.{key}": "test" for part in ("client", "s3") for key in ("access-key-id", "secret-access-key")}
    catalog = GlueCatalog("lake", client=aws.glue, **where, **keys)
    topic = load_topic(ROOT / "topics" / "stock_trades.avsc")
    begins, ends = (datetime(2026, 11, day, 5, tzinfo=UTC) for day in (15, 16))
    trades = generators.stock_trades(200, seed=1, start=begins, end=ends)
    Tableflow(catalog, Place(tables, cluster_id=CLUSTER)).materialise(topic, trades, commits=1)
    return files, tables


def export_job(aws, files, tables):
    """As the deployment makes it: script and zip as they ship, the least role, log groups of its own."""
    aws.s3.put_object(Bucket=files, Key="code/export.py", Body=witnessed(assets.glue_script().read_text()).encode())
    aws.s3.put_object(Bucket=files, Key="code/job.zip", Body=assets.glue_zip().read_bytes())
    for part in ("output", "error"):
        aws.client("logs").create_log_group(logGroupName=f"/aws-glue/runtime/{part}")
    names = {"region": aws.server.region, "account": aws.server.account, "cluster id": CLUSTER, "bucket": files}
    names |= {"Tableflow bucket": tables, "prefix": "exports", "aggregates database": "runtime"}
    granted = [(grant.action, [_named(one, names) for one in grant.resources]) for grant in GRANTS]
    code = ("s3:GetObject", f"arn:aws:s3:::{files}/code/*")
    logs = (["logs:CreateLogStream", "logs:PutLogEvents"], aws.arn("logs", "log-group:/aws-glue/runtime/*"))
    warehouse = f"s3://{files}/warehouse"
    aws.glue.create_job(
        Name="daily",
        Role=service_role(aws, "glue", *granted, code, logs),
        Command={"Name": "glueetl", "ScriptLocation": f"s3://{files}/code/export.py", "PythonVersion": "3"},
        GlueVersion="5.1",
        Timeout=10,
        DefaultArguments={
            "--export": "daily_trades",
            "--database": CLUSTER,
            "--bucket": files,
            "--prefix": "exports",
            "--warehouse": warehouse,
            "--aggregates-database": "runtime",
            "--first-day": "2026-11-15",
            "--conf": " --conf ".join(f"{name}={value}" for name, value in spark_settings(warehouse).items()),
            "--extra-py-files": f"s3://{files}/code/job.zip",
            "--custom-logGroup-prefix": "/aws-glue/runtime",
        },
    )


def witnessed(script):
    main = 'if __name__ == "__main__":\n'
    assert script.count(main) == 1
    return script.replace(main, main + WITNESS)


def _named(resource, names):
    for name, value in names.items():
        resource = resource.replace(f"<{name}>", value)
    return resource


def test_a_schedule_that_is_due_ends_in_published_files_and_a_function_that_knows(aws, lake):
    files, tables = lake
    export_job(aws, files, tables)
    function, calls = noting_function(aws)
    aim(aws, new_rule(aws, {"source": ["aws.glue"], "detail": {"jobName": ["daily"], "state": ["SUCCEEDED"]}}), function)
    starts = starter(aws, ("glue:StartJobRun", aws.arn("glue", "job/daily")))
    given = {"JobName": "daily", "Arguments": {"--as-of": "<aws.scheduler.scheduled-time>"}}
    schedule = new_schedule(aws, "arn:aws:scheduler:::aws-sdk:glue:startJobRun", starts, input=given)

    fired = fire(aws, schedule, at="2026-11-16T06:00:00Z")
    run = fired["invocation"]["answer"]["JobRunId"]
    record = ended(aws, "daily", run, patience=180)

    output, error = (_lines(aws, part, run) for part in ("output", "error"))
    assert record["JobRunState"] == "SUCCEEDED", [record.get("ErrorMessage"), *error]
    (witness,) = [line.split()[1:] for line in output if line.startswith("from ")]
    assert [module.split("/")[-3] for module in witness] == ["job.zip", "job.zip"]
    assert any("2026-11-15" in line for line in error), error
    manifest = json.load(aws.s3.get_object(Bucket=files, Key="exports/daily_trades/manifests/2026-11-15.json")["Body"])
    assert manifest["rows"]["rows"] > 0
    (called,) = until(calls)
    assert called["event"]["detail"] == {
        "jobName": "daily",
        "severity": "INFO",
        "state": "SUCCEEDED",
        "jobRunId": run,
        "message": "Job run succeeded",
    }


def _lines(aws, part, run):
    result = aws.client("logs").get_log_events(logGroupName=f"/aws-glue/runtime/{part}", logStreamName=run, startFromHead=True)
    return [each["message"] for each in result["events"]]


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


def _process_of_a_run(aws):
    return _run_that_goes_on(aws, aws.new_bucket())[2]


def _run_that_goes_on(aws, bucket):
    """Job, run and process, which has a child."""
    job = new_job(aws, ENDLESS, ("s3:PutObject", f"arn:aws:s3:::{bucket}/*"), arguments={"--bucket": bucket})
    run = aws.glue.start_job_run(JobName=job)["JobRunId"]
    assert until(lambda: aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2)
    return job, run, int(aws.s3.get_object(Bucket=bucket, Key="process")["Body"].read())
