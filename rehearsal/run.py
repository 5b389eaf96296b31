"""The rehearsal from its first phase to its report."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

from deployments.check import LoadedDeployment
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import CliFailed, templates_of
from lakeferry.deployment.context import Addresses, DeploymentContext, load_deployment
from lakeferry.errors import CommandFailed
from lakeferry.local import bootstrap, target
from lakeferry.local.bootstrap import SetupFailed
from lakeferry.output import Output, Reporter, program_name
from lambdas.shared.errors import LakeferryError
from rehearsal import campaign, environments, report
from rehearsal.campaign import Life
from rehearsal.check import NotProven, Phase, Proof
from rehearsal.checks import exports, flow, health, readers, rotation, teardown, updates
from rehearsal.checks.updates import Changes
from rehearsal.environments import SimulatedEnvironment
from rehearsal.harness import Harness

#: How long before the end of the first window the vendors' time begins: trades of the window come first, later ones after.
_LEAD_SECONDS: Final = 900
#: What the proofs are about, beside `exports.EXPORT`.
_TOPICS: Final = {"stock_trades", "stock_trades_with_totals"}
Work = Callable[[Reporter], list[Proof]]


@attrs.define
class Rehearsal:
    """`keep` leaves everything running after the last proof before the end."""

    output: Output
    out: Path
    keep: bool
    phases: list[Phase] = attrs.Factory(list)

    @property
    def failed(self) -> bool:
        return bool(self.phases and self.phases[-1].failure)

    def phase(self, name: str, work: Work) -> None:
        """Nothing more is tried after one that failed."""
        if self.failed:
            return
        started = time.monotonic()
        proofs: list[Proof] = []
        failure = ""
        with self.output.step(name) as tell:
            try:
                proofs = work(tell)
            except (NotProven, CliFailed, LakeferryError, CommandFailed) as wrong:
                failure = str(wrong)
        done = Phase(name, time.monotonic() - started, proofs, failure)
        self.phases.append(done)
        self.output.info(f"{'✗' if failure else '✓'} {name:<58}{done.seconds:6.1f} s")


def run_rehearsal(output: Output, stage: str, *, out: Path, keep: bool) -> dict[str, Any]:
    """Raises CommandFailed where something was not proven, with where the report is."""
    plan = _rehearsable(stage)
    target.require_writable(out)
    try:
        bootstrap.prepare_flink()
    except (SetupFailed, OSError) as error:
        raise CommandFailed("NO-FLINK", f"Flink could not be installed: {error}") from None
    rehearsal = Rehearsal(output, out, keep)
    started = time.monotonic()
    with opened(plan, out / "rehearsal") as on:
        rehearsal.phases.append(Phase("three empty worlds", time.monotonic() - started, []))
        _rehearse(rehearsal, on)
    return _ended(rehearsal, time.monotonic() - started)


def under_faults(output: Output, stage: str, seeds: Sequence[int], *, out: Path) -> dict[str, Any]:
    """One life a seed; what is known is written after each. Raises CommandFailed where one does not come through."""
    plan = _rehearsable(stage)
    target.require_writable(out)
    lives: list[Life] = []
    document: dict[str, Any] = {}
    started = time.monotonic()
    with opened(plan, out / "rehearsal", flink=False) as on:
        with output.step("a life without faults") as tell:
            _prepared(on, tell)
            before = campaign.baseline(on, tell)
        output.info(f"✓ a life without faults{time.monotonic() - started:43.1f} s")
        for seed in seeds:
            lives.append(_lived(output, Life(on, seed, before)))
            document = campaign.written(lives, time.monotonic() - started, out)
    hits = ", ".join(f"{count} at {vendor}" for vendor, count in document["hits"].items())
    output.print(
        f"{len(lives)} lives under faults: {hits} hit; {document['failed_first']} of {document['steps']} steps failed first,"
    )
    output.print(
        f"and came through when they were run again. Nothing is left over. Next: {target.relative(out / 'nemesis.json')}"
    )
    return document


def _lived(output: Output, life: Life) -> Life:
    with output.step(f"seed {life.seed}") as tell:
        try:
            life.live(tell)
        except (NotProven, CliFailed) as wrong:
            hint = f"Look at the log of the command line; the same faults again: {program_name()} rehearse --nemesis {life.seed}"
            raise CommandFailed("NOT-PROVEN", str(wrong), hint, [attrs.asdict(step) for step in life.steps]) from None
    for step in life.steps:
        line = f"{sum(step.hits.values())} calls hit, run {step.runs} times" + (f": {step.why}" if step.why else "")
        output.info(f"✓ seed {life.seed:<4}{step.name:<9}{step.seconds:6.1f} s  {line}")
    return life


def _rehearsable(stage: str) -> LoadedDeployment:
    """Raises CommandFailed for another deployment than the one that the proofs are about, before anything is started."""
    plan = load_deployment(stage)
    deployment = plan.deployment
    topics, contracts = [topic.name for topic in deployment.topics], [export.contract for export in deployment.exports]
    wrong = [] if deployment.uses_snowflake else ["it does not use Snowflake"]
    if set(topics) != _TOPICS:
        wrong.append(f"its topics are {', '.join(topics) or 'none'}, not {' and '.join(sorted(_TOPICS))}")
    if contracts != [exports.EXPORT]:
        wrong.append(f"its exports are {', '.join(contracts) or 'none'}, not {exports.EXPORT}")
    if wrong:
        line = f"deployments/{stage}.toml can't be rehearsed: {'; '.join(wrong)}"
        raise CommandFailed("REHEARSAL-FILE", line)
    return plan


@contextmanager
def opened(plan: LoadedDeployment, folder: Path, *, flink: bool = True) -> Iterator[Harness]:
    """Three empty worlds, and this process in them."""
    deployment = plan.deployment
    account = deployment.snowflake.account if deployment.snowflake else ""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begins = exports.first_window().end.timestamp() - _LEAD_SECONDS
    with (
        environments.open_environment(account, begins, region=deployment.aws.region, flink=flink) as three,
        target.in_environment(three.environment),
    ):
        ctx = DeploymentContext(plan, Addresses.read(three.environment))
        with templates_of(ctx, folder / "cdk.log") as cdk:
            yield Harness(ctx, three, cdk, folder)


def _rehearse(rehearsal: Rehearsal, on: Harness) -> None:
    phase = rehearsal.phase
    phase("what admins prepare; synth; cdk bootstrap", lambda tell: _prepared(on, tell))
    phase("cdk deploy --all", lambda tell: _deployed(on, tell))
    if not rehearsal.failed:
        with updates.synthesised(on) as changes:
            _prove(rehearsal, on, changes)
    if rehearsal.keep:
        _held(rehearsal, on.worlds)
    for name, work in _last_phases(on, keep=rehearsal.keep):
        phase(name, work)


def _last_phases(on: Harness, *, keep: bool) -> list[tuple[str, Work]]:
    """Whoever has looked around does not wait for a second deployment."""
    last: list[tuple[str, Work]] = [("cdk destroy --all, and the inventory", lambda tell: teardown.destroyed(on, tell))]
    if keep:
        return last
    again: list[tuple[str, Work]] = [
        ("once more: deploy", lambda tell: _deployed(on, tell)),
        ("once more: destroy, and the inventory", lambda tell: teardown.destroyed(on, tell)),
    ]
    return last + again


def _prove(rehearsal: Rehearsal, on: Harness, changes: Changes) -> None:
    """What can be proven of a deployment that stands."""
    phase, moment = rehearsal.phase, exports.first_window().end
    phase("trades flow into Iceberg tables", lambda _: flow.trades_flow(on, moment))
    phase("readers", lambda _: [*readers.new_rows(on), *readers.same_rows(on, moment), *readers.named_queries(on)])
    phase("doctor and watch", lambda _: [*health.all_well(on), *health.names_what_is_broken(on), *health.watched(on)])
    phase("the export, its schedule and its mails", lambda _: _exported(on))
    phase("rotation", lambda _: rotation.rotates(on))
    phase("an update", lambda tell: updates.changes_only_that(on, changes, tell))
    phase("an update that fails", lambda tell: updates.rolls_back(on, changes, tell))


def _prepared(on: Harness, tell: Reporter) -> list[Proof]:
    environments.require_embedded(on.ctx)
    environments.prepare(on.ctx, on.worlds)
    on.cdk.synth(tell)
    on.cdk.bootstrap(tell)
    return []


def _deployed(on: Harness, tell: Reporter) -> list[Proof]:
    on.cdk.deploy(tell)
    made = {
        stack.name: len(stack.resources)
        for name in on.ctx.stacks
        if (stack := stacks.describe(on.ctx, name, with_resources=True))
    }
    seen = f"{len(made)} stacks, {sum(made.values())} resources, IAM enforced"
    return [Proof("the real command line deploys the unmodified templates", seen, made)]


def _exported(on: Harness) -> list[Proof]:
    return [*exports.subscriptions(on), *exports.published(on), *exports.not_twice(on), *exports.failure_told(on)]


def _held(rehearsal: Rehearsal, opened: SimulatedEnvironment) -> None:
    """Until the user stops it. What is said is no result: with --json it is wanted, too."""
    output, file = rehearsal.output, rehearsal.out / "rehearsal" / "environment.sh"
    mine = {name: value for name, value in opened.environment.items() if name.startswith(("AWS_", "LAKEFERRY_"))}
    file.write_text("".join(f"export {name}='{value}'\n" for name, value in sorted(mine.items())), encoding="utf-8")
    for name, address in opened.addresses().items():
        output.info(f"{name:22}{address}")
    output.info(f"{'mails':22}{opened.aws.url}/_lakeferry/mail.html")
    stands = datetime.fromtimestamp(opened.confluent_now(), UTC)
    output.info(f"Confluent's clock stands at {stands:%Y-%m-%d %H:%M} UTC, so that `status` calls tables as old as that.")
    output.info(
        f"Everything is running. In another terminal: source {target.relative(file)}, then for example {program_name()} inventory"
    )
    ends = (
        "ends it" if rehearsal.failed else "destroys everything and looks whether anything is left; a second one ends it at once"
    )
    output.info(f"Ctrl-C {ends}.")
    try:
        signal.pause()
    except KeyboardInterrupt:
        output.info("")


def _ended(rehearsal: Rehearsal, seconds: float) -> dict[str, Any]:
    document = report.written(rehearsal.phases, seconds, rehearsal.out)
    output = rehearsal.output
    output.print("")
    output.table(["proven", "seen"], [[proof.claim, proof.seen] for phase in rehearsal.phases for proof in phase.proofs])
    output.print("\nWhat a rehearsal can't prove:")
    for each in report.NOT_PROVEN:
        output.print(f"  - {each}")
    page = target.relative(rehearsal.out / "rehearsal.html")
    if rehearsal.failed:
        last = rehearsal.phases[-1]
        hint = f"Look at {page} and {target.relative(rehearsal.out / 'rehearsal' / 'cdk.log')}"
        raise CommandFailed("NOT-PROVEN", f"{last.name}: {last.failure}", hint, document)
    output.print(f"\n{seconds:.0f} s. Nothing is left of it but {page}, rehearsal.json and the logs beside them.")
    output.print(
        f"Next: the same in your own accounts, docs/tutorial/in-your-own-accounts.md; {program_name()} cost says what that costs."
    )
    return document
