"""From an answer of Snowflake's SQL API to the error that it means. Its codes tell more than the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lambdas.shared.clock import Clock
from lambdas.shared.errors import (
    DETAIL_LENGTH,
    Conflict,
    Denied,
    ErrorRow,
    LakeferryError,
    NotFound,
    RateLimited,
    Refused,
    Transient,
)
from lambdas.shared.http_types import Answer
from lambdas.shared.retry import asked_wait
from lambdas.snowflake import errors as snowflake_errors

#: How long to leave Snowflake alone after a 429 that doesn't say.
UNASKED_WAIT: Final = 10.0
TRUNCATED: Final = "391908"
_CODES: Final[Mapping[str, tuple[type[LakeferryError], ErrorRow]]] = {
    "002003": (NotFound, snowflake_errors.MISSING),
    "002043": (NotFound, snowflake_errors.MISSING),
    "002002": (Conflict, snowflake_errors.EXISTS),
    "003001": (Denied, snowflake_errors.PRIVILEGE),
    "003041": (Denied, snowflake_errors.PRIVILEGE),
    "000606": (Refused, snowflake_errors.WAREHOUSE),
    "091968": (Refused, snowflake_errors.EQUALITY_DELETES),
    "000604": (Transient, snowflake_errors.UNAVAILABLE),
    "000630": (Transient, snowflake_errors.UNAVAILABLE),
    "390186": (Denied, snowflake_errors.ROLE),
    "390189": (Denied, snowflake_errors.ROLE),
    "390420": (Refused, snowflake_errors.NETWORK),
    "390422": (Refused, snowflake_errors.NETWORK),
}
_STATUSES: Final[Mapping[int, tuple[type[LakeferryError], ErrorRow]]] = {
    400: (Refused, snowflake_errors.INVALID),
    401: (Denied, snowflake_errors.AUTH),
    403: (Denied, snowflake_errors.AUTH),
    404: (NotFound, snowflake_errors.MISSING),
    408: (Transient, snowflake_errors.UNAVAILABLE),
    422: (Refused, snowflake_errors.INVALID),
}
_USED: Final = ("used by", "in use", "being used", "is associated with", "depend")


def refusal(answer: Answer, asked: str, clock: Clock, skew: str = "") -> LakeferryError:
    """`asked` tells the statement, `skew` how far the clocks are apart. The words hold Snowflake's code and the query id."""
    code = field(answer.body, "code")
    what = described(answer, asked) + (skew if answer.status in (401, 403) else "")
    if answer.status == 429:
        wait = asked_wait(answer.headers, clock)
        return RateLimited(snowflake_errors.RATE, what, wait=UNASKED_WAIT if wait is None else wait)
    if answer.status >= 500 and answer.status != 501:
        return Transient(snowflake_errors.UNAVAILABLE, what)
    if code in _CODES:
        kind, row = _CODES[code]
        return kind(row, what)
    if answer.status == 422 and says(what, *_USED) and asked.startswith("DROP"):
        return Conflict(snowflake_errors.IN_USE, what)
    kind, row = _STATUSES.get(answer.status, (Refused, snowflake_errors.UNEXPECTED))
    return kind(row, what)


def described(answer: Answer, asked: str) -> str:
    code, message = field(answer.body, "code"), field(answer.body, "message")
    told = " ".join(filter(None, (code, " ".join(message.split())[:DETAIL_LENGTH])))
    handle = field(answer.body, "statementHandle") or answer.request_id or "not given"
    return f"{asked}: HTTP {answer.status}" + (f", {told}" if told else "") + f" (query id {handle})"


def field(body: Any, name: str) -> str:
    """A field of an answer as text; "" where there is none."""
    value = body.get(name) if isinstance(body, dict) else None
    return "" if value is None or isinstance(value, dict | list) else str(value)


def says(text: str, *phrases: str) -> bool:
    """Whether `text` holds one of `phrases`, in any case."""
    return any(phrase.lower() in text.lower() for phrase in phrases)
