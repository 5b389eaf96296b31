"""Write the schema files of topics that exist, from their tables or from Schema Registry:
project/topics/<topic>.avsc.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from config.deployments import deployment_file
from config.deployments.confluent_model import Tableflow, Topic
from config.deployments.rules import RULES_WITHOUT_SCHEMAS
from config.exports import topic_schema
from config.exports.avro_schema import BadSchema
from config.exports.check import NOT_JUDGED
from config.exports.table_columns import list_spark_columns
from config.exports.topic_schema import TopicSchema
from config.forms import name_table
from config.project import ROOT
from config.toml_model import BadFile
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.topics import avro, catalog_tables, discovery, registry, tables
from lakeferry.topics.avro import UnknownType
from lambdas.confluent.resources.existing_topic import choose_write_mode
from lambdas.confluent.rest_client import RestClient

#: What is added to the end of a deployment file.
_TOPIC_BLOCK: Final = """
[[topics]]
name = "{name}"
existing = true

[topics.tableflow]
"""
WRITTEN: Final = "written"
UNCHANGED: Final = "unchanged"
DIFFERS: Final = "differs"
REGISTRY: Final = "Schema Registry"
TABLE: Final = "table"


@attrs.frozen
class Imported:
    """`state` is WRITTEN, UNCHANGED or DIFFERS: the file exists with other fields, and was kept.

    `fields` is the number of the topic's own columns, `changes` describes what differs. `read_from` is
    REGISTRY or TABLE; `why` says why the schema isn't that of the registry which the file names.
    """

    topic: str
    file: str
    state: str
    fields: int
    changes: tuple[str, ...] = ()
    read_from: str = TABLE
    why: str = ""


@attrs.frozen
class FoundSchema:
    """An Avro schema of a topic's values, and where it is from (see Imported)."""

    document: dict[str, Any]
    read_from: str
    why: str = ""


@attrs.frozen
class Differences:
    """How a schema that is described differs from what exists.

    `untagged` are fields that have the tag PII there, and not in the description. If its tags are unknown,
    contracts export no field without a decision, tagged or not.
    """

    of_columns: tuple[str, ...] = ()
    untagged: tuple[str, ...] = ()
    may_export_untagged: bool = True
    describer: str = "the file"

    @property
    def sentences(self) -> tuple[str, ...]:
        tags = [f"{name} has the tag PII, and not in {self.describer}" for name in self.untagged]
        return (*self.of_columns, *tags)


def select_topics(ctx: DeploymentContext, names: list[str]) -> list[Topic]:
    """Return the topics of the file with these names, or all. Raises CommandFailed for another name."""
    can_be_read = ctx.deployment.tables if ctx.deployment.source else ctx.deployment.tables_in_glue
    topics = {topic.name: topic for topic in can_be_read}
    unknown = [name for name in names if name not in topics]
    if unknown or not topics:
        what = f"{', '.join(unknown)} is not a table of the file" if unknown else "the file has no tables"
        hint = (
            f"Add [[topics]] to project/deployments/{ctx.stage}.toml. Tables of the file: "
            f"{', '.join(topics) or 'none'}"
        )
        raise CommandFailed("TOPICS-UNKNOWN", what, hint)
    return [topics[name] for name in names or topics]


def import_from_registry(ctx: DeploymentContext, names: list[str], *, replace: bool) -> list[Imported]:
    """Write the schema files of an existing cluster's topics from its Schema Registry, and add those topics
    to the deployment file that it doesn't have. Without names, import the file's topics that become tables.

    Raises CommandFailed, and writes nothing, for a topic that the cluster doesn't have, a schema that no
    contract can be checked against, and a name that a deployment file can't have.
    """
    cluster = discovery.open_cluster(ctx)
    topics = {topic.name: topic for topic in ctx.deployment.topics}
    if not names:
        names = [topic.name for topic in ctx.deployment.tables if topic.existing]
    selected = list(dict.fromkeys(names))
    added = [name for name in selected if name not in topics]
    file = ctx.loaded.sources.root / "deployments" / f"{ctx.stage}.toml"
    text = add_topics(file, _require_topics(cluster, added)) if added else ""
    for name in added:
        topics[name] = Topic(name=name, existing=True, tableflow=Tableflow())
    found = {name: FoundSchema(cluster.read_schema(name), REGISTRY) for name in selected}
    if added:
        write_at_once(file, text)
    return [_write(ctx, topics[name], found[name], replace=replace) for name in selected]


