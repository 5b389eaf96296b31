"""Takes a whole deployment down: stacks, then what they left, then a last look at all three worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from lakeferry import inventory
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory import AWS, ORPHAN, Item, Verdict, destroy_leftovers, destroy_stacks, stacks
from lakeferry.inventory.destroy_stacks import Watch
from lakeferry.inventory.stacks import Stack
from lakeferry.output import Reporter
from lambdas import contract

#: Kinds that hold data, and stay where their stack was deployed so.
DATA: Final = ("bucket", "glue_database", "glue_table", "pseudonymisation_secret", "pseudonymisation_kms_key")
_IN_GLUE: Final = ("glue_database", "glue_table")
_RETAINED: Final = ("Retain", "RetainExceptOnCreate")
_CLUSTER: Final = contract.resource_type("kafka_cluster")
_PURGED: Final = ("purge:bucket:", "purge:glue_database:")
#: What Lambda calls the log group of a function.
_OF_FUNCTION: Final = "/aws/lambda/"
#: How often what is left is removed, or waited for: AWS goes on listing some things for a minute after they are gone.
_ROUNDS: Final = 6
_PAUSE: Final = 20.0


@attrs.frozen
class Policy:
    """What deleting the stacks does with data, as their deployed templates say it. `deleted` and `retained` are physical ids."""

    stacks: tuple[Stack, ...] = ()
    deleted: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()
    protects_cluster: bool = False

    def keeps(self, item: Item) -> bool | None:
        """None for what no stack decides about: then the deployment file does."""
        if item.kind not in DATA:
            return None
        id = item.where[0] if item.kind == "glue_table" else item.id
        if id in self.deleted:
            return False
        # A database of Tableflow's is deleted only by the resource that purges it.
        of_tableflow = item.kind in _IN_GLUE and any(stack.name == item.whose for stack in self.stacks)
        return True if id in self.retained or of_tableflow else None


@attrs.frozen
class Planned:
    """`goes` is in order. `stays` says of each thing why. `differing` is data of which the deployment file says otherwise."""

    goes: list[Item]
    stays: list[Item]
    policy: Policy
    differing: list[Item]


@attrs.frozen
class Done:
    """`seconds` is how long each stack took, `removed` what was removed by itself, `items` the last inventory."""

    seconds: dict[str, float]
    removed: list[Item]
    items: list[Item]
    reasons: list[str]


def read_policy(ctx: DeploymentContext) -> Policy:
    """Raises CommandFailed."""
    deleted, retained, protects_cluster = set[str](), set[str](), False
    with translate_aws_errors("asking for the stacks"):
        found = tuple(stack for name in stacks.names(ctx) if (stack := stacks.one(ctx, name)))
        for stack in found:
            resources: Mapping[str, Any] = deployed.template(ctx, stack.id).get("Resources", {}) if stack.resources else {}
            for resource in stack.resources:
                if resource.status in stacks.GIVEN_UP:
                    continue
                deleted.update(
                    resource.physical_id.removeprefix(each) for each in _PURGED if resource.physical_id.startswith(each)
                )
                body = resources.get(resource.logical_id, {})
                (retained if body.get("DeletionPolicy") in _RETAINED else deleted).add(resource.physical_id)
                protection = str(body.get("Properties", {}).get("deletion_protection", ""))
                protects_cluster |= resource.type == _CLUSTER and protection.lower() == "true"
    return Policy(found, frozenset(deleted), frozenset(retained), protects_cluster)


def plan(ctx: DeploymentContext, items: Iterable[Item]) -> Planned:
    """What the stacks that are deployed will do, which an edited deployment file doesn't change. Raises CommandFailed."""
    policy = read_policy(ctx)
    goes, stays, differing = [], [], []
    for item in items:
        keeps = policy.keeps(item)
        if keeps is not None and keeps != ctx.deployment.keeps_data:
            differing.append(item)
        if keeps:
            stays.append(attrs.evolve(item, verdict=Verdict.KEPT, why='its stack was deployed with on_destroy = "keep"'))
        elif keeps is False and item.verdict is Verdict.KEPT:
            goes.append(attrs.evolve(item, verdict=Verdict.LEFT_OVER, why='its stack was deployed with on_destroy = "delete"'))
        elif item.verdict in (Verdict.KEPT, Verdict.NOT_ASKED):
            stays.append(item)
        else:
            goes.append(item)
    return Planned(sorted(goes, key=lambda item: _place(ctx, item)), stays, policy, differing)


