"""`lakeferry cost`."""

from __future__ import annotations

from typing import Any

import attrs

from lakeferry.cli.output import Voice
from lakeferry.deployment.deployment_file import plan_of
from lakeferry.plan import cost
from lakeferry.plan.cost import Estimate


def told(voice: Voice, stage: str) -> dict[str, Any]:
    """Raises CommandFailed with every mistake of the file."""
    plan = plan_of(stage)
    found = cost.estimate(plan)
    voice.result(f"{plan.deployment.prefix}, USD a month while it stands, at list prices:")
    voice.table(["what", "from", "to", "reckoned"], rows(found))
    voice.result("By use, in no sum above:")
    voice.table(["what", "from", "to"], rates(found))
    voice.result("Left out:")
    for each in cost.LEFT_OUT:
        voice.result(f"  - {each}")
    days = sorted(price.as_of for price in found.used)
    voice.result(f"Prices were read between {days[0]} and {days[-1]}: lakeferry/plan/prices.toml has each with its source.")
    sums = {"low": round(found.low, 2), "high": round(found.high, 2)}
    return {"stage": stage, "currency": "USD", "month": sums, **attrs.asdict(found), "left_out": list(cost.LEFT_OUT)}


def rows(found: Estimate) -> list[list[str]]:
    lines = [[line.what, _usd(line.low), _usd(line.high), line.why] for line in found.lines]
    return [*lines, ["all of these", _usd(found.low), _usd(found.high), ""]]


def rates(found: Estimate) -> list[list[str]]:
    return [[rate.what, _usd(rate.low), _usd(rate.high)] for rate in found.rates]


def _usd(amount: float) -> str:
    return f"{amount:,.2f}"
