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
    ErrorKind,
    LakeferryError,
    NotFound,
    RateLimited,
    Refused,
    Transient,
    shorten_detail,
)
from lambdas.shared.http import Response, read_requested_wait

AUTH: Final = ErrorKind("SNF-AUTH")
NETWORK: Final = ErrorKind("SNF-NETWORK-POLICY")
ROLE: Final = ErrorKind("SNF-ROLE")
PRIVILEGE: Final = ErrorKind("SNF-PRIVILEGE")
UNSEEN: Final = ErrorKind("SNF-UNSEEN")
RENAMED: Final = ErrorKind("SNF-RENAMED")
OTHER_ACCOUNT: Final = ErrorKind("SNF-OTHER-ACCOUNT")
MISSING: Final = ErrorKind("SNF-MISSING")
EXISTS: Final = ErrorKind("SNF-EXISTS")
FOREIGN: Final = ErrorKind("SNF-FOREIGN")
COMMENT_CHANGED: Final = ErrorKind("SNF-COMMENT-CHANGED")
DATABASE_NOT_EMPTY: Final = ErrorKind("SNF-DATABASE-NOT-EMPTY")
SLOTS_TAKEN: Final = ErrorKind("SNF-KEY-SLOTS")
IN_USE: Final = ErrorKind("SNF-IN-USE")
INVALID: Final = ErrorKind("SNF-INVALID")
WAREHOUSE: Final = ErrorKind("SNF-WAREHOUSE")
RATE: Final = ErrorKind("SNF-RATE")
UNAVAILABLE: Final = ErrorKind("SNF-UNAVAILABLE")
UNEXPECTED: Final = ErrorKind("SNF-UNEXPECTED")
TRUNCATED: Final = ErrorKind("SNF-TRUNCATED")
KEY_NOT_READY: Final = ErrorKind("SNF-KEY-NOT-READY")
TRUST_PRINCIPAL: Final = ErrorKind("SNF-TRUST-PRINCIPAL")
TRUST_EXTERNAL_ID: Final = ErrorKind("SNF-TRUST-EXTERNAL-ID")
TRUST_ROLE: Final = ErrorKind("SNF-TRUST-ROLE")
TRUST_STORAGE: Final = ErrorKind("SNF-TRUST-STORAGE")
TRUST_CATALOG: Final = ErrorKind("SNF-TRUST-CATALOG")
TRUST_REGION: Final = ErrorKind("SNF-TRUST-REGION")
TRUST_NAMESPACE: Final = ErrorKind("SNF-TRUST-NAMESPACE")
TABLE_MISSING: Final = ErrorKind("SNF-TABLE-MISSING")
EQUALITY_DELETES: Final = ErrorKind("SNF-EQUALITY-DELETES")
REFRESH: Final = ErrorKind("SNF-REFRESH")
LINK: Final = ErrorKind("SNF-LINK")
GRANTEE_MISSING: Final = ErrorKind("SNF-GRANTEE-MISSING")
VIEW: Final = ErrorKind("SNF-VIEW")


#: Seconds to wait after a 429 that doesn't say how long.
DEFAULT_WAIT: Final = 10.0
TRUNCATED_CODE: Final = "391908"
_CODES: Final[Mapping[str, tuple[type[LakeferryError], ErrorKind]]] = {
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
_STATUSES: Final[Mapping[int, tuple[type[LakeferryError], ErrorKind]]] = {
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
        error_class, kind = _CODES[code]
        return error_class(kind, what)
    if answer.status == 422 and mentions(what, *_USED) and label.startswith("DROP"):
        return Conflict(IN_USE, what)
    error_class, kind = _STATUSES.get(answer.status, (Refused, UNEXPECTED))
    return error_class(kind, what)


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
