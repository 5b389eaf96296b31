"""Takes a whole deployment down: stacks, then what they left, then a last look at all three worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from lakeferry import destroy_leftovers, destroy_stacks, inventory
from lakeferry.console import FAILED, KEPT_BACK, LATER, CommandFailed
from lakeferry.destroy_stacks import Cdk, Watch
from lakeferry.ground import Ground, aws_told
from lakeferry.inventory import AWS, ORPHAN, Item, Verdict, stacks
from lakeferry.inventory.stacks import Stack

#: Kinds that hold data, and stay where the deployment file says so.
DATA: Final = ("bucket", "glue_database", "glue_table", "pseudonymisation_secret", "pseudonymisation_kms_key")
_KEEP: Final = 'on_destroy = "keep" in the deployment file'
#: How often what is left is removed, or waited for: AWS goes on listing some things for a minute after they are gone.
_ROUNDS: Final = 6
_PAUSE: Final = 20.0

Tell = Callable[[str], object]


@attrs.frozen
class Planned:
    """`goes` is in order. `stays` says of each thing why."""

    goes: list[Item]
    stays: list[Item]


@attrs.frozen
class Done:
    """`seconds` is how long each stack took, `removed` what was removed by itself, `items` the last inventory."""

    seconds: dict[str, float]
    removed: list[Item]
    items: list[Item]
    reasons: list[str]


def plan(here: Ground, items: Iterable[Item]) -> Planned:
    goes, stays = [], []
    for item in items:
        if item.verdict in (Verdict.KEPT, Verdict.NOT_ASKED):
            stays.append(item)
        elif item.kind in DATA and here.deployment.keeps_data:
            stays.append(attrs.evolve(item, verdict=Verdict.KEPT, why=_KEEP))
        else:
            goes.append(item)
    return Planned(sorted(goes, key=lambda item: _place(here, item)), stays)


def require_possible(here: Ground, items: Iterable[Item]) -> None:
    """Raises CommandFailed where something says that nothing shall be destroyed, or where it could only be begun."""
    with aws_told("asking for the stacks"):
        standing = [stack for name in stacks.names(here) if (stack := stacks.one(here, name, resources=False))]
    _require_unprotected(here, standing)
    if busy := [stack for stack in standing if stack.is_under_way and stack.status != "DELETE_IN_PROGRESS"]:
        told = ", ".join(f"{stack.name} is {stack.status}" for stack in busy)
        raise CommandFailed(LATER, "STACK-BUSY", told, "Wait until it is done, or cancel it, then run the command again")
    deaf = [item for item in items if item.verdict is Verdict.NOT_ASKED and item.world != AWS and not item.kind]
    if deaf and standing:
        told = "; ".join(f"{item.world} can't be asked ({item.why})" for item in deaf)
        hint = "Mend that first: the stacks could not remove what they have made there, and would stop half way"
        raise CommandFailed(FAILED, "WORLD-SILENT", told, hint)


def _require_unprotected(here: Ground, standing: list[Stack]) -> None:
    file, names = f"deployments/{here.stage}.toml", [stack.name for stack in standing if stack.is_protected]
    if names:
        lift = "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"
        hint = (
            f'To lose the data: set on_destroy = "delete" in {file} and deploy, then destroy. To keep it and remove the rest: '
            f"`{lift} NAME` for each of these, then destroy"
        )
        raise CommandFailed(KEPT_BACK, "DESTROY-PROTECTED", f"protected against deletion: {', '.join(names)}", hint)
    if standing and here.deployment.confluent.deletion_protection:
        hint = f"Set deletion_protection = false in {file} and deploy, then destroy"
        raise CommandFailed(KEPT_BACK, "DESTROY-PROTECTED", "the Kafka cluster is protected against deletion", hint)


def destroy(here: Ground, *, cdk: Cdk, say: Tell, tell: Tell) -> Done:
    """Whether or not anything is there. What would not go is in the last inventory. Raises CommandFailed."""
    with aws_told("asking for the stacks"):
        watch = Watch(here, say, tell)
        reasons = _take_down(watch, cdk)
    removed: list[Item] = []
    for round_ in range(_ROUNDS):
        items = inventory.take(here)
        left, standing = _by_themselves(items), _standing(items)
        if not left and not standing:
            break
        if round_:
            here.clock.sleep(_PAUSE)
        outcome = destroy_leftovers.remove(here, left, tell)
        removed += [item for item in outcome.removed if item not in removed]
        reasons = [f"{item.kind} {item.name}: {why}" for item, why in outcome.stuck]
        with aws_told("deleting stacks"):
            reasons += destroy_stacks.by_cloudformation(watch, force=round_ > 0)
        if outcome.stuck and not outcome.removed and not standing:
            break
    return Done(watch.gone, removed, inventory.take(here), reasons)


def _by_themselves(items: list[Item]) -> list[Item]:
    """What a stack in AWS has, its own deletion removes: functions have to be there as long as it asks them."""
    return [item for item in destroy_leftovers.removable(items) if item.world != AWS or item.whose == ORPHAN]


def _take_down(watch: Watch, cdk: Cdk) -> list[str]:
    if not watch.is_needed:
        return []
    if wrong := cdk(watch):
        watch.say(f"  {wrong}")
    watch.look()
    return destroy_stacks.by_cloudformation(watch)


def _standing(items: list[Item]) -> bool:
    return any(item.kind == stacks.KIND and item.verdict is not Verdict.KEPT for item in items)


def _place(here: Ground, item: Item) -> tuple[int, int]:
    """Stacks go in the order opposite to that of deploying, each with what is its own; then orphans."""
    names = stacks.names(here)
    stack = len(names) - names.index(item.whose) if item.whose in names else len(names) + 1
    if item.kind == stacks.KIND:
        return stack, -1
    return stack, destroy_leftovers.ORDER.index(item.kind) if item.kind in destroy_leftovers.ORDER else 0
