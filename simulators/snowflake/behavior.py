"""Behavior of an account that a test may choose: how slow statements are, and how answers are cut."""

from __future__ import annotations

import re
from typing import Any

import attrs


@attrs.define
class Slowness:
    """The next `times` statements whose text the regular expression finds take that many seconds."""

    statement: str
    seconds: float
    times: int = 1

    def __attrs_post_init__(self) -> None:
        re.compile(self.statement)


@attrs.define
class Behavior:
    """`prefix` stands before the two ids in DESC CATALOG INTEGRATION: GLUE_AWS_… or API_AWS_…; accounts differ."""

    partition_rows: int = 10_000
    most_rows: int = 1_000_000
    prefix: str = "GLUE"
    slow: list[Slowness] = attrs.Factory(list)

    def change(self, given: dict[str, Any]) -> None:
        """Change the behavior. Raises ValueError and TypeError."""
        slow = given.pop("slow", None)
        for name, value in given.items():
            if name not in ("partition_rows", "most_rows", "prefix"):
                raise ValueError(f"{name}: give partition_rows, most_rows, prefix or slow")
            setattr(self, name, value)
        if slow is not None:
            self.slow = [Slowness(**each) for each in slow]

    def seconds_of(self, statement: str) -> float:
        """How long it takes; counts it."""
        for each in self.slow:
            if each.times > 0 and re.search(each.statement, statement):
                each.times -= 1
                return each.seconds
        return 0.0
