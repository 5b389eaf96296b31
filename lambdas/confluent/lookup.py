"""How the kinds find their objects, and what they make of not finding them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from lambdas.confluent.client import Confluent, text
from lambdas.shared import errors
from lambdas.shared.errors import Denied, NotFound, ParentMissing, ResourceMissing
from lambdas.shared.resource import Context

Ctx: TypeAlias = Context[Confluent]


def existing(body: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """Raises ResourceMissing where there is no body."""
    if body is None:
        raise ResourceMissing(errors.VANISHED, f"{what} is not there")
    return body


def known_and_named(
    known: str | None,
    read: Callable[[str], dict[str, Any] | None],
    listed: Iterable[dict[str, Any]],
    name: str,
    *where: str,
) -> list[str]:
    """Ids: the one that we remember, if it is still there, then all others that carry our name at `where`."""
    ids = [known] if known and read(known) is not None else []
    named = (text(item, "id") for item in listed if text(item, *where) == name)
    return ids + [one for one in named if one and one not in ids]


def in_container(context: Ctx, container_is_gone: Callable[[], bool], look: Callable[[], list[str]]) -> list[str]:
    """What `look` finds. An object that shall go is gone when what it was in is gone, whatever its own plane answers."""
    try:
        return look()
    except (Denied, NotFound, ParentMissing):
        if context.deleting and container_is_gone():
            return []
        raise
