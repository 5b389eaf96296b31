"""The topics of a Kafka cluster that somebody else has: what each is, and what an export of it would need."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import attrs

from lakeferry.deployment.context import MANAGERS_KAFKA_KEY, DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.topics import registry
from lakeferry.topics.registry import AVRO, NONE, UNKNOWN
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import Confluent
from lambdas.confluent.resources.existing_topic import CLEANUP_POLICY, choose_write_mode
from lambdas.confluent.rest_client import RestClient, build_path, get_objects, get_path, get_text
from lambdas.shared.errors import Denied, InProgress, NotFound, ParentMissing, Refused

_RETENTION: Final = "retention.ms"
_TABLES: Final = "/tableflow/v1/tableflow-topics"
OFF: Final = "off"


@attrs.frozen
class DiscoveredTopic:
    """`cleanup_policy` and `retention_ms` may be UNKNOWN. `value_schema` and `key_schema` are types of
    schemas, NONE or UNKNOWN. `tableflow` is OFF, UNKNOWN, or the state and the storage of the topic's table.
    `needs` is what an export of the topic would need.
    """

    name: str
    partitions: int
    cleanup_policy: str
    retention_ms: str
    value_schema: str
    key_schema: str
    tableflow: str
    in_file: bool
    needs: str


@attrs.frozen
class Cluster:
    """An existing cluster, as the keys of the deployment see it. A key that can't be read is None."""

    id: str
    kafka: RestClient
    registry: RestClient | None
    tableflow: RestClient | None
    environment_id: str

    def list_topics(self, in_file: Collection[str]) -> list[DiscoveredTopic]:
        """Return the topics that the Kafka key may describe, by name. `in_file` are the names of topics in
        the deployment file. Raises LakeferryError.
        """
        listed_tables = self._list_tables()
        documents = [
            document
            for document in get_objects(self.kafka.get(self._build_route()), "data")
            if get_path(document, "is_internal") is not True
        ]
        return [
            self._describe(document, listed_tables, is_in_file=get_text(document, "topic_name") in in_file)
            for document in sorted(documents, key=lambda document: get_text(document, "topic_name"))
        ]

    def read_schema(self, topic: str) -> dict[str, Any]:
        """Return the Avro schema of the topic's values (`registry.read_schema`)."""
        return registry.read_schema(self.registry, topic)

    def _describe(
        self, document: dict[str, Any], listed_tables: dict[str, dict[str, Any]], *, is_in_file: bool
    ) -> DiscoveredTopic:
        name = get_text(document, "topic_name")
        settings = self._read_settings(name)
        policy = settings.get(CLEANUP_POLICY, UNKNOWN)
        value_schema = self._find_type(f"{name}-value")
        state = _describe_table(listed_tables[name]) if name in listed_tables else self._find_state(name)
        return DiscoveredTopic(
            name=name,
            partitions=int(get_text(document, "partitions_count") or 0),
            cleanup_policy=policy,
            retention_ms=settings.get(_RETENTION, UNKNOWN),
            value_schema=value_schema,
            key_schema=self._find_type(f"{name}-key"),
            tableflow=state,
            in_file=is_in_file,
            needs=_explain_needs(value_schema, state, policy, is_in_file=is_in_file),
        )

    def _read_settings(self, topic: str) -> dict[str, str]:
        """Return the topic's settings; none if the key may read the topic, but not its settings."""
        try:
            answer = self.kafka.get(f"{self._build_route()}{build_path(topic)}/configs")
        except Denied:
            return {}
        return {
            get_text(setting, "name"): get_text(setting, "value") for setting in get_objects(answer, "data")
        }

    def _find_type(self, subject: str) -> str:
        latest = registry.read_latest(self.registry, subject)
        return registry.read_type(latest) if isinstance(latest, dict) else latest

    def _list_tables(self) -> dict[str, dict[str, Any]]:
        """Return those of Tableflow's topics that the key sees, by name."""
        if self.tableflow is None:
            return {}
        try:
            listed = self.tableflow.pages(_TABLES, **self._build_query())
        except Denied:
            return {}
        return {get_text(table, "spec", "display_name"): table for table in listed}

    def _find_state(self, topic: str) -> str:
        """Return the state of Tableflow for a topic that its list doesn't show: Confluent leaves out what the
        key's owner may not see, so OFF needs the answer about the topic itself.
        """
        if self.tableflow is None:
            return UNKNOWN
        try:
            table = self.tableflow.read(_TABLES + build_path(topic), **self._build_query())
        except (Denied, InProgress):
            return UNKNOWN
        return OFF if table is None else _describe_table(table)

    def _build_query(self) -> dict[str, str]:
        return {"environment": self.environment_id, "spec.kafka_cluster": self.id}

    def _build_route(self) -> str:
        return build_path("kafka", "v3", "clusters", self.id, "topics")


