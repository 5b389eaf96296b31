"""Syncs a cluster's tables to the customer's Glue Data Catalog.

The database is named after the cluster's id, unless the integration has a custom one; the table is named
after the topic.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError
from pyiceberg.catalog import glue as iceberg_glue
from pyiceberg.table.metadata import TableMetadata

from simulators.confluent.model import CatalogIntegration, TableflowTopic
from simulators.confluent.organization import Organization
from simulators.confluent.tableflow import probe
from simulators.confluent.tableflow_lake import LakeRefused, call_or_refuse
from simulators.core.aws_access import Access


def begin(org: Organization, integration: CatalogIntegration) -> None:
    """Check the role's permissions, then sync all running tables.

    Without running tables, the integration stays PENDING.
    """
    if org.catalog_integrations.get(integration.id) is not integration or integration.phase != "PENDING":
        return
    try:
        if org.lake:
            probe.probe_glue(_assume_role(org, integration), integration.database or integration.cluster)
    except LakeRefused as error:
        integration.phase = "FAILED"
        integration.message = str(error)
        return
    for topic in org.tableflow_topics.values():
        if topic.phase == "RUNNING":
            sync(org, topic)


def sync(org: Organization, topic: TableflowTopic) -> None:
    """Sync the table's current metadata to the catalog integrations of its cluster.

    Tables in managed storage are not synced.
    """
    for integration in org.catalog_integrations.values():
        if integration.cluster == topic.cluster and topic.integration and integration.phase != "FAILED":
            _put(org, topic, integration)


def _put(org: Organization, topic: TableflowTopic, integration: CatalogIntegration) -> None:
    try:
        if org.lake:
            glue = _assume_role(org, integration).client("glue")
            location = org.lake.catalog.pointers[topic.key]
            metadata = org.lake.catalog.metadata[topic.key]
            _put_table(glue, topic.id, integration.database or topic.cluster, location, metadata)
    except LakeRefused as error:
        topic.synced[integration.id] = ("FAILED", str(error))
        integration.message = str(error)
        return
    topic.synced[integration.id] = ("SYNCED", "")
    integration.phase = "CONNECTED"
    integration.message = ""
    integration.last_sync = org.clock.now()


def _put_table(glue: Any, name: str, database: str, location: str, metadata: TableMetadata) -> None:
    """Create or update the entry of a table in Glue.

    Iceberg's own catalog for Glue writes the columns too. The vendor doesn't say what Tableflow writes; Lake
    Formation can grant only columns that the entry has.
    """
    try:
        call_or_refuse("Glue database", glue.create_database, DatabaseInput={"Name": database})
    except LakeRefused as error:
        if not str(error).endswith("AlreadyExistsException"):
            raise
    entry = {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "ICEBERG", "metadata_location": location},
        "StorageDescriptor": {"Columns": iceberg_glue._to_columns(metadata), "Location": metadata.location},
    }
    try:
        glue.update_table(DatabaseName=database, TableInput=entry)
    except ClientError as error:
        if error.response["Error"]["Code"] != "EntityNotFoundException":
            raise LakeRefused(f"Glue table: {error.response['Error']['Code']}") from None
        call_or_refuse("Glue table", glue.create_table, DatabaseName=database, TableInput=entry)


def _assume_role(org: Organization, integration: CatalogIntegration) -> Access:
    assert org.lake is not None, "callers check for it"
    provider = org.provider_integrations[integration.integration]
    region = org.clusters[integration.cluster].region
    return org.lake.assume(provider.vendor_role_arn, provider.role_arn, provider.external_id, region)
