"""CloudWatch: states of metric alarms, and the IAM condition key for a metric's namespace.

- alarm_states: A metric alarm evaluates one metric with its dimensions, period by period, and needs
  DatapointsToAlarm out of EvaluationPeriods ("M out of N"), with TreatMissingData. Stock MiniStack combines
  all data of a metric name, regardless of dimensions and time, and ignores DatapointsToAlarm and
  TreatMissingData. Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data",
  "Evaluating an alarm".
- metric_namespace: The condition key cloudwatch:namespace restricts PutMetricData, which has no resource.
  Stock doesn't know the key, and denies what a policy with this condition allows. Source: service
  authorization reference, CloudWatch.

Beyond AWS: alarms change state as soon as data arrives; POST alarms/evaluate {"seconds": n} under /_simulator
evaluates all alarms as if n seconds had passed.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and cloudwatch"`
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from simulators.aws import controls, settings
from simulators.aws.hooks import Patch, import_ministack
from simulators.core import control

ALARMS = Patch("alarm_states")
_CLOUDWATCH: Final = "services.cloudwatch"
#: CloudWatch retrieves more periods than EvaluationPeriods; the examples in its user guide have two more.
_EXTRA_PERIODS: Final = 2
_BREACHES: Final[dict[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}


@ALARMS.replaces(f"ministack.{_CLOUDWATCH}", "_evaluate_alarm", "alarm")
def evaluate(original: Callable[[Any], None], alarm: dict[str, Any]) -> None:
    if alarm.get("ComparisonOperator") not in _BREACHES or not alarm.get("MetricName"):
        return original(alarm)
    return _set_state(alarm, decide_state(alarm, _evaluate_periods(alarm, time.time())))


@controls.register("POST", "/alarms/evaluate")
def evaluate_later(request: control.Request) -> control.Response:
    now = time.time() + float(json.loads(request.body or b"{}").get("seconds", 0))
    responses = import_ministack("core.responses")
    responses.set_request_account_id(settings.ACCOUNT)
    responses.set_request_region(settings.REGION)
    alarms = import_ministack(_CLOUDWATCH)._alarms
    for alarm in alarms.values():
        if alarm.get("ComparisonOperator") in _BREACHES and alarm.get("MetricName"):
            _set_state(alarm, decide_state(alarm, _evaluate_periods(alarm, now)))
    return control.build_json_response({alarm["AlarmName"]: alarm["StateValue"] for alarm in alarms.values()})


def decide_state(alarm: dict[str, Any], breaching: Sequence[bool | None]) -> str:
    """Return the alarm's state.

    `breaching`: for each period, newest first, whether it breaches; None without data.
    """
    periods = int(alarm.get("EvaluationPeriods", 1))
    needed_datapoints = int(alarm.get("DatapointsToAlarm") or periods)
    missing = alarm.get("TreatMissingData") or "missing"
    known_states = [state for state in breaching if state is not None]
    if not known_states:
        silent = {"breaching": "ALARM", "notBreaching": "OK", "ignore": str(alarm["StateValue"])}
        return silent.get(missing, "INSUFFICIENT_DATA")
    if len(known_states) < periods and missing in ("breaching", "notBreaching"):
        known_states += [missing == "breaching"] * (periods - len(known_states))
    if sum(known_states[:periods]) >= needed_datapoints:
        return "ALARM"
    if False in known_states[:periods]:
        return "OK"
    oldest = max((age for age, is_breaching in enumerate(breaching[:periods], 1) if is_breaching), default=0)
    return "ALARM" if oldest >= needed_datapoints else str(alarm["StateValue"])


def _evaluate_periods(alarm: dict[str, Any], now: float) -> list[bool | None]:
    cloudwatch = import_ministack(_CLOUDWATCH)
    key = (
        alarm["Namespace"],
        alarm["MetricName"],
        cloudwatch._dims_key(cloudwatch._dims_from_list(alarm.get("Dimensions") or [])),
    )
    points = list(cloudwatch._metrics.get(key) or [])
    period = float(alarm.get("Period", 60))
    statistic = alarm.get("Statistic", "Average")
    breaches = _BREACHES[alarm["ComparisonOperator"]]
    threshold = float(alarm.get("Threshold", 0))
    result: list[bool | None] = []
    for number in range(int(alarm.get("EvaluationPeriods", 1)) + _EXTRA_PERIODS):
        end = now - number * period
        points_of_period = [point for point in points if end - period < point["Timestamp"] <= end]
        value = None
        if points_of_period:
            statistics = cloudwatch._calc_stats(points_of_period)
            value = cloudwatch._stat_value(statistics, statistic, points_of_period)
        breaching = None if value is None else breaches(float(value), threshold)
        result.append(breaching)
    return result


def _set_state(alarm: dict[str, Any], state: str) -> None:
    old = alarm["StateValue"]
    if state == old:
        return
    cloudwatch = import_ministack(_CLOUDWATCH)
    reason = f"Threshold Crossed: {alarm['MetricName']}"
    alarm.update(StateValue=state, StateReason=reason, StateUpdatedTimestamp=int(time.time()))
    cloudwatch._record_history(alarm["AlarmName"], old, state, reason)
    cloudwatch._dispatch_alarm_actions(alarm, old, state, reason)
    cloudwatch._evaluate_parent_alarms(alarm)


NAMESPACE = Patch("metric_namespace")


@NAMESPACE.replaces("ministack.core.iam_actions", "request_tag_context", "service iam_action body params")
def build_condition_keys(
    original: Callable[..., dict[str, Any]],
    service: str,
    iam_action: str,
    body: bytes,
    params: dict[str, Any],
) -> dict[str, Any]:
    """Return the condition keys of a request, with their values."""
    context = original(service, iam_action, body, params)
    if iam_action.lower() != "cloudwatch:putmetricdata":
        return context
    return context | {"cloudwatch:namespace": _read_namespace(body, params)}


def _read_namespace(body: bytes, params: dict[str, Any]) -> str:
    """Return the namespace of a JSON or form-encoded request; empty if it can't be read."""
    if body[:1] == b"{":
        try:
            return str(json.loads(body).get("Namespace", ""))
        except ValueError:
            return ""
    namespace = params.get("Namespace", "")
    if isinstance(namespace, list):
        return str(namespace[0])
    return str(namespace)


PATCHES: Final = (
    ALARMS,
    NAMESPACE,
)
