"""Create the table of an export's aggregates before its first run, or add the contract's new columns to it.

The job's argument `--prepare-table true` runs this instead of an export. Snowflake can show a table only
after it exists.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from config.exports.contract import Contract
from glue_jobs import errors, session
from glue_jobs.aggregate_table import AggregateTable
from glue_jobs.arguments import Arguments
from glue_jobs.errors import BadInput, ExportError
from glue_jobs.store import connect


def run(args: Arguments, contract: Contract, *, spark: SparkSession | None = None) -> int:
    """Return 0 once the table has the contract's columns. Raises ExportError."""
    if not contract.keeps_table:
        raise BadInput("EXP-ARGUMENTS", f"--prepare-table: {contract.name} keeps no table of its aggregates")
    started: Callable[[], SparkSession] = (
        (lambda: spark) if spark else session.start_in_background(args.warehouse, args.region)
    )
    services = connect(args.region)
    table = AggregateTable(services, lambda: session.activate(started()), contract, args.aggregates_database)
    try:
        table.create()
        table.commit_nothing()
    except ExportError:
        raise
    except Exception as thrown:  # Spark raises many classes
        errors.log_cause(thrown)
        raise errors.translate(thrown) from None
    print(f"table {table.name} has the columns of {contract.name}", flush=True)  # noqa: T201 - Glue's log
    return 0
