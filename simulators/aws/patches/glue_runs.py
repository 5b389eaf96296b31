"""Runs of Glue jobs: they really run, under the job's role, and say what came of it.

- StartJobRun runs the script of ScriptLocation with the zips of --extra-py-files, both as the role may read them, in the
  project's interpreter with Spark, Java and Iceberg as Glue has them. Stock MiniStack says SUCCEEDED at once and runs nothing.
- A run's arguments stand before the job's DefaultArguments, and NonOverridableArguments before both.
- States, ErrorMessage, times and Timeout are kept; BatchStopJobRun ends the run; MaxConcurrentRuns holds.
- What is written goes to the log groups that --custom-logGroup-prefix names.
- A run that ended is told to EventBridge as "Glue Job State Change", once.

Beyond AWS: POST /_lakeferry/job-runs/expire {"job": …, "run": …} says that the run's Timeout is over.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import Any, Final

from simulators.aws.answers import json_answer, json_error
from simulators.aws.controls import Asked, Told, as_json, control
from simulators.aws.hooks import Answer, Original, Patch, in_background, ministack
from simulators.aws.job_run import JobRun

PATCH = Patch("glue_runs")
_GLUE: Final = "ministack.services.glue"
_DEFAULT_TIMEOUT: Final = 480
_SEVERITY: Final = {"SUCCEEDED": "INFO", "STOPPED": "INFO", "TIMEOUT": "WARN"}
_MESSAGE: Final = {"SUCCEEDED": "Job run succeeded", "STOPPED": "Job run stopped"}
#: By the run's id, while it lasts.
_live: dict[str, JobRun] = {}
_lock: Final = threading.Lock()


@PATCH.replaces(_GLUE, "_create_job", "data")
def create_job(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        job = ministack("services.glue")._jobs[data["Name"]]
        job["ExecutionProperty"] = data.get("ExecutionProperty") or {"MaxConcurrentRuns": 1}
        job["Timeout"] = data.get("Timeout") or _DEFAULT_TIMEOUT
    return answer


@PATCH.replaces(_GLUE, "_update_job", "data")
def update_job(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    given = data.get("JobUpdate", {}).get("ExecutionProperty")
    if answer[0] == 200 and given:
        ministack("services.glue")._jobs[data["JobName"]]["ExecutionProperty"] = given
    return answer


@PATCH.replaces(_GLUE, "_start_job_run", "data")
def start_job_run(original: Original, data: dict[str, Any]) -> Answer:
    glue = ministack("services.glue")
    job = glue._jobs.get(data.get("JobName"))
    if job is None:
        return original(data)
    with _lock:
        runs = glue._job_runs.setdefault(job["Name"], [])
        limit = job.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)
        if sum(run["Id"] in _live for run in runs) >= limit:
            return json_error("ConcurrentRunsExceededException", f"Concurrent runs exceeded for {job['Name']}")
        run = _begin(dict(job), data)
        runs.append(run.record)
    return json_answer({"JobRunId": run.record["Id"]})


@PATCH.replaces(_GLUE, "_batch_stop_job_run", "data")
def batch_stop_job_run(original: Original, data: dict[str, Any]) -> Answer:
    """A run that goes on is told to stop and is STOPPING until it has; of the others MiniStack says what is wrong."""
    asked = [run for run in data.get("JobRunIds", []) if _ask_to_end(data.get("JobName", ""), run, "STOPPED")]
    answer = original({**data, "JobRunIds": [run for run in data.get("JobRunIds", []) if run not in asked]})
    told = json.loads(answer[2])
    told["SuccessfulSubmissions"] += [{"JobName": data.get("JobName"), "JobRunId": run} for run in asked]
    return json_answer(told)


@control("POST", "/job-runs/expire")
def expire(asked: Asked) -> Told:
    given = json.loads(asked.body)
    job, run = given.get("job", ""), given.get("run", "")
    if _ask_to_end(job, run, "TIMEOUT"):
        return as_json({"job": job, "run": run})
    return as_json({"error": f"job {job!r} has no run {run!r} that goes on"}, 404)


def _ask_to_end(job_name: str, run_id: str, state: str) -> bool:
    run = _live.get(run_id)
    if run is None or run.record["JobName"] != job_name:
        return False
    run.ask_to_end(state)
    if state == "STOPPED":
        run.record["JobRunState"] = "STOPPING"
    return True


def _begin(job: dict[str, Any], data: dict[str, Any]) -> JobRun:
    run_id = f"jr_{uuid.uuid4().hex}{uuid.uuid4().hex}"
    given = {**job.get("DefaultArguments", {}), **data.get("Arguments", {}), **job.get("NonOverridableArguments", {})}
    record = _record(job, data, run_id, given)
    told = {"--JOB_NAME": job["Name"], "--JOB_ID": f"j_{run_id[3:35]}", "--JOB_RUN_ID": run_id}
    run = _live[run_id] = JobRun(job, record, {**given, **told}, lambda: _told(record))
    in_background(run.carry_out)
    return run


def _record(job: dict[str, Any], data: dict[str, Any], run_id: str, arguments: dict[str, str]) -> dict[str, Any]:
    now = time.time()
    same = ("WorkerType", "NumberOfWorkers", "MaxCapacity", "SecurityConfiguration", "GlueVersion")
    return {
        "Id": run_id,
        "Attempt": 0,
        "JobName": job["Name"],
        "StartedOn": now,
        "LastModifiedOn": now,
        "JobRunState": "STARTING",
        "Arguments": arguments,
        "PredecessorRuns": [],
        "ExecutionTime": 0,
        "Timeout": data.get("Timeout") or job.get("Timeout") or _DEFAULT_TIMEOUT,
        **{name: data.get(name) or job[name] for name in same if data.get(name) or job.get(name)},
    }


def _told(record: dict[str, Any]) -> None:
    """The next run may begin before the event about this one is out, as on AWS."""
    _live.pop(record["Id"], None)
    state = record["JobRunState"]
    detail = {
        "jobName": record["JobName"],
        "severity": _SEVERITY.get(state, "ERROR"),
        "state": state,
        "jobRunId": record["Id"],
        "message": record.get("ErrorMessage") or _MESSAGE.get(state, ""),
    }
    entry = {"Source": "aws.glue", "DetailType": "Glue Job State Change", "Detail": json.dumps(detail)}
    ministack("services.eventbridge")._put_events({"Entries": [entry]}, allow_aws_source=True)
