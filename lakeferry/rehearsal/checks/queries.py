"""Check queries: those that Athena has saved for each table, and those of `lakeferry query`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lakeferry.rehearsal.checks.people import list_shown_tables
from lakeferry.rehearsal.harness import (
    Check,
    CheckFailed,
    Harness,
    NotApplicable,
    Result,
    require,
    wait_until,
)
from lakeferry.verification.claims import Claim

#: The engines of `lakeferry query` that read the tables in Glue.
_ENGINES: Final = ("athena", "duckdb")


def run_named_queries(harness: Harness) -> list[Result]:
    ran = _run_named_queries(harness, of_aggregates=False)
    seen = f"{len(ran)} queries: {', '.join(ran)}"
    return [Check(Claim.NAMED_QUERIES, seen, {"queries": len(ran)})]


def query_hides_columns(harness: Harness) -> list[Result]:
    """Read the first rows of a table with `lakeferry query`: no hidden column is among them."""
    tables = list_shown_tables(harness, harness.deployment.tables_in_glue)
    found = next(tables, None)
    if found is None:
        return [NotApplicable(Claim.QUERIED, "people may see no table of the file in Glue")]
    topic, columns = found
    table = topic.table
    hidden = {column.lower() for column in columns.hidden}
    for engine in _ENGINES:
        text = f'SELECT * FROM "{table}" LIMIT 3'  # noqa: S608
        # Without --stage, query reads a bucket or the demo, also where the stage is the default one.
        answer = harness.project.run(f"query --stage {harness.ctx.stage} --engine {engine}", text)
        seen = {column.lower() for column in answer["columns"]} & hidden
        require(not seen, f"query with {engine} shows {', '.join(sorted(seen))} of {table}")
        require(answer["rows"], f"query with {engine} shows no row of {table}")
    result = f"{table} with {' and '.join(_ENGINES)}, without {', '.join(sorted(hidden))}"
    return [Check(Claim.QUERIED, result, {"hidden": len(hidden)})]


def run_queries_of_aggregates(harness: Harness) -> list[Result]:
    """Run the named queries on tables of aggregates, which exports have written by now."""
    ran = _run_named_queries(harness, of_aggregates=True)
    if not ran:
        return [NotApplicable(Claim.AGGREGATES, "no export of the file keeps its aggregates as a table")]
    return [Check(Claim.AGGREGATES, f"{len(ran)} queries: {', '.join(ran)}", {"queries": len(ran)})]


def _run_named_queries(harness: Harness, *, of_aggregates: bool) -> list[str]:
    """Return the title and the number of rows of each query. Raises CheckFailed."""
    aggregates = harness.output("data", "AggregatesDatabase")
    athena = harness.ctx.client("athena")
    workgroup = harness.output("data", "AthenaWorkgroup")
    ids = athena.list_named_queries(WorkGroup=workgroup)["NamedQueryIds"]
    require(ids, f"workgroup {workgroup} has no named query")
    ran = []
    for query_id in ids:
        named_query = athena.get_named_query(NamedQueryId=query_id)["NamedQuery"]
        if (named_query["Database"] == aggregates) != of_aggregates:
            continue
        ran.append(
            f"{named_query['Name'].partition(': ')[2]} "
            f"({len(query_athena(harness, named_query['QueryString'], named_query['Database']))} rows)"
        )
    return sorted(ran)


def query_athena(harness: Harness, query_text: str, database: str) -> list[list[str]]:
    """Run a query and return its rows. Raises CheckFailed with Athena's own reason."""
    athena = harness.ctx.client("athena")
    workgroup = harness.output("data", "AthenaWorkgroup")
    context: Mapping[str, Any] = {"QueryExecutionContext": {"Database": database}, "WorkGroup": workgroup}
    query_id = athena.start_query_execution(QueryString=query_text, **context)["QueryExecutionId"]

    def ended() -> dict[str, Any] | None:
        status: dict[str, Any] = athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"][
            "Status"
        ]
        return status if status["State"] in ("SUCCEEDED", "FAILED", "CANCELLED") else None

    status = wait_until(ended, "Athena's query has not ended")
    if status["State"] != "SUCCEEDED":
        raise CheckFailed(f"Athena: {status.get('StateChangeReason')}")
    rows = athena.get_query_results(QueryExecutionId=query_id)["ResultSet"]["Rows"][1:]
    return [[cell.get("VarCharValue", "") for cell in row["Data"]] for row in rows]
