"""Probes: which permissions AWS asks for in CloudWatch Logs, and stock MiniStack doesn't."""

import time

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of
from tests.support.runtime_kit import numbered

WRITES = ["logs:CreateLogStream", "logs:PutLogEvents"]


def write(logs, group):
    """Return the error of each call that writes a line into a new stream."""
    events = [{"timestamp": int(time.time() * 1000), "message": "m"}]
    return [
        error_of(logs.create_log_stream, logGroupName=group, logStreamName="s"),
        error_of(logs.put_log_events, logGroupName=group, logStreamName="s", logEvents=events),
    ]


@probe("logs_resources")
def writes_into_the_group_whose_arn_the_policy_has(aws):
    name = numbered("/group")
    Stack(aws, "AWS::Logs::LogGroup", LogGroupName=name)
    (group,) = aws.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    writer = aws.assuming(aws.new_role((WRITES, group["arn"]))).client("logs")
    other = aws.assuming(aws.new_role((WRITES, group["arn"].removesuffix(":*")))).client("logs")
    refused = write(other, name)
    return (group["arn"][-2:], write(writer, name), refused) == (
        ":*",
        [None, None],
        ["AccessDeniedException", "AccessDeniedException"],
    )
