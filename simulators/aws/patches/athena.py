"""Athena: queries of Iceberg tables with the caller's permissions.

- athena_queries: StartQueryExecution runs the statement in a separate process (simulators/aws/athena.py) with
  the caller's credentials. A missing permission on Glue or S3 makes the execution FAILED, and its reason
  names the permission. A malformed statement, a workgroup that doesn't exist or is disabled, and a result
  bucket that doesn't exist or whose location the caller may not read (s3:GetBucketLocation) are
  InvalidRequestException. A workgroup that enforces its configuration decides where results go, how they are
  encrypted, and how many bytes a query may read (BytesScannedCutoffPerQuery). GetQueryResults needs
  s3:GetObject on the result; a page holds up to 1,000 rows, and the first row has the column names. Calls
  with the same ClientRequestToken start one query. Stock MiniStack can't read Iceberg tables; if DuckDB is
  installed, it reads CSV files without checking the caller's permissions. Source: Athena API reference
  (StartQueryExecution, GetQueryResults); user guide, "Override client-side settings", "Configure per-query
  data usage limits", "Control access to Amazon S3 from Athena".

- athena_metadata: GetTableMetadata of a table that Glue doesn't have is a MetadataException. Stock answers
  with an empty table. Source: Athena API reference (GetTableMetadata).

Where Lake Formation governs, a caller without SELECT on a table is told that it has no accessible columns.

Less strict than AWS: a caller with glue:GetTable doesn't need glue:GetDatabase. The .metadata file of a
result is JSON. Stricter than AWS: a statement that the engine doesn't support is refused as "not
simulated".

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and athena"`
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from simulators.aws import identity, settings
from simulators.aws.answers import build_json_answer, build_json_error
from simulators.aws.hooks import Answer, Original, OriginalRequest, Patch, Request, import_ministack
from simulators.aws.patches.athena_workgroups import ATHENA, PRIMARY, Refused, build_invalid_request

QUERIES = Patch("athena_queries")
METADATA = Patch("athena_metadata")
PATCHES: Final = (QUERIES, METADATA)
#: How many queries run at the same time; the others wait in QUEUED.
_CONCURRENT: Final = 2
_ENGINE_VERSION: Final = {
    "SelectedEngineVersion": "AUTO",
    "EffectiveEngineVersion": "Athena engine version 3",
}
_RESULT_PAGE: Final = 1000
_ENCRYPTION: Final = {"SSE_S3": "AES256", "SSE_KMS": "aws:kms"}
#: The variables that the engine's process inherits.
_KEPT_VARIABLES: Final = ("PATH", "HOME", "TMPDIR", "LANG")
#: A line of the engine's output holds a whole result.
_LINE_BYTES: Final = 2**30

Execution = dict[str, Any]
_processes: dict[str, asyncio.subprocess.Process] = {}
_tasks: set[asyncio.Task[None]] = set()


class Results(NamedTuple):
    """Where the results of a query go, and the ResultConfiguration that says so."""

    location: str
    configuration: dict[str, Any]

    @classmethod
    def from_request(cls, group: dict[str, Any], request: dict[str, Any]) -> Results:
        """Return the request's configuration if it has a location and the workgroup's isn't enforced, else
        the workgroup's.

        Raises Refused if that has no location.
        """
        configuration = group.get("Configuration") or {}
        group_results = configuration.get("ResultConfiguration") or {}
        request_results = request.get("ResultConfiguration") or {}
        is_enforced = configuration.get("EnforceWorkGroupConfiguration", group["Name"] != PRIMARY)
        results = (
            group_results if is_enforced or not request_results.get("OutputLocation") else request_results
        )
        if not results.get("OutputLocation"):
            raise build_invalid_request(
                "No output location provided, neither by the workgroup nor by the call."
            )
        return cls(f"{results['OutputLocation'].rstrip('/')}/", results)

    def check(self, access_key: str, region: str) -> None:
        """Raise Refused if the bucket doesn't exist or the caller may not read its location."""
        name = urlsplit(self.location).netloc
        exists = name in import_ministack("services.s3")._buckets
        if not exists or not _is_allowed(access_key, "s3:GetBucketLocation", region, f"arn:aws:s3:::{name}"):
            raise build_invalid_request(f"Unable to verify/create output bucket {name}")

    def build_encryption(self) -> dict[str, str]:
        """Return the arguments of PutObject."""
        encryption = self.configuration.get("EncryptionConfiguration") or {}
        option = encryption.get("EncryptionOption", "")
        key = encryption.get("KmsKey")
        if option not in _ENCRYPTION:
            return {}
        arguments = {"ServerSideEncryption": _ENCRYPTION[option]}
        if key:
            arguments["SSEKMSKeyId"] = key
        return arguments


