"""Snowflake's lexical grammar, as far as our statements use it: splits a text into the tokens that a server
would see.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKENS = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<dollars>\$\$.*?\$\$)
  | (?P<name>"(?:[^"]|"")*")
  | (?P<text>'(?:[^'\\]|''|\\.)*')
  | (?P<number>\d+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
  | (?P<sign>[().,=])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}


class Token(NamedTuple):
    """`kind` is one of the groups above; `value` is the value of a name or a text."""

    kind: str
    value: str


def tokens(text):
    """Raise ValueError for syntax that our statements never have: comments, dollar quotes, semicolons,
    unclosed quotes.
    """
    found = []
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup
        piece = match[0]
        if kind in ("comment", "dollars", "other"):
            raise ValueError(f"{kind} {piece!r}")
        if kind != "space":
            found.append(Token(kind, _value(kind, piece)))
    return found


def shape(text):
    """Return the tokens without the values of names, texts and numbers."""
    return [token.kind if token.kind in ("name", "text", "number") else token.value for token in tokens(text)]


def values(text, kind):
    return [token.value for token in tokens(text) if token.kind == kind]


def _value(kind, piece):
    if kind == "name":
        return piece[1:-1].replace('""', '"')
    if kind == "text":
        return re.sub(
            r"''|\\(.)", lambda m: _ESCAPES.get(m[1], m[1]) if m[1] else "'", piece[1:-1], flags=re.DOTALL
        )
    return piece
