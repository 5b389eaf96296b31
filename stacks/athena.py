"""Athena: saved queries, and people whom the deployment file names, who query the tables without what is
personal.
"""

from __future__ import annotations

from config.deployments.shown_columns import Shown, find_shown_columns
from stacks.base import LakeferryStack
from stacks.constructs.athena_people import AthenaPeople, PeoplesTables, Results
from stacks.constructs.queries import AGGREGATE_QUERIES, create_named_queries
from stacks.data import SCAN_LIMIT_BYTES
from stacks.lake import Lake


def let_people_query(stack: LakeferryStack, lake: Lake, database: str) -> None:
    """Create what people need, in a stack that is deployed when the tables exist.

    A table of which nobody knows what is personal is not granted.
    """
    deployment = stack.deployment
    columns: dict[str, list[str]] = {}
    for topic in deployment.tables_in_glue:
        shown = find_shown_columns(topic, stack.loaded.sources, deployment)
        if isinstance(shown, Shown):
            columns[topic.table] = [column.lower() for column in shown.columns]
    people = AthenaPeople(
        stack,
        "AthenaPeople",
        name=f"{deployment.prefix}-people",
        tables=PeoplesTables(database, lake.tableflow_arn, lake.tableflow_key_arn, columns),
        results=Results(lake.bucket, lake.arn, lake.prefixes.people, lake.key_arn),
        readers=deployment.aws.athena_readers,
        scan_limit_bytes=SCAN_LIMIT_BYTES,
    )
    stack.output("AthenaPeopleWorkgroup", people.workgroup.name, "Workgroup of people who query with Athena")
    stack.output(
        "AthenaPeoplePolicyArn",
        people.policy.managed_policy_arn,
        "Policy to attach to the roles and users in athena_readers",
    )


def save_queries(stack: LakeferryStack, lake: Lake, database: str) -> None:
    """Save queries on the tables of topics, which are in `database`, and on the tables of aggregates."""
    deployment = stack.deployment
    create_named_queries(
        stack,
        prefix=deployment.prefix,
        tables={topic.name: topic.table for topic in deployment.tables_in_glue},
        database=database,
        workgroup=lake.workgroup,
    )
    sources = stack.loaded.sources
    kept = [
        export.contract
        for export in deployment.exports
        if sources.contract(export.contract, None).keeps_table
    ]
    create_named_queries(
        stack,
        prefix=deployment.prefix,
        tables={name: name for name in kept},
        database=lake.aggregates,
        workgroup=lake.workgroup,
        queries=AGGREGATE_QUERIES,
    )
