"""Errors of Confluent Cloud, and the error of an HTTP answer."""

from __future__ import annotations

import re
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

AUTH: Final = ErrorKind("CFL-AUTH")
AUTH_SCOPE: Final = ErrorKind("CFL-AUTH-SCOPE")
UNSEEN: Final = ErrorKind("CFL-UNSEEN")
OTHER_ORGANIZATION: Final = ErrorKind("CFL-OTHER-ORGANIZATION")
NOT_FOUND: Final = ErrorKind("CFL-NOT-FOUND")
CONFLICT: Final = ErrorKind("CFL-CONFLICT")
FOREIGN_SUBJECT: Final = ErrorKind("CFL-FOREIGN-SUBJECT")
FOREIGN_TOPIC: Final = ErrorKind("CFL-FOREIGN-TOPIC")
FOREIGN_TABLEFLOW: Final = ErrorKind("CFL-FOREIGN-TABLEFLOW")
FOREIGN_CATALOG: Final = ErrorKind("CFL-FOREIGN-CATALOG")
SCHEMA_INCOMPATIBLE: Final = ErrorKind("CFL-SCHEMA-INCOMPATIBLE")
INVALID: Final = ErrorKind("CFL-INVALID")
QUOTA: Final = ErrorKind("CFL-QUOTA")
RATE: Final = ErrorKind("CFL-RATE")
UNAVAILABLE: Final = ErrorKind("CFL-UNAVAILABLE")
UNEXPECTED: Final = ErrorKind("CFL-UNEXPECTED")
KEY_NOT_READY: Final = ErrorKind("CFL-KEY-NOT-READY")
CLUSTER_FAILED: Final = ErrorKind("CFL-CLUSTER-FAILED")
DELETION_PROTECTED: Final = ErrorKind("CFL-DELETION-PROTECTED")
ENVIRONMENT_NOT_EMPTY: Final = ErrorKind("CFL-ENVIRONMENT-NOT-EMPTY")
CANT_CHANGE: Final = ErrorKind("CFL-CANT-CHANGE")
POOL_FAILED: Final = ErrorKind("CFL-POOL-FAILED")
FLINK_FAILED: Final = ErrorKind("CFL-FLINK-FAILED")
FLINK_STOPPED_RUNNING: Final = ErrorKind("CFL-FLINK-STOPPED-RUNNING")
FLINK_ENDED: Final = ErrorKind("CFL-FLINK-ENDED")
FLINK_NO_OFFSETS: Final = ErrorKind("CFL-FLINK-NO-OFFSETS")
FLINK_NOT_IN_PLACE: Final = ErrorKind("CFL-FLINK-NOT-IN-PLACE")
FLINK_TABLEFLOW: Final = ErrorKind("CFL-FLINK-TABLEFLOW")
CONNECTOR_CONFIG: Final = ErrorKind("CFL-CONNECTOR-CONFIG")
CONNECTOR_FAILED: Final = ErrorKind("CFL-CONNECTOR-FAILED")
INTEGRATION_IN_USE: Final = ErrorKind("CFL-INTEGRATION-IN-USE")
SCHEMALESS: Final = ErrorKind("CFL-SCHEMALESS")
STORAGE_NOT_EMPTY: Final = ErrorKind("CFL-STORAGE-NOT-EMPTY")
TABLEFLOW_FAILED: Final = ErrorKind("CFL-TABLEFLOW-FAILED")
TABLEFLOW_SUSPENDED: Final = ErrorKind("CFL-TABLEFLOW-SUSPENDED")
CATALOG_FAILED: Final = ErrorKind("CFL-CATALOG-FAILED")
MISSING_ENDPOINT: Final = ErrorKind("CFL-NO-ENDPOINT")
NO_GOVERNANCE: Final = ErrorKind("CFL-NO-GOVERNANCE")
IP_FILTER: Final = ErrorKind("CFL-IP-FILTER")
NO_CLUSTER: Final = ErrorKind("CFL-NO-CLUSTER")
UNFIT_CLUSTER: Final = ErrorKind("CFL-UNFIT-CLUSTER")
NO_TOPIC: Final = ErrorKind("CFL-NO-TOPIC")
NO_SCHEMA: Final = ErrorKind("CFL-NO-SCHEMA")
OTHER_WRITE_MODE: Final = ErrorKind("CFL-OTHER-WRITE-MODE")
NO_CATALOG: Final = ErrorKind("CFL-NO-CATALOG")


#: Seconds to wait after a 429 that doesn't say how long.
DEFAULT_WAIT = 10.0
#: What a call from an address outside of the organization's IP filters is told. The documentation has no list
#: of messages.
_IP_FILTER: Final = re.compile(
    r"IP[ _-]?filter|IP address.{0,60}not (?:allowed|permitted|authorized)", re.IGNORECASE
)
_KINDS: dict[int, tuple[type[LakeferryError], ErrorKind]] = {
    400: (Refused, INVALID),
    401: (Denied, AUTH),
    402: (Refused, QUOTA),
    403: (Denied, AUTH_SCOPE),
    404: (NotFound, NOT_FOUND),
    409: (Conflict, CONFLICT),
    422: (Refused, INVALID),
}


def build_error(answer: Response, call: str, clock: Clock, denied_patience: float) -> LakeferryError:
    """Return the error of a response.

    `call` is method and path. The message has the request id for Confluent's support.
    """
    text = read_detail(answer.body)
    reason = f", {text}" if text else ""
    request_id = answer.request_id or "not given"
    message = f"{call}: HTTP {answer.status}{reason} (request id {request_id})"
    if answer.status == 429:
        wait = read_requested_wait(answer.headers, clock)
        if wait is None:
            wait = DEFAULT_WAIT
        return RateLimited(RATE, message, wait=wait)
    if answer.status in (401, 403) and _IP_FILTER.search(text):
        return Refused(IP_FILTER, message)
    if answer.status in _KINDS:
        error_class, kind = _KINDS[answer.status]
        if error_class is Denied:
            return Denied(kind, message, patience=denied_patience)
        return error_class(kind, message)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, message)
    return Refused(UNEXPECTED, message)


def read_detail(body: Any) -> str:
    """Return the vendor's message, at most DETAIL_LENGTH characters; "" if there is none, or an HTML page."""
    message = ""
    if isinstance(body, str):
        message = "" if "<" in body else body.strip()
    elif isinstance(body, dict) and isinstance(body.get("errors"), list):
        message = "; ".join(filter(None, map(_read_message, body["errors"])))
    elif isinstance(body, dict):
        error = body.get("error")
        message = _read_message(error) if isinstance(error, dict) else _read_message(body)
    return shorten_detail(message)


def _read_message(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    message = error.get("detail") or error.get("title") or error.get("message") or ""
    source = error.get("source")
    pointer = source.get("pointer") or source.get("parameter") if isinstance(source, dict) else None
    return f"{message} ({pointer})" if pointer else str(message)


def mentions(error: LakeferryError, *phrases: str) -> bool:
    """Return whether the vendor's message contains one of `phrases`, ignoring case.

    Confluent returns few error codes.
    """
    return any(phrase.lower() in error.what.lower() for phrase in phrases)