def _require_topics(cluster: discovery.Cluster, names: list[str]) -> list[discovery.DiscoveredTopic]:
    """Return what the cluster says of these topics.

    Raises CommandFailed if the key doesn't see one of them.
    """
    existing = {topic.name: topic for topic in cluster.list_topics([])}
    unknown = [name for name in names if name not in existing]
    if unknown:
        hint = f"Topics that the key may see: {', '.join(sorted(existing)) or 'none'}"
        what = f"the Kafka key sees no topic {', '.join(unknown)} in the cluster"
        raise CommandFailed("TOPICS-UNKNOWN", what, hint)
    return [existing[name] for name in names]


def add_topics(file: Path, topics: list[discovery.DiscoveredTopic]) -> str:
    """Return the deployment file's text with these topics. Raises CommandFailed if the file would then have
    mistakes.
    """
    blocks = []
    for topic in topics:
        block = _TOPIC_BLOCK.format(name=topic.name)
        if choose_write_mode(topic.cleanup_policy) == "UPSERT":
            block += 'write_mode = "UPSERT"\n'
        blocks.append(block)
    text = file.read_text(encoding="utf-8").rstrip("\n") + "\n" + "".join(blocks)
    try:
        deployment_file.parse(
            text,
            name=file.name,
            root=file.parent.parent,
            judge=NOT_JUDGED,
            rules=RULES_WITHOUT_SCHEMAS,
        )
    except BadFile as bad:
        names = ", ".join(topic.name for topic in topics)
        hint = "Correct the file by hand, or leave the topic out; nothing was written"
        raise CommandFailed("DEPLOYMENT-FILE", f"with {names} added: {bad}", hint) from None
    return text


def import_schemas(ctx: DeploymentContext, topics: list[Topic], *, replace: bool) -> list[Imported]:
    """Write a schema file for each topic. A file with other fields is kept unless `replace`.

    Raises CommandFailed, and writes nothing, if a topic has no table or no table that can be read, or if the
    Schema Registry that the file names can't be read.
    """
    source = ctx.deployment.source
    if source and source.catalog:
        catalog = catalog_tables.open_catalog(ctx, source.catalog)
        read = partial(catalog_tables.load_metadata, catalog, source.catalog)
    else:
        read = partial(_read_glue_metadata, ctx, tables.find_database(ctx))
    found = {topic.name: FoundSchema(_build(topic.name, read(topic.name)), TABLE) for topic in topics}
    if source and source.registry:
        client = registry.open_registry(ctx, source.registry)
        found = {name: _choose(client, name, of_table.document) for name, of_table in found.items()}
    return [_write(ctx, topic, found[topic.name], replace=replace) for topic in topics]


def _choose(client: RestClient, topic: str, of_table: dict[str, Any]) -> FoundSchema:
    """Return the registered schema if it has all columns of the table. Otherwise return the table's, whose
    tags are unknown: it isn't proved that the registered schema is the one of the table.

    A column that only the registered schema has comes into the table with the next records.
    """
    try:
        registered = registry.read_schema(client, topic)
    except CommandFailed as failure:
        return FoundSchema(of_table, TABLE, failure.message)
    in_registry = _list_columns(topic_schema.from_avro(registered, topic))
    in_table = _list_columns(topic_schema.from_avro(of_table, topic))
    others = [name for name, kind in in_table.items() if in_registry.get(name) != kind]
    if others:
        why = f"the registered schema has not these columns, or with other types: {', '.join(others)}"
        return FoundSchema(of_table, TABLE, why)
    return FoundSchema(registered, REGISTRY)


