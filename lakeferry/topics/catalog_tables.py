"""The tables of `[source]` in Confluent's storage, in Tableflow's Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from config.deployments.source_model import CatalogSource
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lambdas.confluent import iceberg_catalog
from lambdas.confluent.iceberg_catalog import IcebergCatalog
from lambdas.shared.errors import Denied, LakeferryError, NotFound
from lambdas.shared.http import Session


def open_catalog(ctx: DeploymentContext, source: CatalogSource) -> IcebergCatalog:
    """Raises CommandFailed if the key's secret can't be read."""
    simulator_url = ctx.addresses.catalog
    uri = f"{simulator_url}{urlsplit(source.uri).path}" if simulator_url else source.uri
    session = Session(ctx.deadline, trust_environment=True)
    try:
        return iceberg_catalog.connect(
            session, ctx.clock, ctx.secrets, source.key_secret, uri=uri, cluster_id=source.cluster_id
        )
    except LakeferryError as error:
        raise CommandFailed(
            "TABLEFLOW-KEY", f"the Tableflow key in {source.key_secret} can't be read: {error.what}"
        ) from None


def list_topics(ctx: DeploymentContext, source: CatalogSource) -> list[str]:
    """Return the topics whose tables the key may read. Raises CommandFailed."""
    catalog = open_catalog(ctx, source)
    try:
        return catalog.list_topics()
    except NotFound:  # the catalog hides a cluster without a table that the key's owner may read
        return []
    except LakeferryError as error:
        raise _explain(error, source, source.cluster_id) from None


def load_metadata(catalog: IcebergCatalog, source: CatalogSource, topic: str) -> Mapping[str, Any]:
    """Return the metadata of a topic's table. Raises CommandFailed if it can't be read."""
    try:
        return catalog.load_metadata(topic)
    except NotFound:
        raise CommandFailed(
            "NO-TABLE", f"Tableflow's catalog shows no table {topic} to the key in {source.key_secret}"
        ) from None
    except LakeferryError as error:
        raise _explain(error, source, topic) from None


def _explain(error: LakeferryError, source: CatalogSource, name: str) -> CommandFailed:
    if isinstance(error, Denied):
        refusal = f"Tableflow's catalog refuses the key in {source.key_secret}"
        return CommandFailed("TABLEFLOW-KEY", f"{refusal}: {error.what}")
    return CommandFailed("TABLE-UNREADABLE", f"{name}: {error.what}")
