"""Glue: the Data Catalog, permissions on it, and job runs.

- glue_catalog: Database and table names are stored in lower case; stock MiniStack keeps their case. GetTables
  and GetDatabases return at most 100 entries and a NextToken; stock returns all. GetTables in a database that
  doesn't exist is EntityNotFoundException; stock returns an empty list. Expression is a regular expression;
  stock treats it as a glob. UpdateTable replaces the whole definition; stock keeps the fields that the new
  definition omits. UpdateTable with a stale VersionId is always ConcurrentModificationException; stock
  compares and writes without a lock, so two concurrent writers may both succeed. Source: Glue web API
  reference (GetTables, GetDatabases, UpdateTable, TableInput).
- glue_permissions: A call needs permission on the table, its database and the catalog; DeleteDatabase also on
  all tables and user-defined functions of the database. Stock checks only the database of a table, expects
  `table/<name>` for a database, and never checks the catalog, so it denies what AWS allows and allows what
  AWS denies. Source: Glue developer guide, "Identity-based policy examples for AWS Glue" and "Specifying AWS
  Glue resource ARNs".
- glue_runs: StartJobRun runs the script of ScriptLocation with the zips of --extra-py-files, read with the
  job's role, in the project's interpreter for its GlueVersion, with Glue's versions of Spark, Java and
  Iceberg; stock reports SUCCEEDED at once and runs nothing. Arguments of a run override DefaultArguments,
  NonOverridableArguments override both. A run has Glue's states, ErrorMessage and times; its Timeout and
  MaxConcurrentRuns are enforced; BatchStopJobRun stops it; its logs go to log groups with the prefix
  --custom-logGroup-prefix. EventBridge gets one "Glue Job State Change" when a run ends. Source: Glue
  developer guide, "Using job parameters in AWS Glue jobs", "Automating with EventBridge"; web API reference,
  StartJobRun.

Beyond AWS: POST job-runs/expire {"job": …, "run": …} under /_simulator ends a run as if its Timeout had
passed.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and glue"`
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import uuid
from typing import Any, Final

from simulators.aws import controls
from simulators.aws.answers import build_json_answer, build_json_error
from simulators.aws.hooks import Answer, Original, Patch, import_ministack, run_in_background
from simulators.aws.job_run import JobRun
from simulators.core import control

CATALOG = Patch("glue_catalog")
MAX_RESULTS = 100
_CATALOG_ACTIONS = frozenset(
    "CreateDatabase GetDatabase GetDatabases UpdateDatabase DeleteDatabase "
    "CreateTable GetTable GetTables UpdateTable DeleteTable BatchDeleteTable".split()
)
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList"}
#: The values of fields that the definition in UpdateTable omits.
_EMPTY_TABLE: dict[str, Any] = {
    "Description": "",
    "Owner": "",
    "StorageDescriptor": {},
    "PartitionKeys": [],
    "Parameters": {},
}
_catalog_lock = threading.Lock()


@CATALOG.replaces("ministack.services.glue", "_handle_request_sync", "method path headers body query_params")
def handle_request(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    query_params: dict[str, Any],
) -> Answer:
    action = headers.get("x-amz-target", "").rpartition(".")[2]
    if action not in _CATALOG_ACTIONS:
        return original(method, path, headers, body, query_params)
    request = fold(json.loads(body or b"{}"))
    listing = {name: request.pop(name, None) for name in ("MaxResults", "NextToken", "Expression")}
    if action == "UpdateTable":
        request["TableInput"] = {**_EMPTY_TABLE, **request.get("TableInput", {})}
    with _catalog_lock:
        if (
            action == "GetTables"
            and request.get("DatabaseName") not in import_ministack("services.glue")._databases
        ):
            return build_json_error(
                "EntityNotFoundException", f"Database {request.get('DatabaseName')} not found."
            )
        answer: Answer = original(method, path, headers, json.dumps(request).encode(), query_params)
    if action in _LISTS and answer[0] == 200:
        return _build_catalog_page(answer, _LISTS[action], **listing)
    return answer


def fold(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with each name of a database or table in lower case."""
    folded_request = dict(request)
    for key in {"Name", "DatabaseName"} & folded_request.keys():
        folded_request[key] = folded_request[key].lower()
    for key in {"DatabaseInput", "TableInput"} & folded_request.keys():
        folded_request[key] = fold(folded_request[key])
    if "TablesToDelete" in folded_request:
        folded_request["TablesToDelete"] = [name.lower() for name in folded_request["TablesToDelete"]]
    return folded_request


