"""Properties of a Flink statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from lambdas.confluent import flink_sql
from lambdas.confluent.properties import SHARED_CLUSTER
from lambdas.shared.properties import Properties, prop, properties


class FlinkStatementOutputs(NamedTuple):
    name: str
    phase: str


@properties
class FlinkStatementProps(Properties[FlinkStatementOutputs]):
    TYPE: ClassVar[str] = "flink_statement"
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ("environment_id", "region")

    environment_id: str = prop("The environment, env-….")
    region: str = prop("The AWS region.")
    credentials: str = prop("Name or ARN of the secret with a Flink key of that region.")
    compute_pool_id: str = prop("The compute pool that the statement runs in, lfcp-….")
    service_account_id: str = prop(
        "The account with which the statement reads and writes, sa-…. Without it, it is the key's owner.",
        default="",
    )
    catalog: str = prop("Flink's catalog: the name of the environment.")
    database: str = prop("Flink's database: the name of the Kafka cluster.")
    sql: str = prop("The statement.")
    undo_sql: str = prop(
        "The statement that undoes `sql`. It runs before the statement is deleted or replaced.", default=""
    )
    properties: dict[str, str] = prop("Further session properties of Flink.", default=dict)
    insert_sql: str = prop(
        "The statement that fills the same table with the query of `sql`, if the query is stateless. If "
        "`sql` changes, it goes on where the statement before it stopped.",
        default="",
    )
    head: str = prop(
        "The text of `sql` before its query, if `insert_sql` is set. It can't change in place.", default=""
    )
    columns: list[str] = prop(
        "The columns of the query, if `insert_sql` is set. They can't change in place.", default=list
    )
    reads: list[str] = prop(
        "The tables that the query reads, if `insert_sql` is set. They can't change in place.", default=list
    )
    drop_on_edit: bool = prop(
        "Whether a changed `sql` or changed `properties` drop the table: `undo_sql` runs, and the new "
        "statement reads its inputs again from the beginning.",
        default=False,
    )
    tableflow_topics: list[str] = prop(
        "Topics with Tableflow that the statement writes to. With `drop_on_edit`, its text can't change: "
        "that would drop the topics.",
        default=list,
    )
    topic: str = prop(
        "The topic that the statement creates, if it creates one. It and its subjects must not exist, and "
        "`undo_sql` runs only if the statement created them.",
        default="",
    )
    cluster_id: str = prop("The Kafka cluster of the topic, lkc-….", default="")
    topic_credentials: str = prop(
        "Name or ARN of the secret with a Kafka key that may read the topic.", default=""
    )
    subject_credentials: str = prop(
        "Name or ARN of the secret with a Schema Registry key that may read its subjects.", default=""
    )
    keep_table: bool = prop("Whether the table stays when the resource is deleted.", default=False)
    adopt: bool = prop(
        "Whether the table of a statement that exists already is the resource's own, after its state was "
        "lost.",
        default=False,
    )
    shared_cluster: bool = prop(SHARED_CLUSTER, default=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in ("sql", "undo_sql", "insert_sql"):
            if flink_sql.has_several_statements(getattr(self, name)):
                yield name, "contains several statements; each needs its own resource"
        for name in ("cluster_id", "topic_credentials", "subject_credentials"):
            if self.topic and not getattr(self, name):
                yield name, "must be set for a statement that creates a topic"
