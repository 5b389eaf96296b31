"""Kafka topics, and their Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from aws_cdk import Fn
from constructs import Construct, IDependable

from config.deployments import validation
from config.deployments.confluent_model import Tableflow
from config.deployments.shared_rules import find_format_problem
from config.forms import name_table
from lambdas.confluent.existing_properties import ExistingTopicProps
from lambdas.confluent.properties import TableflowTopicOutputs, TableflowTopicProps
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.runtime import BadProps, list_setting_problems, refuse
from stacks.constructs.service_account import TopicOwner
from stacks.constructs.table import Table
from stacks.constructs.table_storage import TableStorage
from stacks.constructs.vendor import VendorResource

_DAY_MS: Final = 86_400_000
_TABLE: Final = "Table"


class Topic(Construct):
    """A topic of a Kafka cluster. `ready` has the resources that must exist before it can be read.

    `from_name` looks one up that exists, which is never changed. A cluster's topic has one object: two would
    look it up, or turn on Tableflow, twice.
    """

    def __init__(
        self, scope: Construct, id: str, *, cluster: KafkaCluster, name: str, owner: TopicOwner
    ) -> None:
        super().__init__(scope, id)
        if problem := validation.topic_name(name):
            raise BadProps(f"{self.node.path}: name: {problem}")
        if first := cluster.topics.get(name):
            raise BadProps(
                f"{self.node.path}: name: topic {name} of the cluster is {first.node.path} already. Use "
                "that one"
            )
        cluster.topics[name] = self
        self.cluster = cluster
        self.name = name
        #: The mode in which Tableflow writes it, "" if it becomes no table, None if nobody says it.
        self.write_mode: str | None = None
        self.ready: list[IDependable] = []
        self._owner = owner

    @classmethod
    def from_name(
        cls,
        scope: Construct,
        id: str,
        *,
        cluster: KafkaCluster,
        name: str,
        owner: TopicOwner,
        write_mode: str = "APPEND",
    ) -> Topic:
        """Look up a topic, and its schema if it becomes a table. The deployment fails unless they exist and
        Tableflow writes the topic in `write_mode`, which follows from its cleanup.policy. With "", the topic
        becomes no table.
        """
        refuse(list_setting_problems(Tableflow, {"write_mode": write_mode or None}))
        topic = cls(scope, id, cluster=cluster, name=name, owner=owner)
        topic.write_mode = write_mode
        access = owner.get_access(name, becomes_table=bool(write_mode))
        props = ExistingTopicProps(
            environment_id=cluster.environment_id,
            cluster_id=cluster.id,
            credentials=access.kafka,
            topic=name,
            write_mode=write_mode,
            registry_credentials=access.registry,
        )
        topic.ready.append(cluster.provider.create(topic, "Resource", props).after(*access.after))
        return topic

    def tableflow(
        self, storage: TableStorage, *, settings: Tableflow | None = None, adopt: bool = False
    ) -> Table:
        """Turn on Tableflow: the topic's records become the rows of an Iceberg table in `storage`.

        `settings` are those of the deployment file's [topics.tableflow]. With `adopt`, a table that this app
        turned on at an earlier time, for example because somebody deleted its stack by hand, is taken over.
        """
        settings = settings or Tableflow(write_mode="UPSERT" if self.write_mode == "UPSERT" else "APPEND")
        refuse([*self._list_misfits(storage, settings), *self._list_taken()], self.node.path)
        created = self.turn_on_tableflow(
            storage,
            settings=settings,
            adopt=adopt,
            after=self._owner.get_access(self.name, becomes_table=True).after,
        )
        storage.let_drop(created, name_table(self.name))
        return Table(
            self.name,
            name_table(self.name),
            storage.in_glue,
            path=Fn.select(1, Fn.split("s3://", created.outputs.table_path)),
            resource=created,
            settings=settings,
            lake_formation=self.cluster.provider.runtime.lake_formation,
        )

    def _list_taken(self) -> Iterator[str]:
        """Yield why the cluster can't have this table too."""
        for name, topic in self.cluster.topics.items():
            if name_table(name) == name_table(self.name) and topic.node.try_find_child(_TABLE):
                yield (
                    f"{topic.node.path} turned on Tableflow for topic {name} already, and its table is "
                    f"{name_table(name)}: names in Glue are in lower case. Use that table"
                )

    def _list_misfits(self, storage: TableStorage, settings: Tableflow) -> Iterator[str]:
        """Yield what Tableflow or the owner of the cluster would not accept."""
        wrong = list_setting_problems(Tableflow, attrs.asdict(settings, recurse=False), "settings.")
        yield from wrong
        if wrong:
            return
        if storage.account is not self._owner:
            yield "`storage` is that of another account, which can't write this topic's table"
        if self.write_mode == "":
            yield 'Topic.from_name has write_mode="", which means that there is no table: leave it out there'
        elif self.write_mode not in (None, settings.write_mode):
            yield (
                f"settings.write_mode is {settings.write_mode}, and that of Topic.from_name "
                f"{self.write_mode}: write the one that follows from the topic's cleanup.policy to both"
            )
        if problem := find_format_problem(settings):
            yield f"settings.formats {problem}"
        if settings.is_managed:
            yield "settings.storage is managed, and `storage` is a bucket: leave out settings.storage"
        if settings.shown_in_glue is False:
            yield (
                "settings.shown_in_glue is False, but the cluster's integration shows every table in your "
                "bucket: leave it out"
            )
        if settings.snowflake_table:
            yield "settings.snowflake_table is for a deployment file with [snowflake]: leave it out"
        own_log = settings.error_log_topic != Tableflow().error_log_topic
        if settings.on_error == "LOG" and self.cluster.is_shared and not own_log:
            yield (
                f"settings.error_log_topic is {settings.error_log_topic}, to which Tableflow writes the "
                "records of all teams of the cluster: choose a name of your own"
            )

    def turn_on_tableflow(
        self,
        storage: TableStorage | None,
        *,
        settings: Tableflow,
        id: str = _TABLE,
        adopt: bool = False,
        after: Sequence[IDependable] = (),
    ) -> VendorResource[TableflowTopicOutputs]:
        """Turn on Tableflow, with Confluent's own storage if `storage` is None. With `adopt`, a table that
        exists is taken over.
        """
        cluster = self.cluster
        props = TableflowTopicProps(
            environment_id=cluster.environment_id,
            cluster_id=cluster.id,
            credentials=self._owner.get_access(self.name, becomes_table=True).tableflow,
            topic=self.name,
            storage=settings.storage,
            bucket=storage.bucket.name if storage else "",
            provider_integration_id=storage.integration_id if storage else "",
            table_formats=list(settings.formats),
            retention_ms=settings.snapshots_days * _DAY_MS,
            data_retention_ms=settings.rows_days * _DAY_MS if settings.rows_days else None,
            error_handling=settings.on_error,
            error_log_topic=settings.error_log_topic,
            metadata_columns=settings.metadata_columns,
            await_catalog=settings.in_glue,
            adopt=adopt,
            shared_cluster=cluster.is_shared,
        )
        if storage:
            storage.tables.append(name_table(self.name))
        before = [*(storage.ready if storage else ()), *self.ready, *after]
        return cluster.provider.create(self, id, props).after(*before)
