"""Every kind, one line each."""

from __future__ import annotations

from typing import Final

from simulators.confluent.calls import Route
from simulators.confluent.kinds import (
    acls,
    api_keys,
    catalog_integrations,
    clusters,
    compute_pools,
    connectors,
    environments,
    iceberg_catalog,
    metrics,
    organizations,
    provider_integrations,
    records,
    role_bindings,
    schema_registries,
    service_accounts,
    statements,
    subjects,
    tableflow_regions,
    tableflow_topics,
    topics,
)

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
    *topics.ROUTES,
    *acls.ROUTES,
    *records.ROUTES,
    *subjects.ROUTES,
    *connectors.ROUTES,
    *statements.ROUTES,
    *tableflow_topics.ROUTES,
    *catalog_integrations.ROUTES,
    *tableflow_regions.ROUTES,
    *iceberg_catalog.ROUTES,
    *metrics.ROUTES,
)
