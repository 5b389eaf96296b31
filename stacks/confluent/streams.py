"""Topics, their schemas, connectors that fill them, and Flink's statements."""

from __future__ import annotations

import json

from constructs import Construct, IDependable

from config.deployments.confluent_model import Statement, Topic
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.in_place_edits import find_in_place_edit
from config.deployments.model import to_pascal_case
from lambdas.confluent.flink_properties import FlinkStatementOutputs, FlinkStatementProps
from lambdas.confluent.properties import (
    ConnectorOutputs,
    ConnectorProps,
    SchemaProps,
    TopicProps,
)
from stacks.confluent.access import Accounts, Keys, Pool
from stacks.confluent.rights import (
    CONNECTOR,
    FLINK,
    FLINK_KEY,
    KAFKA,
    MANAGER,
    REGISTRY,
    SCHEMA_REGISTRY,
    list_acls,
    list_topics_of_acl,
)
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.topic import Topic as KafkaTopic
from stacks.constructs.vendor import VendorResource


class Streams(Construct):
    """Topics and what writes them. `topics` has them by name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        loaded: LoadedDeployment,
        cluster: KafkaCluster,
        accounts: Accounts,
        keys: Keys,
        pool: Pool | None,
    ) -> None:
        super().__init__(scope, id)
        self._loaded = loaded
        self._provider = cluster.provider
        self._cluster = cluster
        self._accounts = accounts
        self._keys = keys
        topics = loaded.deployment.topics
        self.topics: dict[str, KafkaTopic] = {}
        for topic in topics:
            if not topic.statement:
                provide = self._look_up_topic if topic.existing else self._create_topic
                self.topics[topic.name] = provide(topic)
        self._create_acls()
        for topic in topics:
            if topic.datagen:
                ready = self.topics[topic.name].ready
                ready.append(self._create_connector(topic).after(*ready))
        sources: list[IDependable] = []
        for source in self.topics.values():
            sources += source.ready
        statements: dict[str, VendorResource[FlinkStatementOutputs]] = {}
        for statement in loaded.deployment.statements:
            assert pool is not None
            before = [*sources, *[statements[name] for name in statement.after]]
            statements[statement.name] = self._create_statement(statement, pool).after(*before)
        for topic in topics:
            if topic.statement:
                written = self._name_topic(topic)
                written.ready.append(statements[topic.statement])
                self.topics[topic.name] = written

    def _name_topic(self, topic: Topic) -> KafkaTopic:
        return KafkaTopic(
            self,
            f"{to_pascal_case(topic.name)}Topic",
            cluster=self._cluster,
            name=topic.name,
            owner=self._keys,
        )

    def _look_up_topic(self, topic: Topic) -> KafkaTopic:
        """Look up a topic that somebody else owns, and its schema if it becomes a table."""
        return KafkaTopic.from_name(
            self,
            f"{to_pascal_case(topic.name)}Topic",
            cluster=self._cluster,
            name=topic.name,
            owner=self._keys,
            write_mode=topic.tableflow.write_mode if topic.tableflow else "",
        )

    def _create_topic(self, topic: Topic) -> KafkaTopic:
        """Create the topic and, if no connector registers it, its schema."""
        named = self._name_topic(topic)
        created = self._provider.create(
            named,
            "Resource",
            TopicProps(
                environment_id=self._cluster.environment_id,
                cluster_id=self._cluster.id,
                credentials=self._keys.credentials(KAFKA),
                topic=topic.name,
                partitions=topic.new_partitions,
                config=topic.config,
                adopt="topic" in topic.adopt,
                shared_cluster=self._cluster.is_shared,
            ),
        ).after(*self._accounts.rights[MANAGER])
        named.ready.append(created)
        keeps = self._loaded.deployment.keeps_data
        if keeps:
            created.keep()
        text = self._loaded.sources.schema_text(topic)
        if topic.datagen or not text:
            return named
        schema = self._provider.create(
            self,
            f"{to_pascal_case(topic.name)}Schema",
            SchemaProps(
                environment_id=self._cluster.environment_id,
                credentials=self._keys.credentials(SCHEMA_REGISTRY),
                subject=f"{topic.name}-value",
                schema=_compact_schema(text),
                delete_permanently=not keeps,
                # In the deployment's own environment, an existing subject is one that Datagen registered for
                # the topic.
                adopt=self._loaded.deployment.created_confluent.environment_id is None
                or "subject" in topic.adopt,
            ),
        ).after(*self._accounts.rights[REGISTRY])
        if keeps:
            schema.keep()
        named.ready.append(schema)
        return named

    def _create_acls(self) -> None:
        for acl in list_acls(self._loaded.deployment):
            if acl.account not in self._accounts:
                continue
            topics = [] if acl.name else list_topics_of_acl(acl, self._loaded.deployment.topics)
            if acl.name or topics:
                self._accounts.add_acl(acl, credentials=self._keys.credentials(KAFKA), topics=topics)

    def _create_connector(self, topic: Topic) -> VendorResource[ConnectorOutputs]:
        schema = json.loads(self._loaded.sources.schema_text(topic) or "{}")
        has_own_schema = topic.datagen == "schema"
        return self._provider.create(
            self,
            f"{to_pascal_case(topic.name)}Connector",
            ConnectorProps(
                environment_id=self._cluster.environment_id,
                cluster_id=self._cluster.id,
                service_account_id=self._accounts[CONNECTOR].id,
                topic=topic.name,
                max_interval_ms=topic.datagen_interval_ms,
                quickstart="" if has_own_schema else topic.datagen or "",
                schema=json.dumps(schema, separators=(",", ":")) if has_own_schema else "",
                schema_key_field=schema.get("lakeferry:key") or "" if has_own_schema else "",
            ),
        ).after(*self._accounts.rights[CONNECTOR], self._cluster.resource)

    def _create_statement(self, statement: Statement, pool: Pool) -> VendorResource[FlinkStatementOutputs]:
        name = statement.name
        text = self._loaded.sources.statement(name)
        deployment = self._loaded.deployment
        table = bool(text.table)
        in_place = find_in_place_edit(text)
        adopted = any("topic" in topic.adopt for topic in deployment.topics if topic.statement == name)
        return self._provider.create(
            self,
            f"{to_pascal_case(name)}Statement",
            FlinkStatementProps(
                environment_id=self._cluster.environment_id,
                region=deployment.aws.region,
                credentials=self._keys.credentials(FLINK_KEY),
                compute_pool_id=pool.outputs.id,
                service_account_id=self._accounts[FLINK].id if FLINK in self._accounts else "",
                catalog=self._cluster.environment.name,
                database=self._cluster.resource.outputs.name,
                sql=text.create,
                undo_sql=text.undo,
                properties=text.properties,
                insert_sql=in_place.insert if in_place else "",
                head=in_place.head if in_place else "",
                columns=[*in_place.columns] if in_place else [],
                reads=[*in_place.reads] if in_place else [],
                drop_on_edit=statement.on_edit == "drop_and_reread",
                tableflow_topics=[topic.name for topic in deployment.tables if topic.statement == name],
                topic=text.table,
                cluster_id=self._cluster.id if table else "",
                topic_credentials=self._keys.credentials(KAFKA) if table else "",
                subject_credentials=self._keys.credentials(SCHEMA_REGISTRY) if table else "",
                keep_table=table and deployment.keeps_data,
                adopt=table and adopted,
                shared_cluster=deployment.uses_existing_cluster,
            ),
        ).after(
            *self._accounts.rights[FLINK], *self._accounts.rights[MANAGER], *self._accounts.rights[REGISTRY]
        )


def _compact_schema(schema: str) -> str:
    """Return the schema without blanks, because the size of a template is limited."""
    return json.dumps(json.loads(schema), separators=(",", ":"), ensure_ascii=False)
