"""How resource types find their objects, and how they treat missing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import Confluent
from lambdas.confluent.flink_properties import FlinkStatementProps
from lambdas.confluent.properties import TableflowTopicProps, TopicProps
from lambdas.confluent.rest_client import get_path, get_text
from lambdas.shared import errors
from lambdas.shared.errors import Denied, LakeferryError, NotFound, ParentMissing, ResourceMissing
from lambdas.shared.resource import Context

Ctx: TypeAlias = Context[Confluent]


def require_existing(body: dict[str, Any] | None, object_name: str) -> dict[str, Any]:
    """Return the body. Raises ResourceMissing if it is None."""
    if body is None:
        raise ResourceMissing(errors.VANISHED, f"{object_name} does not exist")
    return body


def find_by_id_or_name(
    known_id: str | None,
    read: Callable[[str], dict[str, Any] | None],
    documents: Iterable[dict[str, Any]],
    name: str,
    *where: str,
) -> list[str]:
    """Return ids: the known id if its object exists, then the ids of all other objects whose field at `where`
    is `name`.
    """
    ids = [known_id] if known_id and read(known_id) is not None else []
    named_ids = [get_text(document, "id") for document in documents if get_text(document, *where) == name]
    return ids + [named_id for named_id in named_ids if named_id and named_id not in ids]


def treat_gone_container_as_empty(
    context: Ctx, container_is_gone: Callable[[], bool], find_objects: Callable[[], list[str]]
) -> list[str]:
    """Return what `find_objects` returns.

    An object to delete counts as gone if its container is gone, whatever its API answers.
    """
    try:
        return find_objects()
    except (Denied, NotFound, ParentMissing):
        if context.deleting and container_is_gone():
            return []
        raise


def require_unprotected(
    context: Ctx, spec: TopicProps | TableflowTopicProps | FlinkStatementProps, why: str
) -> None:
    """Raise LakeferryError if the deployment's own cluster has deletion protection, unless the stack is
    rolling back what it has just created.

    Confluent protects the cluster only; CloudFormation deletes what is in it before it reaches the cluster.
    Somebody else who protects their cluster protects their own records, not those of the deployment.
    """
    if spec.shared_cluster:
        return
    cluster = context.vendor.cluster(spec.environment_id, spec.cluster_id)
    if get_path(cluster, "spec", "deletion_protection") is True and not context.rolling_back():
        raise LakeferryError(
            confluent_errors.DELETION_PROTECTED, f"Kafka cluster {spec.cluster_id} is protected, and {why}"
        )
