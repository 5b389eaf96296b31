"""Every kind of resource, by the name that stacks use. A new kind is one line here."""

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
from lambdas.shared.resource import Kind
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
class Registered:
    """`vendor` says which client the kind's verbs want."""

    kind: Kind
    vendor: str


KINDS: Final[Mapping[str, Registered]] = {
    "environment": Registered(environment, CONFLUENT),
    "kafka_cluster": Registered(kafka_cluster, CONFLUENT),
    "service_account": Registered(service_account, CONFLUENT),
    "role_binding": Registered(role_binding, CONFLUENT),
    "acl": Registered(acl, CONFLUENT),
    "api_key": Registered(api_key, CONFLUENT),
    "topic": Registered(topic, CONFLUENT),
    "schema": Registered(schema, CONFLUENT),
    "connector": Registered(connector, CONFLUENT),
    "flink_compute_pool": Registered(flink_compute_pool, CONFLUENT),
    "flink_statement": Registered(flink_statement, CONFLUENT),
    "provider_integration": Registered(provider_integration, CONFLUENT),
    "tableflow_topic": Registered(tableflow_topic, CONFLUENT),
    "catalog_integration": Registered(catalog_integration, CONFLUENT),
    "snowflake_warehouse": Registered(warehouse, SNOWFLAKE),
    "snowflake_database": Registered(database, SNOWFLAKE),
    "snowflake_schema": Registered(snowflake_schema, SNOWFLAKE),
    "snowflake_role": Registered(role, SNOWFLAKE),
    "snowflake_grant": Registered(grant, SNOWFLAKE),
    "snowflake_user": Registered(user, SNOWFLAKE),
    "snowflake_external_volume": Registered(external_volume, SNOWFLAKE),
    "snowflake_catalog_integration": Registered(snowflake_catalog_integration, SNOWFLAKE),
    "snowflake_trust": Registered(trust, SNOWFLAKE),
    "snowflake_iceberg_table": Registered(iceberg_table, SNOWFLAKE),
    "snowflake_linked_database": Registered(linked_database, SNOWFLAKE),
}


def find(name: str, kinds: Mapping[str, Registered] = KINDS) -> Registered:
    """Raises BadProperties."""
    try:
        return kinds[name]
    except KeyError:
        raise BadProperties([("kind", f"{name!r} is none of {', '.join(kinds)}")]) from None
