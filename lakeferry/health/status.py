"""`lakeferry status`: reads the state of a deployment, shows it, and returns it as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry.credentials import rotating_secrets, rotation
from lakeferry.credentials.rotating_secrets import Age
from lakeferry.deployment import context, people, stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health import drift
from lakeferry.health.drift import Drift
from lakeferry.health.exports import ExportStatus, LastRun, observe_engineers, read_exports
from lakeferry.health.freshness import HOPS, Readers, TableStatus, open_readers, read_tables
from lakeferry.health.model import Observation, State, format_hours
from lakeferry.inventory import Verdict
from lakeferry.output import Output, format_duration

_POLL: Final = 10.0
_HEADS: Final = {
    "topic": "topic",
    "tableflow": "Tableflow",
    "iceberg": "Iceberg",
    "glue": "Glue",
    "snowflake": "Snowflake",
}
_SIGNS: Final = {
    State.OK: "",
    State.WAITING: "…",
    State.ACTION_NEEDED: "!",
    State.WRONG: "✗",
    State.UNKNOWN: "?",
}


class Event(StrEnum):
    """What `--wait-for` can wait for."""

    FIRST_TABLE = "first-table"
    FIRST_EXPORT = "first-export"


@attrs.frozen
class Status:
    """`alarms` is None if all engineers get alarms. `drift` is None unless it was requested."""

    stacks: list[Stack]
    tables: list[TableStatus]
    secrets: list[Age]
    exports: list[ExportStatus]
    alarms: Observation | None
    drift: list[Drift] | None

    def document(self, stage: str) -> dict[str, Any]:
        tables = []
        for table in self.tables:
            hops = {hop: observation.document() for hop, observation in table.hops.items()}
            tables.append({"table": table.table, **hops})
        drift = None
        if self.drift is not None:
            drift = [attrs.asdict(item) for item in self.drift]
        return {
            "stage": stage,
            "stacks": {stack.name: stack.status for stack in self.stacks},
            "tables": tables,
            "secrets": rotation.build_documents(self.secrets),
            "exports": [export.document() for export in self.exports],
            "alarms": self.alarms.document() if self.alarms else None,
            "drift": drift,
        }


def run_status(
    output: Output, stage: str, *, wait_for: Event | None, minutes: int, with_drift: bool
) -> dict[str, Any]:
    """Raises CommandFailed if something is wrong or unknown, or if the awaited event hasn't happened."""
    with context.open_context(stage) as ctx:
        return report_status(output, ctx, wait_for=wait_for, minutes=minutes, with_drift=with_drift)


def report_status(
    output: Output, ctx: DeploymentContext, *, wait_for: Event | None, minutes: int, with_drift: bool
) -> dict[str, Any]:
    """Raises CommandFailed."""
    _show_stacks(output, ctx, stacks.read(ctx).values())
    readers = open_readers(ctx)
    if wait_for:
        wait(output, readers, wait_for, minutes)
    with output.step(f"Reading the status of {ctx.deployment.prefix}"):
        status = _read(ctx, readers.drop_cache(), with_drift=with_drift)
    _show_tables(output, status.tables)
    _show_exports(output, status.exports)
    _show_alarms(output, status.alarms)
    if status.secrets:
        output.print("\nKeys:")
        rotation.show(output, ctx.deployment, status.secrets)
    if status.drift is not None:
        show_drift(output, status.drift)
    outputs = {name: value for stack in status.stacks for name, value in stack.outputs.items()}
    people.tell(output, ctx, outputs)
    document = status.document(ctx.stage)
    _require_healthy(output, list(_list_problems(ctx, status)), document)
    return document


def _read(ctx: DeploymentContext, readers: Readers, *, with_drift: bool) -> Status:
    """Read in parallel: most of the time is spent waiting for services."""
    with ThreadPoolExecutor(3) as pool:
        tables = pool.submit(read_tables, readers, ctx.deployment.alerts.table_stale_hours)
        secrets = pool.submit(
            lambda: [
                *rotating_secrets.read_ages(ctx, rotating_secrets.load(ctx)),
                *rotating_secrets.read_manual_ages(ctx),
            ]
        )
        exports = pool.submit(read_exports, readers)
        deployed = list(stacks.read(ctx).values())
        drifted = drift.detect(ctx) if with_drift else None
        return Status(
            deployed, tables.result(), secrets.result(), exports.result(), observe_engineers(readers), drifted
        )


