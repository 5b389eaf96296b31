"""Probes: how AWS differs from stock MiniStack in CloudWatch and Step Functions."""

import json
from datetime import UTC, datetime, timedelta

from simulators.tests.aws.probe_kit import probe
from tests.support.aws_clients import error_of, policy
from tests.support.runtime_kit import control, noting_function, numbered, service_role
from tests.support.waiting import until


def alarm_state(aws, values, *, others=(), later=0, **alarm):
    """Of an alarm on values above 0, two of three periods of a minute. `values` came one a minute, the last
    one now; `others` are values of the same metric with another dimension."""
    metrics = aws.client("cloudwatch")
    name = numbered("alarm")
    namespace = numbered("Namespace")
    metrics.put_metric_alarm(
        AlarmName=name, Namespace=namespace, MetricName="Age", Dimensions=[{"Name": "Of", "Value": "this"}],
        Statistic="Maximum", Period=60, EvaluationPeriods=3, DatapointsToAlarm=2, Threshold=0,
        ComparisonOperator="GreaterThanThreshold", **alarm,
    )  # fmt: skip
    now = datetime.now(UTC)
    for of, part in (("this", values), ("another", others)):
        for ago, value in enumerate(reversed(part)):
            if value is not None:
                data = {"MetricName": "Age", "Dimensions": [{"Name": "Of", "Value": of}], "Value": value}
                data["Timestamp"] = now - timedelta(minutes=ago, seconds=1)
                metrics.put_metric_data(Namespace=namespace, MetricData=[data])
    if later:
        control(aws, "alarms/evaluate", seconds=later)
    return metrics.describe_alarms(AlarmNames=[name])["MetricAlarms"][0]["StateValue"]


@probe("alarm_states")
def an_alarm_is_of_its_own_dimensions(aws):
    return alarm_state(aws, [0, 0], others=[9, 9]) == "OK"


@probe("alarm_states")
def an_alarm_waits_for_as_many_periods_as_it_says(aws):
    return [alarm_state(aws, values) for values in ([0, 0, 9], [0, 9, 9], [9, 0, 9], [9, 9, 0])] == [
        "OK",
        "ALARM",
        "ALARM",
        "ALARM",
    ]


@probe("alarm_states")
def an_alarm_without_data_is_what_it_says_of_missing_data(aws):
    """At first, when data stops, and with one value of three."""
    result = {}
    for missing in ("missing", "notBreaching", "breaching"):
        cases = (((), 600), ((0, 0, 0), 600), ((9, None, None), 1), ((0, None, None), 1))
        result[missing] = [
            alarm_state(aws, values, later=later, TreatMissingData=missing) for values, later in cases
        ]
    return result == {
        "missing": ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA", "ALARM", "OK"],
        "notBreaching": ["OK", "OK", "OK", "OK"],
        "breaching": ["ALARM", "ALARM", "ALARM", "ALARM"],
    }


@probe("alarm_states")
def a_function_that_fails_raises_its_alarm(aws):
    """As the stacks define it, and not the alarm of another function."""
    metrics = aws.client("cloudwatch")
    names = []
    for fails in ("", "yes"):
        function, _ = noting_function(aws, fails=fails)
        names.append(numbered("errors"))
        metrics.put_metric_alarm(
            AlarmName=names[-1], Namespace="AWS/Lambda", MetricName="Errors", Statistic="Sum", Period=300,
            EvaluationPeriods=1, Dimensions=[{"Name": "FunctionName", "Value": function.rpartition(":")[2]}],
            Threshold=0, ComparisonOperator="GreaterThanThreshold", TreatMissingData="notBreaching",
        )  # fmt: skip
        aws.functions.invoke(FunctionName=function, Payload=b"{}")
    control(aws, "alarms/evaluate", seconds=1)
    states = {
        alarm["AlarmName"]: alarm["StateValue"]
        for alarm in metrics.describe_alarms(AlarmNames=names)["MetricAlarms"]
    }
    return [states[name] for name in names] == ["OK", "ALARM"]


@probe("metric_namespace")
def a_policy_may_name_the_namespace_of_metrics(aws):
    """Statements of these helpers have no conditions, so the role's policy is written anew."""
    role = aws.new_role(("cloudwatch:ListMetrics", "*"))
    statement = {"Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*"}
    statement["Condition"] = {"StringEquals": {"cloudwatch:namespace": "Own"}}
    aws.iam.put_role_policy(
        RoleName=role.rpartition("/")[2], PolicyName="own", PolicyDocument=policy(statement)
    )
    metrics = aws.assuming(role).client("cloudwatch")
    data = [{"MetricName": "Age", "Value": 1.0}]
    refused = [
        error_of(metrics.put_metric_data, Namespace=name, MetricData=data) for name in ("Own", "Others")
    ]
    return refused[0] is None and refused[1] is not None


@probe("step_functions")
def an_execution_begins_at_once(aws):
    """The fastest of several: a slow machine has no say. Stock lets each wait for 150 ms."""
    machines = aws.client("stepfunctions")
    definition = json.dumps({"StartAt": "It", "States": {"It": {"Type": "Succeed"}}})
    role = service_role(aws, "states")
    arn = machines.create_state_machine(name=numbered("machine"), definition=definition, roleArn=role)[
        "stateMachineArn"
    ]
    lasted = []
    for _ in range(10):
        started = machines.start_execution(stateMachineArn=arn)["executionArn"]
        ended = until(
            lambda run=started: (
                (result := machines.describe_execution(executionArn=run)).get("stopDate") and result
            )
        )
        lasted.append((ended["stopDate"] - ended["startDate"]).total_seconds())
    return min(lasted) < 0.1
