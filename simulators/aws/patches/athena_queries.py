"""Athena runs a SELECT over Iceberg tables of the Glue Data Catalog, as whoever asked for it.

- The query reads Glue and S3, and writes its result, with the caller's own permissions; a missing one is a FAILED execution
  whose reason names it. Stock MiniStack reads CSV files with its own hands, where it finds DuckDB, and no Iceberg.
- "table$snapshots", "$history", "$files" and "$refs" are there; so are FOR VERSION and FOR TIMESTAMP AS OF, SHOW and DESCRIBE.
- A statement that isn't one is refused at once (InvalidRequestException), as are a workgroup that isn't there or is disabled,
  and a bucket for results that isn't there or whose location the caller may not ask for (s3:GetBucketLocation).
- The workgroup's place and encryption of results hold where it enforces them, and BytesScannedCutoffPerQuery cancels.
- GetQueryResults wants s3:GetObject on the result. Pages hold up to 1,000 rows, the first of them the column's names.
- The same ClientRequestToken starts no second query.

Stricter than AWS: INSERT, CREATE TABLE AS, UNLOAD and all other statements are refused ("not simulated"), as is what DuckDB
doesn't compute, and tables other than Iceberg's fail. Laxer: glue:GetDatabase is not asked for where glue:GetTable is
enough; Lake Formation has no say; metadata tables count no bytes; the .metadata file beside a result is JSON.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from functools import cache
from typing import Any, Final

from simulators.aws.answers import json_answer
from simulators.aws.hooks import Answer, Asking, Patch, Request, Stock, ministack
from simulators.aws.patches import athena_results
from simulators.aws.patches.athena_process import Died, Engine, credentials_of
from simulators.aws.patches.athena_workgroups import Refused, Results, invalid, workgroup

PATCH = Patch("athena_queries")
_ATHENA: Final = "ministack.services.athena"
#: More wait in QUEUED.
_AT_ONCE: Final = 2
_ENGINE: Final = {"SelectedEngineVersion": "AUTO", "EffectiveEngineVersion": "Athena engine version 3"}

Execution = dict[str, Any]
_engines: dict[str, Engine] = {}
_tasks: set[asyncio.Task[None]] = set()


@PATCH.handles(_ATHENA)
async def handle_request(stock: Asking, request: Request) -> Answer:
    action = request.headers.get("x-amz-target", "").rpartition(".")[2]
    if action not in ("StartQueryExecution", "GetQueryResults"):
        return await stock()
    ministack("services.athena")._ensure_default_workgroup()
    caller, asked = request.caller(), json.loads(request.body or b"{}")
    try:
        return json_answer(
            await _start(asked, *caller) if action == "StartQueryExecution" else athena_results.page(asked, *caller)
        )
    except Refused as refused:
        return refused.answer


@PATCH.replaces(_ATHENA, "_stop_query_execution", "data")
def stop_query_execution(stock: Stock, data: dict[str, Any]) -> Answer:
    answer = stock(data)
    if engine := _engines.get(str(data.get("QueryExecutionId"))):
        engine.stop()
    return answer


async def _start(asked: dict[str, Any], access_key: str, region: str) -> dict[str, Any]:
    """Raises Refused."""
    if known := _same_token(asked):
        return known
    group = workgroup(asked.get("WorkGroup") or "primary")
    results = Results.of(group, asked)
    results.check(access_key, region)
    number = str(uuid.uuid4())
    context = asked.get("QueryExecutionContext") or {}
    query = {
        "sql": asked["QueryString"],
        "database": context.get("Database") or "default",
        "catalog": context.get("Catalog") or "AwsDataCatalog",
        "output": f"{results.location}{number}",
        "cutoff": group.get("Configuration", {}).get("BytesScannedCutoffPerQuery"),
        "put": results.put(),
    }
    engine, accepted = await _accepted(query, access_key, region)
    execution = _execution(number, asked, query, accepted, results)
    ministack("services.athena")._executions[number] = execution
    _engines[number] = engine
    task = asyncio.create_task(_run(execution, engine))
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return {"QueryExecutionId": number}


async def _accepted(query: dict[str, Any], access_key: str, region: str) -> tuple[Engine, dict[str, Any]]:
    """Raises Refused."""
    try:
        engine = await Engine.started()
        accepted = await engine.begin(query, credentials_of(access_key), region)
    except Died as died:
        raise invalid(str(died)) from None
    if "malformed" in accepted:
        engine.stop()
        raise invalid(accepted["malformed"], AthenaErrorCode="MALFORMED_QUERY")
    return engine, accepted


def _same_token(asked: dict[str, Any]) -> dict[str, str] | None:
    """The query that was started with it. Raises Refused where it was another."""
    token = asked.get("ClientRequestToken")
    for number, execution in ministack("services.athena")._executions.items():
        if token and execution.get("_token") == token:
            if execution["Query"] != asked["QueryString"]:
                raise invalid("Idempotent parameters do not match")
            return {"QueryExecutionId": number}
    return None


def _execution(
    number: str, asked: dict[str, Any], query: dict[str, Any], accepted: dict[str, Any], results: Results
) -> Execution:
    ending = "csv" if accepted["accepted"] == "DML" else "txt"
    return {
        "QueryExecutionId": number,
        "Query": asked["QueryString"],
        "StatementType": accepted["accepted"],
        "SubstatementType": accepted["substatement"],
        "ResultConfiguration": {**results.configuration, "OutputLocation": f"{query['output']}.{ending}"},
        "QueryExecutionContext": {"Database": query["database"], "Catalog": query["catalog"].lower()},
        "Status": {"State": "QUEUED", "SubmissionDateTime": time.time()},
        "Statistics": {},
        "WorkGroup": asked.get("WorkGroup") or "primary",
        "EngineVersion": _ENGINE,
        "_token": asked.get("ClientRequestToken"),
        "_found": None,
    }


async def _run(execution: Execution, engine: Engine) -> None:
    queued = time.monotonic()
    try:
        async with _turns():
            began = time.monotonic()
            if execution["Status"]["State"] == "QUEUED":
                execution["Status"]["State"] = "RUNNING"
            ended = await engine.go_on()
    except Died as died:
        ended = {"state": "FAILED", "reason": f"GENERIC_INTERNAL_ERROR: {died}"}
    finally:
        engine.stop()
        del _engines[execution["QueryExecutionId"]]
    if execution["Status"]["State"] != "CANCELLED":
        _end(execution, ended)
    execution["Statistics"] = _statistics(execution, began - queued, time.monotonic() - began)


def _end(execution: Execution, ended: dict[str, Any]) -> None:
    status = execution["Status"]
    execution["_found"] = ended.get("found")
    if reason := ended.get("reason"):
        status["StateChangeReason"] = reason
        status["AthenaError"] = {"ErrorCategory": 2, "Retryable": False, "ErrorMessage": reason}
    status["CompletionDateTime"] = time.time()
    status["State"] = ended["state"]


def _statistics(execution: Execution, queued: float, ran: float) -> dict[str, int]:
    return {
        "EngineExecutionTimeInMillis": int(1000 * ran),
        "DataScannedInBytes": (execution["_found"] or {}).get("scanned", 0),
        "TotalExecutionTimeInMillis": int(1000 * (queued + ran)),
        "QueryQueueTimeInMillis": int(1000 * queued),
        "ServiceProcessingTimeInMillis": 0,
    }


@cache
def _turns() -> asyncio.Semaphore:
    return asyncio.Semaphore(_AT_ONCE)
