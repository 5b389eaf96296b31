"""The schema files of topics that somebody else has, beside the schemas in Schema Registry."""

from __future__ import annotations

from functools import partial
from typing import Final

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
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
    """Return whether the file names a registry with schemas that others register."""
    if deployment.source:
        return deployment.source.registry is not None
    return deployment.uses_existing_cluster


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
    topics = [topic for topic in ctx.deployment.tables if topic.existing]
    if confluent is None or not confluent.environment_id or not topics:
        return []
    of_cluster = discovery.open_environment_registry(ctx, ctx.confluent(), confluent.environment_id)
    if of_cluster is None:
        return [GROUP.skip(KEY, "not checked: there is no key of Schema Registry yet")]
    return _compare_all(ctx, of_cluster, topics)


def _compare_all(ctx: DeploymentContext, client: RestClient, topics: list[Topic]) -> list[Check]:
    return [runner.attempt(GROUP, _name(topic), partial(_compare, ctx, client, topic)) for topic in topics]


def _name(topic: Topic) -> str:
    return f"schema of {topic.name}"


def _compare(ctx: DeploymentContext, client: RestClient, topic: Topic) -> Check:
    """Raises LakeferryError if the registry doesn't answer."""
    name = _name(topic)
    file = ctx.loaded.sources.schema_file(topic)
    if file is None:
        return GROUP.skip(name, f"there is no file for it: `lakeferry topics import --stage {ctx.stage}`")
    try:
        document = registry.read_schema(client, topic.name)
    except CommandFailed as failure:
        fix = "Whether the file is right, and which fields are personal, is not known from Schema Registry"
        return GROUP.warn(name, f"{file.name} can't be compared: {failure.message}", fix)
    found = FoundSchema(document, REGISTRY)
    command = f"`lakeferry topics import {topic.name} --stage {ctx.stage} --replace`"
    import_it = f"Change {file.name}, or replace it: {command}"
    differences = schemas.compare_to_file(file, found, topic.name)
    message = f"{file.name}: {'; '.join(differences.sentences)}"
    if differences.untagged and differences.may_export_untagged:
        return GROUP.fail(name, message, f"Add the tag: contracts could export personal data. {import_it}")
    if differences.sentences:
        return GROUP.warn(name, message, import_it)
    return GROUP.ok(name, f"{file.name} has the registered fields and tags")
