"""Serves the simulator on loopback, with one port per plane."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import uvicorn

from simulators.confluent.application import Application
from simulators.confluent.model import Plane
from simulators.confluent.simulation import Simulation
from simulators.core import server


class Listening:
    """A bound socket for each plane.

    `port` is for the control plane; the others get free ports. Raises OSError.
    """

    def __init__(self, port: int, stack: ExitStack) -> None:
        self.sockets: dict[Plane, socket.socket] = {}
        for plane in Plane:
            port_of_plane = port if plane is Plane.CLOUD else 0
            self.sockets[plane] = stack.enter_context(server.bind_socket(port_of_plane))
        self.addresses = {plane: server.get_address(socket_) for plane, socket_ in self.sockets.items()}

    def build_server(self, simulation: Simulation) -> uvicorn.Server:
        ports = {socket_.getsockname()[1]: plane for plane, socket_ in self.sockets.items()}
        return server.build_web_server(Application(simulation, ports))


class ConfluentCloud(server.InThread):
    """`with ConfluentCloud() as cloud:` serves a simulation on free ports, from a thread of this process.

    Options are those of Simulation. `time_scale` is 0 by default: only the control API advances the time.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {"time_scale": 0.0} | options

    def open(self, stack: ExitStack) -> tuple[uvicorn.Server, Sequence[socket.socket], str]:
        listening = Listening(0, stack)
        self._simulation = Simulation(listening.addresses, **self._options)
        self.catalog_url = listening.addresses[Plane.CATALOG]  # no answer of the control plane has it
        web_server = listening.build_server(self._simulation)
        return web_server, list(listening.sockets.values()), listening.addresses[Plane.CLOUD]

    @property
    def credentials(self) -> dict[str, str]:
        return self._simulation.credentials

    def limit(self, **settings: Any) -> None:
        self.control("PUT", "/limit", settings)
