"""Rules about topics, their schemas, their tables and the Flink statements that write them.

They are rules like those of rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.shared_rules import find_format_problem
from config.deployments.sources import Missing, Sources

Finding = tuple[str, str]


def topics_have_one_writer(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """A topic is written by a statement, by Datagen or by your own producers. A statement creates one topic,
    with the name and the settings in its create.sql.
    """
    statement_names = {statement.name for statement in deployment.statements}
    topics_by_statement: dict[str, str] = {}
    for index, topic in enumerate(deployment.topics):
        if topic.statement is None:
            continue
        if topic.statement not in statement_names:
            yield f"topics[{index}].statement", f"{topic.statement} is not a statement of this file"
        elif topic.statement in topics_by_statement:
            first_topic = topics_by_statement[topic.statement]
            yield (
                f"topics[{index}].statement",
                f"{topic.statement} is the statement of topic {first_topic} already, and it creates one "
                "topic",
            )
        elif (table := _read_table(topic.statement, sources)) not in ("", topic.name):
            yield (
                f"topics[{index}].name",
                f"{topic.name} must be {table}, the table that project/flink/{topic.statement}/create.sql "
                "creates",
            )
        topics_by_statement.setdefault(topic.statement, topic.name)
        if topic.datagen:
            yield (
                f"topics[{index}].datagen",
                f"{topic.name} is written by statement {topic.statement}; only one can write it",
            )
        if topic.config:
            yield (
                f"topics[{index}].config",
                f"statement {topic.statement} creates {topic.name}; set this in its create.sql",
            )


def statements_exist(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`project/flink/<name>/` has create.sql and undo.sql, and `after` names statements above this one."""
    statement_names = [statement.name for statement in deployment.statements]
    for index, statement in enumerate(deployment.statements):
        try:
            sources.statement(statement.name)
        except Missing as missing:
            yield f"statements[{index}].name", str(missing)
        for name in statement.after:
            if name not in statement_names[:index]:
                yield f"statements[{index}].after", f"{name} is not a statement above this one"


def schemas_exist(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """The schema file exists and holds an Avro record. A topic with `[topics.tableflow]` has a schema, or
    Datagen or a statement that registers one, or exists and has one in Schema Registry.
    """
    for index, topic in enumerate(deployment.topics):
        key = f"topics[{index}]"
        try:
            schema = sources.schema(topic)
        except Missing as missing:
            yield f"{key}.schema", str(missing)
            continue
        if schema is None and topic.datagen == "schema":
            yield (
                f"{key}.datagen",
                f"data is made from the topic's schema, and project/topics/{topic.name}.avsc doesn't exist",
            )
        elif schema is None and topic.tableflow and not (topic.existing or topic.datagen or topic.statement):
            yield (
                f"{key}.tableflow",
                f"{topic.name} has no schema, and Tableflow refuses such a topic. "
                f"Add project/topics/{topic.name}.avsc, or datagen",
            )


def write_modes_match_cleanup_policies(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`write_mode` is APPEND for cleanup.policy `delete`, UPSERT for `compact`. A statement's changelog has
    no retractions. That of an existing topic is compared with the topic itself when it is deployed.
    """
    for index, topic in enumerate(deployment.topics):
        if topic.tableflow is None or topic.existing:
            continue
        key = f"topics[{index}].tableflow.write_mode"
        options = _read_options(topic, sources)
        if options.get("changelog.mode") == "retract":
            yield (
                key,
                f"statement {topic.statement} writes a changelog of retractions, which Tableflow refuses",
            )
            continue
        if topic.statement:
            policy = options.get("kafka.cleanup-policy", "delete")
        else:
            policy = topic.config.get("cleanup.policy", "delete")
        mode = "UPSERT" if "compact" in policy or options.get("changelog.mode") == "upsert" else "APPEND"
        if mode != topic.tableflow.write_mode:
            yield (
                key,
                f"can't be {topic.tableflow.write_mode}: with cleanup.policy={policy} Tableflow writes in "
                f"mode {mode}",
            )


def storage_is_readable(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Tables in managed storage aren't in Glue; of those in your bucket, all are, or none. `formats` has no
    DELTA.
    """
    for index, topic in enumerate(deployment.topics):
        if (table := topic.tableflow) is None:
            continue
        if table.is_managed and table.shown_in_glue:
            yield (
                f"topics[{index}].tableflow.in_glue",
                "can't be true: Tableflow registers no table of managed storage in Glue. Remove it, or use "
                'storage = "own_bucket"',
            )
        if problem := find_format_problem(table):
            yield f"topics[{index}].tableflow.formats", problem
        glue_tables = [topic.name for topic in deployment.tables_in_glue]
        if table.shown_in_glue is False and not table.is_managed and glue_tables:
            yield (
                f"topics[{index}].tableflow.in_glue",
                f"can't be false while {glue_tables[0]} is in Glue: Tableflow's catalog integration is the "
                "whole cluster's, and shows every table in your bucket. Set it to false for all topics, or "
                "leave it out",
            )


def _read_table(statement: str, sources: Sources) -> str:
    try:
        return sources.statement(statement).table
    except Missing:
        return ""


def _read_options(topic: Topic, sources: Sources) -> dict[str, str]:
    """Return the table options of the statement that creates the topic; none if there is no statement, or no
    file of it.
    """
    try:
        return sources.statement(topic.statement).options if topic.statement else {}
    except Missing:
        return {}
