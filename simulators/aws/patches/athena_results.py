"""What GetQueryResults answers: the rows of an execution in pages."""

from __future__ import annotations

from typing import Any, Final

from simulators.aws.answers import json_error
from simulators.aws.hooks import ministack
from simulators.aws.patches.athena_workgroups import Refused, allowed, invalid

_MAX_RESULTS: Final = 1000


def page(asked: dict[str, Any], access_key: str, region: str) -> dict[str, Any]:
    """Raises Refused."""
    execution = ministack("services.athena")._executions.get(asked.get("QueryExecutionId"))
    if execution is None:
        raise invalid(f"QueryExecution {asked.get('QueryExecutionId')} was not found")
    state = execution["Status"]["State"]
    if state in ("QUEUED", "RUNNING"):
        raise invalid(f"Query has not yet finished. Current state: {state}")
    if state != "SUCCEEDED":
        raise invalid(f"Query did not finish successfully. Final query state: {state}")
    size, start = _asked_for(asked)
    place = execution["ResultConfiguration"]["OutputLocation"].removeprefix("s3://")
    if not allowed(access_key, "s3:GetObject", "s3", region, f"arn:aws:s3:::{place}"):
        raise Refused(json_error("AccessDeniedException", f"Not authorized to read the result at s3://{place}"))
    if place.partition("/")[2] not in ministack("services.s3")._buckets.get(place.partition("/")[0], {"objects": {}})["objects"]:
        raise invalid("Could not find results")
    return _page(execution, size, start)


def _asked_for(asked: dict[str, Any]) -> tuple[int, int]:
    size, token = asked.get("MaxResults", _MAX_RESULTS), str(asked.get("NextToken", "0"))
    if not 1 <= size <= _MAX_RESULTS:
        raise invalid(f"MaxResults is more than maximum allowed length {_MAX_RESULTS}.")
    if not token.isdigit():
        raise invalid("The NextToken is not one of ours")
    return size, int(token)


def _page(execution: dict[str, Any], size: int, start: int) -> dict[str, Any]:
    found = execution["_found"]
    names = [[column["name"] for column in found["columns"]]] if found["header"] else []
    rows = [*names, *found["rows"]]
    shown = [{"Data": [{} if value is None else {"VarCharValue": value} for value in row]} for row in rows[start : start + size]]
    described = {"ColumnInfo": [_described(column) for column in found["columns"]]}
    more = {"NextToken": str(start + size)} if start + size < len(rows) else {}
    return {"UpdateCount": 0, "ResultSet": {"Rows": shown, "ResultSetMetadata": described}, **more}


def _described(column: dict[str, Any]) -> dict[str, Any]:
    return {
        "CatalogName": "hive",
        "SchemaName": "",
        "TableName": "",
        "Name": column["name"],
        "Label": column["name"],
        "Type": column["type"],
        "Precision": column["precision"],
        "Scale": column["scale"],
        "Nullable": "UNKNOWN",
        "CaseSensitive": column["type"] == "varchar",
    }
