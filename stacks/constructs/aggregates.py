"""The Glue database of the aggregates that exports keep as tables."""

from __future__ import annotations

from aws_cdk import Fn, Stack
from aws_cdk import aws_glue as glue
from constructs import Construct


def create_aggregates_database(
    scope: Construct, id: str, *, prefix: str, bucket: str, warehouse: str
) -> glue.CfnDatabase:
    """Create the database. Its name has lower-case letters, digits and underscores: Athena needs quotes for
    other names.

    The name ends in eight digits of the stack's id. A database that an earlier deployment kept has another
    name, and its tables are in that deployment's bucket, which this deployment may not read.
    """
    stack = Stack.of(scope)
    stack_id = Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", stack.stack_id))))
    name = f"{prefix}_aggregates_".replace("-", "_") + stack_id
    return glue.CfnDatabase(
        scope,
        id,
        catalog_id=stack.account,
        database_input=glue.CfnDatabase.DatabaseInputProperty(
            name=name,
            description="Aggregates that exports keep as tables",
            location_uri=f"s3://{bucket}/{warehouse}/{name}",
        ),
    )
