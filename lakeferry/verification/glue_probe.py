"""Start a run of an export's job that checks what the job relies on in Glue, and read what it saw."""

from __future__ import annotations

import json
from typing import Any, Final

from lakeferry.deployment import logs
from lakeferry.deployment.context import DeploymentContext
from lakeferry.exports import job_runs
from lakeferry.exports.deployed import find_export
from lakeferry.output import Output
from lakeferry.verification.evidence import Asked, Finding

#: What the last line of the job's output begins with (glue_jobs/probe.py).
_LAST_LINE: Final = "probe {"
_RUNS: Final = 10
#: Seconds for which the log may lag behind the run, and between two looks at it.
_PATIENCE: Final = 120.0
_POLL: Final = 5.0
_MOST_SEEN: Final = 300


def run_probe(output: Output, ctx: DeploymentContext, name: str) -> list[Finding]:
    """Return a finding for each assumption of the job. Raises CommandFailed if no run can be started."""
    export = find_export(ctx, name)
    run_id = job_runs.start_run(export, {"probe": "true", "as-of": export.now.isoformat()})
    output.info(f"Started run {run_id} of job {export.job}, which checks Glue and exports nothing")
    with output.step(f"Following run {run_id}") as report:
        ended = job_runs.follow_run(output, export, run_id, report)
        report("reading its log")
        document = _wait_for_document(ctx, name, run_id)
    asked = Asked("the job finds in Glue what it relies on", export.job, f"Glue: the log of run {run_id}")
    if document is None:
        return [asked.unknown(f"the run ended {ended.state}, and its log has no last line of the probe")]
    return [_read_finding(export.job, asked.asked, finding) for finding in document["findings"]]


def _wait_for_document(ctx: DeploymentContext, name: str, run_id: str) -> dict[str, Any] | None:
    """Return what the probe wrote last. CloudWatch shows lines some time after the run has ended."""
    until = ctx.clock.time() + _PATIENCE
    while True:
        for run in logs.read_runs(ctx, name, _RUNS):
            for line in run.lines if run.id == run_id else ():
                if line.text.startswith(_LAST_LINE):
                    document: dict[str, Any] = json.loads(line.text.removeprefix("probe "))
                    return document
        if ctx.clock.time() >= until:
            return None
        ctx.clock.sleep(_POLL)


def _read_finding(job: str, question: str, finding: dict[str, Any]) -> Finding:
    seen = json.dumps(finding["seen"], ensure_ascii=False)
    shown = seen if len(seen) <= _MOST_SEEN else f"{seen[:_MOST_SEEN]}…"
    asked = Asked(f"in Glue: {finding['name']}", job, question)
    return asked.passed(shown) if finding["holds"] else asked.failed(shown)
