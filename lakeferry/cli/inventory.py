"""`lakeferry inventory`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed
from lakeferry.output import Output

if TYPE_CHECKING:
    from lakeferry.deployment.context import DeploymentContext
    from lakeferry.inventory import Item

_COLUMNS: Final = ["world", "kind", "name", "whose", "verdict", "why"]
app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "account": "The AWS account.",
        "region": "The AWS region.",
        "items": "Each thing: world, kind, name, id, whose (a stack, `orphan`, or `-`), verdict (belongs, kept, left over, "
        "not asked), why, where (ids of what it lies in).",
    },
)
def inventory(call: CommandContext) -> Mapping[str, Any]:
    """List everything of a deployment in AWS, Confluent Cloud and Snowflake. Fails if something is left over."""
    from lakeferry.deployment.context import open_context
    from lakeferry.inventory import take

    output = call.output
    with open_context(call.stage) as ctx:
        with output.step(f"Listing {ctx.deployment.prefix}"):
            items = take(ctx)
        show(output, ctx, items)
        document = {"stage": call.stage, "account": ctx.account, "region": ctx.region, "items": documents(items)}
        require_nothing_left(items, document)
        return document


def show(output: Output, ctx: DeploymentContext, items: Iterable[Item]) -> None:
    """Count what belongs to a stack, unless every row is wanted, and list everything else."""
    from lakeferry.inventory import Verdict

    listed = list(items)
    output.print(f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}:")
    managed = [item for item in listed if item.verdict is Verdict.MANAGED]
    if managed and not output.verbose:
        counted = Counter((item.world, item.whose) for item in managed)
        output.table(["world", "stack", "things"], [[*key, str(count)] for key, count in counted.items()])
    rows = [row(item) for item in listed if output.verbose or item.verdict is not Verdict.MANAGED]
    if rows:
        output.table(_COLUMNS, rows)
    if not listed:
        output.print("nothing")


def require_nothing_left(items: Iterable[Item], details: Any) -> None:
    """Raise CommandFailed if something is left over, or if a vendor could not be asked."""
    from lakeferry.inventory import Verdict, problems

    found = problems(list(items))
    if left := [item for item in found if item.verdict is Verdict.ORPHANED]:
        message = f"{len(left)} left over: {', '.join(f'{item.kind} {item.name}' for item in left[:5])}{' …' if left[5:] else ''}"
        raise CommandFailed("LEFT-OVER", message, details=details)
    if found:
        message = "; ".join(f"{item.world}{f' ({item.kind})' if item.kind else ''}: {item.why}" for item in found)
        raise CommandFailed("INCOMPLETE", f"not everything could be listed: {message}", details=details)


def row(item: Item) -> list[str]:
    place = f" in {' / '.join(item.where)}" if item.where else ""
    return [item.world, item.kind, f"{item.name}{place}", item.whose, str(item.verdict), item.why]


def documents(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [{**attrs.asdict(item), "where": list(item.where)} for item in items]
