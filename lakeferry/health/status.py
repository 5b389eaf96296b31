"""`lakeferry status`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry.credentials import rotating_secrets, rotation
from lakeferry.credentials.rotating_secrets import Age
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.deployment.stacks import Stack
from lakeferry.errors import CommandFailed
from lakeferry.health import drift, exports, places, render, tables
from lakeferry.health.drift import Drift
from lakeferry.health.exports import Standing
from lakeferry.health.observations import State
from lakeferry.health.places import Places
from lakeferry.health.render import Trouble
from lakeferry.health.tableflow import Tableflow
from lakeferry.health.tables import Hops
from lakeferry.inventory import Verdict
from lakeferry.output import Output, format_duration

_POLL: Final = 10.0


class Event(StrEnum):
    """What can be waited for."""

    FIRST_TABLE = "first-table"
    FIRST_EXPORT = "first-export"


@attrs.frozen
class Status:
    stacks: list[Stack]
    tables: list[Hops]
    ages: list[Age]
    exports: list[Standing]
    drift: list[Drift] | None


def run_status(output: Output, stage: str, *, wait_for: Event | None, minutes: int, with_drift: bool) -> dict[str, Any]:
    """Raises CommandFailed where something is wrong or could not be asked, or what was waited for hasn't come."""
    with open_context(stage) as ctx:
        render.show_stacks(output, ctx, deployed.read(ctx).values())
        looking = places.of(ctx)
        if wait_for:
            _await(output, looking, wait_for, minutes)
        with output.step(f"Looking at {ctx.deployment.prefix}"):
            status = _take(ctx, looking, with_drift=with_drift)
        render.show(output, status.tables, status.exports)
        rotation.show(output, ctx.deployment, status.ages)
        if status.drift is not None:
            render.show_drift(output, status.drift)
        document = _document(stage, status)
        _require_well(output, list(_troubles(ctx, status)), document)
        return document


def _take(ctx: DeploymentContext, looking: Places, *, with_drift: bool) -> Status:
    """All at once: most of the time is waiting for others."""
    with ThreadPoolExecutor(3) as pool:
        of_tables = pool.submit(tables.look_at, looking, Tableflow(ctx), ctx.deployment.alerts.table_stale_hours)
        of_keys = pool.submit(lambda: [*rotating_secrets.ages(ctx, rotating_secrets.of(ctx)), *rotating_secrets.by_hand(ctx)])
        of_exports = pool.submit(exports.look_at, looking)
        standing = list(deployed.read(ctx).values())
        differs = drift.look_at(ctx) if with_drift else None
        return Status(standing, of_tables.result(), of_keys.result(), of_exports.result(), differs)


def _await(output: Output, looking: Places, event: Event, minutes: int) -> None:
    """Raises CommandFailed with LATER when the time is up."""
    clock = looking.ctx.clock
    began = clock.time()
    with output.step(f"Waiting for {event}") as report:
        while not (said := _COME[event](looking)):
            waited = clock.time() - began
            if waited >= minutes * 60:
                told = f"{event} has not come in {format_duration(waited)}"
                raise CommandFailed("STATUS-LATER", told)
            report(format_duration(waited))
            clock.sleep(_POLL)
    output.print(said)


def _first_table(looking: Places) -> str:
    """A table that the Glue catalog shows with a snapshot; of a deployment without Glue, one that Tableflow runs."""
    seen = tables.look_at(looking, Tableflow(looking.ctx), float("inf"))
    there = [hops.table for hops in seen if hops.is_there or _runs_without_glue(hops)]
    return f"first table: {', '.join(there)} can be read" if there else ""


def _runs_without_glue(hops: Hops) -> bool:
    return "glue" not in hops.seen and hops.seen["tableflow"].state is State.OK


def _first_export(looking: Places) -> str:
    there = [f"{one.export} ({one.published} windows)" for one in exports.look_at(looking) if one.published]
    return f"first export: {', '.join(there)}" if there else ""


_COME: Final[dict[Event, Callable[[Places], str]]] = {Event.FIRST_TABLE: _first_table, Event.FIRST_EXPORT: _first_export}


def _troubles(ctx: DeploymentContext, status: Status) -> Iterator[Trouble]:
    for stack in status.stacks:
        if not stack.is_active or stack.status.endswith("_FAILED"):
            yield Trouble(State.WRONG, f"stack {stack.name} is {stack.status}")
    yield from render.troubles(status.tables, status.exports)
    for age in status.ages:
        yield from (Trouble(State.WRONG, f"{age.secret}: {why}") for why in rotation.troubles(ctx.deployment, age))
        if age.trouble:
            yield Trouble(State.NOT_ASKED, f"{age.secret}: {age.trouble}")
    for one in status.drift or []:
        state = State.NOT_ASKED if one.how == Verdict.NOT_ASKED else State.WRONG
        yield Trouble(state, f"{one.world} {one.what} {one.name}: {one.how} {one.told}".strip())


def _require_well(output: Output, troubles: list[Trouble], document: dict[str, Any]) -> None:
    wrong = [one for one in troubles if one.state is State.WRONG]
    unseen = [one for one in troubles if one.state is State.NOT_ASKED]
    if wrong:
        explained = next((f"`lakeferry explain {one.code}` says more; " for one in wrong if one.code), "")
        hint = f"{explained}`lakeferry logs` has what functions and runs wrote"
        raise CommandFailed("STATUS-WRONG", _few(wrong), hint, document)
    if unseen:
        hint = "Mend that, then ask again: what can't be seen may be wrong"
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {_few(unseen)}", hint, document)
    output.print("All is well")


def _few(troubles: Iterable[Trouble]) -> str:
    listed = [one.told for one in troubles]
    return "; ".join(listed[:3]) + (f"; and {len(listed) - 3} more" if len(listed) > 3 else "")


def _document(stage: str, status: Status) -> dict[str, Any]:
    return {
        "stage": stage,
        "stacks": {stack.name: stack.status for stack in status.stacks},
        "tables": [{"table": one.table, **{hop: attrs.asdict(seen) for hop, seen in one.seen.items()}} for one in status.tables],
        "secrets": rotation.documents(status.ages),
        "exports": [attrs.asdict(one) for one in status.exports],
        "drift": None if status.drift is None else [attrs.asdict(one) for one in status.drift],
    }
