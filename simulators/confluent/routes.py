"""The routes of all APIs. The application uses the first one that matches."""

from __future__ import annotations

from typing import Final

from simulators.confluent import (
    connect,
    control_plane,
    iam,
    iceberg_rest,
    kafka,
    kafka_acls,
    metrics,
    registry,
)
from simulators.confluent.flink import statements
from simulators.confluent.http import Route
from simulators.confluent.tableflow import topics
from simulators.confluent.tableflow.catalog_integrations import CatalogIntegrations

ROUTES: Final[tuple[Route, ...]] = (
    *(
        route
        for kind in (*control_plane.KINDS, *iam.KINDS, CatalogIntegrations())
        for route in kind.build_routes()
    ),
    *kafka.ROUTES,
    *kafka_acls.ROUTES,
    *registry.ROUTES,
    *connect.ROUTES,
    *statements.ROUTES,
    *topics.ROUTES,
    *iceberg_rest.ROUTES,
    *metrics.ROUTES,
)
