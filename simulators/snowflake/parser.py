"""Parses Snowflake SQL: tokens, a cursor that reads a statement from left to right, and a statement's
properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple, NoReturn

import attrs

from simulators.snowflake.errors import (
    SqlError,
    invalid_property,
    invalid_value,
    missing_options,
    not_simulated,
    syntax,
)
from simulators.snowflake.model import Name


class TokenType(Enum):
    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


class Token(NamedTuple):
    """`text` is as written.

    `value` is in upper case for a word, and without quotes and escapes for a string or quoted name.
    """

    type: TokenType
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
#: Reserved words: as names, they need quotes.
RESERVED: Final = frozenset(
    "ALL ALTER AND ANY AS BETWEEN BY CHECK COLUMN CONNECT CREATE CURRENT DELETE DISTINCT DROP ELSE EXISTS "
    "FOLLOWING FOR FROM GRANT GROUP HAVING ILIKE IN INCREMENT INSERT INTERSECT INTO IS LIKE MINUS NOT NULL "
    "OF ON OR ORDER QUALIFY REGEXP REVOKE RLIKE ROW ROWS SAMPLE SELECT SET SOME START TABLE TABLESAMPLE "
    "THEN TO TRIGGER UNION UNIQUE UPDATE VALUES WHENEVER WHERE WITH".split()
)


def read_tokens(text: str) -> list[Token]:
    """Return the tokens; the last one has type END. Raises SqlError for text that isn't a token."""
    result = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            excerpt = text[position : position + 10]
            raise syntax(f"parse error {_describe_position(text, position)} near '{excerpt}'.")
        if match.lastgroup != "blank":
            result.append(_build_token(str(match.lastgroup), match[0], position))
        position = match.end()
    return [*result, Token(TokenType.END, "<EOF>", "", len(text))]


def _describe_position(text: str, index: int) -> str:
    preceding_text = text[:index]
    line = preceding_text.count("\n") + 1
    line_start = preceding_text.rfind("\n") + 1
    return f"line {line} at position {index - line_start}"


def _build_token(group: str, text: str, start: int) -> Token:
    match group:
        case "word":
            return Token(TokenType.WORD, text, text.upper(), start)
        case "quoted":
            return Token(TokenType.QUOTED, text, text[1:-1].replace('""', '"'), start)
        case "string":
            return Token(TokenType.STRING, text, _unescape(text[1:-1]), start)
        case "dollars":
            return Token(TokenType.STRING, text, text[2:-2], start)
        case "number":
            return Token(TokenType.NUMBER, text, text, start)
    return Token(TokenType.SIGN, text, text, start)


def _unescape(text: str) -> str:
    def replace_escape(match: re.Match[str]) -> str:
        if match[0] == "''":
            return "'"
        if match[1] is not None:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"''|\\(?:u([0-9A-Fa-f]{4})|(.))", replace_escape, text, flags=re.DOTALL)


def count_statements(text: str) -> int:
    """Return the number of non-empty statements in the text."""
    count = 0
    has_tokens = False
    for token in read_tokens(text):
        if token.type is TokenType.END or token.text == ";":
            count = count + has_tokens
            has_tokens = False
        else:
            has_tokens = True
    return count


def compile_like_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the pattern of SHOW … LIKE, which is case-insensitive."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(regex, re.IGNORECASE | re.DOTALL)


@attrs.frozen
class Value:
    """The right side of `PROPERTY = …`: one token, a list in brackets, or properties in brackets."""

    text: str
    token: Token
    items: tuple[Value, ...] | None = None
    options: dict[str, Value] | None = None

    @property
    def single(self) -> bool:
        return self.items is None and self.options is None


