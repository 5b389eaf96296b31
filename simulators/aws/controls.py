"""Control endpoints that the patches add to the embedded AWS, under /_simulator, which no AWS service
uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from simulators.core import control
from simulators.core.control import App, Control, Message, Receive, Request, Send, answer, read

_controls: dict[tuple[str, str], Control] = {}
_waiting: set[Control] = set()


def register(method: str, path: str, *, waits: bool = False) -> Callable[[Control], Control]:
    """Decorate the function that answers at /_simulator<path>.

    It runs in the server's event loop, so it must not block. With `waits`, it runs in a worker thread and
    may.
    """

    def add(control: Control) -> Control:
        _controls[method, path] = control
        if waits:
            _waiting.add(control)
        return control

    return add


class Controls:
    """ASGI middleware that answers the control endpoints and passes all other requests to `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path: Any = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(control.PREFIX + "/"):
            await self._app(scope, receive, send)
            return
        control_and_request = control.find(_controls, scope["method"], path)
        request = Request(dict(parse_qsl(scope["query_string"].decode())), await read(receive))
        waits = control_and_request in _waiting
        if waits:
            response = await asyncio.to_thread(control.run, control_and_request, request)
        else:
            response = control.run(control_and_request, request)
        await answer(send, response.status, {"content-type": response.content_type}, response.body)
