"""Errors of Snowflake, and the error of a response of the SQL API.

Snowflake's codes are more precise than the HTTP status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lambdas.shared.clock import Clock
from lambdas.shared.errors import (
    Conflict,
    Denied,
    ErrorRow,
    LakeferryError,
    NotFound,
    RateLimited,
    Refused,
    Transient,
    shorten_detail,
)
from lambdas.shared.http import Response, read_requested_wait

AUTH: Final = ErrorRow("SNF-AUTH")
NETWORK: Final = ErrorRow("SNF-NETWORK-POLICY")
ROLE: Final = ErrorRow("SNF-ROLE")
PRIVILEGE: Final = ErrorRow("SNF-PRIVILEGE")
UNSEEN: Final = ErrorRow("SNF-UNSEEN")
RENAMED: Final = ErrorRow("SNF-RENAMED")
OTHER_ACCOUNT: Final = ErrorRow("SNF-OTHER-ACCOUNT")
MISSING: Final = ErrorRow("SNF-MISSING")
EXISTS: Final = ErrorRow("SNF-EXISTS")
FOREIGN: Final = ErrorRow("SNF-FOREIGN")
COMMENT_CHANGED: Final = ErrorRow("SNF-COMMENT-CHANGED")
DATABASE_NOT_EMPTY: Final = ErrorRow("SNF-DATABASE-NOT-EMPTY")
SLOTS_TAKEN: Final = ErrorRow("SNF-KEY-SLOTS")
IN_USE: Final = ErrorRow("SNF-IN-USE")
INVALID: Final = ErrorRow("SNF-INVALID")
WAREHOUSE: Final = ErrorRow("SNF-WAREHOUSE")
RATE: Final = ErrorRow("SNF-RATE")
UNAVAILABLE: Final = ErrorRow("SNF-UNAVAILABLE")
UNEXPECTED: Final = ErrorRow("SNF-UNEXPECTED")
TRUNCATED: Final = ErrorRow("SNF-TRUNCATED")
KEY_NOT_READY: Final = ErrorRow("SNF-KEY-NOT-READY")
TRUST_PRINCIPAL: Final = ErrorRow("SNF-TRUST-PRINCIPAL")
TRUST_EXTERNAL_ID: Final = ErrorRow("SNF-TRUST-EXTERNAL-ID")
TRUST_ROLE: Final = ErrorRow("SNF-TRUST-ROLE")
TRUST_STORAGE: Final = ErrorRow("SNF-TRUST-STORAGE")
TRUST_CATALOG: Final = ErrorRow("SNF-TRUST-CATALOG")
TRUST_REGION: Final = ErrorRow("SNF-TRUST-REGION")
TRUST_NAMESPACE: Final = ErrorRow("SNF-TRUST-NAMESPACE")
TABLE_MISSING: Final = ErrorRow("SNF-TABLE-MISSING")
EQUALITY_DELETES: Final = ErrorRow("SNF-EQUALITY-DELETES")
REFRESH: Final = ErrorRow("SNF-REFRESH")
LINK: Final = ErrorRow("SNF-LINK")


#: Seconds to wait after a 429 that doesn't say how long.
DEFAULT_WAIT: Final = 10.0
TRUNCATED_CODE: Final = "391908"
_CODES: Final[Mapping[str, tuple[type[LakeferryError], ErrorRow]]] = {
    "002003": (NotFound, MISSING),
    "002043": (NotFound, MISSING),
    "002002": (Conflict, EXISTS),
    "003001": (Denied, PRIVILEGE),
    "003041": (Denied, PRIVILEGE),
    "000606": (Refused, WAREHOUSE),
    "091968": (Refused, EQUALITY_DELETES),
    "000604": (Transient, UNAVAILABLE),
    "000630": (Transient, UNAVAILABLE),
    "390186": (Denied, ROLE),
    "390189": (Denied, ROLE),
    "390420": (Refused, NETWORK),
    "390422": (Refused, NETWORK),
}
_STATUSES: Final[Mapping[int, tuple[type[LakeferryError], ErrorRow]]] = {
    400: (Refused, INVALID),
    401: (Denied, AUTH),
    403: (Denied, AUTH),
    404: (NotFound, MISSING),
    408: (Transient, UNAVAILABLE),
    422: (Refused, INVALID),
}
_USED: Final = ("used by", "in use", "being used", "is associated with", "depend")


def read_error(answer: Response, label: str, clock: Clock, skew: str = "") -> LakeferryError:
    """Return the error of a response.

    `label` is the start of the statement, `skew` describes the clocks' difference.
    """
    code = read_field(answer.body, "code")
    what = describe(answer, label) + (skew if answer.status in (401, 403) else "")
    if answer.status == 429:
        wait = read_requested_wait(answer.headers, clock)
        return RateLimited(RATE, what, wait=DEFAULT_WAIT if wait is None else wait)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, what)
    if code in _CODES:
        kind, row = _CODES[code]
        return kind(row, what)
    if answer.status == 422 and mentions(what, *_USED) and label.startswith("DROP"):
        return Conflict(IN_USE, what)
    kind, row = _STATUSES.get(answer.status, (Refused, UNEXPECTED))
    return kind(row, what)


def describe(answer: Response, label: str) -> str:
    code = read_field(answer.body, "code")
    message = read_field(answer.body, "message")
    details = " ".join(filter(None, (code, shorten_detail(" ".join(message.split())))))
    handle = read_field(answer.body, "statementHandle") or answer.request_id or "not given"
    return f"{label}: HTTP {answer.status}" + (f", {details}" if details else "") + f" (query id {handle})"


def read_field(body: Any, name: str) -> str:
    """Return a field of a response as text; "" if there is none."""
    value = body.get(name) if isinstance(body, dict) else None
    return "" if value is None or isinstance(value, dict | list) else str(value)


def mentions(text: str, *phrases: str) -> bool:
    """Return whether `text` contains one of `phrases`, ignoring case."""
    return any(phrase.lower() in text.lower() for phrase in phrases)
