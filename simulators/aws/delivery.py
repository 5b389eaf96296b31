"""Trying again what a target refused, and the queue for what can't be delivered at all.

The pauses between tries are short: AWS waits up to a day. Limits on tries and age hold as given.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from simulators.aws.hooks import in_background
from simulators.aws.identity import Credentials, client, endpoint

#: Missing permissions, a missing target, a call that no repetition makes right.
_FINAL: Final = frozenset(
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
    """What the target answered: an error code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Policy(NamedTuple):
    """As in a target's RetryPolicy."""

    retries: int
    age: float

    @classmethod
    def of(cls, target: Mapping[str, Any]) -> Policy:
        given = target.get("RetryPolicy") or {}
        retries = given.get("MaximumRetryAttempts", _DEFAULT_RETRIES)
        return cls(int(retries), float(given.get("MaximumEventAgeInSeconds", _DEFAULT_AGE)))


class Outcome(NamedTuple):
    """Of one try, or of the last: `exhausted` names the limit that ended it, and is empty where none was reached."""

    tries: int
    answer: Any = None
    error: Undelivered | None = None
    goes_on: bool = False
    exhausted: str = ""

    def attributes(self, **others: str) -> dict[str, dict[str, str]]:
        """Return the attributes of the message in the dead-letter queue."""
        assert self.error is not None
        answer = {"ERROR_CODE": self.error.code, "ERROR_MESSAGE": self.error.message, "RETRY_ATTEMPTS": str(self.tries - 1)}
        answer |= {"EXHAUSTED_RETRY_CONDITION": self.exhausted} if self.exhausted else {}
        return {name: {"DataType": "String", "StringValue": value} for name, value in {**answer, **others}.items() if value}


def deliver(attempt: Callable[[int], Any], policy: Policy, bury: Callable[[Outcome], None]) -> Outcome:
    """Try once and return the outcome. If another try is due, a thread goes on; `bury` gets what failed permanently."""
    began = time.monotonic()
    first = _try(attempt, 1, policy, began)
    if first.goes_on:
        in_background(_go_on, attempt, policy, bury, began)
    elif first.error:
        bury(first)
    return first


def _go_on(attempt: Callable[[int], Any], policy: Policy, bury: Callable[[Outcome], None], began: float) -> None:
    pause, tries, last = _FIRST_PAUSE, 2, Outcome(1, goes_on=True)
    while last.goes_on:
        time.sleep(pause)
        last = _try(attempt, tries, policy, began)
        pause, tries = min(2 * pause, _LONGEST_PAUSE), tries + 1
    if last.error:
        bury(last)


def _try(attempt: Callable[[int], Any], number: int, policy: Policy, began: float) -> Outcome:
    try:
        return Outcome(number, answer=attempt(number))
    except Undelivered as error:
        if error.code in _FINAL:
            return Outcome(number, error=error)
        if number > policy.retries:
            return Outcome(number, error=error, exhausted="MaximumRetryAttempts")
        if time.monotonic() - began > policy.age:
            return Outcome(number, error=error, exhausted="MaximumEventAgeInSeconds")
        return Outcome(number, error=error, goes_on=True)


def bury_in(queue_arn: str, credentials: Credentials, body: str, attributes: dict[str, dict[str, str]]) -> None:
    """Send it as a message with attributes. If that fails, it is lost, as on AWS; the log has the reason."""
    _, _, _, _, account, name = queue_arn.split(":")
    url = f"{endpoint()}/{account}/{name}"
    try:
        client("sqs", credentials).send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    except (ClientError, BotoCoreError) as error:
        _log.error("a dead letter for %s is lost: %s", name, error)


def undelivered(error: Exception) -> Undelivered:
    if isinstance(error, ClientError):
        answer = error.response["Error"]
        return Undelivered(answer.get("Code", "Unknown"), answer.get("Message", "") or answer.get("Code", ""))
    if isinstance(error, ParamValidationError):
        return Undelivered("ValidationException", str(error))
    assert isinstance(error, BotoCoreError)
    return Undelivered("InternalServerError", type(error).__name__)
