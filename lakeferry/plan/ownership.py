"""What a plan says of objects that the deployment didn't create, and of records that it must not delete.

The functions of the resource types refuse the same; a plan says it before anything is created.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from lakeferry.plan.difference import Action, Change, Comparison
from lakeferry.plan.templates import TemplateResource

_HAVE_RECORDS: Final = ("topic", "flink_statement")
#: The types whose objects are deleted with a key of a service, and the properties that name the secret with
#: a key: its name if somebody brings the key, otherwise a reference.
_DELETED_WITH_KEY: Final = ("topic", "schema", "flink_statement", "tableflow_topic", "catalog_integration")
_CREDENTIALS: Final = ("credentials", "topic_credentials", "subject_credentials")
#: By the two types that a resource can have: that of an object that the deployment creates, and the key of
#: the deployment file that says that the object exists.
_TWO_OWNERS: Final = {
    frozenset(("kafka_cluster", "existing_cluster")): (
        "kafka_cluster",
        "confluent.cluster_id",
        "a cluster of this deployment is always deleted with it, and can't be given away",
    ),
    frozenset(("topic", "existing_topic")): (
        "topic",
        "existing",
        "to give it away, destroy the deployment with on_destroy = keep",
    ),
}


def list_refusals(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    """Yield the changes that would delete more than they name, each with the reason and a way forward."""
    yield from _refuse_other_origin(comparison, changes)
    yield from _refuse_other_owner(comparison, changes)
    yield from _refuse_environment_in_use(comparison, changes)
    yield from _refuse_protected_records(comparison, changes)
    yield from _refuse_topic_handed_over(comparison, changes)
    yield from _refuse_topic_that_is_dropped(changes)
    yield from _refuse_key_left_out(comparison, changes)


def list_adopted(changes: Sequence[Change]) -> list[TemplateResource]:
    """Return the resources that take over an object that exists, because the deployment file says that it is
    its own.
    """
    adopted = []
    for change in changes:
        resource = change.resource
        if not resource.properties.get("adopt"):
            continue
        is_taken_now = change.action is Action.CREATE or any(why.property == "adopt" for why in change.why)
        # In an environment of its own, each schema takes over what a connector registered; the file doesn't
        # name that.
        is_named = resource.kind != "schema" or isinstance(resource.properties.get("environment_id"), str)
        if is_taken_now and is_named:
            adopted.append(resource)
    return adopted


def _refuse_other_origin(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    """Yield the bucket of the deployment's own cluster, if the file names tables of another one instead."""
    has_cluster = any(stack.name.endswith("-confluent") for stack in comparison.wanted)
    for change in changes:
        resource = change.resource
        leaves = change.action in (Action.DELETE, Action.RETAIN)
        if leaves and not has_cluster and resource.id[1].startswith("TableflowBucket"):
            yield (
                resource,
                "the cluster that this deployment created writes its tables into it. [source] names tables "
                "of a cluster that Lakeferry didn't create. Put [confluent] back, and write [source] to the "
                "file of another stage",
            )


def _refuse_other_owner(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    """Yield clusters and topics that the deployment created, if the file now says that somebody else owns
    them, and the other way round.
    """
    for change in changes:
        before = comparison.before(change.resource)
        if before is None or before.kind == change.resource.kind:
            continue
        kinds = frozenset((before.kind, change.resource.kind))
        created, existing, way_out = _TWO_OWNERS.get(kinds, ("", "", ""))
        if before.kind == created:
            yield (
                before,
                "this deployment created it, and the file now says that it exists without the deployment. "
                f"Undo that ({existing}); {way_out}",
            )
        elif created:
            yield (
                before,
                "somebody else owns it, and the file now says that this deployment creates it. Undo that "
                f"({existing})",
            )


def _refuse_environment_in_use(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    stay = {resource.kind for resource in comparison.list_wanted()}
    for change in changes:
        if (
            change.resource.kind == "environment"
            and change.action is Action.DELETE
            and "kafka_cluster" in stay
        ):
            yield (
                change.resource,
                "the deployment created this environment, and would delete it with everything in it. "
                "Remove environment_id and environment_name from the deployment file: they name an "
                "environment that somebody else created. To move to another environment, destroy this "
                "deployment and deploy it again",
            )


def _refuse_protected_records(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    protects = any(
        resource.kind == "kafka_cluster"
        and str(resource.properties.get("deletion_protection")).lower() == "true"
        for resource in comparison.list_wanted()
    )
    for change in changes:
        resource = comparison.before(change.resource) or change.resource
        if (
            not protects
            or resource.kind not in _HAVE_RECORDS
            or not change.action.deletes
            or not change.data_loss
        ):
            continue
        yield (
            resource,
            "its records would be deleted, and deletion_protection of the cluster is on. Undo the change "
            "in the deployment file. To lose the records, set confluent.deletion_protection = false first",
        )


def _refuse_topic_handed_over(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    """Yield resources that would create a topic which another resource still has: CloudFormation creates
    before it deletes.
    """
    removed = {
        _read_topic(change.resource) for change in changes if change.action in (Action.DELETE, Action.RETAIN)
    }
    for change in changes:
        topic = _read_topic(change.resource)
        if topic and topic in removed and change.action is Action.CREATE:
            yield (
                change.resource,
                f"it would create topic {topic}, which exists until another resource deletes it at the "
                "end. Give the new one another name, or remove the old one, deploy, and then add the new "
                "one",
            )


def _refuse_topic_that_is_dropped(changes: Sequence[Change]) -> Iterator[tuple[TemplateResource, str]]:
    """Yield topics that the file now calls existing, if another resource of this deployment deletes them."""
    dropped = {
        _read_topic(change.resource)
        for change in changes
        if change.action is Action.DELETE
        and str(change.resource.properties.get("keep_table")).lower() != "true"
    }
    for change in changes:
        topic = str(change.resource.properties.get("topic") or "")
        if change.resource.kind == "existing_topic" and topic and topic in dropped:
            yield (
                change.resource,
                f"topic {topic} is one that this deployment created, and would delete with its records. Undo "
                "that (existing); to give the topic away, deploy with on_destroy = keep first",
            )


def _refuse_key_left_out(
    comparison: Comparison, changes: Sequence[Change]
) -> Iterator[tuple[TemplateResource, str]]:
    """Yield objects that are deleted with a key that the file no longer names. CloudFormation deletes last:
    no function may read the secret then, so the object would stay, in no stack.
    """
    rights = json.dumps([stack.template for stack in comparison.wanted])
    for change in changes:
        before = comparison.before(change.resource)
        if before is None or not change.action.deletes or before.kind not in _DELETED_WITH_KEY:
            continue
        secrets = [before.properties.get(name) for name in _CREDENTIALS]
        left_out = [
            secret
            for secret in secrets
            if isinstance(secret, str) and secret and f":secret:{secret}-" not in rights
        ]
        if left_out:
            yield (
                before,
                f"it is deleted with the key in secret {left_out[0]}, which the deployment file no longer "
                "names. Put the key back into the file, deploy, and remove it afterwards",
            )


def _read_topic(resource: TemplateResource) -> str:
    return str(resource.properties.get("topic") or "") if resource.kind in _HAVE_RECORDS else ""