def wait(output: Output, readers: Readers, event: Event, minutes: int) -> None:
    """Wait for the event. Raises CommandFailed: STATUS-LATER after `minutes`; at once if all tables are in a
    state that waiting doesn't change, or if the AWS credentials have expired."""
    clock = readers.ctx.clock
    began = clock.time()
    with output.step(f"Waiting for {event}") as report:
        while True:
            message, problems, is_lost = look(readers.drop_cache(), event)
            if message:
                break
            if is_lost:
                _require_right(problems)
            if any(problem.state is State.UNKNOWN for problem in problems):
                _require_login(readers.ctx)
            waited = clock.time() - began
            reasons = _summarize_problems(
                problem for problem in problems if problem.state in (State.UNKNOWN, State.WRONG)
            )
            state = "; ".join(filter(None, [format_duration(waited), reasons]))
            if waited >= minutes * 60:
                raise CommandFailed("STATUS-LATER", f"{event} has not happened in {state}")
            report(state)
            clock.sleep(_POLL)
    output.print(message)


def look(readers: Readers, event: Event) -> tuple[str, list[Observation], bool]:
    """Return a message once the event has happened, "" before that; what isn't OK; and whether waiting is
    useless.

    A table in state WRONG stays in it. After a failed run of an export, the next scheduled run may publish.
    """
    if event is Event.FIRST_TABLE:
        tables = read_tables(readers, float("inf"))
        readable = [table.table for table in tables if table.is_readable or _runs_without_glue(table)]
        is_useless = bool(tables) and all(table.is_wrong for table in tables)
        message = f"first table: {', '.join(readable)} can be read" if readable else ""
        return message, list(list_table_problems(tables)), is_useless
    exports = read_exports(readers)
    published = [f"{export.export} ({export.published} windows)" for export in exports if export.published]
    message = f"first export: {', '.join(published)}" if published else ""
    return message, list(_export_problems(exports)), False


def _require_login(ctx: DeploymentContext) -> None:
    """Raises CommandFailed if the credentials have expired. Other failures may be temporary."""
    try:
        with translate_aws_errors("reading the AWS identity"):
            ctx.client("sts").get_caller_identity()
    except CommandFailed as failure:
        if failure.code == "AWS-CREDENTIALS":
            raise


def _runs_without_glue(table: TableStatus) -> bool:
    return "glue" not in table.hops and table.hops["tableflow"].state is State.OK


def _list_problems(ctx: DeploymentContext, status: Status) -> Iterator[Observation]:
    for stack in status.stacks:
        if not stack.is_active or stack.status.endswith("_FAILED"):
            yield Observation(State.WRONG, message=f"stack {stack.name} is {stack.status}")
    yield from list_table_problems(status.tables)
    yield from _export_problems(status.exports)
    if status.alarms:
        yield status.alarms
    for age in status.secrets:
        yield from (
            Observation(State.WRONG, message=f"{age.secret}: {why}")
            for why in rotation.list_troubles(ctx.deployment, age)
        )
        if age.trouble:
            yield Observation(State.UNKNOWN, message=f"{age.secret}: {age.trouble}")
    for drifted in status.drift or []:
        state = State.UNKNOWN if drifted.status == Verdict.UNKNOWN else State.WRONG
        message = f"{drifted.system} {drifted.type} {drifted.name}: {drifted.status} {drifted.details}"
        yield Observation(state, message=message.strip())


def list_table_problems(tables: Iterable[TableStatus]) -> Iterator[Observation]:
    """Return the observations that aren't OK, with their table and hop in the message."""
    for table in tables:
        for hop, observation in table.hops.items():
            if observation.state is not State.OK:
                message = f"{table.table}, {_HEADS[hop]}: {_describe_observation(observation)}"
                yield attrs.evolve(observation, message=message)


def _export_problems(exports: Iterable[ExportStatus]) -> Iterator[Observation]:
    for export in exports:
        for observation in export.observations:
            yield attrs.evolve(observation, message=f"{export.export}: {_describe_observation(observation)}")


