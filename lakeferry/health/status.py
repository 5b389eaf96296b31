"""`lakeferry status`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Final

import attrs

from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.credentials import rotating_secrets as secrets
from lakeferry.credentials import rotation as rotations
from lakeferry.credentials.rotating_secrets import Age
from lakeferry.deployment import context as ground
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import Ground
from lakeferry.deployment.stacks import Deployed
from lakeferry.health import drift, exports, places
from lakeferry.health import freshness as tables
from lakeferry.health import render as telling
from lakeferry.health.drift import Drift
from lakeferry.health.exports import Standing
from lakeferry.health.observations import State
from lakeferry.health.places import Places
from lakeferry.health.render import Trouble
from lakeferry.health.tableflow import Tableflow
from lakeferry.health.freshness import Hops
from lakeferry.inventory import Verdict
from lakeferry.plan.durations import spoken

_POLL: Final = 10.0


class Event(StrEnum):
    """What can be waited for."""

    FIRST_TABLE = "first-table"
    FIRST_EXPORT = "first-export"


@attrs.frozen
class Status:
    stacks: list[Deployed]
    tables: list[Hops]
    ages: list[Age]
    exports: list[Standing]
    drift: list[Drift] | None


def told(voice: Voice, stage: str, *, wait_for: Event | None, minutes: int, with_drift: bool) -> dict[str, Any]:
    """Raises CommandFailed where something is wrong or could not be asked, or what was waited for hasn't come."""
    with ground.of(stage) as here:
        telling.show_stacks(voice, here, deployed.read(here).values())
        looking = places.of(here)
        if wait_for:
            _await(voice, looking, wait_for, minutes)
        with voice.step(f"Looking at {here.deployment.prefix}"):
            status = _take(here, looking, with_drift=with_drift)
        telling.show(voice, status.tables, status.exports)
        rotations.show(voice, here.deployment, status.ages)
        if status.drift is not None:
            telling.show_drift(voice, status.drift)
        document = _document(stage, status)
        _require_well(voice, list(_troubles(here, status)), document)
        return document


def _take(here: Ground, looking: Places, *, with_drift: bool) -> Status:
    """All at once: most of the time is waiting for others."""
    with ThreadPoolExecutor(3) as pool:
        of_tables = pool.submit(tables.look_at, looking, Tableflow(here), here.deployment.alerts.table_stale_hours)
        of_keys = pool.submit(lambda: [*secrets.ages(here, secrets.of(here)), *secrets.by_hand(here)])
        of_exports = pool.submit(exports.look_at, looking)
        standing = list(deployed.read(here).values())
        differs = drift.look_at(here) if with_drift else None
        return Status(standing, of_tables.result(), of_keys.result(), of_exports.result(), differs)


def _await(voice: Voice, looking: Places, event: Event, minutes: int) -> None:
    """Raises CommandFailed with LATER when the time is up."""
    clock = looking.here.clock
    began = clock.time()
    with voice.step(f"Waiting for {event}") as tell:
        while not (said := _COME[event](looking)):
            waited = clock.time() - began
            if waited >= minutes * 60:
                told = f"{event} has not come in {spoken(waited)}"
                raise CommandFailed("STATUS-LATER", told)
            tell(spoken(waited))
            clock.sleep(_POLL)
    voice.result(said)


def _first_table(looking: Places) -> str:
    """A table that the Glue catalog shows with a snapshot; of a deployment without Glue, one that Tableflow runs."""
    seen = tables.look_at(looking, Tableflow(looking.here), float("inf"))
    there = [hops.table for hops in seen if hops.is_there or _runs_without_glue(hops)]
    return f"first table: {', '.join(there)} can be read" if there else ""


def _runs_without_glue(hops: Hops) -> bool:
    return "glue" not in hops.seen and hops.seen["tableflow"].state is State.OK


def _first_export(looking: Places) -> str:
    there = [f"{one.export} ({one.published} windows)" for one in exports.look_at(looking) if one.published]
    return f"first export: {', '.join(there)}" if there else ""


_COME: Final[dict[Event, Callable[[Places], str]]] = {Event.FIRST_TABLE: _first_table, Event.FIRST_EXPORT: _first_export}


def _troubles(here: Ground, status: Status) -> Iterator[Trouble]:
    for stack in status.stacks:
        if not stack.stands or stack.status.endswith("_FAILED"):
            yield Trouble(State.WRONG, f"stack {stack.name} is {stack.status}")
    yield from telling.troubles(status.tables, status.exports)
    for age in status.ages:
        yield from (Trouble(State.WRONG, f"{age.secret}: {why}") for why in rotations.troubles(here.deployment, age))
        if age.trouble:
            yield Trouble(State.NOT_ASKED, f"{age.secret}: {age.trouble}")
    for one in status.drift or []:
        state = State.NOT_ASKED if one.how == Verdict.NOT_ASKED else State.WRONG
        yield Trouble(state, f"{one.world} {one.what} {one.name}: {one.how} {one.told}".strip())


def _require_well(voice: Voice, troubles: list[Trouble], document: dict[str, Any]) -> None:
    wrong = [one for one in troubles if one.state is State.WRONG]
    unseen = [one for one in troubles if one.state is State.NOT_ASKED]
    if wrong:
        explained = next((f"`lakeferry explain {one.code}` says more; " for one in wrong if one.code), "")
        hint = f"{explained}`lakeferry logs` has what functions and runs wrote"
        raise CommandFailed("STATUS-WRONG", _few(wrong), hint, document)
    if unseen:
        hint = "Mend that, then ask again: what can't be seen may be wrong"
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {_few(unseen)}", hint, document)
    voice.result("All is well")


def _few(troubles: Iterable[Trouble]) -> str:
    listed = [one.told for one in troubles]
    return "; ".join(listed[:3]) + (f"; and {len(listed) - 3} more" if len(listed) > 3 else "")


def _document(stage: str, status: Status) -> dict[str, Any]:
    return {
        "stage": stage,
        "stacks": {stack.name: stack.status for stack in status.stacks},
        "tables": [{"table": one.table, **{hop: attrs.asdict(seen) for hop, seen in one.seen.items()}} for one in status.tables],
        "secrets": rotations.documents(status.ages),
        "exports": [attrs.asdict(one) for one in status.exports],
        "drift": None if status.drift is None else [attrs.asdict(one) for one in status.drift],
    }
