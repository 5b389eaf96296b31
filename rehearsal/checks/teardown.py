"""Destroyed in the right order, nothing is left in the three worlds but what the file says to keep."""

from __future__ import annotations

from collections import Counter
from typing import Final

from lakeferry import inventory
from lakeferry.inventory import Item
from lakeferry.output import Reporter
from rehearsal.check import Proof, require
from rehearsal.harness import Harness

#: What an organization and an account have before anybody deploys.
_OF_CONFLUENT: Final = {"environments": 1, "api_keys": 1}


def destroyed(stage: Harness, report: Reporter) -> list[Proof]:
    stage.cdk.destroy(report)
    return nothing_left(stage)


def nothing_left(stage: Harness) -> list[Proof]:
    """By our own inventory, and by what the simulators say that they hold."""
    items = inventory.collect(stage.ctx)
    require_nothing_left(items)
    held = {kind: len(ids) for kind, ids in stage.worlds.confluent_objects().items() if ids}
    require(held == _OF_CONFLUENT, f"Confluent still holds {held}")
    kept = Counter(item.system for item in items)
    told = ", ".join(f"{count} in {world}" for world, count in sorted(kept.items()))
    return [Proof("nothing is left over in the three worlds", f"kept by decision: {told or 'nothing'}", {"kept": dict(kept)})]


def require_nothing_left(items: list[Item]) -> None:
    """Raises NotProven."""
    left = inventory.problems(items)
    require(not left, f"left over: {', '.join(f'{item.system} {item.kind} {item.name}' for item in left)}")
