"""Control endpoints, with which people and tests control a simulator, under /_simulator, which no vendor API
uses.

Uses only the standard library, because .venv-aws doesn't have the other simulators' web framework.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

PREFIX: Final = "/_simulator"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Request(NamedTuple):
    """A request to a control endpoint."""

    query: Mapping[str, str]
    body: bytes

    def read_document(self) -> Any:
        """Return the body's JSON; {} for an empty body. Raises ValueError."""
        return json.loads(self.body or b"{}")


class Response(NamedTuple):
    status: int
    content_type: str
    body: bytes


Control = Callable[[Request], Response]
#: By method and path below PREFIX.
Controls = Mapping[tuple[str, str], Control]


def build_json_response(document: Any, status: int = 200) -> Response:
    return Response(status, "application/json", json.dumps(document).encode())


def build_html_response(page: str) -> Response:
    return Response(200, "text/html; charset=utf-8", page.encode())


def find(controls: Controls, method: str, path: str) -> Control:
    """Return the control at `path`, which begins with PREFIX.

    For an unknown path, return one that answers 404.
    """
    known_calls = ", ".join(" ".join(key) for key in sorted(controls))
    missing = build_json_response({"error": f"no such control. There are: {known_calls}"}, 404)
    return controls.get((method, path.removeprefix(PREFIX)), lambda _: missing)


def run(control: Control, request: Request) -> Response:
    """Run the control. A request that it can't use is answered with 400 and the reason."""
    try:
        return control(request)
    except (ValueError, TypeError, LookupError) as error:
        return build_json_response({"error": str(error)}, 400)


def call(url: str, method: str, path: str = "", body: Mapping[str, Any] | None = None) -> Any:
    """Call a control of the simulator at `url` and return the JSON of its answer.

    Raises urllib.error.HTTPError.
    """
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + PREFIX + path, content, method=method)  # noqa: S310  (loopback)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as response:
        return json.load(response)


async def read(receive: Receive) -> bytes:
    """Read the whole request body, so that a client has sent all of it before it is answered."""
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


async def answer(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
