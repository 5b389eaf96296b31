"""What an inventory is made of: one row for each thing that exists, and what is to be thought of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

AWS: Final = "AWS"
CONFLUENT: Final = "Confluent"
SNOWFLAKE: Final = "Snowflake"
#: Whose a thing is that was ours and that no stack has any more; and one that we never made.
ORPHAN: Final = "orphan"
NOT_OURS: Final = "-"


class Verdict(StrEnum):
    """`LEFT_OVER` should not be there. `NOT_ASKED` stands for things that nobody knows of, because they can't be listed."""

    BELONGS = "belongs"
    KEPT = "kept"
    LEFT_OVER = "left over"
    NOT_ASKED = "not asked"


@attrs.frozen
class Item:
    """`whose` is a stack's name, ORPHAN or NOT_OURS. `where` are the ids of what it lies in, the outermost first."""

    world: str
    kind: str
    name: str
    id: str
    whose: str
    verdict: Verdict
    why: str = ""
    where: tuple[str, ...] = ()


@attrs.frozen
class Claim:
    """Who made a thing, and what follows from that."""

    whose: str
    verdict: Verdict
    why: str = ""

    @property
    def is_ours(self) -> bool:
        return self.whose != NOT_OURS

    def item(self, world: str, kind: str, name: str, id: str = "", where: tuple[str, ...] = ()) -> Item:
        return Item(world, kind, name, id or name, self.whose, self.verdict, self.why, where)


def kept(why: str, whose: str = NOT_OURS) -> Claim:
    return Claim(whose, Verdict.KEPT, why)


def left_over(why: str, whose: str = ORPHAN) -> Claim:
    return Claim(whose, Verdict.LEFT_OVER, why)


def not_asked(world: str, kind: str, why: str) -> Item:
    return Item(world, kind, "", "", NOT_OURS, Verdict.NOT_ASKED, f"can't be asked: {why}")
