"""Serves the simulator on loopback, and stops it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn

from simulators.aws import settings
from simulators.aws.server import EmbeddedAws
from simulators.core import server as serving
from simulators.core.faults import FaultClient, FaultInjector
from simulators.snowflake import trust
from simulators.snowflake.application import Application
from simulators.snowflake.lake import Lake
from simulators.snowflake.simulation import Simulation


def web_server(simulation: Simulation) -> uvicorn.Server:
    """It says what time it is by the simulation's clock."""
    return serving.web_server(FaultInjector(Application(simulation)), own_date=True)


class Snowflake:
    """`with Snowflake() as snowflake:` serves one on a free port, from a thread of this process.

    `aws` is an embedded AWS with IAM enforced; other options are those of Simulation.
    Time stands still unless `time_scale` says otherwise.
    """

    def __init__(self, *, aws: Lake | EmbeddedAws | None = None, **options: Any) -> None:
        if isinstance(aws, EmbeddedAws):
            aws = Lake(aws.url, aws.region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
        here = {"region": aws.root.region} if aws else {}
        self._options = {"time_scale": 0.0, "aws": aws} | here | options

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="lakeferry-snowflake-")
        listener = serving.bound()
        self.url = serving.address(listener)
        self._simulation = Simulation(Path(self._folder.name), **self._options)
        self._serving = serving.ServingThread(web_server(self._simulation), [listener])
        self.faults = FaultClient(self.url)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._serving.stop()
        trust.forget(self._simulation.account)
        self._folder.cleanup()

    @property
    def credentials(self) -> dict[str, str]:
        """Account, user, role, and the file of the user's private key."""
        return self._simulation.credentials

    def advance(self, seconds: float) -> dict[str, Any]:
        """Let time pass; what there is then."""
        return self._control("POST", "/clock", {"advance": seconds})

    def now(self) -> float:
        """Seconds since 1970 UTC, by the account's clock."""
        return self._simulation.account.clock.now()

    def objects(self) -> dict[str, list[str]]:
        """Names of everything there is, by kind, less what every account has; grants too."""
        found: dict[str, list[str]] = self._control("GET")["objects"]
        return found

    def ways(self, **given: Any) -> None:
        """How statements and answers are from now on (controls.py)."""
        self._control("PUT", "/ways", given)

    def reset(self) -> dict[str, Any]:
        """A new account; its credentials."""
        return self._control("POST", "/reset", {})

    def _control(self, method: str, path: str = "", body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = serving.control(self.url, method, path, body)
        return answer
