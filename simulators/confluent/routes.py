"""The routes of all APIs. The application uses the first one that matches."""

from __future__ import annotations

from itertools import chain
from typing import Final

from simulators.confluent import (
    connect,
    control_plane,
    iam,
    iceberg_rest,
    kafka,
    kafka_acls,
    metrics,
    quotas,
    registry,
)
from simulators.confluent.flink import statements
from simulators.confluent.http import Route
from simulators.confluent.tableflow import topics
from simulators.confluent.tableflow.catalog_integrations import CatalogIntegrations

_KINDS: Final = (*control_plane.KINDS, *iam.KINDS, CatalogIntegrations())
ROUTES: Final[tuple[Route, ...]] = (
    *chain.from_iterable(kind.build_routes() for kind in _KINDS),
    *kafka.ROUTES,
    *kafka_acls.ROUTES,
    *registry.ROUTES,
    *connect.ROUTES,
    *statements.ROUTES,
    *topics.ROUTES,
    *iceberg_rest.ROUTES,
    *metrics.ROUTES,
    *quotas.ROUTES,
)
