"""A cluster's tables in the customer's Glue catalog: the database is named like the cluster, the table like the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from simulators.confluent import tableflow_probe
from simulators.confluent.tableflow_lake import LakeRefused, refused_as
from simulators.core.aws_access import Access

if TYPE_CHECKING:
    from simulators.confluent.kinds.catalog_integrations import CatalogIntegration
    from simulators.confluent.kinds.tableflow_topics import TableflowTopic
    from simulators.confluent.world import World


def begin(world: World, integration: CatalogIntegration) -> None:
    """It looks whether the role may, then puts in the tables that there are. Without any, it stays PENDING."""
    if world.catalog_integrations.get(integration.id) is not integration or integration.phase != "PENDING":
        return
    try:
        if world.lake:
            tableflow_probe.glue(_access(world, integration), integration.database or integration.cluster)
    except LakeRefused as refused:
        integration.phase, integration.message = "FAILED", str(refused)
        return
    for topic in world.tableflow_topics.values():
        if topic.phase == "RUNNING":
            table(world, topic)


def table(world: World, topic: TableflowTopic) -> None:
    """Put the table, as it is now, into the catalogs that its cluster is integrated with."""
    for integration in world.catalog_integrations.values():
        if integration.cluster == topic.cluster and topic.integration and integration.phase != "FAILED":
            _put(world, topic, integration)


def _put(world: World, topic: TableflowTopic, integration: CatalogIntegration) -> None:
    try:
        if world.lake:
            location = world.lake.catalog.pointers[topic.key]
            _put_table(_access(world, integration).client("glue"), topic, integration.database or topic.cluster, location)
    except LakeRefused as refused:
        topic.synced[integration.id] = ("FAILED", str(refused))
        integration.message = str(refused)
        return
    topic.synced[integration.id] = ("SYNCED", "")
    integration.phase, integration.message, integration.last_sync = "CONNECTED", "", world.clock.now()


def _put_table(glue: Any, topic: TableflowTopic, database: str, location: str) -> None:
    try:
        refused_as("Glue database", glue.create_database, DatabaseInput={"Name": database})
    except LakeRefused as refused:
        if not str(refused).endswith("AlreadyExistsException"):
            raise
    given = {
        "Name": topic.id,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": location},
        "StorageDescriptor": {"Location": topic.table_path},
    }
    try:
        glue.update_table(DatabaseName=database, TableInput=given)
    except ClientError as error:
        if error.response["Error"]["Code"] != "EntityNotFoundException":
            raise LakeRefused(f"Glue table: {error.response['Error']['Code']}") from None
        refused_as("Glue table", glue.create_table, DatabaseName=database, TableInput=given)


def _access(world: World, integration: CatalogIntegration) -> Access:
    assert world.lake is not None, "callers look first"
    found = world.provider_integrations[integration.integration]
    region = world.clusters[integration.cluster].region
    return world.lake.assume(found.vendor_role_arn, found.role_arn, found.external_id, region)
