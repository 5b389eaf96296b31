"""Which changed property makes another object of which resource, and what is lost with an object that goes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from lakeferry.plan.resources import Resource
from lambdas.confluent import properties
from lambdas.custom_resources import registry

#: Properties that a vendor can't change, and for which the kind deletes the object and makes it anew under its own name.
#: A test holds them against the kinds that raise ReplacementRequired.
RENEWED_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "catalog_integration": ("provider_integration_id",),
    "flink_statement": ("sql", "properties", "catalog", "database"),
    "snowflake_catalog_integration": (),  # another role, region, account or namespace is another object anyway
    "snowflake_external_volume": (),  # likewise
    "snowflake_iceberg_table": ("volume", "integration", "table", "namespace"),
    "snowflake_linked_database": ("volume", "integration"),
    "tableflow_topic": ("storage", "bucket", "provider_integration_id"),
}
#: What goes with an object, by kind or by type of AWS.
_LOST: Final = {
    "environment": "everything in it: its cluster, topics, schemas and statements",
    "kafka_cluster": "all its topics with their records",
    "topic": "its records",
    "schema": "its versions",
    "tableflow_topic": "the table: another one begins with what the topic still holds",
    "snowflake_database": "its tables, and all that people made in it",
    "snowflake_schema": "its tables, and all that people made in it",
    "snowflake_iceberg_table": "streams on it and grants of your own; its data stays in the bucket",
    "snowflake_linked_database": "streams on its tables and grants of your own; the data stays in the bucket",
    "AWS::S3::Bucket": "everything in it",
    "AWS::Glue::Database": "its tables",
    "AWS::DynamoDB::Table": "its rows",
}
_UNDONE: Final = "what it writes: its undo runs ({undo})"
_KEY: Final = "the pseudonymisation key: files before and after can no longer be joined"
_OF_KEY: Final = ("AWS::SecretsManager::Secret", "AWS::KMS::Key")
_POINTER: Final = "/properties/"


@attrs.frozen
class Rule:
    """Paths of properties. What `replaced` names makes another object, what `perhaps` names may."""

    replaced: tuple[tuple[str, ...], ...] = ()
    perhaps: tuple[tuple[str, ...], ...] = ()
    renewed: tuple[tuple[str, ...], ...] = ()


def of(resource: Resource, region: str) -> Rule:
    if resource.kind:
        replaced = registry.RESOURCE_TYPES[resource.kind].handler.PROPERTIES.CREATE_ONLY
        return Rule(_paths(replaced), renewed=_paths(RENEWED_ON.get(resource.kind, ())))
    if resource.type.startswith("AWS::"):
        return _of_aws(resource.type, region)
    return Rule()


def same(resource: Resource, name: str, before: Any, after: Any) -> bool:
    """Whether two values of a property mean the same to the kind. CloudFormation makes texts of numbers."""
    if resource.kind == "flink_statement" and name in ("sql", "undo_sql"):
        return properties.normalized(str(before or "")) == properties.normalized(str(after or ""))
    return bool(as_text(before) == as_text(after))


def default(resource: Resource, name: str) -> Any:
    """What a kind takes where the property isn't given."""
    if not resource.kind:
        return None
    fields = attrs.fields_dict(registry.RESOURCE_TYPES[resource.kind].handler.PROPERTIES)
    given: Any = fields[name].default if name in fields else attrs.NOTHING
    if given is attrs.NOTHING:
        return None
    return given.factory() if hasattr(given, "factory") else given


def lost(resource: Resource) -> str:
    """What goes with the object, "" where nothing does that anybody would miss."""
    if resource.kind == "flink_statement" and (undo := resource.properties.get("undo_sql")):
        return _UNDONE.format(undo=" ".join(str(undo).split()))
    if resource.type in _OF_KEY and resource.stack.endswith("-data"):
        return _KEY
    return _LOST.get(resource.kind or resource.type, "")


@functools.cache
def _of_aws(type: str, region: str) -> Rule:
    """From AWS's own schema of the type, as cfn-lint ships it. A type that it doesn't know is never replaced."""
    from cfnlint.schema import ResourceNotFoundError  # type: ignore[import-untyped]  # noqa: PLC0415 - it takes seconds
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, type).schema
    except ResourceNotFoundError:
        return Rule()
    return Rule(
        tuple(_pointers(schema.get("createOnlyProperties"))), tuple(_pointers(schema.get("conditionalCreateOnlyProperties")))
    )


def _pointers(told: Any) -> Iterator[tuple[str, ...]]:
    for each in told or []:
        if each.startswith(_POINTER):
            yield tuple(re.split("/", each.removeprefix(_POINTER)))


def _paths(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names)


def as_text(value: Any) -> Any:
    """A value with all numbers and truths as CloudFormation writes them."""
    if isinstance(value, Mapping):
        return {name: as_text(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_text(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value) if value is not None else None
