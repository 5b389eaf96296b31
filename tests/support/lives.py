"""The life of a resource type in tests."""

from __future__ import annotations

from typing import NamedTuple


class Life(NamedTuple):
    """`properties` creates what the type needs and returns the first properties. `changed` are changes in
    place, `moved` changes that replace the object. `shown` counts the simulator's objects of one resource;
    `beside` are shared kinds that remain.
    """

    properties: object
    changed: dict[str, object]
    moved: dict[str, object]
    shown: dict[str, int]
    beside: tuple[str, ...] = ()
