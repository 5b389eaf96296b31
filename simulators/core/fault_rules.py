"""The rules of fault injection: which calls a rule matches, and with which answer. Uses only the standard
library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qsl

from simulators.core.control import Message

_CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    429: "ThrottlingException",
    503: "SlowDown",
}
#: Content type and body of an error of S3, of AWS's JSON services, of a plain JSON API, and of a proxy.
SHAPES: dict[str, Callable[[str, str], tuple[str, str]]] = {
    "s3": lambda code, message: (
        "application/xml",
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>",
    ),
    "aws-json": lambda code, message: (
        "application/x-amz-json-1.1",
        json.dumps({"__type": code, "message": message}),
    ),
    "json": lambda code, message: ("application/json", json.dumps({"error_code": code, "message": message})),
    "html": lambda code, message: (
        "text/html",
        f"<html><body><h1>{escape(code)}</h1>{escape(message)}</body></html>",
    ),
}


class Call(NamedTuple):
    """The parts of a request that rules match. The trace has them without the headers."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @classmethod
    def from_scope(cls, scope: Message) -> Call:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)

    def __str__(self) -> str:
        call = f"{self.method} {self.path}"
        return f"{call}?{self.query}" if self.query else call


@dataclass
class Rule:
    """`seen` and `hits` count the calls that it matched and hit since it was set."""

    fault: str
    method: str = "*"
    path: str = "*"
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    nth: int = 1
    every: int = 1
    times: int = 1
    status: int = 503
    shape: str = "json"
    code: str = ""
    message: str = "injected by the fault injector"
    body: str | None = None
    reply_headers: dict[str, str] = field(default_factory=dict)
    after_bytes: int | None = None
    list_field: str = "data"
    seen: int = 0
    hits: int = 0

    def matches(self, call: Call) -> bool:
        query = dict(parse_qsl(call.query, keep_blank_values=True))
        return (
            fnmatchcase(call.method, self.method)
            and fnmatchcase(call.path, self.path)
            and all(name in query and fnmatchcase(query[name], glob) for name, glob in self.query.items())
            and all(
                fnmatchcase(call.headers.get(name.lower(), ""), glob) for name, glob in self.headers.items()
            )
        )

    def count(self) -> bool:
        """Count one more call that matches. Return whether the rule hits it."""
        self.seen += 1
        calls_after_first = self.seen - self.nth
        is_hit = (
            calls_after_first >= 0
            and calls_after_first % self.every == 0
            and (self.times == 0 or self.hits < self.times)
        )
        self.hits += is_hit
        return is_hit

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        kind, text = SHAPES[self.shape](self.code or _CODES.get(self.status, "InternalError"), self.message)
        content = (text if self.body is None else self.body).encode()
        rule_headers = {name.lower(): value for name, value in self.reply_headers.items()}
        return (
            self.status,
            {"content-type": kind, "content-length": str(len(content)), **rule_headers},
            content,
        )
