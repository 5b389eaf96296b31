"""A plan as people read it, what may be lost first, and as programs do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lakeferry.output import Output
from lakeferry.plan.cost import HOURS, Estimate
from lakeferry.plan.difference import GRAVEST, Action, Change
from lakeferry.plan.durations import Phase
from lakeferry.plan.permissions import PermissionChange

#: Of things that are made, so many are named; the others are counted.
_NAMED: Final = 4
_DAY_HOURS: Final = 24
_ORDER: Final = (CONFLUENT, SNOWFLAKE, AWS)


@attrs.frozen
class Setting:
    """Of a stack itself: its outputs, tags or protection."""

    stack: str
    what: str
    before: str
    after: str


@attrs.frozen
class Plan:
    """`unwanted` are stacks that are deployed and that the file no longer wants, `deployed` are all that exist."""

    prefix: str
    account: str
    region: str
    changes: list[Change]
    settings: list[Setting]
    phases: list[Phase]
    cost: Estimate
    deployed: list[str]
    unwanted: list[str]
    permissions: list[PermissionChange] = attrs.field(factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.settings

    @property
    def losses(self) -> list[Change]:
        return _graver([change for change in self.changes if change.loses])

    @property
    def broadened(self) -> list[PermissionChange]:
        """In stacks that are deployed: of a new stack, everything is new."""
        return [one for one in self.permissions if one.broadens and one.stack in self.deployed]

    def counts(self, *worlds: str) -> Counter[Action]:
        return Counter(change.action for change in self.changes if not worlds or change.resource.world in worlds)


def show(output: Output, plan: Plan) -> None:
    output.print(f"{plan.prefix} in account {plan.account}, {plan.region}: {summary(plan)}")
    if plan.losses:
        output.print("WOULD BE LOST:", alarm=True)
        show_losses(output, plan)
    for world in _ORDER:
        _of_world(output, plan, world)
    _permissions(output, plan)
    for one in plan.settings:
        output.print(f"stack {one.stack}: {one.what}: {one.before} → {one.after}")
    for name in plan.unwanted:
        output.print(f"stack {name} stays as it is: the file no longer wants it, and deploying removes no stack")
    if not plan.is_empty:
        _durations(output, plan.phases)
    _cost(output, plan.cost)


def summary(plan: Plan) -> str:
    if plan.is_empty:
        return "nothing would change"
    counts = plan.counts()
    counted = [f"{counts[action]} {action}" for action in reversed(GRAVEST) if counts[action]]
    return ", ".join(counted) or "only outputs, tags or protection of stacks would change"


def document(plan: Plan) -> dict[str, Any]:
    changes = [_as_document(change) for change in plan.changes]
    return {
        "account": plan.account,
        "region": plan.region,
        "changes": changes,
        "settings": [attrs.asdict(one) for one in plan.settings],
        "losses": [_as_document(change) for change in plan.losses],
        "permissions": [attrs.asdict(one) for one in plan.permissions],
        "unwanted": plan.unwanted,
        "phases": [attrs.asdict(phase) for phase in plan.phases],
        "cost": {"currency": "USD", "low": round(plan.cost.low, 2), "high": round(plan.cost.high, 2)},
    }


def a_day(cost: Estimate) -> str:
    low, high = (amount / HOURS * _DAY_HOURS for amount in (cost.low, cost.high))
    return f"{low:,.0f} to {high:,.0f} USD a day"


def show_losses(output: Output, plan: Plan) -> None:
    for change in plan.losses:
        where = f"{change.resource.world} {change.resource.what} {change.resource.name}"
        output.print(f"  {where} would be {change.action}, and with it {change.loses}", alarm=True)
        for why in change.why:
            output.print(f"      because {why}")
        if not change.why:
            output.print("      because the file no longer wants it")


def show_permissions(output: Output, changes: Iterable[PermissionChange]) -> None:
    """Whole: a permission that isn't shown can't be approved."""
    for one in changes:
        more = " allows more" if one.broadens else ""
        output.print(f"  {one.type.removeprefix('AWS::')} {one.logical_id} in {one.stack}{more}", alarm=one.broadens)
        for line in one.added:
            output.print(f"      + {line}")
        for line in one.removed:
            output.print(f"      - {line}")


def _permissions(output: Output, plan: Plan) -> None:
    shown = [one for one in plan.permissions if output.verbose or one.stack in plan.deployed]
    if shown:
        output.print("\nPermissions:")
        show_permissions(output, shown)
    if new := len(plan.permissions) - len(shown):
        output.print(f"\nPermissions: {new} policies in new stacks (each with --verbose)")


def _of_world(output: Output, plan: Plan, world: str) -> None:
    mine = [change for change in plan.changes if change.resource.world == world]
    if not mine:
        return
    counts = plan.counts(world)
    output.print(f"\n{world}: {', '.join(f'{counts[action]} {action}' for action in GRAVEST if counts[action])}")
    shown = mine if world != AWS or output.verbose else [change for change in mine if change.action is not Action.CREATE]
    if shown:
        output.table(["would be", "what", "which", "why"], list(_rows(shown, output.verbose)))
    if len(shown) < len(mine):
        made = Counter(change.resource.stack for change in mine if change.action is Action.CREATE)
        counted = ", ".join(f"{count} in {stack}" for stack, count in made.items())
        output.print(f"made: {counted} (each with --verbose)")


def _rows(changes: Iterable[Change], verbose: bool) -> Iterator[list[str]]:
    """One for each sort of thing that the same happens to for the same reasons."""
    groups: dict[tuple[Action, str, str], list[str]] = {}
    for change in _graver(changes):
        why = "; ".join(map(str, change.why))
        groups.setdefault((change.action, change.resource.what, why), []).append(change.resource.name)
    for (action, what, why), names in groups.items():
        shown = names if verbose or action is not Action.CREATE else names[:_NAMED]
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        yield [action.upper() if action.loses else str(action), what, ", ".join(shown) + more, why]


def _graver(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: GRAVEST.index(change.action))


def _durations(output: Output, phases: list[Phase]) -> None:
    if not phases:
        return
    low, high = (sum(getattr(phase, name) for phase in phases) for name in ("low", "high"))
    output.print(f"\nIt takes about {low:.0f} to {high:.0f} minutes:")
    for phase in phases:
        output.print(f"  {phase.stack}  {phase}")


def _cost(output: Output, cost: Estimate) -> None:
    output.print(
        f"\nWhile it stands: {cost.low:,.0f} to {cost.high:,.0f} USD a month, {a_day(cost)}; `lakeferry cost` has the lines"
    )


def _as_document(change: Change) -> dict[str, Any]:
    resource = change.resource
    return {
        "stack": resource.stack,
        "world": resource.world,
        "what": resource.kind or resource.type,
        "logical_id": resource.logical_id,
        "name": resource.name,
        "action": str(change.action),
        "why": [attrs.asdict(why) | {"does": str(why.does)} for why in change.why],
        "loses": change.loses,
    }
