"""Write the schema files of topics that exist, from their tables in Glue or from the Schema Registry of an
existing cluster: project/topics/<topic>.avsc.
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
from config.forms import name_table
from config.project import ROOT
from config.toml_model import BadFile
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.topics import avro, catalog_tables, discovery, tables
from lakeferry.topics.avro import UnknownType
from lambdas.confluent.resources.existing_topic import choose_write_mode

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


@attrs.frozen
class Imported:
    """`state` is WRITTEN, UNCHANGED or DIFFERS: the file exists with other fields, and was kept.

    `fields` is the number of the topic's own columns, `changes` describes what differs.
    """

    topic: str
    file: str
    state: str
    fields: int
    changes: tuple[str, ...] = ()


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
    file = deployment_file.FOLDER / f"{ctx.stage}.toml"
    text = add_topics(file, _require_topics(cluster, added))
    for name in added:
        topics[name] = Topic(name=name, existing=True, tableflow=Tableflow())
    documents = {name: cluster.read_schema(name) for name in selected}
    if added:
        write_at_once(file, text)
    return [_write(ctx, topics[name], documents[name], replace=replace) for name in selected]


def _require_topics(cluster: discovery.Cluster, names: list[str]) -> list[discovery.DiscoveredTopic]:
    """Return what the cluster says of these topics.

    Raises CommandFailed if the key doesn't see one of them.
    """
    if not names:
        return []
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
    text = file.read_text(encoding="utf-8")
    if not topics:
        return text
    blocks = []
    for topic in topics:
        block = _TOPIC_BLOCK.format(name=topic.name)
        if choose_write_mode(topic.cleanup_policy) == "UPSERT":
            block += 'write_mode = "UPSERT"\n'
        blocks.append(block)
    text = text.rstrip("\n") + "\n" + "".join(blocks)
    try:
        deployment_file.parse(text, name=file.name, judge=NOT_JUDGED, rules=RULES_WITHOUT_SCHEMAS)
    except BadFile as bad:
        names = ", ".join(topic.name for topic in topics)
        hint = "Correct the file by hand, or leave the topic out; nothing was written"
        raise CommandFailed("DEPLOYMENT-FILE", f"with {names} added: {bad}", hint) from None
    return text


def import_schemas(ctx: DeploymentContext, topics: list[Topic], *, replace: bool) -> list[Imported]:
    """Write a schema file for each topic. A file with other fields is kept unless `replace`.

    Raises CommandFailed, and writes nothing, if a topic has no table or no table that can be read.
    """
    source = ctx.deployment.source.catalog if ctx.deployment.source else None
    if source:
        read = partial(catalog_tables.load_metadata, catalog_tables.open_catalog(ctx, source), source)
    else:
        read = partial(_read_glue_metadata, ctx, tables.find_database(ctx))
    documents = {topic.name: _build(topic.name, read(topic.name)) for topic in topics}
    return [_write(ctx, topic, documents[topic.name], replace=replace) for topic in topics]


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


def _write(ctx: DeploymentContext, topic: Topic, document: dict[str, Any], *, replace: bool) -> Imported:
    file = ctx.loaded.sources.schema_file(topic) or ctx.loaded.sources.root / "topics" / f"{topic.name}.avsc"
    name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
    count = len(document["fields"])
    changes = None
    if file.is_file():
        changes = _compare_to_file(file, document, topic.name)
    if changes == ():
        return Imported(topic.name, name, UNCHANGED, count)
    if changes and not replace:
        return Imported(topic.name, name, DIFFERS, count, changes)
    write_at_once(file, json.dumps(document, indent=2) + "\n")
    return Imported(topic.name, name, WRITTEN, count, changes or ())


def write_at_once(file: Path, text: str) -> None:
    """Write the file at once: an interrupted command leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def _compare_to_file(file: Path, document: Mapping[str, Any], topic: str) -> tuple[str, ...]:
    """Return how the columns differ from those of the file; a file that is no schema is kept like another."""
    try:
        return _compare(json.loads(file.read_text(encoding="utf-8")), document, topic)
    except (BadSchema, ValueError) as bad:
        return (f"the file is not a schema: {bad}",)


def _compare(before: Mapping[str, Any], after: Mapping[str, Any], topic: str) -> tuple[str, ...]:
    """Return how the columns of the table differ from those that the file describes."""
    columns_before = _list_columns(before, topic)
    columns_after = _list_columns(after, topic)
    lost = [f"{name} is not in the table" for name in columns_before if name not in columns_after]
    new = [f"{name} is new" for name in columns_after if name not in columns_before]
    other = [
        f"{name} is {columns_after[name]}, and the file has {kind}"
        for name, kind in columns_before.items()
        if columns_after.get(name, kind) != kind
    ]
    return (*lost, *new, *other)


def _list_columns(schema: Mapping[str, Any], topic: str) -> dict[str, str]:
    """Return Spark's types of the topic's own columns, as JSON."""
    described = topic_schema.from_avro(schema, topic)
    return {
        column["name"]: json.dumps(column["type"])
        for column in list_spark_columns(described)["fields"]
        if column["name"] in described.fields
    }
