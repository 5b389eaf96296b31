"""Tables in Glue of a deployment: those of its aggregates, and those that Tableflow shows in a database of the cluster's id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import aws_stores
from lakeferry.inventory.aws_kinds import pages
from lakeferry.inventory.model import AWS, Claim, Item, left_over
from lakeferry.inventory.stacks import Stacks

_PURGED: Final = "purge:glue_database:"
_CLUSTER: Final = re.compile(r"lkc-[a-z0-9]+")


def take(ctx: DeploymentContext, known: Stacks, buckets: Sequence[str], settled: Callable[..., Claim]) -> Iterator[Item]:
    """`settled` says what becomes of data. The database of the aggregates itself is listed like other databases."""
    claim = settled(_claim(ctx, known, "data"), is_data=True)
    for table in _tables(ctx, aws_stores.aggregates(ctx.deployment)):
        yield claim.item(AWS, "glue_table", table["Name"], table["Name"], (aws_stores.aggregates(ctx.deployment),))
    claim = settled(_claim(ctx, known, "confluent"), is_data=True)
    for database in _clusters(ctx):
        tables = list(_tables(ctx, database))
        if _is_ours(known, database, tables, buckets):
            yield claim.item(AWS, "glue_database", database)
            for table in tables:
                yield claim.item(AWS, "glue_table", table["Name"], table["Name"], (database,))


def _claim(ctx: DeploymentContext, known: Stacks, part: str) -> Claim:
    name = f"{ctx.deployment.prefix}-{part}"
    return next((stack.claim() for stack in known.now if stack.name == name), left_over("no stack has it"))


def _clusters(ctx: DeploymentContext) -> list[str]:
    names = [one["Name"] for page in pages(ctx, "glue", "get_databases") for one in page["DatabaseList"]]
    return [name for name in names if _CLUSTER.fullmatch(name)]


def _tables(ctx: DeploymentContext, database: str) -> Iterator[dict[str, Any]]:
    client = ctx.client("glue")
    try:
        for page in client.get_paginator("get_tables").paginate(DatabaseName=database):
            yield from page["TableList"]
    except client.exceptions.EntityNotFoundException:
        return


def _is_ours(known: Stacks, database: str, tables: list[dict[str, Any]], buckets: Sequence[str]) -> bool:
    """A stack was to empty it, or its tables lie in a bucket of ours."""
    if any(resource.physical_id == f"{_PURGED}{database}" for _, resource in known.physical_ids(_PURGED)):
        return True
    places = {place for table in tables for place in _places(table)}
    return any(place.startswith(f"s3://{bucket}/") for place in places for bucket in buckets)


def _places(table: dict[str, Any]) -> Iterator[str]:
    yield table.get("StorageDescriptor", {}).get("Location", "")
    yield table.get("Parameters", {}).get("metadata_location", "")