def open_cluster(ctx: DeploymentContext) -> Cluster:
    """Return the cluster that the deployment file names. Raises CommandFailed, LakeferryError."""
    confluent = ctx.deployment.confluent
    if confluent is None or not confluent.cluster_id or not confluent.environment_id:
        raise CommandFailed("NO-CLUSTER", f"the file of stage {ctx.stage} names no existing cluster")
    vendor = ctx.confluent()
    environment_id = confluent.environment_id
    return Cluster(
        id=confluent.cluster_id,
        kafka=_open_kafka(ctx, vendor, environment_id, confluent.cluster_id),
        registry=open_environment_registry(ctx, vendor, environment_id),
        tableflow=_open_tableflow(ctx, vendor),
        environment_id=environment_id,
    )


def _open_kafka(
    ctx: DeploymentContext, vendor: Confluent, environment_id: str, cluster_id: str
) -> RestClient:
    secret = ctx.confluent_secret(MANAGERS_KAFKA_KEY)
    try:
        key = ctx.secrets.read_key(secret)
    except NotFound as missing:
        hint = (
            "Only a Kafka key can list topics. Store one that may describe them in a secret "
            '({"apiKey": …, "apiSecret": …}), and name it in confluent.kafka_key_secret'
        )
        raise CommandFailed("NO-KAFKA-KEY", missing.what, hint) from None
    try:
        return vendor.kafka(environment_id, cluster_id, key)
    except ParentMissing:
        message = f"Kafka cluster {cluster_id} does not exist in environment {environment_id}"
        raise Refused(confluent_errors.NO_CLUSTER, message) from None


def open_environment_registry(
    ctx: DeploymentContext, vendor: Confluent, environment_id: str
) -> RestClient | None:
    """Return a client of the environment's registry, None if there is no key yet. Raises LakeferryError."""
    try:
        key = ctx.secrets.read_key(ctx.confluent_secret("schema_registry"))
    except NotFound:
        return None
    return vendor.registry(environment_id, key)


def _open_tableflow(ctx: DeploymentContext, vendor: Confluent) -> RestClient | None:
    try:
        return vendor.tableflow(ctx.secrets.read_key(ctx.confluent_secret("tableflow")))
    except NotFound:
        return None


def _describe_table(table: dict[str, Any]) -> str:
    bucket = get_text(table, "spec", "storage", "bucket_name")
    place = f"into bucket {bucket}" if bucket else "into Confluent's storage"
    return f"{get_text(table, 'status', 'phase')} {place}"


def _explain_needs(value_schema: str, state: str, policy: str, *, is_in_file: bool) -> str:
    if is_in_file:
        return "nothing: it is in the file"
    if value_schema == NONE:
        return "a schema: its producer has to register one for the values"
    if value_schema not in (AVRO, UNKNOWN):
        return f"an Avro schema in project/topics/: the registry has {value_schema}"
    if state not in (OFF, UNKNOWN):
        return "a deployment file with [source]: it has Tableflow already"
    needs = "existing = true, and [topics.tableflow]"
    if policy == UNKNOWN:
        needs += "; with write_mode, if the topic is compacted"
    elif choose_write_mode(policy) == "UPSERT":
        needs += ' with write_mode = "UPSERT"'
    return needs
