"""`lakeferry secrets …`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import LATER, CommandFailed

app: Final = command_group("secrets", "The two keys that you make: Confluent's Cloud key and Snowflake's key pair.")


class Vendor(StrEnum):
    CONFLUENT = "confluent"
    SNOWFLAKE = "snowflake"


@command(
    app,
    "set",
    json_keys={
        "stage": "The deployment stage.",
        "vendor": "`confluent` or `snowflake`.",
        "key": "What may be told of it: id, scope, owner and roles, or fingerprint, user, account and state "
        "(`current`, or `waiting` for an admin).",
        "secret": "Its name in Secrets Manager, from the deployment file.",
        "arn": "Its ARN.",
        "version": "The version that is current now.",
        "changed": "Whether the current value is another one than before; that one is kept as AWSPREVIOUS.",
        "sql": "What an admin of Snowflake runs, where somebody has to.",
    },
    exits=(LATER,),
    stage=True,
)
def set_(
    call: CommandContext,
    *,
    vendor: Annotated[Vendor, typer.Argument(help="Whose key it is.")],
    key_id: Annotated[str | None, typer.Option(help="Confluent: the key's id, which is no secret.")] = None,
    wait: Annotated[int, typer.Option(help="Confluent: seconds that a key which was made just now may take.")] = 0,
    generate: Annotated[
        bool, typer.Option("--generate", help="Snowflake: make a new key pair; the next call proves it and makes it current.")
    ] = False,
) -> Mapping[str, Any]:
    """Read a key from hidden prompts or standard input, prove it at the vendor, and keep it in Secrets Manager."""
    from lakeferry.credentials import confluent, snowflake
    from lakeferry.deployment.context import open_context

    _require_sense(vendor, of_confluent=bool(key_id or wait), of_snowflake=generate)
    with open_context(call.stage) as ctx:
        if vendor is Vendor.CONFLUENT:
            return confluent.store(call.output, ctx, key_id, wait)
        return snowflake.generate(call.output, ctx) if generate else snowflake.store(call.output, ctx)


def _require_sense(vendor: Vendor, *, of_confluent: bool, of_snowflake: bool) -> None:
    if vendor is Vendor.CONFLUENT and of_snowflake:
        hint = "Make the key in Confluent's console or with `confluent api-key create --resource cloud`"
        raise CommandFailed("USAGE", "--generate is for snowflake: Confluent makes its keys itself", hint)
    if vendor is Vendor.SNOWFLAKE and of_confluent:
        raise CommandFailed("USAGE", "--key-id and --wait are for confluent", "Leave them out")
