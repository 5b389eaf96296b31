"""Serves the simulator on loopback."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvicorn

from simulators.aws import settings
from simulators.aws.server import EmbeddedAws
from simulators.core import server
from simulators.snowflake import trust
from simulators.snowflake.application import Application
from simulators.snowflake.lake import Lake
from simulators.snowflake.simulation import Simulation


def build_web_server(simulation: Simulation) -> uvicorn.Server:
    """Return the web server. Its Date header is the time of the simulation's clock."""
    return server.build_web_server(Application(simulation), own_date=True)


class Snowflake(server.InThread):
    """`with Snowflake() as snowflake:` serves a simulation on a free port, from a thread of this process.

    `aws` is an embedded AWS with IAM enforced. Other options are those of Simulation. `time_scale` is 0 by
    default: only the control API advances the time.
    """

    def __init__(self, *, aws: Lake | EmbeddedAws | None = None, **options: Any) -> None:
        if isinstance(aws, EmbeddedAws):
            aws = Lake(aws.url, aws.region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
        region = {"region": aws.root.region} if aws else {}
        self._options = {"time_scale": 0.0, "aws": aws} | region | options

    def open(self, stack: ExitStack) -> tuple[uvicorn.Server, Sequence[socket.socket], str]:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakeferry-snowflake-"))
        listener = stack.enter_context(server.bind_socket())
        self._simulation = Simulation(Path(folder), **self._options)
        stack.callback(lambda: trust.forget(self._simulation.account))
        return build_web_server(self._simulation), [listener], server.get_address(listener)

    @property
    def credentials(self) -> dict[str, str]:
        """Return the account, the user, the role, and the path of the user's private key file."""
        return self._simulation.credentials

    def now(self) -> float:
        """Return the time of the account's clock in seconds since 1970 UTC."""
        return self._simulation.clock.now()

    def behave(self, **changes: Any) -> None:
        """Change the behavior of statements and results.

        Parameters: those of PUT /_simulator/behavior (application.py).
        """
        self.control("PUT", "/behavior", changes)
