"""Flink SQL as text: what of it matters, and what doesn't."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

#: A string, a quoted name, a comment, or anything else between them. Quotes are doubled inside of quotes.
_PIECES: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'`/-]+|.", re.DOTALL)


def normal(sql: str) -> str:
    """`sql` without comments, with one blank where there were several, and without the semicolon at its end."""
    kept = []
    for piece in _PIECES.findall(sql):
        if piece.startswith(("--", "/*")) and len(piece) > 1:
            kept.append(" ")
        else:
            kept.append(piece if piece[0] in "'`" else re.sub(r"\s+", " ", piece))
    return re.sub(r"(?:\s*;)+\s*$", "", _one_blank(kept)).strip()


def _one_blank(pieces: list[str]) -> str:
    """Blanks meet where a comment stood; inside of quotes every one of them counts."""
    text = ""
    for piece in pieces:
        text += piece.lstrip() if text.endswith(" ") and piece[0] not in "'`" else piece
    return text


def mark(sql: str, properties: Mapping[str, str]) -> str:
    """Eight hexadecimal digits that differ when the statement would do something else."""
    meaning = json.dumps([normal(sql), sorted(properties.items())])
    return hashlib.sha256(meaning.encode()).hexdigest()[:8]
