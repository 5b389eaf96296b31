"""The summary after a deployment: the outputs that users need, the estimated cost a day, and the next
commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from lakeferry.deployment import people
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.output import Output, find_program_name
from lakeferry.plan.cost import Estimate
from lakeferry.plan.render import format_day_cost

#: Outputs to show, in this order.
_SHOWN: Final = (
    "ClusterPage", "KafkaClusterId", "BootstrapServers",
    "SchemaRegistryUrl", "CatalogUri", "TableflowBucketName", "LakeBucketName",
    "AthenaWorkgroup", "SchemaName", "ViewsSchemaName", "PeopleRoleName", "WarehouseName", "ReaderName",
    "ReaderSecretArn", "DashboardPage",
)  # fmt: skip
#: The suffix of the output that each export has.
_FILES: Final = "Files"


@attrs.frozen
class StackOutput:
    stack: str
    name: str
    description: str
    value: str


def stack_outputs(deployed: Iterable[Stack]) -> list[StackOutput]:
    outputs: dict[str, StackOutput] = {}
    for stack in deployed:
        described = stack.template.get("Outputs", {})
        for name, value in stack.outputs.items():
            description = described.get(name, {}).get("Description") or name
            outputs[name] = StackOutput(stack.name, name, str(description), value)
    files = [name for name in outputs if name.endswith(_FILES)]
    return [outputs[name] for name in (*_SHOWN, *files) if name in outputs]


def show(
    output: Output, ctx: DeploymentContext, outputs: list[StackOutput], cost: Estimate, *, is_first: bool
) -> list[str]:
    """Print the summary and return the next commands."""
    output.print("\nOutputs:")
    output.table(["output", "value"], [[output_.description, output_.value] for output_ in outputs])
    people.tell(output, ctx, {output_.name: output_.value for output_ in outputs})
    console = f"https://{ctx.region}.console.aws.amazon.com/cloudformation/home?region={ctx.region}"
    output.print(f"Stacks: {console}#/stacks?filteringText={ctx.deployment.prefix}-")
    output.print(f"\nEstimated cost: {format_day_cost(cost)} at list prices, plus usage (`lakeferry cost`).")
    if is_first:
        if ctx.deployment.sns_exports:
            output.print(
                "AWS sent a link to every engineer and recipient. Until they confirm it, engineers get no "
                "alarms, and"
            )
            output.print("recipients no mails about files.")
        else:
            output.print("AWS sent a link to every engineer. Until they confirm it, they get no alarms.")
    waits_for_table = is_first and ctx.deployment.tables
    following = ["status --wait-for first-table" if waits_for_table else "status"]
    if ctx.deployment.exports:
        following.append(f"logs {ctx.deployment.exports[0].contract}")
    following.append("destroy --plan")
    commands = [f"{find_program_name()} {command} --stage {ctx.stage}" for command in following]
    output.print("Next:")
    for command in commands:
        output.print(f"  {command}")
    return commands