class Cursor:
    """A position in a statement.

    `is_at…` return whether the text matches, `take…` also advance if it does. The other methods raise
    SqlError if it doesn't.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = read_tokens(text)
        self._index = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._index]

    def is_at(self, *words: str) -> bool:
        ahead = self._tokens[self._index : self._index + len(words)]
        return [token.value for token in ahead if token.type is TokenType.WORD] == list(words)

    def is_at_sign(self, sign: str) -> bool:
        return self.next.type is TokenType.SIGN and self.next.text == sign

    def take(self, *words: str) -> bool:
        if not self.is_at(*words):
            return False
        self._index += len(words)
        return True

    def take_sign(self, sign: str) -> bool:
        if not self.is_at_sign(sign):
            return False
        self._index += 1
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                self.refuse()

    def expect_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            self.refuse()

    def build_unexpected_error(self) -> SqlError:
        return syntax(
            f"syntax error {_describe_position(self.text, self.next.start)} unexpected '{self.next.text}'."
        )

    def refuse(self) -> NoReturn:
        raise self.build_unexpected_error()

    def end(self) -> None:
        while self.take_sign(";"):
            pass
        if self.next.type is not TokenType.END:
            self.refuse()

    def read_word(self) -> str:
        if self.next.type is not TokenType.WORD:
            self.refuse()
        return self._advance().value

    def identifier(self) -> str:
        """Read an identifier, and convert it to upper case unless it is quoted."""
        if self.is_at("IDENTIFIER") and self._tokens[self._index + 1].text == "(":
            raise not_simulated("IDENTIFIER()")
        is_reserved = self.next.type is TokenType.WORD and self.next.value in RESERVED
        if self.next.type not in (TokenType.WORD, TokenType.QUOTED) or is_reserved:
            self.refuse()
        return self._advance().value

    def read_name(self) -> Name:
        """Read identifiers that are separated by dots."""
        parts = [self.identifier()]
        while self.take_sign("."):
            parts.append(self.identifier())
        return tuple(parts)

    def string(self) -> str:
        if self.next.type is not TokenType.STRING:
            self.refuse()
        return self._advance().value

    def read_number(self) -> int:
        if self.next.type is not TokenType.NUMBER or not self.next.text.isdigit():
            self.refuse()
        return int(self._advance().value)

    def read_options(self) -> dict[str, Value]:
        """Read any number of `KEY = value`, with or without commas between them.

        Raises SqlError for a duplicate key.
        """
        options: dict[str, Value] = {}
        while self.next.type is TokenType.WORD and self._tokens[self._index + 1].text == "=":
            key = self.read_word()
            self.expect_sign("=")
            if key in options:
                raise syntax(f"duplicate property '{key}'")
            options[key] = self.read_value()
            self.take_sign(",")
        return options

    def read_value(self) -> Value:
        if self.is_at_sign("("):
            return self._read_bracketed()
        negative = self.take_sign("-")
        if self.next.type in (TokenType.SIGN, TokenType.END):
            self.refuse()
        token = self._advance()
        text = f"-{token.value}" if negative else token.value
        while token.type in (TokenType.WORD, TokenType.QUOTED) and self.take_sign("."):
            text += "." + self.identifier()
        return Value(text, token)

    def _read_bracketed(self) -> Value:
        start = self.next
        self.expect_sign("(")
        if self.next.type is TokenType.WORD and self._tokens[self._index + 1].text == "=":
            options = self.read_options()
            self.expect_sign(")")
            return Value("(…)", start, options=options)
        items = []
        while not self.is_at_sign(")"):
            items.append(self.read_value())
            if not self.take_sign(","):
                break
        self.expect_sign(")")
        return Value("(…)", start, items=tuple(items))

    def _advance(self) -> Token:
        token = self.next
        self._index += 1
        return token


class Options:
    """The properties in a statement. Raises SqlError for a property that isn't in `known_names`.

    `known_names` are the implemented properties, `not_simulated_names` are Snowflake's other ones. The
    methods return a default if the property isn't given, and raise SqlError if its value has another type.
    """

    def __init__(
        self, object_type: str, values: dict[str, Value], known_names: str, not_simulated_names: str = ""
    ) -> None:
        self._given = values
        for name in values:
            if name not in known_names.split():
                raise build_unknown_property_error(name, object_type, not_simulated_names)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def require(self, *names: str) -> None:
        if missing_names := [name for name in names if name not in self._given]:
            raise missing_options(", ".join(missing_names))

    def read_string(self, name: str, default: str = "") -> str:
        """Return a string, which must be in quotes."""
        return self._read_single(name, default, TokenType.STRING)

    def read_text(self, name: str, default: str = "") -> str:
        """Return a string or a name."""
        return self._read_single(name, default, TokenType.STRING, TokenType.WORD, TokenType.QUOTED)

    def _read_single(self, name: str, default: str, *types: TokenType) -> str:
        if name not in self:
            return default
        value = self._given[name]
        if not value.single or value.token.type not in types:
            raise invalid_value(value.text, name)
        return value.text

    def read_choice(self, name: str, choices: str, default: str = "") -> str:
        """Return the value in upper case, which must be one of `choices`. Quotes are optional."""
        text = self.read_text(name, default).upper()
        if name in self and text not in choices.split():
            raise invalid_value(self._given[name].text, name)
        return text

    def read_boolean(self, name: str) -> bool:
        """Return the value; False if the property isn't given."""
        return self.read_choice(name, "TRUE FALSE", "FALSE") == "TRUE"

    def read_integer(self, name: str, default: int, low: int, high: int) -> int:
        if name not in self:
            return default
        text = self._given[name].text
        if not text.lstrip("-").isdecimal() or not low <= int(text) <= high:
            raise invalid_value(text, name)
        return int(text)

    def read_strings(self, name: str) -> tuple[str, ...]:
        """Return a list of strings in brackets."""
        if name not in self:
            return ()
        value = self._given[name]
        if value.items is None or any(item.token.type is not TokenType.STRING for item in value.items):
            raise invalid_value(value.text, name)
        return tuple(item.text for item in value.items)

    def read_nested(self, name: str, known_names: str, not_simulated_names: str = "") -> Options:
        """Return the properties in brackets; none if the property isn't given."""
        value = self._given.get(name)
        values = {} if value is None else _read_bracketed_options(name, value)
        return Options(name, values, known_names, not_simulated_names)

    def read_nested_list(self, name: str, known_names: str, not_simulated_names: str = "") -> list[Options]:
        """Return the properties of each item of a list in brackets. The property must be given."""
        value = self._given[name]
        if value.items is None:
            raise invalid_value(value.text, name)
        return [
            Options(name, _read_bracketed_options(name, item), known_names, not_simulated_names)
            for item in value.items
        ]


def build_unknown_property_error(name: str, object_type: str, not_simulated_names: str) -> SqlError:
    """Return the error for a property that isn't implemented: "not simulated" if it is in
    `not_simulated_names`, else "invalid property".
    """
    if name in not_simulated_names.split():
        return not_simulated(f"{name} of {object_type}")
    return invalid_property(name, object_type)


def _read_bracketed_options(name: str, value: Value) -> dict[str, Value]:
    if value.options is None:
        raise invalid_value(value.text, name)
    return value.options
