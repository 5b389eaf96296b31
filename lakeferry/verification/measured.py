"""The alarms of a deployment, and the metrics that its monitoring function wrote."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lakeferry.deployment.context import DeploymentContext
from lambdas import contract


def list_alarms(ctx: DeploymentContext) -> dict[str, dict[str, Any]]:
    """Return the alarms on single metrics, by name. Raises ClientError, BotoCoreError."""
    pages = (
        ctx.client("cloudwatch")
        .get_paginator("describe_alarms")
        .paginate(AlarmNamePrefix=f"{ctx.deployment.prefix}-")
    )
    return {alarm["AlarmName"]: alarm for page in pages for alarm in page["MetricAlarms"]}


def list_measured(ctx: DeploymentContext) -> Counter[str]:
    """Count the metrics of the last two weeks by name, without those of the whole deployment.

    Raises ClientError, BotoCoreError.
    """
    pages = ctx.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace=contract.METRICS)
    return Counter(
        metric["MetricName"] for page in pages for metric in page["Metrics"] if len(metric["Dimensions"]) > 1
    )
