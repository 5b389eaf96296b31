"""The properties of what exists in Confluent Cloud already and somebody else owns: it is looked up, never
changed and never deleted.
"""

from __future__ import annotations

from typing import ClassVar

from lambdas.confluent.properties import KafkaClusterOutputs, TopicOutputs
from lambdas.shared.properties import Properties, prop, properties


@properties
class ExistingClusterProps(Properties[KafkaClusterOutputs]):
    TYPE: ClassVar[str] = "existing_cluster"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id")

    environment_id: str = prop("The environment that the cluster must be in, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    region: str = prop("The AWS region that the cluster must be in.")


@properties
class ExistingTopicProps(Properties[TopicOutputs]):
    TYPE: ClassVar[str] = "existing_topic"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "cluster_id", "topic")

    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Kafka key that may describe the topic.")
    topic: str = prop("The topic's name.")
    write_mode: str = prop(
        "The write mode that Tableflow must choose for the topic. Without it, the topic becomes no table.",
        default="",
        one_of=("", "APPEND", "UPSERT"),
    )
    registry_credentials: str = prop(
        "Name or ARN of the secret with a Schema Registry key that may read the topic's subject, for a topic "
        "that becomes a table.",
        default="",
    )
