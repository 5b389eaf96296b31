"""Rules about an existing cluster and its topics, which somebody else owns. They are rules like those of
rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from config.deployments import validation
from config.deployments.confluent_model import Confluent, Topic
from config.deployments.model import Deployment
from config.deployments.sources import Sources

Finding = tuple[str, str]
#: Settings of a cluster that Lakeferry creates.
_OF_NEW_CLUSTERS: Final = (
    "stream_governance", "cluster_type", "availability", "max_ecku", "deletion_protection",
)  # fmt: skip
#: Settings that only an existing cluster has.
_OF_EXISTING_CLUSTERS: Final = (
    "glue_database", "kafka_key_secret", "schema_registry_key_secret", "tableflow_key_secret",
    "flink_key_secret",
)  # fmt: skip
#: The topic to which Tableflow writes records that it can't convert, by default.
_DEFAULT_ERROR_LOG: Final = "error_log"
#: Settings of a topic that Lakeferry creates.
_OF_NEW_TOPICS: Final = ("partitions", "config", "datagen", "statement", "adopt")


def existing_cluster_is_not_changed(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """An existing cluster has an existing environment, and no settings of a new one. Without one, no key is
    brought along.
    """
    confluent = deployment.confluent
    if confluent is None:
        return
    if confluent.cluster_id is None:
        for key in _list_set(confluent, _OF_EXISTING_CLUSTERS):
            yield f"confluent.{key}", "is only for an existing cluster. Add cluster_id, or remove it"
        return
    if confluent.environment_id is None:
        yield (
            "confluent.cluster_id",
            "needs environment_id and environment_name: the environment that the cluster is in",
        )
    for key in _list_set(confluent, _OF_NEW_CLUSTERS):
        yield (
            f"confluent.{key}",
            f"is a setting of a new cluster, and {confluent.cluster_id} exists: Lakeferry doesn't change it. "
            "Remove it",
        )


def existing_topics_are_not_changed(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`existing = true` needs an existing cluster, and the topic then has no settings of a new one. Only an
    existing topic, one whose table is in Tableflow's catalog, or one whose schema is in the Schema Registry
    of `[source]`, may have capitals in its name.
    """
    confluent = deployment.confluent
    source = deployment.source
    keeps_capitals = source is not None and bool(source.catalog or source.registry)
    for index, topic in enumerate(deployment.topics):
        if not topic.existing:
            if keeps_capitals:  # Tableflow's catalog and Schema Registry have the topic's own name
                continue
            if problem := validation.new_topic_name(topic.name):
                hint = ". If it exists already, set existing = true" if confluent else ""
                yield f"topics[{index}].name", f"{problem}{hint}"
            continue
        if deployment.source:
            continue  # its own rule says that it has no such key
        if confluent is None or confluent.cluster_id is None:
            yield (
                f"topics[{index}].existing",
                f"{topic.name} can only exist in an existing cluster. Add confluent.cluster_id, or remove "
                "existing",
            )
        for key in _list_set(topic, _OF_NEW_TOPICS):
            yield (
                f"topics[{index}].{key}",
                f"is a setting of a new topic, and Lakeferry doesn't change {topic.name}, which exists. "
                "Remove it",
            )


def existing_cluster_has_no_test_data(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Datagen doesn't write to an existing cluster: its connector needs rights on the whole cluster, to
    create topics for previews.
    """
    if deployment.confluent is None or deployment.confluent.cluster_id is None:
        return
    for index, topic in enumerate(deployment.topics):
        if topic.datagen:
            yield (
                f"topics[{index}].datagen",
                f"can't write to {deployment.confluent.cluster_id}: the connector would need rights on the "
                "whole cluster. Remove it, or rehearse with a cluster of its own",
            )


def errors_have_a_topic_of_their_own(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """With on_error = LOG on an existing cluster, `error_log_topic` isn't the default: others use that."""
    if not deployment.uses_existing_cluster:
        return
    for index, topic in enumerate(deployment.topics):
        table = topic.tableflow
        if table and table.on_error == "LOG" and table.error_log_topic == _DEFAULT_ERROR_LOG:
            yield (
                f"topics[{index}].tableflow.error_log_topic",
                f"is {_DEFAULT_ERROR_LOG}, to which Tableflow writes the records of all teams of the "
                "cluster. Choose a name of your own",
            )


def somebody_may_create_catalog_integration(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """For tables in Glue, an existing cluster has an integration with Glue, or a key that may create one."""
    confluent = deployment.confluent
    if confluent is None or confluent.cluster_id is None or not deployment.tables_in_glue:
        return
    if confluent.glue_database is None and confluent.tableflow_key_secret is None:
        yield (
            "confluent.glue_database",
            "is missing: tables get into Glue through the integration that the cluster has with Glue. If it "
            f'has one, set glue_database = "{confluent.cluster_id}", or the database that its owner chose. '
            "Otherwise an administrator of the cluster has to create one in Confluent's console. Or name the "
            "secret of an administrator's key in tableflow_key_secret: Lakeferry's own accounts get no "
            "rights on the whole cluster",
        )


def _list_set(table: Confluent | Topic, keys: tuple[str, ...]) -> list[str]:
    """Return those of `keys` that the file sets to something else than the default."""
    defaults = {field.name: field.default for field in attrs.fields(type(table))}
    return [key for key in keys if getattr(table, key) and getattr(table, key) != defaults[key]]
