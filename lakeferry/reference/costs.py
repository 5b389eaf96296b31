"""costs.md: what the shipped deployment files cost a month, and every price with its day and source."""

from __future__ import annotations

from lakeferry import cost, cost_commands, prices
from lakeferry.plans import plan_of
from lakeferry.reference import markdown
from lakeferry.reference.markdown import code

TITLE = "Costs"
_STAGES = ("dev", "prod")
_INTRO = """\
What a deployment costs while it stands, at list prices, before anything is made: `lakeferry cost --stage dev`. The lower number
is what it comes to if next to nothing happens; the higher one is reached when everything runs to its limit all month. What data
and queries cost depends on how much there is of them, so those are rates."""


def text() -> str:
    return markdown.page(TITLE, _INTRO, *map(_stage, _STAGES), _left_out(), _prices())


def _stage(stage: str) -> str:
    found = cost.estimate(plan_of(stage))
    lines = markdown.table(["what", "from", "to", "reckoned"], [tuple(row) for row in cost_commands.rows(found)])
    rates = markdown.table(["by use", "from", "to"], [tuple(row) for row in cost_commands.rates(found)])
    return f"## deployments/{stage}.toml\n\nUSD a month:\n\n{lines}\n\nUSD:\n\n{rates}"


def _left_out() -> str:
    return "## What is left out\n\n" + "\n".join(f"- {each}" for each in cost.LEFT_OUT)


def _prices() -> str:
    rows = [(code(each.id), f"{each.usd:g}", each.unit, str(each.as_of), f"<{each.source}>") for each in prices.table().values()]
    return "## Prices\n\nIn USD, from `lakeferry/prices.toml`.\n\n" + markdown.table(
        ["price", "USD", "a", "read", "source"], rows
    )
