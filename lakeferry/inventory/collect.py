"""Takes the inventory: each world is asked for itself, and one that can't be asked is told, never taken for empty."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory import aws, confluent, snowflake, stacks
from lakeferry.inventory.model import CONFLUENT, SNOWFLAKE, Item, Verdict, not_asked
from lakeferry.inventory.stacks import Stacks
from lakeferry.inventory.vendor_names import VendorNames
from lambdas.shared.errors import LakeferryError


def take(ctx: DeploymentContext) -> list[Item]:
    """Raises CommandFailed where AWS can't be asked at all: everything else begins there."""
    with translate_aws_errors("asking for the stacks"):
        known = stacks.read(ctx)
    names = VendorNames(ctx.deployment, ctx.account, known)
    looks = [lambda: aws.take(ctx, known), lambda: _asked(CONFLUENT, lambda: confluent.take(ctx, names))]
    if _uses_snowflake(ctx, known):
        looks.append(lambda: _asked(SNOWFLAKE, lambda: snowflake.take(ctx, names)))
    with ThreadPoolExecutor(len(looks)) as threads:
        found = [threads.submit(look) for look in looks]
    return [item for each in found for item in each.result()]


def problems(items: list[Item]) -> list[Item]:
    """What keeps an inventory from being as it should."""
    return [item for item in items if item.verdict in (Verdict.LEFT_OVER, Verdict.NOT_ASKED)]


def _uses_snowflake(ctx: DeploymentContext, known: Stacks) -> bool:
    """Also where the file wants nothing there any more, and there is a stack that has."""
    name = f"{ctx.deployment.prefix}-snowflake"
    had = any(stack.name == name for stack in (*known.now, *known.former))
    return ctx.deployment.uses_snowflake or (had and ctx.deployment.snowflake is not None)


def _asked(world: str, look: Callable[[], list[Item]]) -> list[Item]:
    try:
        return look()
    except CommandFailed as failure:
        return [not_asked(world, "", f"{failure.code}: {failure.message}")]
    except LakeferryError as error:
        return [not_asked(world, "", f"{error.row.code}: {error.what}")]
    except (ClientError, BotoCoreError) as error:
        return [not_asked(world, "", f"its key can't be read from AWS: {type(error).__name__}")]
