"""Fault injection for all simulators: an ASGI middleware that is controlled over HTTP.

    PUT    /_simulator/faults          {"rules": [{"fault": "error", "path": "/bucket/*", "nth": 2}, …]}
    GET    /_simulator/faults          rules with their counts of matches and hits, number of held answers,
                                       trace of calls
    POST   /_simulator/faults/release  sends the held answers
    DELETE /_simulator/faults          removes the rules, clears the trace, sends the held answers

A rule matches calls by `method`, `path`, `query` and `headers` (globs; the last two map a name to a glob). It
hits the `nth` call that it matches, and after that every `every`-th one, `times` calls in all (0: no limit).
Its `fault` is one of

    error              the call has no effect; the answer is the rule's
    effect_then_error  the call has its effect; the answer is the rule's
    reset              the call has no effect; the connection is reset
    effect_then_reset  the call has its effect; the connection is reset
    hang               the call has its effect; the answer's body is held at `after_bytes` until it is
                       released
    truncate           the call has its effect; the connection is closed at `after_bytes` of the answer's
                       body
    cut                the call has its effect; the answer is complete, but its body ends at `after_bytes`
                       (default: half)
    stale              the call has no effect; the answer is that of the last call with the same method and
                       URL since the rule was set. Without such an answer, the rule changes nothing
    empty_list         the call has its effect; the JSON list at `list_field` of the answer is empty
    repeat_item        the call has its effect; that list has its first item twice

The rule's answer has `status`, `reply_headers` and `body`. Without `body`, it is an error with `code` and
`message` in the format `shape`. Calls to paths that begin with /_ are neither counted nor hit. Without rules
nothing is buffered, and a call only adds an entry to the trace. Uses only the standard library.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple

from simulators.core import control
from simulators.core.control import App, Message, Receive, Send, answer, read
from simulators.core.fault_rules import SHAPES, Call, Rule

_PATH: Final = "/faults"
_TRACE_CALLS: Final = 20_000


class Exchange(NamedTuple):
    """A call that a rule hits, with all that a fault needs to answer it."""

    rule: Rule
    app: App
    scope: Message
    receive: Receive
    send: Send
    connection: Send
    hold: Callable[[], Awaitable[None]]
    last_answer: list[Message]

    async def take_effect(self) -> list[Message]:
        """Call the app, and return its answer without sending it to the client."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(self.scope, self.receive, keep)
        return messages

    async def send_up_to_limit(self, beyond: Send) -> None:
        """Send the app's answer up to `after_bytes` of its body, and the rest to `beyond`."""
        remaining_bytes = self.rule.after_bytes or 0

        async def send_counted(message: Message) -> None:
            nonlocal remaining_bytes
            if message["type"] != "http.response.body":
                await self.send(message)
                return
            body = message.get("body", b"")
            first = body[:remaining_bytes]
            remainder = body[remaining_bytes:]
            remaining_bytes = max(0, remaining_bytes - len(body))
            await self.send({**message, "body": first, "more_body": True})
            if remainder or not message.get("more_body"):
                await beyond({**message, "body": remainder})

        await self.app(self.scope, self.receive, send_counted)


async def _answer_with_error(exchange: Exchange) -> None:
    await read(exchange.receive)
    await answer(exchange.send, *exchange.rule.answer())


async def _take_effect_then_answer(exchange: Exchange) -> None:
    await exchange.take_effect()
    await answer(exchange.send, *exchange.rule.answer())


async def _reset_connection(exchange: Exchange) -> None:
    """Reset the connection. ASGI has no message for this, so the transport is taken from `send`, as Hypercorn
    and Uvicorn bind it."""
    owner: Any = exchange.connection
    while (owner := getattr(owner, "__self__", None)) is not None:
        transport = getattr(getattr(owner, "writer", owner), "transport", None)
        if transport is not None:
            no_lingering = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
            transport.abort()
            return
        owner = getattr(owner, "send", None)
    raise RuntimeError(
        "this web server hides its transport. Use Hypercorn or Uvicorn where connections are to be reset"
    )


async def _take_effect_then_reset(exchange: Exchange) -> None:
    await exchange.take_effect()
    await _reset_connection(exchange)


async def _hang_in_body(exchange: Exchange) -> None:
    held_once = False

    async def send_held(message: Message) -> None:
        nonlocal held_once
        if not held_once:
            held_once = True
            await exchange.hold()
        await exchange.send(message)

    await exchange.send_up_to_limit(send_held)


async def _truncate_body(exchange: Exchange) -> None:
    """Begin the answer and don't complete it, so that the server closes the connection."""

    async def drop(message: Message) -> None:
        pass

    await exchange.send_up_to_limit(drop)


async def _answer_with_last(exchange: Exchange) -> None:
    if exchange.last_answer:
        await read(exchange.receive)
        messages = exchange.last_answer
    else:
        messages = await exchange.take_effect()
    for message in messages:
        await exchange.send(message)


