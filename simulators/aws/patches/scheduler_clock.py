"""EventBridge Scheduler: what is due is called, in the schedule's time zone, and under its role.

- Cron expressions and one-time schedules are read in ScheduleExpressionTimezone, with its daylight saving. Stock MiniStack
  keeps the zone and reads everything as UTC.
- Targets of the sort `arn:aws:scheduler:::aws-sdk:<service>:<action>` and functions are called under the target's role, with
  Scheduler's context attributes in the input. Stock drops the first with a line in its log, and asks no role for the second.
- RetryPolicy holds, with short pauses, and what can't be delivered goes to the queue of DeadLetterConfig.
- CreateSchedule and UpdateSchedule refuse a role that doesn't trust Scheduler, and an unknown time zone.

Beyond AWS: POST /_lakeferry/schedules/fire {"group": "default", "name": …, "at": ISO time} lets the time of one schedule pass:
it does what the clock does, and answers what came of the first try. Without `at`, the time is the next one that is due.
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from simulators.aws import identity, settings
from simulators.aws.controls import Asked, Told, as_json, control
from simulators.aws.delivery import Outcome
from simulators.aws.hooks import Answer, Original, Patch, ministack
from simulators.aws.schedule_times import is_once, moment, next_due
from simulators.aws.scheduled_calls import SERVICE, Occurrence, call

PATCH = Patch("scheduler_clock")
_SCHEDULER: Final = "ministack.services.scheduler"
_TICK_SECONDS: Final = 1.0
_STARTED: Final = datetime.now(UTC)
_log: Final = logging.getLogger("lakeferry.scheduler")
#: Up to when the occurrences of a schedule have been dealt with, by the clock or by hand.
_seen: dict[Any, datetime] = {}
_lock: Final = threading.Lock()


@PATCH.replaces(_SCHEDULER, "_create_schedule", "name body")
def create_schedule(original: Original, name: str, body: dict[str, Any]) -> Answer:
    refused = _refused(body)
    answer = refused or original(name, body)
    if answer[0] == 200:
        _seen.pop(_key(body.get("GroupName", "default"), name), None)
    return answer


@PATCH.replaces(_SCHEDULER, "_update_schedule", "name body")
def update_schedule(original: Original, name: str, body: dict[str, Any]) -> Answer:
    return _refused(body) or original(name, body)


@PATCH.replaces(_SCHEDULER, "_ticker_loop", "")
def ticker_loop(_: Callable[[], None]) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        try:
            _tick(datetime.now(UTC))
        except Exception:  # of one schedule; the clock goes on
            _log.exception("a schedule could not be called")


def _tick(now: datetime) -> None:
    for key, schedule in list(ministack("services.scheduler")._schedules._data.items()):
        while (due := _due(key, schedule)) and due <= now:
            _fire(key, schedule, due)


@control("POST", "/schedules/fire", waits=True)
def fire_by_hand(asked: Asked) -> Told:
    try:
        given = json.loads(asked.body)
        key, at = _key(given.get("group", "default"), given["name"]), moment(given.get("at"))
    except (ValueError, KeyError, TypeError) as mistake:
        return as_json({"error": f"give group, name and at (ISO 8601): {mistake}"}, 400)
    schedule = ministack("services.scheduler")._schedules._data.get(key)
    if schedule is None:
        return as_json({"error": f"no schedule {key[2]}"}, 404)
    due = at or _due(key, schedule, at_least=datetime.now(UTC))
    if due is None or schedule["State"] != "ENABLED":
        return as_json({"error": f"schedule {key[2]} is {schedule['State']} and has {'a' if due else 'no'} next time"}, 409)
    return as_json(_fire(key, schedule, due))


def _key(group: str, name: str) -> tuple[str, str, str]:
    return settings.ACCOUNT, settings.REGION, f"{group}/{name}"


def _due(key: Any, schedule: dict[str, Any], at_least: datetime | None = None) -> datetime | None:
    if schedule.get("State") != "ENABLED":
        return None
    seen = _seen.setdefault(key, max(_STARTED, moment(schedule["CreationDate"]) or _STARTED))
    return next_due(schedule, max(seen, at_least or seen))


def _fire(key: Any, schedule: dict[str, Any], due: datetime) -> dict[str, Any]:
    with _lock:
        _seen[key] = max(due, _seen.get(key, due))
    occurrence = Occurrence(schedule, due)
    context = contextvars.copy_context()
    outcome = context.run(_in_scope, key, lambda: call(occurrence))
    _log.info("%s at %s: %s", key[2], occurrence.scheduled_time, outcome.error or "delivered")
    if is_once(schedule) and schedule.get("ActionAfterCompletion") == "DELETE":
        ministack("services.scheduler")._schedules._data.pop(key, None)
    return {
        "schedule": schedule["Arn"],
        "scheduled_time": occurrence.scheduled_time,
        "execution_id": occurrence.execution_id,
        "invocation": _told(outcome),
    }


def _in_scope(key: Any, then: Callable[[], Outcome]) -> Outcome:
    responses = ministack("core.responses")
    responses.set_request_account_id(key[0])
    responses.set_request_region(key[1])
    return then()


def _told(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is None:
        return {"state": "delivered", "answer": outcome.answer}
    state = "retrying" if outcome.goes_on else "failed"
    return {"state": state, "error": outcome.error.code, "message": outcome.error.message}


def _refused(body: dict[str, Any]) -> Answer | None:
    message = _mistake(body)
    refusal: Answer = ministack("services.scheduler")._error(400, "ValidationException", message)
    return refusal if message else None


def _mistake(body: dict[str, Any]) -> str:
    try:
        ZoneInfo(body.get("ScheduleExpressionTimezone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return "Invalid ScheduleExpressionTimezone."
    role = (body.get("Target") or {}).get("RoleArn", "")
    group = ministack("services.scheduler")._group_arn(body.get("GroupName", "default"))
    if role and not identity.trusts(role, SERVICE, group):
        return "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
    return ""
