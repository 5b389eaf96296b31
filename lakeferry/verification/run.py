"""`lakeferry verify`: ask the accounts what stands in them, and write what was seen as evidence."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import boto3

from config.deployments import deployment_file
from glue_jobs.platform import compute_code_version
from lakeferry import __version__
from lakeferry.deployment import context, stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health.freshness import open_readers
from lakeferry.local import target
from lakeferry.output import Output
from lakeferry.verification import assumptions, exports, glue_probe, report, standing, tables
from lakeferry.verification.claims import NOT_ASKED, Claim, explain_absent
from lakeferry.verification.evidence import (
    Asked,
    Finding,
    Outcome,
    count_outcomes,
    describe,
    explain_unseen,
)

_SHOWN: Final = 3


@attrs.frozen
class Question:
    """What is asked: the deployment, with the `last` windows of each export, or instead of it what the
    stand-ins assume, or what a probe sees in Glue that is the job of the export `glue_probe`.
    """

    last: int = 1
    recompute: bool = True
    assumptions: bool = False
    glue_probe: str = ""


def run_verify(output: Output, stage: str, *, out: Path, question: Question) -> dict[str, Any]:
    """Write the evidence to `out`, and return its document.

    Raises CommandFailed if something failed or is unknown.
    """
    target.require_writable(out)
    with context.open_context(stage) as ctx:
        began = datetime.fromtimestamp(ctx.clock.time(), UTC)
        caller = _read_caller(ctx)
        deployed = stacks.read(ctx)
        if question.assumptions:
            with output.step("Asking what the simulators assume"):
                findings = assumptions.check_assumptions(ctx, assumptions.load_assumptions())
        elif question.glue_probe:
            findings = glue_probe.run_probe(output, ctx, question.glue_probe)
        else:
            findings = _ask(output, ctx, deployed, question)
        ended = datetime.fromtimestamp(ctx.clock.time(), UTC)
        document = _build_document(ctx, deployed, findings)
    document |= {"caller": caller, "began": _format(began), "ended": _format(ended)}
    base = out / f"verify-{stage}-{began:%Y%m%dT%H%M%SZ}"
    files = [target.shorten_path(path) for path in report.write(document, base)]
    document["files"] = files
    _show(output, findings, files)
    _require_passed(findings, document)
    return document


def _read_caller(ctx: DeploymentContext) -> str:
    _ = ctx.account
    with translate_aws_errors("reading the AWS identity"):
        return str(ctx.client("sts").get_caller_identity()["Arn"])


def _ask(
    output: Output, ctx: DeploymentContext, deployed: dict[str, Stack], question: Question
) -> list[Finding]:
    """Ask about one part of the deployment after another. A part that can't be asked doesn't hide others."""
    with output.step(f"Verifying {ctx.deployment.prefix}") as step:
        findings = standing.check_stacks(ctx, deployed)
        parts: dict[str, Callable[[], list[Finding]]] = {
            Claim.DOCTOR: lambda: standing.check_doctor(ctx),
            standing.EXISTS_AT_VENDOR: lambda: standing.check_objects(ctx),
            Claim.EVENTS_FLOW: lambda: tables.check_tables(ctx),
            Claim.STATUS: lambda: tables.check_hops(open_readers(ctx)),
            standing.ROTATES: lambda: standing.check_rotation(ctx),
            standing.ALARM_EXISTS: lambda: standing.check_alarms(ctx, deployed.values()),
            exports.RUNS: lambda: exports.check_runs(open_readers(ctx)),
            Claim.PUBLISHED: lambda: exports.check_exports(
                ctx, question.last, recompute=question.recompute, report=step
            ),
        }
        for claim, ask in parts.items():
            step(claim)
            try:
                findings += ask()
            except Exception as error:
                findings.append(
                    Asked(claim, ctx.deployment.prefix, "the accounts").unknown(explain_unseen(error))
                )
    return [*findings, *list_not_asked(ctx)]


def list_not_asked(ctx: DeploymentContext) -> list[Finding]:
    """Return the claims of a rehearsal that only something which changes the accounts could check."""
    findings = []
    for claim, why in NOT_ASKED.items():
        absent = explain_absent(claim, ctx.deployment)
        findings.append(Asked(claim, ctx.deployment.prefix, "nobody").not_asked(absent or why))
    return findings


def _build_document(
    ctx: DeploymentContext, deployed: dict[str, Stack], findings: Sequence[Finding]
) -> dict[str, Any]:
    bad = [finding for finding in findings if finding.outcome in (Outcome.FAILED, Outcome.UNKNOWN)]
    return {
        "stage": ctx.stage,
        "deployment": ctx.deployment.prefix,
        "account": ctx.account,
        "region": ctx.region,
        "passed": not bad,
        "counts": count_outcomes(findings),
        "versions": _list_versions(ctx),
        "templates": {name: standing.hash_template(stack) for name, stack in deployed.items()},
        "findings": describe(findings),
    }


def _list_versions(ctx: DeploymentContext) -> dict[str, str]:
    """Return what asked, and the files by which it judged."""
    file = deployment_file.FOLDER / f"{ctx.stage}.toml"
    versions = {
        "Lakeferry": f"{__version__}, code of the job {compute_code_version()}",
        "Python": f"{platform.python_version()}, boto3 {boto3.__version__}",
        f"SHA-256 of {file.name}": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    for export in ctx.deployment.exports:
        contract = ctx.loaded.sources.contract(export.contract, None)
        versions[f"SHA-256 of {export.contract}.toml"] = contract.sha256
    return versions


def _show(output: Output, findings: Sequence[Finding], files: Sequence[str]) -> None:
    for outcome in (Outcome.FAILED, Outcome.UNKNOWN):
        rows = [[finding.claim, finding.about, finding.seen] for finding in findings
                if finding.outcome is outcome]  # fmt: skip
        if rows:
            output.print(f"{str(outcome).capitalize()}:")
            output.table(["claim", "about", "seen"], rows)
    counts = count_outcomes(findings)
    output.print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    output.print(f"Evidence: {', '.join(files)}")


def _require_passed(findings: Sequence[Finding], document: dict[str, Any]) -> None:
    failed = [finding for finding in findings if finding.outcome is Outcome.FAILED]
    if failed:
        raise CommandFailed("VERIFY-FAILED", _summarize(failed), details=document)
    unknown = [finding for finding in findings if finding.outcome is Outcome.UNKNOWN]
    if unknown:
        raise CommandFailed("VERIFY-UNKNOWN", _summarize(unknown), details=document)


def _summarize(findings: Sequence[Finding]) -> str:
    named = [f"{finding.about}: {finding.claim}: {finding.seen}" for finding in findings[:_SHOWN]]
    more = [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "; ".join([*named, *more])


def _format(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
