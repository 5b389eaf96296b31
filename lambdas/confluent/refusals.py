"""From an answer of Confluent Cloud to the error that it means. Its planes write errors in four shapes, and in HTML."""

from __future__ import annotations

from typing import Any

from lambdas.confluent import errors as confluent_errors
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

#: How long to leave Confluent alone after a 429 that doesn't say.
UNASKED_WAIT = 10.0
_ROWS: dict[int, tuple[type[LakeferryError], ErrorRow]] = {
    400: (Refused, confluent_errors.INVALID),
    401: (Denied, confluent_errors.AUTH),
    402: (Refused, confluent_errors.QUOTA),
    403: (Denied, confluent_errors.AUTH_SCOPE),
    404: (NotFound, confluent_errors.NOT_FOUND),
    409: (Conflict, confluent_errors.CONFLICT),
    422: (Refused, confluent_errors.INVALID),
}


def refusal(answer: Answer, asked: str, clock: Clock, denied_patience: float) -> LakeferryError:
    """`asked` is method and path. The request id is in the words, for Confluent's support."""
    text = detail(answer.body)
    what = f"{asked}: HTTP {answer.status}" + (f", {text}" if text else "") + f" (request id {answer.request_id or 'not given'})"
    if answer.status == 429:
        asked_for = asked_wait(answer.headers, clock)
        return RateLimited(confluent_errors.RATE, what, wait=UNASKED_WAIT if asked_for is None else asked_for)
    if answer.status in _ROWS:
        kind, row = _ROWS[answer.status]
        return kind(row, what, patience=denied_patience) if kind is Denied else kind(row, what)
    if answer.status >= 500 and answer.status != 501:
        return Transient(confluent_errors.UNAVAILABLE, what)
    return Refused(confluent_errors.UNEXPECTED, what)


def detail(body: Any) -> str:
    """What the vendor says went wrong, at most DETAIL_LENGTH characters; "" where it says nothing, or an HTML page."""
    return _said(body)[:DETAIL_LENGTH]


def _said(body: Any) -> str:
    if isinstance(body, str):
        return "" if "<" in body else body.strip()
    if not isinstance(body, dict):
        return ""
    if isinstance(body.get("errors"), list):
        return "; ".join(filter(None, map(_one, body["errors"])))
    nested = body.get("error")
    return _one(nested) if isinstance(nested, dict) else _one(body)


def _one(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    said = error.get("detail") or error.get("title") or error.get("message") or ""
    source = error.get("source")
    pointer = source.get("pointer") or source.get("parameter") if isinstance(source, dict) else None
    return f"{said} ({pointer})" if pointer else str(said)


def says(error: LakeferryError, *phrases: str) -> bool:
    """Whether the vendor's words hold one of `phrases`, in any case. Confluent gives few codes, so words must do."""
    return any(phrase.lower() in error.what.lower() for phrase in phrases)
