"""HTTP calls with timeouts and retries, to safe addresses only, without redirects or passwords from the
environment.

A session belongs to one invocation. It ends at the invocation's deadline, which is earlier than Lambda's
timeout. A 429 means that nothing was done, so every call may be retried. If a call fails after the request
was sent, its effect is not known, so only calls that may be repeated are retried.
"""

from __future__ import annotations

import gzip
import ipaddress
import json
import math
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
    """`body` is parsed JSON, text where it isn't JSON, None where it is empty. Header names ignore case."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def request_id(self) -> str:
        """Return the vendor's id of this call, which its support asks for."""
        return self.headers.get("X-Request-Id", "") or self.headers.get("X-Amzn-RequestId", "")


#: Reasons of OpenSSL that occur only before a request is sent.
_HANDSHAKE_ERRORS: Final = (
    "CERTIFICATE_VERIFY_FAILED",
    "UNSUPPORTED_PROTOCOL",
    "NO_CERTIFICATE_OR_CRL_FOUND",
)


class NotSent(Transient):
    """The request was not sent, so it had no effect."""


class ResponseLost(Transient):
    """The request was sent, but no complete answer arrived: it may have had an effect."""


LONGEST_WAIT = 30.0
NOT_IMPLEMENTED = 501


@attrs.frozen
class RetryPolicy:
    """`attempts` includes the first one; `spread` returns a random number from 0 to 1, for jitter."""

    attempts: int = 4
    first_wait: float = 1.0
    spread: Callable[[], float] = random.random

    def run(self, call: Callable[[], Response], *, repeatable: bool, deadline: Deadline) -> Response:
        """Return the last answer, whatever its status.

        Raises NotSent or ResponseLost if the last attempt got no answer.
        """
        attempt = 0
        while True:
            attempt += 1
            outcome: Response | NotSent | ResponseLost
            try:
                outcome = call()
                may_differ = repeatable and outcome.status >= 500 and outcome.status != NOT_IMPLEMENTED
                if outcome.status != 429 and not may_differ:
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
        requested = read_requested_wait(outcome.headers, clock) if isinstance(outcome, Response) else None
        grown = min(LONGEST_WAIT, self.first_wait * 2.0 ** (attempt - 1))
        return (
            grown * (0.5 + 0.5 * self.spread())
            if requested is None
            else requested + self.first_wait * self.spread()
        )


