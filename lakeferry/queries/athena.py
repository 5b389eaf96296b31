"""Run a SELECT in the deployment's workgroup of Athena."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local.query import Answer
from lakeferry.output import Reporter
from lakeferry.verification.tables import find_database

_ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED")
_POLL: Final = 1.0
#: Words in Athena's reason by which it says that somebody may not do something.
_DENIED: Final = (
    "not authorized",
    "access denied",
    "insufficient permissions",
    "insufficient lake formation",
)
_NEEDS: Final = (
    "You need athena:StartQueryExecution and athena:GetQueryResults on the workgroup, glue:GetTable, and "
    "s3:GetObject on the table's bucket and s3:PutObject on the workgroup's results"
)


def query(ctx: DeploymentContext, sql: str, most: int, report: Reporter) -> tuple[str, Answer]:
    """Return what was asked, and up to `most` rows and one. Raises CommandFailed.

    Ctrl-C stops the query.
    """
    workgroup = stacks.require_output(ctx, "data", "AthenaWorkgroup")
    database = find_database(ctx)
    athena = ctx.client("athena")
    with translate_aws_errors(f"asking Athena in workgroup {workgroup}"):
        query_id = athena.start_query_execution(
            QueryString=sql, QueryExecutionContext={"Database": database}, WorkGroup=workgroup
        )["QueryExecutionId"]
        try:
            status = _wait(ctx, query_id, report)
        except KeyboardInterrupt:
            athena.stop_query_execution(QueryExecutionId=query_id)
            raise
        if status["State"] != "SUCCEEDED":
            raise _explain(str(status.get("StateChangeReason") or status["State"]))
        pages = athena.get_paginator("get_query_results").paginate(
            QueryExecutionId=query_id, PaginationConfig={"MaxItems": most + 2}
        )
        answer = _read(list(pages))
    return f"workgroup {workgroup}, database {database}", answer


def list_columns(ctx: DeploymentContext, table: str, report: Reporter) -> list[str]:
    """Return the columns that Athena finds in a table. Raises CommandFailed.

    Athena reads them from Iceberg's metadata. Glue may show none, or also those that the table had before.
    """
    database = find_database(ctx)
    _, answer = query(ctx, f'SELECT * FROM "{database}"."{table}" LIMIT 0', 0, report)  # noqa: S608
    return list(answer.columns)


def _wait(ctx: DeploymentContext, query_id: str, report: Reporter) -> dict[str, Any]:
    """Return the status of the query once it has ended. Athena ends each after its own limit of time."""
    while True:
        status: dict[str, Any] = ctx.client("athena").get_query_execution(QueryExecutionId=query_id)[
            "QueryExecution"
        ]["Status"]
        if status["State"] in _ENDED:
            return status
        report(status["State"].lower())
        ctx.clock.sleep(_POLL)


def _explain(reason: str) -> CommandFailed:
    if any(word in reason.lower() for word in _DENIED):
        return CommandFailed("QUERY-DENIED", f"Athena: {reason}", _NEEDS)
    return CommandFailed("QUERY", f"Athena: {reason}", "Names with a hyphen or $ need double quotes")


def _read(pages: list[dict[str, Any]]) -> Answer:
    columns = [column["Name"] for column in pages[0]["ResultSet"]["ResultSetMetadata"]["ColumnInfo"]]
    rows = list(_list_rows(pages))
    return Answer(columns, rows[1:])  # Athena repeats the names as the first row of a SELECT


def _list_rows(pages: list[dict[str, Any]]) -> Iterator[tuple[str | None, ...]]:
    for page in pages:
        for row in page["ResultSet"]["Rows"]:
            yield tuple(cell.get("VarCharValue") for cell in row["Data"])
