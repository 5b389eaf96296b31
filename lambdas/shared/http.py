"""HTTP calls: safe addresses only, timeouts on every call, repetition, no redirects, no proxy or password from outside.

A session belongs to one invocation: it ends with the invocation's deadline, which lies before Lambda's own.
429 says that nothing was done, so every call may be repeated. A failure after the request was sent leaves that open, so only
a call that may be made twice is repeated.
"""

from __future__ import annotations

import gzip
import ipaddress
import json
import random
import zlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
import requests
import urllib3
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from lambdas.shared import errors
from lambdas.shared.clock import Clock, Deadline
from lambdas.shared.errors import LakeferryError, OutOfTime, Transient
from lambdas.shared.redaction import ApiKey


@attrs.frozen
class Response:
    """`body` is parsed JSON, text where it isn't JSON, None where it is empty. Header names are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def request_id(self) -> str:
        """The vendor's own name for this call: what its support asks for."""
        return self.headers.get("X-Request-Id", "") or self.headers.get("X-Amzn-RequestId", "")


class NotSent(Transient):
    """The request never left, so it had no effect."""


class ResponseLost(Transient):
    """The request was sent, and no whole answer came: it may have had its effect."""


LONGEST_WAIT = 30.0
NOT_IMPLEMENTED = 501


@attrs.frozen
class RetryPolicy:
    """`attempts` counts the first one too; `spread` gives a number from 0 to 1."""

    attempts: int = 4
    first_wait: float = 1.0
    spread: Callable[[], float] = random.random

    def run(self, call: Callable[[], Response], *, repeatable: bool, deadline: Deadline) -> Response:
        """Return the last answer, whatever it is. Raises what the last attempt raised: NotSent or ResponseLost."""
        attempt = 0
        while True:
            attempt += 1
            outcome: Response | NotSent | ResponseLost
            try:
                outcome = call()
                if not _may_repeat(outcome, repeatable):
                    return outcome
            except (NotSent, ResponseLost) as error:
                if isinstance(error, ResponseLost) and not repeatable:
                    raise
                outcome = error
            wait = self._wait(attempt, outcome, deadline.clock)
            if attempt >= self.attempts or wait >= deadline.left():
                if isinstance(outcome, Response):
                    return outcome
                raise outcome
            deadline.clock.sleep(wait)

    def _wait(self, attempt: int, outcome: Response | NotSent | ResponseLost, clock: Clock) -> float:
        requested = requested_wait(outcome.headers, clock) if isinstance(outcome, Response) else None
        grown = min(LONGEST_WAIT, self.first_wait * 2.0 ** (attempt - 1))
        return grown * (0.5 + 0.5 * self.spread()) if requested is None else requested + self.first_wait * self.spread()


def _may_repeat(answer: Response, repeatable: bool) -> bool:
    """Return whether the answer may differ next time. 429 says that nothing was done."""
    return answer.status == 429 or (repeatable and answer.status >= 500 and answer.status != NOT_IMPLEMENTED)


