"""A Kafka topic. The user chooses its name, which the Iceberg table gets too.

A topic doesn't name its owner, and deleting a topic deletes its records. So a topic belongs to the resource
only if the resource sent a create that may have made it, or if the deployment file adopts it. For any other
topic, the create fails, and the topic is never changed or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.errors import mentions
from lambdas.confluent.lookup import Ctx, require_existing, require_unprotected, treat_gone_container_as_empty
from lambdas.confluent.properties import TopicProps
from lambdas.confluent.rest_client import RestClient, build_path, get_objects, get_path, get_text
from lambdas.shared.errors import Conflict, InProgress, Refused
from lambdas.shared.resource import Outputs

PROPERTIES: Final = TopicProps
TIMEOUT_SECONDS: Final = 2400.0


def create(context: Ctx, spec: TopicProps) -> str:
    body = {
        "topic_name": spec.topic,
        "partitions_count": spec.partitions,
        "configs": [{"name": name, "value": value} for name, value in sorted(spec.config.items())],
    }
    plane = _connect(context, spec)
    context.claim()
    try:
        plane.post(build_path("kafka", "v3", "clusters", spec.cluster_id, "topics"), body)
    except Refused as refused:
        if mentions(refused, "already exists"):
            raise Conflict(confluent_errors.CONFLICT, refused.what) from None
        if mentions(refused, "marked for deletion"):
            raise InProgress(confluent_errors.CONFLICT, refused.what) from None
        raise
    return spec.topic


def is_ready(context: Ctx, spec: TopicProps, object_id: str) -> Outputs | None:
    actual = require_existing(_connect(context, spec).read(_build_route(spec)), f"topic {object_id}")
    return {"name": object_id, "partitions": get_text(actual, "partitions_count")}


def update(context: Ctx, spec: TopicProps, object_id: str) -> None:
    plane = _connect(context, spec)
    actual = require_existing(plane.read(_build_route(spec)), f"topic {object_id}")
    partitions = get_path(actual, "partitions_count")
    if isinstance(partitions, int) and partitions < spec.partitions:
        # Kafka refuses to set the number that a topic already has, so a repeated call would look like a
        # failure.
        plane.patch(_build_route(spec), {"partitions_count": spec.partitions}, repeatable=False)
    elif isinstance(partitions, int) and partitions > spec.partitions and _lowers_partitions(context, spec):
        message = (
            f"topic {object_id} has {partitions} partitions, and Kafka can't lower that to {spec.partitions}"
        )
        raise Refused(confluent_errors.CANT_CHANGE, message)
    settings = get_objects(plane.read(_build_route(spec) + "/configs"), "data")
    current = {get_text(setting, "name"): setting for setting in settings}
    changes = [*_list_changed_settings(spec, current), *_list_reset_settings(context, spec, current)]
    if changes:
        plane.post(_build_route(spec) + "/configs:alter", {"data": changes}, repeatable=True)


def _lowers_partitions(context: Ctx, spec: TopicProps) -> bool:
    """Return whether this update lowers the number.

    A rollback doesn't count: the topic then keeps the added partitions.
    """
    before = context.previous
    if not isinstance(before, TopicProps) or before.partitions <= spec.partitions:
        return False
    return not context.rolling_back()


def delete(context: Ctx, spec: TopicProps, object_id: str) -> None:
    """Delete it with its records, which Kafka does in the background.

    Raises LakeferryError if the cluster is protected.
    """
    require_unprotected(context, spec, f"topic {object_id} has records")
    _connect(context, spec).delete(_build_route(spec))


def find_existing(context: Ctx, spec: TopicProps, known_id: str | None) -> list[str]:
    """Return the topic if it exists. Raises Refused if it is neither the resource's own nor to be adopted."""

    def find_objects() -> list[str]:
        if _connect(context, spec).read(_build_route(spec)) is None:
            return []
        if not context.owned and not spec.adopt:
            raise Refused(
                confluent_errors.FOREIGN_TOPIC,
                f"topic {spec.topic} exists, and this deployment did not create it",
            )
        return [spec.topic]

    if context.deleting and not context.owned:
        return []
    return treat_gone_container_as_empty(
        context, lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None, find_objects
    )


def _list_changed_settings(spec: TopicProps, current: dict[str, dict[str, Any]]) -> Iterator[dict[str, str]]:
    for name, value in sorted(spec.config.items()):
        if get_text(current.get(name), "value") != value:
            yield {"name": name, "value": value}


def _list_reset_settings(
    context: Ctx, spec: TopicProps, current: dict[str, dict[str, Any]]
) -> Iterator[dict[str, str]]:
    """Reset settings that the properties no longer have to Confluent's defaults.

    A setting that the list lacks is reset too: a list read soon after a change may be incomplete.
    """
    before = context.previous.config if isinstance(context.previous, TopicProps) else {}
    for name in sorted(before.keys() - spec.config.keys()):
        if get_path(current.get(name), "is_default") is not True:
            yield {"name": name, "operation": "DELETE"}


def _connect(context: Ctx, spec: TopicProps) -> RestClient:
    return context.vendor.kafka(
        spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials)
    )


def _build_route(spec: TopicProps) -> str:
    return build_path("kafka", "v3", "clusters", spec.cluster_id, "topics", spec.topic)
