"""Rules about people who query tables. They are rules like those of rules.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments.model import Deployment
from config.deployments.snowflake_model import Snowflake
from config.deployments.sources import Sources

Finding = tuple[str, str]
#: Schemas that Snowflake creates in each database.
_OWN_SCHEMAS: Final = ("PUBLIC", "INFORMATION_SCHEMA")
#: A role that every user of the account has.
_EVERYBODY: Final = "PUBLIC"


def people_in_snowflake_are_named_once(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`grant_to_users` and `grant_to_roles` have each name once, and neither the deployer nor PUBLIC, which
    every user has.
    """
    snowflake = deployment.snowflake
    if snowflake is None:
        return
    deployers = {"grant_to_users": snowflake.user, "grant_to_roles": snowflake.role}
    for key, deployer in deployers.items():
        seen: set[str] = set()
        for name in getattr(snowflake, key):
            if name.upper() in seen:
                yield f"snowflake.{key}", f"has {name} twice. Remove one"
            seen.add(name.upper())
            if name.upper() == deployer.upper():
                yield f"snowflake.{key}", f"{name} is the deployer's, which owns the tables and sees all"
    if any(role.upper() == _EVERYBODY for role in snowflake.grant_to_roles):
        yield (
            "snowflake.grant_to_roles",
            "every user of the account has PUBLIC. Name the roles of those who are to read the tables",
        )


def views_have_a_schema_of_their_own(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`views_schema` is neither the schema of the tables nor one that Snowflake creates, and the roles of the
    deployment have different names.
    """
    snowflake = deployment.snowflake
    if snowflake is None:
        return
    views = snowflake.views_schema.upper()
    if views == (snowflake.schema or "").upper():
        yield (
            "snowflake.views_schema",
            f"{snowflake.views_schema} is the schema of the tables, which people can't use. Choose another",
        )
    if views in _OWN_SCHEMAS:
        yield "snowflake.views_schema", f"Snowflake creates {views} in every database. Choose another"
    yield from _find_same_roles(snowflake)


def aggregates_in_snowflake_have_names(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`snowflake.aggregates` needs an export that keeps its aggregates as a table, and no table of a topic
    has the name of such an export.
    """
    if not deployment.shows_aggregates:
        return
    # A contract that can't be read is reported by another rule.
    contracts = [sources.plain_contract(export.contract) for export in deployment.exports]
    kept = [contract.name for contract in contracts if contract and contract.keeps_table]
    if not kept:
        yield (
            "snowflake.aggregates",
            "no export keeps its aggregates as a table. Set keep_as_table = true in a contract that "
            "aggregates, or leave this key out",
        )
    names = {name.upper(): name for name in kept}
    for index, topic in enumerate(deployment.topics):
        table = (topic.tableflow and topic.tableflow.snowflake_table) or ""
        if export := names.get(table.upper()):
            yield (
                f"topics[{index}].tableflow.snowflake_table",
                f"{table} is the name of the table with the aggregates of {export} too. Choose another",
            )


def people_in_athena_see_columns_only(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`athena_readers` needs `lake_formation` and a bucket of tables that the deployment creates.

    With IAM alone, Athena reads files with the rights of who asks, and IAM knows no columns.
    """
    aws = deployment.aws
    key = "aws.athena_readers"
    if not aws.athena_readers:
        return
    if not aws.lake_formation:
        yield (
            key,
            "needs lake_formation = true. With IAM alone, who may query a table with Athena may read its "
            "files with all columns. Let Lake Formation govern the catalog, or use grant_to_users under "
            "[snowflake]",
        )
    if deployment.source or aws.existing_tableflow_bucket or not deployment.uses_own_bucket:
        yield (
            key,
            "needs tables in a bucket that Lakeferry creates: it registers this bucket with Lake Formation, "
            "and a bucket of somebody else is theirs to register",
        )
    for index, arn in enumerate(aws.athena_readers):
        if arn in aws.athena_readers[:index]:
            yield key, f"has {arn} twice. Remove one"
        if aws.account and arn.split(":")[4] != aws.account:
            yield key, f"{arn} is of another account, and the deployment is for {aws.account}"


def _find_same_roles(snowflake: Snowflake) -> Iterator[Finding]:
    taken = {snowflake.role.upper(): "role"}
    for key in ("people_role", "raw_role"):
        name = getattr(snowflake, key)
        if name is None:
            continue
        if other := taken.get(name.upper()):
            yield f"snowflake.{key}", f"{name} is {other} too. Choose another"
        taken.setdefault(name.upper(), key)
        if any(name.upper() == role.upper() for role in snowflake.grant_to_roles):
            yield (
                f"snowflake.{key}",
                f"{name} is in grant_to_roles, and the deployment creates it",
            )
