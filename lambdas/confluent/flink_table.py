"""The table that a Flink statement creates: a topic, and its subjects in Schema Registry."""

from __future__ import annotations

from typing import Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.flink_properties import FlinkStatementProps
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.rest_client import build_path
from lambdas.shared.errors import Conflict, Refused

#: Seconds for which a topic that an undo has just dropped may still be listed.
_DROP_PATIENCE: Final = 300.0


def require_no_table(context: Ctx, spec: FlinkStatementProps, *, was_dropped: bool) -> None:
    """Raise Refused if the topic or a subject of the table exists.

    If an undo `was_dropped`, its drop may still be under way, and Conflict is raised for a while.
    """
    if not spec.topic:
        return
    if has_topic(context, spec):
        message = f"topic {spec.topic} exists, and the statement did not create it"
        if was_dropped:
            raise Conflict(confluent_errors.FOREIGN_TOPIC, message, patience=_DROP_PATIENCE)
        raise Refused(confluent_errors.FOREIGN_TOPIC, message)
    registry = context.vendor.registry(
        spec.environment_id, context.secrets.read_key(spec.subject_credentials)
    )
    for subject in (f"{spec.topic}-value", f"{spec.topic}-key"):
        if registry.read(build_path("subjects", subject, "versions", "latest")) is not None:
            message = f"subject {subject} exists, and the statement did not create it"
            raise Refused(confluent_errors.FOREIGN_SUBJECT, message)


def has_topic(context: Ctx, spec: FlinkStatementProps) -> bool:
    key = context.secrets.read_key(spec.topic_credentials)
    plane = context.vendor.kafka(spec.environment_id, spec.cluster_id, key)
    return (
        plane.read(build_path("kafka", "v3", "clusters", spec.cluster_id, "topics", spec.topic)) is not None
    )
