"""Code that all entry points share: AWS clients, required variables, the deadline, and one exception for all
failures.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

import boto3
from botocore.config import Config

from lambdas.custom_resources.request import parse_stack_arn
from lambdas.shared import errors
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import Log, open_log
from lambdas.shared.redaction import invocation, redact

#: CloudFormation accepts 4,096 bytes for the whole answer; ids and the framework's own text need the rest.
REASON_BYTES: Final = 2000
AWS_CONFIG: Final = Config(
    connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4}
)


class LambdaContext(Protocol):
    @property
    def aws_request_id(self) -> str: ...

    @property
    def invoked_function_arn(self) -> str: ...

    def get_remaining_time_in_millis(self) -> int: ...


class Failed(Exception):
    """Has the message that CloudFormation, Secrets Manager or Lambda shows: short, without secrets or a stack
    trace.
    """


@functools.cache
def get_client(service: str, config: Config = AWS_CONFIG) -> Any:
    """Return a client that is reused while the function stays warm, because creating one takes a tenth of a
    second.
    """
    session: Any = boto3.session.Session()
    return session.client(service, config=config)


@contextmanager
def entry_point(**fields: Any) -> Iterator[Log]:
    """Run one invocation with a log that adds `fields` to each line.

    Every exception is replaced by Failed.
    """
    log = open_log().bind(**fields)
    with invocation():
        try:
            yield log
        except LakeferryError as error:
            log.error("failed", code=error.kind.code, reason=str(error))
            raise Failed(truncate(str(error), REASON_BYTES)) from None
        except Exception as error:
            log.error("failed unexpectedly", trace=True)
            raise Failed(str(LakeferryError(errors.INTERNAL, type(error).__name__))) from None


def compute_deadline(context: LambdaContext, margin_seconds: float) -> Deadline:
    """Return the end of this invocation's work, `margin_seconds` before Lambda ends it."""
    clock = SystemClock()
    return Deadline(clock, clock.time() + context.get_remaining_time_in_millis() / 1000 - margin_seconds)


def require_own_stack(event: Mapping[str, Any], context: LambdaContext) -> None:
    """Raise LakeferryError unless the event comes from a stack of the function's own account and region."""
    account, region, _ = parse_stack_arn(str(event.get("StackId")))
    if [region, account] != context.invoked_function_arn.split(":")[3:5]:
        raise LakeferryError(errors.FOREIGN, f"a stack of account {account} in {region} sent it")


def truncate(text: str, length: int) -> str:
    """Return `text` without secrets, cut to at most `length` bytes of UTF-8 at the end of a character."""
    encoded = redact(text).encode()
    return encoded.decode() if len(encoded) <= length else encoded[: length - 3].decode(errors="ignore") + "…"
