"""Collects the inventory of AWS, Confluent and Snowflake.

One that can't be listed is reported, never assumed to be empty.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory import aws, confluent, snowflake
from lakeferry.inventory.model import CONFLUENT, SNOWFLAKE, Item, Verdict, unknown
from lakeferry.inventory.ownership import VendorNames, read_history
from lambdas.shared.errors import LakeferryError


def collect(ctx: DeploymentContext) -> list[Item]:
    """Raises CommandFailed if CloudFormation can't be read: everything else starts from its stacks."""
    with translate_aws_errors("reading the stacks"):
        history = read_history(ctx)
        names = VendorNames(ctx.deployment, ctx.account, history)
        reads = [lambda: aws.list_items(ctx, history)]
        if ctx.deployment.confluent or history.may_have_left(f"{ctx.deployment.prefix}-confluent"):
            reads.append(lambda: _list_guarded(CONFLUENT, lambda: _list_confluent(ctx, names)))
        stack = f"{ctx.deployment.prefix}-snowflake"
        if ctx.deployment.snowflake is None:
            may_have_objects = history.may_have_left(stack)
        else:
            may_have_objects = history.had(stack)
        if ctx.deployment.uses_snowflake or may_have_objects:
            reads.append(lambda: _list_guarded(SNOWFLAKE, lambda: _list_snowflake(ctx, names)))
        with ThreadPoolExecutor(len(reads)) as pool:
            answers = [pool.submit(read) for read in reads]
        return [item for answer in answers for item in answer.result()]


def problems(items: list[Item]) -> list[Item]:
    """Return the orphans, and what could not be listed."""
    return [item for item in items if item.verdict in (Verdict.ORPHANED, Verdict.UNKNOWN)]


def _list_confluent(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """List Confluent Cloud. An earlier stack may have left objects there, although the file has no
    `[confluent]` any more.

    Raises CommandFailed, LakeferryError.
    """
    if ctx.deployment.confluent is None:
        return [unknown(CONFLUENT, "", "the file has no [confluent]; put it back instead of [source]")]
    return confluent.list_items(ctx, names)


def _list_snowflake(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """List Snowflake even if the file no longer uses it, because an earlier stack may have left objects.

    Raises CommandFailed, LakeferryError.
    """
    if ctx.deployment.snowflake is None:
        return [
            unknown(SNOWFLAKE, "", "the file has no [snowflake]; put the table back, with enabled = false")
        ]
    return snowflake.list_items(ctx, names)


def _list_guarded(system: str, read: Callable[[], list[Item]]) -> list[Item]:
    try:
        return read()
    except CommandFailed as failure:
        return [unknown(system, "", f"{failure.code}: {failure.message}")]
    except LakeferryError as error:
        return [unknown(system, "", f"{error.kind.code}: {error.what}")]
    except (ClientError, BotoCoreError) as error:
        return [unknown(system, "", f"its key can't be read from AWS: {type(error).__name__}")]