def requested_wait(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds that the vendor wants to be left alone; None where it doesn't say.

    Confluent's X-RateLimit-Reset counts seconds from now, unlike that of others.
    """
    for name in ("Retry-After", "X-RateLimit-Reset"):
        if (text := headers.get(name)) is not None and (wait := _seconds(text, clock)) is not None:
            return wait
    return None


def _seconds(text: str, clock: Clock) -> float | None:
    """`text` is a number, or a date as HTTP writes it."""
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.time())
    except ValueError:
        return None


def is_loopback(url: str) -> bool:
    """True for 127.0.0.1 and its like. A name, even localhost, may be made to mean another host."""
    try:
        return ipaddress.ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def require_safe(url: str) -> None:
    """Raises LakeferryError for plain HTTP to elsewhere, another scheme, and credentials in the URL."""
    parts = urlsplit(url)
    if parts.username or parts.password or not parts.hostname:
        raise LakeferryError(errors.ADDRESS, f"{parts.scheme}://{parts.hostname} has no host, or holds credentials")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise LakeferryError(errors.ADDRESS, f"{parts.scheme}://{parts.hostname} is not https")


USER_AGENT: Final = "Lakeferry/0.1 (Confluent and Snowflake resources for AWS CDK)"
#: Methods whose repetition has the same effect as one call. PATCH is: bodies hold values, not changes.
REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE", "PATCH"})
LARGEST_BODY: Final = 16 * 1024 * 1024
_PIECE: Final = 64 * 1024


@attrs.frozen
class Timeouts:
    """Seconds: until the connection stands, between two pieces of the answer, and for the whole call."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 60.0


class Session:
    """Raises OutOfTime instead of a call that could not end before `deadline`. `wire` carries the calls in place of sockets."""

    def __init__(
        self,
        deadline: Deadline,
        *,
        timeouts: Timeouts = Timeouts(),
        retry: RetryPolicy = RetryPolicy(),
        wire: BaseAdapter | None = None,
    ) -> None:
        self._deadline = deadline
        self._timeouts = timeouts
        self._retry = retry
        self._requests = requests.Session()
        self._requests.trust_env = False
        self._requests.headers["User-Agent"] = USER_AGENT
        if wire:
            self._requests.mount("http://", wire)

    def close(self) -> None:
        self._requests.close()

    def call(
        self,
        method: str,
        url: str,
        *,
        key: ApiKey | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        repeatable: bool | None = None,
        again: Mapping[str, str] | None = None,
    ) -> Response:
        """The answer with any status. `body` is sent as JSON; `again` are parameters of a repetition, beside `params`.

        Raises NotSent, ResponseLost, OutOfTime, LakeferryError (address).
        """
        require_safe(url)
        sent = requests.Request(
            method,
            url,
            headers={"Accept": "application/json", **(headers or {})},
            params=dict(params or {}),
            json=body,
            auth=(key.id, key.secret.reveal()) if key else None,
        )
        safe = method in REPEATABLE if repeatable is None else repeatable

        def once() -> Response:
            try:
                return self._once(sent)
            finally:
                sent.params = {**(params or {}), **(again or {})}

        return self._retry.run(once, repeatable=safe, deadline=self._deadline)

    def _once(self, sent: requests.Request) -> Response:
        left = self._deadline.left()
        if left < 1:
            raise OutOfTime(errors.OUT_OF_TIME, "no time is left in this invocation")
        end = Deadline(self._deadline.clock, self._deadline.clock.time() + min(self._timeouts.total, left))
        timeout = (min(self._timeouts.connect, left), min(self._timeouts.read, left))
        call = f"{sent.method} {sent.url!s}"
        try:
            request = self._requests.prepare_request(sent)
            response = self._requests.send(request, stream=True, timeout=timeout, allow_redirects=False)
        except requests.RequestException as error:
            raise _unsent_or_broken(error, call) from None
        with response:
            return Response(response.status_code, CaseInsensitiveDict(response.headers), self._body(response, end, call))

    def _body(self, response: requests.Response, end: Deadline, call: str) -> Any:
        try:
            content = _content(response.raw, end)
        except (urllib3.exceptions.HTTPError, OSError, zlib.error) as error:
            raise ResponseLost(errors.UNREACHABLE, f"{call}: the answer broke off ({type(error).__name__})") from None
        if content is None:
            raise ResponseLost(errors.UNREACHABLE, f"{call}: the answer took too long, or is too long")
        try:
            return _parsed(content)
        except (ValueError, OSError, EOFError, zlib.error):
            if response.ok:
                raise ResponseLost(
                    errors.UNREADABLE, f"{call}: HTTP {response.status_code} with a body that is not JSON"
                ) from None
            return content.decode("utf-8", "replace")


def _content(raw: urllib3.BaseHTTPResponse, end: Deadline) -> bytes | None:
    """None where the body drips until `end` or grows beyond LARGEST_BODY."""
    content = bytearray()
    while piece := raw.read1(_PIECE, decode_content=True):
        content += piece
        if len(content) > LARGEST_BODY or not end.left():
            return None
    return bytes(content)


def _parsed(content: bytes) -> Any:
    """Confluent has sent gzip without saying so: its first two bytes tell."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    return json.loads(content) if content.strip() else None


def _unsent_or_broken(error: requests.RequestException, call: str) -> NotSent | ResponseLost:
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    if isinstance(error, requests.exceptions.SSLError):
        return NotSent(errors.TLS, f"{call}: the TLS handshake failed")
    before = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, before):
        return NotSent(errors.UNREACHABLE, f"{call}: no connection ({type(reason).__name__})")
    return ResponseLost(errors.UNREACHABLE, f"{call}: no answer ({type(reason).__name__})")