def read_requested_wait(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Return the seconds that the vendor asks to wait; None if it doesn't say.

    Confluent's X-RateLimit-Reset is in seconds from now; other vendors use the same header for a time.
    """
    for name in ("Retry-After", "X-RateLimit-Reset"):
        if (text := headers.get(name)) is not None and (wait := _parse_seconds(text, clock)) is not None:
            return wait
    return None


def _parse_seconds(text: str, clock: Clock) -> float | None:
    """Return the seconds from now; None for text that is neither a number nor an HTTP date."""
    try:
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.time())
    except ValueError:
        return None


def is_loopback(url: str) -> bool:
    """Return True for loopback addresses such as 127.0.0.1.

    A name, even localhost, may resolve to another host.
    """
    try:
        return ipaddress.ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def require_safe(url: str) -> None:
    """Raise LakeferryError unless `url` is https, or http to a loopback address, and contains no
    credentials.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or not parts.hostname:
        raise LakeferryError(
            errors.ADDRESS, f"{parts.scheme}://{parts.hostname} has no host, or holds credentials"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise LakeferryError(errors.ADDRESS, f"{parts.scheme}://{parts.hostname} is not https")


USER_AGENT: Final = "Lakeferry/0.1 (Confluent and Snowflake resources for AWS CDK)"
#: Idempotent methods. PATCH is one here, because bodies contain values, not increments.
REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE", "PATCH"})
LARGEST_BODY: Final = 16 * 1024 * 1024
_PIECE: Final = 65_536


@attrs.frozen
class Timeouts:
    """Seconds to connect, to the answer and between two parts of it, and for the whole call."""

    connect: float = 5.0
    read: float = 30.0
    total: float = 60.0


USUAL: Final = Timeouts()


class Session:
    """Methods raise OutOfTime if less than a second is left before `deadline`. Tests pass an `adapter` for
    http:// URLs.

    `timeouts` are for all calls; without them, each call has its own. With `trust_environment`, the session
    uses the proxy and the CA certificates in the environment variables of an operator's computer:
    HTTPS_PROXY, NO_PROXY, REQUESTS_CA_BUNDLE. The Lambda functions ignore these variables; they use `proxy`,
    which the deployment file names.
    """

    def __init__(
        self,
        deadline: Deadline,
        *,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy = RetryPolicy(),
        adapter: BaseAdapter | None = None,
        trust_environment: bool = False,
        proxy: str = "",
    ) -> None:
        self._deadline = deadline
        self._timeouts = timeouts
        self._retry = retry
        self._trust_environment = trust_environment
        self._proxies = {"https": proxy} if proxy else {}
        self._requests = requests.Session()
        self._requests.trust_env = False  # it would also take passwords from ~/.netrc
        self._requests.headers["User-Agent"] = USER_AGENT
        if adapter:
            self._requests.mount("http://", adapter)

    def call(
        self,
        method: str,
        url: str,
        *,
        key: ApiKey | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        retry_params: Mapping[str, str] | None = None,
        timeouts: Timeouts = USUAL,
    ) -> Response:
        """Return the response, whatever its status. `body` is sent as JSON, `form` as fields of a form;
        retries also send `retry_params`.

        Raises NotSent, ResponseLost, OutOfTime, LakeferryError (address).
        """
        require_safe(url)
        sent = requests.Request(
            method,
            url,
            headers={"Accept": "application/json", **(headers or {})},
            params=dict(params or {}),
            json=body,
            data=dict(form) if form else None,
            auth=(key.id, key.secret.reveal()) if key else None,
        )
        safe = method in REPEATABLE if repeatable is None else repeatable

        def once() -> Response:
            try:
                return self._send_once(sent, self._timeouts or timeouts)
            finally:
                sent.params = {**(params or {}), **(retry_params or {})}

        try:
            return self._retry.run(once, repeatable=safe, deadline=self._deadline)
        except OutOfTime as error:
            if safe:
                raise
            # A call that may not be repeated is sent once: if time ran out before, it was not sent at all.
            raise NotSent(error.kind, error.what) from None

    def _send_once(self, sent: requests.Request, timeouts: Timeouts) -> Response:
        left = self._deadline.left()
        if left < 1:
            raise OutOfTime(errors.OUT_OF_TIME, "no time is left in this invocation")
        end = Deadline(self._deadline.clock, self._deadline.clock.time() + min(timeouts.total, left))
        timeout = (min(timeouts.connect, left), min(timeouts.read, left))
        call = f"{sent.method} {sent.url!s}"
        try:
            request = self._requests.prepare_request(sent)
            settings = self._read_settings(str(request.url))
            settings["stream"] = True  # the body is read in pieces, which are counted
            response = self._requests.send(request, timeout=timeout, allow_redirects=False, **settings)
        except requests.RequestException as error:
            raise _translate_error(error, call, self._proxies.get("https", "of HTTPS_PROXY")) from None
        except OSError:  # raised by requests if the CA certificates' file is missing
            raise NotSent(
                errors.TLS, f"{call}: the file of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE can't be read"
            ) from None
        with response:
            return Response(
                response.status_code,
                CaseInsensitiveDict(response.headers),
                self._read_body(response, end, call),
            )

    def _read_settings(self, url: str) -> dict[str, Any]:
        """Return proxies and certificates.

        A loopback address gets none: it may be plain HTTP, which a proxy must not see.
        """
        if is_loopback(url):
            return {"proxies": {}, "verify": True}
        if not self._trust_environment:
            return {"proxies": self._proxies, "verify": True}
        with requests.Session() as reader:
            return dict(reader.merge_environment_settings(url, {}, None, None, None))

    def _read_body(self, response: requests.Response, end: Deadline, call: str) -> Any:
        try:
            content = _read_content(response.raw, end)
        except (urllib3.exceptions.HTTPError, OSError, zlib.error) as error:
            raise ResponseLost(
                errors.UNREACHABLE, f"{call}: the answer was cut off ({type(error).__name__})"
            ) from None
        if content is None:
            raise ResponseLost(errors.UNREACHABLE, f"{call}: the answer took too long, or is too long")
        try:
            return _parse_content(content)
        except (ValueError, OSError, EOFError, zlib.error):
            if response.ok:
                raise ResponseLost(
                    errors.UNREADABLE, f"{call}: HTTP {response.status_code} with a body that is not JSON"
                ) from None
            return content.decode("utf-8", "replace")


def _read_content(raw: urllib3.BaseHTTPResponse, end: Deadline) -> bytes | None:
    """Return the body; None if it isn't complete by `end` or exceeds LARGEST_BODY."""
    content = bytearray()
    while piece := raw.read1(_PIECE, decode_content=True):
        content += piece
        if len(content) > LARGEST_BODY or not end.left():
            return None
    return bytes(content)


def _parse_content(content: bytes) -> Any:
    """Return the parsed body.

    Confluent has sent gzip without a header for it, so the first two bytes are checked.
    """
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    return json.loads(content) if content.strip() else None


def _translate_error(error: requests.RequestException, call: str, proxy: str) -> NotSent | ResponseLost:
    """`proxy` is the address of the deployment file's proxy, or words for that of the operator."""
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    if isinstance(error, requests.exceptions.SSLError):
        if getattr(next(iter(getattr(reason, "args", ())), None), "reason", "") in _HANDSHAKE_ERRORS:
            return NotSent(errors.TLS, f"{call}: the TLS handshake failed")
        return ResponseLost(errors.UNREACHABLE, f"{call}: the TLS connection failed")
    if isinstance(
        error, requests.exceptions.ProxyError
    ):  # proxied addresses are https, so the proxy has not seen the request
        return NotSent(errors.UNREACHABLE, f"{call}: no connection through the proxy {proxy}")
    before = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, before):
        return NotSent(errors.UNREACHABLE, f"{call}: no connection ({type(reason).__name__})")
    return ResponseLost(errors.UNREACHABLE, f"{call}: no answer ({type(reason).__name__})")
