"""Functions as targets of EventBridge rules: called where their policy lets EventBridge in, and a dead letter where not.

Stock MiniStack calls any function, once and without the retries of an asynchronous call, and knows no dead-letter queue of
targets. Here the target's RetryPolicy holds; a missing permission or function goes to its queue without another try, with the
attributes that AWS names, where the queue's policy lets EventBridge send.
"""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from simulators.aws import identity, settings
from simulators.aws.delivery import Outcome, Policy, Undelivered, bury_in, deliver
from simulators.aws.hooks import Patch, in_background, ministack

PATCH = Patch("event_targets")
_EVENTS: Final = "ministack.services.eventbridge"
_SERVICE: Final = "events.amazonaws.com"


class _Match(NamedTuple):
    """A rule that an event matched, and one of its targets."""

    target: dict[str, Any]
    rule_arn: str
    event: dict[str, Any]


_matched: Final[contextvars.ContextVar[_Match]] = contextvars.ContextVar("lakeferry_matched")


@PATCH.replaces(_EVENTS, "_invoke_target", "target event rule view")
def invoke_target(
    original: Callable[..., None], target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], view: Any = None
) -> None:
    token = _matched.set(_Match(target, rule.get("Arn", ""), event))
    try:
        original(target, event, rule, view)
    finally:
        _matched.reset(token)


@PATCH.replaces(_EVENTS, "_dispatch_to_lambda", "arn payload")
def dispatch_to_lambda(_: Callable[..., None], arn: str, payload: str) -> None:
    match = _matched.get()
    deliver(lambda _: _call(arn, payload, match.rule_arn), Policy.of(match.target), lambda outcome: _bury(match, outcome))


def _call(arn: str, payload: str, rule_arn: str) -> None:
    """Raises Undelivered."""
    functions = ministack("services.lambda_svc")
    record, config, _ = functions._get_func_record_for_ref(arn)
    if not record or not config:
        raise Undelivered("NO_RESOURCE", f"Function not found: {arn}")
    policy, _ = functions.function_policy_for_arn(arn) or (None, "")
    if not identity.lets_in(policy, _SERVICE, "lambda:InvokeFunction", arn, rule_arn):
        raise Undelivered("NO_PERMISSIONS", "Lack of permissions to invoke the target.")
    functions.invoke_async_with_retry(functions._execution_record_for_config(record, config), json.loads(payload))


def _bury(match: _Match, outcome: Outcome) -> None:
    queue = (match.target.get("DeadLetterConfig") or {}).get("Arn", "")
    if not queue or not _may_send(queue, match.rule_arn):
        return
    body = json.dumps(ministack("services.eventbridge")._pattern_event_view(match.event).event_with_detail())
    attributes = outcome.attributes(RULE_ARN=match.rule_arn, TARGET_ARN=match.target["Arn"])
    in_background(bury_in, queue, identity.ROOT, body, attributes)


def _may_send(queue_arn: str, rule_arn: str) -> bool:
    return bool(ministack("services.sqs").queue_policy_allows(queue_arn, _SERVICE, rule_arn, settings.ACCOUNT))
