"""Probes: how AWS differs from stock MiniStack in Glue."""

import json

from simulators.tests.aws.probe_kit import probe
from tests.support import runtime_kit as kit
from tests.support.aws_clients import error_of
from tests.support.runtime_kit import busy_job, control, new_job, noting_function, patience
from tests.support.waiting import until


@probe("glue_catalog")
def folds_names_of_tables(aws):
    database = aws.new_database()
    created = error_of(aws.glue.create_table, DatabaseName=database.upper(), TableInput={"Name": "Orders"})
    result = error_of(aws.glue.get_table, DatabaseName=database, Name="ORDERS")
    return created is result is None


@probe("glue_catalog")
def pages_hold_100_tables(aws):
    database = aws.new_database()
    for number in range(101):
        aws.glue.create_table(DatabaseName=database, TableInput={"Name": f"t{number:03}"})
    pages = list(aws.glue.get_paginator("get_tables").paginate(DatabaseName=database))
    names = [table["Name"] for page in pages for table in page["TableList"]]
    return len(pages) == 2 and names == [f"t{number:03}" for number in range(101)]


@probe("glue_catalog")
def misses_the_database_of_a_list(aws):
    return error_of(aws.glue.get_tables, DatabaseName="lkc-none") == "EntityNotFoundException"


@probe("glue_catalog")
def filters_tables_by_regular_expression(aws):
    database = aws.new_database()
    for name in ("orders", "orders_by_day", "trades"):
        aws.glue.create_table(DatabaseName=database, TableInput={"Name": name})
    result = aws.glue.get_tables(DatabaseName=database, Expression="orders.+")["TableList"]
    return [table["Name"] for table in result] == ["orders_by_day"]


@probe("glue_catalog")
def replaces_the_whole_table(aws):
    database = aws.new_database()
    aws.glue.create_table(DatabaseName=database, TableInput={"Name": "t", "Parameters": {"a": "1"}})
    aws.glue.update_table(DatabaseName=database, TableInput={"Name": "t"})
    return aws.glue.get_table(DatabaseName=database, Name="t")["Table"].get("Parameters") == {}


@probe("glue_permissions")
def wants_the_catalog_and_the_database_too(aws):
    database = aws.new_database()
    aws.glue.create_table(DatabaseName=database, TableInput={"Name": "t"})
    chain = [aws.arn("glue", part) for part in (f"table/{database}/t", f"database/{database}", "catalog")]
    codes = [
        error_of(
            aws.assuming(aws.new_role(("glue:GetTable", allowed))).glue.get_table,
            DatabaseName=database,
            Name="t",
        )
        for allowed in (chain, chain[:2], chain[::2], chain[1:])
    ]
    return codes == [None, *["AccessDeniedException"] * 3]


@probe("glue_permissions")
def wants_everything_in_a_database_that_is_deleted(aws):
    """Also where there is nothing in it."""
    kinds = ("catalog", "database/{}", "table/{}/*", "userDefinedFunction/{}/*")
    codes = []
    for missing in (None, *kinds):
        database = aws.new_database()
        allowed = [aws.arn("glue", kind.format(database)) for kind in kinds if kind != missing]
        role = aws.assuming(aws.new_role(("glue:DeleteDatabase", allowed)))
        codes.append(error_of(role.glue.delete_database, Name=database))
    return codes == [None, *["AccessDeniedException"] * 4]


@probe("glue_permissions")
def finds_a_database_by_its_own_arn(aws):
    database = aws.new_database()
    resources = [aws.arn("glue", f"database/{database}"), aws.arn("glue", "catalog")]
    reader = aws.assuming(aws.new_role(("glue:GetDatabase", resources)))
    return error_of(reader.glue.get_database, Name=database) is None


#: One that keeps what it was started with.
_REPORTING = """
import importlib.util, json, os, sys, boto3, mine
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
report = {"given": given, "module": mine.value, "submit": os.environ["PYSPARK_SUBMIT_ARGS"]}
report["sees"] = importlib.util.find_spec("glue_jobs") is not None
boto3.client("s3").put_object(Bucket=given["--bucket"], Key="report", Body=json.dumps(report))
"""


@probe("glue_runs")
def runs_the_script_with_its_zip(aws):
    """And with nothing of this project; a run's argument stands before the job's."""
    bucket = aws.new_bucket()
    writes = ("s3:PutObject", f"arn:aws:s3:::{bucket}/*")
    given = {"--bucket": bucket, "--a": "job's", "--b": "job's", "--conf": "spark.c=1 --conf spark.d=2"}
    job = new_job(aws, _REPORTING, writes, modules={"mine.py": "value = 'from the zip'"}, arguments=given)
    record = kit.run(aws, job, a="run's")
    if aws.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0:
        return False
    result = json.load(aws.s3.get_object(Bucket=bucket, Key="report")["Body"])
    same = {"--a": "run's", "--b": "job's", "--JOB_NAME": job, "--JOB_RUN_ID": record["Id"]}
    result["conf"] = [pair in result["submit"] for pair in ("--conf spark.c=1 ", "--conf spark.d=2 ")]
    match = tuple(result[name] for name in ("module", "sees", "conf", "given"))
    return match == ("from the zip", False, [True, True], result["given"] | same)


