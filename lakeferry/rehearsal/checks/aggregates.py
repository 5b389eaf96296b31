"""Check the aggregates that exports keep as tables: what people see of them in Snowflake."""

from __future__ import annotations

from lakeferry.rehearsal.checks.queries import query_athena
from lakeferry.rehearsal.checks.tables import REFRESH, snowflake_reader
from lakeferry.rehearsal.harness import Check, Harness, Result, require
from lakeferry.verification.claims import Claim
from lambdas.snowflake import sql


def see_aggregates_in_snowflake(harness: Harness) -> list[Result]:
    """Ask each view of aggregates, in the people's role, for its rows and runs: they are those that Athena
    sees in the table.
    """
    harness.simulators.advance_snowflake(REFRESH)
    client = snowflake_reader(harness, role=harness.output("snowflake", "PeopleRoleName"))
    views = sql.split(harness.output("snowflake", "ViewsSchemaName"))
    database = harness.output("data", "AggregatesDatabase")
    sources = harness.ctx.loaded.sources
    seen = []
    for export in harness.deployment.exports:
        contract = sources.contract(export.contract, None)
        if contract.keeps_table:
            question = f'SELECT count(*), max(run_id) FROM "{database}"."{contract.name}"'  # noqa: S608
            (expected,) = query_athena(harness, question, database)
            view = sql.path((*views, contract.name.upper()))
            statement = sql.statement("SELECT count(*), max(RUN_ID) FROM {view}", view=view)
            (row,) = client.run(statement)
            found = [str(value) for value in row.values()]
            require(
                found == expected,
                f"Snowflake has {found[0]} rows of {contract.name}, the last of run {found[1]}, and Athena "
                f"{expected[0]}, the last of run {expected[1]}",
            )
            seen.append(f"{contract.name.upper()} ({found[0]} rows)")
    return [Check(Claim.SNOWFLAKE_AGGREGATES, f"views {', '.join(seen)}, as in Athena", {"views": len(seen)})]