def _build_catalog_page(
    answer: Answer,
    field: str,
    MaxResults: int | None,  # noqa: N803  (AWS's names)
    NextToken: str | None,  # noqa: N803
    Expression: str | None,  # noqa: N803
) -> Answer:
    try:
        last_name = base64.b64decode(NextToken or "", validate=True).decode()
        pattern = re.compile(Expression or ".*")
    except (ValueError, re.error) as error:
        return build_json_error("InvalidInputException", str(error))
    entries = sorted(json.loads(answer[2])[field], key=lambda entry: str(entry["Name"]))
    matching_entries = [
        entry for entry in entries if entry["Name"] > last_name and pattern.fullmatch(entry["Name"])
    ]
    page = matching_entries[: min(MaxResults or MAX_RESULTS, MAX_RESULTS)]
    result: dict[str, Any] = {field: page}
    if len(page) < len(matching_entries):
        result["NextToken"] = base64.b64encode(page[-1]["Name"].encode()).decode()
    return answer[0], answer[1], json.dumps(result).encode()


PERMISSIONS = Patch("glue_permissions")
_DATABASE_ACTIONS = frozenset({"CreateDatabase", "GetDatabase", "UpdateDatabase", "DeleteDatabase"})


@PERMISSIONS.replaces(
    "ministack.core.iam_evaluator",
    "enforce",
    "access_key_id iam_action service region resource_arn service_context",
)
def enforce(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Any,
    access_key_id: str,
    iam_action: str,
    service: str,
    region: str,
    resource_arn: str = "*",
    service_context: dict[str, Any] | None = None,
) -> Any:
    arns = [resource_arn]
    if service == "glue":
        arns += list_related_arns(iam_action, resource_arn)
    for arn in arns:
        denied = original(access_key_id, iam_action, service, region, arn, service_context)
        if denied:
            return denied
    return None


@PERMISSIONS.names_resources("glue")
def name_catalog_resource(target: str, body: bytes) -> str | None:
    """Return `database/<name>` or `table/<database>/<name>`; None for a call that doesn't concern the Data
    Catalog.
    """
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return None
    action = target.rpartition(".")[2]
    if action in _DATABASE_ACTIONS:
        return f"database/{_read_name(request, 'DatabaseInput')}".lower()
    database = request.get("DatabaseName")
    if not database:
        return None
    table = _read_name(request, "TableInput")
    return (f"table/{database}/{table}" if table else f"database/{database}").lower()


def _read_name(request: dict[str, Any], container: str) -> str:
    return str(
        request.get("Name") or request.get("TableName") or request.get(container, {}).get("Name") or ""
    )


def list_related_arns(action: str, arn: str) -> list[str]:
    """Return the ARNs that also need permission: what contains the resource, and for DeleteDatabase the
    database's content.
    """
    prefix, _, resource = arn.rpartition(":")
    kind, _, name = resource.partition("/")
    if action == "glue:DeleteDatabase":
        return [
            f"{prefix}:{suffix}" for suffix in ("catalog", f"table/{name}/*", f"userDefinedFunction/{name}/*")
        ]
    if kind == "table":
        database = name.partition("/")[0]
        return [f"{prefix}:database/{database}", f"{prefix}:catalog"]
    if kind == "database":
        return [f"{prefix}:catalog"]
    return []


RUNS = Patch("glue_runs")
_GLUE: Final = "ministack.services.glue"
_DEFAULT_TIMEOUT: Final = 480
_SEVERITY: Final = {"SUCCEEDED": "INFO", "STOPPED": "INFO", "TIMEOUT": "WARN"}
_MESSAGE: Final = {"SUCCEEDED": "Job run succeeded", "STOPPED": "Job run stopped"}
#: The runs that have not ended, by their IDs.
_active_runs: dict[str, JobRun] = {}
_runs_lock: Final = threading.Lock()


