"""One occurrence of a schedule: its input with what Scheduler fills in, the call under the schedule's role, the dead letter."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from simulators.aws import identity, settings
from simulators.aws.delivery import Outcome, Policy, Undelivered, bury_in, deliver, undelivered
from simulators.aws.hooks import ministack

SERVICE: Final = "scheduler.amazonaws.com"
_UNIVERSAL: Final = re.compile(r"arn:aws:scheduler:::aws-sdk:(\w+):(\w+)")
#: Scheduler uses the names of the SDK for Java; these differ in boto3.
_BOTO_NAMES: Final = {"sfn": "stepfunctions", "eventbridge": "events"}


class Occurrence:
    """A schedule and one time at which it is due."""

    def __init__(self, schedule: dict[str, Any], due: datetime) -> None:
        self.schedule = schedule
        self.target: dict[str, Any] = schedule["Target"]
        self.scheduled_time = due.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.execution_id = str(uuid.uuid4())

    def input(self, attempt: int = 1) -> str:
        text = str(self.target.get("Input") or json.dumps(self._default_input()))
        context = {
            "schedule-arn": self.schedule["Arn"],
            "scheduled-time": self.scheduled_time,
            "execution-id": self.execution_id,
            "attempt-number": str(attempt),
        }
        for name, value in context.items():
            text = text.replace(f"<aws.scheduler.{name}>", value)
        return text

    def credentials(self) -> identity.Credentials:
        """Raises Refused."""
        group = ministack("services.scheduler")._group_arn(self.schedule["GroupName"])
        return identity.assume(self.target["RoleArn"], SERVICE, self.execution_id, source_arn=group)

    def _default_input(self) -> dict[str, Any]:
        return {
            "version": "0",
            "id": self.execution_id,
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": settings.ACCOUNT,
            "time": self.scheduled_time,
            "region": settings.REGION,
            "resources": [self.schedule["Arn"]],
            "detail": "{}",
        }


def call(occurrence: Occurrence) -> Outcome:
    """What came of the first try."""
    action = _action(occurrence)

    def attempt(number: int) -> Any:
        try:
            return action(number)
        except identity.Refused as refused:
            raise Undelivered("AccessDeniedException", str(refused)) from None
        except (ClientError, BotoCoreError) as error:
            raise undelivered(error) from None

    return deliver(attempt, Policy.of(occurrence.target), lambda outcome: bury(occurrence, outcome))


def _action(occurrence: Occurrence) -> Callable[[int], Any]:
    arn = occurrence.target["Arn"]
    if universal := _UNIVERSAL.fullmatch(arn):
        return lambda number: _universal(occurrence, universal[1], universal[2], number)
    if arn.split(":")[2] == "lambda":
        return lambda number: _function(occurrence, number)
    return lambda _: _by_stock(occurrence)


def _universal(occurrence: Occurrence, service: str, action: str, number: int) -> Any:
    client = identity.client(_BOTO_NAMES.get(service, service), occurrence.credentials(), tries=1)
    method = getattr(client, xform_name(action[0].upper() + action[1:]))
    answer = method(**json.loads(occurrence.input(number)))
    return json.loads(json.dumps({name: each for name, each in answer.items() if name != "ResponseMetadata"}, default=str))


def _function(occurrence: Occurrence, number: int) -> Any:
    client = identity.client("lambda", occurrence.credentials(), tries=1)
    payload = occurrence.input(number).encode()
    answer = client.invoke(FunctionName=occurrence.target["Arn"], InvocationType="Event", Payload=payload)
    return {"StatusCode": answer["StatusCode"]}


def _by_stock(occurrence: Occurrence) -> Any:
    """Targets that no schedule of ours has: MiniStack calls them, and asks no role."""
    target = {**occurrence.target, "Input": occurrence.input()}
    event = {"Source": "aws.scheduler", "DetailType": "Scheduled Event", "Detail": "{}"}
    ministack("services.eventbridge")._invoke_target(target, event, occurrence.schedule)


def bury(occurrence: Occurrence, outcome: Outcome) -> None:
    """Under the schedule's role as well: where that may not send to the queue, the occurrence is lost."""
    queue = (occurrence.target.get("DeadLetterConfig") or {}).get("Arn")
    if not queue:
        return
    attributes = outcome.attributes(
        EXECUTION_ID=occurrence.execution_id,
        IS_PAYLOAD_TRUNCATED="false",
        SCHEDULED_TIME=occurrence.scheduled_time,
        SCHEDULE_ARN=occurrence.schedule["Arn"],
        TARGET_ARN=occurrence.target["Arn"],
    )
    try:
        credentials = occurrence.credentials()
    except identity.Refused:
        return
    bury_in(queue, credentials, occurrence.input(outcome.tries), attributes)
