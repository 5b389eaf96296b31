"""`lakeferry secrets …`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import LATER, CommandFailed

app: Final = command_group(
    "secrets", "The two keys that you create: Confluent's Cloud key and Snowflake's key pair."
)


class Vendor(StrEnum):
    CONFLUENT = "confluent"
    SNOWFLAKE = "snowflake"


@command(
    app,
    "set",
    json_keys={
        "stage": "The deployment stage.",
        "vendor": "`confluent` or `snowflake`.",
        "key": (
            "The public part of the key: id, scope, owner and roles, or fingerprint, user, account and "
            "state (`current`, or `waiting` for an admin)."
        ),
        "secret": "The name of the secret in Secrets Manager, from the deployment file.",
        "arn": "The secret's ARN.",
        "version": "The version that is current now.",
        "changed": "Whether the value changed; the previous one remains as AWSPREVIOUS.",
        "sql": "The statement that a Snowflake admin has to run, if any.",
    },
    exits=(LATER,),
    stage=True,
)
def set_(
    call: CommandContext,
    *,
    vendor: Annotated[Vendor, typer.Argument(help="The vendor of the key.")],
    key_id: Annotated[
        str | None, typer.Option(help="Confluent: the id of the key, which is not secret.")
    ] = None,
    wait: Annotated[int, typer.Option(help="Confluent: seconds to wait for a new key to become valid.")] = 0,
    generate: Annotated[
        bool,
        typer.Option(
            "--generate",
            help="Snowflake: generate a key pair; the next call verifies it and makes it current.",
        ),
    ] = False,
) -> Mapping[str, Any]:
    """Read a key from hidden prompts or standard input, verify it with the vendor, and store it in Secrets
    Manager.
    """
    from lakeferry.credentials import confluent, snowflake
    from lakeferry.deployment.context import open_context

    if vendor is Vendor.CONFLUENT and generate:
        hint = "Create the key in Confluent's console or with `confluent api-key create --resource cloud`"
        raise CommandFailed("USAGE", "--generate is for snowflake: Confluent creates its keys itself", hint)
    if vendor is Vendor.SNOWFLAKE and (key_id or wait):
        raise CommandFailed("USAGE", "--key-id and --wait are for confluent", "Leave them out")
    with open_context(call.stage) as ctx:
        if vendor is Vendor.CONFLUENT:
            return confluent.store(call.output, ctx, key_id, wait)
        return snowflake.generate(call.output, ctx) if generate else snowflake.store(call.output, ctx)
