"""Run a rehearsal from its first phase to its report, or a campaign of fault runs."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.local import bootstrap, target
from lakeferry.local.bootstrap import SetupFailed
from lakeferry.output import Output, Reporter, find_program_name
from lakeferry.rehearsal import environments, events, existing, faults, report
from lakeferry.rehearsal.faults import FaultRun
from lakeferry.rehearsal.harness import (
    Check,
    CheckFailed,
    Harness,
    NotApplicable,
    Phase,
    Project,
    Result,
    copy_project,
)
from lakeferry.rehearsal.phases import LAST, PHASES, PlannedPhase
from lakeferry.rehearsal.subject import Subject, adapt
from lambdas.shared.errors import LakeferryError

#: The log of the CDK, which each rehearsal writes first, and everything else in the folder of a rehearsal.
_LOG: Final = "cdk.log"
_FUNCTION_LOG: Final = "functions.log"
_ABOUT_PROJECT: Final = """\
Commands there read {project}, a copy of this clone. Its project/deployments/{stage}.toml is what is
deployed, with the changes of the checks. To deploy another stage into the same simulators, put its file
and its contracts there.
`status` reports a run of an export that failed: a check made it fail."""
_WRITTEN: Final = (
    _LOG,
    _FUNCTION_LOG,
    "project",
    "deployments",
    "printed.json",
    "report.html",
    "environment.sh",
)


@attrs.define
class Rehearsal:
    """The phases so far.

    With `keep`, everything keeps running before the last phase, which destroys it, until Ctrl-C.
    """

    output: Output
    out: Path
    keep: bool
    phases: list[Phase] = attrs.Factory(list)

    @property
    def failed(self) -> bool:
        return bool(self.phases and self.phases[-1].failure)

    def phase(self, planned: PlannedPhase, harness: Harness) -> None:
        """Run a phase, unless an earlier one failed."""
        if self.failed:
            return
        started = time.monotonic()
        results: list[Result] = []
        failure = ""
        with self.output.step(planned.name):
            try:
                results = planned.work(harness)
            except (CheckFailed, CliFailed, LakeferryError, CommandFailed) as error:
                failure = str(error)
        checks = [result for result in results if isinstance(result, Check)]
        absent = [result for result in results if isinstance(result, NotApplicable)]
        phase = Phase(planned.name, time.monotonic() - started, checks, failure, absent)
        self.phases.append(phase)
        mark = "✗" if failure else "✓" if checks else "-"
        self.output.info(f"{mark} {planned.name:<58}{phase.seconds:6.1f} s")
        for result in absent:
            self.output.info(f"  does not apply: {result.claim} ({result.why})")


def run_rehearsal(output: Output, subject: Subject, *, out: Path, keep: bool) -> dict[str, Any]:
    """Run the rehearsal and return its document.

    Raises CommandFailed, with the path of the report, if a phase fails.
    """
    target.require_writable(out)
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as in a shell's background jobs; commands would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if subject.loaded.deployment.statements:
        try:
            bootstrap.prepare_flink()
        except (SetupFailed, OSError) as error:
            raise CommandFailed("NO-FLINK", f"Flink could not be installed: {error}") from None
    rehearsal = Rehearsal(output, out, keep)
    started = time.monotonic()
    with open_harness(output, subject, out / "rehearsal") as harness:
        rehearsal.phases.append(
            Phase("make the events, start the simulators", time.monotonic() - started, [])
        )
        _run_phases(rehearsal, harness)
        printed = json.dumps(harness.project.printed, indent=1)
        (harness.out / "printed.json").write_text(printed, encoding="utf-8")
    return _finish_rehearsal(rehearsal, time.monotonic() - started)


def run_fault_campaign(
    output: Output, subject: Subject, seeds: Sequence[int], *, out: Path
) -> dict[str, Any]:
    """Run a whole deployment under the faults of each seed, and write the summary after each.

    Raises CommandFailed for a run with a step that never succeeds, or that leaves other objects than a run
    without faults.
    """
    target.require_writable(out)
    runs: list[FaultRun] = []
    document: dict[str, Any] = {}
    started = time.monotonic()
    with open_harness(output, subject, out / "rehearsal", flink=False) as harness:
        with output.step("a run without faults") as reporter:
            _prepare_runs(harness, reporter)
            baseline = faults.measure_baseline(harness, reporter)
        output.info(f"✓ a run without faults{time.monotonic() - started:44.1f} s")
        for seed in seeds:
            run = FaultRun(harness, seed, baseline)
            with output.step(f"seed {seed}") as reporter:
                try:
                    run.run(reporter)
                except (CheckFailed, CliFailed) as error:
                    faults.write_function_logs(harness, out / "rehearsal" / _FUNCTION_LOG)
                    logs = [target.shorten_path(out / "rehearsal" / name) for name in (_LOG, _FUNCTION_LOG)]
                    file = "--example" if subject.is_example else f"--stage {subject.stage}"
                    again = f"{find_program_name()} rehearse {file} --faults {seed}"
                    hint = f"Look at {' and '.join(logs)}; the same faults again: {again}"
                    steps = [attrs.asdict(step) for step in run.steps]
                    raise CommandFailed("REHEARSAL-FAILED", str(error), hint, steps) from None
            for step in run.steps:
                line = f"{sum(step.hits.values())} calls hit, {step.attempts} attempts"
                if step.why:
                    line += f": {step.why}"
                output.info(f"✓ seed {seed:<4}{step.name:<9}{step.seconds:6.1f} s  {line}")
            runs.append(run)
            document = faults.write_summary(runs, time.monotonic() - started, out)
    hits = ", ".join(f"{count} at {vendor}" for vendor, count in document["hits"].items())
    output.print(f"Fault runs: {len(runs)}. Calls hit: {hits}.")
    output.print(
        f"{document['failed_first']} of {document['steps']} steps failed at first and succeeded when they "
        "were retried."
    )
    output.print(f"Nothing is left over. Next: {target.shorten_path(out / 'faults.json')}")
    return document


def remove_earlier(folder: Path) -> None:
    """Remove what an earlier rehearsal wrote into its folder, and nothing else.

    Raises CommandFailed if the folder has files with these names that are not a rehearsal's.
    """
    existing_paths = [folder / name for name in _WRITTEN if (folder / name).exists()]
    if existing_paths and not (folder / _LOG).exists():
        names = ", ".join(path.name for path in existing_paths)
        message = f"{folder} has {names}, which a rehearsal would replace, and no {_LOG} of a rehearsal"
        raise CommandFailed("OUT-FOLDER", message, "Name another folder with --out; nothing was done")
    for path in existing_paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def open_harness(output: Output, subject: Subject, folder: Path, *, flink: bool = True) -> Iterator[Harness]:
    """Make the events, start empty simulators and make them the environment of this process.

    Raises CommandFailed for a file that can't be rehearsed, before anything starts.
    """
    adapted = adapt(subject, datetime.now(UTC))
    with output.step("make events of the topics"):
        plan = events.plan(adapted.loaded, time.time())
    remove_earlier(folder)
    project = Project(folder / "project", subject.stage)
    project.root.mkdir(parents=True)
    (folder / _LOG).touch()  # also if this rehearsal is interrupted at once, the next one may replace it
    copy_project(project.root, subject.project)
    project.file.write_text(adapted.text, encoding="utf-8")
    loaded = deployment_file.load(project.file, project.folder.resolve(), judge=NOT_JUDGED)
    for difference in adapted.differences:
        output.info(f"Rehearsed is a copy of the file: {difference}.")
    deployment = loaded.deployment
    account = deployment.snowflake.account if deployment.snowflake else ""
    with (
        environments.open_environment(
            account,
            plan.moments[0] - events.LEAD_SECONDS,
            region=deployment.aws.region,
            flink=flink and bool(deployment.statements),
            organization=existing.find_organization(deployment),
        ) as simulators,
        target.set_environment(simulators.variables),
        tempfile.TemporaryDirectory(prefix="lakeferry-cdk-") as templates,
    ):
        ctx = DeploymentContext(loaded, Addresses.read(simulators.variables))
        environments.require_embedded(ctx)
        prepared = existing.prepare(ctx, simulators, plan)
        ctx = _name_chosen_ids(project, ctx, prepared)
        cdk = Cdk(ctx, Path(templates), (folder / _LOG).resolve(), project.root.resolve())
        yield Harness(
            ctx, simulators, project, cdk, folder, plan, subject.is_example, prepared.cloud_key,
            simulators.confluent_objects(),
        )  # fmt: skip


def _name_chosen_ids(
    project: Project, ctx: DeploymentContext, prepared: existing.Preparation
) -> DeploymentContext:
    """Return the context of a file that names what AWS has chosen."""
    text = project.file.read_text(encoding="utf-8")
    for named, chosen in prepared.chosen_ids.items():
        text = text.replace(named, chosen)
    project.file.write_text(text, encoding="utf-8")
    loaded = deployment_file.load(project.file, project.folder.resolve(), judge=NOT_JUDGED)
    return DeploymentContext(loaded, ctx.addresses)


def _run_phases(rehearsal: Rehearsal, harness: Harness) -> None:
    for planned in PHASES:
        rehearsal.phase(planned, harness)
    if rehearsal.keep:
        _wait_for_interrupt(rehearsal, harness)
    rehearsal.phase(LAST, harness)


def _prepare_runs(harness: Harness, reporter: Reporter) -> None:
    """Prepare runs with faults. A rehearsal does the same with the commands of an operator."""
    if harness.deployment.confluent:
        environments.store_secret(harness.ctx, harness.ctx.cloud_key_secret, harness.cloud_key)
    environments.prepare_snowflake(harness.ctx, harness.simulators)
    harness.cdk.synth(reporter)
    harness.cdk.bootstrap(reporter)


def build_environment(harness: Harness) -> dict[str, str]:
    """Return the variables with which commands use the deployment, and the project whose files describe
    it.
    """
    variables = harness.simulators.variables.items()
    settings = {name: value for name, value in variables if name.startswith(("AWS_", "LAKEFERRY_"))}
    settings["PYTHONPATH"] = str(harness.project.root.resolve())
    with suppress(CheckFailed, ClientError):  # a rehearsal that failed may have no stacks
        settings[target.VARIABLES["bucket"]] = harness.output("data", "LakeBucketName")
        settings[target.VARIABLES["database"]] = harness.database
    return settings


def _wait_for_interrupt(rehearsal: Rehearsal, harness: Harness) -> None:
    """Show how to use the running deployment, and wait for Ctrl-C.

    Goes to stderr, so it is shown with --json too.
    """
    output = rehearsal.output
    file = rehearsal.out / "rehearsal" / "environment.sh"
    simulators = harness.simulators
    settings = sorted(build_environment(harness).items())
    file.write_text(
        "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings), encoding="utf-8"
    )
    for name, address in simulators.addresses().items():
        output.info(f"{name:22}{address}")
    output.info(f"{'mails':22}{simulators.aws.url}/_simulator/mail.html")
    now = datetime.fromtimestamp(simulators.confluent_now(), UTC)
    output.info(f"Confluent's clock shows {now:%Y-%m-%d %H:%M} UTC, so `status` reports tables as that old.")
    output.info(
        f"Everything is running. In another terminal: source {target.shorten_path(file)}, then for example "
        f"{find_program_name()} inventory"
    )
    about = _ABOUT_PROJECT.format(
        project=target.shorten_path(harness.project.root), stage=harness.project.stage
    )
    for line in about.splitlines():
        output.info(line)
    if rehearsal.failed:
        output.info("Press Ctrl-C to end the rehearsal.")
    else:
        output.info(
            "Press Ctrl-C to destroy everything and check that nothing is left; press it again to end at "
            "once."
        )
    try:
        signal.pause()
    except KeyboardInterrupt:
        output.info("")


def _finish_rehearsal(rehearsal: Rehearsal, seconds: float) -> dict[str, Any]:
    document = report.write(rehearsal.phases, seconds, rehearsal.out)
    output = rehearsal.output
    output.print("")
    checks = [check for phase in rehearsal.phases for check in phase.checks]
    output.table(["check", "seen"], [[check.claim, check.seen] for check in checks])
    absent = [result for phase in rehearsal.phases for result in phase.not_applicable]
    if absent:
        output.print("\nWhat does not apply to this file:")
    for result in absent:
        output.print(f"  - {result.claim}: {result.why}")
    output.print("\nWhat a rehearsal doesn't cover:")
    for gap in report.NOT_COVERED:
        output.print(f"  - {gap}")
    page = target.shorten_path(rehearsal.out / "rehearsal.html")
    if rehearsal.failed:
        last = rehearsal.phases[-1]
        hint = f"Look at {page} and {target.shorten_path(rehearsal.out / 'rehearsal' / _LOG)}"
        raise CommandFailed("REHEARSAL-FAILED", f"{last.name}: {last.failure}", hint, document)
    output.print(f"\n{seconds:.0f} s. Everything was destroyed; {page}, rehearsal.json and the logs remain.")
    output.print(
        f"Next: the same in your own accounts, docs/tutorial/in-your-own-accounts.md; {find_program_name()} "
        "cost estimates the costs."
    )
    return document
