"""The web server of the vendors' simulators: sockets, one call at a time, control endpoints, a context
manager for tests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self

import uvicorn
from starlette import requests
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from simulators.core import control
from simulators.core.clock import Clock
from simulators.core.faults import FaultClient, FaultInjector

HOST: Final = "127.0.0.1"
_LOG: Final = logging.getLogger(__name__)


class Simulation(Protocol):
    """The state of a simulator. `reset` replaces it with a new, empty account."""

    @property
    def clock(self) -> Clock: ...
    @property
    def credentials(self) -> dict[str, str]: ...
    def state(self) -> dict[str, Any]: ...
    def reset(self) -> None: ...


class Application:
    """Serves one call at a time, in a worker thread, so that a call that waits for AWS doesn't block other
    connections.

    A subclass implements the API: `respond` must answer every call, even if the simulator itself fails. The
    controls are

        GET  /_simulator        {"now": time, "objects": {type: [names]}}
        POST /_simulator/clock  {"advance": seconds}; returns the same as GET
        POST /_simulator/reset  returns the new account's credentials

    and those that the subclass adds.
    """

    def __init__(self, simulation: Simulation, controls: control.Controls) -> None:
        self._simulation = simulation
        self._lock = asyncio.Lock()
        self._controls: control.Controls = {
            ("GET", ""): lambda _: control.build_json_response(simulation.state()),
            ("POST", "/clock"): self._set_clock,
            ("POST", "/reset"): self._reset,
            **controls,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = requests.Request(scope, receive)
        body = await request.body()
        async with self._lock:
            response = await asyncio.to_thread(self._build_response, request, body)
        await response(scope, receive, send)

    def respond(self, request: requests.Request, body: bytes) -> Response:
        raise NotImplementedError

    def _build_response(self, request: requests.Request, body: bytes) -> Response:
        if request.url.path.startswith(control.PREFIX):
            control_and_request = control.find(self._controls, request.method, request.url.path)
            answer = control.run(control_and_request, control.Request(request.query_params, body))
            return Response(answer.body, answer.status, media_type=answer.content_type)
        return self.respond(request, body)

    def _set_clock(self, request: control.Request) -> control.Response:
        """Advance the clock, or change how fast its time passes."""
        document = request.read_document()
        if "scale" in document:
            self._simulation.clock.set_scale(float(document["scale"]))
        else:
            self._simulation.clock.advance(float(document["advance"]))
        return control.build_json_response(self._simulation.state())

    def _reset(self, _: control.Request) -> control.Response:
        self._simulation.reset()
        return control.build_json_response(self._simulation.credentials)


def log_failure(request: requests.Request) -> str:
    """Log the exception that is being handled, and return the message for the client."""
    _LOG.exception("%s %s", request.method, request.url.path)
    return "The simulator failed; its log has the reason"


def bind_socket(port: int = 0) -> socket.socket:
    """Return a socket that already listens on loopback, so no other process can take the port; 0 picks one.

    Raises OSError.
    """
    # asyncio turns off Nagle's algorithm, which delays each answer by 40 ms, only if the socket's protocol is
    # given.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def get_address(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}"


def build_web_server(app: Application, *, own_date: bool = False) -> uvicorn.Server:
    """Return a server of `app` behind a fault injector.

    With `own_date`, the application sets the Date header.
    """
    return uvicorn.Server(
        uvicorn.Config(
            FaultInjector(app),
            log_level="warning",
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=1,
            date_header=not own_date,
        )
    )


def serve(
    server: uvicorn.Server,
    sockets: Sequence[socket.socket],
    announcement: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print the announcement, and serve until SIGTERM or Ctrl-C. The sockets already listen, so a client can
    connect at once.

    The handler of SIGTERM doesn't raise: an exception while asyncio starts could end the process with an
    error.
    """
    signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    if as_json:
        text = json.dumps(announcement)
    else:
        text = "\n".join(f"{name:20} {value}" for name, value in announcement.items())
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        asyncio.run(server.serve(sockets=list(sockets)))


class InThread:
    """A context manager that serves a simulator from a thread of this process.

    A subclass implements `open`, which returns the server, the sockets and the URL of the controls, and
    pushes onto `stack` what must be closed afterwards.
    """

    url: str

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            server, sockets, self.url = self.open(stack)
            thread = threading.Thread(
                target=asyncio.run, args=[server.serve(sockets=list(sockets))], daemon=True
            )
            thread.start()

            def stop() -> None:
                server.should_exit = True
                thread.join()

            stack.callback(stop)
            self._stack = stack.pop_all()
        self.faults = FaultClient(self.url)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def open(self, stack: ExitStack) -> tuple[uvicorn.Server, Sequence[socket.socket], str]:
        raise NotImplementedError

    def control(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = control.call(self.url, method, path, body)
        return answer

    def advance(self, seconds: float) -> dict[str, Any]:
        """Advance the clock by `seconds`, and return the new state."""
        return self.control("POST", "/clock", {"advance": seconds})

    def objects(self) -> dict[str, list[str]]:
        """Return the names of all objects, by type."""
        objects: dict[str, list[str]] = self.control("GET")["objects"]
        return objects

    def reset(self) -> dict[str, Any]:
        """Replace everything with a new, empty account, and return its credentials."""
        return self.control("POST", "/reset", {})
