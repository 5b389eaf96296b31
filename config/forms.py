"""The forms of texts in contracts and deployment files, and checks of single values."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from datetime import date

from config.toml_model import Form

NAME = Form(
    r"[a-z][a-z0-9_]{0,62}",
    "a name of at most 63 lower-case letters, digits and underscores that starts with a letter",
)
PATH = Form(
    r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*",
    "the name of a field, with dots inside records: customer.email",
)
TOPIC = Form(
    r"[A-Za-z0-9._-]{1,249}",
    "a topic's name: letters, digits, dots, hyphens and underscores",
)
TYPE = Form(
    r"text|integer|date|timestamp|boolean|decimal\([0-9]{1,2},[0-9]{1,2}\)",
    "text, integer, decimal(p,s), date, timestamp or boolean",
)
NULL_TEXT = Form(r'[^",;\t\r\n]{0,16}', "at most 16 characters, without quotes, delimiters or line breaks")
#: The tz database is reliable between these days, and no topic has events outside of them.
_FIRST_DAY = date(1990, 1, 1)
_LAST_DAY = date(2100, 12, 31)


def name_table(topic: str) -> str:
    """Return the name of a topic's table: Glue stores names in lower case (Glue API, TableInput)."""
    return topic.lower()


def find_zone_problem(name: str) -> str | None:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        close = difflib.get_close_matches(name, zoneinfo.available_timezones(), n=1)
        advice = f"Did you mean {close[0]}?" if close else "Use a name like Europe/Berlin or UTC"
        return f"{name!r} is not a time zone of the tz database. {advice}"
    return None


#: The kinds of values that the scan of the finished file knows, as `may_contain` names them.
EMAIL = "email"
PHONE = "phone"
IBAN = "iban"
CARD = "card"
#: What other regular expressions have and RE2 lacks: lookaround, atomic and conditional groups,
#: backreferences, possessiveness.
_NOT_RE2 = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:=|!|<=|<!|>|\(|P=|#)|\\[1-9]|\\Z|[*+?}]\+)")
#: What RE2 has and Python writes in another way: classes in braces, the end of the text, flags inside.
_ONLY_RE2 = re.compile(r"\\[pP](?:\{[^}]*\}|.)|\\x\{[0-9A-Fa-f]+\}|\\[zCQE]|\(\?[imsU-]+\)")
_CHARACTER_CLASS = re.compile(r"(?<!\\)((?:\\\\)*)\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]")


def check_pattern(pattern: str) -> str | None:
    """Return why RE2 can't use the pattern, or None.

    The job, which has RE2, decides. This check finds most mistakes earlier, where there is no RE2.
    """
    plain = _ONLY_RE2.sub("a", _CHARACTER_CLASS.sub(r"\1a", pattern))
    if _NOT_RE2.search(plain):
        return "uses lookaround, a backreference or another form that RE2 doesn't have. Write it without"
    try:
        compiled = re.compile(plain)
    except re.error as error:
        return f"is not a regular expression ({error.msg}). Correct it"
    return (
        "matches a text without any character, so every cell. Make it say more"
        if compiled.search("")
        else None
    )


def explain_implausible_day(day: date) -> str | None:
    """Return why windows can't begin on this day, or None.

    From a day too long ago, a run would never catch up.
    """
    if not _FIRST_DAY <= day <= _LAST_DAY:
        return f"{day} is not a day on which windows can begin: from {_FIRST_DAY} to {_LAST_DAY}"
    return None
