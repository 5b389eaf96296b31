"""`lakeferry init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group

app: Final = command_group()


@command(
    app,
    json_keys={
        "stage": "The deployment stage.",
        "file": "The deployment file.",
        "written": "Whether the file was written.",
        "diff": "The difference between the previous file and the new one.",
        "not_stored": "Names of the secrets that hold the keys. `init` doesn't store them.",
        "next": "The next commands.",
    },
    stage=True,
    yes=True,
)
def init(
    call: CommandContext,
    *,
    name: Annotated[str | None, typer.Option(help="The deployment's name.")] = None,
    owner: Annotated[str | None, typer.Option(help="The owner of the deployment: a team or a role.")] = None,
    region: Annotated[
        str | None, typer.Option(help="The AWS region of the deployment and of the Kafka cluster.")
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            help="Tables that exist, for which only exports are deployed: their Glue database, or, if "
            "Confluent stores them, its REST Catalog Endpoint; or none."
        ),
    ] = None,
    bucket: Annotated[str | None, typer.Option(help="The bucket that the tables in Glue are in.")] = None,
    tableflow_key: Annotated[
        str | None,
        typer.Option(
            help="The name of the secret with a Tableflow API key that may read the tables at Confluent."
        ),
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="The Confluent environment: new, or the id of an existing one.")
    ] = None,
    environment_name: Annotated[
        str | None, typer.Option(help="The name of the existing environment.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The Kafka cluster: new, or the id of one that exists.")
    ] = None,
    snowflake: Annotated[
        str | None, typer.Option(help="The Snowflake account as organization-account, or none.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option(help="example, or the names of your own topics, separated by commas.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="When exports run: a time like 06:00, or a cron expression with six fields."),
    ] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of the schedule.")] = None,
    recipients: Annotated[
        str | None,
        typer.Option(help="Mail addresses that receive mails about files, separated by commas, or none."),
    ] = None,
    engineers: Annotated[
        str | None, typer.Option(help="Mail addresses that receive alarms, separated by commas.")
    ] = None,
) -> Mapping[str, Any]:
    """Write a stage's deployment file from a few questions with defaults; the answers are remembered."""
    from lakeferry.init import run

    flags = {
        "name": name, "owner": owner, "region": region, "tables": tables, "bucket": bucket,
        "tableflow_key": tableflow_key, "environment": environment, "environment_name": environment_name,
        "cluster": cluster, "snowflake": snowflake, "topics": topics, "schedule": schedule, "zone": zone,
        "recipients": recipients, "engineers": engineers,
    }  # fmt: skip
    return run.init(call.output, call.stage, flags, yes=call.yes)