@QUERIES.handles(ATHENA)
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    action = request.headers.get("x-amz-target", "").rpartition(".")[2]
    if action not in ("StartQueryExecution", "GetQueryResults"):
        return await original()
    import_ministack("services.athena")._ensure_default_workgroup()
    fields = json.loads(request.body or b"{}")
    try:
        if action == "GetQueryResults":
            return build_json_answer(_read_results_page(fields, *request.read_caller()))
        return build_json_answer({"QueryExecutionId": await _start_query(fields, *request.read_caller())})
    except Refused as refusal:
        return refusal.answer


@QUERIES.replaces(ATHENA, "_stop_query_execution", "data")
def stop_query_execution(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if process := _processes.get(str(data.get("QueryExecutionId"))):
        process.kill()
    return answer


@METADATA.replaces(ATHENA, "_get_table_metadata", "data")
def get_table_metadata(original: Original, data: dict[str, Any]) -> Answer:
    name = f"{data.get('DatabaseName', '')}/{data.get('TableName', '')}"
    if name not in import_ministack("services.glue")._tables:
        return build_json_error("MetadataException", f"Entity Not Found: table {name}")
    return original(data)


async def _start_query(request: dict[str, Any], access_key: str, region: str) -> str:
    """Return the id of the execution once the statement is parsed. Raises Refused."""
    athena = import_ministack("services.athena")
    token = request.get("ClientRequestToken")
    name = request.get("WorkGroup") or PRIMARY
    for query_id, execution in athena._executions.items():
        if token and execution.get("_token") == token:
            if execution["Query"] != request["QueryString"]:
                raise build_invalid_request("Idempotent parameters do not match")
            return str(query_id)
    group = athena._workgroups.get(name)
    if group is None:
        raise build_invalid_request("WorkGroup is not found.")
    if group.get("State") == "DISABLED":
        raise build_invalid_request(f"WorkGroup {name} is disabled.")
    results = Results.from_request(group, request)
    results.check(access_key, region)
    query_id = str(uuid.uuid4())
    context = request.get("QueryExecutionContext") or {}
    query = {
        "sql": request["QueryString"],
        "database": context.get("Database") or "default",
        "catalog": context.get("Catalog") or "AwsDataCatalog",
        "output": f"{results.location}{query_id}",
        "cutoff": (group.get("Configuration") or {}).get("BytesScannedCutoffPerQuery"),
        "put": results.build_encryption(),
    }
    process, accepted = await _start_engine(
        query,
        _build_credentials(access_key) | settings.build_client_environment(identity.get_endpoint()),
        region,
    )
    suffix = "csv" if accepted["type"] == "DML" else "txt"
    execution = {
        "QueryExecutionId": query_id,
        "Query": request["QueryString"],
        "StatementType": accepted["type"],
        "SubstatementType": accepted["subtype"],
        "ResultConfiguration": {**results.configuration, "OutputLocation": f"{query['output']}.{suffix}"},
        "QueryExecutionContext": {"Database": query["database"], "Catalog": query["catalog"].lower()},
        "Status": {"State": "QUEUED", "SubmissionDateTime": time.time()},
        "Statistics": {},
        "WorkGroup": name,
        "EngineVersion": _ENGINE_VERSION,
        "_token": token,
        "_result": None,
    }
    athena._executions[query_id] = execution
    _processes[query_id] = process
    task = asyncio.create_task(_run_query(execution, process))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return query_id


async def _start_engine(
    query: dict[str, Any], environment: dict[str, str], region: str
) -> tuple[asyncio.subprocess.Process, dict[str, Any]]:
    """Start the engine and have it parse the statement. Raises Refused."""
    inherited_variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        str(settings.LAMBDA_PYTHON),
        *("-m", "simulators.aws.athena"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=settings.LAMBDA_PYTHON.parents[2],
        env=inherited_variables | environment | {"AWS_REGION": region, "AWS_DEFAULT_REGION": region},
        limit=_LINE_BYTES,
    )
    accepted = await _exchange_lines(process, query)
    if "type" not in accepted:
        await process.wait()
        reason = accepted.get("malformed", "the engine did not start; its reason is in the server's log")
        raise build_invalid_request(reason, AthenaErrorCode="MALFORMED_QUERY")
    return process, accepted


async def _exchange_lines(process: asyncio.subprocess.Process, fields: dict[str, Any]) -> dict[str, Any]:
    """Send the fields to the engine and return its reply; empty if the engine has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{json.dumps(fields)}\n".encode())
        await process.stdin.drain()
        answer: dict[str, Any] = json.loads(await process.stdout.readline() or b"{}")
    except ConnectionError:
        return {}
    return answer


async def _run_query(execution: Execution, process: asyncio.subprocess.Process) -> None:
    queued = time.monotonic()
    status = execution["Status"]
    async with _get_query_slots():
        began = time.monotonic()
        if status["State"] == "QUEUED":
            status["State"] = "RUNNING"
        outcome = await _exchange_lines(process, {})
    if process.returncode is None:
        process.kill()
    await process.wait()
    del _processes[execution["QueryExecutionId"]]
    if status["State"] != "CANCELLED":
        _end_query(
            execution,
            outcome
            or {"state": "FAILED", "reason": "GENERIC_INTERNAL_ERROR: the engine ended without an answer"},
        )
    now = time.monotonic()
    execution["Statistics"] = {
        "EngineExecutionTimeInMillis": int(1000 * (now - began)),
        "DataScannedInBytes": outcome.get("scanned", 0),
        "TotalExecutionTimeInMillis": int(1000 * (now - queued)),
        "QueryQueueTimeInMillis": int(1000 * (began - queued)),
        "ServiceProcessingTimeInMillis": 0,
    }


def _end_query(execution: Execution, outcome: dict[str, Any]) -> None:
    status = execution["Status"]
    execution["_result"] = outcome
    if reason := outcome.get("reason"):
        status["StateChangeReason"] = reason
        status["AthenaError"] = {"ErrorCategory": 2, "Retryable": False, "ErrorMessage": reason}
    status["CompletionDateTime"] = time.time()
    status["State"] = outcome["state"]


@cache
def _get_query_slots() -> asyncio.Semaphore:
    return asyncio.Semaphore(_CONCURRENT)


def _build_credentials(access_key: str) -> dict[str, str]:
    """Return the caller's credentials as environment variables.

    If IAM is enforced, MiniStack has checked the signature.
    """
    credential = import_ministack("core.iam_evaluator").resolve_credential(access_key)
    if not hasattr(credential, "secret_access_key"):
        return {
            "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": settings.SECRET_ACCESS_KEY,
        }
    token = {"AWS_SESSION_TOKEN": credential.session_token} if credential.session_token else {}
    return {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": credential.secret_access_key} | token


def _read_results_page(request: dict[str, Any], access_key: str, region: str) -> dict[str, Any]:
    """Return a page of the results. Raises Refused."""
    query_id = request.get("QueryExecutionId")
    execution = import_ministack("services.athena")._executions.get(query_id)
    if execution is None:
        raise build_invalid_request(f"QueryExecution {query_id} was not found")
    state = execution["Status"]["State"]
    if state in ("QUEUED", "RUNNING"):
        raise build_invalid_request(f"Query has not yet finished. Current state: {state}")
    if state != "SUCCEEDED":
        raise build_invalid_request(f"Query did not finish successfully. Final query state: {state}")
    size = request.get("MaxResults", _RESULT_PAGE)
    token = str(request.get("NextToken", "0"))
    if not 1 <= size <= _RESULT_PAGE:
        raise build_invalid_request(f"MaxResults is more than maximum allowed length {_RESULT_PAGE}.")
    if not token.isdigit():
        raise build_invalid_request("The NextToken is invalid")
    bucket, _, key = execution["ResultConfiguration"]["OutputLocation"].removeprefix("s3://").partition("/")
    if not _is_allowed(access_key, "s3:GetObject", region, f"arn:aws:s3:::{bucket}/{key}"):
        raise Refused(
            build_json_error(
                "AccessDeniedException", f"Not authorized to read the result at s3://{bucket}/{key}"
            )
        )
    if key not in import_ministack("services.s3")._buckets.get(bucket, {"objects": {}})["objects"]:
        raise build_invalid_request("Could not find results")
    return _build_page(execution["_result"], size, int(token))


def _build_column_info(column: dict[str, Any]) -> dict[str, Any]:
    return {
        "CatalogName": "hive",
        "SchemaName": "",
        "TableName": "",
        "Label": column["name"],
        "Nullable": "UNKNOWN",
        **{name.capitalize(): value for name, value in column.items()},
        "CaseSensitive": column["type"] == "varchar",
    }


def _build_page(result: dict[str, Any], size: int, start: int) -> dict[str, Any]:
    properties = ("name", "type", "precision", "scale")
    columns = [dict(zip(properties, column, strict=True)) for column in result["columns"]]
    rows = list(result["rows"])
    if result["header"]:
        rows.insert(0, [column["name"] for column in columns])
    page = []
    for row in rows[start : start + size]:
        cells = [{} if cell is None else {"VarCharValue": cell} for cell in row]
        page.append({"Data": cells})
    column_info = [_build_column_info(column) for column in columns]
    next_token = {"NextToken": str(start + size)} if start + size < len(rows) else {}
    return {
        "UpdateCount": 0,
        "ResultSet": {"Rows": page, "ResultSetMetadata": {"ColumnInfo": column_info}},
        **next_token,
    }


def _is_allowed(access_key: str, action: str, region: str, arn: str) -> bool:
    """Return whether the caller may do this in S3. True if IAM is not enforced."""
    return not import_ministack("app").AUTH or not import_ministack("core.iam_evaluator").enforce(
        access_key, action, "s3", region, arn, None
    )
