"""What our objects are called, and how they are known to be ours.

Snowflake gives no ids, so names are identities: deterministic, in plain capitals, told from all other resources by the mark
in `context.name`. The comment holds the same name: an object of our name without it is somebody else's, and is neither
changed nor dropped, also where the user chose the name.

External ids are made of `context.origin`, which a resource keeps when it is replaced: the new volume presents the id that
the role's trust already names. It holds the stack's id, so no other stack, and no later one of the same name, has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lambdas.shared.resource import Context
from lambdas.snowflake import sql
from lambdas.snowflake.sql import Sql

_CHOSEN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CHOSEN: Final = "letters, digits and underscores; Snowflake shows them in capitals"


def own(context: Context[Any], chosen: str = "") -> str:
    """The object's name: the one that the user chose, otherwise ours."""
    return chosen.upper() if chosen else plain(context.name)


def plain(name: str) -> str:
    """A resource's name, as an identifier that needs no quotes."""
    made = name.upper().replace("-", "_")
    return made if made[0].isalpha() else f"_{made}"


def problems(chosen: str, name: str = "name") -> Iterator[tuple[str, str]]:
    if chosen and (not _CHOSEN.fullmatch(chosen) or len(chosen) > sql.NAME_LENGTH):
        yield name, f"{chosen!r} can't be a name: {CHOSEN}"


def mark(context: Context[Any]) -> str:
    """What the comment of an object of ours holds; somebody may have added words of his own."""
    return f"lakeferry {context.name}"


def comment(context: Context[Any]) -> Sql:
    return sql.literal(mark(context))


def external_id(context: Context[Any]) -> str:
    return external_id_of(context.origin)


def external_id_of(origin: str) -> str:
    return f"lakeferry-{origin}"
