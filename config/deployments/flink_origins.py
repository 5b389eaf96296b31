"""The schemas of topics that Flink statements write: their columns with types, and the personal fields that
the statements copy from topic to topic.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from config.deployments import column_types, lineage
from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.sources import Missing, Sources, StatementText, remove_comments
from config.exports.avro_schema import BadSchema, Type
from config.exports.avro_schema import Field as NamedType
from config.exports.personal import Finding, add_findings
from config.exports.topic_schema import Field, TopicSchema, from_type
from config.exports.topic_schema import load as load_schema

#: The names of tables that any part of a statement fills or creates: `table`, or catalog.database.table.
_FILLED: Final = re.compile(
    r"\b(?:INTO|OVERWRITE|(?:CREATE|REPLACE)\s+(?:\w+\s+){0,3}?TABLE)\s+(?:TABLE\s+)?(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?:(?:`[^`]+`|\w+)\s*\.\s*){0,2}(?:`([^`]+)`|(\w+))",
    re.IGNORECASE,
)
#: What gives a table key columns, which the record's value may lack.
_KEY_COLUMNS: Final = re.compile(r"\b(?:DISTRIBUTED\s+BY|PRIMARY\s+KEY)\b", re.IGNORECASE)


def with_origins(schema: TopicSchema, sources: Sources, deployment: Deployment | None = None) -> TopicSchema:
    """Return the schema of a topic with the fields that Flink statements compute from personal fields of
    other topics.

    The statements are those of the deployment or, without one, all in the folder project/flink/.
    """
    return _open_origins(sources, deployment).add_to(schema)


def derive_schema(topic: str, sources: Sources, deployment: Deployment | None = None) -> TopicSchema:
    """Return the schema that Flink will register for the values of a topic that a statement creates, with the
    fields that are personal because of what they are computed from.

    The statements are those of the deployment or, without one, all in the folder project/flink/. Raises
    Unknown, with the reason.
    """
    origins = _open_origins(sources, deployment)
    return origins.add_to(from_type(origins.derive_type(topic), topic))


def find_schema(topic: Topic, sources: Sources, deployment: Deployment) -> TopicSchema | None:
    """Return the schema of a topic of a deployment, with what its statements copy: that of its file or, if a
    statement creates the topic, the one that Flink will register. Return None if it has neither.

    Raises Missing for a file that can't be used, and Unknown if the statement doesn't show the schema.
    """
    schema = sources.schema(topic)
    if schema:
        return with_origins(schema, sources, deployment)
    return derive_schema(topic.name, sources, deployment) if topic.statement else None


def _open_origins(sources: Sources, deployment: Deployment | None) -> FlinkOrigins:
    if deployment is None:
        files = sorted((sources.root / "flink").glob("*/create.sql"))
        names = [file.parent.name for file in files]
        topics: dict[str, Topic] = {}
    else:
        names = [statement.name for statement in deployment.statements]
        topics = {topic.name: topic for topic in deployment.topics}
    return FlinkOrigins(sources, topics, _read_statements(sources, names))


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
    create = remove_comments(text.create)
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
                found = dict.fromkeys(schema.fields, Finding(why))
            else:
                find_source = functools.partial(self._find_source, above=above)
                found = lineage.find_copied_fields(schema, columns, find_source, file)
            copied = add_findings(copied, found.items())
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
            schema = self._load_schema(topic) or self._derive_schema(topic, above)
            return self.add_to(schema, above)
        except (BadSchema, Missing, lineage.Unknown):
            return None

    def _load_schema(self, topic: str) -> TopicSchema | None:
        """Return the schema in the topic's file, None if there is no file. Raises BadSchema, Missing."""
        file = self.sources.schema_file(self.topics[topic]) if topic in self.topics else None
        file = file or self.sources.root / "topics" / f"{topic}.avsc"
        return load_schema(file, topic) if file.is_file() else None

    def derive_type(self, topic: str, above: tuple[str, ...] = ()) -> Type:
        """Return the type of the values of a topic that one statement creates and fills. Raises Unknown."""
        above = (*above, topic)
        writers = self._find_writers(topic)
        if not writers:
            raise lineage.Unknown(f"no statement and no file shows the schema of {topic}")
        ((name, text), *others) = writers.items()
        file = f"project/flink/{name}/create.sql"
        if others or text.table != topic:
            raise lineage.Unknown(f"{file} is not the only statement that creates and fills it")
        has_keys = _KEY_COLUMNS.search(remove_comments(text.create)) is not None
        if has_keys and text.options.get("value.fields-include") != "all":
            raise lineage.Unknown(
                f"{file} has key columns, which the values lack without 'value.fields-include' = 'all'"
            )

        def find_type(source: str) -> Type | None:
            if source in above:
                return None
            try:
                schema = self._load_schema(source)
            except (BadSchema, Missing):
                return None
            return schema.type if schema else self.derive_type(source, above)

        try:
            columns = column_types.find_types(text.create, find_type)
        except lineage.Unknown as unknown:
            raise lineage.Unknown(f"{file}: {unknown}") from None
        return Type("record", fields=tuple(NamedType(name, type_) for name, type_ in columns.items()))

    def _derive_schema(self, topic: str, above: tuple[str, ...]) -> TopicSchema:
        """Return what the statements that write a topic without a schema file show of its schema. Raises
        Unknown.

        If the types can't be derived, all fields count as texts, because most words in names of fields speak
        of texts.
        """
        with contextlib.suppress(lineage.Unknown):
            return from_type(self.derive_type(topic, above), topic)
        writers = self._find_writers(topic)
        if not writers:
            raise lineage.Unknown(f"no file has the schema of {topic}")
        names: list[str] = []
        for text in writers.values():
            names += self._trace_columns(text, (*above, topic))
        fields = {name: Field(name, "string", tagged=False) for name in names}
        return TopicSchema(topic, Type("record"), fields)
