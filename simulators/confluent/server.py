"""Serves the simulator on loopback, a port for each plane, and stops it."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

import uvicorn

from simulators.confluent import controls
from simulators.confluent.application import Application
from simulators.confluent.model import Plane
from simulators.confluent.simulation import Simulation
from simulators.core import server as serving
from simulators.core.faults import FaultClient, FaultInjector


class Listening:
    """A bound socket for each plane: between binding and serving nobody else can take the ports. Raises OSError."""

    def __init__(self, port: int = 0) -> None:
        self.sockets: dict[Plane, socket.socket] = {}
        try:
            for plane in Plane:
                self.sockets[plane] = serving.bound(port if plane is Plane.CLOUD else 0)
        except OSError:
            self.close()
            raise
        self.addresses = {plane: serving.address(each) for plane, each in self.sockets.items()}

    def server(self, simulation: Simulation) -> uvicorn.Server:
        ports = {each.getsockname()[1]: plane for plane, each in self.sockets.items()}
        return serving.web_server(FaultInjector(Application(simulation, ports)))

    def close(self) -> None:
        for each in self.sockets.values():
            each.close()


class ConfluentCloud:
    """`with ConfluentCloud() as cloud:` serves one on free ports, from a thread of this process.

    Options are those of Simulation. Time stands still unless `time_scale` says otherwise.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {"time_scale": 0.0} | options

    def __enter__(self) -> Self:
        self._listening = Listening()
        self._simulation = Simulation(self._listening.addresses, **self._options)
        server = self._listening.server(self._simulation)
        self._serving = serving.ServingThread(server, list(self._listening.sockets.values()))
        self.faults = FaultClient(self.url)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._serving.stop()

    @property
    def url(self) -> str:
        return self._listening.addresses[Plane.CLOUD]

    @property
    def catalog_url(self) -> str:
        """Where Iceberg REST catalogs are; the control plane doesn't tell."""
        return self._listening.addresses[Plane.CATALOG]

    @property
    def credentials(self) -> dict[str, str]:
        return controls.credentials(self._simulation)

    def advance(self, seconds: float) -> dict[str, Any]:
        """Let time pass; what there is then."""
        return self._control("POST", "/clock", {"advance": seconds})

    def objects(self) -> dict[str, list[str]]:
        """Ids of everything there is, by kind."""
        found: dict[str, list[str]] = self._control("GET")["objects"]
        return found

    def limit(self, **given: Any) -> None:
        self._control("PUT", "/limit", given)

    def reset(self) -> dict[str, Any]:
        """A new organization; its credentials."""
        return self._control("POST", "/reset", {})

    def _control(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = serving.control(self.url, method, path, body)
        return answer
