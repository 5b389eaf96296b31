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


def web_server(simulation: Simulation) -> uvicorn.Server:
    """Return the server, whose Date header is the time of the simulation's clock."""
    return server.web_server(Application(simulation), own_date=True)


class Snowflake(server.InThread):
    """`with Snowflake() as snowflake:` serves one on a free port, from a thread of this process.

    `aws` is an embedded AWS with IAM enforced; other options are those of Simulation.
    Time stands still unless `time_scale` says otherwise.
    """

    def __init__(self, *, aws: Lake | EmbeddedAws | None = None, **options: Any) -> None:
        if isinstance(aws, EmbeddedAws):
            aws = Lake(aws.url, aws.region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
        region = {"region": aws.root.region} if aws else {}
        self._options = {"time_scale": 0.0, "aws": aws} | region | options

    def open(self, stack: ExitStack) -> tuple[uvicorn.Server, Sequence[socket.socket], str]:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakeferry-snowflake-"))
        listener = stack.enter_context(server.bound())
        self._simulation = Simulation(Path(folder), **self._options)
        stack.callback(lambda: trust.forget(self._simulation.account))
        return web_server(self._simulation), [listener], server.address(listener)

    @property
    def credentials(self) -> dict[str, str]:
        """Account, user, role, and the file of the user's private key."""
        return self._simulation.credentials

    def now(self) -> float:
        """Return seconds since 1970 UTC, by the account's clock."""
        return self._simulation.clock.now()

    def behave(self, **given: Any) -> None:
        """Change how statements and answers are from now on (application.py)."""
        self.control("PUT", "/behavior", given)
