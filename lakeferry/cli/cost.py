"""`lakeferry cost`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from lakeferry.cli.app import CommandContext, command, command_group

if TYPE_CHECKING:
    from lakeferry.plan.cost import Estimate

app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "currency": "USD.",
        "month": "The totals, `low` and `high`.",
        "lines": "What costs a fixed amount a month: what, low, high, why (its basis), prices.",
        "rates": "Prices of usage.",
        "unknown": "What costs something at a price that isn't known; it is in no total.",
        "left_out": "What the estimate doesn't include.",
    },
)
def cost(
    call: CommandContext,
    *,
    from_bills: Annotated[
        bool,
        typer.Option(
            "--from-bills",
            help="Read prices of Tableflow and connectors from Confluent's bills of the last 30 days.",
        ),
    ] = False,
) -> Mapping[str, Any]:
    """Estimate the monthly cost of a deployment before it is created: a range, prices of usage, and what is
    not included.
    """
    from lakeferry.deployment.context import open_context
    from lakeferry.plan.confluent_prices import read_prices
    from lakeferry.plan.cost import LEFT_OUT, estimate

    output = call.output
    with open_context(call.stage) as ctx:
        loaded = ctx.loaded
        estimated = estimate(loaded, read_prices(ctx, from_bills=from_bills))
    output.print(f"{loaded.deployment.prefix}, USD a month at list prices:")
    output.table(["what", "from", "to", "basis"], build_rows(estimated))
    output.print("By usage, in addition:")
    output.table(["what", "from", "to"], build_rates(estimated))
    if estimated.unknown:
        output.print("Unknown, and in no total:")
    for sentence in estimated.unknown:
        output.print(f"  - {sentence}")
    output.print("Not included:")
    for sentence in LEFT_OUT:
        output.print(f"  - {sentence}")
    days = sorted(price.as_of for price in estimated.used)
    output.print(
        f"Prices were read between {days[0]} and {days[-1]}: lakeferry/plan/prices.toml has each with its "
        "source."
    )
    month = {"low": round(estimated.low, 2), "high": round(estimated.high, 2)}
    return {
        "stage": call.stage,
        "currency": "USD",
        "month": month,
        **attrs.asdict(estimated),
        "left_out": list(LEFT_OUT),
    }


def build_rows(estimated: Estimate) -> list[list[str]]:
    lines = [[line.what, _format_usd(line.low), _format_usd(line.high), line.why] for line in estimated.lines]
    return [*lines, ["total", _format_usd(estimated.low), _format_usd(estimated.high), ""]]


def build_rates(estimated: Estimate) -> list[list[str]]:
    return [[rate.what, _format_usd(rate.low), _format_usd(rate.high)] for rate in estimated.rates]


def _format_usd(amount: float) -> str:
    return f"{amount:,.2f}"
