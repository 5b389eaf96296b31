"""Probes: how AWS differs from stock MiniStack in EventBridge and its Scheduler."""

import json
from datetime import UTC, datetime, timedelta

from simulators.tests.aws.probe_kit import probe
from tests.support import runtime_kit as kit
from tests.support.aws_clients import error_of, policy
from tests.support.runtime_kit import (
    busy_job,
    fire,
    letter,
    new_queue,
    new_schedule,
    noting_function,
    patience,
    starter,
)
from tests.support.waiting import until

SEND = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"


START = "arn:aws:scheduler:::aws-sdk:glue:startJobRun"


def sending(
    aws, *, may=True, input="at <aws.scheduler.scheduled-time>, try <aws.scheduler.attempt-number>", **given
):
    """A schedule that sends to a queue, and the URL of that queue; `may` says whether its role may."""
    url, arn = new_queue(aws)
    role = starter(aws, *([("sqs:SendMessage", arn)] if may else []), *given.pop("statements", ()))
    return new_schedule(aws, SEND, role, input={"QueueUrl": url, "MessageBody": input}, **given), url


@probe("scheduler_clock")
def calls_an_api_under_its_role(aws):
    schedule, url = sending(aws)
    result = fire(aws, schedule, at="2026-11-16T06:00:00Z").get("invocation", {}).get("state")
    return (result, letter(aws, url, 0)[0]) == ("delivered", "at 2026-11-16T06:00:00Z, try 1")


@probe("scheduler_clock")
def fills_in_schedule_and_execution(aws):
    schedule, url = sending(aws, input="<aws.scheduler.schedule-arn> <aws.scheduler.execution-id>")
    fired = fire(aws, schedule)
    return fired != {} and letter(aws, url, 0)[0] == f"{fired['schedule']} {fired['execution_id']}"


@probe("scheduler_clock")
def buries_what_its_role_may_not(aws):
    dead, arn = new_queue(aws)
    keeps = ("sqs:SendMessage", arn)
    schedule, _ = sending(aws, may=False, input="text", statements=[keeps], DeadLetterConfig={"Arn": arn})
    fired = fire(aws, schedule, at="2026-11-16T06:00:00Z")
    body, attributes = letter(aws, dead, patience(aws) if fired else 0)
    message = attributes.pop("ERROR_MESSAGE", "")
    return "is not authorized to perform: sqs:sendmessage" in message.lower() and (
        json.loads(body)["MessageBody"] == "text"
        and attributes
        == {
            "ERROR_CODE": "AccessDenied",
            "EXECUTION_ID": fired["execution_id"],
            "IS_PAYLOAD_TRUNCATED": "false",
            "RETRY_ATTEMPTS": "0",
            "SCHEDULED_TIME": "2026-11-16T06:00:00Z",
            "SCHEDULE_ARN": fired["schedule"],
            "TARGET_ARN": SEND,
        }
    )


@probe("scheduler_clock")
def is_due_in_its_own_zone(aws):
    """Berlin is ahead of UTC by one hour in winter and two in summer."""
    result = [
        fire(aws, sending(aws, expression=expression, zone="Europe/Berlin")[0]).get("scheduled_time")
        for expression in ("cron(0 6 10 1 ? 2030)", "cron(0 6 10 7 ? 2030)", "at(2030-07-10T06:00:00)")
    ]
    return result == ["2030-01-10T05:00:00Z", "2030-07-10T04:00:00Z", "2030-07-10T04:00:00Z"]


@probe("scheduler_clock")
def skips_a_time_that_no_clock_shows(aws):
    """In Berlin half past two is missing on 31 March 2030."""
    schedule, _ = sending(aws, expression="cron(30 2 31 3 ? 2030-2031)", zone="Europe/Berlin")
    return fire(aws, schedule).get("scheduled_time") == "2031-03-31T00:30:00Z"


@probe("scheduler_clock")
def counts_a_time_that_comes_twice_once(aws):
    """In Berlin half past two comes twice on 27 October 2030."""
    schedule, _ = sending(aws, expression="cron(30 2 27 10 ? 2030)", zone="Europe/Berlin")
    return [fire(aws, schedule).get("scheduled_time") for _ in range(2)] == ["2030-10-27T00:30:00Z", None]


@probe("scheduler_clock")
def is_called_by_the_clock(aws):
    soon = datetime.now(UTC) + timedelta(seconds=3)
    tokyo = soon + timedelta(hours=9)
    _, url = sending(aws, expression=f"at({tokyo:%Y-%m-%dT%H:%M:%S})", zone="Asia/Tokyo")
    return letter(aws, url, patience(aws))[0] == f"at {soon:%Y-%m-%dT%H:%M:%S}Z, try 1"


@probe("scheduler_clock")
def refuses_a_role_that_does_not_trust_it(aws):
    """One for schedules of another group."""
    role = starter(aws, group="another")
    return error_of(new_schedule, aws, SEND, role, input={"QueueUrl": "-"}) == "ValidationException"


