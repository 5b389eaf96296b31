"""The Iceberg tables in the Glue database of a deployment's topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas.shared.aws import read_error_code
from lambdas.shared.errors import LakeferryError
from lambdas.shared.s3 import Objects

#: The value of a Glue table's parameter `table_type`, in any case (Iceberg's Glue catalog).
_ICEBERG: Final = "ICEBERG"
_ABSENT: Final = "EntityNotFoundException"


@attrs.frozen
class GlueTable:
    """A table as Glue lists it. `metadata` is the URL of its metadata file, "" for a table that isn't
    Iceberg.
    """

    name: str
    metadata: str

    @property
    def bucket(self) -> str:
        return urlsplit(self.metadata).netloc

    @property
    def key(self) -> str:
        """Return the key of the metadata file in the bucket."""
        return urlsplit(self.metadata).path.removeprefix("/")


def find_database(ctx: DeploymentContext) -> str:
    """Return the Glue database of the topics' tables: one that exists, or the deployed cluster's.

    Raises CommandFailed if the cluster isn't deployed.
    """
    if ctx.deployment.existing_glue_database:
        return ctx.deployment.existing_glue_database
    return stacks.require_part(ctx, "confluent").outputs["KafkaClusterId"]


def find_table(ctx: DeploymentContext, database: str, name: str) -> GlueTable | None:
    """Return a table; None if there is none.

    Raises CommandFailed, also if AWS doesn't let the login see the table: a list would leave that one out,
    for example under Lake Formation.
    """
    with translate_aws_errors(f"reading Glue table {database}.{name}"):
        try:
            return read_table(ctx.client("glue").get_table(DatabaseName=database, Name=name)["Table"])
        except ClientError as error:
            if read_error_code(error) != _ABSENT:
                raise
            return None


def list_tables(ctx: DeploymentContext, database: str) -> list[GlueTable]:
    """Return the tables of a database that the login may see, by name. Raises CommandFailed if there is no
    such database.
    """
    tables: list[GlueTable] = []
    with translate_aws_errors(f"listing the tables of Glue database {database}"):
        try:
            for page in ctx.client("glue").get_paginator("get_tables").paginate(DatabaseName=database):
                tables += map(read_table, page["TableList"])
        except ClientError as error:
            if read_error_code(error) != _ABSENT:
                raise
            raise CommandFailed(
                "NO-DATABASE", f"there is no Glue database {database} in {ctx.region}"
            ) from None
    return sorted(tables, key=lambda table: table.name)


def read_table(document: Mapping[str, Any]) -> GlueTable:
    parameters = document.get("Parameters") or {}
    is_iceberg = str(parameters.get("table_type", "")).upper() == _ICEBERG
    return GlueTable(document["Name"], str(parameters.get("metadata_location", "")) if is_iceberg else "")


def read_metadata(ctx: DeploymentContext, table: GlueTable) -> Mapping[str, Any]:
    """Return the Iceberg metadata of a table. Raises CommandFailed if it can't be read."""
    try:
        stored = Objects(ctx.client("s3"), table.bucket).read(table.key)
    except LakeferryError as error:
        raise CommandFailed("TABLE-UNREADABLE", f"table {table.name}: {error.what}") from None
    if stored is None:
        raise CommandFailed("TABLE-UNREADABLE", f"table {table.name}: there is no object {table.metadata}")
    return stored.document


def find_schema(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the current schema of a table's metadata, as the Iceberg specification writes it in JSON."""
    current = metadata["current-schema-id"]
    schema: Mapping[str, Any] = next(
        schema for schema in metadata["schemas"] if schema["schema-id"] == current
    )
    return schema
