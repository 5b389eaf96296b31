"""Snowflake SQL, cut into words, quoted names, strings, numbers and signs."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from simulators.snowflake.errors import syntax


class Sort(Enum):
    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


class Token(NamedTuple):
    """`text` is as written, `value` as meant: a word in upper case, a string without quotes and escapes."""

    sort: Sort
    text: str
    value: str
    start: int


_PATTERN: Final = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)
    |(?P<dollars>\$\$.*?\$\$)
    |(?P<string>'(?:[^'\\]|\\.|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_$]*)
    |(?P<sign>[^\s'"`])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


def tokens(text: str) -> list[Token]:
    """Ends with one of sort END. Raises SqlError where there is no token."""
    found, position = [], 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise syntax(f"parse error {place(text, position)} near '{text[position : position + 10]}'.")
        if match.lastgroup != "blank":
            found.append(_token(str(match.lastgroup), match[0], position))
        position = match.end()
    return [*found, Token(Sort.END, "<EOF>", "", len(text))]


def place(text: str, position: int) -> str:
    before = text[:position]
    return f"line {before.count(chr(10)) + 1} at position {position - (before.rfind(chr(10)) + 1)}"


def _token(group: str, text: str, start: int) -> Token:
    match group:
        case "word":
            return Token(Sort.WORD, text, text.upper(), start)
        case "quoted":
            return Token(Sort.QUOTED, text, text[1:-1].replace('""', '"'), start)
        case "string":
            return Token(Sort.STRING, text, _unescaped(text[1:-1]), start)
        case "dollars":
            return Token(Sort.STRING, text, text[2:-2], start)
        case "number":
            return Token(Sort.NUMBER, text, text, start)
    return Token(Sort.SIGN, text, text, start)


def _unescaped(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        if match[0] == "''":
            return "'"
        if match[1] is not None:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"''|\\(?:u([0-9A-Fa-f]{4})|(.))", meant, text, flags=re.DOTALL)
