"""The personal fields that Flink statements copy from topic to topic."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from config.deployments import lineage
from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.sources import Missing, Sources, StatementText
from config.exports.avro_schema import BadSchema, Type
from config.exports.personal import Finding
from config.exports.topic_schema import Field, TopicSchema
from config.exports.topic_schema import load as load_schema

_COMMENT: Final = re.compile(r"--[^\n]*|/\*(?:(?!\*/).)*\*/", re.DOTALL)
#: The names of tables that any part of a statement fills or creates: `table`, or catalog.database.table.
_FILLED: Final = re.compile(
    r"\b(?:INTO|OVERWRITE|(?:CREATE|REPLACE)\s+(?:\w+\s+){0,3}?TABLE)\s+(?:TABLE\s+)?(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?:(?:`[^`]+`|\w+)\s*\.\s*){0,2}(?:`([^`]+)`|(\w+))",
    re.IGNORECASE,
)


def with_origins(schema: TopicSchema, sources: Sources, deployment: Deployment | None = None) -> TopicSchema:
    """Return the schema of a topic with the fields that Flink statements compute from personal fields of
    other topics.

    The statements are those of the deployment or, without one, all in the folder project/flink/.
    """
    if deployment is None:
        files = sorted((sources.root / "flink").glob("*/create.sql"))
        names = [file.parent.name for file in files]
        topics: dict[str, Topic] = {}
    else:
        names = [statement.name for statement in deployment.statements]
        topics = {topic.name: topic for topic in deployment.topics}
    return FlinkOrigins(sources, topics, _read_statements(sources, names)).add_to(schema)


def _read_statements(sources: Sources, names: Iterable[str]) -> dict[str, StatementText]:
    """Return the statements whose files can be used. A rule of deployment files reports the others."""
    statements = {}
    for name in names:
        try:
            statements[name] = sources.statement(name)
        except Missing:
            continue
    return statements


def _may_fill(text: StatementText, topic: str) -> bool:
    """Return whether a statement fills the topic without a plain CREATE TABLE, as one of a statement set
    does.
    """
    if topic == text.inserts_into:
        return True
    if topic == text.table:
        return False
    create = _COMMENT.sub(" ", text.create)
    filled = {quoted or plain for quoted, plain in _FILLED.findall(create)}
    return topic in filled


@attrs.frozen
class FlinkOrigins:
    """`topics` have a schema file of their own; the file of others is project/topics/<name>.avsc."""

    sources: Sources
    topics: Mapping[str, Topic]
    statements: Mapping[str, StatementText]

    def add_to(self, schema: TopicSchema, above: tuple[str, ...] = ()) -> TopicSchema:
        """Return the schema with `copied`. `above` are topics that are computed from this one."""
        above = (*above, schema.topic)
        copied: dict[str, Finding] = {}
        for name, text in self._find_writers(schema.topic).items():
            file = f"project/flink/{name}/create.sql"
            try:
                columns = self._trace_columns(text, above)
            except lineage.Unknown as unknown:
                why = f"{file} doesn't show which fields it comes from: {unknown}"
                copied |= {path: Finding(why) for path in schema.fields}
                continue
            find_source = functools.partial(self._find_source, above=above)
            copied |= lineage.find_copied_fields(schema, columns, find_source, file)
        return attrs.evolve(schema, copied=copied)

    def _find_writers(self, topic: str) -> dict[str, StatementText]:
        """Return the statements that write the topic.

        One that only creates a table doesn't, if another inserts into it.
        """
        inserting = {name: text for name, text in self.statements.items() if _may_fill(text, topic)}
        creating = {name: text for name, text in self.statements.items() if text.table == topic}
        return inserting | {
            name: text for name, text in creating.items() if not inserting or lineage.has_query(text.create)
        }

    def _trace_columns(self, text: StatementText, above: tuple[str, ...]) -> dict[str, lineage.Origin]:
        """Return the origins of a statement's columns. Raises Unknown."""

        def columns(topic: str) -> list[str] | None:
            source = self._find_source(topic, above)
            if source is None:
                return None
            return [path for path in source.fields if not re.search(r"[.\[{]", path)]

        return lineage.find_origins(text.create, columns)

    def _find_source(self, topic: str, above: tuple[str, ...]) -> TopicSchema | None:
        """Return the schema of a topic that a statement reads, None if no file and no statement shows it."""
        if topic in above:
            return None
        try:
            file = self.sources.schema_file(self.topics[topic]) if topic in self.topics else None
            file = file or self.sources.root / "topics" / f"{topic}.avsc"
            schema = load_schema(file, topic) if file.is_file() else self._derive_schema(topic, above)
            return self.add_to(schema, above)
        except (BadSchema, Missing, lineage.Unknown):
            return None

    def _derive_schema(self, topic: str, above: tuple[str, ...]) -> TopicSchema:
        """Return what the statements that write a topic without a schema file show of its schema. Raises
        Unknown.

        The types are unknown. Most words in names of fields speak of texts, so all fields count as texts.
        """
        writers = self._find_writers(topic)
        if not writers:
            raise lineage.Unknown(f"no file has the schema of {topic}")
        names: list[str] = []
        for text in writers.values():
            names += self._trace_columns(text, (*above, topic))
        fields = {name: Field(name, "string", tagged=False) for name in names}
        return TopicSchema(topic, Type("record"), fields)
