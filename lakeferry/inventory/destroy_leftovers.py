"""Removes what no stack has any more, kind by kind, and waits until each thing is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import AWS, Item, Verdict, destroy_aws, destroy_vendors
from lakeferry.inventory.destroy_aws import Aws
from lakeferry.inventory.destroy_vendors import Vendors
from lakeferry.output import Reporter
from lambdas.custom_resources import registry
from lambdas.shared.errors import LakeferryError, Transient

#: Snowflake's and Confluent's things go first: they read what is in AWS.
ORDER: Final = (*destroy_vendors.ORDER, *destroy_aws.ORDER)
_KEYS: Final = ("secret", "kms_key", "role_binding", "api_key", "service_account")
_POLL: Final = 5.0
_PATIENCE: Final = 600.0


@attrs.frozen
class Outcome:
    """`stuck` are those that would not go, each with the reason."""

    removed: tuple[Item, ...] = ()
    stuck: tuple[tuple[Item, str], ...] = ()


def removable(items: Iterable[Item]) -> list[Item]:
    """What shall go, in the order in which it does. What lies in an environment that goes, goes with it.

    Keys and whose they are stay for as long as something can't be asked for: nothing else may be able to.
    """
    listed = list(items)
    silent = any(item.verdict is Verdict.NOT_ASKED and item.world != AWS for item in listed)
    left = [item for item in listed if item.verdict is Verdict.LEFT_OVER and item.kind in ORDER]
    left = [item for item in left if not (silent and item.kind in _KEYS)]
    environments = {item.id for item in left if item.kind == "environment"}
    mine = [item for item in left if not (item.where and item.where[0] in environments)]
    return sorted(mine, key=lambda item: ORDER.index(item.kind))


def remove(ctx: DeploymentContext, items: Iterable[Item], report: Reporter) -> Outcome:
    """Raises CommandFailed."""
    wanted = removable(items)
    work = _Work(ctx, Aws(ctx), Vendors(ctx), report)
    for kind in dict.fromkeys(item.kind for item in wanted):
        work.remove([item for item in wanted if item.kind == kind])
    return Outcome(tuple(work.removed), tuple(work.stuck))


@attrs.define
class _Work:
    ctx: DeploymentContext
    aws: Aws
    vendors: Vendors
    report: Reporter
    removed: list[Item] = attrs.field(factory=list)
    stuck: list[tuple[Item, str]] = attrs.field(factory=list)

    def remove(self, items: list[Item]) -> None:
        """All of one kind, together."""
        began = self.ctx.clock.time()
        while items:
            items = list(self._still_there(items, self.ctx.clock.time() - began))
            if items:
                self.ctx.clock.sleep(_POLL)

    def _still_there(self, items: list[Item], waited: float) -> Iterator[Item]:
        for item in items:
            self.report(f"{item.kind} {item.name}")
            why, patience = self._try(item)
            if why is None:
                self.removed.append(item)
            elif waited >= patience:
                self.stuck.append((item, why))
            else:
                yield item

    def _try(self, item: Item) -> tuple[str | None, float]:
        """Why it is still there, and how many seconds that may last; None where it is gone."""
        try:
            gone = self.aws.gone(item) if item.world == AWS else self.vendors.gone(item)
        except LakeferryError as error:
            return f"{error.row.code}: {error.what}", self._patience(item) if isinstance(error, Transient) else error.patience
        except ClientError as error:
            return str(error.response.get("Error", {}).get("Code", "")), _PATIENCE / 10
        except BotoCoreError as error:
            return type(error).__name__, _PATIENCE / 10
        return (None, 0.0) if gone else ("it is still there", self._patience(item))

    def _patience(self, item: Item) -> float:
        return _PATIENCE if item.world == AWS else registry.find(item.kind).handler.TIMEOUT_SECONDS
