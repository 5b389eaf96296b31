"""Faults on the wire, the same for every simulator: an ASGI middleware that is controlled over HTTP.

    PUT    /_simulator/faults          {"rules": [{"fault": "error", "path": "/bucket/*", "nth": 2, "status": 503}, …]}
    GET    /_simulator/faults          rules with how often each matched and hit, answers held now, trace of all calls
    POST   /_simulator/faults/release  lets held answers go on
    DELETE /_simulator/faults          no rules, empty trace, nothing held

A rule matches a call by `method`, `path`, `query` and `headers` (globs; the last two by name), and hits the `nth` call
that it matches, then each `every`-th one after it, `times` in all (0: without end). Its `fault` is one of

    error              an answer of its own, and no effect
    effect_then_error  the effect, then an answer of its own
    reset              the connection is reset, and no effect
    effect_then_reset  the effect, then the connection is reset
    hang               the effect; the answer's body is held at `after_bytes` until released
    truncate           the effect; the connection is closed at `after_bytes` of the answer's body
    cut                the effect; a whole answer whose body ends at `after_bytes` (without it: in its middle)
    stale              the answer to the last call with the same method and URL since the rule was set
    empty_list         the effect; the answer's JSON list under `list_field` is empty
    repeat_item        the effect; its first item comes twice

An answer of its own has `status`, `reply_headers` and `body`, or in place of a body a `shape` with `code` and `message`.
Calls to paths that begin with /_ are neither counted nor hit. Without rules nothing is buffered, and a call costs one
entry in the trace. Standard library only.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from simulators.core import control
from simulators.core.control import App, Message, Receive, Send, answer, read

_PATH: Final = "/faults"
_TRACE_CALLS: Final = 20_000
_CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    429: "ThrottlingException",
    503: "SlowDown",
}

#: Content type and text of an error in the words of S3, of AWS's JSON services, of a plain API, and of a proxy.
SHAPES: dict[str, Callable[[str, str], tuple[str, str]]] = {
    "s3": lambda code, message: (
        "application/xml",
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>',
    ),
    "aws-json": lambda code, message: ("application/x-amz-json-1.1", json.dumps({"__type": code, "message": message})),
    "json": lambda code, message: ("application/json", json.dumps({"error_code": code, "message": message})),
    "html": lambda code, message: ("text/html", f"<html><body><h1>{escape(code)}</h1>{escape(message)}</body></html>"),
}


class Call(NamedTuple):
    """A request as rules and the trace see it: not its body, and in the trace not its headers."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @classmethod
    def of(cls, scope: Message) -> Call:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return cls(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f"?{self.query}" if self.query else "")


@dataclass
class Rule:
    """`seen` and `hits` count from the moment it was set."""

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
            and all(fnmatchcase(call.headers.get(name.lower(), ""), glob) for name, glob in self.headers.items())
        )

    def count(self) -> bool:
        """Count one more call that matches. Return whether the rule hits it."""
        self.seen += 1
        past = self.seen - self.nth
        hit = past >= 0 and past % self.every == 0 and (self.times == 0 or self.hits < self.times)
        self.hits += hit
        return hit

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        kind, text = SHAPES[self.shape](self.code or _CODES.get(self.status, "InternalError"), self.message)
        content = (text if self.body is None else self.body).encode()
        own = {name.lower(): value for name, value in self.reply_headers.items()}
        return self.status, {"content-type": kind, "content-length": str(len(content)), **own}, content


class Exchange(NamedTuple):
    """A call that a rule hits, and what a fault may do with it."""

    rule: Rule
    app: App
    scope: Message
    receive: Receive
    send: Send
    connection: Send
    hold: Callable[[], Awaitable[None]]
    last_answer: list[Message]

    async def effect(self) -> list[Message]:
        """Return the app's answer, kept from the client."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(self.scope, self.receive, keep)
        return messages

    async def up_to_limit(self, beyond: Send) -> None:
        """Send the app's answer; what of its body lies beyond `after_bytes` goes to `beyond`."""
        left = self.rule.after_bytes or 0

        async def counted(message: Message) -> None:
            nonlocal left
            if message["type"] != "http.response.body":
                await self.send(message)
                return
            body = message.get("body", b"")
            first, rest, left = body[:left], body[left:], max(0, left - len(body))
            await self.send({**message, "body": first, "more_body": True})
            if rest or not message.get("more_body"):
                await beyond({**message, "body": rest})

        await self.app(self.scope, self.receive, counted)


async def _error(exchange: Exchange) -> None:
    await read(exchange.receive)
    await answer(exchange.send, *exchange.rule.answer())


async def _effect_then_error(exchange: Exchange) -> None:
    await exchange.effect()
    await answer(exchange.send, *exchange.rule.answer())


async def _reset(exchange: Exchange) -> None:
    """ASGI has no message for it: the server's own transport is behind its `send` (Hypercorn, Uvicorn)."""
    owner: Any = exchange.connection
    while (owner := getattr(owner, "__self__", None)) is not None:
        transport = getattr(getattr(owner, "writer", owner), "transport", None)
        if transport is not None:
            no_lingering = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
            transport.abort()
            return
        owner = getattr(owner, "send", None)
    raise RuntimeError("this web server hides its transport. Use Hypercorn or Uvicorn where connections are to be reset")


async def _effect_then_reset(exchange: Exchange) -> None:
    await exchange.effect()
    await _reset(exchange)


async def _hang(exchange: Exchange) -> None:
    held_once = False

    async def held(message: Message) -> None:
        nonlocal held_once
        if not held_once:
            held_once = True
            await exchange.hold()
        await exchange.send(message)

    await exchange.up_to_limit(held)


