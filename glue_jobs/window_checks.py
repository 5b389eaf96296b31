"""Run the checks of a window's finished file."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

from pyspark.sql import functions as F

from config.exports.contract import Contract
from config.exports.file_model import Check
from glue_jobs.delivery.checks import check_rows, explain_failures, list_implied_checks
from glue_jobs.delivery.comparisons import compare
from glue_jobs.delivery.counts import PartitionReport
from glue_jobs.delivery.manifest import CheckResult, Manifest
from glue_jobs.delivery.verify import FileStats
from glue_jobs.errors import Blocked
from glue_jobs.failing import find_failing_totals, name_expressions
from glue_jobs.run_context import RunContext


def run_checks(
    run: RunContext, report: PartitionReport, stats: FileStats, earlier: list[Manifest], *, is_complete: bool
) -> list[CheckResult]:
    """Return the results of all checks. `earlier` are the manifests of earlier windows, the latest first."""
    contract = run.contract
    results = list_implied_checks(contract, stats)
    of_rows = [check for check in contract.check if check.each_row]
    for number, check in enumerate(of_rows):
        results.append(check_rows(check, report.flagged.get(str(number), 0), stats.rows))
    results += _check_totals(run, [check for check in contract.check if check.overall], stats)
    for check in contract.check:
        if check.compare:
            results.append(compare(check, contract, stats, earlier, is_complete=is_complete))
    return results


def _check_totals(run: RunContext, checks: list[Check], stats: FileStats) -> list[CheckResult]:
    if not checks:
        return []
    totals: dict[str, Decimal | None] = {}
    for name, numbers in stats.totals.items():
        for kind, value in numbers.items():
            totals[f"{kind}_{name}"] = value
    values: dict[str, Any] = {"rows": stats.rows}
    values |= {name: totals[name] for name in run.contract.total_names}
    row = run.spark().range(1).select([F.lit(value).alias(name) for name, value in values.items()])
    conditions = [F.coalesce(F.expr(check.overall or ""), F.lit(True)) for check in checks]
    with name_expressions(partial(find_failing_totals, row, checks)):
        held = row.select(conditions).collect()[0]
    return [
        CheckResult(check.id, check.severity, check.message, 0 if passed else 1, "file")
        for check, passed in zip(checks, held, strict=True)
    ]


def require_clean(label: str, contract: Contract, stats: FileStats, checks: list[CheckResult]) -> None:
    """Raises Blocked if the file may hold personal data, or if a check doesn't allow it."""
    if stats.personal:
        hits = "; ".join(f"{kind} in {count} rows" for kind, count in sorted(stats.personal.items()))
        raise Blocked(
            "EXP-PERSONAL-DATA", f"the file of {label} holds what looks like personal data ({hits})"
        )
    failed = [check for check in checks if check.severity == "block" and check.has_failed]
    if failed:
        listed, remedy = explain_failures(failed, contract, stats)
        raise Blocked("EXP-CHECK-BLOCKED", f"window {label}: {listed}", remedy)
