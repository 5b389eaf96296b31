"""Secrets that can't be shown by accident, and a filter that removes secrets from text."""

from __future__ import annotations

import base64
import hmac
import itertools
import json
import re
import urllib.parse
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import attrs

SHOWN = "‹secret›"
#: Shorter values may be part of ordinary words.
SHORTEST_FILTERED = 8

_alive: weakref.WeakValueDictionary[int, Secret] = weakref.WeakValueDictionary()
_numbers = itertools.count()
#: Keeps the secrets of an invocation in memory for `redact`, after the code that read them has released them.
_of_invocation: ContextVar[list[Secret] | None] = ContextVar("secrets of the invocation", default=None)

#: AWS secret keys and session tokens that are named as such, Confluent's API secrets, private keys,
#: credentials in a header or a URL, and presigned URLs.
_LOOKS_SECRET = (
    re.compile(
        r"""(?:secret(?:_?access)?(?:_?key)?|session_?token)["']?\s*[:=(]?\s*["']?[A-Za-z0-9+/=]{40,}""",
        re.IGNORECASE,
    ),
    re.compile(r"\bcflt[A-Za-z0-9+/=_-]{20,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=\bBasic )[A-Za-z0-9+/=]{8,}|(?<=\bBearer )[\w.~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"),
    re.compile(r"\?[^\s\"']*(?:X-Amz-Signature|Signature)=[^\s\"']+"),
)


class Secret:
    """A value that str, repr, format, json and pickle never show. Only `reveal` returns it."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str, *, redacted: bool = True) -> None:
        """Hold a value, which `redact` removes from text only if `redacted`: a key's id, for example, may be
        shown in outputs.
        """
        self._value = value
        if not redacted:
            return
        _alive[next(_numbers)] = self
        if (secrets := _of_invocation.get()) is not None:
            secrets.append(self)

    def reveal(self) -> str:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return SHOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError("a secret can't be pickled")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _: Any) -> Secret:
        return self


@attrs.frozen
class ApiKey:
    """A key's id, which may be shown, and its secret."""

    id: str
    secret: Secret


@contextmanager
def invocation() -> Iterator[None]:
    """Let `redact` remove every Secret that is created in the block, even if nothing refers to it any
    more.
    """
    before = _of_invocation.set([])
    try:
        yield
    finally:
        _of_invocation.reset(before)


def redact(text: str) -> str:
    """Return `text` without the value of any Secret of this invocation or in memory, also in JSON, URL
    encoding or Base64, and without what looks like a secret.
    """
    values = {secret.reveal() for secret in list(_alive.values())}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST_FILTERED:
            in_base64 = base64.b64encode(value.encode()).decode()
            for encoded in (value, json.dumps(value)[1:-1], urllib.parse.quote(value, safe=""), in_base64):
                text = text.replace(encoded, SHOWN)
    for pattern in _LOOKS_SECRET:
        text = pattern.sub(SHOWN, text)
    return text
