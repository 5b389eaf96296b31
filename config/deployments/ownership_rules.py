"""Rules that keep a deployment from deleting what it didn't create. They are rules like those of rules.py."""

from __future__ import annotations

from collections.abc import Iterator

from config.deployments.model import Deployment
from config.deployments.sources import Missing, Sources

Finding = tuple[str, str]


def statements_undo_only_their_table(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """undo.sql drops only the table that create.sql creates. In an existing environment, that table is a
    topic of the file.

    DROP TABLE deletes the topic, its records and its subjects.
    """
    for index, statement in enumerate(deployment.statements):
        try:
            text = sources.statement(statement.name)
        except Missing:
            continue
        for table in text.dropped:
            if table != text.table:
                yield (
                    f"statements[{index}].name",
                    f"project/flink/{statement.name}/undo.sql drops {table}, and create.sql "
                    + (
                        f"creates {text.table}. Drop that"
                        if text.table
                        else "has no CREATE TABLE that can be read. Leave undo.sql empty"
                    ),
                )
        if (
            text.table
            and deployment.confluent
            and deployment.confluent.environment_id
            and (text.table, statement.name)
            not in {(topic.name, topic.statement) for topic in deployment.topics}
        ):
            yield (
                f"statements[{index}].name",
                f"{statement.name} creates {text.table}, and no topic of this file says so. Write "
                f'[[topics]] with the name {text.table} and statement = "{statement.name}", so that its '
                "subjects can be checked in the shared registry",
            )


def dropped_tables_have_no_readers(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """A statement with `on_edit = "drop_and_reread"` creates a topic without `[topics.tableflow]` that no
    other statement reads.
    """
    readers = {statement.name: statement.after for statement in deployment.statements}
    for index, statement in enumerate(deployment.statements):
        if statement.on_edit != "drop_and_reread":
            continue
        key = f"statements[{index}].on_edit"
        tables = [topic.name for topic in deployment.tables if topic.statement == statement.name]
        for name in tables:
            yield (
                key,
                f"drop_and_reread would drop {name}, which has [topics.tableflow], and Confluent refuses "
                "that. Remove on_edit: then an edit keeps the table",
            )
        for name, inputs in readers.items():
            if statement.name in inputs:
                yield (
                    key,
                    f"drop_and_reread would drop the table that statement {name} reads. Remove on_edit: then "
                    "an edit keeps the table",
                )


def adopted_objects_are_declared(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`adopt` names only what the deployment itself would create: no table of a topic without
    `[topics.tableflow]`, and no subject that a connector or a statement registers.
    """
    for index, topic in enumerate(deployment.topics):
        key = f"topics[{index}].adopt"
        if "tableflow" in topic.adopt and not topic.tableflow:
            yield (
                key,
                f"{topic.name} has no [topics.tableflow], so no table can be adopted. Remove tableflow "
                "from the list",
            )
        if "subject" in topic.adopt and (topic.datagen or topic.statement):
            writer = "a statement" if topic.statement else "a connector"
            yield (
                key,
                f"{writer} registers the schema of {topic.name}, not the deployment. Remove subject from "
                "the list",
            )
