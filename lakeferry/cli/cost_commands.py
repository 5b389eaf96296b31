"""`lakeferry cost`."""

from __future__ import annotations

from typing import Any

import attrs

from lakeferry.deployment.context import load_deployment
from lakeferry.output import Output
from lakeferry.plan import cost
from lakeferry.plan.cost import Estimate


def told(output: Output, stage: str) -> dict[str, Any]:
    """Raises CommandFailed with every mistake of the file."""
    plan = load_deployment(stage)
    found = cost.estimate(plan)
    output.print(f"{plan.deployment.prefix}, USD a month while it stands, at list prices:")
    output.table(["what", "from", "to", "reckoned"], rows(found))
    output.print("By use, in no sum above:")
    output.table(["what", "from", "to"], rates(found))
    output.print("Left out:")
    for each in cost.LEFT_OUT:
        output.print(f"  - {each}")
    days = sorted(price.as_of for price in found.used)
    output.print(f"Prices were read between {days[0]} and {days[-1]}: lakeferry/plan/prices.toml has each with its source.")
    sums = {"low": round(found.low, 2), "high": round(found.high, 2)}
    return {"stage": stage, "currency": "USD", "month": sums, **attrs.asdict(found), "left_out": list(cost.LEFT_OUT)}


def rows(found: Estimate) -> list[list[str]]:
    lines = [[line.what, _usd(line.low), _usd(line.high), line.why] for line in found.lines]
    return [*lines, ["all of these", _usd(found.low), _usd(found.high), ""]]


def rates(found: Estimate) -> list[list[str]]:
    return [[rate.what, _usd(rate.low), _usd(rate.high)] for rate in found.rates]


def _usd(amount: float) -> str:
    return f"{amount:,.2f}"
