"""A statement as the SQL API answers it: done, failed, or still running; its rows in partitions."""

from __future__ import annotations

import gzip
import json
from typing import Any, Final

from starlette.responses import Response

from simulators.snowflake.behavior import Behavior
from simulators.snowflake.errors import CallRefused
from simulators.snowflake.results import Result, Row
from simulators.snowflake.statements import State, Statement

PATH: Final = "/api/v2/statements"
_DONE: Final = "Statement executed successfully."
_RUNNING: Final = "Asynchronous execution in progress. Use provided query id to perform query monitoring and management."
_TIMED_OUT: Final = "000630"


def of(statement: Statement, ways: Behavior, *, wait: bool = False, partition: int = 0) -> Response:
    """`wait` is for whoever asked not to get the result at once."""
    if wait or statement.state is State.RUNNING:
        return _json(202, _head(statement, "333334", "", _RUNNING))
    if statement.error:
        status = 408 if statement.error.code == _TIMED_OUT else 422
        return _json(status, _head(statement, statement.error.code, statement.error.state, statement.error.message))
    assert statement.result is not None, "a statement that is done has one"
    parts = _partitions(statement.result.rows[: ways.most_rows], ways.partition_rows)
    if not 0 <= partition < len(parts):
        raise CallRefused(400, "391920", f"There is no partition {partition}: the result has {len(parts)}.")
    if partition:
        return _compressed({"data": _nullable(parts[partition], statement.nullable)}, _links(statement, partition, len(parts)))
    truncated = len(statement.result.rows) > ways.most_rows
    body = _head(statement, "391908" if truncated else "090001", "00000", _truncation(truncated)) | {
        "resultSetMetaData": _metadata(statement.result, parts),
        "data": _nullable(parts[0], statement.nullable),
    }
    return _json(200, body, _links(statement, 0, len(parts)) if len(parts) > 1 else {})


def canceled(statement: Statement) -> Response:
    assert statement.error is not None, "a cancelled statement has one"
    return _json(200, _head(statement, statement.error.code, statement.error.state, statement.error.message))


def refusal(refused: CallRefused) -> Response:
    return _json(refused.status, {"code": refused.code, "message": refused.message})


def _truncation(truncated: bool) -> str:
    return "Result is too large and was truncated." if truncated else _DONE


def _head(statement: Statement, code: str, state: str, message: str) -> dict[str, Any]:
    told = {
        "code": code,
        "message": message,
        "statementHandle": statement.handle,
        "statementStatusUrl": f"{PATH}/{statement.handle}?requestId={statement.request_id}",
        "createdOn": int(statement.created * 1000),
    }
    return told | ({"sqlState": state} if state else {})


def _metadata(result: Result, parts: list[list[Row]]) -> dict[str, Any]:
    return {
        "numRows": sum(len(part) for part in parts),
        "format": "jsonv2",
        "rowType": [each.document() for each in result.columns],
        "partitionInfo": [{"rowCount": len(part), "uncompressedSize": len(json.dumps(part))} for part in parts],
    }


def _partitions(rows: list[Row], size: int) -> list[list[Row]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)] or [[]]


def _nullable(rows: list[Row], nullable: bool) -> list[Row]:
    return rows if nullable else [["null" if value is None else value for value in row] for row in rows]


def _links(statement: Statement, partition: int, count: int) -> dict[str, str]:
    wanted = {"first": 0, "prev": partition - 1, "next": partition + 1, "last": count - 1}
    url = f"{PATH}/{statement.handle}?requestId={statement.request_id}&partition="
    return {"Link": ",".join(f'<{url}{number}>;rel="{name}"' for name, number in wanted.items() if 0 <= number < count)}


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, headers, "application/json")


def _compressed(body: dict[str, Any], headers: dict[str, str]) -> Response:
    """As partitions after the first come, whatever the client accepts."""
    content = gzip.compress(json.dumps(body, separators=(",", ":")).encode(), mtime=0)
    return Response(content, 200, headers | {"Content-Encoding": "gzip"}, "application/json")
