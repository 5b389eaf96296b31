"""One simulated organization, what it was started with, and how to start it anew."""

from __future__ import annotations

import random
from typing import Final

from simulators.confluent.control_plane import create_environment
from simulators.confluent.flink.paper import PaperEngine
from simulators.confluent.iam import issue_key
from simulators.confluent.limits import RateLimit
from simulators.confluent.model import ApiKey, Engine, KeyKind, Plane
from simulators.confluent.organization import Delays, Quotas
from simulators.confluent.organization import Organization as World
from simulators.confluent.tableflow_lake import Lake
from simulators.core.clock import Clock

REGION: Final = "eu-west-1"


class Simulation:
    """`world` is replaced by `reset`; everything else stays."""

    def __init__(
        self,
        addresses: dict[Plane, str],
        *,
        time_scale: float = 1.0,
        start: float | None = None,
        delays: Delays | None = None,
        quotas: Quotas | None = None,
        region: str = REGION,
        seed: int | None = None,
        lake: Lake | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._addresses, self._time_scale, self._start, self._delays = addresses, time_scale, start, delays
        self._engine = engine or PaperEngine()
        self._quotas, self._region, self._lake = quotas, region, lake
        # Goes on over resets: an id never comes twice. Secrets don't come from it.
        self._random = random.Random(seed)  # noqa: S311
        self.reset()

    def reset(self) -> None:
        """An organization with one environment, and one Cloud key of its owner that works at once."""
        clock = Clock(self._time_scale, self._start)
        self.limit = RateLimit()
        self.world = World(
            clock,
            self._addresses,
            engine=self._engine,
            region=self._region,
            delays=self._delays,
            quotas=self._quotas,
            rng=self._random,
            lake=self._lake,
        )
        create_environment(self.world, "default")
        self.cloud_key: ApiKey = issue_key(self.world, self.world.owner, KeyKind.CLOUD, "cloud", delay=0)
