"""Which changed property causes which resource to be replaced, and what is lost with a deleted object.

For AWS resource types, the rules come from the data that ships with the pinned CDK CLI and that `cdk diff`
uses; for custom resources, from the property classes in lambdas.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from lakeferry.deployment import cdk
from lakeferry.plan.templates import TemplateResource
from lambdas.confluent.flink_sql import normalize
from lambdas.custom_resources import registry

#: Properties that a vendor can't change. If one changes, the resource type deletes the object and creates it
#: again with the same name. A test compares them with the types that raise ReplacementRequired.
RECREATED_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "catalog_integration": ("provider_integration_id",),
    "flink_statement": ("sql", "properties"),
    # A new role, region, account or namespace is CREATE_ONLY: a new object. Likewise for volumes.
    "snowflake_catalog_integration": (),
    "snowflake_external_volume": (),
    "snowflake_iceberg_table": ("volume", "integration", "table", "namespace"),
    "snowflake_linked_database": ("volume", "integration"),
    "tableflow_topic": ("storage", "bucket", "provider_integration_id"),
}
#: Resource types whose ids Confluent assigns. An object that is created again has another one.
ASSIGNED_IDS: Final = (
    "environment",
    "kafka_cluster",
    "service_account",
    "provider_integration",
    "flink_compute_pool",
)
#: What is deleted with an object, by custom resource type or AWS resource type.
_LOST: Final = {
    "environment": "everything in it: its cluster, topics, schemas and statements",
    "kafka_cluster": "all its topics with their records",
    "topic": "its records",
    "schema": "its versions",
    "tableflow_topic": "the Iceberg table with all its rows",
    "snowflake_database": "its tables, and everything else in it",
    "snowflake_schema": "its tables, and everything else in it",
    "snowflake_iceberg_table": "streams on it and grants of your own; its data stays in the bucket",
    "snowflake_view": "grants of your own on it",
    "snowflake_linked_database": "streams on its tables and grants of your own; the data stays in the bucket",
    "AWS::S3::Bucket": "everything in it",
    "AWS::Glue::Database": "its tables",
    "AWS::DynamoDB::Table": "its rows",
}
#: The same for a table in Confluent's storage. In a bucket, its files stay.
_LOST_FROM_STORAGE: Final = "the Iceberg table with all its rows, which are in Confluent's storage"
#: What the object that is created instead has of it.
_INSTEAD: Final = {"tableflow_topic": "the new one begins with the oldest record that the topic still has"}
_UNDO: Final = "its output topic: undo.sql runs ({undo})"
_KEY: Final = "the pseudonymisation key: pseudonyms in new files no longer match those in older ones"
_KEY_TYPES: Final = ("AWS::SecretsManager::Secret", "AWS::KMS::Key")
_DEPTH: Final = 4

Path = tuple[str, ...]


@attrs.frozen
class Rule:
    """Paths of properties whose change replaces a resource.

    `replaced`: a new object is created. `conditional`: AWS decides whether it is. `recreated`: the old object
    is deleted first.
    """

    replaced: tuple[Path, ...] = ()
    conditional: tuple[Path, ...] = ()
    recreated: tuple[Path, ...] = ()


def find_rule(resource: TemplateResource) -> Rule:
    """Return the rule for the resource's type. Resources of an unknown type count as never replaced."""
    if resource.kind:
        create_only = registry.RESOURCE_TYPES[resource.kind].handler.PROPERTIES.CREATE_ONLY
        recreated = () if is_edited_in_place(resource) else RECREATED_ON.get(resource.kind, ())
        return Rule(tuple((name,) for name in create_only), recreated=tuple((name,) for name in recreated))
    return _read_aws_rule(resource.type) if resource.type.startswith("AWS::") else Rule()


def is_edited_in_place(resource: TemplateResource) -> bool:
    """Return whether the resource is a Flink statement whose edited text goes on where the old one stops."""
    drops = str(resource.properties.get("drop_on_edit", False)).lower() == "true"
    return resource.kind == "flink_statement" and not drops


@functools.cache
def _read_aws_rule(type: str) -> Rule:
    paths = list(_list_paths(_load_service_spec().resources.get(type, {}), (), _DEPTH))
    return Rule(
        tuple(path for path, causes in paths if causes == "yes"),
        tuple(path for path, causes in paths if causes == "maybe"),
    )


@attrs.frozen
class _ServiceSpec:
    """The service specification of CDK: properties by resource type, and by the id of a nested type."""

    resources: Mapping[str, Mapping[str, Any]]
    types: Mapping[str, Mapping[str, Any]]


@functools.cache
def _load_service_spec() -> _ServiceSpec:
    with gzip.open(cdk.find_service_specification()) as file:
        schema = json.load(file)["schema"]
    return _ServiceSpec(
        {entity["cloudFormationType"]: entity["properties"] for entity in schema["resource"]["entities"]},
        {entity["$id"]: entity["properties"] for entity in schema["typeDefinition"]["entities"]},
    )


def _list_paths(spec: Mapping[str, Any], within: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Yield each path that causes a replacement, with "yes" or "maybe".

    Elements of lists have no names, so no paths.
    """
    for name, body in spec.items():
        if causes := body.get("causesReplacement"):
            yield (*within, name), causes
        nested = body["type"].get("reference", {}).get("$ref") if depth else None
        if nested and causes != "yes":
            yield from _list_paths(_load_service_spec().types[nested], (*within, name), depth - 1)


def is_same(resource: TemplateResource, name: str, before: Any, after: Any) -> bool:
    """Return whether two values mean the same to the resource type.

    CloudFormation passes numbers as strings.
    """
    if resource.kind == "flink_statement" and name in ("sql", "undo_sql"):
        return normalize(str(before or "")) == normalize(str(after or ""))
    return bool(as_strings(before) == as_strings(after))


def find_default(resource: TemplateResource, name: str) -> Any:
    """Return the default of a custom resource's property, None if it has none and for AWS resource types."""
    if not resource.kind:
        return None
    fields = attrs.fields_dict(registry.RESOURCE_TYPES[resource.kind].handler.PROPERTIES)
    value: Any = fields[name].default if name in fields else attrs.NOTHING
    if value is attrs.NOTHING:
        return None
    return value.factory() if hasattr(value, "factory") else value


def describe_loss(resource: TemplateResource) -> str:
    """Return what is lost if the object is deleted, "" for nothing."""
    if resource.kind == "flink_statement" and (undo := resource.properties.get("undo_sql")):
        return _UNDO.format(undo=" ".join(str(undo).split()))
    if resource.kind == "tableflow_topic" and resource.properties.get("storage") == "managed":
        return _LOST_FROM_STORAGE
    if resource.type in _KEY_TYPES and resource.stack.endswith("-data"):
        return _KEY
    return _LOST.get(resource.kind or resource.type, "")


def describe_replacement(resource: TemplateResource) -> str:
    """Return what the replacement of a lost object has, with a semicolon before it, "" for nothing."""
    text = _INSTEAD.get(resource.kind, "")
    return f"; {text}" if text else ""


def as_strings(value: Any) -> Any:
    """Return the value with all numbers and booleans as strings, as CloudFormation passes them."""
    if isinstance(value, Mapping):
        return {name: as_strings(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_strings(item) for item in value]
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
