"""Every resource type, by the name that stacks use. A new one is one line in RESOURCE_TYPES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs

from lambdas.confluent.resources import (
    acl,
    api_key,
    catalog_integration,
    connector,
    environment,
    existing_cluster,
    existing_topic,
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
    view,
    warehouse,
)
from lambdas.snowflake.resources import schema as snowflake_schema

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"


class Ownership(NamedTuple):
    """How a resource type can meet an object that somebody else created, and what proves that an object is
    its own.
    """

    meets: str
    proof: str


_BY_NAME: Final = Ownership(
    "no: its name ends in a hash of account, region, stack and resource",
    "that name, or the id that the create returned",
)
_BY_ACCOUNT: Final = Ownership(
    "no: it is a right of one of the deployment's own accounts or roles", "the account or role"
)
_BY_CREATE: Final = Ownership(
    "its name is yours to choose, and it doesn't name its owner",
    "a create that may have made it was sent; or `adopt` in the deployment file. A foreign one is refused",
)
_BY_COMMENT: Final = Ownership(
    "its name may be yours to choose",
    "the resource's name in its comment. A foreign one is refused, and left alone on destroy",
)
_TABLE: Final = Ownership(
    "its own name ends in a hash, but the topic and the subjects of the table that it creates may exist",
    "topic and subjects did not exist when the statement was sent; or, after a lost state, `adopt`. "
    "`undo_sql` runs only then",
)
_ONE_PER_CLUSTER: Final = Ownership(
    "a cluster has one integration with Glue, and somebody else may have created it",
    "its name, which ends in a hash. A foreign one is refused",
)
_NOTHING: Final = Ownership("no: it creates nothing", "-")


@attrs.frozen
class ResourceType:
    """`vendor` names the client that the handler's functions need."""

    handler: ResourceHandler
    vendor: str
    ownership: Ownership = _BY_NAME


RESOURCE_TYPES: Final[Mapping[str, ResourceType]] = {
    "environment": ResourceType(environment, CONFLUENT),
    "kafka_cluster": ResourceType(kafka_cluster, CONFLUENT),
    "service_account": ResourceType(service_account, CONFLUENT),
    "role_binding": ResourceType(role_binding, CONFLUENT, _BY_ACCOUNT),
    "acl": ResourceType(acl, CONFLUENT, _BY_ACCOUNT),
    "api_key": ResourceType(api_key, CONFLUENT),
    "topic": ResourceType(topic, CONFLUENT, _BY_CREATE),
    "schema": ResourceType(schema, CONFLUENT, _BY_CREATE),
    "connector": ResourceType(connector, CONFLUENT),
    "flink_compute_pool": ResourceType(flink_compute_pool, CONFLUENT),
    "flink_statement": ResourceType(flink_statement, CONFLUENT, _TABLE),
    "provider_integration": ResourceType(provider_integration, CONFLUENT),
    "tableflow_topic": ResourceType(tableflow_topic, CONFLUENT, _BY_CREATE),
    "catalog_integration": ResourceType(catalog_integration, CONFLUENT, _ONE_PER_CLUSTER),
    "existing_cluster": ResourceType(existing_cluster, CONFLUENT, _NOTHING),
    "existing_topic": ResourceType(existing_topic, CONFLUENT, _NOTHING),
    "snowflake_warehouse": ResourceType(warehouse, SNOWFLAKE, _BY_COMMENT),
    "snowflake_database": ResourceType(database, SNOWFLAKE, _BY_COMMENT),
    "snowflake_schema": ResourceType(snowflake_schema, SNOWFLAKE, _BY_COMMENT),
    "snowflake_role": ResourceType(role, SNOWFLAKE, _BY_COMMENT),
    "snowflake_grant": ResourceType(grant, SNOWFLAKE, _BY_ACCOUNT),
    "snowflake_user": ResourceType(user, SNOWFLAKE, _BY_COMMENT),
    "snowflake_external_volume": ResourceType(external_volume, SNOWFLAKE, _BY_COMMENT),
    "snowflake_catalog_integration": ResourceType(snowflake_catalog_integration, SNOWFLAKE, _BY_COMMENT),
    "snowflake_trust": ResourceType(trust, SNOWFLAKE, _NOTHING),
    "snowflake_iceberg_table": ResourceType(iceberg_table, SNOWFLAKE, _BY_COMMENT),
    "snowflake_view": ResourceType(view, SNOWFLAKE, _BY_COMMENT),
    "snowflake_linked_database": ResourceType(linked_database, SNOWFLAKE, _BY_COMMENT),
}


def find(name: str, types: Mapping[str, ResourceType] = RESOURCE_TYPES) -> ResourceType:
    """Return the resource type. Raises BadProperties for an unknown name."""
    try:
        return types[name]
    except KeyError:
        raise BadProperties([("kind", f"{name!r} is none of {', '.join(types)}")]) from None
