"""What secrets look like, so that none gets into a file, a template or an asset. Never says the value itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Shapes that nothing else has.
_SHAPES: Final = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bMII[A-Za-z0-9+/]{60,}"),
    "a secret of Confluent Cloud": re.compile(r"\bcflt[A-Za-z0-9+/]{40,}"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "the secret of a key": re.compile(r"(?<![A-Za-z0-9+/])(?=[^\s\"']*[+/])[A-Za-z0-9+/]{64}={0,2}(?![A-Za-z0-9+/=])"),
}
#: Long texts of letters and digits that are too mixed to be words: in a file that holds names only, they are no name.
_LONG: Final = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_CLASSES: Final = (r"[a-z]", r"[A-Z]", r"[0-9]")


def shaped(text: str) -> Iterator[tuple[int, str]]:
    """(line, what it is) of everything in `text` that has the shape of a secret."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, what) for what, shape in _SHAPES.items() if shape.search(line))


def suspicious(text: str) -> Iterator[tuple[int, str]]:
    """The same, and long mixed texts too: for files in which people write names."""
    for number, line in enumerate(text.splitlines(), 1):
        found = [what for what, shape in _SHAPES.items() if shape.search(line)]
        if not found and any(_is_mixed(word) for word in _LONG.findall(line)):
            found = ["what may be a secret"]
        yield from ((number, what) for what in found)


def _is_mixed(word: str) -> bool:
    return all(re.search(signs, word) for signs in _CLASSES)
