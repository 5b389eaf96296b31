"""What a deployment has that is worth watching, from the function's environment."""

from __future__ import annotations

import json
from typing import Any

import attrs
import cattrs


@attrs.frozen
class Table:
    """`database` is Glue's, `snowflake` the table's name in full there; "" where it isn't shown."""

    topic: str
    database: str = ""
    snowflake: str = ""


@attrs.frozen
class Export:
    """`recipients` is how many addresses the deployment file names for `topic`; nobody counts them where that is "".

    `first_day` (ISO 8601) belongs to the first window that is exported; "" where the contract says.
    """

    export: str
    cron: str
    zone: str
    late_after_hours: float
    topic: str = ""
    recipients: int = 0
    first_day: str = ""


@attrs.frozen
class Watched:
    cluster: str = ""
    tables: list[Table] = attrs.Factory(list)
    exports: list[Export] = attrs.Factory(list)
    secrets: list[str] = attrs.Factory(list)


def parse(text: str) -> Watched:
    document: dict[str, Any] = json.loads(text)
    return cattrs.structure(document, Watched)
