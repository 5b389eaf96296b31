"""SQL statements.

Only this module builds them, from literal templates and quoted values. The client accepts no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from lambdas.shared.errors import BadProperties

NAME_LENGTH: Final = 255
_PLAIN: Final = re.compile(r"[A-Z_][A-Z0-9_$]*")
_UNQUOTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_WORDS: Final = re.compile(r"[A-Z][A-Z0-9_]*( [A-Z][A-Z0-9_]*)*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')
#: Words that Snowflake accepts as names only if they are quoted.
_RESERVED: Final = frozenset(
    "ACCOUNT ALL ALTER AND ANY AS BETWEEN BY CASE CAST CHECK COLUMN CONNECT CONNECTION CONSTRAINT CREATE "
    "CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE DELETE DISTINCT DROP "
    "ELSE EXISTS FALSE FOLLOWING FOR FROM FULL GRANT GROUP GSCLUSTER HAVING ILIKE IN INCREMENT INNER "
    "INSERT INTERSECT INTO IS ISSUE JOIN LATERAL LEFT LIKE LOCALTIME LOCALTIMESTAMP MINUS NATURAL NOT NULL "
    "OF ON OR ORDER ORGANIZATION QUALIFY REGEXP REVOKE RIGHT RLIKE ROW ROWS SAMPLE SCHEMA SELECT SET SOME "
    "START TABLE TABLESAMPLE THEN TO TRIGGER TRUE TRY_CAST UNION UNIQUE UPDATE USING VALUES VIEW WHEN "
    "WHENEVER WHERE WITH".split()
)


@attrs.frozen
class Sql:
    """SQL that this module built."""

    text: str


def statement(template: str, **parts: Sql) -> Sql:
    """Return a statement.

    `template` is a literal in the source code; each {name} in it is replaced by the part of that name.
    """
    return Sql(template.format(**{name: part.text for name, part in parts.items()}))


def by_name(template: str, name: str) -> Sql:
    """Return a statement about one object. Its name replaces {name}, or {pattern} in SHOW statements."""
    return statement(template, name=identifier(name), pattern=literal(name))


def of_any_name(show: Sql, name: str) -> Sql:
    """Return a SHOW statement for `name` without its limit to that name."""
    return Sql(show.text.replace(f"LIKE {literal(name).text}", "LIKE '%'", 1))


def identifier(name: str) -> Sql:
    """Return `name` in double quotes. Raises BadProperties for a name that Snowflake can't have."""
    if problem := find_name_problem(name):
        raise BadProperties([("name", problem)])
    return Sql('"' + name.replace('"', '""') + '"')


def path(names: Iterable[str]) -> Sql:
    """Return a full name from its parts, such as database, schema and object."""
    return Sql(".".join(identifier(name).text for name in names))


def literal(text: str) -> Sql:
    """Return a string literal.

    Raises BadProperties for control characters, which no value of Lakeferry contains.
    """
    if _CONTROL.search(text):
        raise BadProperties([("value", f"{text!r} holds a control character")])
    return Sql("'" + text.replace("\\", "\\\\").replace("'", "''") + "'")


def reference(*names: str) -> Sql:
    """Return a full name as a string literal, which EXTERNAL_VOLUME and the SYSTEM$ functions expect."""
    return literal(format_dotted(names))


def number(value: int) -> Sql:
    return Sql(str(int(value)))


def word(text: str, *, of: Iterable[str]) -> Sql:
    """Return a keyword, one of `of`. Raises BadProperties for any other."""
    if text not in set(of) or not _WORDS.fullmatch(text):
        raise BadProperties([("value", f"{text!r} is none of {', '.join(of)}")])
    return Sql(text)


def listed(parts: Iterable[Sql], separator: str = ", ") -> Sql:
    return Sql(separator.join(part.text for part in parts))


def format_dotted(names: Iterable[str]) -> str:
    """Return a full name as Snowflake prints it, with quotes only where they are needed."""
    return ".".join(name if is_plain(name) else identifier(name).text for name in names)


def split(text: str) -> tuple[str, ...]:
    """Return the exact parts of a full name that is written as in SQL; () if it can't be parsed."""
    names: list[str] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if not match:
            return ()
        names.append(to_exact_name(match[0]))
        at = match.end()
        if at < len(text) and text[at] != ".":
            return ()
        at += 1
    return () if text.endswith(".") else tuple(names)


def to_exact_name(text: str) -> str:
    """Return the exact name that `text` means in SQL: upper case, unless it is in quotes or needs them."""
    if _UNQUOTED.fullmatch(text):
        return text.upper()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text


def is_plain(name: str) -> bool:
    """Return whether `name` means the same with and without quotes."""
    return bool(_PLAIN.fullmatch(name)) and name not in _RESERVED


def find_name_problem(name: str) -> str:
    """Return why `name` can't be a name; "" if it can."""
    if not name:
        return "is empty"
    if len(name) > NAME_LENGTH:
        return f"has {len(name)} characters, and {NAME_LENGTH} are allowed"
    return f"{name!r} holds a control character" if _CONTROL.search(name) else ""


_CHOSEN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CHOSEN: Final = "letters, digits and underscores; Snowflake shows them in upper case"


def to_plain_name(name: str) -> str:
    """Return a resource's name as an identifier that needs no quotes."""
    plain = name.upper().replace("-", "_")
    return plain if plain[0].isalpha() else f"_{plain}"


def list_name_problems(chosen: str) -> Iterator[tuple[str, str]]:
    if chosen and (not _CHOSEN.fullmatch(chosen) or len(chosen) > NAME_LENGTH):
        yield "name", f"{chosen!r} can't be a name: {CHOSEN}"


def build_external_id(origin: str) -> str:
    return f"lakeferry-{origin}"
