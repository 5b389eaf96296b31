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
        "written": "Whether it was written.",
        "diff": "The difference between the previous file and the new one.",
        "not_stored": "Names of the secrets that hold the keys.",
        "next": "Commands that come next.",
    },
    stage=True,
    yes=True,
)
def init(
    call: CommandContext,
    *,
    name: Annotated[str | None, typer.Option(help="The deployment's name.")] = None,
    owner: Annotated[str | None, typer.Option(help="The owner: a team or a role.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region, also that of the Kafka cluster.")] = None,
    environment: Annotated[str | None, typer.Option(help="Confluent's environment: new, or the id of one that exists.")] = None,
    environment_name: Annotated[str | None, typer.Option(help="The name of that environment.")] = None,
    snowflake: Annotated[str | None, typer.Option(help="Snowflake's account, organization-account, or none.")] = None,
    topics: Annotated[str | None, typer.Option(help="example, or names of your own topics with commas between them.")] = None,
    schedule: Annotated[str | None, typer.Option(help="When exports run: a time like 06:00, or six fields of cron.")] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of the schedule.")] = None,
    recipients: Annotated[str | None, typer.Option(help="Who gets the files by mail, with commas between them, or none.")] = None,
    engineers: Annotated[str | None, typer.Option(help="Who gets alarms, with commas between them.")] = None,
) -> Mapping[str, Any]:
    """Write a stage's deployment file from a few questions with defaults; the answers are remembered."""
    from lakeferry.init import run

    flags = {
        "name": name, "owner": owner, "region": region, "environment": environment, "environment_name": environment_name,
        "snowflake": snowflake, "topics": topics, "schedule": schedule, "zone": zone, "recipients": recipients,
        "engineers": engineers,
    }  # fmt: skip
    return run.init(call.output, call.stage, flags, yes=call.yes)
