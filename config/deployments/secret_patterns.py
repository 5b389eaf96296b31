"""What secrets look like, so that none gets into a file, a template or an asset.

The value itself is never returned.
"""

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
    "the secret of a key": re.compile(
        r"(?<![A-Za-z0-9+/])(?=[^\s\"']*[+/])[A-Za-z0-9+/]{64}={0,2}(?![A-Za-z0-9+/=])"
    ),
}
#: Base64 in its two alphabets, of 32 characters or more. A name with `/` and `-` is no word of either.
_LONG_WORDS: Final = (
    re.compile(r"(?=[A-Za-z0-9+/=]{32})[A-Za-z0-9+/]{30,}={0,2}"),
    re.compile(r"[A-Za-z0-9_-]{32,}"),
)
_CLASSES: Final = (r"[a-z]", r"[A-Z]", r"[0-9]")
#: A word, or a number, of a name in any case. Of a random text, it has two characters on average, and hardly
#: ever four.
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SHORTEST_WORDS: Final = 4
_URL: Final = re.compile(r"https?://[^\s\"'<>,)\]}]+")
_PARTS_OF_URL: Final = re.compile(r"[/?&=@:#]")


def find_secrets(text: str, *, names_only: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line, description) of everything in `text` that looks like a secret.

    In a file that holds `names_only`, a long random text of lower-case letters, upper-case letters and digits
    is reported too. Each part of a URL counts as a text of its own.
    """
    for number, line in enumerate(text.splitlines(), 1):
        descriptions = [description for description, pattern in _SECRETS.items() if pattern.search(line)]
        parted = _URL.sub(lambda url: _PARTS_OF_URL.sub(" ", url[0]), line)
        words = (word for pattern in _LONG_WORDS for word in pattern.findall(parted))
        if names_only and not descriptions and any(map(_is_random, words)):
            descriptions = ["a secret"]
        yield from ((number, description) for description in descriptions)


def _is_random(text: str) -> bool:
    words = _WORD.findall(text)
    has_all_classes = all(re.search(signs, text) for signs in _CLASSES)
    has_short_words = sum(map(len, words)) < _SHORTEST_WORDS * len(words)
    return has_all_classes and has_short_words
