"""What an inventory consists of: one row for each thing that exists, its owner, and whether it should exist."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

AWS: Final = "AWS"
CONFLUENT: Final = "Confluent"
SNOWFLAKE: Final = "Snowflake"
#: The kind of CloudFormation's stacks.
STACK: Final = "stack"
#: The owner of what was the deployment's and is in no stack any more; and of what the deployment never created.
ORPHAN: Final = "orphan"
NOT_OURS: Final = "-"


class Verdict(StrEnum):
    """`ORPHANED` should not exist. `UNKNOWN` stands for what can't be listed."""

    MANAGED = "belongs"
    RETAINED = "kept"
    ORPHANED = "left over"
    UNKNOWN = "not asked"


@attrs.frozen
class Item:
    """`whose` is a stack's name, ORPHAN or NOT_OURS. `where` are the ids of what contains it, the outermost first."""

    world: str
    kind: str
    name: str
    id: str
    whose: str
    verdict: Verdict
    why: str = ""
    where: tuple[str, ...] = ()


@attrs.frozen
class Ownership:
    """The owner of a thing, and what follows from that."""

    owner: str
    verdict: Verdict
    why: str = ""

    @property
    def is_ours(self) -> bool:
        return self.owner != NOT_OURS

    def item(self, world: str, kind: str, name: str, id: str = "", where: tuple[str, ...] = ()) -> Item:
        return Item(world, kind, name, id or name, self.owner, self.verdict, self.why, where)


def retained(why: str, owner: str = NOT_OURS) -> Ownership:
    return Ownership(owner, Verdict.RETAINED, why)


def orphaned(why: str, owner: str = ORPHAN) -> Ownership:
    return Ownership(owner, Verdict.ORPHANED, why)


def unknown(world: str, kind: str, why: str) -> Item:
    return Item(world, kind, "", "", NOT_OURS, Verdict.UNKNOWN, f"can't be asked: {why}")
