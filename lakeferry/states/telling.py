"""A deployment's state as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import attrs

from lakeferry.console import Voice
from lakeferry.deployed import Deployed
from lakeferry.ground import Ground
from lakeferry.planning.durations import spoken
from lakeferry.states.drift import Drift
from lakeferry.states.exports import Last, Standing
from lakeferry.states.tables import HOPS, Hops
from lakeferry.states.words import Seen, State, spoken_hours

_HEADS: Final = {"topic": "topic", "tableflow": "Tableflow", "iceberg": "Iceberg", "glue": "Glue", "snowflake": "Snowflake"}
_SIGNS: Final = {State.OK: "", State.WAITING: "…", State.LOOK: "!", State.WRONG: "✗", State.NOT_ASKED: "?"}


@attrs.frozen
class Trouble:
    """`code` is that of what is wrong, "" where it has none."""

    state: State
    told: str
    code: str = ""


def show_stacks(voice: Voice, here: Ground, stacks: Iterable[Deployed]) -> None:
    """First, because all else may be missing where a deployment has failed."""
    voice.result(f"{here.deployment.prefix} in account {here.account}, {here.region}")
    told = ", ".join(f"{stack.name} {stack.status}" for stack in stacks)
    voice.result(f"Stacks: {told or 'none'}")


def show(voice: Voice, tables: list[Hops], exports: list[Standing]) -> None:
    if tables:
        voice.result("\nHow old what each hop shows is:")
        heads = [hop for hop in HOPS if any(hop in one.seen for one in tables)]
        rows = [[one.table, *[_cell(one.seen.get(hop)) for hop in heads]] for one in tables]
        voice.table(["table", *[_HEADS[hop] for hop in heads]], rows)
        for trouble in troubles(tables, []):
            voice.result(f"  {_SIGNS[trouble.state]} {trouble.told}")
    if exports:
        voice.result("\nExports:")
        rows = [[one.export, _last(one.last), str(one.published), one.next_told] for one in exports]
        voice.table(["export", "last run", "published", "next run"], rows)
        for trouble in troubles([], exports):
            voice.result(f"  {_SIGNS[trouble.state]} {trouble.told}")
    voice.result("\nKeys:")


def show_drift(voice: Voice, found: list[Drift]) -> None:
    if not found:
        voice.result("\nDrift: none, as far as CloudFormation and the inventory can see")
        return
    voice.result("\nDrift:")
    rows = [[one.world, one.what, one.name, one.how, one.told] for one in found]
    voice.table(["where", "kind", "name", "change", "details"], rows)


def troubles(tables: Iterable[Hops], exports: Iterable[Standing]) -> Iterator[Trouble]:
    """All that isn't simply well, with its place."""
    for table in tables:
        for hop, seen in table.seen.items():
            if seen.state is not State.OK:
                yield Trouble(seen.state, f"{table.table}, {_HEADS[hop]}: {_said(seen)}", seen.code)
    for export in exports:
        for seen in export.seen:
            yield Trouble(seen.state, f"{export.export}: {_said(seen)}", seen.code)


def _said(seen: Seen) -> str:
    code = f"{seen.code}  " if seen.code else ""
    return f"{'not asked: ' if seen.state is State.NOT_ASKED else ''}{code}{seen.told}"


def _cell(seen: Seen | None) -> str:
    if seen is None:
        return "-"
    told = spoken_hours(seen.value) if seen.value is not None else seen.told.partition(":")[0]
    if seen.state in (State.NOT_ASKED, State.WAITING) and seen.code:
        told = str(seen.state)
    return f"{told} {_SIGNS[seen.state]}".strip()


def _last(last: Last | None) -> str:
    if last is None:
        return "none yet"
    began = datetime.fromtimestamp(last.began, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = f", {spoken(last.seconds)}" if last.seconds is not None else ""
    windows = f": {', '.join(last.windows)}" if last.windows else ""
    return f"{began}{took}, {last.record or last.result.lower()}{windows}"
