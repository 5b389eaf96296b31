"""What Tableflow reports about each topic's table and the cluster's catalog integration, for doctor and
status.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lambdas.confluent.resources import catalog_integration
from lambdas.confluent.rest_client import RestClient, get_objects, get_path, get_text

_ROUTE: Final = "/tableflow/v1/tableflow-topics"
_NO_REASON: Final = "no reason given"


@attrs.frozen
class TableflowTopic:
    """One topic's table. A record that can't be written suspends it, with partition and offset in `reason`.

    `failing_formats` are error messages. `catalog` is (status, error message) of a catalog that can't be
    synchronised.
    """

    phase: str
    reason: str
    suspended: bool = False
    failing_formats: tuple[str, ...] = ()
    catalog: tuple[str, str] | None = None


@attrs.frozen
class CatalogIntegration:
    """`database` is the Glue database that it names, "" for the default, which is named after the cluster's
    id.
    """

    id: str
    phase: str
    reason: str
    suspended: bool
    database: str


@attrs.frozen
class Tableflow:
    """Reads Tableflow's API with the deployment's Tableflow key. Raises LakeferryError, CommandFailed.

    `outputs` are those of the confluent stack. If they are None, they are read when they are needed.
    """

    ctx: DeploymentContext
    outputs: Mapping[str, str] | None = None

    @functools.cached_property
    def topics(self) -> dict[str, TableflowTopic]:
        """Return the tables by the names of their topics."""
        listed = self.plane.pages(_ROUTE, **self.query)
        return {get_text(document, "spec", "display_name"): parse_topic(document) for document in listed}

    def catalog_integrations(self) -> list[CatalogIntegration]:
        return [
            parse_catalog(document) for document in self.plane.pages(catalog_integration.ROUTE, **self.query)
        ]

    @functools.cached_property
    def plane(self) -> RestClient:
        return self.ctx.confluent().tableflow(
            self.ctx.secrets.read_key(self.ctx.confluent_secret("tableflow"))
        )

    @functools.cached_property
    def query(self) -> dict[str, str]:
        outputs = stacks.require_part(self.ctx, "confluent").outputs if self.outputs is None else self.outputs
        return {"environment": outputs["EnvironmentId"], "spec.kafka_cluster": outputs["KafkaClusterId"]}


def parse_topic(document: dict[str, Any]) -> TableflowTopic:
    synced = get_objects(document, "status", "catalog_sync_statuses")
    catalogs = ((get_text(catalog, "sync_status"), get_text(catalog, "error_message")) for catalog in synced)
    broken = (
        (status, reason or _NO_REASON) for status, reason in catalogs if status in ("FAILED", "DISCONNECTED")
    )
    return TableflowTopic(
        phase=get_text(document, "status", "phase"),
        reason=get_text(document, "status", "error_message") or _NO_REASON,
        suspended=get_path(document, "spec", "suspended") is True,
        failing_formats=tuple(
            get_text(table_format, "error_message")
            for table_format in get_objects(document, "status", "failing_table_formats")
        ),
        catalog=next(broken, None),
    )


def parse_catalog(document: dict[str, Any]) -> CatalogIntegration:
    return CatalogIntegration(
        id=get_text(document, "id"),
        phase=get_text(document, "status", "phase"),
        reason=get_text(document, "status", "error_message") or _NO_REASON,
        suspended=get_path(document, "spec", "suspended") is True,
        database=get_text(document, "spec", "config", "custom_database"),
    )
