"""A Kafka topic. Its name is the user's: the Iceberg table gets it too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import RestClient, get_path, objects, path, text
from lambdas.confluent.errors import mentions
from lambdas.confluent.lookup import Ctx, existing, in_container
from lambdas.shared.errors import Conflict, InProgress, Refused
from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs

OUTPUTS: Final = ("name", "partitions")
PATIENCE: Final = 2400.0


@attrs.frozen
class Spec(Properties):
    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Kafka key that may administer the cluster.")
    topic: str = prop("The topic's name.")
    partitions: int = prop("How many partitions. They can grow, never shrink: fewer leaves the topic as it is.", default=6)
    config: dict[str, str] = prop("Settings of the topic, such as retention.ms; Confluent's own without them.", default=dict)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.partitions < 1:
            yield "partitions", "must be at least 1"


def create(context: Ctx, spec: Spec) -> str:
    body = {
        "topic_name": spec.topic,
        "partitions_count": spec.partitions,
        "configs": [{"name": name, "value": value} for name, value in sorted(spec.config.items())],
    }
    try:
        _plane(context, spec).post(path("kafka", "v3", "clusters", spec.cluster_id, "topics"), body)
    except Refused as refused:
        if mentions(refused, "already exists"):
            raise Conflict(confluent_errors.CONFLICT, refused.what) from None
        if mentions(refused, "marked for deletion"):
            raise InProgress(confluent_errors.CONFLICT, refused.what) from None
        raise
    return spec.topic


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    found = existing(_plane(context, spec).read(_route(spec)), f"topic {object_id}")
    return {"name": object_id, "partitions": text(found, "partitions_count")}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    plane = _plane(context, spec)
    found = existing(plane.read(_route(spec)), f"topic {object_id}")
    if isinstance(now := get_path(found, "partitions_count"), int) and now < spec.partitions:
        # Kafka refuses to set the number that a topic has, so a repetition would look like a failure.
        plane.patch(_route(spec), {"partitions_count": spec.partitions}, repeatable=False)
    current = {text(one, "name"): one for one in objects(plane.read(_route(spec) + "/configs"), "data")}
    if changes := [*_set(spec, current), *_reset(context, spec, current)]:
        plane.post(_route(spec) + "/configs:alter", {"data": changes}, repeatable=True)


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    """Its records go with it. Kafka removes it in the background."""
    _plane(context, spec).delete(_route(spec))


REPLACE_ON: Final = ("environment_id", "cluster_id", "topic")


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    return in_container(
        context,
        lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None,
        lambda: [spec.topic] if _plane(context, spec).read(_route(spec)) is not None else [],
    )


def _set(spec: Spec, current: dict[str, dict[str, Any]]) -> Iterator[dict[str, str]]:
    for name, value in sorted(spec.config.items()):
        if text(current.get(name), "value") != value:
            yield {"name": name, "value": value}


def _reset(context: Ctx, spec: Spec, current: dict[str, dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Settings that the properties had and have no more go back to Confluent's own."""
    before = context.previous.config if isinstance(context.previous, Spec) else {}
    for name in sorted(before.keys() - spec.config.keys()):
        if get_path(current.get(name), "is_default") is False:
            yield {"name": name, "operation": "DELETE"}


def _plane(context: Ctx, spec: Spec) -> RestClient:
    return context.vendor.kafka(spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials))


def _route(spec: Spec) -> str:
    return path("kafka", "v3", "clusters", spec.cluster_id, "topics", spec.topic)
