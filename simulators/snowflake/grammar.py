"""Reads a statement from left to right, and says where it stops being Snowflake SQL."""

from __future__ import annotations

from typing import Final, NoReturn

import attrs

from simulators.snowflake.errors import SqlError, not_simulated, syntax
from simulators.snowflake.names import Name
from simulators.snowflake.tokens import Sort, Token, place, tokens

#: Names only in quotes.
RESERVED: Final = frozenset(
    "ALL ALTER AND ANY AS BETWEEN BY CHECK COLUMN CONNECT CREATE CURRENT DELETE DISTINCT DROP ELSE EXISTS FOLLOWING FOR FROM "
    "GRANT GROUP HAVING ILIKE IN INCREMENT INSERT INTERSECT INTO IS LIKE MINUS NOT NULL OF ON OR ORDER QUALIFY REGEXP REVOKE "
    "RLIKE ROW ROWS SAMPLE SELECT SET SOME START TABLE TABLESAMPLE THEN TO TRIGGER UNION UNIQUE UPDATE VALUES WHENEVER WHERE "
    "WITH".split()
)


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
    """Each `take…` goes on where it finds what it looks for; each `expect…` raises SqlError where it doesn't."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens, self._index = tokens(text), 0

    @property
    def next(self) -> Token:
        return self._tokens[self._index]

    def at(self, *words: str) -> bool:
        ahead = self._tokens[self._index : self._index + len(words)]
        return [each.value for each in ahead if each.sort is Sort.WORD] == list(words)

    def at_sign(self, sign: str) -> bool:
        return self.next.sort is Sort.SIGN and self.next.text == sign

    def take(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        self._index += len(words)
        return True

    def take_sign(self, sign: str) -> bool:
        if not self.at_sign(sign):
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

    def unexpected(self) -> SqlError:
        return syntax(f"syntax error {place(self.text, self.next.start)} unexpected '{self.next.text}'.")

    def refuse(self) -> NoReturn:
        raise self.unexpected()

    def end(self) -> None:
        while self.take_sign(";"):
            pass
        if self.next.sort is not Sort.END:
            self.refuse()

    def word(self) -> str:
        if self.next.sort is not Sort.WORD:
            self.refuse()
        return self._advance().value

    def identifier(self) -> str:
        """In upper case, unless quoted."""
        if self.at("IDENTIFIER") and self._tokens[self._index + 1].text == "(":
            raise not_simulated("IDENTIFIER()")
        if self.next.sort not in (Sort.WORD, Sort.QUOTED) or (self.next.sort is Sort.WORD and self.next.value in RESERVED):
            self.refuse()
        return self._advance().value

    def name(self) -> Name:
        """With as many parts as dots say."""
        parts = [self.identifier()]
        while self.take_sign("."):
            parts.append(self.identifier())
        return tuple(parts)

    def string(self) -> str:
        if self.next.sort is not Sort.STRING:
            self.refuse()
        return self._advance().value

    def number(self) -> int:
        if self.next.sort is not Sort.NUMBER or not self.next.text.isdigit():
            self.refuse()
        return int(self._advance().value)

    def options(self) -> dict[str, Value]:
        """`KEY = value` as often as there is one, with or without commas between. A key twice is refused."""
        found: dict[str, Value] = {}
        while self.next.sort is Sort.WORD and self._tokens[self._index + 1].text == "=":
            key = self.word()
            self.expect_sign("=")
            if key in found:
                raise syntax(f"duplicate property '{key}'")
            found[key] = self.value()
            self.take_sign(",")
        return found

    def value(self) -> Value:
        if self.at_sign("("):
            return self._bracketed()
        negative = self.take_sign("-")
        if self.next.sort in (Sort.SIGN, Sort.END):
            self.refuse()
        token = self._advance()
        text = ("-" if negative else "") + token.value
        while token.sort in (Sort.WORD, Sort.QUOTED) and self.take_sign("."):
            text += "." + self.identifier()
        return Value(text, token)

    def _bracketed(self) -> Value:
        start = self.next
        self.expect_sign("(")
        if self.next.sort is Sort.WORD and self._tokens[self._index + 1].text == "=":
            options = self.options()
            self.expect_sign(")")
            return Value("(…)", start, options=options)
        items = []
        while not self.at_sign(")"):
            items.append(self.value())
            if not self.take_sign(","):
                break
        self.expect_sign(")")
        return Value("(…)", start, items=tuple(items))

    def _advance(self) -> Token:
        token = self.next
        self._index += 1
        return token


def statements_in(text: str) -> int:
    """How many there are, empty ones left out."""
    count, anything = 0, False
    for token in tokens(text):
        if token.sort is Sort.END or token.text == ";":
            count, anything = count + anything, False
        else:
            anything = True
    return count
