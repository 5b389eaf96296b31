"""The routes of all services. The application looks them up in this order."""

from __future__ import annotations

from typing import Final

from simulators.confluent import connect, iceberg_rest, kafka, metrics, registry
from simulators.confluent.flink import statements
from simulators.confluent.http import Route
from simulators.confluent.kinds import (
    api_keys,
    clusters,
    compute_pools,
    environments,
    organizations,
    provider_integrations,
    role_bindings,
    schema_registries,
    service_accounts,
    tableflow_regions,
)
from simulators.confluent.tableflow import catalog_integrations, topics

ROUTES: Final[tuple[Route, ...]] = (
    *organizations.ROUTES,
    *environments.ROUTES,
    *clusters.ROUTES,
    *schema_registries.ROUTES,
    *service_accounts.ROUTES,
    *api_keys.ROUTES,
    *role_bindings.ROUTES,
    *compute_pools.ROUTES,
    *provider_integrations.ROUTES,
    *kafka.ROUTES,
    *registry.ROUTES,
    *connect.ROUTES,
    *statements.ROUTES,
    *topics.ROUTES,
    *catalog_integrations.ROUTES,
    *tableflow_regions.ROUTES,
    *iceberg_rest.ROUTES,
    *metrics.ROUTES,
)
