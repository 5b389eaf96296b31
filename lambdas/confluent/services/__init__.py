"""The services that accept API keys, one module for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lambdas.confluent.services.base import KeyService
from lambdas.confluent.services.cloud import Cloud
from lambdas.confluent.services.flink import Flink
from lambdas.confluent.services.kafka import Kafka
from lambdas.confluent.services.schema_registry import SchemaRegistry
from lambdas.confluent.services.tableflow import Tableflow

_ALL: Final[tuple[KeyService, ...]] = (Kafka(), SchemaRegistry(), Flink(), Tableflow(), Cloud())
SERVICES: Final[Mapping[str, KeyService]] = {service.NAME: service for service in _ALL}
