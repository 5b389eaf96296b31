"""The schemas that contracts are checked against, beside those in Schema Registry: the files of topics that
somebody else has, and what statements show of the topics that Flink creates.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lakeferry.topics import discovery, registry, schemas
from lakeferry.topics.schemas import REGISTRY, FoundSchema
from lambdas.confluent.rest_client import RestClient

GROUP: Final = Group("Schema Registry")
KEY: Final = "Schema Registry key"


def has_registry(deployment: Deployment) -> bool:
    """Return whether the file names a registry with schemas that others register, or Flink."""
    if deployment.source:
        return deployment.source.registry is not None
    return deployment.uses_existing_cluster or bool(_list_derived(deployment))


def _list_derived(deployment: Deployment) -> list[Topic]:
    """Return the tables whose topics Flink creates."""
    return [topic for topic in deployment.tables if topic.statement]


def look(ctx: DeploymentContext) -> list[Check]:
    source = ctx.deployment.source
    if source and source.registry:
        try:
            client = registry.open_registry(ctx, source.registry)
        except CommandFailed as failure:
            return [runner.report_failed(GROUP, KEY, failure)]
        opened = GROUP.ok(KEY, f"in {source.registry.key_secret}")
        return [opened, *_compare_all(ctx, client, ctx.deployment.topics)]
    confluent = ctx.deployment.confluent
    existing_topics = [topic for topic in ctx.deployment.tables if topic.existing]
    topics = [*existing_topics, *_list_derived(ctx.deployment)]
    if confluent is None or not topics:
        return []
    environment_id = confluent.environment_id
    if not environment_id:
        stack = stacks.find_part(ctx, "confluent")
        if isinstance(stack, str):
            return [GROUP.skip(_name(topic), stack) for topic in topics]
        environment_id = stack.outputs["EnvironmentId"]
    of_cluster = discovery.open_environment_registry(ctx, ctx.confluent(), environment_id)
    if of_cluster is None:
        return [GROUP.skip_unseen(KEY, "not checked: there is no key of Schema Registry yet")]
    return _compare_all(ctx, of_cluster, topics)


def _compare_all(ctx: DeploymentContext, client: RestClient, topics: list[Topic]) -> list[Check]:
    return [runner.attempt(GROUP, _name(topic), partial(check_topic, ctx, client, topic)) for topic in topics]


def _name(topic: Topic) -> str:
    return f"schema of {topic.name}"


def check_topic(ctx: DeploymentContext, client: RestClient, topic: Topic) -> Check:
    """Compare what contracts over the topic are checked against with the registered schema. Raises
    LakeferryError if the registry doesn't answer.
    """
    name = _name(topic)
    file = ctx.loaded.sources.schema_file(topic)
    describer = file.name if file else f"project/flink/{topic.statement}/create.sql"
    if file is None and not topic.statement:
        return GROUP.skip(name, f"there is no file for it: `lakeferry topics import --stage {ctx.stage}`")
    try:
        document = registry.read_schema(client, topic.name)
    except CommandFailed as failure:
        fix = (
            f"Whether {describer} is right, and which fields are personal, is not known from Schema Registry"
        )
        return GROUP.warn_unseen(name, f"{describer} can't be compared: {failure.message}", fix)
    found = FoundSchema(document, REGISTRY)
    if file is None:
        return _compare_derived(ctx, topic, found, describer)
    command = f"`lakeferry topics import {topic.name} --stage {ctx.stage} --replace`"
    import_it = f"Change {file.name}, or replace it: {command}"
    differences = schemas.compare_to_file(file, found, topic.name)
    message = f"{file.name}: {'; '.join(differences.sentences)}"
    if differences.untagged and differences.may_export_untagged:
        return GROUP.fail(name, message, f"Add the tag: contracts could export personal data. {import_it}")
    if differences.sentences:
        return GROUP.warn(name, message, import_it)
    return GROUP.ok(name, f"{file.name} has the registered fields and tags")


def _compare_derived(ctx: DeploymentContext, topic: Topic, found: FoundSchema, describer: str) -> Check:
    """Compare what a statement shows of its topic's schema with the registered one."""
    from config.deployments import flink_origins  # noqa: PLC0415 - importing sqlglot takes a while, and not every file has statements
    from config.deployments.lineage import Unknown  # noqa: PLC0415

    name = _name(topic)
    try:
        derived = flink_origins.derive_schema(topic.name, ctx.loaded.sources, ctx.deployment)
    except Unknown as unknown:
        return GROUP.skip_unseen(name, f"not checked: its statement doesn't show the schema: {unknown}")
    differences = schemas.compare(derived, found, describer)
    if not differences.sentences:
        return GROUP.ok(name, f"{describer} makes the registered fields")
    fix = (
        f"Contracts over {topic.name} are checked against columns that it doesn't have. Put the registered "
        f"schema into project/topics/{topic.name}.avsc, which takes precedence"
    )
    message = f"{describer}: {'; '.join(differences.sentences)}"
    return GROUP.fail(name, message, fix)