@probe("scheduler_clock")
def refuses_an_unknown_zone(aws):
    return error_of(sending, aws, zone="Europe/Atlantis") == "ValidationException"


@probe("scheduler_clock")
def calls_a_function_only_where_its_role_may(aws):
    function, calls = noting_function(aws)
    states = []
    for statements in ([], [("lambda:InvokeFunction", function)]):
        schedule = new_schedule(
            aws, function, starter(aws, *statements), input={"hello": "<aws.scheduler.scheduled-time>"}
        )
        states.append(fire(aws, schedule, at="2026-11-16T06:00:00Z").get("invocation", {}).get("state"))
    called = until(calls) if states[-1] else []
    return states == ["failed", "delivered"] and [call["event"] for call in called] == [
        {"hello": "2026-11-16T06:00:00Z"}
    ]


def starting(aws, job, **target):
    role = starter(aws, ("glue:StartJobRun", aws.arn("glue", f"job/{job}")), *target.pop("statements", ()))
    return new_schedule(aws, START, role, input={"JobName": job}, **target)


@probe("scheduler_clock")
def tries_again_what_was_refused(aws):
    """The job's run before goes on."""
    job, bucket, _ = busy_job(aws)
    fired = fire(aws, starting(aws, job))
    aws.s3.put_object(Bucket=bucket, Key="go")
    if fired == {}:
        return False
    runs = until(lambda: len(match := aws.glue.get_job_runs(JobName=job)["JobRuns"]) == 2 and match)
    ends = [kit.ended(aws, job, run["Id"])["JobRunState"] for run in runs or []]
    result = (fired["invocation"]["state"], fired["invocation"]["error"])
    return (result, ends) == (("retrying", "ConcurrentRunsExceededException"), ["SUCCEEDED"] * 2)


@probe("scheduler_clock")
def gives_up_in_the_end(aws):
    job, bucket, _ = busy_job(aws)
    dead, arn = new_queue(aws)
    policy = {"RetryPolicy": {"MaximumRetryAttempts": 1}, "DeadLetterConfig": {"Arn": arn}}
    fired = fire(aws, starting(aws, job, statements=[("sqs:SendMessage", arn)], **policy))
    _, attributes = letter(aws, dead, patience(aws) if fired else 0)
    aws.s3.put_object(Bucket=bucket, Key="go")
    result = tuple(
        attributes.get(name) for name in ("ERROR_CODE", "EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS")
    )
    return result == ("ConcurrentRunsExceededException", "MaximumRetryAttempts", "1")


def put(aws, source, **detail):
    aws.client("events").put_events(
        Entries=[{"Source": source, "DetailType": "probe", "Detail": json.dumps(detail)}]
    )


@probe("event_targets")
def buries_an_event_that_a_function_does_not_let_in(aws):
    source, (function, calls) = kit.numbered("probe"), noting_function(aws)
    rule = kit.new_rule(aws, {"source": [source]})
    dead, arn = new_queue(aws, lets_in=rule[1])
    kit.aim(aws, rule, function, permitted=False, DeadLetterConfig={"Arn": arn})
    put(aws, source, number=1)
    body, attributes = letter(aws, dead, patience(aws))
    result = {
        name: attributes.get(name) for name in ("RULE_ARN", "TARGET_ARN", "ERROR_CODE", "RETRY_ATTEMPTS")
    }
    wanted = {
        "RULE_ARN": rule[1],
        "TARGET_ARN": function,
        "ERROR_CODE": "NO_PERMISSIONS",
        "RETRY_ATTEMPTS": "0",
    }
    return body != "" and (result, json.loads(body)["detail"], calls()) == (wanted, {"number": 1}, [])


@probe("event_targets")
def tries_a_function_of_a_rule_three_times(aws):
    source, (function, calls) = kit.numbered("probe"), noting_function(aws, fails="yes")
    kit.aim(aws, kit.new_rule(aws, {"source": [source]}), function)
    put(aws, source)
    called = until(lambda: len(called := calls()) == 3 and called, patience(aws))
    return bool(called) and len({call["request"] for call in called}) == 1


@probe("event_conditions")
def lets_a_role_put_its_own_events_only(aws):
    role = aws.new_role(("events:ListRules", "*"))
    condition = {"StringEquals": {"events:source": "own", "events:detail-type": "News"}}
    allow = {"Effect": "Allow", "Action": "events:PutEvents", "Condition": condition}
    allow["Resource"] = aws.arn("events", "event-bus/default")
    aws.iam.put_role_policy(RoleName=role.rpartition("/")[2], PolicyName="own", PolicyDocument=policy(allow))
    bus = aws.assuming(role).client("events")
    codes = []
    for source, detail_type in (("own", "News"), ("other", "News"), ("own", "Other")):
        entry = {"Source": source, "DetailType": detail_type, "Detail": "{}"}
        codes.append(error_of(bus.put_events, Entries=[entry]))
    return codes == [None, "AccessDeniedException", "AccessDeniedException"]
