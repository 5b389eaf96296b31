"""What was seen, as metrics of CloudWatch: for each thing that the deployment file names, and for the deployment as a whole.

The calls of PutMetricData, and not lines of a log that CloudWatch makes metrics of later: a metric that could not be written
has to be an error of this function, because an alarm on missing data is all that tells of it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from lambdas import contract
from lambdas.monitoring.checks import CheckResults
from lambdas.shared.aws import aws_call

#: Of 1,000 that CloudWatch takes in a call.
_AT_ONCE: Final = 500


class CloudWatch(Protocol):
    def put_metric_data(self, **asked: Any) -> Any: ...


def emit(client: CloudWatch, seen: CheckResults, deployment: str, now: float) -> None:
    """Raises Transient where CloudWatch doesn't take them."""
    data = list(_data(seen, deployment, datetime.fromtimestamp(now, UTC)))
    for at in range(0, len(data), _AT_ONCE):
        with aws_call("writing metrics"):
            client.put_metric_data(Namespace=contract.METRICS, MetricData=data[at : at + _AT_ONCE])


def _data(seen: CheckResults, deployment: str, now: datetime) -> Iterator[dict[str, Any]]:
    whole = {"Name": contract.DEPLOYMENT_DIMENSION, "Value": deployment}
    for (metric, of), value in seen.values.items():
        own = {"Name": contract.METRIC_DIMENSIONS[metric], "Value": of}
        yield {"MetricName": metric, "Dimensions": [whole, own], "Timestamp": now, "Value": value}
    for metric in seen.metrics:
        lacking = float(len(seen.unseen.get(metric, [])))
        own = {"Name": contract.UNMEASURED_DIMENSION, "Value": metric}
        yield {"MetricName": contract.UNMEASURED, "Dimensions": [whole, own], "Timestamp": now, "Value": lacking}
        if values := seen.all_of(metric):
            yield {"MetricName": metric, "Dimensions": [whole], "Timestamp": now, "StatisticValues": _statistics(values)}
    missing = [float(len(seen.unseen.get(metric, []))) for metric in seen.metrics]
    if missing:
        yield {
            "MetricName": contract.UNMEASURED,
            "Dimensions": [whole],
            "Timestamp": now,
            "StatisticValues": _statistics(missing),
        }


def _statistics(values: list[float]) -> dict[str, float]:
    return {"SampleCount": len(values), "Sum": sum(values), "Minimum": min(values), "Maximum": max(values)}
