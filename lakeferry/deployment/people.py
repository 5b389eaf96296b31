"""How people reach the tables: the login, a first query, and the tables that they don't see, with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from config.deployments.shown_columns import Unshown, find_shown_columns
from lakeferry.deployment.context import DeploymentContext
from lakeferry.output import Output


def tell(output: Output, ctx: DeploymentContext, outputs: Mapping[str, str]) -> None:
    """Print it. `outputs` are those of the stacks, by name."""
    for line in describe(ctx, outputs):
        output.print(line)


def describe(ctx: DeploymentContext, outputs: Mapping[str, str]) -> Iterator[str]:
    """Yield lines about Snowflake and Athena, none for a deployment that lets nobody in."""
    yield from _describe_snowflake(ctx, outputs)
    yield from _describe_athena(ctx, outputs)


def _describe_athena(ctx: DeploymentContext, outputs: Mapping[str, str]) -> Iterator[str]:
    workgroup = outputs.get("AthenaPeopleWorkgroup", "")
    if not workgroup:
        return
    yield "\nPeople in Athena:"
    region = ctx.region
    yield f"  log in: https://{region}.console.aws.amazon.com/athena/home?region={region}#/query-editor"
    yield f"  workgroup: {workgroup}"
    yield f"  policy to attach to them: {outputs.get('AthenaPeoplePolicyArn', '')}"
    for topic in ctx.deployment.tables_in_glue:
        shown = find_shown_columns(topic, ctx.loaded.sources, ctx.deployment)
        if isinstance(shown, Unshown):
            yield f"  no access to {topic.table}: {shown.reason}"


def _describe_snowflake(ctx: DeploymentContext, outputs: Mapping[str, str]) -> Iterator[str]:
    settings = ctx.deployment.snowflake
    schema = outputs.get("ViewsSchemaName", "")
    if settings is None or not ctx.deployment.uses_snowflake or not schema:
        return
    role = outputs.get("PeopleRoleName", "")
    yield "\nPeople in Snowflake:"
    yield f"  log in: https://app.snowflake.com/{settings.account.replace('-', '/', 1).lower()}"
    yield f"  role: {role}; warehouse: {outputs.get('WarehouseName', '')}"
    tables = [topic for topic in ctx.deployment.tables if topic.tableflow and topic.tableflow.snowflake_table]
    unseen: dict[str, str] = {}
    example = ""
    for topic in tables:
        shown = find_shown_columns(topic, ctx.loaded.sources, ctx.deployment)
        table = (topic.tableflow and topic.tableflow.snowflake_table) or ""
        if isinstance(shown, Unshown):
            unseen[table] = shown.reason
        else:
            example = example or " ".join(("SELECT * FROM", f"{schema}.{table.upper()}", "LIMIT 10"))
    if example:
        yield f"  first query: {example}"
    for table, reason in unseen.items():
        yield f"  no view of {table}: {reason}"
    if not (settings.grant_to_users or settings.grant_to_roles):
        yield "  nobody has the role yet: name people in grant_to_users or grant_to_roles under [snowflake]"
