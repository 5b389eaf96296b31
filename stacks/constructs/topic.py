"""Kafka topics, and their Iceberg tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Fn
from constructs import Construct, IDependable

from config.deployments import validation
from config.deployments.confluent_model import Tableflow
from config.forms import name_table
from lambdas.confluent.existing_properties import ExistingTopicProps
from lambdas.confluent.properties import TableflowTopicOutputs, TableflowTopicProps
from stacks.constructs.kafka import KafkaCluster
from stacks.constructs.runtime import BadProps
from stacks.constructs.service_account import TopicOwner
from stacks.constructs.table import Table
from stacks.constructs.table_storage import TableStorage
from stacks.constructs.vendor import VendorResource

_DAY_MS: Final = 86_400_000


class Topic(Construct):
    """A topic of a Kafka cluster. `ready` has the resources that must exist before it can be read.

    `from_name` looks one up that exists, which is never changed.
    """

    def __init__(
        self, scope: Construct, id: str, *, cluster: KafkaCluster, name: str, owner: TopicOwner
    ) -> None:
        super().__init__(scope, id)
        if problem := validation.topic_name(name):
            raise BadProps(f"name: {problem}")
        self.cluster = cluster
        self.name = name
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
        topic = cls(scope, id, cluster=cluster, name=name, owner=owner)
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

    def tableflow(self, storage: TableStorage, *, settings: Tableflow | None = None) -> Table:
        """Turn on Tableflow: the topic's records become the rows of an Iceberg table in `storage`.

        `settings` are those of the deployment file's [topics.tableflow].
        """
        settings = settings or Tableflow()
        self._require_fitting(storage, settings)
        created = self.turn_on_tableflow(storage, settings=settings)
        path = Fn.select(1, Fn.split(f"s3://{storage.bucket.name}/", created.outputs.table_path))
        return Table(self.name, name_table(self.name), storage.in_glue, path=path, resource=created)

    def _require_fitting(self, storage: TableStorage, settings: Tableflow) -> None:
        """Raise BadProps with all that Tableflow or the owner of the cluster would not accept."""
        problems = []
        if storage.account is not self._owner:
            problems.append("`storage` is that of another account, which can't write this topic's table")
        if settings.is_managed:
            problems.append(
                "settings.storage is managed, and `storage` is a bucket: leave out settings.storage"
            )
        own_log = settings.error_log_topic != Tableflow().error_log_topic
        if settings.on_error == "LOG" and self.cluster.is_shared and not own_log:
            problems.append(
                f"settings.error_log_topic is {settings.error_log_topic}, to which Tableflow writes the "
                "records of all teams of the cluster: choose a name of your own"
            )
        if problems:
            raise BadProps(f"{self.node.path}: {'; '.join(problems)}")

    def turn_on_tableflow(
        self,
        storage: TableStorage | None,
        *,
        settings: Tableflow,
        id: str = "Table",
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
