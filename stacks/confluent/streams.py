"""Topics, their schemas, connectors that fill them, and Flink's statements."""

from __future__ import annotations

import json
from typing import Any

import attrs

from deployments.check import Plan
from deployments.model import Topic
from lambdas import contract
from lambdas.confluent.properties import ConnectorProps, FlinkStatementProps, SchemaProps, TopicProps
from stacks.base import words
from stacks.confluent.access import FLINK, Accounts, Keys, Place, topics_of
from stacks.constructs.vendor_resources import Made, VendorResources

CONNECTOR = "app_connector"


@attrs.frozen
class Streams:
    """By topic, what has to be there before the topic can be read as a stream."""

    ready: dict[str, list[Made]]

    @classmethod
    def make(cls, resources: VendorResources, plan: Plan, *, where: Place, accounts: Accounts, keys: Keys, pool: Made) -> Streams:
        streams = cls({})
        maker = _Maker(resources, plan, where, accounts, keys)
        topics = plan.deployment.topics
        for topic in (one for one in topics if not one.statement):
            streams.ready[topic.name] = maker.topic(topic)
        maker.entries()
        for topic in (one for one in topics if one.datagen):
            streams.ready[topic.name].append(maker.connector(topic).after(*streams.ready[topic.name]))
        sources = [made for ready in streams.ready.values() for made in ready]
        statements: dict[str, Made] = {}
        for statement in plan.deployment.statements:
            before = [*sources, *[statements[name] for name in statement.after]]
            statements[statement.name] = maker.statement(statement.name, pool).after(*before)
        for topic in (one for one in topics if one.statement):
            streams.ready[topic.name] = [statements[topic.statement or ""]]
        return streams


@attrs.frozen
class _Maker:
    resources: VendorResources
    plan: Plan
    where: Place
    accounts: Accounts
    keys: Keys

    def topic(self, topic: Topic) -> list[Made]:
        """The topic and, where no connector registers it, its schema."""
        made = self.resources.make(
            TopicProps,
            f"{words(topic.name)}Topic",
            **self.where.ids,
            credentials=self.keys.kafka["secret"],
            topic=topic.name,
            partitions=topic.partitions,
            config=topic.config or None,
        ).after(*self.accounts.bound["app_manager"])
        text = self.plan.sources.schema_text(topic)
        if topic.datagen or not text:
            return [made]
        schema = self.resources.make(
            SchemaProps,
            f"{words(topic.name)}Schema",
            environment_id=self.where.environment_id,
            credentials=self.keys.schema_registry["secret"],
            subject=f"{topic.name}-value",
            schema=_compact(text),
            delete_permanently=None if self.plan.deployment.keeps_data else True,
        ).after(*self.accounts.bound["schema_registry"])
        return [made, schema]

    def entries(self) -> None:
        topics = self.plan.deployment.topics
        manager = list(self.accounts.bound["app_manager"])
        for acl in contract.ACLS:
            named = [] if acl.name else topics_of(acl, topics)
            if acl.name or named:
                self.accounts.enter(self.resources, acl, self.where, self.keys.kafka["secret"], named).after(*manager)

    def connector(self, topic: Topic) -> Made:
        schema = json.loads(self.plan.sources.schema_text(topic) or "{}")
        own: dict[str, Any] = {"quickstart": topic.datagen}
        if topic.datagen == "schema":
            own = {"schema": json.dumps(schema, separators=(",", ":")), "schema_key_field": schema.get("lakeferry:key")}
        return self.resources.make(
            ConnectorProps,
            f"{words(topic.name)}Connector",
            **self.where.ids,
            service_account_id=self.accounts.id(CONNECTOR),
            topic=topic.name,
            max_interval_ms=topic.datagen_interval_ms,
            **own,
        ).after(*self.accounts.bound[CONNECTOR], self.where.cluster)

    def statement(self, name: str, pool: Made) -> Made:
        text = self.plan.sources.statement(name)
        return self.resources.make(
            FlinkStatementProps,
            f"{words(name)}Statement",
            environment_id=self.where.environment_id,
            region=self.plan.deployment.aws.region,
            credentials=self.keys.flink["secret"],
            compute_pool_id=pool["id"],
            service_account_id=self.accounts.id(FLINK),
            catalog=self.where.environment_name,
            database=self.where.cluster["name"],
            sql=text.create,
            undo_sql=text.undo,
            properties=text.properties or None,
            tableflow_topics=[topic.name for topic in self.plan.deployment.tables if topic.statement == name] or None,
        ).after(*self.accounts.bound[FLINK])


def _compact(schema: str) -> str:
    """Without blanks, which count against the size of a template."""
    return json.dumps(json.loads(schema), separators=(",", ":"), ensure_ascii=False)
