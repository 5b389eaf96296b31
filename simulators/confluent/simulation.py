"""One simulated organization, the options that it was started with, and its reset."""

from __future__ import annotations

import json
import random
from typing import Any, Final

from simulators.confluent.control_plane import create_environment
from simulators.confluent.flink.paper import PaperEngine
from simulators.confluent.iam import issue_key
from simulators.confluent.limits import RateLimit
from simulators.confluent.model import ApiKey, Engine, KeyKind, Plane
from simulators.confluent.organization import Delays, Organization, Quotas
from simulators.confluent.tableflow_lake import Lake
from simulators.core.clock import Clock

REGION: Final = "eu-west-1"
_KINDS: Final = (
    "environments",
    "clusters",
    "schema_registries",
    "service_accounts",
    "role_bindings",
    "api_keys",
    "compute_pools",
    "provider_integrations",
    "connectors",
    "tableflow_topics",
    "catalog_integrations",
)


class Simulation:
    """`reset` replaces `organization`, its first API key and the rate limit. The options stay the same."""

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
        organization_id: str = "",
    ) -> None:
        self._organization_id = organization_id
        self._addresses = addresses
        self._time_scale = time_scale
        self._start = start
        self._delays = delays
        self._engine = engine or PaperEngine()
        self._quotas = quotas
        self._region = region
        self._lake = lake
        # Not reset, so that ids are never reused. Secrets don't use it.
        self._random = random.Random(seed)  # noqa: S311
        self.reset()

    def reset(self) -> None:
        """Start with an organization that has one environment, and one Cloud API key of its owner, which is
        active at once.

        Other organizations end.
        """
        self.limit = RateLimit()
        clock = Clock(self._time_scale, self._start)
        self.organization, self.cloud_key = self._create_organization(clock, self._organization_id)
        self.others: list[Organization] = []

    def add_organization(self) -> tuple[Organization, ApiKey]:
        """Start another organization at the same addresses.

        The key of a call decides which one it is about.
        """
        organization, key = self._create_organization(self.clock)
        self.others.append(organization)
        return organization, key

    def find_organization(self, key_id: str) -> Organization:
        """Return the organization that has an API key, or the first one."""
        for organization in self.others:
            if key_id in organization.api_keys:
                return organization
        return self.organization

    def _create_organization(self, clock: Clock, organization_id: str = "") -> tuple[Organization, ApiKey]:
        org = Organization(
            clock,
            self._addresses,
            engine=self._engine,
            region=self._region,
            delays=self._delays,
            quotas=self._quotas,
            rng=self._random,
            lake=self._lake,
            organization_id=organization_id,
        )
        create_environment(org, "default")
        return org, issue_key(org, org.owner, KeyKind.CLOUD, "cloud", org.crn, delay=0)

    @property
    def clock(self) -> Clock:
        return self.organization.clock

    @property
    def credentials(self) -> dict[str, str]:
        return describe_credentials(self.organization, self.cloud_key)

    def state(self) -> dict[str, Any]:
        """Return the time and the ids of all objects, by type."""
        organization = self.organization
        organization.clock.run_due()
        objects = {}
        for kind in _KINDS:
            objects[kind] = sorted(record.id for record in getattr(organization, kind).values())
        objects["statements"] = sorted("/".join(key) for key in organization.statements)
        topics = []
        acls = []
        for cluster in organization.clusters.values():
            topics += [f"{cluster.id}/{name}" for name in cluster.topics]
            acls += [f"{cluster.id}/{json.dumps(acl)}" for acl in cluster.acls]
        subjects = []
        for registry in organization.schema_registries.values():
            subjects += [f"{registry.id}/{name}" for name in registry.schemas.subjects()]
        objects["topics"] = sorted(topics)
        objects["acls"] = sorted(acls)
        objects["subjects"] = sorted(subjects)
        return {"now": organization.clock.format_time(), "objects": objects}


def describe_credentials(organization: Organization, key: ApiKey) -> dict[str, str]:
    """Return what a client needs. The secret is only valid for this simulator."""
    return {
        "cloud_api_key": key.id,
        "cloud_api_secret": key.secret,
        "organization_id": organization.organization_id,
    }
