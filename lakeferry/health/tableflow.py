"""What Tableflow itself says of each table: whether it runs, and the record that stopped it."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health.observations import Seen, State
from lambdas.confluent.client import RestClient, get_path, objects, path, text

_ROUTE = "/tableflow/v1/tableflow-topics"
_RUNNING = "RUNNING"
_PENDING = "PENDING"


@attrs.frozen
class Tableflow:
    """With the deployment's own key for Tableflow."""

    ctx: DeploymentContext

    def seen(self, topic: str) -> Seen:
        """Raises LakeferryError, CommandFailed."""
        found = self._plane.read(_ROUTE + path(topic), **self._query)
        if found is None:
            return Seen(State.WRONG, told="Tableflow is off for this topic; `lakeferry deploy --repair` turns it on again")
        return said(found)

    @functools.cached_property
    def _plane(self) -> RestClient:
        key = self.ctx.secrets.read_key(f"{self.ctx.deployment.prefix}/confluent/tableflow")
        return self.ctx.confluent().tableflow(key)

    @functools.cached_property
    def _query(self) -> dict[str, str]:
        outputs = stacks.require_part(self.ctx, "confluent").outputs
        return {"environment": outputs["EnvironmentId"], "spec.kafka_cluster": outputs["KafkaClusterId"]}


def said(found: dict[str, Any]) -> Seen:
    """From Tableflow's own words. A record that can't be written suspends a table, with partition and offset in the reason."""
    phase, reason = text(found, "status", "phase"), text(found, "status", "error_message")
    if get_path(found, "spec", "suspended") is True:
        return Seen(State.WRONG, told=f"suspended: {reason or 'no reason given'}", code="CFL-TABLEFLOW-SUSPENDED")
    if broken := objects(found, "status", "failing_table_formats"):
        reason = "; ".join(text(one, "error_message") for one in broken)
        return Seen(State.WRONG, told=f"{phase.lower()}: {reason}", code="CFL-TABLEFLOW-FAILED")
    if phase == "FAILED":
        return Seen(State.WRONG, told=f"failed: {reason or 'no reason given'}", code="CFL-TABLEFLOW-FAILED")
    return Seen(State.OK if phase == _RUNNING else State.WAITING, told=phase.lower() or _PENDING.lower())
