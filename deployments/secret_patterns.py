"""What secrets look like, so that none gets into a file, a template or an asset. The value itself is never returned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Texts that only secrets match.
_SECRETS: Final = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bMII[A-Za-z0-9+/]{60,}"),
    "a secret of Confluent Cloud": re.compile(r"\bcflt[A-Za-z0-9+/]{40,}"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "the secret of a key": re.compile(r"(?<![A-Za-z0-9+/])(?=[^\s\"']*[+/])[A-Za-z0-9+/]{64}={0,2}(?![A-Za-z0-9+/=])"),
}
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_CLASSES: Final = (r"[a-z]", r"[A-Z]", r"[0-9]")


def find_secrets(text: str, *, names_only: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, description) of everything in `text` that looks like a secret.

    In a file that holds `names_only`, a long word of lower-case letters, upper-case letters and digits is reported too.
    """
    for number, line in enumerate(text.splitlines(), 1):
        descriptions = [description for description, pattern in _SECRETS.items() if pattern.search(line)]
        mixed = (all(re.search(signs, word) for signs in _CLASSES) for word in _LONG_WORD.findall(line))
        if names_only and not descriptions and any(mixed):
            descriptions = ["a secret"]
        yield from ((number, description) for description in descriptions)
