"""Prices of Tableflow and of connectors, which Confluent publishes in no form that programs can read: those
that the deployment file gives, or those of Confluent's own bills.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import attrs

from config.deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lambdas.confluent.client import Confluent

#: The type of a bill's line (docs.confluent.io, "Billing Dimensions in Confluent Cloud"), by the key in
#: `[prices]`.
LINE_TYPES: Final = {
    "tableflow_topic_hour": "TABLEFLOW_NUM_TOPICS",
    "tableflow_gb": "TABLEFLOW_DATA_PROCESSED",
    "connector_task_hour": "CONNECT_NUM_TASKS",
    "connector_gb": "CONNECT_THROUGHPUT",
}
_COSTS: Final = "/billing/v1/costs"
#: The days of bills that are read. Confluent's API takes a month at most.
_DAYS: Final = 30


@attrs.frozen
class FoundPrice:
    """A price in USD from `low` to `high`. `source` says where it was found."""

    low: float
    high: float
    source: str


def read_given(deployment: Deployment) -> dict[str, FoundPrice]:
    """Return the prices that the deployment file gives, by their keys."""
    found = {}
    for key in LINE_TYPES:
        price = getattr(deployment.prices, key)
        if price is not None:
            found[key] = FoundPrice(float(price), float(price), f"prices.{key} in the deployment file")
    return found


def read_billed(confluent: Confluent, today: date) -> dict[str, FoundPrice]:
    """Return what Confluent has billed for a unit in the last days, after discounts.

    Raises LakeferryError if the key's owner may not read bills.
    """
    period = {"start_date": str(today - timedelta(days=_DAYS)), "end_date": str(today)}
    lines = confluent.cloud.pages(_COSTS, **period)
    return find_prices(lines, f"Confluent's bills of {period['start_date']} to {period['end_date']}")


def find_prices(lines: Iterable[Mapping[str, Any]], source: str) -> dict[str, FoundPrice]:
    """Return amount by quantity of the lines of each type. Lines without a quantity say nothing."""
    keys = {line_type: key for key, line_type in LINE_TYPES.items()}
    prices: dict[str, list[float]] = {}
    units: dict[str, set[str]] = {}
    for line in lines:
        key = keys.get(str(line.get("line_type")))
        quantity = float(line.get("quantity") or 0)
        if key and quantity > 0:
            prices.setdefault(key, []).append(float(line.get("amount") or 0) / quantity)
            units.setdefault(key, set()).add(str(line.get("unit") or "no unit"))
    found = {}
    for key, amounts in prices.items():
        unit = ", ".join(sorted(units[key]))
        found[key] = FoundPrice(min(amounts), max(amounts), f"{source}, per {unit}")
    return found


def read_prices(ctx: DeploymentContext, *, from_bills: bool) -> dict[str, FoundPrice]:
    """Return the prices that are known: those of the deployment file first. Raises CommandFailed."""
    given = read_given(ctx.deployment)
    if not from_bills:
        return given
    if ctx.deployment.confluent is None:
        message = "the deployment has no [confluent], so no key that could read Confluent's bills"
        raise CommandFailed("USAGE", message, "Leave out --from-bills")
    today = datetime.fromtimestamp(ctx.clock.time(), UTC).date()
    return read_billed(ctx.confluent(), today) | given
