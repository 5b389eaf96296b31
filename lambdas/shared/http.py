"""The one HTTP session: timeouts on every call, safe addresses only, no redirects, no proxy or password from outside.

A session belongs to one invocation: it ends with the invocation's deadline, which lies before Lambda's own.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import attrs
import requests
import urllib3
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from lambdas.shared import errors
from lambdas.shared.address import require_safe
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import OutOfTime
from lambdas.shared.http_types import Answer, Broken, NotSent
from lambdas.shared.redaction import ApiKey
from lambdas.shared.retry import RetryPolicy

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
    ) -> Answer:
        """The answer with any status. `body` is sent as JSON; `again` are parameters of a repetition, beside `params`.

        Raises NotSent, Broken, OutOfTime, LakeferryError (address).
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

        def once() -> Answer:
            try:
                return self._once(sent)
            finally:
                sent.params = {**(params or {}), **(again or {})}

        return self._retry.run(once, repeatable=safe, deadline=self._deadline)

    def _once(self, sent: requests.Request) -> Answer:
        left = self._deadline.left()
        if left < 1:
            raise OutOfTime(errors.OUT_OF_TIME, "no time is left in this invocation")
        end = Deadline(self._deadline.clock, self._deadline.clock.time() + min(self._timeouts.total, left))
        timeout = (min(self._timeouts.connect, left), min(self._timeouts.read, left))
        place = f"{sent.method} {sent.url!s}"
        try:
            request = self._requests.prepare_request(sent)
            response = self._requests.send(request, stream=True, timeout=timeout, allow_redirects=False)
        except requests.RequestException as error:
            raise _unsent_or_broken(error, place) from None
        with response:
            return Answer(response.status_code, CaseInsensitiveDict(response.headers), self._body(response, end, place))

    def _body(self, response: requests.Response, end: Deadline, place: str) -> Any:
        try:
            content = _content(response.raw, end)
        except (urllib3.exceptions.HTTPError, OSError, zlib.error) as error:
            raise Broken(errors.UNREACHABLE, f"{place}: the answer broke off ({type(error).__name__})") from None
        if content is None:
            raise Broken(errors.UNREACHABLE, f"{place}: the answer took too long, or is too long")
        try:
            return _parsed(content)
        except (ValueError, OSError, EOFError, zlib.error):
            if response.ok:
                raise Broken(errors.UNREADABLE, f"{place}: HTTP {response.status_code} with a body that is not JSON") from None
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


def _unsent_or_broken(error: requests.RequestException, place: str) -> NotSent | Broken:
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    if isinstance(error, requests.exceptions.SSLError):
        return NotSent(errors.TLS, f"{place}: the TLS handshake failed")
    before = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, before):
        return NotSent(errors.UNREACHABLE, f"{place}: no connection ({type(reason).__name__})")
    return Broken(errors.UNREACHABLE, f"{place}: no answer ({type(reason).__name__})")
