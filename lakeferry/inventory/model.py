"""The rows of an inventory: each object that exists, its owner, and whether it should exist."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

AWS: Final = "AWS"
CONFLUENT: Final = "Confluent"
SNOWFLAKE: Final = "Snowflake"
#: The kind of CloudFormation stacks.
STACK: Final = "stack"
#: The owner of the deployment's objects that no stack manages any more.
ORPHAN: Final = "orphan"
#: The owner of objects that the deployment didn't create.
NOT_OURS: Final = "-"


class Verdict(StrEnum):
    """`ORPHANED` objects should not exist. `UNKNOWN` stands for a system or kind that can't be listed."""

    MANAGED = "managed"
    RETAINED = "retained"
    ORPHANED = "orphaned"
    UNKNOWN = "unknown"


@attrs.frozen
class Item:
    """`owner` is a stack's name, ORPHAN or NOT_OURS.

    `parents` are the ids of its containers, the outermost first. `stored_by_vendor` says that the vendor has
    the rows of the table, and deletes them with it.
    """

    system: str
    kind: str
    name: str
    id: str
    owner: str
    verdict: Verdict
    why: str = ""
    parents: tuple[str, ...] = ()
    stored_by_vendor: bool = False

    @property
    def name_in_comment(self) -> str:
        """Return the name in the comment of a Snowflake object. The comment is the item's `id`."""
        return self.id.partition("lakeferry ")[2].split(" ")[0]


@attrs.frozen
class Ownership:
    """The owner of an object, and the verdict that follows from it."""

    owner: str
    verdict: Verdict
    why: str = ""

    @property
    def is_ours(self) -> bool:
        return self.owner != NOT_OURS

    def item(self, system: str, kind: str, name: str, id: str = "", parents: tuple[str, ...] = ()) -> Item:
        return Item(system, kind, name, id or name, self.owner, self.verdict, self.why, parents)


def retained(why: str, owner: str = NOT_OURS) -> Ownership:
    return Ownership(owner, Verdict.RETAINED, why)


def orphaned(why: str, owner: str = ORPHAN) -> Ownership:
    return Ownership(owner, Verdict.ORPHANED, why)


def unknown(system: str, kind: str, why: str) -> Item:
    return Item(system, kind, "", "", NOT_OURS, Verdict.UNKNOWN, f"can't be listed: {why}")
