"""A topic that somebody else owns. It is looked up, never changed and never deleted.

If it becomes a table, its schema and its cleanup policy must be what Tableflow and the deployment file need.
"""

from __future__ import annotations

from typing import Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.existing_properties import ExistingTopicProps
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.resources.existing_cluster import ABSENCE_PATIENCE
from lambdas.confluent.rest_client import RestClient, build_path, get_objects, get_text
from lambdas.shared.errors import Refused, Transient
from lambdas.shared.resource import Outputs

PROPERTIES: Final = ExistingTopicProps
#: There is nothing that could be left.
ABSENCE_IS_SHOWN: Final = True
TIMEOUT_SECONDS: Final = 1800.0
CLEANUP_POLICY: Final = "cleanup.policy"


def create(context: Ctx, spec: ExistingTopicProps) -> str:
    return spec.topic


def is_ready(context: Ctx, spec: ExistingTopicProps, object_id: str) -> Outputs | None:
    """Return the outputs of the topic. Raises Refused if it doesn't exist, or can't become such a table.

    A rollback is never refused: since the last deployment, the owner may have changed or deleted the topic.
    """
    if context.rolling_back():
        return {"name": object_id, "partitions": ""}
    key = context.secrets.read_key(spec.credentials)
    kafka = context.vendor.kafka(spec.environment_id, spec.cluster_id, key)
    route = build_path("kafka", "v3", "clusters", spec.cluster_id, "topics", spec.topic)
    actual = kafka.read(route)
    if actual is None:
        message = f"topic {spec.topic} does not exist in Kafka cluster {spec.cluster_id}"
        raise Refused(confluent_errors.NO_TOPIC, message, patience=ABSENCE_PATIENCE)
    if spec.write_mode:
        _require_write_mode(spec, kafka, route)
        _require_schema(context, spec)
    return {"name": object_id, "partitions": get_text(actual, "partitions_count")}


def update(context: Ctx, spec: ExistingTopicProps, object_id: str) -> None:
    """Do nothing: `is_ready` looks it up again."""


def delete(context: Ctx, spec: ExistingTopicProps, object_id: str) -> None:
    """Do nothing: somebody else owns it."""


def find_existing(context: Ctx, spec: ExistingTopicProps, known_id: str | None) -> list[str]:
    return [] if context.deleting else [spec.topic]


def choose_write_mode(cleanup_policy: str) -> str:
    """Return the mode in which Tableflow writes a topic with this cleanup policy."""
    return "UPSERT" if "compact" in cleanup_policy else "APPEND"


def _require_write_mode(spec: ExistingTopicProps, kafka: RestClient, route: str) -> None:
    settings = {
        get_text(setting, "name"): get_text(setting, "value")
        for setting in get_objects(kafka.get(f"{route}/configs"), "data")
    }
    policy = settings.get(CLEANUP_POLICY)
    if not policy:
        message = f"Confluent doesn't say which {CLEANUP_POLICY} topic {spec.topic} has"
        raise Transient(confluent_errors.UNEXPECTED, message)
    mode = choose_write_mode(policy)
    if mode != spec.write_mode:
        message = (
            f"topic {spec.topic} has {CLEANUP_POLICY}={policy}, with which Tableflow writes in mode {mode}, "
            f"and the deployment file has write_mode {spec.write_mode}"
        )
        raise Refused(confluent_errors.OTHER_WRITE_MODE, message)


def _require_schema(context: Ctx, spec: ExistingTopicProps) -> None:
    key = context.secrets.read_key(spec.registry_credentials)
    registry = context.vendor.registry(spec.environment_id, key)
    subject = f"{spec.topic}-value"
    if registry.read(build_path("subjects", subject, "versions", "latest")) is None:
        message = f"topic {spec.topic} has no schema: Schema Registry has no subject {subject}"
        raise Refused(confluent_errors.NO_SCHEMA, message, patience=ABSENCE_PATIENCE)
