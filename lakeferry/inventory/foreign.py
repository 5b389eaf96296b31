"""What others put into the deployment's Kafka cluster and compute pool. Confluent deletes it with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lakeferry.deployment import stacks
from lakeferry.deployment.context import MANAGERS_KAFKA_KEY, DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.errors import CommandFailed
from lakeferry.inventory.confluent import BY_HAND
from lakeferry.inventory.known import KnownResource, read_known
from lakeferry.inventory.model import Item, Verdict
from lambdas.confluent.rest_client import build_path, get_objects, get_path, get_text
from lambdas.shared.errors import LakeferryError

#: Topics that Kafka, Schema Registry and connectors create for themselves.
_INTERNAL: Final = re.compile(r"__.*|_schemas|_confluent.*|(dlq|success|error)-lcc-[a-z0-9]+")
#: Properties with the names of topics, of the resource types that create or write topics.
_TOPICS: Final = ("topic", "error_log_topic")


def require_own_contents(
    ctx: DeploymentContext, to_delete: Iterable[Item], deployed: Iterable[Stack]
) -> None:
    """Raise CommandFailed if a cluster has topics, or a pool has statements, that the deployment did not
    create.
    """
    items = list(to_delete)
    statements = [item.name for item in items if item.kind == "flink_statement" and item.why == BY_HAND]
    objects = [f"Flink statement {name}" for name in statements]
    clusters = [item for item in items if item.kind == "kafka_cluster" and item.verdict is Verdict.MANAGED]
    if clusters:
        resources = [resource for stack in deployed for resource in read_known(ctx, stack)]
        known_resources = [resource for resource in resources if resource.status != stacks.DELETED]
        for item in clusters:
            topics = _list_foreign_topics(ctx, item, known_resources)
            objects += [f"topic {topic} of {item.id}" for topic in topics]
    if objects:
        hint = "Move or delete them if nobody needs them, then destroy again"
        raise CommandFailed(
            "DESTROY-FOREIGN", f"others created what would be deleted too: {', '.join(objects)}", hint
        )


def _list_foreign_topics(
    ctx: DeploymentContext, cluster: Item, known_resources: list[KnownResource]
) -> list[str]:
    """Return the topics that no resource creates or writes. Raises CommandFailed if that can't be told.

    After a deletion that stopped half-way, the key that lists topics is gone, and so are the topics'
    resources. The deletion before had made this check: it refuses to begin otherwise.
    """
    deployment_names: set[str] = set()
    for resource in known_resources:
        properties = resource.properties
        deployment_names.update(str(properties[name]) for name in _TOPICS if properties.get(name))
        if resource.identity.kind == "tableflow_topic":
            deployment_names.add("error_log")  # the default of a property that the state need not have
    try:
        listed = set(_list_topics(ctx, cluster))
    except LakeferryError as error:
        if not any(_is_needed_for_topics(resource) for resource in known_resources):
            return []
        secret = ctx.confluent_secret(MANAGERS_KAFKA_KEY)
        message = (
            f"whether others have topics in {cluster.id} can't be told with the key in secret {secret}: "
            f"{error.what}"
        )
        raise CommandFailed(
            "DESTROY-FOREIGN", message, f"`lakeferry rotate {secret} --now`, then destroy again"
        ) from None
    return sorted(name for name in listed - deployment_names if not _INTERNAL.fullmatch(name))


def _is_needed_for_topics(resource: KnownResource) -> bool:
    """Return whether it is a topic, or makes or uses the key with which topics are listed."""
    return resource.identity.kind == "topic" or MANAGERS_KAFKA_KEY in str(resource.properties)


def _list_topics(ctx: DeploymentContext, cluster: Item) -> Iterator[str]:
    """Yield the names of all topics: the owner of this key is an administrator of the cluster.

    Raises LakeferryError.
    """
    key = ctx.secrets.read_key(ctx.confluent_secret(MANAGERS_KAFKA_KEY))
    plane = ctx.confluent().kafka(cluster.parents[0], cluster.id, key)
    for document in get_objects(
        plane.get(build_path("kafka", "v3", "clusters", cluster.id, "topics")), "data"
    ):
        if get_path(document, "is_internal") is not True:
            yield get_text(document, "topic_name")