@probe("glue_runs")
def says_why_a_run_failed(aws):
    scripts = (
        "raise ValueError('no such table')",
        "import sys\nsys.exit(3)",
        "import sys\nsys.exit(0)",
        "pass",
    )
    records = [kit.run(aws, new_job(aws, script)) for script in scripts]
    result = [(record["JobRunState"], record.get("ErrorMessage")) for record in records]
    reasons = ["ValueError: no such table", "SystemExit: 3", "SystemExit: 0"]
    return result == [*(("FAILED", reason) for reason in reasons), ("SUCCEEDED", None)]


@probe("glue_runs")
def refuses_a_version_of_glue_that_it_cannot_run(aws):
    record = kit.run(aws, new_job(aws, "", GlueVersion="4.0"))
    return (
        record["JobRunState"] == "FAILED" and "jobs of Glue 5.1 and 6.0, not of 4.0" in record["ErrorMessage"]
    )


@probe("glue_runs")
def runs_only_so_many_at_once(aws):
    job, bucket, run = busy_job(aws)
    refused = error_of(aws.glue.start_job_run, JobName=job)
    aws.s3.put_object(Bucket=bucket, Key="go")
    kit.ended(aws, job, run)
    return (refused, error_of(aws.glue.start_job_run, JobName=job)) == (
        "ConcurrentRunsExceededException",
        None,
    )


@probe("glue_runs")
def stops_a_run(aws):
    job, _, run = busy_job(aws)
    if not kit.goes_on(aws, job, run):
        return False
    aws.glue.batch_stop_job_run(JobName=job, JobRunIds=[run])
    record = kit.ended(aws, job, run)
    return (record["JobRunState"], error_of(aws.glue.start_job_run, JobName=job)) == ("STOPPED", None)


@probe("glue_runs")
def ends_a_run_that_takes_too_long(aws):
    job, _, run = busy_job(aws)
    control(aws, "job-runs/expire", job=job, run=run)
    record = kit.ended(aws, job, run)
    return (record["JobRunState"], record.get("ErrorMessage")) == ("TIMEOUT", "Job run timed out")


@probe("glue_runs")
def runs_only_under_a_role_that_trusts_glue(aws):
    record = kit.run(aws, new_job(aws, "", role=kit.service_role(aws, "glue", SourceAccount="111111111111")))
    return record["JobRunState"] == "FAILED" and "assume role permissions" in record["ErrorMessage"]


@probe("glue_runs")
def runs_only_code_that_the_role_may_read(aws):
    record = kit.run(aws, new_job(aws, "", role=kit.service_role(aws, "glue")))
    return record["JobRunState"] == "FAILED" and "script.py" in record["ErrorMessage"]


@probe("glue_runs")
def keeps_what_a_run_writes(aws):
    logs = aws.client("logs")
    prefix = f"/aws-glue/{kit.numbered('probe')}"
    for part in ("output", "error"):
        logs.create_log_group(logGroupName=f"{prefix}/{part}")
    writes = (["logs:CreateLogStream", "logs:PutLogEvents"], aws.arn("logs", f"log-group:{prefix}/*"))
    script = "import sys\nprint('one')\nprint('two')\nprint('three', file=sys.stderr)"
    job = new_job(aws, script, writes, arguments={"--custom-logGroup-prefix": prefix})
    stream = kit.run(aws, job)["Id"]
    if not logs.describe_log_streams(logGroupName=f"{prefix}/output")["logStreams"]:
        return False
    kept = [
        logs.get_log_events(logGroupName=f"{prefix}/{part}", logStreamName=stream)["events"]
        for part in ("output", "error")
    ]
    return [[event["message"] for event in events] for events in kept] == [["one", "two"], ["three"]]


@probe("glue_runs")
def puts_an_event_at_the_end_of_a_run(aws):
    function, calls = noting_function(aws)
    job = new_job(aws, "import sys\nsys.exit(3)")
    kit.aim(aws, kit.new_rule(aws, {"source": ["aws.glue"], "detail": {"jobName": [job]}}), function)
    run = kit.run(aws, job)["Id"]
    events = [call["event"] for call in until(calls, patience(aws)) or []]
    detail = {
        "jobName": job,
        "severity": "ERROR",
        "state": "FAILED",
        "jobRunId": run,
        "message": "SystemExit: 3",
    }
    result = [(event["detail-type"], event["account"], event["region"], event["detail"]) for event in events]
    return result == [("Glue Job State Change", aws.server.account, aws.server.region, detail)]
