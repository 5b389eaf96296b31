"""Compare Flink SQL, ignoring comments and white space."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

#: A string, a quoted name, a comment, or the text between them. A quote inside quotes is doubled.
_PIECES: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'`/-]+|.", re.DOTALL)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`")


def normalize(sql: str) -> str:
    """Return `sql` without comments and the semicolons at its end, and with single spaces as white space."""
    pieces = []
    for piece in _PIECES.findall(sql):
        if piece.startswith(("--", "/*")) and len(piece) > 1:
            pieces.append(" ")
        elif piece[0] in "'`":
            pieces.append(piece)
        else:
            pieces.append(re.sub(r"\s+", " ", piece))
    return re.sub(r"(?:\s*;)+\s*$", "", _join(pieces)).strip()


def _join(pieces: list[str]) -> str:
    """Join pieces with one space where comments were removed. Spaces inside quotes are kept."""
    text = ""
    for piece in pieces:
        if text.endswith(" ") and piece[0] not in "'`":
            text += piece.lstrip()
        else:
            text += piece
    return text


def has_several_statements(sql: str) -> bool:
    return ";" in _QUOTED.sub("", normalize(sql))


def fingerprint(sql: str, properties: Mapping[str, str]) -> str:
    """Return eight hexadecimal digits that differ if the statement or the properties differ."""
    meaning = json.dumps([normalize(sql), sorted(properties.items())])
    return hashlib.sha256(meaning.encode()).hexdigest()[:8]
