"""`lakeferry inventory`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import attrs

from lakeferry import inventory
from lakeferry.deployment.context import DeploymentContext, open_context
from lakeferry.errors import CommandFailed
from lakeferry.inventory import Item, Verdict
from lakeferry.output import Output

_COLUMNS: Final = ["world", "kind", "name", "whose", "verdict", "why"]


def told(output: Output, stage: str) -> dict[str, Any]:
    """Raises CommandFailed where something is left over, or where a world can't be asked."""
    with open_context(stage) as ctx:
        with output.step(f"Looking for what there is of {ctx.deployment.prefix}"):
            items = inventory.take(ctx)
        show(output, ctx, items)
        document = {"stage": stage, "account": ctx.account, "region": ctx.region, "items": documents(items)}
        require_nothing_left(items, document)
        return document


def show(output: Output, ctx: DeploymentContext, items: Iterable[Item]) -> None:
    """What stands is counted, unless every row is wanted; all else is told row by row."""
    listed = list(items)
    output.print(f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}:")
    standing = [item for item in listed if item.verdict is Verdict.BELONGS]
    if standing and not output.verbose:
        counted = Counter((item.world, item.whose) for item in standing)
        output.table(["world", "stack", "things"], [[*key, str(count)] for key, count in counted.items()])
    rows = [row(item) for item in listed if output.verbose or item.verdict is not Verdict.BELONGS]
    if rows:
        output.table(_COLUMNS, rows)
    if not listed:
        output.print("nothing")


def require_nothing_left(items: Iterable[Item], details: Any) -> None:
    """Raises CommandFailed."""
    problems = inventory.problems(list(items))
    if left := [item for item in problems if item.verdict is Verdict.LEFT_OVER]:
        told = f"{len(left)} left over: {', '.join(f'{item.kind} {item.name}' for item in left[:5])}{' …' if left[5:] else ''}"
        raise CommandFailed("LEFT-OVER", told, details=details)
    if problems:
        told = "; ".join(f"{item.world}{f' ({item.kind})' if item.kind else ''}: {item.why}" for item in problems)
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {told}", details=details)


def row(item: Item) -> list[str]:
    place = f" in {' / '.join(item.where)}" if item.where else ""
    return [item.world, item.kind, f"{item.name}{place}", item.whose, str(item.verdict), item.why]


def documents(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [{**attrs.asdict(item), "where": list(item.where)} for item in items]