def _read_glue_metadata(ctx: DeploymentContext, database: str, topic: str) -> Mapping[str, Any]:
    name = name_table(topic)
    table = tables.find_table(ctx, database, name)
    if table is None or not table.metadata:
        listed = [listed.name for listed in tables.list_tables(ctx, database) if listed.metadata]
        why = "is not an Iceberg table" if table else "does not exist"
        hint = f"Iceberg tables of {database}: {', '.join(listed) or 'none'}"
        raise CommandFailed("NO-TABLE", f"table {database}.{name} {why}", hint)
    return tables.read_metadata(ctx, table)


def _build(topic: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return avro.build_schema(tables.find_schema(metadata), topic)
    except UnknownType as unknown:
        raise CommandFailed("TABLE-UNREADABLE", f"the table of {topic}: {unknown}") from None


def _write(ctx: DeploymentContext, topic: Topic, found: FoundSchema, *, replace: bool) -> Imported:
    file = ctx.loaded.sources.schema_file(topic) or ctx.loaded.sources.root / "topics" / f"{topic.name}.avsc"
    changes = None
    if file.is_file():
        changes = compare_to_file(file, found, topic.name).sentences
    is_kept = bool(changes) and not replace
    state = UNCHANGED if changes == () else WRITTEN
    if is_kept:
        state = DIFFERS
    if state == WRITTEN:
        write_at_once(file, json.dumps(found.document, indent=2) + "\n")
    return Imported(
        topic=topic.name,
        file=str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file),
        state=state,
        fields=len(found.document["fields"]),
        changes=changes or (),
        read_from=found.read_from,
        why=found.why,
    )


def write_at_once(file: Path, text: str) -> None:
    """Write the file at once: an interrupted command leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def compare_to_file(file: Path, found: FoundSchema, topic: str) -> Differences:
    """Return how the file differs; one that is no schema is kept like another."""
    try:
        in_file = topic_schema.load(file, topic)
    except BadSchema as bad:
        return Differences((f"the file is not a schema: {bad}",))
    return compare(in_file, found, "the file")


def compare(described: TopicSchema, found: FoundSchema, describer: str) -> Differences:
    """Return how a schema differs from what exists. `describer` is where it is from, as part of a
    sentence.
    """
    existing = topic_schema.from_avro(found.document, described.topic)
    untagged = tuple(
        name
        for name, field in existing.fields.items()
        if field.tagged and name in described.fields and not described.is_marked(name)
    )
    columns = _compare_columns(described, existing, found.read_from, describer)
    return Differences(columns, untagged, may_export_untagged=not described.tags_unknown, describer=describer)


def _compare_columns(
    described: TopicSchema, existing: TopicSchema, read_from: str, describer: str
) -> tuple[str, ...]:
    """Return how the columns differ from those that are described."""
    place = "the table" if read_from == TABLE else "the registered schema"
    columns_before = _list_columns(described)
    columns_after = _list_columns(existing)
    lost = [f"{name} is not in {place}" for name in columns_before if name not in columns_after]
    new = [f"{name} is new" for name in columns_after if name not in columns_before]
    other = [
        f"{name} is {columns_after[name]}, and {describer} has {kind}"
        for name, kind in columns_before.items()
        if columns_after.get(name, kind) != kind
    ]
    return (*lost, *new, *other)


def _list_columns(described: TopicSchema) -> dict[str, str]:
    """Return Spark's types of the topic's own columns, as JSON."""
    return {
        column["name"]: json.dumps(column["type"])
        for column in list_spark_columns(described)["fields"]
        if column["name"] in described.fields
    }
