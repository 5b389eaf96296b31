"""What a fault injector does to a call that one of its rules hits.

error              an answer of its own, and no effect
effect_then_error  the effect, then an answer of its own
reset              the connection is reset, and no effect
effect_then_reset  the effect, then the connection is reset
hang               the effect; the answer's body is held at `after_bytes` until released
truncate           the effect; the connection is closed at `after_bytes` of the answer's body
cut                the effect; a whole answer whose body ends at `after_bytes` (without it: in its middle)
stale              what the last call with the same method and URL was answered while the rule was in place
empty_list         the effect; the answer's JSON list under `list_field` is empty
repeat_item        the effect; its first item comes twice
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from simulators.core.fault_rules import Rule

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


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
        """The app's answer, kept from the client."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(self.scope, self.receive, keep)
        return messages

    async def up_to_limit(self, beyond: Send) -> None:
        """The app's answer; what of its body lies beyond `after_bytes` is given to `beyond`."""
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
    """ASGI has no word for it: the server's own transport is found behind its `send` (Hypercorn, Uvicorn)."""
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
    """The server closes the connection of an answer that was begun and is never finished."""

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


async def read(receive: Receive) -> bytes:
    """The whole request body, so that a client has sent all of it before it is answered."""
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


async def answer(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
