"""How resource types find their objects, and how they treat missing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from lambdas.confluent.client import Confluent, text
from lambdas.shared import errors
from lambdas.shared.errors import Denied, NotFound, ParentMissing, ResourceMissing
from lambdas.shared.resource import Context

Ctx: TypeAlias = Context[Confluent]


def existing(body: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """Return the body. Raises ResourceMissing if it is None."""
    if body is None:
        raise ResourceMissing(errors.VANISHED, f"{what} does not exist")
    return body


def known_and_named(
    known: str | None,
    read: Callable[[str], dict[str, Any] | None],
    listed: Iterable[dict[str, Any]],
    name: str,
    *where: str,
) -> list[str]:
    """Return ids: the known id if its object exists, then the ids of all other objects whose field at `where` is `name`."""
    ids = [known] if known and read(known) is not None else []
    named = (text(item, "id") for item in listed if text(item, *where) == name)
    return ids + [one for one in named if one and one not in ids]


def in_container(context: Ctx, container_is_gone: Callable[[], bool], look: Callable[[], list[str]]) -> list[str]:
    """Return what `look` returns. An object to delete counts as gone if its container is gone, whatever its API answers."""
    try:
        return look()
    except (Denied, NotFound, ParentMissing):
        if context.deleting and container_is_gone():
            return []
        raise
