"""EventBridge Scheduler, functions as targets of EventBridge rules, and permissions to put events.

- scheduler_clock: Cron expressions and one-time schedules are in ScheduleExpressionTimezone, with daylight
  saving time; stock MiniStack takes them as UTC. Universal targets
  (arn:aws:scheduler:::aws-sdk:<service>:<action>) and functions are called under the target's role with
  Scheduler's context attributes; stock doesn't call the former, and calls the latter without assuming the
  role. RetryPolicy applies, with short pauses; what can't be delivered goes to the queue of DeadLetterConfig.
  CreateSchedule and UpdateSchedule refuse a role that doesn't trust Scheduler, and an unknown time zone.
  Source: EventBridge Scheduler user guide, "Schedule types", "Universal targets", "Configuring a dead-letter
  queue", "Context attributes".
- event_targets: A function is called if its policy allows EventBridge. RetryPolicy applies; if the permission
  or the function is missing, the event goes to the target's dead-letter queue without a retry, with AWS's
  message attributes, if the queue's policy allows EventBridge to send. Stock calls any function, once, and
  has no dead-letter queues for targets. Source: EventBridge user guide, "Using dead-letter queues to process
  undelivered events".
- event_conditions: Policies that allow events:PutEvents may restrict events:source and events:detail-type.
  Stock MiniStack doesn't know the keys, so a policy with them allows nothing. Source: EventBridge user guide,
  "Using IAM policy conditions in Amazon EventBridge"; service authorization reference.

Beyond AWS: POST schedules/fire {"group": "default", "name": …, "at": ISO time} under /_simulator invokes one
schedule as if it were due at that time, skips its earlier occurrences, and returns the result of the first
attempt. Without `at`, the time is the next due time.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and events"`
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from simulators.aws import controls, identity, settings
from simulators.aws.delivery import Outcome, Policy, Undelivered, deliver, send_to_dead_letter_queue
from simulators.aws.hooks import Answer, Original, Patch, get_region, import_ministack, run_in_background
from simulators.aws.scheduled_calls import SERVICE, Occurrence, call, find_next_due, is_once, parse_moment
from simulators.core import control

SCHEDULER = Patch("scheduler_clock")
_SCHEDULER_MODULE: Final = "ministack.services.scheduler"
_TICK_SECONDS: Final = 1.0
_STARTED: Final = datetime.now(UTC)
_log: Final = logging.getLogger("lakeferry.scheduler")
#: By schedule: the time up to which its occurrences were invoked, or passed over by POST schedules/fire.
_processed_until: dict[Any, datetime] = {}
_lock: Final = threading.Lock()


@SCHEDULER.replaces(_SCHEDULER_MODULE, "_create_schedule", "name body")
def create_schedule(original: Original, name: str, body: dict[str, Any]) -> Answer:
    refusal = _find_refusal(body)
    answer = refusal or original(name, body)
    if answer[0] == 200:
        _processed_until.pop(_build_schedule_key(body.get("GroupName", "default"), name), None)
    return answer


@SCHEDULER.replaces(_SCHEDULER_MODULE, "_update_schedule", "name body")
def update_schedule(original: Original, name: str, body: dict[str, Any]) -> Answer:
    return _find_refusal(body) or original(name, body)


@SCHEDULER.replaces(_SCHEDULER_MODULE, "_ticker_loop", "")
def run_ticker_loop(_: Callable[[], None]) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        try:
            _fire_due_schedules(datetime.now(UTC))
        except Exception:  # a schedule that fails must not stop the clock
            _log.exception("a schedule could not be called")


def _fire_due_schedules(now: datetime) -> None:
    for key, schedule in list(import_ministack("services.scheduler")._schedules._data.items()):
        while (due := _find_due_time(key, schedule)) and due <= now:
            _fire_schedule(key, schedule, due)


@controls.register("POST", "/schedules/fire", waits=True)
def fire_schedule_now(request: control.Request) -> control.Response:
    try:
        document = json.loads(request.body)
        name = f"{document.get('group', 'default')}/{document['name']}"
        at = parse_moment(document.get("at"))
    except (ValueError, KeyError, TypeError) as mistake:
        return control.build_json_response({"error": f"give group, name and at (ISO 8601): {mistake}"}, 400)
    schedules = import_ministack("services.scheduler")._schedules._data
    key = next((key for key in schedules if key[2] == name), None)  # in any region
    if key is None:
        return control.build_json_response({"error": f"no schedule {name}"}, 404)
    schedule = schedules[key]
    due = at or _find_due_time(key, schedule, at_least=datetime.now(UTC))
    if due is None or schedule["State"] != "ENABLED":
        article = "a" if due else "no"
        error = f"schedule {key[2]} is {schedule['State']} and has {article} next time"
        return control.build_json_response({"error": error}, 409)
    return control.build_json_response(_fire_schedule(key, schedule, due))


def _build_schedule_key(group: str, name: str) -> tuple[str, str, str]:
    return settings.ACCOUNT, get_region(), f"{group}/{name}"


def _find_due_time(key: Any, schedule: dict[str, Any], at_least: datetime | None = None) -> datetime | None:
    if schedule.get("State") != "ENABLED":
        return None
    seen = _processed_until.setdefault(key, max(_STARTED, parse_moment(schedule["CreationDate"]) or _STARTED))
    return find_next_due(schedule, max(seen, at_least or seen))


def _fire_schedule(key: Any, schedule: dict[str, Any], due: datetime) -> dict[str, Any]:
    with _lock:
        _processed_until[key] = max(due, _processed_until.get(key, due))
    occurrence = Occurrence(schedule, due)
    context = contextvars.copy_context()
    outcome = context.run(_run_in_scope, key, lambda: call(occurrence))
    _log.info("%s at %s: %s", key[2], occurrence.scheduled_time, outcome.error or "delivered")
    if is_once(schedule) and schedule.get("ActionAfterCompletion") == "DELETE":
        import_ministack("services.scheduler")._schedules._data.pop(key, None)
    return {
        "schedule": schedule["Arn"],
        "scheduled_time": occurrence.scheduled_time,
        "execution_id": occurrence.execution_id,
        "invocation": _describe_invocation(outcome),
    }


def _run_in_scope(key: Any, attempt: Callable[[], Outcome]) -> Outcome:
    responses = import_ministack("core.responses")
    responses.set_request_account_id(key[0])
    responses.set_request_region(key[1])
    return attempt()


def _describe_invocation(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is None:
        return {"state": "delivered", "answer": outcome.answer}
    state = "retrying" if outcome.goes_on else "failed"
    return {"state": state, "error": outcome.error.code, "message": outcome.error.message}


def _find_refusal(body: dict[str, Any]) -> Answer | None:
    message = _find_validation_error(body)
    refusal: Answer = import_ministack("services.scheduler")._error(400, "ValidationException", message)
    return refusal if message else None


def _find_validation_error(body: dict[str, Any]) -> str:
    try:
        ZoneInfo(body.get("ScheduleExpressionTimezone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return "Invalid ScheduleExpressionTimezone."
    role = (body.get("Target") or {}).get("RoleArn", "")
    group = import_ministack("services.scheduler")._group_arn(body.get("GroupName", "default"))
    if role and not identity.is_trusted_by_role(role, SERVICE, group):
        return "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
    return ""


TARGETS = Patch("event_targets")
_EVENTS: Final = "ministack.services.eventbridge"
_SERVICE: Final = "events.amazonaws.com"


class _Match(NamedTuple):
    """A rule that an event matched, and one of its targets."""

    target: dict[str, Any]
    rule_arn: str
    event: dict[str, Any]


_matched: Final[contextvars.ContextVar[_Match]] = contextvars.ContextVar("lakeferry_matched")


@TARGETS.replaces(_EVENTS, "_invoke_target", "target event rule view")
def invoke_target(
    original: Callable[..., None],
    target: dict[str, Any],
    event: dict[str, Any],
    rule: dict[str, Any],
    view: Any = None,
) -> None:
    token = _matched.set(_Match(target, rule.get("Arn", ""), event))
    try:
        original(target, event, rule, view)
    finally:
        _matched.reset(token)


@TARGETS.replaces(_EVENTS, "_dispatch_to_lambda", "arn payload")
def dispatch_to_lambda(_: Callable[..., None], arn: str, payload: str) -> None:
    match = _matched.get()
    deliver(
        lambda _: _call(arn, payload, match.rule_arn),
        Policy.from_target(match.target),
        lambda outcome: _send_to_dead_letter_queue(match, outcome),
    )


def _call(arn: str, payload: str, rule_arn: str) -> None:
    """Call the target. Raises Undelivered."""
    functions = import_ministack("services.lambda_svc")
    record, config, _ = functions._get_func_record_for_ref(arn)
    if not record or not config:
        raise Undelivered("NO_RESOURCE", f"Function not found: {arn}")
    policy, _ = functions.function_policy_for_arn(arn) or (None, "")
    if not identity.is_allowed_by_policy(policy, _SERVICE, "lambda:InvokeFunction", arn, rule_arn):
        raise Undelivered("NO_PERMISSIONS", "Lack of permissions to invoke the target.")
    functions.invoke_async_with_retry(
        functions._execution_record_for_config(record, config), json.loads(payload)
    )


def _send_to_dead_letter_queue(match: _Match, outcome: Outcome) -> None:
    queue = (match.target.get("DeadLetterConfig") or {}).get("Arn", "")
    if not queue or not import_ministack("services.sqs").queue_policy_allows(
        queue, _SERVICE, match.rule_arn, settings.ACCOUNT
    ):
        return
    body = json.dumps(
        import_ministack("services.eventbridge")._pattern_event_view(match.event).event_with_detail()
    )
    attributes = outcome.build_attributes(RULE_ARN=match.rule_arn, TARGET_ARN=match.target["Arn"])
    run_in_background(send_to_dead_letter_queue, queue, identity.ROOT, body, attributes)


CONDITIONS = Patch("event_conditions")
_PUT_EVENTS: Final = "events:PutEvents"
#: By condition key: the field of an entry.
_KEYS_OF_ENTRIES: Final = {"events:source": "Source", "events:detail-type": "DetailType"}


@CONDITIONS.replaces("ministack.core.iam_actions", "request_tag_context", "service iam_action body params")
def build_request_context(
    original: Callable[..., dict[str, Any]], service: str, action: str, body: bytes, params: dict[str, Any]
) -> dict[str, Any]:
    context = original(service, action, body, params)
    if action != _PUT_EVENTS:
        return context
    entries = json.loads(body).get("Entries", [])
    for key, field in _KEYS_OF_ENTRIES.items():
        values = sorted({str(entry.get(field, "")) for entry in entries})
        context[key] = values[0] if len(values) == 1 else values
    return context


PATCHES: Final = (
    SCHEDULER,
    TARGETS,
    CONDITIONS,
)
