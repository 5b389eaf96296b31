"""`lakeferry destroy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakeferry import inventory
from lakeferry.cli import inventory_commands
from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.deployment import context as ground
from lakeferry.deployment.context import Ground
from lakeferry.inventory import ORPHAN, Item, destroy, stacks
from lakeferry.inventory.destroy import Planned


def told(voice: Voice, stage: str, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    """`confirmed` is the stage's name once more. Raises CommandFailed where nothing may be removed, or something is left."""
    with ground.of(stage) as here:
        return run(voice, here, confirmed=confirmed, plan_only=plan_only)


def run(voice: Voice, here: Ground, *, confirmed: str | None, plan_only: bool) -> dict[str, Any]:
    with voice.step(f"Looking for what there is of {here.deployment.prefix}"):
        planned = destroy.plan(here, inventory.take(here))
    show(voice, here, planned)
    about = {"stage": here.stage, "account": here.account, "region": here.region}
    if plan_only:
        goes, stays = (inventory_commands.documents(part) for part in (planned.goes, planned.stays))
        return {**about, "goes": goes, "stays": stays, "stacks": {}, "removed": [], "items": []}
    destroy.require_possible(here, planned)
    _require_confirmed(voice, here, confirmed)
    try:
        with voice.step(f"Destroying {here.deployment.prefix}") as tell:
            done = destroy.destroy(here, planned, say=voice.say, tell=tell)
    except KeyboardInterrupt:
        raise _stopped(here) from None
    for reason in done.reasons:
        voice.result(f"  {reason}")
    inventory_commands.show(voice, here, done.items)
    left, removed = inventory_commands.documents(done.items), inventory_commands.documents(done.removed)
    document = {**about, "goes": [], "stays": [], "stacks": done.seconds, "removed": removed, "items": left}
    inventory_commands.require_nothing_left(done.items, {**document, "reasons": done.reasons})
    voice.result(f"Nothing is left of {here.deployment.prefix} but what is listed above with its reason")
    return document


def show(voice: Voice, here: Ground, planned: Planned) -> None:
    """Everything by name, by stack and kind: what isn't listed isn't removed."""
    where = f"{here.deployment.prefix} in account {here.account}, {here.region}"
    goes = f"To delete, in this order, {len(planned.goes)} of {where}:"
    voice.result(goes if planned.goes else f"Nothing to delete of {where}")
    for number, (owner, items) in enumerate(groupby(planned.goes, key=lambda item: item.whose), start=1):
        voice.result(f"{number}. {'in no stack' if owner == ORPHAN else f'stack {owner}'}")
        for line in _counted(item for item in items if item.kind != stacks.KIND):
            voice.result(f"     {line}")
    if planned.stays:
        voice.result("To stay:")
        rows = [inventory_commands.row(item) for item in planned.stays]
        voice.table(["world", "kind", "name", "why"], [[*row[:3], row[5]] for row in rows])
    if planned.differing:
        does = "delete" if here.deployment.keeps_data else "keep"
        voice.warn(f'The stacks were deployed with on_destroy = "{does}"; deployments/{here.stage}.toml says otherwise')


def _counted(items: Iterable[Item]) -> Iterator[str]:
    """One line for each kind, with all names."""
    for (world, kind), same in groupby(items, key=lambda item: (item.world, item.kind)):
        names = [inventory_commands.row(item)[2] for item in same]
        yield f"{len(names)} {world} {kind}: {', '.join(names)}"


def _require_confirmed(voice: Voice, here: Ground, confirmed: str | None) -> None:
    if confirmed is None and voice.may_ask:
        confirmed = voice.ask(f"This can't be undone. Type the stage's name, {here.stage}, to destroy {here.deployment.prefix}")
        if confirmed != here.stage:
            raise CommandFailed("STOPPED", "stopped; nothing was changed", "Run the command again")
    if confirmed != here.stage:
        told = "no stage was named" if confirmed is None else f"{confirmed!r} is not the stage that would be destroyed"
        hint = f"Name the stage: `lakeferry destroy --stage {here.stage} --confirm {here.stage}`; `--plan` lists what would go"
        raise CommandFailed("NOT-CONFIRMED", told, hint)


def _stopped(here: Ground) -> CommandFailed:
    """CloudFormation goes on with a deletion that it was asked for."""
    try:
        under_way = [name for name in stacks.names(here) if (one := stacks.one(here, name, resources=False)) and one.is_under_way]
        told = f"CloudFormation goes on deleting {', '.join(under_way)}" if under_way else "no stack is being deleted"
    except (ClientError, BotoCoreError):
        under_way, told = [], "whether CloudFormation goes on deleting is not known: AWS did not answer"
    hint = f"`lakeferry inventory --stage {here.stage}` lists what is there; `lakeferry destroy --stage {here.stage}` continues"
    message = f"stopped watching; {told}. What was deleted so far is gone"
    return CommandFailed("DESTROY-STOPPED", message, hint, {"under_way": under_way})
