"""The Glue job that creates the tables of aggregates at a deployment, before the exports' first runs."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from lambdas import contract
from stacks.constructs.export_job import ExportJobs
from stacks.constructs.statements import Statement, allow
from stacks.constructs.synthesis import build_own_arn

#: The job only changes metadata. Two workers are the fewest that Glue starts.
_WORKERS: Final = 2
_TIMEOUT_MINUTES: Final = 15


def name_table_job(prefix: str) -> str:
    return f"{prefix}-{contract.AGGREGATE_TABLES}"


def create_table_job(
    scope: Construct,
    id: str,
    *,
    jobs: ExportJobs,
    role: iam.IRole,
    zip_asset: s3_assets.Asset,
    tables: int,
) -> glue.CfnJob:
    """Return the job. `role` and `zip_asset` are those of the exports' jobs: they write the same tables.

    `tables` is how many there are at most: their runs start together.
    """
    return jobs.create_job(
        Construct(scope, id),
        name=name_table_job(jobs.prefix),
        description="Creates the tables of aggregates at a deployment",
        role=role,
        arguments={
            "--prepare-table": "true",
            "--database": jobs.lake.aggregates,
            **jobs.list_common_arguments(zip_asset),
        },
        workers=_WORKERS,
        timeout_minutes=_TIMEOUT_MINUTES,
        runs_at_once=tables,
    )


def may_create_tables(scope: Construct, prefix: str) -> Statement:
    return allow(
        "CreateAggregateTables",
        ["glue:StartJobRun", "glue:GetJobRuns"],
        [build_own_arn(scope, "glue", f"job/{name_table_job(prefix)}")],
    )