async def _truncate(exchange: Exchange) -> None:
    """Begin the answer and never finish it: the server closes its connection."""

    async def dropped(message: Message) -> None:
        pass

    await exchange.up_to_limit(dropped)


async def _stale(exchange: Exchange) -> None:
    if exchange.last_answer:
        await read(exchange.receive)
    for message in exchange.last_answer or await exchange.effect():
        await exchange.send(message)


def _edited(edit: Callable[[Rule, bytes], bytes]) -> Callable[[Exchange], Awaitable[None]]:
    async def fault(exchange: Exchange) -> None:
        start, *bodies = await exchange.effect()
        content = edit(exchange.rule, b"".join(message.get("body", b"") for message in bodies))
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
        await answer(exchange.send, start["status"], {**headers, "content-length": str(len(content))}, content)

    return fault


def _cut(rule: Rule, body: bytes) -> bytes:
    return body[: len(body) // 2 if rule.after_bytes is None else rule.after_bytes]


def _empty_list(rule: Rule, body: bytes) -> bytes:
    return json.dumps({**json.loads(body), rule.list_field: []}).encode()


def _repeat_item(rule: Rule, body: bytes) -> bytes:
    whole = json.loads(body)
    items = whole[rule.list_field]
    return json.dumps({**whole, rule.list_field: items[:1] + items}).encode()


FAULTS: dict[str, Callable[[Exchange], Awaitable[None]]] = {
    "error": _error,
    "effect_then_error": _effect_then_error,
    "reset": _reset,
    "effect_then_reset": _effect_then_reset,
    "hang": _hang,
    "truncate": _truncate,
    "cut": _edited(_cut),
    "stale": _stale,
    "empty_list": _edited(_empty_list),
    "repeat_item": _edited(_repeat_item),
}


def read_rules(text: bytes) -> list[Rule]:
    """Read the rules. Raises ValueError with a sentence that names what is wrong."""
    known = {each.name for each in fields(Rule)} - {"seen", "hits"}
    rules = []
    for given in json.loads(text)["rules"]:
        if unknown := given.keys() - known:
            raise ValueError(f"a rule has no {', '.join(sorted(unknown))}. It may have {', '.join(sorted(known))}")
        rule = Rule(**given)
        if rule.fault not in FAULTS or rule.shape not in SHAPES:
            raise ValueError(
                f"no fault {rule.fault!r} in shape {rule.shape!r}. Faults: {', '.join(FAULTS)}; shapes: {', '.join(SHAPES)}"
            )
        rules.append(rule)
    return rules


class FaultInjector:
    """Stands in front of `app`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._rules: list[Rule] = []
        self._trace: deque[dict[str, Any]] = deque(maxlen=_TRACE_CALLS)
        self._answers: dict[str, list[Message]] = {}
        self._released = asyncio.Event()
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path.startswith(control.PREFIX + _PATH):
            await self._control(scope["method"] + path.removeprefix(control.PREFIX + _PATH), receive, send)
        elif scope["type"] == "http" and not path.startswith("/_"):
            await self._meet(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _control(self, request: str, receive: Receive, send: Send) -> None:
        status, error, body = 200, "", await read(receive)
        try:
            self._obey(request, body)
        except (ValueError, LookupError, TypeError) as refused:
            status, error = 400, str(refused)
        rules = [asdict(rule) for rule in self._rules]
        state = {"rules": rules, "held": self._held, "trace": list(self._trace), "error": error}
        await answer(send, status, {"content-type": "application/json"}, json.dumps(state).encode())

    def _obey(self, request: str, body: bytes) -> None:
        if request == "PUT":
            self._rules, self._answers = read_rules(body), {}
        elif request == "DELETE":
            self._rules, self._answers = [], {}
            self._trace.clear()
        if request in ("DELETE", "POST/release"):
            self._released.set()
            self._released = asyncio.Event()

    async def _meet(self, scope: Message, receive: Receive, send: Send) -> None:
        call = Call.of(scope)
        entry: dict[str, Any] = {"call": str(call), "operation": call.headers.get("x-amz-target", "")}
        self._trace.append(entry)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
            await send(message)

        matching = [rule for rule in self._rules if rule.matches(call)]
        # A list, not a generator: every rule that matches counts the call, also after the one that hits it.
        hits = [rule for rule in matching if rule.count()]
        if hits:
            entry["fault"] = hits[0].fault
            last = self._answers.get(str(call), [])
            await FAULTS[hits[0].fault](Exchange(hits[0], self._app, scope, receive, noting, send, self._hold, last))
        elif any(rule.fault == "stale" for rule in matching):
            await self._app(scope, receive, self._remembering(str(call), noting))
        else:
            await self._app(scope, receive, noting)

    async def _hold(self) -> None:
        self._held += 1
        try:
            await self._released.wait()
        finally:
            self._held -= 1

    def _remembering(self, call: str, send: Send) -> Send:
        kept = self._answers[call] = []

        async def keep_and_send(message: Message) -> None:
            kept.append(message)
            await send(message)

        return keep_and_send


class FaultClient:
    """The fault injector of the simulator at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rule(self, *rules: dict[str, Any]) -> None:
        """Replace all rules by these. Raises urllib.error.HTTPError where one is not a rule."""
        control.call(self._url, "PUT", _PATH, {"rules": rules})

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = control.call(self._url, "GET", _PATH)
        return state

    def release(self) -> None:
        control.call(self._url, "POST", _PATH + "/release")

    def clear(self) -> None:
        control.call(self._url, "DELETE", _PATH)
