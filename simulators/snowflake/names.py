"""Names of objects: parts as Snowflake keeps them, and as it shows them."""

from __future__ import annotations

import re
from typing import Final

#: ("DB", "SCHEMA", "TABLE"), each part in the case that it has.
Name = tuple[str, ...]

_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_$]*")


def shown(name: Name) -> str:
    """With quotes where a part needs them."""
    return ".".join(part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in name)


def like(pattern: str) -> re.Pattern[str]:
    """SQL's LIKE as SHOW has it: whatever the case."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(regex, re.IGNORECASE | re.DOTALL)
