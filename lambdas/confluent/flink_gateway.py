"""Names, paths and bodies of the statements that are sent to the Flink SQL gateway."""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent.flink_properties import FlinkStatementProps
from lambdas.confluent.flink_sql import fingerprint
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.rest_client import RestClient, build_path, get_path, get_text

#: The fields of a statement that identify it and its version.
_IDENTITY: Final = ("name", "organization_id", "environment_id", "metadata")
#: The session property with the name of the statement whose offsets a new one takes over.
INITIAL_OFFSET_FROM: Final = "sql.tables.initial-offset-from"
#: The fields of a statement's `spec` that the gateway takes.
_WRITABLE: Final = ("statement", "properties", "compute_pool_id", "principal", "stopped")


def put(context: Ctx, spec: FlinkStatementProps, actual: dict[str, Any], **changes: Any) -> None:
    """Send the whole statement with the resource version that was read, as the gateway requires."""
    body = {name: value for name, value in actual.items() if name in _IDENTITY}
    new_spec = {}
    for name in _WRITABLE:
        value = get_path(actual, "spec", name)
        if value is not None:
            new_spec[name] = value
    new_spec.update(changes)
    body["spec"] = new_spec
    connect(context, spec).put(build_route(context, spec, get_text(actual, "name")), body)


def build_statement(
    context: Ctx, spec: FlinkStatementProps, name: str, sql: str, begins_after: str = ""
) -> dict[str, Any]:
    """Return the body of a statement. `begins_after` names a statement that stopped: the new one goes on."""
    properties = _build_properties(context, spec)
    if begins_after:
        properties[INITIAL_OFFSET_FROM] = begins_after
    return {
        "name": name,
        "organization_id": context.vendor.organization_id,
        "environment_id": spec.environment_id,
        "spec": {
            "statement": sql,
            "properties": properties,
            "compute_pool_id": spec.compute_pool_id,
            "principal": spec.service_account_id or find_key_owner(context, spec),
            "stopped": False,
        },
    }


def find_key_owner(context: Ctx, spec: FlinkStatementProps) -> str:
    """Return the account or person that owns the key with which the statement is sent."""
    return context.vendor.find_key_owner(context.secrets.read_key(spec.credentials))


def _build_properties(context: Ctx, spec: FlinkStatementProps) -> dict[str, str]:
    """Return the session's properties, with the names that environment and cluster have now: people may
    rename them.
    """
    environment = context.vendor.cloud.read(build_path("org", "v2", "environments", spec.environment_id))
    cluster = context.vendor.cluster(spec.environment_id, spec.cluster_id) if spec.cluster_id else None
    return {
        **spec.properties,
        "sql.current-catalog": get_text(environment, "display_name") or spec.catalog,
        "sql.current-database": get_text(cluster, "spec", "display_name") or spec.database,
    }


def build_name(context: Ctx, spec: FlinkStatementProps) -> str:
    return f"{context.name}-{fingerprint(spec.sql, spec.properties)}"


def build_former_name(context: Ctx, spec: FlinkStatementProps) -> str:
    """Return the name that earlier releases gave the statement."""
    properties = {
        **spec.properties,
        "sql.current-catalog": spec.catalog,
        "sql.current-database": spec.database,
    }
    return f"{context.name}-{fingerprint(spec.sql, properties)}"


def build_successor_name(context: Ctx, spec: FlinkStatementProps, before: str) -> str:
    """Return the name of the statement with the text of `spec` that goes on where `before` stopped.

    It depends on both, so that no name is ever used twice.
    """
    return f"{context.name}-{fingerprint(f'{before} {spec.sql}', spec.properties)}"


def build_undo_name(name: str) -> str:
    return f"{name}-undo"


def connect(context: Ctx, spec: FlinkStatementProps) -> RestClient:
    return context.vendor.flink(spec.region, context.secrets.read_key(spec.credentials))


def build_route(context: Ctx, spec: FlinkStatementProps, *name: str) -> str:
    parent = ("organizations", context.vendor.organization_id, "environments", spec.environment_id)
    return build_path("sql", "v1", *parent, "statements", *name)
