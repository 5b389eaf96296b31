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

_COLUMNS: Final = ["system", "kind", "name", "owner", "verdict", "why"]
app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "account": "The AWS account.",
        "region": "The AWS region.",
        "items": (
            "Each object: system (AWS, Confluent, Snowflake), kind, name, id, owner (a stack, `orphan`, or "
            "`-`), verdict (managed, retained, orphaned, unknown), why, parents (ids of its containers)."
        ),
    },
)
def inventory(call: CommandContext) -> Mapping[str, Any]:
    """List the objects of a deployment in AWS, Confluent Cloud and Snowflake. Fails if one is orphaned."""
    from lakeferry.deployment.context import open_context
    from lakeferry.inventory import collect

    output = call.output
    with open_context(call.stage) as ctx:
        with output.step(f"Listing the objects of {ctx.deployment.prefix}"):
            items = collect(ctx)
        show(output, ctx, items)
        document = {
            "stage": call.stage,
            "account": ctx.account,
            "region": ctx.region,
            "items": build_documents(items),
        }
        require_nothing_left(items, document)
        return document


def show(output: Output, ctx: DeploymentContext, items: Iterable[Item]) -> None:
    """List the objects. Without --verbose, objects that belong to stacks are only counted."""
    from lakeferry.inventory import Verdict

    listed = list(items)
    output.print(f"{ctx.deployment.prefix} in account {ctx.account}, {ctx.region}:")
    managed = [item for item in listed if item.verdict is Verdict.MANAGED]
    if managed and not output.verbose:
        counted = Counter((item.system, item.owner) for item in managed)
        output.table(["system", "stack", "objects"], [[*key, str(count)] for key, count in counted.items()])
    rows = [build_row(item) for item in listed if output.verbose or item.verdict is not Verdict.MANAGED]
    if rows:
        output.table(_COLUMNS, rows)
    if not listed:
        output.print("nothing")


def require_nothing_left(items: Iterable[Item], details: Any) -> None:
    """Raise CommandFailed if an object is orphaned, or if a system could not be listed."""
    from lakeferry.inventory import Verdict, problems

    unresolved = problems(list(items))
    if orphans := [item for item in unresolved if item.verdict is Verdict.ORPHANED]:
        names = ", ".join(f"{item.kind} {item.name}" for item in orphans[:5])
        more = " …" if orphans[5:] else ""
        raise CommandFailed("LEFT-OVER", f"{len(orphans)} orphaned: {names}{more}", details=details)
    if unresolved:
        reasons = []
        for item in unresolved:
            place = f"{item.system} ({item.kind})" if item.kind else item.system
            reasons.append(f"{place}: {item.why}")
        message = f"not everything could be listed: {'; '.join(reasons)}"
        raise CommandFailed("INCOMPLETE", message, details=details)


def build_row(item: Item) -> list[str]:
    from lakeferry.inventory import ORPHAN, Verdict
    from lakeferry.inventory.model import NOT_OURS

    within = f" in {' / '.join(item.parents)}" if item.parents else ""
    owner = NOT_OURS if item.owner == ORPHAN and item.verdict is not Verdict.ORPHANED else item.owner
    return [item.system, item.kind, f"{item.name}{within}", owner, str(item.verdict), item.why]


def build_documents(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [{**attrs.asdict(item), "parents": list(item.parents)} for item in items]
