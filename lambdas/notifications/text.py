"""Words that go into mails: one line each, without anything that a mail must not hold.

Titles, window labels and reasons come from contracts, tables and the job. They are the job's to keep clean; a mail can't
be taken back, so here is the second fence.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from lambdas.shared.redaction import redact

HIDDEN: Final = "[hidden]"
#: SNS takes fewer than 100 characters of ASCII.
SUBJECT_LENGTH: Final = 99
LINE_LENGTH: Final = 400
#: Addresses of people, numbers as long as those of telephones, cards and accounts, and what signs an address of S3.
_PRIVATE: Final = re.compile(
    r"[^\s@<>(),;:]+@[^\s@<>(),;:]+|\+\d[\d ()/-]{6,}\d|\b[A-Z]{2}\d{2}[A-Z0-9]{10,}\b|\d{9,}"
    r"|\b(?:X-Amz-[A-Za-z-]+|Signature|AWSAccessKeyId)=\S*"
)
_TRACE: Final = re.compile(r"Traceback \(most recent|\bat [\w$.]+\([\w$]+\.(?:java|scala):\d+\)|File \"[^\"]*\", line \d+")
#: Categories of Unicode that show nothing, break lines or turn the direction of text.
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn")


def line(text: object, length: int = LINE_LENGTH) -> str:
    """The first line that says something, cut to `length` characters."""
    shown = next((each for each in str(text).splitlines() if each.strip()), "")
    visible = "".join(" " if char.isspace() else char for char in shown if char.isspace() or not _is_unseen(char))
    one = " ".join(visible.split())
    return one if len(one) <= length else one[: length - 1] + "…"


def foreign(text: object) -> str:
    """A line whose words others chose: without secrets, traces and what looks like somebody's address or number."""
    shown = redact(line(text, 10 * LINE_LENGTH))
    if trace := _TRACE.search(shown):
        shown = shown[: trace.start()]
    return line(_PRIVATE.sub(HIDDEN, shown))


def ascii_line(text: object) -> str:
    """Letters without their accents; what then isn't ASCII is left out."""
    plain = unicodedata.normalize("NFKD", line(text)).encode("ascii", "ignore").decode()
    return " ".join("".join(char for char in plain if char.isprintable()).split())


def subject(title: str, rest: str) -> str:
    """`[title] rest`, of which the title is cut where it is too long, since the rest holds what happened."""
    end = ascii_line(rest)[: SUBJECT_LENGTH - 8]
    start = ascii_line(foreign(title)).replace("[", "(").replace("]", ")")[: SUBJECT_LENGTH - 3 - len(end)].strip()
    return f"[{start}] {end}"


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN
