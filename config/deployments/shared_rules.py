"""Rules that a deployment file and the construct library have in common.

They yield or return what is wrong and what to do. The caller adds where it is: a key of the file, or a prop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments import validation
from config.deployments.account_model import Network
from config.deployments.confluent_model import Tableflow
from config.deployments.schedules import has_only_one_run, runs_more_often
from config.exports import cron, windows
from config.exports.contract import Contract
from config.forms import find_zone_problem

Finding = tuple[str, str]
#: How many security groups a function can have (Lambda API reference, VpcConfig).
_MOST_SECURITY_GROUPS: Final = 5
#: How many subnets a function can have (Lambda API reference, VpcConfig).
_MOST_SUBNETS: Final = 16
#: Days for the run itself, which comes after the window's end.
_RUN_DAYS: Final = 1


def list_network_problems(network: Network, region: str | None) -> Iterator[Finding]:
    """Yield (key in [network], problem). Zones aren't compared with a region that is not known."""
    if not network.subnets:
        yield "subnets", "is empty. Name a private subnet at least, or remove [network]"
    if len(network.subnets) > _MOST_SUBNETS:
        yield (
            "subnets",
            f"there are {len(network.subnets)}, and a function can have {_MOST_SUBNETS}. Remove some",
        )
    for subnet, zone in network.subnets.items():
        if problem := validation.SUBNET.problem(subnet):
            yield f"subnets.{subnet}", problem
        if region and zone[:-1] != region:
            yield (
                f"subnets.{subnet}",
                f"is in {zone}, and the deployment is in {region}: name subnets of that region",
            )
    if not network.security_groups:
        yield (
            "security_groups",
            "is empty. Name a security group that lets its own members reach each other on all TCP ports",
        )
    if len(network.security_groups) > _MOST_SECURITY_GROUPS:
        yield (
            "security_groups",
            f"there are {len(network.security_groups)}, and a function can have {_MOST_SECURITY_GROUPS}. "
            "Remove some",
        )
    if len(set(network.security_groups)) < len(network.security_groups):
        yield "security_groups", "has one of them twice. Remove one"


def find_format_problem(table: Tableflow) -> str | None:
    if "DELTA" not in table.formats:
        return None
    return (
        "can't have DELTA: Glue, Athena, exports and Snowflake read the Iceberg table, and nothing that is "
        "deployed reads a Delta table. Leave formats out"
    )


def find_rows_problem(contract: Contract, table: Tableflow) -> str | None:
    """Return why Tableflow removes rows too early for the export."""
    if table.rows_days is None:
        return None
    length = windows.longest_days(contract.window.every)
    restated = contract.window.restate_for_days
    needed = length + restated + _RUN_DAYS
    if table.rows_days >= needed:
        return None
    return (
        f"must be at least {needed}: export {contract.name} publishes a window of {length} days again for "
        f"{restated} days after its end (window.restate_for_days in its contract), and rows that Tableflow "
        "has removed by then would be missing from the file"
    )


def find_schedule_problem(contract: Contract, expression: str, zone: str) -> str | None:
    """Return why the schedule is too rare for the export. One that can't be read is another mistake."""
    if cron.problem(expression) or find_zone_problem(zone):
        return None
    if not has_only_one_run(cron.parse(expression, zone), contract.window):
        return None
    return (
        f"starts {contract.name} only once before its next window ends, so a window that fails or has to "
        "wait for data comes a whole window late. Start it more often, for example with "
        f'"{runs_more_often(expression, contract.window)}"'
    )
