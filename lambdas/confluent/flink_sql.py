"""Flink SQL, compared without comments and blanks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

#: A string, a quoted name, a comment, or anything else between them. Quotes are doubled inside of quotes.
_PIECES: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'`/-]+|.", re.DOTALL)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")


def normalized(sql: str) -> str:
    """Return `sql` without comments, with single blanks, and without the semicolon at its end."""
    kept = []
    for piece in _PIECES.findall(sql):
        if piece.startswith(("--", "/*")) and len(piece) > 1:
            kept.append(" ")
        else:
            kept.append(piece if piece[0] in "'`" else re.sub(r"\s+", " ", piece))
    return re.sub(r"(?:\s*;)+\s*$", "", _one_blank(kept)).strip()


def _one_blank(pieces: list[str]) -> str:
    """Join pieces by one blank where comments were removed; blanks inside quotes stay."""
    text = ""
    for piece in pieces:
        text += piece.lstrip() if text.endswith(" ") and piece[0] not in "'`" else piece
    return text


def has_several_statements(sql: str) -> bool:
    return ";" in _QUOTED.sub("", normalized(sql))


def fingerprint(sql: str, properties: Mapping[str, str]) -> str:
    """Return eight hexadecimal digits that differ if statement or properties differ."""
    meaning = json.dumps([normalized(sql), sorted(properties.items())])
    return hashlib.sha256(meaning.encode()).hexdigest()[:8]