def require_possible(ctx: DeploymentContext, planned: Planned) -> None:
    """Raises CommandFailed where something says that nothing shall be destroyed, or where it could only be begun."""
    standing = list(planned.policy.stacks)
    _require_unprotected(ctx, planned.policy)
    _require_agreement(ctx, planned)
    if busy := [stack for stack in standing if stack.is_under_way and stack.status != "DELETE_IN_PROGRESS"]:
        told = ", ".join(f"{stack.name} is {stack.status}" for stack in busy)
        raise CommandFailed("STACK-BUSY", told)
    deaf = [item for item in planned.stays if item.verdict is Verdict.NOT_ASKED and item.world != AWS and not item.kind]
    if deaf and standing:
        told = "; ".join(f"{item.world} can't be asked ({item.why})" for item in deaf)
        raise CommandFailed("VENDOR-REFUSED", told)


def _require_unprotected(ctx: DeploymentContext, policy: Policy) -> None:
    file, names = f"deployments/{ctx.stage}.toml", [stack.name for stack in policy.stacks if stack.is_protected]
    if names:
        lift = "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"
        hint = (
            f'To lose the data: set on_destroy = "delete" in {file} and deploy, then destroy. To keep it and remove the rest: '
            f"`{lift} NAME` for each of these, then destroy"
        )
        raise CommandFailed("DESTROY-PROTECTED", f"protected against deletion: {', '.join(names)}", hint)
    if policy.protects_cluster or (policy.stacks and ctx.deployment.confluent.deletion_protection):
        hint = f"Set confluent.deletion_protection = false in {file} and deploy, then destroy"
        raise CommandFailed("DESTROY-PROTECTED", "the Kafka cluster is protected against deletion", hint)


def _require_agreement(ctx: DeploymentContext, planned: Planned) -> None:
    """The file says what its owner wants, and the deployed stacks do what they were deployed with."""
    if not planned.differing:
        return
    wanted, does = ("keep", "delete") if ctx.deployment.keeps_data else ("delete", "keep")
    names = ", ".join(f"{item.kind} {item.name}" for item in planned.differing)
    told = f'the file says on_destroy = "{wanted}", and what is deployed would {does}: {names}'
    hint = (
        f"Set deployment.on_destroy in deployments/{ctx.stage}.toml to what you want, "
        f"`lakeferry deploy --stage {ctx.stage}`, then destroy"
    )
    raise CommandFailed("DESTROY-DIFFERS", told, hint, [attrs.asdict(item) for item in planned.differing])


def destroy(ctx: DeploymentContext, planned: Planned, *, say: Reporter, report: Reporter) -> Done:
    """Removes what is planned to go and nothing else, also where more comes to light meanwhile. Raises CommandFailed."""
    shown = {(item.world, item.kind, item.id) for item in planned.goes}
    functions = {item.name for item in planned.goes if item.kind == "function"}

    def is_shown(item: Item) -> bool:
        """Lambda makes a function's log group when the function first runs, which may be during this deletion."""
        own_log = item.kind == "log_group" and item.name.removeprefix(_OF_FUNCTION) in functions
        return own_log or (item.world, item.kind, item.id) in shown

    with translate_aws_errors("asking for the stacks"):
        watch = Watch(ctx, [item.id for item in planned.goes if item.kind == stacks.KIND], say, report)
        reasons = destroy_stacks.delete(watch)
    removed: list[Item] = []
    for round_ in range(_ROUNDS):
        items = [item for item in inventory.take(ctx) if item.verdict is Verdict.NOT_ASKED or is_shown(item)]
        left, standing = _by_themselves(items), _standing(items)
        if not left and not standing:
            break
        if round_:
            ctx.clock.sleep(_PAUSE)
        outcome = destroy_leftovers.remove(ctx, left, report)
        removed += [item for item in outcome.removed if item not in removed]
        reasons = [f"{item.kind} {item.name}: {why}" for item, why in outcome.stuck]
        with translate_aws_errors("deleting stacks"):
            reasons += destroy_stacks.delete(watch, force=round_ > 0)
        if outcome.stuck and not outcome.removed and not standing:
            break
    return Done(watch.gone, removed, inventory.take(ctx), reasons)


def _by_themselves(items: list[Item]) -> list[Item]:
    """What a stack in AWS has, its own deletion removes: functions have to be there as long as it asks them."""
    return [item for item in destroy_leftovers.removable(items) if item.world != AWS or item.whose == ORPHAN]


def _standing(items: list[Item]) -> bool:
    return any(item.kind == stacks.KIND and item.verdict is not Verdict.KEPT for item in items)


def _place(ctx: DeploymentContext, item: Item) -> tuple[int, int]:
    """Stacks go in the order opposite to that of deploying, each with what is its own; then orphans."""
    names = stacks.names(ctx)
    stack = len(names) - names.index(item.whose) if item.whose in names else len(names) + 1
    if item.kind == stacks.KIND:
        return stack, -1
    return stack, destroy_leftovers.ORDER.index(item.kind) if item.kind in destroy_leftovers.ORDER else 0
