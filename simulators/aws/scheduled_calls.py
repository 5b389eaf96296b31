"""EventBridge Scheduler: when a schedule is due in its time zone, and the call that it makes under its role.

A local time that doesn't exist because clocks go forward is skipped. A local time that occurs twice because
they go back counts once, the first time. Source: EventBridge Scheduler User Guide, schedule types, daylight
saving time.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from simulators.aws import identity, settings
from simulators.aws.delivery import (
    Outcome,
    Policy,
    Undelivered,
    deliver,
    describe_failure,
    send_to_dead_letter_queue,
)
from simulators.aws.hooks import get_region, import_ministack

SERVICE: Final = "scheduler.amazonaws.com"
_UNIVERSAL: Final = re.compile(r"arn:aws:scheduler:::aws-sdk:(\w+):(\w+)")
_AT = re.compile(r"at\((.+)\)")
#: Scheduler uses the service names of the SDK for Java. These have another name in boto3.
_BOTO_NAMES: Final = {"sfn": "stepfunctions", "eventbridge": "events"}


class Occurrence:
    """A schedule and one time at which it is due."""

    def __init__(self, schedule: dict[str, Any], due: datetime) -> None:
        self.schedule = schedule
        self.target: dict[str, Any] = schedule["Target"]
        self.scheduled_time = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.execution_id = str(uuid.uuid4())

    def build_input(self, attempt: int = 1) -> str:
        text = str(self.target.get("Input") or json.dumps(self._build_default_input()))
        context = {
            "schedule-arn": self.schedule["Arn"],
            "scheduled-time": self.scheduled_time,
            "execution-id": self.execution_id,
            "attempt-number": str(attempt),
        }
        for name, value in context.items():
            text = text.replace(f"<aws.scheduler.{name}>", value)
        return text

    def assume_credentials(self) -> identity.Credentials:
        """Assume the schedule's role. Raises Refused."""
        group = import_ministack("services.scheduler")._group_arn(self.schedule["GroupName"])
        return identity.assume(self.target["RoleArn"], SERVICE, self.execution_id, source_arn=group)

    def _build_default_input(self) -> dict[str, Any]:
        return {
            "version": "0",
            "id": self.execution_id,
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": settings.ACCOUNT,
            "time": self.scheduled_time,
            "region": get_region(),
            "resources": [self.schedule["Arn"]],
            "detail": "{}",
        }


def call(occurrence: Occurrence) -> Outcome:
    """Make the first attempt and return its outcome. Retries run in a thread."""
    action = _choose_action(occurrence)

    def attempt(number: int) -> Any:
        try:
            return action(number)
        except identity.Refused as refusal:
            raise Undelivered("AccessDeniedException", str(refusal)) from None
        except (ClientError, BotoCoreError) as error:
            raise describe_failure(error) from None

    return deliver(
        attempt,
        Policy.from_target(occurrence.target),
        lambda outcome: send_occurrence_to_dead_letter_queue(occurrence, outcome),
    )


def _choose_action(occurrence: Occurrence) -> Callable[[int], Any]:
    arn = occurrence.target["Arn"]
    if universal := _UNIVERSAL.fullmatch(arn):
        return lambda number: _call_service_api(occurrence, universal[1], universal[2], number)
    if arn.split(":")[2] == "lambda":
        return lambda number: _invoke_function(occurrence, number)
    return lambda _: _call_through_ministack(occurrence)


def _call_service_api(occurrence: Occurrence, service: str, action: str, number: int) -> Any:
    client = identity.build_client(
        _BOTO_NAMES.get(service, service), occurrence.assume_credentials(), tries=1
    )
    method = getattr(client, xform_name(action[0].upper() + action[1:]))
    answer = method(**json.loads(occurrence.build_input(number)))
    fields = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
    return json.loads(json.dumps(fields, default=str))


def _invoke_function(occurrence: Occurrence, number: int) -> Any:
    client = identity.build_client("lambda", occurrence.assume_credentials(), tries=1)
    payload = occurrence.build_input(number).encode()
    answer = client.invoke(FunctionName=occurrence.target["Arn"], InvocationType="Event", Payload=payload)
    return {"StatusCode": answer["StatusCode"]}


def _call_through_ministack(occurrence: Occurrence) -> Any:
    """Let MiniStack call a type of target that Lakeferry's schedules don't have.

    MiniStack doesn't assume the role.
    """
    target = {**occurrence.target, "Input": occurrence.build_input()}
    event = {"Source": "aws.scheduler", "DetailType": "Scheduled Event", "Detail": "{}"}
    import_ministack("services.eventbridge")._invoke_target(target, event, occurrence.schedule)


def send_occurrence_to_dead_letter_queue(occurrence: Occurrence, outcome: Outcome) -> None:
    """Send the occurrence to the dead-letter queue, under the schedule's role.

    Without permission, it is lost.
    """
    queue = (occurrence.target.get("DeadLetterConfig") or {}).get("Arn")
    if not queue:
        return
    attributes = outcome.build_attributes(
        EXECUTION_ID=occurrence.execution_id,
        IS_PAYLOAD_TRUNCATED="false",
        SCHEDULED_TIME=occurrence.scheduled_time,
        SCHEDULE_ARN=occurrence.schedule["Arn"],
        TARGET_ARN=occurrence.target["Arn"],
    )
    try:
        credentials = occurrence.assume_credentials()
    except identity.Refused:
        return
    send_to_dead_letter_queue(queue, credentials, occurrence.build_input(outcome.tries), attributes)


def find_next_due(schedule: Mapping[str, Any], after: datetime) -> datetime | None:
    """Return the first due time later than `after`, in UTC; None if there is none."""
    start = parse_moment(schedule.get("StartDate"))
    end = parse_moment(schedule.get("EndDate"))
    if start is not None and after < start:
        after = start - timedelta(seconds=1)
    due = _find_next_time(schedule, after)
    if due is None or (end is not None and due > end):
        return None
    return due


def parse_moment(value: Any) -> datetime | None:
    """Parse a time, given as seconds since 1970 or as ISO 8601 text, which is in UTC if it has no offset."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    parsed = datetime.fromisoformat(str(value))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def is_once(schedule: Mapping[str, Any]) -> bool:
    return _AT.fullmatch(schedule["ScheduleExpression"].strip()) is not None


def _find_next_time(schedule: Mapping[str, Any], after: datetime) -> datetime | None:
    expression = schedule["ScheduleExpression"].strip()
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if single_time := _AT.fullmatch(expression):
        due = datetime.fromisoformat(single_time[1]).replace(tzinfo=zone).astimezone(UTC)
        return due if due > after else None
    if seconds := import_ministack("services.eventbridge")._parse_rate_seconds(expression):
        begins = parse_moment(schedule.get("StartDate")) or parse_moment(schedule["CreationDate"]) or after
        interval = timedelta(seconds=seconds)
        intervals = max(1, (after - begins) // interval + 1)
        return begins + interval * intervals
    return _find_next_cron_time(expression, zone, after)


def _find_next_cron_time(expression: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """Return the next due time.

    MiniStack's cron has no time zones, so it is given the local time as if it were UTC.
    """
    events = import_ministack("services.eventbridge")
    fields = events._parse_cron_fields(expression)
    local_time = after.astimezone(zone).replace(tzinfo=UTC)
    while fields and (local_time := events._cron_next_fire(fields, local_time)):
        due: datetime = local_time.replace(tzinfo=zone).astimezone(UTC)
        exists = due.astimezone(zone).replace(tzinfo=UTC) == local_time
        if exists and due > after:
            return due
    return None
