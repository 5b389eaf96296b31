"""Delivers to targets with retries, and sends what can't be delivered to a dead-letter queue.

The pauses between attempts are short, whereas AWS retries for up to a day. RetryPolicy's limits on retries
and age apply unchanged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from simulators.aws.hooks import run_in_background
from simulators.aws.identity import Credentials, build_client, get_endpoint

#: Errors that a retry can't fix: missing permissions, a missing target, an invalid call.
_PERMANENT_ERRORS: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "EntityNotFoundException",
        "InvalidInputException",
        "InvalidParameterValueException",
        "NO_PERMISSIONS",
        "NO_RESOURCE",
        "ResourceNotFoundException",
        "ValidationException",
    }
)
_log: Final = logging.getLogger("lakeferry.delivery")
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_DEFAULT_RETRIES: Final = 185
_DEFAULT_AGE: Final = 86400


class Undelivered(Exception):
    """The delivery failed, with the target's error code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Policy(NamedTuple):
    """A target's RetryPolicy: the number of retries, and the maximum age of the event in seconds."""

    retries: int
    age: float

    @classmethod
    def from_target(cls, target: Mapping[str, Any]) -> Policy:
        retry_policy = target.get("RetryPolicy") or {}
        retries = retry_policy.get("MaximumRetryAttempts", _DEFAULT_RETRIES)
        return cls(int(retries), float(retry_policy.get("MaximumEventAgeInSeconds", _DEFAULT_AGE)))


class Outcome(NamedTuple):
    """The outcome of attempt number `tries`.

    `goes_on`: another follows. `exhausted`: the limit that was reached, if any.
    """

    tries: int
    answer: Any = None
    error: Undelivered | None = None
    goes_on: bool = False
    exhausted: str = ""

    def build_attributes(self, **more_attributes: str) -> dict[str, dict[str, str]]:
        """Return the attributes of the message for the dead-letter queue."""
        assert self.error is not None
        answer = {
            "ERROR_CODE": self.error.code,
            "ERROR_MESSAGE": self.error.message,
            "RETRY_ATTEMPTS": str(self.tries - 1),
        }
        attributes = {**answer, "EXHAUSTED_RETRY_CONDITION": self.exhausted, **more_attributes}
        return {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items() if value
        }


def deliver(attempt: Callable[[int], Any], policy: Policy, bury: Callable[[Outcome], None]) -> Outcome:
    """Make one attempt and return its outcome. Retries run in a thread. `bury` gets the outcome if the
    delivery fails for good."""
    began = time.monotonic()
    first = _make_attempt(attempt, 1, policy, began)
    if first.goes_on:
        run_in_background(_retry, attempt, policy, bury, began)
    elif first.error:
        bury(first)
    return first


def _retry(
    attempt: Callable[[int], Any], policy: Policy, bury: Callable[[Outcome], None], began: float
) -> None:
    pause = _FIRST_PAUSE
    tries = 2
    last = Outcome(1, goes_on=True)
    while last.goes_on:
        time.sleep(pause)
        last = _make_attempt(attempt, tries, policy, began)
        pause = min(2 * pause, _LONGEST_PAUSE)
        tries = tries + 1
    if last.error:
        bury(last)


def _make_attempt(attempt: Callable[[int], Any], number: int, policy: Policy, began: float) -> Outcome:
    try:
        return Outcome(number, answer=attempt(number))
    except Undelivered as error:
        if error.code in _PERMANENT_ERRORS:
            return Outcome(number, error=error)
        if number > policy.retries:
            return Outcome(number, error=error, exhausted="MaximumRetryAttempts")
        if time.monotonic() - began > policy.age:
            return Outcome(number, error=error, exhausted="MaximumEventAgeInSeconds")
        return Outcome(number, error=error, goes_on=True)


def send_to_dead_letter_queue(
    queue_arn: str, credentials: Credentials, body: str, attributes: dict[str, dict[str, str]]
) -> None:
    """Send a message to the dead-letter queue.

    If that fails, the message is lost, as on AWS; the log has the reason.
    """
    _, _, _, _, account, name = queue_arn.split(":")
    url = f"{get_endpoint()}/{account}/{name}"
    try:
        build_client("sqs", credentials).send_message(
            QueueUrl=url, MessageBody=body, MessageAttributes=attributes
        )
    except (ClientError, BotoCoreError) as error:
        _log.error("a dead letter for %s is lost: %s", name, error)


def describe_failure(error: Exception) -> Undelivered:
    if isinstance(error, ClientError):
        answer = error.response["Error"]
        return Undelivered(answer.get("Code", "Unknown"), answer.get("Message", "") or answer.get("Code", ""))
    if isinstance(error, ParamValidationError):
        return Undelivered("ValidationException", str(error))
    assert isinstance(error, BotoCoreError)
    return Undelivered("InternalServerError", type(error).__name__)
