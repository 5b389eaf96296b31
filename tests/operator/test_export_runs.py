"""`lakeferry export run --stage`, `backfill` and `restate`, with a job in the embedded Glue whose runs do what
a test wrote down: they write the record of a run as the real job does, wait, and fail.

tests/cli/test_existing_tables.py runs the same commands with the real job.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import boto3
import pytest
from typer.testing import CliRunner

from config.project import ROOT
from lakeferry.__main__ import app
from simulators.core import control
from tests.support.aws_clients import policy
from tests.support.leftovers import QUEUE
from tests.support.promises import promised
from tests.support.stand_ins import Stacks
from tests.support.waiting import PATIENCE, until

EXPORT = "daily_trades"
FIRST = "2026-11-13"  # of the contract
#: Each run takes the first of the plays in the bucket. It reads its arguments as the real job does.
_SCRIPT = """
import datetime, json, sys, time, boto3
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
bucket = given["--bucket"]
s3 = boto3.client("s3")
def list_keys(prefix):
    return [item["Key"] for item in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]
key = list_keys("plays/")[0]
play = json.load(s3.get_object(Bucket=bucket, Key=key)["Body"])
s3.delete_object(Bucket=bucket, Key=key)
now = datetime.datetime.now(datetime.timezone.utc)
run = f"{now:%Y%m%dT%H%M%SZ}-{key[-8:]}"
record = {
    "id": run, "export": given["--export"], "as_of": given["--as-of"], "started_at": now.isoformat(),
    "expires_at": now.isoformat(), "job_run_id": given["--JOB_RUN_ID"], "state": "running", "reason": None,
    "ended_at": None, "windows": [], "working_on": None, "windows_left": 0, "phases": {}, "asked": None,
    "host": "h", "pid": 1, "code_version": "0",
}
def save(**changes):
    name = f"{given['--prefix']}/{given['--export']}/runs/{run}.json"
    s3.put_object(Bucket=bucket, Key=name, Body=json.dumps({**record, **changes}).encode())
if play["record"] is not None:
    save()
until = time.monotonic() + 400
while play["waits"] and not list_keys("go"):
    if time.monotonic() > until:
        sys.exit("nobody let it go on")
    time.sleep(0.05)
if play["record"] is not None:
    save(**{"ended_at": now.isoformat(), "state": "done", **play["record"]})
if play["reason"]:
    sys.exit(play["reason"])
