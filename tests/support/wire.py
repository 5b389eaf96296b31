"""Connects the real HTTP session to a simulator without sockets: calls go to its ASGI application in this
process.

Thousands of lives of resources then take seconds. Faults of the network (a reset, a response that is cut or
never ends) reach the session as the exceptions of urllib3 that a socket would raise; test_wire.py compares
both.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter


class Killed(BaseException):
    """The Lambda function's process ends here. Nothing else of it runs, so its lease is not returned."""


class Sent(NamedTuple):
    """A call. `path` includes the query; `status` is 0 without a response."""

    method: str
    path: str
    status: int
    has_list: bool
    statement: str

    @property
    def reads(self):
        return self.method == "GET" or self.statement.startswith(("SHOW ", "DESC ", "SELECT "))

    @property
    def sort(self):
        """Return a key that similar calls share: without the ids of this call."""
        return (
            self.method,
            re.sub(r"requestId=[^&]+|/statements/[0-9a-f-]+", "", self.path),
            self.statement,
            self.status,
        )


class _Here(ThreadPoolExecutor):
    """Runs a function at once in the caller's thread."""

    def submit(self, function, /, *args, **kwargs):
        done = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class _Connection:
    """The object of a web server's `send`, in which the fault injector finds the transport to reset."""

    def __init__(self, request):
        self.messages = [{"type": "http.request", "body": _content(request), "more_body": False}]
        self.start = None
        self.body = b""
        self.ended = False
        self.aborted = False

    @property
    def transport(self):
        return self

    def get_extra_info(self, name):
        return self

    def setsockopt(self, *option):
        pass

    def abort(self):
        self.aborted = True

    async def receive(self):
        return self.messages.pop(0) if self.messages else {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.start = message
        else:
            self.body += message.get("body", b"")
            self.ended = not message.get("more_body", False)


class _Body(io.BytesIO):
    """A response's bytes. After the last one, raises `error` if the response is incomplete."""

    def __init__(self, content, error):
        super().__init__(content)
        self._error = error

    def read(self, *amount):
        piece = super().read(*amount)
        if not piece and self._error:
            raise self._error
        return piece

    read1 = read


class InProcessWire(BaseAdapter):
    """`app` is a simulator's application behind its fault injector. `on_hang` is called with the seconds that
    a caller waited.

    `calls` has the calls so far; `killed_at` is the number of the call before or after which the caller's
    process dies.
    """

    def __init__(self, app, on_hang=lambda seconds: None):
        super().__init__()
        self.app = app
        self.on_hang = on_hang
        self.calls = []
        self.killed_at = (0, "")
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Here())
        self._building = HTTPAdapter()

    def close(self):
        """Do nothing: a session ends with its invocation, and the wire doesn't."""

    def end(self):
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
        if request.path_url.startswith("/_"):
            return self._answered(request, timeout, _Connection(request))
        connection = _Connection(request)
        number, moment = self.killed_at
        dies = number == len(self.calls) + 1 and moment
        if dies == "before":
            self.calls.append(Sent(request.method, request.path_url, 0, False, _statement(request)))
            raise Killed
        try:
            return self._answered(request, timeout, connection)
        finally:
            status = connection.start["status"] if connection.start else 0
            self.calls.append(
                Sent(
                    request.method,
                    request.path_url,
                    status,
                    _holds_list(connection.body),
                    _statement(request),
                )
            )
            if dies:
                raise Killed

    def _answered(self, request, timeout, connection):
        hangs = self._loop.run_until_complete(self._exchange(request, connection))
        if connection.aborted or connection.start is None:
            broken = urllib3.exceptions.ProtocolError(
                "Connection aborted.", ConnectionResetError(104, "reset")
            )
            raise requests.ConnectionError(broken, request=request)
        if hangs:
            self.on_hang(timeout[1])
        error = (
            TimeoutError("timed out")
            if hangs
            else None
            if connection.ended
            else http.client.IncompleteRead(b"")
        )
        raw = urllib3.HTTPResponse(
            body=_Body(connection.body, error),
            headers=[
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in connection.start["headers"]
            ],
            status=connection.start["status"],
            preload_content=False,
            enforce_content_length=False,
        )
        return self._building.build_response(request, raw)

    async def _exchange(self, request, connection):
        """Run the application. Return whether the response is held back."""
        task = asyncio.ensure_future(self.app(_scope(request), connection.receive, connection.send))
        for _ in range(50):
            await asyncio.sleep(0)
            if task.done():
                await task
                return False
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return True


def _holds_list(body):
    """Return whether the body has a list that a fault injector could empty or extend."""
    try:
        return bool(json.loads(body)["data"])
    except (ValueError, TypeError, LookupError):
        return False


def _statement(request):
    """Return the statement of a request to Snowflake's SQL API."""
    return json.loads(request.body)["statement"] if request.path_url.startswith("/api/v2/statements?") else ""


def _content(request):
    body = request.body or b""
    return body.encode() if isinstance(body, str) else body


def _scope(request):
    url = urlsplit(request.url)
    return {
        "type": "http",
        "method": request.method,
        "scheme": "http",
        "path": requests.utils.unquote(url.path),
        "raw_path": url.path.encode(),
        "query_string": url.query.encode(),
        "headers": [(name.lower().encode(), str(value).encode()) for name, value in request.headers.items()],
        "server": (url.hostname, url.port),
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
    }
