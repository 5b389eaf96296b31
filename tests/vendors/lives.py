"""What is told of each kind's life."""

from __future__ import annotations

from typing import NamedTuple


class Life(NamedTuple):
    """`properties` makes what the kind needs and tells its first properties; `changed` are other values of some of them,
    `moved` such that make another object. `shown` are kinds of the simulator's objects that one resource is, and `beside`
    those that come with it and stay for others."""

    properties: object
    changed: dict[str, object]
    moved: dict[str, object]
    shown: dict[str, int]
    beside: tuple[str, ...] = ()
