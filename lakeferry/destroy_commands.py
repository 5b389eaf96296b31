"""`lakeferry destroy`."""

from __future__ import annotations

from typing import Any

from lakeferry import destroy, destroy_stacks, ground, inventory, inventory_commands
from lakeferry.console import STOPPED, WRONG_INPUT, CommandFailed, Voice
from lakeferry.destroy import Planned
from lakeferry.destroy_stacks import Cdk
from lakeferry.ground import Ground


def told(voice: Voice, stage: str, *, confirmed: str | None, plan_only: bool, cdk: Cdk = destroy_stacks.by_cdk) -> dict[str, Any]:
    """`confirmed` is the stage's name once more. Raises CommandFailed where nothing may be removed, or something is left."""
    with ground.of(stage) as here:
        return _told(voice, here, confirmed=confirmed, plan_only=plan_only, cdk=cdk)


def _told(voice: Voice, here: Ground, *, confirmed: str | None, plan_only: bool, cdk: Cdk) -> dict[str, Any]:
    with voice.step(f"Looking for what there is of {here.deployment.prefix}"):
        items = inventory.take(here)
    planned = destroy.plan(here, items)
    show(voice, here, planned)
    about = {"stage": here.stage, "account": here.account, "region": here.region}
    if plan_only:
        goes, stays = (inventory_commands.documents(part) for part in (planned.goes, planned.stays))
        return {**about, "goes": goes, "stays": stays, "stacks": {}, "removed": [], "items": []}
    destroy.require_possible(here, items)
    _require_confirmed(voice, here, confirmed)
    with voice.step(f"Destroying {here.deployment.prefix}") as tell:
        done = destroy.destroy(here, cdk=cdk, say=voice.say, tell=tell)
    for reason in done.reasons:
        voice.result(f"  {reason}")
    inventory_commands.show(voice, here, done.items)
    left, removed = inventory_commands.documents(done.items), inventory_commands.documents(done.removed)
    document = {**about, "goes": [], "stays": [], "stacks": done.seconds, "removed": removed, "items": left}
    inventory_commands.require_nothing_left(done.items, {**document, "reasons": done.reasons})
    voice.result(f"Nothing is left of {here.deployment.prefix} but what is listed here with its reason")
    return document


def show(voice: Voice, here: Ground, planned: Planned) -> None:
    """Both lists; neither is shortened, because this is the last look before it happens."""
    where = f"{here.deployment.prefix} in account {here.account}, {here.region}"
    voice.result(f"To go, in this order, of {where}:" if planned.goes else f"Nothing is to go of {where}")
    if planned.goes:
        lines = [[str(number), *inventory_commands.row(item)[:4]] for number, item in enumerate(planned.goes, start=1)]
        voice.table(["", "world", "kind", "name", "with"], lines)
    if planned.stays:
        voice.result("To stay:")
        rows = [inventory_commands.row(item) for item in planned.stays]
        voice.table(["world", "kind", "name", "why"], [[*row[:3], row[5]] for row in rows])


def _require_confirmed(voice: Voice, here: Ground, confirmed: str | None) -> None:
    if confirmed is None and voice.may_ask:
        confirmed = voice.ask(f"This can't be undone. Type the stage's name, {here.stage}, to destroy {here.deployment.prefix}")
        if confirmed != here.stage:
            raise CommandFailed(STOPPED, "STOPPED", "stopped; nothing was changed", "Run the command again")
    if confirmed != here.stage:
        told = "no stage was typed" if confirmed is None else f"{confirmed!r} is not the stage that would be destroyed"
        raise CommandFailed(WRONG_INPUT, "NOT-CONFIRMED", told, f"Say it: `--yes {here.stage}`, or ask for `--plan`")
