"""What every simulator's server is made of: a bound port, a web server in a thread, and calls to its controls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final

import uvicorn

from simulators.core import processes
from simulators.core.fault_actions import App

HOST: Final = "127.0.0.1"
#: What only a test asks for is below this path, on every address.
CONTROLS: Final = "/_simulator"


def bound(port: int = 0) -> socket.socket:
    """Between binding and serving nobody else can take the port. Raises OSError."""
    # asyncio turns Nagle's algorithm off only where the protocol is named; with it, each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def address(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}"


def web_server(app: App, *, own_date: bool = False) -> uvicorn.Server:
    """With `own_date`, the application says what time it is."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=1,
            date_header=not own_date,
        )
    )


def serve(server: uvicorn.Server, sockets: Sequence[socket.socket], announcement: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints the announcement, and serves until SIGTERM or Ctrl-C. The sockets are bound: a reader can connect at once.

    The handler of SIGTERM raises nothing: an exception while asyncio sets itself up could end the process with an error.
    """
    signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    text = json.dumps(announcement) if as_json else "\n".join(f"{name:20} {value}" for name, value in announcement.items())
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(sockets=list(sockets)))


class ServingThread:
    """Serves from a thread of this process until `stop`."""

    def __init__(self, server: uvicorn.Server, sockets: Sequence[socket.socket]) -> None:
        self._server, self._sockets = server, list(sockets)
        self._thread = threading.Thread(target=asyncio.run, args=[server.serve(sockets=self._sockets)], daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        for each in self._sockets:
            each.close()


def stop_with_stdin() -> None:
    """From a thread of its own: ends this process when its parent does."""
    threading.Thread(target=processes.end_with_parent, daemon=True).start()


def control(url: str, method: str, path: str = "", body: dict[str, Any] | None = None, *, below: str = CONTROLS) -> Any:
    """What the simulator at `url` answers, of its controls `below` that path. Raises urllib.error.HTTPError where it refuses."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + below + path, content, method=method)  # noqa: S310  (loopback)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        return json.load(answer)
