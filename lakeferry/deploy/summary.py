"""What exists after a deployment: addresses and names that people need, what a day of it costs, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.output import Output, program_name
from lakeferry.plan.cost import Estimate
from lakeferry.plan.render import a_day

#: Outputs that people look for, in this order.
_SHOWN: Final = (
    "ClusterPage", "KafkaClusterId", "BootstrapServers",
    "SchemaRegistryUrl", "CatalogUri", "TableflowBucketName", "LakeBucketName",
    "AthenaWorkgroup", "SchemaName", "WarehouseName", "ReaderName", "ReaderSecretArn", "DashboardPage",
)  # fmt: skip
#: Of each export.
_FILES: Final = "Files"


@attrs.frozen
class StackOutput:
    stack: str
    name: str
    what: str
    value: str


def stack_outputs(standing: Iterable[Stack]) -> list[StackOutput]:
    found = {each.name: each for stack in standing for each in _of_stack(stack)}
    files = [name for name in found if name.endswith(_FILES)]
    return [found[name] for name in (*_SHOWN, *files) if name in found]


def show(output: Output, ctx: DeploymentContext, exist: list[StackOutput], cost: Estimate, *, is_first: bool) -> list[str]:
    """The commands that come next."""
    output.print("\nWhat exists now:")
    output.table(["what", "where"], [[each.what, each.value] for each in exist])
    output.print(f"Stacks: {_console(ctx)}")
    output.print(f"\nLeft on, it costs {a_day(cost)} at list prices, beside what use costs (`lakeferry cost`).")
    if is_first and any(export.recipients for export in ctx.deployment.exports):
        output.print("Every recipient has got a mail from AWS with a link to confirm; without that no mail about files comes.")
    commands = [f"{program_name()} {words} --stage {ctx.stage}" for words in _next(ctx, is_first=is_first)]
    output.print("Next:")
    for each in commands:
        output.print(f"  {each}")
    return commands


def _next(ctx: DeploymentContext, *, is_first: bool) -> Iterator[str]:
    yield "status --wait-for first-table" if is_first and ctx.deployment.tables else "status"
    if ctx.deployment.exports:
        yield f"logs {ctx.deployment.exports[0].contract}"
    yield "destroy --plan"


def _of_stack(stack: Stack) -> Iterator[StackOutput]:
    described: dict[str, Any] = dict(stack.template.get("Outputs", {}))
    for name, value in stack.outputs.items():
        yield StackOutput(stack.name, name, str(described.get(name, {}).get("Description") or name), value)


def _console(ctx: DeploymentContext) -> str:
    region = ctx.region
    beginning = f"https://{region}.console.aws.amazon.com/cloudformation/home?region={region}#/stacks"
    return f"{beginning}?filteringText={ctx.deployment.prefix}-"
