"""Tableflow's integration with AWS Glue: it shows all Tableflow tables of a Kafka cluster in the Glue Data Catalog."""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import RestClient, get_path, path, require_text, text
from lambdas.confluent.lookup import Ctx, existing, in_container, known_and_named
from lambdas.confluent.properties import CatalogIntegrationProps
from lambdas.shared import errors
from lambdas.shared.errors import DETAIL_LENGTH, ReplacementRequired, ResourceFailed
from lambdas.shared.resource import Outputs

ROUTE: Final = "/tableflow/v1/catalog-integrations"
#: A new role reaches all of AWS within minutes: seconds after which a failure is the role's own.
FAULT_PATIENCE: Final = 900.0
_RESUME_EVERY: Final = 60.0


def require_working(context: Ctx, plane: RestClient, found: dict[str, Any], place: dict[str, Any]) -> None:
    """Raises ResourceFailed, with Confluent's reason, for one that has failed, and resumes it once a minute."""
    if text(found, "status", "phase") == "FAILED" or get_path(found, "spec", "suspended") is True:
        _resume(context, plane, text(found, "id"), place)
        raise fault(f"catalog integration {text(found, 'id')}", text(found, "status", "error_message"))


def fault(what: str, reason: str) -> ResourceFailed:
    told = f"{what}: {reason[:DETAIL_LENGTH] or 'no reason given'}"
    return ResourceFailed(confluent_errors.CATALOG_FAILED, told, patience=FAULT_PATIENCE)


def _resume(context: Ctx, plane: RestClient, integration_id: str, place: dict[str, Any]) -> None:
    note = f"resumed {integration_id}"
    if context.clock.time() - float(context.notes.get(note, "0")) >= _RESUME_EVERY:
        context.notes[note] = str(context.clock.time())
        plane.patch(ROUTE + path(integration_id), {"spec": {**place, "suspended": False}})


PROPERTIES: Final = CatalogIntegrationProps
TIMEOUT_SECONDS: Final = 3000.0


def create(context: Ctx, spec: CatalogIntegrationProps) -> str:
    body = {"spec": {"display_name": context.name, **_cluster_ref(spec), "config": _config(spec)}}
    return require_text(_plane(context, spec).post(ROUTE, body), "id")


def is_ready(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> Outputs | None:
    """PENDING will do: it may stay so until the first table is written."""
    found = existing(_read(context, spec, object_id), f"catalog integration {object_id}")
    require_working(context, _plane(context, spec), found, _cluster_ref(spec))
    return {"id": object_id, "name": text(found, "spec", "display_name"), "database": spec.database or spec.cluster_id}


def update(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    """A cluster has one integration with Glue only, so the old one goes before one with another role comes."""
    found = existing(_read(context, spec, object_id), f"catalog integration {object_id}")
    database = text(found, "spec", "config", "custom_database")
    if text(found, "spec", "config", "provider_integration_id") != spec.provider_integration_id or (
        database and not spec.database
    ):
        raise ReplacementRequired(errors.OUTDATED, f"catalog integration {object_id} uses another role or database")
    changes: dict[str, Any] = {}
    if text(found, "spec", "display_name") != context.name:
        changes["display_name"] = context.name
    if database != spec.database:
        changes["config"] = {"kind": "AwsGlue", "custom_database": spec.database}
    if changes:
        _plane(context, spec).patch(ROUTE + path(object_id), {"spec": {**_cluster_ref(spec), **changes}})


def delete(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    """The database and the tables in Glue stay."""
    _plane(context, spec).delete(ROUTE + path(object_id), **_query(spec))


def find_existing(context: Ctx, spec: CatalogIntegrationProps, known: str | None) -> list[str]:
    def look() -> list[str]:
        listed = _plane(context, spec).pages(ROUTE, **_query(spec))
        read = lambda one: _read(context, spec, one)  # noqa: E731
        return known_and_named(known, read, listed, context.name, "spec", "display_name")

    return in_container(context, lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None, look)


def _config(spec: CatalogIntegrationProps) -> dict[str, str]:
    custom = {"custom_database": spec.database} if spec.database else {}
    return {"kind": "AwsGlue", "provider_integration_id": spec.provider_integration_id, **custom}


def _cluster_ref(spec: CatalogIntegrationProps) -> dict[str, dict[str, str]]:
    return {"environment": {"id": spec.environment_id}, "kafka_cluster": {"id": spec.cluster_id}}


def _query(spec: CatalogIntegrationProps) -> dict[str, str]:
    return {"environment": spec.environment_id, "spec.kafka_cluster": spec.cluster_id}


def _read(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> dict[str, Any] | None:
    return _plane(context, spec).read(ROUTE + path(object_id), **_query(spec))


def _plane(context: Ctx, spec: CatalogIntegrationProps) -> RestClient:
    return context.vendor.tableflow(context.secrets.read_key(spec.credentials))