"""


def call(*words):
    answer = CliRunner().invoke(app, [*words, "--stage", "dev", "--json"])
    return answer.exit_code, json.loads(answer.stdout)


class Job:
    """The Glue job of the export, and the bucket of its files."""

    def __init__(self, ctx):
        self.ctx = ctx
        self.name = f"{ctx.deployment.prefix}-{EXPORT}"
        self.bucket = f"{ctx.deployment.prefix}-files"
        self.s3 = boto3.client("s3")
        self.glue = boto3.client("glue")

    def create(self):
        iam = boto3.client("iam")
        place = {"LocationConstraint": self.ctx.region}
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration=place)
        self.s3.put_object(Bucket=self.bucket, Key="code/script.py", Body=_SCRIPT.encode())
        trust = {
            "Effect": "Allow",
            "Principal": {"Service": "glue.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        role = iam.create_role(RoleName="export-job", AssumeRolePolicyDocument=policy(trust))["Role"]
        everything = policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*"})
        iam.put_role_policy(RoleName="export-job", PolicyName="own", PolicyDocument=everything)
        self.glue.create_job(
            Name=self.name,
            Role=role["Arn"],
            Command={"Name": "glueetl", "ScriptLocation": f"s3://{self.bucket}/code/script.py"},
            DefaultArguments={
                "--export": EXPORT, "--bucket": self.bucket, "--prefix": "exports", "--database": "lkc-1",
                "--time-limit-minutes": "55",
            },
            ExecutionProperty={"MaxConcurrentRuns": 1},
            GlueVersion="5.1",
            Timeout=60,
        )  # fmt: skip

    def plan(self, record, *, reason="", waits=False):
        """Write down what the next run does: what its record says (None: it writes none), and what Glue says
        of its failure.
        """
        play = {"record": record, "reason": reason, "waits": waits}
        key = f"plays/{len(self.keys('plays/')):08}"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(play).encode())

    def keys(self, prefix):
        return [
            item["Key"]
            for item in self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        ]

    def settle(self, *labels, folder="manifests"):
        for label in labels:
            self.s3.put_object(Bucket=self.bucket, Key=f"exports/{EXPORT}/{folder}/{label}.json", Body=b"{}")

    def let_go(self):
        self.s3.put_object(Bucket=self.bucket, Key="go", Body=b"")
        assert until(lambda: not self.active(), PATIENCE)

    def runs(self):
        """Return the runs, the oldest first."""
        return sorted(self.glue.get_job_runs(JobName=self.name)["JobRuns"], key=lambda run: run["StartedOn"])

    def active(self):
        return [run["Id"] for run in self.runs() if run["JobRunState"] in ("STARTING", "RUNNING", "STOPPING")]

    def asked(self, runs):
        """Return the windows that runs were asked for."""
        return [
            (run["Arguments"].get("--windows"), run["Arguments"].get("--only")) for run in self.runs()[-runs:]
        ]

    def clean_up(self):
        for run in self.active():
            self.glue.batch_stop_job_run(JobName=self.name, JobRunIds=[run])
        assert until(lambda: not self.active(), PATIENCE)
        for prefix in ("exports/", "plays/", "go"):
            for key in self.keys(prefix):
                self.s3.delete_object(Bucket=self.bucket, Key=key)


@pytest.fixture(scope="module")
def deployed_job(dev):
    Stacks(dev).make("exports", {"Queue": QUEUE})
    job = Job(dev)
    job.create()
    return job


@pytest.fixture
def job(deployed_job):
    """The job, without files and plays of another test."""
    yield deployed_job
    deployed_job.clean_up()


def said(*windows, left=0, **more):
    """Return what the record of a run says at its end."""
    return {"windows": list(windows), "windows_left": left, **more}


def window(label, state="published", **more):
    file = {"role": "data", "key": f"exports/{EXPORT}/data/{label}/r/{EXPORT}_{label}.csv"}
    done = {"generation": 1, "rows": {"rows": 1234, "withheld": False}, "headline": [], "files": [file]}
    facts = done if state in ("published", "unchanged") else {}
    return {"window": label, "state": state, "reason": None, "seconds": 2.0, "notes": [], **facts, **more}


def blocked(label):
    what = {"code": "EXP-CHECK-BLOCKED", "reason": "a price is negative", "remedy": "Correct the source"}
    return window(label, "blocked", **what, exit_code=7, stops=False)


def test_a_run_is_followed_and_ends_with_the_numbers_and_files_of_its_windows(job):
    job.plan(said(window("2026-11-14"), window("2026-11-13"), phases={"compute": 3.0}))
    answer = CliRunner().invoke(app, ["export", "run", EXPORT, "--stage", "dev"])
    assert answer.exit_code == 0, answer.output
    (run,) = job.runs()
    progress = answer.stderr.splitlines()
    assert f"Started run {run['Id']} of job {job.name}" in progress
    assert f"{run['Id']}: SUCCEEDED" in progress
    assert "  2026-11-14: published, 1,234 rows, 2s" in progress
    rows = [line.split() for line in answer.stdout.splitlines()]
    assert rows[1][:4] == ["2026-11-13", "published", "1", "1,234"]
    assert ["2026-11-13:", f"s3://{job.bucket}/{window('2026-11-13')['files'][0]['key']}"] in rows
    assert any(line.startswith(f"Record: s3://{job.bucket}/exports/") for line in answer.stdout.splitlines())
    assert "Next: `" in answer.stdout.splitlines()[-1]
    job.plan(said(window("2026-11-13", "unchanged")))
    code, document = call("export", "run", EXPORT, "--windows", "2026-11-13")
    assert (code, document.keys()) == (0, promised("export run"))
    assert (document["state"], document["job_run_id"]) == ("done", job.runs()[-1]["Id"])
    assert job.asked(1) == [("2026-11-13", None)]


BLOCKED = {"state": "blocked", "reason": "EXP-CHECK-BLOCKED  a price is negative. Correct the source"}
NO_TABLE = {"state": "failed", "reason": "EXP-TABLE-MISSING  there is no table. Look"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("record", "reason", "code", "exit_code"),
    [
        (said(window("2026-11-13"), blocked("2026-11-14"), **BLOCKED), "no", "EXP-CHECK-BLOCKED", 7),
        (said(window("2026-11-13", "incomplete", reason="it waits")), "", "EXPORT-LATER", 5),
        (said(**NO_TABLE), "no", "EXP-TABLE-MISSING", 1),
        (None, "EXP-ARGUMENTS  --as-of is wrong. Correct it", "EXP-ARGUMENTS", 2),
        (None, "Error: a stack trace with a value", "EXP-DIED", 1),
        (said(window("2026-11-13"), state="running"), "lost", "EXP-DIED", 1),
    ],
)
def test_a_failed_run_ends_with_the_code_that_a_run_on_this_machine_has(job, record, reason, code, exit_code):
    job.plan(record, reason=reason)
    ended, document = call("export", "run", EXPORT)
    assert (ended, document["code"], document["exit_code"]) == (exit_code, code, exit_code)
    assert "stack trace" not in json.dumps(document)


@pytest.mark.slow
def test_missing_windows_are_published_in_as_many_runs_as_that_takes(job):
    job.settle("2026-11-14", "2026-11-19")
    job.settle("2026-11-17", folder="skipped")
    job.plan(said(window("2026-11-13"), window("2026-11-15"), left=2))
    job.plan(said(blocked("2026-11-16"), left=1, **BLOCKED), reason="no")
    job.plan(said(window("2026-11-18")))
    code, document = call("export", "backfill", EXPORT, "--windows", "2026-11-13..11-19")
    assert (code, document["code"]) == (7, "EXP-CHECK-BLOCKED")
    assert job.asked(3) == [
        ("2026-11-13,2026-11-15..2026-11-16,2026-11-18", "missing"),
        ("2026-11-16,2026-11-18", "missing"),
        ("2026-11-18", "missing"),
    ]
    result = document["details"]
    labels = [window["window"] for window in result["windows"]]
    assert labels == ["2026-11-13", "2026-11-15", "2026-11-16", "2026-11-18"]
    assert (len(result["runs"]), result["left"]) == (3, [])


@pytest.mark.slow
def test_published_windows_are_computed_again_and_only_these(job):
    job.settle("2026-11-14", "2026-11-16")
    job.plan(said(window("2026-11-14", generation=2), window("2026-11-16", "unchanged")))
    answer = CliRunner().invoke(
        app, ["export", "restate", EXPORT, "--stage", "dev", "--windows", "2026-11-13..16"]
    )
    assert answer.exit_code == 0, answer.output
    assert job.asked(1) == [("2026-11-14,2026-11-16", "published")]
    assert "The range is done" in answer.stdout
    assert "Next: `" in answer.stdout


@pytest.mark.parametrize(("verb", "other"), [("backfill", "restate"), ("restate", "backfill")])
def test_a_range_with_nothing_to_do_starts_no_run_and_names_the_other_command(job, verb, other):
    if verb == "backfill":
        job.settle("2026-11-13", "2026-11-14")
    before = job.runs()
    code, document = call("export", verb, EXPORT, "--windows", "2026-11-13..14")
    assert (code, document.keys(), document["runs"]) == (0, promised(f"export {verb}"), [])
    words = ["export", verb, EXPORT, "--stage", "dev", "--windows", "2026-11-13..14"]
    assert (
        f"export {other} {EXPORT} --stage dev --windows 2026-11-13..14"
        in CliRunner().invoke(app, words).stdout
    )
    assert job.runs() == before


@pytest.mark.slow
def test_a_run_that_fails_as_a_whole_ends_the_range_which_can_be_continued(job):
    job.plan(said(window("2026-11-13"), left=1))
    job.plan(None, reason="EXP-CONTRACT  title is missing. Correct the contract")
    code, document = call("export", "backfill", EXPORT, "--windows", "2026-11-13..14")
    assert (code, document["code"], document["details"]["left"]) == (2, "EXP-CONTRACT", ["2026-11-14"])
    assert f"export backfill {EXPORT} --stage dev --windows 2026-11-14`" in document["hint"]


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("run", "weekly_sale"), "EXPORT-UNKNOWN", "It has: daily_trades"),
        (("run", EXPORT, "--windows", "2026-11-12..14"), "EXP-WINDOWS", "to 2026-11-12, and deploy"),
        (("run", EXPORT, "--windows", "2026-W46"), "EXP-WINDOWS", f"write it like {FIRST}"),
        (("run", EXPORT, "--as-of", "2026-11-13"), "EXP-ARGUMENTS", "no offset"),
        (("run", EXPORT, "--as-of", "9000-01-01T00:00:00Z"), "EXP-ARGUMENTS", "in the future"),
        (("run", EXPORT, "--out", "out"), "USAGE", "--out and --master"),
        (("backfill", EXPORT, "--windows", "2026-11-13..2300-01-01"), "EXP-WINDOWS", "is not over"),
        (("restate", EXPORT, "--windows", "2026-11-14..13"), "EXP-WINDOWS", "ends before it begins"),
        (
            ("backfill", EXPORT, "--windows", FIRST, "--complete-until", "noon"),
            "EXP-ARGUMENTS",
            "is not a time",
        ),
    ],
)
def test_wrong_input_is_refused_and_no_run_starts(deployed_job, words, code, message):
    before = deployed_job.runs()
    ended, document = call("export", *words)
    assert (ended, document["code"]) == (2, code)
    assert message in document["message"] + document["hint"]
    assert deployed_job.runs() == before


def test_a_second_run_is_refused_while_one_is_in_progress(job):
    job.plan(said(window("2026-11-13")), waits=True)
    code, document = call("export", "run", EXPORT, "--no-wait")
    assert (code, document.keys(), document["state"]) == (0, promised("export run"), "started")
    assert [document["job_run_id"]] == job.active()
    for words in (("run", EXPORT), ("backfill", EXPORT, "--windows", FIRST)):
        code, refused = call("export", *words)
        assert (code, refused["code"]) == (5, "EXPORT-RUNNING")
        assert document["job_run_id"] in refused["message"]
        assert "Nothing was started" in refused["hint"]
    job.let_go()
    job.plan(said(window("2026-11-13", "unchanged")))
    assert call("export", "run", EXPORT)[0] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("state", "code"), [("STOPPED", "EXP-CANCELLED"), ("TIMEOUT", "EXP-TIME-LIMIT")])
def test_a_run_that_somebody_or_glue_ends_is_no_success(job, stand_ins, state, code):
    job.plan(said(window("2026-11-13")), waits=True)
    with start_watching() as process:
        (run,) = until(job.active, PATIENCE)
        if state == "STOPPED":
            job.glue.batch_stop_job_run(JobName=job.name, JobRunIds=[run])
        else:
            control.call(stand_ins.aws.url, "POST", "/job-runs/expire", {"job": job.name, "run": run})
        document = json.loads(process.communicate(timeout=PATIENCE)[0])
    assert (process.returncode, document["code"]) == (1, code)


@pytest.mark.slow
def test_a_log_is_followed_until_the_run_has_ended(job, dev):
    job.plan(said(window("2026-11-13")), waits=True)
    code, started = call("export", "run", EXPORT, "--no-wait")
    assert code == 0
    words = ["export", "logs", EXPORT, "--follow", "--stage", "dev", "--json"]
    program = [sys.executable, "-m", "lakeferry"]
    with subprocess.Popen(
        [*program, *words], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as follow:
        job.let_go()
        document = json.loads(follow.communicate(timeout=PATIENCE)[0])
    assert (follow.returncode, document.keys()) == (0, promised("logs"))
    (run,) = document["runs"]
    assert (run["id"], run["state"]) == (started["job_run_id"], "SUCCEEDED")


def test_a_function_cannot_be_followed(job):
    code, refused = call("logs", "watch", "--follow")
    assert (code, refused["code"]) == (2, "USAGE")


@pytest.mark.slow
def test_an_interrupt_stops_watching_and_the_run_goes_on(job):
    job.plan(said(window("2026-11-13")), waits=True)
    with start_watching() as process:
        assert until(lambda: "RUNNING" in [run["JobRunState"] for run in job.runs()], PATIENCE)
        assert until(lambda: f"{job.active()[0]}: RUNNING" in process.stderr.readline(), PATIENCE)
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate(timeout=PATIENCE)[0])
    (run,) = job.active()
    assert (process.returncode, document["code"]) == (6, "EXPORT-STOPPED")
    assert f"run {run} of export {EXPORT} goes on in AWS" in document["message"]
    stop = f"aws glue batch-stop-job-run --region {job.ctx.region} --job-name {job.name} --job-run-ids {run}"
    assert stop in document["hint"]
    assert "lakeferry logs" in document["hint"]
    job.let_go()
    assert job.runs()[-1]["JobRunState"] == "SUCCEEDED"


def manifest(job, label, **more):
    document = {"status": "complete", "generation": 1, "rows": {"rows": 1234}, **more}
    key = f"exports/{EXPORT}/manifests/{label}.json"
    job.s3.put_object(Bucket=job.bucket, Key=key, Body=json.dumps(document).encode())


def test_exports_are_listed_with_their_runs_and_the_state_and_generation_of_windows(job):
    manifest(job, "2026-11-13")
    manifest(job, "2026-11-15", status="incomplete", generation=3)
    job.settle("2026-11-14", folder="skipped")
    job.plan(said())
    assert call("export", "run", EXPORT)[0] == 0
    code, document = call("export", "list", "--all")
    assert (code, document.keys()) == (0, promised("export list"))
    (export,) = document["exports"]
    assert (export["name"], export["version"], export["cron"]) == (EXPORT, 1, "15 1,9 * * ? *")
    assert (export["last"]["id"], export["last"]["state"]) == (job.runs()[-1]["Id"], "SUCCEEDED")
    assert export["missing"].startswith("2026-11-16..")
    assert export["next_run"]
    oldest = [list(window.values()) for window in export["windows"][-4:]]
    assert oldest == [
        ["2026-11-16", "missing", None, None],
        ["2026-11-15", "incomplete", 3, 1234],
        ["2026-11-14", "skipped", None, None],
        ["2026-11-13", "complete", 1, 1234],
    ]
    (limited,) = call("export", "list")[1]["exports"]
    assert (len(limited["windows"]), limited["older"]) == (10, len(export["windows"]) - 10)
    printed = CliRunner().invoke(app, ["export", "list", "--stage", "dev"]).stdout.splitlines()
    assert any(line.endswith("older windows: --all lists them") for line in printed)
    assert f"export backfill {EXPORT} --stage dev --windows 2026-11-16.." in printed[-1]


def start_watching():
    words = [sys.executable, "-m", "lakeferry", "export", "run", EXPORT, "--stage", "dev", "--json"]
    return subprocess.Popen(
        words,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("dev")
def test_a_stage_that_is_not_deployed_is_named():
    words = ["export", "run", "weekly_sales", "--stage", "prod", "--json"]
    document = json.loads(CliRunner().invoke(app, words).stdout)
    assert (document["exit_code"], document["code"]) == (2, "NOT-DEPLOYED")
    assert "lakeferry deploy --stage prod" in document["hint"]
