"""The routes of all services. The application looks them up in this order."""

from __future__ import annotations

from typing import Final

from simulators.confluent import connect, control_plane, iam, iceberg_rest, kafka, metrics, registry
from simulators.confluent.flink import statements
from simulators.confluent.http import Route
from simulators.confluent.tableflow import topics
from simulators.confluent.tableflow.catalog_integrations import CatalogIntegrations

ROUTES: Final[tuple[Route, ...]] = (
    *(route for kind in (*control_plane.KINDS, *iam.KINDS, CatalogIntegrations()) for route in kind.routes()),
    *kafka.ROUTES,
    *registry.ROUTES,
    *connect.ROUTES,
    *statements.ROUTES,
    *topics.ROUTES,
    *iceberg_rest.ROUTES,
    *metrics.ROUTES,
)
