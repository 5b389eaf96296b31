"""What people and tests ask of the embedded AWS itself: below /_lakeferry, where no service of AWS's answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from simulators.core.fault_actions import App, Message, Receive, Send, answer, read

PREFIX: Final = "/_lakeferry"


class Asked(NamedTuple):
    """A call of a control."""

    query: dict[str, str]
    body: bytes


class Told(NamedTuple):
    """What a control answers."""

    status: int
    content_type: str
    body: bytes


Control = Callable[[Asked], Told]
_controls: dict[tuple[str, str], Control] = {}
_waiting: set[Control] = set()


def control(method: str, path: str, *, waits: bool = False) -> Callable[[Control], Control]:
    """Decorate what answers at /_lakeferry<path>.

    It runs in the server's own thread, where it must not wait for anything; with `waits`, in one of its own.
    """

    def register(given: Control) -> Control:
        _controls[method, path] = given
        if waits:
            _waiting.add(given)
        return given

    return register


def as_json(fields: Any, status: int = 200) -> Told:
    return Told(status, "application/json", json.dumps(fields).encode())


def as_html(page: str) -> Told:
    return Told(200, "text/html; charset=utf-8", page.encode())


class Controls:
    """Stands in front of `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(PREFIX + "/"):
            await self._app(scope, receive, send)
            return
        query = dict(parse_qsl(scope["query_string"].decode()))
        found = _controls.get((scope["method"], path.removeprefix(PREFIX)), _unknown)
        asked = Asked(query, await read(receive))
        told = await asyncio.to_thread(found, asked) if found in _waiting else found(asked)
        await answer(send, told.status, {"content-type": told.content_type}, told.body)


def _unknown(_: Asked) -> Told:
    return as_json({"error": f"no such control. There are: {', '.join(' '.join(key) for key in sorted(_controls))}"}, 404)
