"""Tableflow's integration with AWS Glue: it shows all Tableflow tables of a Kafka cluster in the Glue Data
Catalog.
"""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import CatalogIntegrationProps, TableflowTopicProps
from lambdas.confluent.rest_client import RestClient, build_path, get_path, get_text, require_text
from lambdas.shared import errors
from lambdas.shared.errors import Conflict, Refused, ReplacementRequired, ResourceFailed, shorten_detail
from lambdas.shared.resource import Outputs

PROPERTIES: Final = CatalogIntegrationProps
TIMEOUT_SECONDS: Final = 3000.0
ROUTE: Final = "/tableflow/v1/catalog-integrations"
#: Seconds for which a failure may mean that the role is new: a new role is known in all of AWS within
#: minutes.
FAULT_PATIENCE: Final = 900.0
_RESUME_EVERY: Final = 60.0
InTableflow: TypeAlias = CatalogIntegrationProps | TableflowTopicProps


def create(context: Ctx, spec: CatalogIntegrationProps) -> str:
    """Create it.

    Raises Refused if the cluster has an integration with Glue that this resource did not create.
    """
    config = {"kind": "AwsGlue", "provider_integration_id": spec.provider_integration_id}
    if spec.database:
        config["custom_database"] = spec.database
    body = {"spec": {"display_name": context.name, **build_cluster_ref(spec), "config": config}}
    tableflow = connect(context, spec)
    try:
        return require_text(tableflow.post(ROUTE, body), "id")
    except Conflict:
        for integration in tableflow.pages(ROUTE, **build_query(spec)):
            display_name = get_text(integration, "spec", "display_name")
            is_of_glue = get_text(integration, "spec", "config", "kind") == "AwsGlue"
            if is_of_glue and display_name != context.name:
                name = f"{get_text(integration, 'id')} ({display_name})"
                message = (
                    f"Kafka cluster {spec.cluster_id} has catalog integration {name} with Glue already, "
                    "and can have only one"
                )
                raise Refused(confluent_errors.FOREIGN_CATALOG, message) from None
        raise


def is_ready(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> Outputs | None:
    """Return the outputs once it works.

    PENDING is enough: it may stay PENDING until the first table is written.
    """
    actual = require_existing(_read(context, spec, object_id), f"catalog integration {object_id}")
    require_working(context, spec, actual)
    return {
        "id": object_id,
        "name": get_text(actual, "spec", "display_name"),
        "database": spec.database or spec.cluster_id,
    }


def update(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    """Update it.

    A cluster has only one integration with Glue, so for another role it is deleted before it is created
    again.
    """
    actual = require_existing(_read(context, spec, object_id), f"catalog integration {object_id}")
    database = get_text(actual, "spec", "config", "custom_database")
    provider_integration_id = get_text(actual, "spec", "config", "provider_integration_id")
    has_other_role = provider_integration_id != spec.provider_integration_id
    loses_database = database and not spec.database
    if has_other_role or loses_database:
        raise ReplacementRequired(
            errors.OUTDATED, f"catalog integration {object_id} uses another role or database"
        )
    changes: dict[str, Any] = {}
    if get_text(actual, "spec", "display_name") != context.name:
        changes["display_name"] = context.name
    if database != spec.database:
        changes["config"] = {"kind": "AwsGlue", "custom_database": spec.database}
    if changes:
        connect(context, spec).patch(
            ROUTE + build_path(object_id), {"spec": {**build_cluster_ref(spec), **changes}}
        )


def delete(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    """Delete it. The database and the tables in Glue stay."""
    connect(context, spec).delete(ROUTE + build_path(object_id), **build_query(spec))


def find_existing(context: Ctx, spec: CatalogIntegrationProps, known_id: str | None) -> list[str]:
    def find_objects() -> list[str]:
        integrations = connect(context, spec).pages(ROUTE, **build_query(spec))
        read_by_id = functools.partial(_read, context, spec)
        return find_by_id_or_name(known_id, read_by_id, integrations, context.name, "spec", "display_name")

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None, find_objects
    )


def _read(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> dict[str, Any] | None:
    return connect(context, spec).read(ROUTE + build_path(object_id), **build_query(spec))


# --- shared with the resource type tableflow_topic


def connect(context: Ctx, spec: InTableflow) -> RestClient:
    return context.vendor.tableflow(context.secrets.read_key(spec.credentials))


def build_cluster_ref(spec: InTableflow) -> dict[str, dict[str, str]]:
    return {"environment": {"id": spec.environment_id}, "kafka_cluster": {"id": spec.cluster_id}}


def build_query(spec: InTableflow) -> dict[str, str]:
    return {"environment": spec.environment_id, "spec.kafka_cluster": spec.cluster_id}


def resume(context: Ctx, spec: InTableflow, resource: str) -> None:
    """Resume what Tableflow has suspended, at most once a minute. `resource` is its path in the API."""
    note = f"resumed {resource}"
    seconds_since_resume = context.clock.time() - float(context.notes.get(note, "0"))
    if seconds_since_resume >= _RESUME_EVERY:
        context.notes[note] = str(context.clock.time())
        connect(context, spec).patch(resource, {"spec": {**build_cluster_ref(spec), "suspended": False}})


def require_working(context: Ctx, spec: InTableflow, integration: dict[str, Any]) -> None:
    """Resume an integration that has failed or is suspended, and raise ResourceFailed with Confluent's
    reason.
    """
    integration_id = get_text(integration, "id")
    has_failed = get_text(integration, "status", "phase") == "FAILED"
    if has_failed or get_path(integration, "spec", "suspended") is True:
        resume(context, spec, ROUTE + build_path(integration_id))
        raise build_fault(
            f"catalog integration {integration_id}", get_text(integration, "status", "error_message")
        )


def build_fault(object_name: str, reason: str) -> ResourceFailed:
    message = f"{object_name}: {shorten_detail(reason) or 'no reason given'}"
    return ResourceFailed(confluent_errors.CATALOG_FAILED, message, patience=FAULT_PATIENCE)