def _describe_observation(observation: Observation) -> str:
    code = f"{observation.code}  " if observation.code and observation.state is not State.WAITING else ""
    state = "unknown: " if observation.state is State.UNKNOWN else ""
    return f"{state}{code}{observation.message}"


def _require_healthy(output: Output, problems: list[Observation], document: dict[str, Any]) -> None:
    _require_right(problems, document)
    if unknown := [problem for problem in problems if problem.state is State.UNKNOWN]:
        hint = "Fix that, then run it again: what can't be read may be wrong"
        raise CommandFailed(
            "INCOMPLETE", f"not everything could be listed: {_summarize_problems(unknown)}", hint, document
        )
    output.print("Everything is healthy")


def _require_right(problems: Iterable[Observation], document: dict[str, Any] | None = None) -> None:
    if wrong := [problem for problem in problems if problem.state is State.WRONG]:
        explained = next(
            (f"`lakeferry explain {problem.code}` says more; " for problem in wrong if problem.code), ""
        )
        hint = f"{explained}`lakeferry logs` has what functions and runs wrote"
        raise CommandFailed("STATUS-WRONG", _summarize_problems(wrong), hint, document)


def _summarize_problems(problems: Iterable[Observation]) -> str:
    messages = [problem.message for problem in problems]
    return "; ".join(messages[:3]) + (f"; and {len(messages) - 3} more" if len(messages) > 3 else "")


def _show_stacks(output: Output, ctx: DeploymentContext, deployed: Iterable[Stack]) -> None:
    """Show the stacks first, because everything else may be missing after a failed deployment."""
    output.print(f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}")
    states = ", ".join(f"{stack.name} {stack.status}" for stack in deployed)
    output.print(f"Stacks: {states or 'none'}")


def _show_tables(output: Output, tables: list[TableStatus]) -> None:
    if not tables:
        return
    output.print("\nAge of the newest data at each hop:")
    known_hops = set().union(*(table.hops for table in tables))
    hops = [hop for hop in HOPS if hop in known_hops]
    rows = []
    for table in tables:
        cells = [_format_cell(table.hops.get(hop)) for hop in hops]
        rows.append([table.table, *cells])
    output.table(["table", *[_HEADS[hop] for hop in hops]], rows)
    _show_problems(output, list_table_problems(tables))


def _show_exports(output: Output, exports: list[ExportStatus]) -> None:
    if not exports:
        return
    output.print("\nExports:")
    rows = [
        [export.export, _format_last_run(export.last), str(export.published), export.next_run_text]
        for export in exports
    ]
    output.table(["export", "last run", "published", "next run"], rows)
    _show_problems(output, _export_problems(exports))


def _show_alarms(output: Output, alarms: Observation | None) -> None:
    if alarms:
        output.print("\nAlarms:")
        _show_problems(output, [attrs.evolve(alarms, message=_describe_observation(alarms))])


def _show_problems(output: Output, problems: Iterable[Observation]) -> None:
    for problem in problems:
        output.print(f"  {_SIGNS[problem.state]} {problem.message}")


def show_drift(output: Output, drifted: list[Drift]) -> None:
    if not drifted:
        output.print("\nDrift: none, as far as CloudFormation and the inventory can see")
        return
    output.print("\nDrift:")
    rows = [list(attrs.astuple(item)[:5]) for item in drifted]
    output.table(["system", "type", "name", "status", "details"], rows)


def _format_cell(observation: Observation | None) -> str:
    if observation is None:
        return "-"
    text = (
        format_hours(observation.value)
        if observation.value is not None
        else observation.message.partition(":")[0]
    )
    if observation.state in (State.UNKNOWN, State.WAITING) and observation.code:
        text = str(observation.state)
    return f"{text} {_SIGNS[observation.state]}".strip()


def _format_last_run(last: LastRun | None) -> str:
    if last is None:
        return "none yet"
    began = datetime.fromtimestamp(last.began, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = f", {format_duration(last.seconds)}" if last.seconds is not None else ""
    windows = f": {', '.join(last.windows)}" if last.windows else ""
    return f"{began}{took}, {last.record or last.result.lower()}{windows}"
