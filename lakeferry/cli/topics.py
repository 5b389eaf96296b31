"""`lakeferry topics …`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import attrs
import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed
from lakeferry.output import find_program_name

app: Final = command_group("topics", "Topics that exist: their tables and schemas.")


@command(
    app,
    "list",
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "database": "The Glue database, or the Kafka cluster if Confluent stores the tables.",
        "tables": (
            "Its tables: `name`, `iceberg` (whether an export can read it), and `in_file` (whether the "
            "deployment file has it as a topic)."
        ),
    },
)
def list_(call: CommandContext) -> Mapping[str, Any]:
    """List the tables of the Glue database or the catalog that the deployment file names, or of the deployed
    cluster.
    """
    from lakeferry.deployment.context import open_unchecked_context
    from lakeferry.topics import catalog_tables
    from lakeferry.topics import tables as glue_tables

    with open_unchecked_context(call.stage) as ctx:
        source = ctx.deployment.source.catalog if ctx.deployment.source else None
        if source:
            database = source.cluster_id
            place = f"Tableflow's catalog of {database}"
            with call.output.step(f"Reading {place}"):
                tables = dict.fromkeys(catalog_tables.list_topics(ctx, source), True)
            names = {topic.name for topic in ctx.deployment.topics}
        else:
            database = glue_tables.find_database(ctx)
            place = f"Glue database {database}"
            with call.output.step(f"Reading {place}"):
                listed = glue_tables.list_tables(ctx, database)
            tables = {table.name: bool(table.metadata) for table in listed}
            names = {topic.table for topic in ctx.deployment.topics}
    documents = []
    rows = []
    for name, is_iceberg in tables.items():
        in_file = name in names
        documents.append({"name": name, "iceberg": is_iceberg, "in_file": in_file})
        rows.append([name, "Iceberg" if is_iceberg else "other", "yes" if in_file else "no"])
    call.output.print(f"{place}: {len(tables)} tables")
    if source and not tables:
        call.output.print(
            f"The key in {source.key_secret} sees no table. Check source.cluster_id, and whether its owner "
            "has the role DeveloperRead on the topics"
        )
    if rows:
        call.output.table(["table", "format", "in the file"], rows)
    if any(document["iceberg"] and not document["in_file"] for document in documents):
        call.output.print(
            f"Next: add [[topics]] with the name of a table to project/deployments/{call.stage}.toml, then "
            f"`{find_program_name()} topics import --stage {call.stage}`"
        )
    return {"stage": call.stage, "database": database, "tables": documents}


@command(
    app,
    "import",
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "topics": (
            "Each topic: `topic`, `file`, `state` (`written`, `unchanged`, or `differs`: the file has other "
            "fields or tags, and was kept), `fields` (their number), `changes` (what differs), `read_from` "
            "(`table` or `Schema Registry`), and `why` (why it is not the registry that the file names)."
        ),
    },
)
def import_(
    call: CommandContext,
    *,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="The topics. Default: all of the file.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a schema file that differs, with its tags.")
    ] = False,
) -> Mapping[str, Any]:
    """Write the schema file of each topic, so that a contract can be checked: from its table or, for an
    existing cluster and with `source.schema_registry_url`, from Schema Registry. A topic of that cluster is
    added to the deployment file.
    """
    from lakeferry.deployment.context import open_unchecked_context
    from lakeferry.topics import schemas as core

    with open_unchecked_context(call.stage) as ctx:
        if ctx.deployment.uses_existing_cluster:
            with call.output.step("Reading Schema Registry"):
                imported = core.import_from_registry(ctx, topics or [], replace=replace)
        else:
            selected = core.select_topics(ctx, topics or [])
            with call.output.step("Reading the tables and schemas"):
                imported = core.import_schemas(ctx, selected, replace=replace)
    for topic in imported:
        call.output.print(f"{topic.file}: {topic.state}, {topic.fields} fields, from {topic.read_from}")
        if topic.why:
            call.output.print(f"  Schema Registry was not used: {topic.why}")
        for change in topic.changes:
            call.output.print(f"  {change}")
    document = {"stage": call.stage, "topics": [attrs.asdict(topic) for topic in imported]}
    differing = [topic.topic for topic in imported if topic.state == core.DIFFERS]
    if differing:
        raise CommandFailed(
            "TOPICS-DIFFER",
            f"the schema files of {', '.join(differing)} differ from what exists, and were kept",
            details=document,
        )
    if any(topic.state == core.WRITTEN for topic in imported):
        call.output.print(
            'In a file with "lakeferry:tags": "unknown", each field counts as one that may be personal. Add '
            '"confluent:tags": ["PII"] to those that are, then set "lakeferry:tags" to "reviewed"'
        )
    call.output.print(
        f"Next: write a contract in project/exports/, then `{find_program_name()} export check NAME`"
    )
    return document
