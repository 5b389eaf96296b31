"""Every resource type, by the name that stacks use. A new one is one line in RESOURCE_TYPES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from lambdas.confluent.resources import (
    acl,
    api_key,
    catalog_integration,
    connector,
    environment,
    flink_compute_pool,
    flink_statement,
    kafka_cluster,
    provider_integration,
    role_binding,
    schema,
    service_account,
    tableflow_topic,
    topic,
)
from lambdas.shared.errors import BadProperties
from lambdas.shared.resource import ResourceHandler
from lambdas.snowflake.resources import catalog_integration as snowflake_catalog_integration
from lambdas.snowflake.resources import (
    database,
    external_volume,
    grant,
    iceberg_table,
    linked_database,
    role,
    trust,
    user,
    warehouse,
)
from lambdas.snowflake.resources import schema as snowflake_schema

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"


@attrs.frozen
class ResourceType:
    """`vendor` names the client that the handler's functions need."""

    handler: ResourceHandler
    vendor: str


RESOURCE_TYPES: Final[Mapping[str, ResourceType]] = {
    "environment": ResourceType(environment, CONFLUENT),
    "kafka_cluster": ResourceType(kafka_cluster, CONFLUENT),
    "service_account": ResourceType(service_account, CONFLUENT),
    "role_binding": ResourceType(role_binding, CONFLUENT),
    "acl": ResourceType(acl, CONFLUENT),
    "api_key": ResourceType(api_key, CONFLUENT),
    "topic": ResourceType(topic, CONFLUENT),
    "schema": ResourceType(schema, CONFLUENT),
    "connector": ResourceType(connector, CONFLUENT),
    "flink_compute_pool": ResourceType(flink_compute_pool, CONFLUENT),
    "flink_statement": ResourceType(flink_statement, CONFLUENT),
    "provider_integration": ResourceType(provider_integration, CONFLUENT),
    "tableflow_topic": ResourceType(tableflow_topic, CONFLUENT),
    "catalog_integration": ResourceType(catalog_integration, CONFLUENT),
    "snowflake_warehouse": ResourceType(warehouse, SNOWFLAKE),
    "snowflake_database": ResourceType(database, SNOWFLAKE),
    "snowflake_schema": ResourceType(snowflake_schema, SNOWFLAKE),
    "snowflake_role": ResourceType(role, SNOWFLAKE),
    "snowflake_grant": ResourceType(grant, SNOWFLAKE),
    "snowflake_user": ResourceType(user, SNOWFLAKE),
    "snowflake_external_volume": ResourceType(external_volume, SNOWFLAKE),
    "snowflake_catalog_integration": ResourceType(snowflake_catalog_integration, SNOWFLAKE),
    "snowflake_trust": ResourceType(trust, SNOWFLAKE),
    "snowflake_iceberg_table": ResourceType(iceberg_table, SNOWFLAKE),
    "snowflake_linked_database": ResourceType(linked_database, SNOWFLAKE),
}


def find(name: str, types: Mapping[str, ResourceType] = RESOURCE_TYPES) -> ResourceType:
    """Return the resource type. Raises BadProperties for an unknown name."""
    try:
        return types[name]
    except KeyError:
        raise BadProperties([("kind", f"{name!r} is none of {', '.join(types)}")]) from None