def _edit_body(edit: Callable[[Rule, bytes], bytes]) -> Callable[[Exchange], Awaitable[None]]:
    async def answer_edited(exchange: Exchange) -> None:
        start, *bodies = await exchange.take_effect()
        content = edit(exchange.rule, b"".join(message.get("body", b"") for message in bodies))
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]
        }
        headers["content-length"] = str(len(content))
        await answer(exchange.send, start["status"], headers, content)

    return answer_edited


def _cut_body(rule: Rule, body: bytes) -> bytes:
    length = len(body) // 2 if rule.after_bytes is None else rule.after_bytes
    return body[:length]


def _empty_list(rule: Rule, body: bytes) -> bytes:
    return json.dumps({**json.loads(body), rule.list_field: []}).encode()


def _repeat_item(rule: Rule, body: bytes) -> bytes:
    document = json.loads(body)
    items = document[rule.list_field]
    return json.dumps({**document, rule.list_field: items[:1] + items}).encode()


FAULTS: dict[str, Callable[[Exchange], Awaitable[None]]] = {
    "error": _answer_with_error,
    "effect_then_error": _take_effect_then_answer,
    "reset": _reset_connection,
    "effect_then_reset": _take_effect_then_reset,
    "hang": _hang_in_body,
    "truncate": _truncate_body,
    "cut": _edit_body(_cut_body),
    "stale": _answer_with_last,
    "empty_list": _edit_body(_empty_list),
    "repeat_item": _edit_body(_repeat_item),
}


def read_rules(text: bytes) -> list[Rule]:
    """Read the rules. Raises ValueError, which says what is wrong."""
    known_fields = {field.name for field in fields(Rule)} - {"seen", "hits"}
    rules = []
    for document in json.loads(text)["rules"]:
        if unknown := document.keys() - known_fields:
            unknown_names = ", ".join(sorted(unknown))
            known_names = ", ".join(sorted(known_fields))
            raise ValueError(f"a rule has no {unknown_names}. It may have {known_names}")
        rule = Rule(**document)
        if rule.fault not in FAULTS or rule.shape not in SHAPES:
            faults = ", ".join(FAULTS)
            shapes = ", ".join(SHAPES)
            raise ValueError(
                f"no fault {rule.fault!r} in shape {rule.shape!r}. Faults: {faults}; shapes: {shapes}"
            )
        if rule.every < 1:
            raise ValueError("every must be at least 1")
        rules.append(rule)
    return rules


class FaultInjector:
    """ASGI middleware in front of `app`."""

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
            request = scope["method"] + path.removeprefix(control.PREFIX + _PATH)
            await self._answer_control(request, receive, send)
        elif scope["type"] == "http" and not path.startswith("/_"):
            await self._handle(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer_control(self, request: str, receive: Receive, send: Send) -> None:
        status = 200
        error = ""
        body = await read(receive)
        try:
            self._obey(request, body)
        except (ValueError, LookupError, TypeError) as refusal:
            status = 400
            error = str(refusal)
        rules = [asdict(rule) for rule in self._rules]
        state = {"rules": rules, "held": self._held, "trace": list(self._trace), "error": error}
        await answer(send, status, {"content-type": "application/json"}, json.dumps(state).encode())

    def _obey(self, request: str, body: bytes) -> None:
        if request == "PUT":
            self._rules = read_rules(body)
            self._answers = {}
        elif request == "DELETE":
            self._rules = []
            self._answers = {}
            self._trace.clear()
        if request in ("DELETE", "POST/release"):
            self._released.set()
            self._released = asyncio.Event()

    async def _handle(self, scope: Message, receive: Receive, send: Send) -> None:
        call = Call.from_scope(scope)
        entry: dict[str, Any] = {"call": str(call), "operation": call.headers.get("x-amz-target", "")}
        self._trace.append(entry)

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
            await send(message)

        matching_rules = [rule for rule in self._rules if rule.matches(call)]
        # A list, not a generator: every matching rule must count the call, also those after the first that
        # hits it.
        hits = [rule for rule in matching_rules if rule.count()]
        if hits:
            entry["fault"] = hits[0].fault
            last = self._answers.get(str(call), [])
            await FAULTS[hits[0].fault](
                Exchange(hits[0], self._app, scope, receive, record_and_send, send, self._hold, last)
            )
        elif any(rule.fault == "stale" for rule in matching_rules):
            await self._app(scope, receive, self._record_answer(str(call), record_and_send))
        else:
            await self._app(scope, receive, record_and_send)

    async def _hold(self) -> None:
        self._held += 1
        try:
            await self._released.wait()
        finally:
            self._held -= 1

    def _record_answer(self, call: str, send: Send) -> Send:
        messages = self._answers[call] = []

        async def keep_and_send(message: Message) -> None:
            messages.append(message)
            await send(message)

        return keep_and_send


class FaultClient:
    """A client of the fault injector in the simulator at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rule(self, *rules: dict[str, Any]) -> None:
        """Replace all rules by these. Raises urllib.error.HTTPError if one is not valid."""
        control.call(self._url, "PUT", _PATH, {"rules": rules})

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = control.call(self._url, "GET", _PATH)
        return state

    def release(self) -> None:
        control.call(self._url, "POST", _PATH + "/release")

    def clear(self) -> None:
        control.call(self._url, "DELETE", _PATH)
