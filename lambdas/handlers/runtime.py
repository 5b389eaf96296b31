"""How a function fails: one message for whoever called it, the whole in its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import Log
from lambdas.shared.redaction import invocation, redact

#: CloudFormation takes 4,096 bytes for the whole answer; ids and the framework's own words take their part.
REASON_BYTES: Final = 2000


class LambdaContext(Protocol):
    @property
    def invoked_function_arn(self) -> str: ...

    def get_remaining_time_in_millis(self) -> int: ...


class Failed(Exception):
    """The one message that CloudFormation, Secrets Manager or Lambda shows: short, and without a secret or a trace of ours."""


@contextmanager
def told(log: Log) -> Iterator[None]:
    """One invocation. Raises Failed in place of everything that is raised within."""
    with invocation():
        try:
            yield
        except LakeferryError as error:
            log.error("failed", code=error.row.code, reason=str(error))
            raise Failed(cut(str(error), REASON_BYTES)) from None
        except Exception as error:
            log.error("failed unexpectedly", trace=True)
            raise Failed(str(LakeferryError(errors.INTERNAL, type(error).__name__))) from None


def cut(text: str, length: int) -> str:
    """`text` without secrets, and at most `length` bytes of it in UTF-8, ending between two characters."""
    encoded = redact(text).encode()
    return encoded.decode() if len(encoded) <= length else encoded[: length - 3].decode(errors="ignore") + "…"