@RUNS.replaces(_GLUE, "_create_job", "data")
def create_job(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        job = import_ministack("services.glue")._jobs[data["Name"]]
        job["ExecutionProperty"] = data.get("ExecutionProperty") or {"MaxConcurrentRuns": 1}
        job["Timeout"] = data.get("Timeout") or _DEFAULT_TIMEOUT
    return answer


@RUNS.replaces(_GLUE, "_update_job", "data")
def update_job(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    execution_property = data.get("JobUpdate", {}).get("ExecutionProperty")
    if answer[0] == 200 and execution_property:
        import_ministack("services.glue")._jobs[data["JobName"]]["ExecutionProperty"] = execution_property
    return answer


@RUNS.replaces(_GLUE, "_start_job_run", "data")
def start_job_run(original: Original, data: dict[str, Any]) -> Answer:
    glue = import_ministack("services.glue")
    job = glue._jobs.get(data.get("JobName"))
    if job is None:
        return original(data)
    with _runs_lock:
        runs = glue._job_runs.setdefault(job["Name"], [])
        limit = job.get("ExecutionProperty", {}).get("MaxConcurrentRuns", 1)
        if sum(run["Id"] in _active_runs for run in runs) >= limit:
            return build_json_error(
                "ConcurrentRunsExceededException", f"Concurrent runs exceeded for {job['Name']}"
            )
        run = _begin(dict(job), data)
        runs.append(run.record)
    return build_json_answer({"JobRunId": run.record["Id"]})


@RUNS.replaces(_GLUE, "_batch_stop_job_run", "data")
def stop_job_runs(original: Original, data: dict[str, Any]) -> Answer:
    """Stop the active runs, which are STOPPING until they end.

    MiniStack returns the errors for the other runs.
    """
    job_name = data.get("JobName")
    stopping_runs = []
    other_runs = []
    for run in data.get("JobRunIds", []):
        if _request_end(data.get("JobName", ""), run, "STOPPED"):
            stopping_runs.append(run)
        else:
            other_runs.append(run)
    answer = original({**data, "JobRunIds": other_runs})
    response = json.loads(answer[2])
    response["SuccessfulSubmissions"] += [{"JobName": job_name, "JobRunId": run} for run in stopping_runs]
    return build_json_answer(response)


@controls.register("POST", "/job-runs/expire")
def expire_job_run(request: control.Request) -> control.Response:
    document = json.loads(request.body)
    job = document.get("job", "")
    run = document.get("run", "")
    if _request_end(job, run, "TIMEOUT"):
        return control.build_json_response({"job": job, "run": run})
    return control.build_json_response({"error": f"job {job!r} has no active run {run!r}"}, 404)


def _request_end(job_name: str, run_id: str, state: str) -> bool:
    run = _active_runs.get(run_id)
    if run is None or run.record["JobName"] != job_name:
        return False
    run.ask_to_end(state)
    if state == "STOPPED":
        run.record["JobRunState"] = "STOPPING"
    return True


def _begin(job: dict[str, Any], data: dict[str, Any]) -> JobRun:
    run_id = f"jr_{uuid.uuid4().hex}{uuid.uuid4().hex}"
    arguments = {
        **job.get("DefaultArguments", {}),
        **data.get("Arguments", {}),
        **job.get("NonOverridableArguments", {}),
    }
    record = _build_record(job, data, run_id, arguments)
    reserved_arguments = {"--JOB_NAME": job["Name"], "--JOB_ID": f"j_{run_id[3:35]}", "--JOB_RUN_ID": run_id}
    run = _active_runs[run_id] = JobRun(
        job, record, {**arguments, **reserved_arguments}, lambda: _put_event(record)
    )
    run_in_background(run.carry_out)
    return run


def _build_record(
    job: dict[str, Any], data: dict[str, Any], run_id: str, arguments: dict[str, str]
) -> dict[str, Any]:
    now = time.time()
    copied_fields = ("WorkerType", "NumberOfWorkers", "MaxCapacity", "SecurityConfiguration", "GlueVersion")
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
        **{name: data.get(name) or job[name] for name in copied_fields if data.get(name) or job.get(name)},
    }


def _put_event(record: dict[str, Any]) -> None:
    """Send the event for the run's end. As on AWS, the next run may start before the event is delivered."""
    _active_runs.pop(record["Id"], None)
    state = record["JobRunState"]
    detail = {
        "jobName": record["JobName"],
        "severity": _SEVERITY.get(state, "ERROR"),
        "state": state,
        "jobRunId": record["Id"],
        "message": record.get("ErrorMessage") or _MESSAGE.get(state, ""),
    }
    entry = {"Source": "aws.glue", "DetailType": "Glue Job State Change", "Detail": json.dumps(detail)}
    import_ministack("services.eventbridge")._put_events({"Entries": [entry]}, allow_aws_source=True)


PATCHES: Final = (
    CATALOG,
    PERMISSIONS,
    RUNS,
)
